//! The node from outside, in one binary: each module is a part of it.

mod storage;
