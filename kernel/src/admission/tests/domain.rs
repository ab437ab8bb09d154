//! Aggregate types that differ in their identity rules, and commands that differ in theirs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::model::{
    AccessRule, Aggregate, AggregateSpec, BindingError, Command, CommandSet, CommandSpec,
    CreationRule, Decide, DecideContext, Decision, Event, EventSpec, Evolve, OwnerPolicy,
    Rejection, Variable, VariableSource,
};

#[derive(Clone)]
pub(super) enum Nothing {}

impl Event for Nothing {
    fn specs() -> &'static [EventSpec] {
        &[]
    }

    fn index(&self) -> usize {
        match *self {}
    }

    fn encode(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match *self {}
    }

    fn decode(_index: usize, _body: &RawValue) -> Result<Self, serde_json::Error> {
        Err(serde::de::Error::custom("there are no events"))
    }
}

/// Declares aggregate types that differ in their identity rules alone.
macro_rules! aggregates {
    ($($name:ident: $spec:expr;)*) => {$(
        #[derive(Default, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name {}

        impl Evolve for $name {
            type Event = Nothing;

            fn evolve(&mut self, event: &Nothing) {
                match *event {}
            }
        }

        impl<C: Command> Decide<C> for $name {
            async fn decide(
                &self,
                _command: &C,
                _context: &DecideContext,
            ) -> Result<Decision<Nothing>, Rejection> {
                Ok(Decision::none())
            }
        }

        impl Aggregate for $name {
            fn spec() -> AggregateSpec {
                $spec
            }

            fn commands(set: &mut CommandSet<Self>) {
                set.add::<Open>();
                set.add::<Change>();
                set.add::<Put>();
                set.add::<Keep>();
                set.add::<Fill>();
                set.add::<Ping>();
                set.add::<Seal>();
                set.add::<Ship>();
                set.add::<Look>();
                set.add::<Inspect>();
                set.add::<Explode>();
            }
        }
    )*};
}

aggregates! {
    Ownerless: AggregateSpec::new("ownerless");
    Owned: AggregateSpec { owner: OwnerPolicy::Always, ..AggregateSpec::new("owned") };
    Personal: AggregateSpec { owner: OwnerPolicy::AggregateId, ..AggregateSpec::new("personal") };
    Fixed: AggregateSpec { static_tenant: Some("(0)"), ..AggregateSpec::new("fixed") };
}

/// Creates; its id may be named by the caller, and it has rules of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Open {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) amount: i64,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) items: Option<Vec<Item>>,
}

impl Command for Open {
    fn spec() -> CommandSpec {
        let spec = CommandSpec::new("open");
        CommandSpec {
            creation: CreationRule::Creates,
            id_field: Some("id"),
            ..spec
        }
    }

    fn validate(&self) -> Vec<BindingError> {
        let mut errors = Vec::new();
        if self.amount < 0 {
            errors.push(BindingError::new("amount", "must not be negative"));
        }
        if self.name == "nobody" {
            errors.push(BindingError::new("name", "must be somebody"));
        }
        errors
    }

    fn aggregate_id(&self) -> Option<String> {
        self.id.clone()
    }
}

/// Updates; a UUID of the body names the aggregate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Change {
    #[schemars(with = "String")]
    pub(super) id: Uuid,
}

impl Command for Change {
    fn spec() -> CommandSpec {
        CommandSpec {
            id_field: Some("id"),
            ..CommandSpec::new("change")
        }
    }

    fn aggregate_id(&self) -> Option<String> {
        Some(self.id.to_string())
    }
}

/// Upserts and keeps what it is given, whatever it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Put {
    #[schemars(with = "serde_json::Value")]
    pub(super) value: Box<RawValue>,
}

impl Command for Put {
    fn spec() -> CommandSpec {
        CommandSpec {
            creation: CreationRule::Upserts,
            ..CommandSpec::new("put")
        }
    }
}

/// Upserts, and passes over what it doesn't know.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Keep {
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Item {
    pub(super) price: u64,
}

impl Command for Keep {
    fn spec() -> CommandSpec {
        CommandSpec {
            creation: CreationRule::Upserts,
            strict: false,
            ..CommandSpec::new("keep")
        }
    }
}

/// Updates; filled from path and headers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Fill {
    pub(super) id: String,
    pub(super) text: String,
    #[serde(default)]
    pub(super) count: Option<u64>,
    #[serde(default)]
    pub(super) more: i64,
}

const fn variable(field: &'static str, name: &'static str, source: VariableSource) -> Variable {
    Variable {
        field,
        name,
        source,
    }
}

impl Command for Fill {
    fn spec() -> CommandSpec {
        CommandSpec {
            id_field: Some("id"),
            variables: const {
                &[
                    variable("id", "fill_id", VariableSource::Path),
                    variable("text", "Fill-Text", VariableSource::Header),
                    variable("count", "count", VariableSource::Path),
                ]
            },
            ..CommandSpec::new("fill")
        }
    }

    fn aggregate_id(&self) -> Option<String> {
        Some(self.id.clone())
    }
}

/// Declares commands without fields that differ in what they declare alone.
macro_rules! commands {
    ($($name:ident: $spec:expr;)*) => {$(
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name {}

        impl Command for $name {
            fn spec() -> CommandSpec {
                CommandSpec { empty_body: Some("{}"), ..$spec }
            }

            fn validate(&self) -> Vec<BindingError> {
                assert_ne!(stringify!($name), "Explode", "as this command does");
                Vec::new()
            }
        }
    )*};
}

commands! {
    Ping: CommandSpec { creation: CreationRule::Upserts, ..CommandSpec::new("ping") };
    Seal: CommandSpec { access: AccessRule::Owner, ..CommandSpec::new("seal") };
    Ship: CommandSpec { access: AccessRule::Roles(&["shipper"]), ..CommandSpec::new("ship") };
    Look: CommandSpec { access: AccessRule::Public, ..CommandSpec::new("look") };
    Inspect: CommandSpec {
        access: AccessRule::Policy(|_, identity| identity.key.id.as_str() == "open-door"),
        ..CommandSpec::new("inspect")
    };
    Explode: CommandSpec::new("explode");
}
