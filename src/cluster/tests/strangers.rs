//! Who is let in, and what a message that nobody knows does (R76).

use bytes::BytesMut;
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::codec::FramedRead;
use wow_kernel::id::{NodeName, PartitionNo};
use wow_kernel::ports::ForwardError;

use super::super::handshake;
use super::super::message::{Message, append, codec};
use super::{FRAME_BYTES_MAX, LONG, channel, command, forward, serve, settings};

#[tokio::test(flavor = "multi_thread")]
async fn r76_a_wrong_token_is_refused_and_nothing_is_sent() {
    let (server, address, _, mut commands) = serve("secret").await;
    let channel = channel("Secret", &address);
    let answer = forward(&channel, LONG).await;
    assert!(
        matches!(answer, Err(ForwardError::NotSent(_))),
        "{answer:?}"
    );
    server.stop().await;
    assert!(commands.recv().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn r76_a_frame_before_the_handshake_is_not_read() {
    let (server, address, _, mut commands) = serve("secret").await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let mut frame = BytesMut::new();
    let forward = Message::Forward(1, Box::new(command("{}", LONG)));
    append(&mut frame, &forward.encode().unwrap());
    stream.write_all(&frame).await.unwrap();
    // Closed, with an answer or without; a reset is an end too.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    // A length beyond the bound is refused before a byte of it is read.
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_u32(u32::MAX).await.unwrap();
    let _ = stream.read_to_end(&mut answer).await;
    server.stop().await;
    assert!(commands.recv().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_later_version_is_answered_and_the_connection_kept() {
    let (server, address, fake, _commands) = serve("secret").await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let to = NodeName::trusted("b");
    handshake::call(&mut stream, &settings("a", "secret"), &to)
        .await
        .unwrap();
    let mut bytes = BytesMut::new();
    append(&mut bytes, &[200, 1, 2, 3]);
    append(&mut bytes, &[2]);
    append(&mut bytes, &[]);
    // What a later version adds at the end of a known message is passed over.
    let mut longer = Message::Position(PartitionNo(1), 2)
        .encode()
        .unwrap()
        .to_vec();
    longer.extend_from_slice(b"added");
    append(&mut bytes, &longer);
    stream.write_all(&bytes).await.unwrap();
    assert_eq!(fake.told(1).await, ["1 at 2"]);
    let mut frames = FramedRead::new(stream, codec(FRAME_BYTES_MAX));
    let answer = loop {
        let frame = frames.next().await.unwrap().unwrap();
        match Message::decode(&frame).unwrap() {
            Message::Ping => {}
            other => break other,
        }
    };
    assert_eq!(answer, Message::NotUnderstood(200));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_looks_for_another_node_is_refused() {
    let (server, address, _, _commands) = serve("secret").await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let to = NodeName::trusted("elsewhere");
    let refused = handshake::call(&mut stream, &settings("a", "secret"), &to).await;
    assert!(matches!(
        refused,
        Err(handshake::HandshakeError::Refused(_))
    ));
    server.stop().await;
}
