//! The node that ships: the command line over the library, with the example domains.

use std::process::ExitCode;

mod cli;
mod domains;

/// Answers are freed on other threads than they were made on, which the system's own is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
