//! A bare connection, for what a proper client never sends.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(crate) async fn connect(address: &str) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Sends bytes. A node that has answered already may have closed.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Reads until the node has said a word.
    pub(crate) async fn read_until(&mut self, word: &str) -> String {
        let (mut text, mut buffer) = (String::new(), [0; 1024]);
        while !text.contains(word) {
            let read = timeout(PATIENCE, self.0.read(&mut buffer)).await;
            let count = read.expect("the node answers in time").unwrap();
            assert_ne!(count, 0, "the node closed: {text}");
            text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        text
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&mut self) {
        let _ = self.0.shutdown().await;
    }

    /// Everything until the node closes: the head and body of its answers.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A connection that is closed with unread bytes may end in a reset.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut bytes))
            .await
            .expect("the node closes in time");
        String::from_utf8(bytes).unwrap()
    }
}

/// Status and error code of an answer's head; nothing where there is none.
pub(crate) fn status_and_code(text: &str) -> (u16, &str) {
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let code = text
        .lines()
        .find_map(|line| line.strip_prefix("wow-error-code: "));
    (status.unwrap_or(0), code.unwrap_or(""))
}
