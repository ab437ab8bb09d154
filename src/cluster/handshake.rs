//! The first words on a connection: who calls, with which token, in which protocol.
//!
//! The frame that carries them is small, and until it has been judged nothing else is read.

use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use wow_kernel::id::NodeName;

use super::message::{PROTOCOL_MAX, PROTOCOL_MIN, append};
use super::{CONNECT_TIMEOUT, ClusterSettings};

/// What marks the first frame as one of ours.
const MAGIC: [u8; 4] = *b"wow\x01";

/// The largest frame of a handshake.
const FRAME_BYTES_MAX: u32 = 4096;

/// What the caller says.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    magic: [u8; 4],
    protocol_min: u16,
    protocol_max: u16,
    token: Vec<u8>,
    node: NodeName,
    /// The node that it wants to reach: an address may have become another's.
    to: NodeName,
}

/// What it is answered.
#[derive(Debug, Serialize, Deserialize)]
enum Welcome {
    Come { protocol: u16, node: NodeName },
    Refused { reason: String },
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the handshake took too long")]
    Late,
    #[error("it doesn't speak this protocol")]
    Foreign,
    #[error("it refuses: {0}")]
    Refused(String),
    #[error("the token is not this cluster's")]
    WrongToken,
    #[error("it speaks protocols {min} to {max}, and this node {PROTOCOL_MIN} to {PROTOCOL_MAX}")]
    Protocol { min: u16, max: u16 },
    #[error("it looks for the node {0}, which this one is not")]
    OtherNode(NodeName),
}

/// Calls: says who this node is, and waits to be let in.
///
/// # Errors
/// [`HandshakeError`].
pub(super) async fn call<S>(
    stream: &mut S,
    settings: &ClusterSettings,
    to: &NodeName,
) -> Result<(), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello = Hello {
        magic: MAGIC,
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        token: settings.token.0.to_vec(),
        node: settings.node.clone(),
        to: to.clone(),
    };
    let welcome = async {
        send(stream, &hello).await?;
        receive::<Welcome, _>(stream).await
    };
    match timeout(CONNECT_TIMEOUT, welcome)
        .await
        .map_err(|_| HandshakeError::Late)??
    {
        Welcome::Come { .. } => Ok(()),
        Welcome::Refused { reason } => Err(HandshakeError::Refused(reason)),
    }
}

/// Answers a caller: lets it in, or says why not. Who came is answered.
///
/// # Errors
/// [`HandshakeError`].
pub(super) async fn answer<S>(
    stream: &mut S,
    settings: &ClusterSettings,
) -> Result<NodeName, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let judged = async {
        let hello: Hello = receive(stream).await?;
        let judged = judge(&hello, settings);
        let welcome = match &judged {
            Ok(protocol) => Welcome::Come {
                protocol: *protocol,
                node: settings.node.clone(),
            },
            Err(error) => Welcome::Refused {
                reason: error.to_string(),
            },
        };
        send(stream, &welcome).await?;
        judged.map(|_| hello.node)
    };
    timeout(CONNECT_TIMEOUT, judged)
        .await
        .map_err(|_| HandshakeError::Late)?
}

/// The protocol that both speak.
fn judge(hello: &Hello, settings: &ClusterSettings) -> Result<u16, HandshakeError> {
    if hello.magic != MAGIC {
        return Err(HandshakeError::Foreign);
    }
    if !settings.token.is(&hello.token) {
        return Err(HandshakeError::WrongToken);
    }
    if hello.to != settings.node {
        return Err(HandshakeError::OtherNode(hello.to.clone()));
    }
    let newest = hello.protocol_max.min(PROTOCOL_MAX);
    if newest < hello.protocol_min.max(PROTOCOL_MIN) {
        return Err(HandshakeError::Protocol {
            min: hello.protocol_min,
            max: hello.protocol_max,
        });
    }
    Ok(newest)
}

/// Writes one frame.
async fn send<T: Serialize, S>(stream: &mut S, value: &T) -> Result<(), HandshakeError>
where
    S: AsyncWrite + Unpin,
{
    let body = postcard::to_stdvec(value).map_err(|_| HandshakeError::Foreign)?;
    let mut frame = BytesMut::with_capacity(body.len() + 4);
    append(&mut frame, &body);
    stream.write_all(&frame).await?;
    Ok(stream.flush().await?)
}

/// Reads one frame and not a byte more: what follows it is not the handshake's.
async fn receive<T: for<'de> Deserialize<'de>, S>(stream: &mut S) -> Result<T, HandshakeError>
where
    S: AsyncRead + Unpin,
{
    let length = stream.read_u32().await?;
    if length > FRAME_BYTES_MAX {
        return Err(HandshakeError::Foreign);
    }
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await?;
    postcard::from_bytes(&frame).map_err(|_| HandshakeError::Foreign)
}
