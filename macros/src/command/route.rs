//! The route of a command: its verb, and the end of its path with the variables in it.

use syn::LitStr;

use super::Options;
use super::fields::{self, Variable};
use crate::options::Faults;

/// A route.
pub(super) struct Route {
    /// A variant of `Method`.
    pub(super) method: &'static str,
    /// The path after the resource and the id.
    pub(super) action: LitStr,
}

/// The declared route, or the one that follows from creation rule and name.
pub(super) fn read(
    options: &Options,
    name: &LitStr,
    variables: &[Variable],
    faults: &mut Faults,
) -> Route {
    let method = match (options.method.get(), options.creation.get()) {
        (Some(method), _) => declared(method, faults),
        (None, Some(&"Creates")) => "Post",
        (None, _) => "Put",
    };
    let action = options.action.get().unwrap_or(name).clone();
    check(&action, variables, faults);
    Route { method, action }
}

fn declared(method: &LitStr, faults: &mut Faults) -> &'static str {
    match method.value().as_str() {
        "POST" => "Post",
        "PUT" => "Put",
        "PATCH" => "Patch",
        "DELETE" => "Delete",
        _ => {
            let advice = "a command's verb changes something: \
                          write \"POST\", \"PUT\", \"PATCH\" or \"DELETE\"";
            faults.at(method.span(), advice);
            "Put"
        }
    }
}

/// Every segment is a word or one `{variable}`, and the variables are those of the fields.
fn check(action: &LitStr, variables: &[Variable], faults: &mut Faults) {
    let text = action.value();
    let mut named = Vec::new();
    for segment in text.split('/').filter(|_| !text.is_empty()) {
        let inner = segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        match inner {
            Some(name) => named.push(name),
            None if is_word(segment) => {}
            None => {
                let advice = "a path is words of letters, digits, `_`, `-`, `.` and whole \
                              `{variables}`, with `/` between them: write `action = \"x/{part}\"`";
                faults.at(action.span(), advice);
                return;
            }
        }
    }
    let path: Vec<_> = variables
        .iter()
        .filter(|variable| variable.source == "Path")
        .collect();
    for name in &named {
        if !path.iter().any(|variable| variable.name.value() == **name) {
            let advice = fields::reserved(name).unwrap_or_else(|| {
                format!(
                    "nothing takes `{{{name}}}`: \
                     mark the field with `#[command(path = \"{name}\")]`"
                )
            });
            faults.at(action.span(), advice);
        }
    }
    for variable in path {
        let name = variable.name.value();
        if named.iter().filter(|known| **known == name).count() != 1 {
            let advice = format!(
                "the path has to have this part once: write \
                 `action = \"{}/{{{name}}}\"` on the struct",
                text.split("/{").next().unwrap_or_default()
            );
            faults.at(variable.name.span(), advice);
        }
    }
}

fn is_word(segment: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !segment.is_empty() && segment.chars().all(fits)
}
