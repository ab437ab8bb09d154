//! How long a connection has nothing to do, and its end when that is too long.
//!
//! actix bounds the first head of a connection and the pause between two requests. Between them
//! are gaps: the begun head of a second request, and a connection of HTTP/2 that only answers
//! pings, are waited for without end. So the stream itself knows whether a request is under way,
//! and where none is, it fails once its time is over.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_http::Protocol;
use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// The bytes of a ping of HTTP/2: who only answers those has nothing to do.
const PING_BYTES: usize = 17;

/// How long a connection without a request may go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Until the head of a request is there, once it has begun.
    pub(super) head: Duration,
    /// From the end of a request to the begin of the next.
    pub(super) between: Duration,
}

/// What a connection is at. It lives on one thread, and so do its requests.
#[derive(Debug)]
pub(super) struct Activity {
    patience: Patience,
    protocol: Protocol,
    under_way: Cell<usize>,
    /// Whether a head has begun; in HTTP/2 that can't be told from a ping.
    is_reading: Cell<bool>,
    /// Until when something has to begin.
    deadline: Cell<Instant>,
    /// Who reads the connection while a request is under way: with its end, time begins to run.
    reader: RefCell<Option<Waker>>,
}

impl Activity {
    fn new(patience: Patience, protocol: Protocol) -> Self {
        let first = match protocol {
            Protocol::Http2 => patience.between,
            // actix's own timer, which answers with 408, comes first.
            _ => patience.head * 2,
        };
        Self {
            patience,
            protocol,
            under_way: Cell::new(0),
            // The first head is on its way, or there would be no connection to watch.
            is_reading: Cell::new(true),
            deadline: Cell::new(Instant::now() + first),
            reader: RefCell::new(None),
        }
    }

    /// A request is under way as long as what this gives lives.
    pub(super) fn begin(self: &Rc<Self>) -> UnderWay {
        self.under_way.set(self.under_way.get() + 1);
        self.is_reading.set(false);
        UnderWay(Rc::clone(self))
    }

    /// Until when something has to begin; none while a request is under way.
    fn deadline(&self) -> Option<Instant> {
        (self.under_way.get() == 0).then(|| self.deadline.get())
    }

    fn rest(&self) {
        self.deadline.set(Instant::now() + self.patience.between);
    }

    fn note_read(&self) {
        let is_new = self.under_way.get() == 0 && !self.is_reading.get();
        if is_new && self.protocol != Protocol::Http2 {
            self.is_reading.set(true);
            self.deadline.set(Instant::now() + self.patience.head);
        }
    }

    /// An answer that goes out slowly is going out.
    fn note_write(&self, bytes: usize) {
        let is_answer = self.protocol != Protocol::Http2 || bytes > PING_BYTES;
        if is_answer && !self.is_reading.get() {
            self.rest();
        }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(super) struct UnderWay(Rc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let left = self.0.under_way.get() - 1;
        self.0.under_way.set(left);
        if left == 0 {
            self.0.rest();
            if let Some(reader) = self.0.reader.borrow_mut().take() {
                reader.wake();
            }
        }
    }
}

impl UnderWay {
    /// Lasts as long as the answer does: one that streams isn't over once it has begun.
    pub(super) fn hold(self, response: HttpResponse) -> HttpResponse {
        match response.body().size() {
            BodySize::Stream => response.map_body(|_, body| {
                BoxBody::new(Held {
                    body,
                    _under_way: self,
                })
            }),
            _ => response,
        }
    }
}

struct Held {
    body: BoxBody,
    _under_way: UnderWay,
}

impl MessageBody for Held {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// A connection that fails once it has had nothing to do for too long.
pub(super) struct Watched {
    stream: TcpStream,
    activity: Rc<Activity>,
    alarm: Pin<Box<Sleep>>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, protocol: Protocol, patience: Patience) -> Self {
        let activity = Rc::new(Activity::new(patience, protocol));
        Self {
            stream,
            alarm: Box::pin(sleep_until(activity.deadline.get())),
            activity,
        }
    }

    pub(super) fn activity(&self) -> Rc<Activity> {
        Rc::clone(&self.activity)
    }

    /// Ready once the time is over. The alarm is set again only when it is too late or has gone
    /// off too early, not for every request.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(deadline) = self.activity.deadline() else {
                *self.activity.reader.borrow_mut() = Some(cx.waker().clone());
                return Poll::Pending;
            };
            if self.alarm.deadline() > deadline || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(deadline);
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buffer) {
            Poll::Pending => this
                .poll_alarm(cx)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
            read => {
                if buffer.filled().len() > before {
                    this.activity.note_read();
                }
                read
            }
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            this.activity.note_write(*count);
        }
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            this.activity.note_write(*count);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
