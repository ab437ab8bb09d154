//! The node that ships: the command line over the library, with the example domains.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
