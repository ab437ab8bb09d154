//! What a command line says of the configuration: `--config FILE` and `--set KEY=VALUE`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;

use super::source::Sources;

/// What is wrong with the arguments themselves, whatever they set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// What follows `--set` is no key with a value.
    #[error("'{0}' sets nothing; write it as section.key=value, such as http.workers=4")]
    NotASetting(String),
    /// Which of two values is meant can't be known.
    #[error("{0} is set twice on the command line; say which value is meant")]
    SetTwice(String),
    /// An option without what it is for.
    #[error("{0} stands alone; its value has to follow")]
    ValueMissing(&'static str),
    /// There is one file.
    #[error("--config is given twice; one file is read")]
    TwoFiles,
    /// What nobody here understands.
    #[error("'{0}' is no argument that is known here")]
    Unknown(String),
}

/// Reads `section.key=value`.
///
/// # Errors
/// [`Misuse::NotASetting`].
pub fn parse_override(text: &str) -> Result<(String, String), Misuse> {
    let not_one = || Misuse::NotASetting(text.to_owned());
    let (key, value) = text.split_once('=').ok_or_else(not_one)?;
    let key = key.trim();
    if key.is_empty() {
        return Err(not_one());
    }
    Ok((key.to_owned(), value.trim().to_owned()))
}

/// Refuses a key that is set more than once.
///
/// # Errors
/// [`Misuse::SetTwice`] names the first.
pub fn check_overrides(overrides: &[(String, String)]) -> Result<(), Misuse> {
    let mut keys = HashSet::new();
    match overrides.iter().find(|(key, _)| !keys.insert(key)) {
        Some((key, _)) => Err(Misuse::SetTwice(key.clone())),
        None => Ok(()),
    }
}

impl Sources {
    /// The process's own, with what its arguments say; the program's name is not among them.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn of_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Misuse> {
        let (mut file, mut overrides) = (None, Vec::new());
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (&*text, None),
            };
            match name {
                "--config" => {
                    let path = value.or_else(|| arguments.next());
                    let path = path.ok_or(Misuse::ValueMissing("--config"))?;
                    if file.replace(PathBuf::from(path)).is_some() {
                        return Err(Misuse::TwoFiles);
                    }
                }
                "--set" => {
                    let set = value.or_else(|| arguments.next());
                    let set = set.ok_or(Misuse::ValueMissing("--set"))?;
                    overrides.push(parse_override(&set.to_string_lossy())?);
                }
                _ => return Err(Misuse::Unknown(text.into_owned())),
            }
        }
        check_overrides(&overrides)?;
        Ok(Self::of_process(file, overrides))
    }
}
