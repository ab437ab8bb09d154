//! A command type and what it declares about itself.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Principal;
use crate::id::Identity;

/// A command; derive it with `#[derive(Command)]`.
///
/// ```ignore
/// #[derive(Debug, Serialize, Deserialize, JsonSchema, Command)]
/// #[command(creates)]
/// struct Open { name: String }
/// ```
pub trait Command: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Name, rules and route of the type.
    fn spec() -> CommandSpec;

    /// Every fault of a decoded command that its type alone can tell (R5).
    fn validate(&self) -> Vec<BindingError> {
        Vec::new()
    }

    /// The aggregate id in the body, where a field is marked with `#[command(id)]` (R3).
    fn aggregate_id(&self) -> Option<String> {
        None
    }
}

/// One fault of a command's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct BindingError {
    /// The path of the field: `items[2].price`.
    pub name: String,
    /// What is wrong with it.
    pub msg: String,
}

impl BindingError {
    /// A fault of a field.
    pub fn new(name: impl Into<String>, msg: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            msg: msg.into(),
        }
    }
}

/// Runs a type's garde rules; what `#[command(validate)]` calls. The faults have the names of
/// the body, as serde writes them, not those of the Rust fields.
pub fn validate_with_garde<T>(value: &T) -> Vec<BindingError>
where
    T: garde::Validate + Serialize,
    T::Context: Default,
{
    let Err(report) = value.validate() else {
        return Vec::new();
    };
    // A value that can't be written keeps the Rust names.
    let body = serde_json::to_value(value).unwrap_or_default();
    report
        .iter()
        .map(|(path, error)| {
            BindingError::new(body_path(&path.to_string(), &body), error.message())
        })
        .collect()
}

/// A path of Rust fields, `items[2].product_id`, as the path in the body: `items[2].productId`.
fn body_path(path: &str, body: &Value) -> String {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let mut place = Some(body);
    let segments = path.split('.').map(|segment| {
        let (field, indices) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
        let object = place.and_then(Value::as_object);
        let found = object.and_then(|fields| {
            fields
                .get_key_value(field)
                .or_else(|| fields.iter().find(|(name, _)| plain(name) == plain(field)))
        });
        place = found.and_then(|(_, value)| at_indices(value, indices));
        format!("{}{indices}", found.map_or(field, |(name, _)| name))
    });
    segments.collect::<Vec<_>>().join(".")
}

/// The value at `[2][0]` of a value.
fn at_indices<'a>(value: &'a Value, indices: &str) -> Option<&'a Value> {
    indices
        .split_terminator(']')
        .try_fold(value, |value, index| {
            value.get(index.strip_prefix('[')?.parse::<usize>().ok()?)
        })
}

/// Whether the aggregate has to exist (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreationRule {
    /// It must not exist.
    Creates,
    /// It must exist.
    Updates,
    /// Either.
    Upserts,
}

/// Whether deciding does I/O (R43).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purity {
    /// It may: a duplicate must never be decided again.
    Impure,
    /// It does not: the look-up of the request id may wait until the append.
    Pure,
}

/// Decides from the caller and the identity whether a command may be sent.
pub type PolicyFn = fn(&Principal, &Identity) -> bool;

/// Who may send a command or read a type (R4).
#[derive(Clone, Copy)]
pub enum AccessRule {
    /// What the access mode says: anyone in `open`, authenticated in `jwt`.
    Default,
    /// Anyone.
    Public,
    /// Anyone known.
    Authenticated,
    /// A principal with one of these roles.
    Roles(&'static [&'static str]),
    /// The principal that is the aggregate's owner.
    Owner,
    /// Whoever the function lets.
    Policy(PolicyFn),
}

impl fmt::Debug for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Public => f.write_str("public"),
            Self::Authenticated => f.write_str("authenticated"),
            Self::Roles(roles) => write!(f, "roles({})", roles.join(", ")),
            Self::Owner => f.write_str("owner"),
            Self::Policy(_) => f.write_str("policy"),
        }
    }
}

/// The verb of a command's route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

/// Where a command is found by clients that speak in resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The verb.
    pub method: Method,
    /// The last path segment; empty for the resource itself.
    pub action: &'static str,
}

/// Where a declared variable of a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableSource {
    /// A segment of the path, named in the action as `{name}`.
    Path,
    /// A header.
    Header,
}

/// A field of a command that is filled from the path or a header before decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The field in the body.
    pub field: &'static str,
    /// The name of the path segment or header.
    pub name: &'static str,
    /// Where it comes from.
    pub source: VariableSource,
}

/// The declaration of a command type.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The name in the log and in routes, unique in its aggregate type.
    pub name: &'static str,
    /// Whether the aggregate has to exist.
    pub creation: CreationRule,
    /// Who may send it.
    pub access: AccessRule,
    /// Whether deciding does I/O.
    pub purity: Purity,
    /// Whether deciding blocks its thread, and so runs on the bounded pool (R30).
    pub blocking: bool,
    /// Whether it may be sent to a deleted aggregate (R11).
    pub recovers: bool,
    /// Whether fields that the type doesn't know are refused (R5).
    pub strict: bool,
    /// The marked field that holds the aggregate id, by its name in the body (R3).
    pub id_field: Option<&'static str>,
    /// Fields filled from path or header.
    pub variables: &'static [Variable],
    /// Its route.
    pub route: Route,
    /// What stands for a missing body, for types without fields.
    pub empty_body: Option<&'static str>,
    /// Whether it is one of the system's own, whose routes accept their declared verb alone.
    pub builtin: bool,
}

impl CommandSpec {
    /// A command that updates, may do I/O, and has the default access and route.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            creation: CreationRule::Updates,
            access: AccessRule::Default,
            purity: Purity::Impure,
            blocking: false,
            recovers: false,
            strict: true,
            id_field: None,
            variables: &[],
            route: Route {
                method: Method::Put,
                action: name,
            },
            empty_body: None,
            builtin: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn r5_the_path_of_a_fault_is_that_of_the_body() {
        let body = json!({
            "fromCart": true,
            "order-lines": [{"product_id": "a"}, {"PRODUCT_ID": "b", "notes": [["x"]]}],
        });
        for (path, expected) in [
            ("from_cart", "fromCart"),
            ("order_lines[0].product_id", "order-lines[0].product_id"),
            ("order_lines[1].product_id", "order-lines[1].PRODUCT_ID"),
            ("order_lines[1].notes[0][0]", "order-lines[1].notes[0][0]"),
            ("order_lines[7].product_id", "order-lines[7].product_id"),
            ("left_out.inner", "left_out.inner"),
            ("", ""),
        ] {
            assert_eq!(body_path(path, &body), expected);
        }
    }
}
