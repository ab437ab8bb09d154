//! The command line: one file a command. It exits with 0 when done, 1 when it failed, 2 when it
//! was misused.

mod bench;
mod config;
mod error;
mod id;
mod log;
mod members;
mod migrate;
mod output;
mod partitions;
mod reading;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use wow::config::{Config, Sources, check_overrides, parse_override};

use self::error::Failure;

const START: &str = "\
Start a node here, on a file of its own:

  wow serve

Then, from another terminal, create an account:

  curl -X POST http://127.0.0.1:8080/account/create_account \\
    -H 'Content-Type: application/json' -d '{\"name\":\"Ada\",\"balance\":100}'

`wow --help` lists all commands, `wow config print` all settings.
";

/// A command runtime for event-sourced services.
#[derive(Debug, Parser)]
#[command(
    name = "wow",
    version,
    max_term_width = 100,
    after_help = "Example:\n  wow serve"
)]
struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Args)]
struct Global {
    /// The configuration file [default: ./config.toml, when it is there]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Sets one key for this run, over file and environment; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = parse_override)]
    set: Vec<(String, String)>,
}

impl Global {
    fn load(self) -> Result<Config, Failure> {
        Ok(Config::load(&Sources::of_process(self.config, self.set))?)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::BenchArguments),
    Config(config::ConfigArguments),
    Id(id::IdArguments),
    Log(log::LogArguments),
    Members(members::MembersArguments),
    Migrate(migrate::MigrateArguments),
    Partitions(partitions::PartitionsArguments),
    Serve(serve::ServeArguments),
}

/// Runs the command that the arguments name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(misuse) => {
            // Help that nobody reads any more is no failure.
            let _ = misuse.print();
            return ExitCode::from(u8::try_from(misuse.exit_code()).unwrap_or(2));
        }
    };
    let global = arguments.global;
    if let Err(misuse) = check_overrides(&global.set) {
        let misuse = Arguments::command().error(ErrorKind::ArgumentConflict, misuse);
        let _ = misuse.print();
        return ExitCode::from(2);
    }
    let done = match arguments.command {
        None => output::print(START).map_err(Failure::from),
        Some(Command::Bench(arguments)) => bench::run(arguments, global),
        Some(Command::Config(arguments)) => config::run(arguments, global),
        Some(Command::Id(arguments)) => id::run(&arguments),
        Some(Command::Log(arguments)) => log::run(arguments, global),
        Some(Command::Members(arguments)) => members::run(&arguments, global),
        Some(Command::Migrate(arguments)) => migrate::run(&arguments, global),
        Some(Command::Partitions(arguments)) => partitions::run(&arguments, global),
        Some(Command::Serve(arguments)) => serve::run(&arguments, global),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_help_with_an_example() {
        fn check(command: &clap::Command) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
            assert!(command.get_about().is_some(), "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        Arguments::command().debug_assert();
        check(&Arguments::command());
    }
}
