//! Several nodes on one PostgreSQL, as processes: what holds for one node holds for them together,
//! while they are killed, paused, stopped and come back.

mod nodes;
mod run;
mod two;
mod visible;
