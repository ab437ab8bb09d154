//! What is said on the channel. A frame is a length, a byte that tells the kind, and the rest in
//! postcard's form; the numbers of the kinds never change.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::LengthDelimitedCodec;
use wow_kernel::forward::{ForwardedCommand, Signal};
use wow_kernel::id::{PartitionNo, Position};
use wow_kernel::ports::ForwardReply;

/// The oldest protocol that this version speaks.
pub(super) const PROTOCOL_MIN: u16 = 1;

/// The newest one.
pub(super) const PROTOCOL_MAX: u16 = 1;

/// The number of a forward on its connection.
pub(super) type ForwardId = u64;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// A command to be run.
    Forward(ForwardId, Box<ForwardedCommand>),
    /// A lane has taken it.
    Accepted(ForwardId),
    /// What became of it.
    Reply(ForwardId, Box<ForwardReply>),
    /// Commits have reached stages.
    Signals(Vec<Signal>),
    /// A partition has grown.
    Position(PartitionNo, Position),
    /// Partitions have changed hands.
    Ownership,
    /// Are you there?
    Ping,
    /// Yes.
    Pong,
    /// A message of this kind was not understood.
    NotUnderstood(u8),
}

/// A frame that is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageFault {
    /// A kind of a later version: answered, and the connection is kept.
    #[error("a message of the unknown kind {0}")]
    UnknownKind(u8),
    /// It can't be read.
    #[error("a message of kind {kind} can't be read: {reason}")]
    Unreadable {
        /// Its kind.
        kind: u8,
        /// What is wrong.
        reason: String,
    },
    /// A frame of nothing.
    #[error("an empty frame")]
    Empty,
}

const FORWARD: u8 = 1;
const ACCEPTED: u8 = 2;
const REPLY: u8 = 3;
const SIGNALS: u8 = 4;
const POSITION: u8 = 5;
const OWNERSHIP: u8 = 6;
const PING: u8 = 7;
const PONG: u8 = 8;
const NOT_UNDERSTOOD: u8 = 9;

impl Message {
    /// The frame's content.
    ///
    /// # Errors
    /// What postcard says of a value that it can't write; none of ours is one.
    pub(super) fn encode(&self) -> Result<Bytes, postcard::Error> {
        match self {
            Self::Forward(id, command) => frame(FORWARD, &(id, command)),
            Self::Accepted(id) => frame(ACCEPTED, id),
            Self::Reply(id, reply) => frame(REPLY, &(id, reply)),
            Self::Signals(signals) => frame(SIGNALS, signals),
            Self::Position(partition, position) => frame(POSITION, &(partition, position)),
            Self::Ownership => frame(OWNERSHIP, &()),
            Self::Ping => frame(PING, &()),
            Self::Pong => frame(PONG, &()),
            Self::NotUnderstood(kind) => frame(NOT_UNDERSTOOD, kind),
        }
    }

    /// Reads a frame's content.
    ///
    /// # Errors
    /// [`MessageFault`].
    pub(super) fn decode(frame: &[u8]) -> Result<Self, MessageFault> {
        let (&kind, body) = frame.split_first().ok_or(MessageFault::Empty)?;
        match kind {
            FORWARD => read(kind, body).map(|(id, command)| Self::Forward(id, command)),
            ACCEPTED => read(kind, body).map(Self::Accepted),
            REPLY => read(kind, body).map(|(id, reply)| Self::Reply(id, reply)),
            SIGNALS => read(kind, body).map(Self::Signals),
            POSITION => read(kind, body).map(|(at, position)| Self::Position(at, position)),
            OWNERSHIP => Ok(Self::Ownership),
            PING => Ok(Self::Ping),
            PONG => Ok(Self::Pong),
            NOT_UNDERSTOOD => read(kind, body).map(Self::NotUnderstood),
            unknown => Err(MessageFault::UnknownKind(unknown)),
        }
    }
}

fn frame<T: Serialize + ?Sized>(kind: u8, body: &T) -> Result<Bytes, postcard::Error> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(kind);
    postcard::to_extend(body, bytes).map(Bytes::from)
}

fn read<T: DeserializeOwned>(kind: u8, body: &[u8]) -> Result<T, MessageFault> {
    // What follows was added by a later version, and means nothing here.
    postcard::take_from_bytes(body)
        .map(|(value, _added)| value)
        .map_err(|error| MessageFault::Unreadable {
            kind,
            reason: error.to_string(),
        })
}

/// The codec of frames: four bytes of length, the highest first.
pub(super) fn codec(frame_bytes_max: usize) -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .max_frame_length(frame_bytes_max)
        .new_codec()
}

/// Appends a frame to what is about to be written.
pub(super) fn append(buffer: &mut BytesMut, frame: &[u8]) {
    // The codec's bound keeps every frame below four gigabytes.
    buffer.put_u32(u32::try_from(frame.len()).unwrap_or(u32::MAX));
    buffer.extend_from_slice(frame);
}
