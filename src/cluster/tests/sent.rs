//! What "sent" means, with peers that this test plays itself (R21, R22).

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_util::codec::FramedRead;
use wow_kernel::id::NodeName;
use wow_kernel::ports::{ForwardError, ForwardReply, PeerChannel};

use super::super::ClusterChannel;
use super::super::handshake;
use super::super::message::{Message, append, codec};
use super::{FRAME_BYTES_MAX, LONG, channel, command, forward, settings};

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_nobody_listens_for_has_not_been_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let channel = channel("secret", &address);
    let answer = forward(&channel, LONG).await;
    assert!(
        matches!(answer, Err(ForwardError::NotSent(_))),
        "{answer:?}"
    );
    let unknown = channel
        .forward(
            &NodeName::trusted("c"),
            command("{}", LONG),
            oneshot::channel().0,
        )
        .await;
    assert!(
        matches!(unknown, Err(ForwardError::NotSent(_))),
        "{unknown:?}"
    );
}

/// A listener that takes the handshake, for a test that plays the peer itself.
async fn play() -> (TcpListener, Arc<ClusterChannel>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, channel("secret", &address))
}

async fn let_in(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    handshake::answer(&mut stream, &settings("b", "secret"))
        .await
        .unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_a_connection_that_is_cut_before_the_first_byte_has_sent_nothing() {
    let (listener, channel) = play().await;
    let asking = tokio::spawn({
        let channel = Arc::clone(&channel);
        async move { forward(&channel, LONG).await }
    });
    // Taken, and cut within the handshake.
    let (stream, _) = listener.accept().await.unwrap();
    drop(stream);
    let answer = asking.await.unwrap();
    assert!(
        matches!(answer, Err(ForwardError::NotSent(_))),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_connection_that_is_cut_after_the_first_byte_may_have_sent_all() {
    let (listener, channel) = play().await;
    let asking = tokio::spawn({
        let channel = Arc::clone(&channel);
        async move { forward(&channel, LONG).await }
    });
    let mut stream = let_in(&listener).await;
    let mut first = [0];
    stream.read_exact(&mut first).await.unwrap();
    drop(stream);
    let answer = asking.await.unwrap();
    assert!(
        matches!(answer, Err(ForwardError::NoAnswer(_))),
        "{answer:?}"
    );
    // The connection comes back by itself.
    let asking = tokio::spawn(async move {
        loop {
            // Until it is there again, nothing is sent.
            match forward(&channel, LONG).await {
                Err(ForwardError::NotSent(_)) => tokio::task::yield_now().await,
                answer => break answer,
            }
        }
    });
    let stream = let_in(&listener).await;
    let (reading, mut writing) = stream.into_split();
    let mut frames = FramedRead::new(reading, codec(FRAME_BYTES_MAX));
    let answered = loop {
        let frame = frames.next().await.unwrap().unwrap();
        if let Message::Forward(id, _) = Message::decode(&frame).unwrap() {
            break id;
        }
    };
    let mut reply = BytesMut::new();
    let message = Message::Reply(answered, Box::new(ForwardReply::NotOwner));
    append(&mut reply, &message.encode().unwrap());
    writing.write_all(&reply).await.unwrap();
    assert_eq!(asking.await.unwrap(), Ok(ForwardReply::NotOwner));
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_peer_that_accepts_and_never_answers_is_given_up_in_time() {
    let (listener, channel) = play().await;
    let asking = tokio::spawn(async move { forward(&channel, Duration::from_millis(300)).await });
    let mut stream = let_in(&listener).await;
    let mut first = [0];
    stream.read_exact(&mut first).await.unwrap();
    let answer = asking.await.unwrap();
    assert!(
        matches!(answer, Err(ForwardError::NoAnswer(_))),
        "{answer:?}"
    );
}
