//! Finds words in a stream that comes in pieces, wherever it is cut. Letters match in either case.

/// How far a stream has come in a pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    words: Vec<u8>,
    /// The end of what came so far, shorter than the words by one at most.
    tail: Vec<u8>,
}

/// Where a pattern lies in the piece that completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it begins; 0 where it began in an earlier piece.
    pub(super) begin: usize,
}

impl Pattern {
    pub(super) fn new(words: &[u8]) -> Self {
        Self {
            words: words.to_vec(),
            tail: Vec::new(),
        }
    }

    /// Looks at the next piece of the stream.
    pub(super) fn find(&mut self, piece: &[u8]) -> Option<Found> {
        if self.words.is_empty() {
            return Some(Found { begin: 0 });
        }
        let before = self.tail.len();
        self.tail.extend_from_slice(piece);
        let found = self
            .tail
            .windows(self.words.len())
            .position(|window| window.eq_ignore_ascii_case(&self.words));
        let surplus = self.tail.len().saturating_sub(self.words.len() - 1);
        self.tail.drain(..surplus);
        found.map(|begin| Found {
            begin: begin.saturating_sub(before),
        })
    }
}
