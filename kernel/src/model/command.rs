//! A command type and what it declares about itself.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// Runs a type's garde rules; what `#[command(validate)]` calls.
pub fn validate_with_garde<T>(value: &T) -> Vec<BindingError>
where
    T: garde::Validate,
    T::Context: Default,
{
    match value.validate() {
        Ok(()) => Vec::new(),
        Err(report) => report
            .iter()
            .map(|(path, error)| BindingError::new(path.to_string(), error.message()))
            .collect(),
    }
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
