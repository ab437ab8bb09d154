//! What the tests of this module stand on: a registry with every kind of type, a gateway that
//! records what it is given and answers what it is told, and an app over both.

use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::Service;
use actix_web::test::{TestRequest, init_service};
use actix_web::web::{self, Data};
use async_trait::async_trait;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use wow_kernel::access::Principal;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::{
    AggregateId, AggregateType, CommandId, OwnerId, RequestId, SpaceId, TenantId, Version,
};
use wow_kernel::model::{
    Aggregate, AggregateSpec, Command, CommandSet, CommandSpec, CreationRule, Decide,
    DecideContext, Decision, Event, EventSpec, Evolve, Method, OwnerPolicy, Rejection, Route,
    Variable, VariableSource,
};
use wow_kernel::registry::{Registry, RegistryBuilder};
use wow_kernel::result::CommandResult;
use wow_kernel::submission::Submission;
use wow_kernel::wait::{FunctionInfo, FunctionKind, Stage};

use super::edge::{Edge, serve};
use super::gateway::{Authenticator, Gateway, ReadRequest, StateAt, TracedCommit};
use super::settings::HttpSettings;

/// The one event of all types here.
#[derive(Debug, Clone)]
pub(super) struct Noted;

impl Event for Noted {
    fn specs() -> &'static [EventSpec] {
        &[EventSpec {
            name: "noted",
            aliases: &["noticed"],
            revision: 2,
            upcast: None,
        }]
    }

    fn index(&self) -> usize {
        0
    }

    fn encode(&self) -> Result<Box<RawValue>, serde_json::Error> {
        RawValue::from_string("{}".to_owned())
    }

    fn decode(_index: usize, _body: &RawValue) -> Result<Self, serde_json::Error> {
        Ok(Self)
    }
}

macro_rules! aggregate {
    ($name:ident, $spec:expr, [$($command:ident),*]) => {
        #[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name { balance: i64 }

        impl Evolve for $name {
            type Event = Noted;
            fn evolve(&mut self, _event: &Noted) {}
        }

        impl Aggregate for $name {
            fn spec() -> AggregateSpec { $spec }
            fn commands(_set: &mut CommandSet<Self>) { $(_set.add::<$command>();)* }
        }

        $(impl Decide<$command> for $name {
            async fn decide(
                &self,
                _command: &$command,
                _context: &DecideContext,
            ) -> Result<Decision<Noted>, Rejection> {
                Ok(Decision::event(Noted))
            }
        })*
    };
}

macro_rules! command {
    ($name:ident { $($field:ident: $type:ty),* }, $spec:expr) => {
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name { $($field: $type),* }

        impl Command for $name {
            fn spec() -> CommandSpec { $spec }
        }
    };
}
pub(super) use {aggregate, command};

pub(super) fn spec(name: &'static str, method: Method, action: &'static str) -> CommandSpec {
    CommandSpec {
        route: Route { method, action },
        ..CommandSpec::new(name)
    }
}

command!(
    CreateAccount {
        name: String,
        balance: i64
    },
    CommandSpec {
        creation: CreationRule::Creates,
        ..spec("create_account", Method::Post, "create_account")
    }
);
command!(
    Prepare {
        to: String,
        amount: i64
    },
    spec("prepare", Method::Post, "prepare")
);
command!(Entry { amount: i64 }, spec("entry", Method::Put, "entry"));
aggregate!(
    Account,
    AggregateSpec {
        static_tenant: Some("(0)"),
        ..AggregateSpec::new("account")
    },
    [CreateAccount, Prepare, Entry]
);

command!(
    AddCartItem { quantity: u32 },
    CommandSpec {
        creation: CreationRule::Upserts,
        ..spec("add_cart_item", Method::Post, "add_cart_item")
    }
);
command!(
    ViewCart {},
    CommandSpec {
        creation: CreationRule::Upserts,
        empty_body: Some("{}"),
        ..spec("view_cart", Method::Put, "view_cart")
    }
);
aggregate!(
    Cart,
    AggregateSpec {
        static_tenant: Some("(0)"),
        owner: OwnerPolicy::AggregateId,
        ..AggregateSpec::new("cart")
    },
    [AddCartItem, ViewCart]
);

command!(
    CreateOrder { total: u64 },
    CommandSpec {
        creation: CreationRule::Creates,
        ..spec("create_order", Method::Post, "")
    }
);
command!(
    Pick {
        item: String,
        picker: String
    },
    CommandSpec {
        variables: &[
            Variable {
                field: "item",
                name: "itemId",
                source: VariableSource::Path
            },
            Variable {
                field: "picker",
                name: "X-Picker",
                source: VariableSource::Header
            },
        ],
        ..spec("pick", Method::Patch, "items/{itemId}")
    }
);
command!(
    Rename { order: String },
    CommandSpec {
        id_field: Some("order"),
        ..spec("rename", Method::Put, "rename")
    }
);
aggregate!(
    Order,
    AggregateSpec {
        resource: "sales-order",
        owner: OwnerPolicy::Always,
        ..AggregateSpec::new("order")
    },
    [CreateOrder, Pick, Rename]
);

command!(Bill { amount: i64 }, spec("bill", Method::Put, "bill"));
aggregate!(
    Invoice,
    AggregateSpec {
        context: Some("billing"),
        ..AggregateSpec::new("invoice")
    },
    [Bill]
);

/// A registry with every kind of type.
pub(super) fn registry() -> Arc<Registry> {
    let builder = RegistryBuilder::new("example");
    let builder = builder
        .register::<Account>()
        .register::<Cart>()
        .register::<Order>();
    Arc::new(
        builder
            .register::<Invoice>()
            .build()
            .expect("the types fit together"),
    )
}

/// What the gateway was asked to read.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    State(ReadRequest, StateAt),
    Snapshot(ReadRequest),
    Commits(ReadRequest, Version, Version, usize),
    Tracing(ReadRequest, Version, Version, usize),
}

/// Records, and answers what it is told.
pub(super) struct Recorder {
    pub(super) submissions: Mutex<Vec<Submission>>,
    pub(super) asked: Mutex<Vec<Asked>>,
    pub(super) answer: Mutex<Result<CommandResult, CommandError>>,
    pub(super) state: Mutex<Result<String, CommandError>>,
    pub(super) snapshot: Mutex<Option<StoredSnapshot>>,
    pub(super) commits: Mutex<Vec<Commit>>,
    pub(super) signals: Mutex<Option<mpsc::Receiver<Result<CommandResult, CommandError>>>>,
    pub(super) accepting: Mutex<bool>,
    pub(super) ready: Mutex<bool>,
    /// A submission is answered once it has one of these.
    pub(super) permits: Semaphore,
    /// The submissions that wait for one.
    pub(super) waiting: watch::Sender<usize>,
}

impl Recorder {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            submissions: Mutex::default(),
            asked: Mutex::default(),
            answer: Mutex::new(Ok(result())),
            state: Mutex::new(Ok(r#"{"balance":18446744073709551615}"#.to_owned())),
            snapshot: Mutex::default(),
            commits: Mutex::default(),
            signals: Mutex::default(),
            accepting: Mutex::new(true),
            ready: Mutex::new(true),
            permits: Semaphore::new(1000),
            waiting: watch::Sender::new(0),
        })
    }

    /// Ends once this many submissions wait.
    pub(super) async fn until_waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|waiting| *waiting == count);
        timeout(Duration::from_secs(20), reached)
            .await
            .expect("the submissions come and go in time")
            .expect("the recorder lives");
    }

    /// The one submission that was made.
    pub(super) fn submission(&self) -> Submission {
        let submissions = self.submissions.lock();
        assert_eq!(submissions.len(), 1, "one submission is expected");
        submissions[0].clone()
    }
}

/// Counts itself out when its submission is answered, or dropped.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

#[async_trait]
impl Gateway for Recorder {
    async fn submit(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        self.submissions.lock().push(submission);
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _waiting = Waiting(&self.waiting);
        self.permits
            .acquire()
            .await
            .expect("the gate is never closed")
            .forget();
        self.answer.lock().clone()
    }

    fn stream(
        &self,
        submission: Submission,
    ) -> mpsc::Receiver<Result<CommandResult, CommandError>> {
        self.submissions.lock().push(submission);
        self.signals
            .lock()
            .take()
            .expect("the test gives the signals")
    }

    fn is_accepting(&self) -> bool {
        *self.accepting.lock()
    }

    fn is_ready(&self) -> bool {
        *self.ready.lock()
    }

    async fn state(&self, request: ReadRequest, at: StateAt) -> Result<String, CommandError> {
        self.asked.lock().push(Asked::State(request, at));
        self.state.lock().clone()
    }

    async fn snapshot(&self, request: ReadRequest) -> Result<StoredSnapshot, CommandError> {
        self.asked.lock().push(Asked::Snapshot(request));
        self.snapshot.lock().clone().ok_or(CommandError::NotFound)
    }

    async fn commits(
        &self,
        request: ReadRequest,
        head: Version,
        tail: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, CommandError> {
        self.asked
            .lock()
            .push(Asked::Commits(request, head, tail, limit));
        Ok(self.commits.lock().iter().take(limit).cloned().collect())
    }

    async fn tracing(
        &self,
        request: ReadRequest,
        head: Version,
        tail: Version,
        limit: usize,
    ) -> Result<Vec<TracedCommit>, CommandError> {
        self.asked
            .lock()
            .push(Asked::Tracing(request, head, tail, limit));
        let traced = |commit: &Commit| TracedCommit {
            commit: commit.clone(),
            state: r#"{"balance":9007199254740993}"#.to_owned(),
        };
        Ok(self.commits.lock().iter().map(traced).collect())
    }
}

/// Takes the token `good`, and nobody's word for anything else.
pub(super) struct OneToken;

#[async_trait]
impl Authenticator for OneToken {
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, CommandError> {
        match bearer {
            None => Ok(Principal::anonymous()),
            Some("good") => Ok(Principal {
                subject: Some(Arc::from("alice")),
                ..Principal::anonymous()
            }),
            Some(_) => Err(CommandError::Unauthenticated),
        }
    }
}

/// A result of a command that went well.
pub(super) fn result() -> CommandResult {
    let command_id = CommandId::parse("0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f").expect("an id");
    CommandResult {
        wait_command_id: command_id,
        stage: Stage::Snapshot,
        context: Arc::from("example"),
        aggregate_type: AggregateType::trusted("account"),
        tenant: TenantId::default_tenant(),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        aggregate_id: AggregateId::trusted("a-1"),
        aggregate_version: Some(3),
        request_id: RequestId::trusted("r-1"),
        command_id,
        function: FunctionInfo {
            kind: FunctionKind::StateEvent,
            context: "example".to_owned(),
            processor: "snapshot".to_owned(),
            name: "save".to_owned(),
        },
        result: None,
        duplicate: false,
        committed: true,
        error: None,
        signal_time: 1_700_000_000_000,
    }
}

/// Settings small enough to reach the bounds in a test.
pub(super) fn settings() -> HttpSettings {
    HttpSettings {
        body_bytes_max: 1000,
        uri_bytes_max: 500,
        header_bytes_max: 60_000,
        body_timeout: Duration::from_secs(5),
        read_commits_max: 3,
        workers: 1,
        ..HttpSettings::new(([127, 0, 0, 1], 0).into())
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: actix_web::http::header::HeaderMap,
    pub(super) body: String,
}

impl Answer {
    /// The body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    /// A header's text; empty where it isn't there.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("headers are ASCII"))
    }

    /// The error's code, which header and body must agree about.
    pub(super) fn code(&self) -> String {
        let code = self.header("wow-error-code").to_owned();
        if self.status >= 400 {
            assert_eq!(self.json()["errorCode"], code.as_str(), "{self:?}");
            assert_eq!(self.json()["succeeded"], false);
        }
        code
    }
}

/// Sends one request to a new app over the recorder.
pub(super) async fn send(recorder: &Arc<Recorder>, request: TestRequest) -> Answer {
    let edge = Edge::new(settings(), registry(), recorder.clone(), Arc::new(OneToken));
    let edge = Data::new(edge.expect("the routes fit together"));
    let app = init_service(App::new().app_data(edge).default_service(web::to(serve))).await;
    let response = app
        .call(request.to_request())
        .await
        .expect("every request is answered");
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = actix_web::body::to_bytes(response.into_body()).await;
    let body = body.map_err(|_| "body").expect("the body is whole");
    Answer {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).expect("bodies are UTF-8"),
    }
}
