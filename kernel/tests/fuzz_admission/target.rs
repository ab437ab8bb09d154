//! What must hold of admission's decoding whatever bytes come in: it answers, it never panics,
//! and what it lets through is what was sent. The fuzz target and the test that stands for it in
//! CI both run [`check`].

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wow_kernel::access::AccessMode;
use wow_kernel::admission::{Admission, AdmissionLimits};
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::id::NodeName;
use wow_kernel::memory::{ManualClock, MemoryStore, SeededRandom};
use wow_kernel::model::{
    Aggregate, AggregateSpec, Command, CommandSet, CommandSpec, CreationRule, Decide,
    DecideContext, Decision, Event, EventSpec, Evolve, Rejection, Variable, VariableSource,
};
use wow_kernel::ports::Authorizer;
use wow_kernel::registry::RegistryBuilder;
use wow_kernel::submission::{Submission, VariableValue};

const BODY_BYTES_MAX: usize = 4096;

/// Admits what an input spells: a byte that picks the command, one that says how many bytes the
/// path variable takes, that variable, and the body.
pub(crate) fn check(input: &[u8]) {
    let [picked, variable_len, rest @ ..] = input else {
        return;
    };
    let (variable, body) = rest.split_at(rest.len().min(usize::from(*variable_len)));
    let command = ["keep", "count", "fill"][usize::from(*picked) % 3];
    let mut submission = Submission::json("carton", command, body.to_vec());
    submission.variables.push(VariableValue {
        source: VariableSource::Path,
        name: "label".to_owned(),
        value: String::from_utf8_lossy(variable).into_owned(),
    });
    let label = submission.variables[0].value.clone();
    match admission().admit(submission).now_or_never() {
        None => panic!("nothing here waits"),
        Some(Ok(built)) => check_admitted(&built, body, &label),
        Some(Err(CommandError::Panicked | CommandError::Internal)) => panic!("a fault of ours"),
        Some(Err(refusal)) => check_refused(&refusal, body),
    }
}

/// What was let through is JSON without doubled keys, and its values are those that were sent.
fn check_admitted(built: &BuiltCommand, body: &[u8], label: &str) {
    let text = std::str::from_utf8(body)
        .expect("only UTF-8 gets through")
        .trim_ascii();
    if let Err(error) = serde_json::from_str::<NoDoubledKeys>(text) {
        // Raw values may hold numbers that no machine number does, and empty bodies are filled.
        let is_known = text.is_empty() || error.to_string().starts_with("number out of range");
        assert!(is_known, "only JSON of single keys gets through: {error}");
    }
    if let Some(keep) = built.payload.downcast_ref::<Keep>() {
        assert!(text.contains(keep.value.get()), "a value was rewritten");
    }
    if let Some(count) = built.payload.downcast_ref::<Count>() {
        let sent: serde_json::Value = serde_json::from_str(text).expect("it was read before");
        assert_eq!(
            (sent["whole"].as_i64(), sent["natural"].as_u64()),
            (Some(count.whole), Some(count.natural))
        );
    }
    if let Some(fill) = built.payload.downcast_ref::<Fill>() {
        assert_eq!(fill.label, label);
        assert_eq!(built.identity.key.id.as_str(), label);
    }
}

/// A refusal says where and why, at a bounded length.
fn check_refused(refusal: &CommandError, body: &[u8]) {
    assert!(
        refusal.to_string().chars().count() < 2000,
        "a refusal repeats the body"
    );
    match refusal {
        CommandError::BodyInvalid { path, reason } => {
            assert!(!path.is_empty() && !reason.is_empty());
        }
        CommandError::BodyTooLarge { limit } => assert!(body.len() > *limit),
        CommandError::IdentityInvalid { .. } | CommandError::IdentityConflict { .. } => {}
        other => panic!("nothing else can be wrong with a body: {other}"),
    }
}

fn admission() -> Admission {
    let clock = Arc::new(ManualClock::new());
    let registry = RegistryBuilder::new("fuzz").register::<Carton>().build();
    Admission {
        registry: Arc::new(registry.expect("one small type fits together")),
        mode: AccessMode::Open,
        authorizer: Arc::new(DeclaredRules),
        requests: Arc::new(MemoryStore::new(clock.clone())),
        random: Arc::new(SeededRandom::new(1, clock.clone())),
        clock,
        node: NodeName::trusted("fuzz"),
        limits: AdmissionLimits {
            body_bytes_max: BODY_BYTES_MAX,
            wait_timeout_max: Duration::from_secs(300),
        },
    }
}

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

/// An aggregate that takes each command and does nothing.
#[derive(Default, Clone, Serialize, Deserialize, JsonSchema)]
struct Carton {}

/// Keeps a value as it was sent.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Keep {
    #[schemars(with = "serde_json::Value")]
    value: Box<RawValue>,
}

/// Reads numbers at the bounds of 64 bits.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Count {
    whole: i64,
    natural: u64,
}

/// Is filled from the path, the id among it, and has fields of many kinds.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Fill {
    label: String,
    #[serde(default)]
    nested: Vec<Option<Nested>>,
    #[serde(default)]
    ratio: f64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Nested {
    Plain,
    Pair(u8, char),
    Fields { text: String, flag: bool },
}

fn upserts(name: &'static str) -> CommandSpec {
    CommandSpec {
        creation: CreationRule::Upserts,
        ..CommandSpec::new(name)
    }
}

impl Command for Keep {
    fn spec() -> CommandSpec {
        upserts("keep")
    }
}

impl Command for Count {
    fn spec() -> CommandSpec {
        upserts("count")
    }
}

impl Command for Fill {
    fn spec() -> CommandSpec {
        const LABEL: Variable = Variable {
            field: "label",
            name: "label",
            source: VariableSource::Path,
        };
        CommandSpec {
            id_field: Some("label"),
            variables: &[LABEL],
            ..upserts("fill")
        }
    }

    fn aggregate_id(&self) -> Option<String> {
        Some(self.label.clone())
    }
}

#[derive(Clone)]
enum Nothing {}

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
        Err(Error::custom("there are no events"))
    }
}

impl Evolve for Carton {
    type Event = Nothing;

    fn evolve(&mut self, event: &Nothing) {
        match *event {}
    }
}

impl<C: Command> Decide<C> for Carton {
    async fn decide(
        &self,
        _command: &C,
        _context: &DecideContext,
    ) -> Result<Decision<Nothing>, Rejection> {
        Ok(Decision::none())
    }
}

impl Aggregate for Carton {
    fn spec() -> AggregateSpec {
        AggregateSpec::new("carton")
    }

    fn commands(set: &mut CommandSet<Self>) {
        set.add::<Keep>();
        set.add::<Count>();
        set.add::<Fill>();
    }
}

/// A second opinion on doubled keys, by another way than admission's own.
struct NoDoubledKeys;

impl<'de> Deserialize<'de> for NoDoubledKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NoDoubledKeys)
    }
}

impl<'de> Visitor<'de> for NoDoubledKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without doubled keys")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<NoDoubledKeys>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(Error::custom("a doubled key"));
            }
            entries.next_value::<NoDoubledKeys>()?;
        }
        Ok(self)
    }
}
