//! An aggregate that does whatever goes wrong: it waits, blocks, panics, rejects, never ends,
//! sends to others, to itself and in circles, and holds states that can't be written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use wow_kernel::model::{Decide, DecideContext, Decision, Evolve, Rejection};
use wow_kernel::{Aggregate, Command, Event};

/// Holds command functions at gates that a test opens. A gate that nobody closed is open.
#[derive(Debug, Clone, Default)]
pub struct Gates {
    closed: Arc<Mutex<HashMap<String, Closed>>>,
    lenient: Arc<AtomicBool>,
    deciding: Arc<Mutex<HashSet<String>>>,
}

/// An aggregate is being decided on; never twice at once.
struct Deciding<'a>(&'a Gates, &'a str);

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.0.deciding.lock().remove(self.1);
    }
}

#[derive(Debug, Clone)]
struct Closed {
    waiting: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gates {
    /// Closes a gate.
    pub fn close(&self, name: &str) {
        let closed = Closed {
            waiting: watch::Sender::new(0),
            open: watch::Sender::new(false),
        };
        self.closed.lock().insert(name.to_owned(), closed);
    }

    /// Opens a gate for good.
    pub fn open(&self, name: &str) {
        self.closed.lock()[name].open.send_replace(true);
    }

    /// Waits until so many command functions have come to a gate.
    pub async fn reached(&self, name: &str, count: usize) {
        let mut waiting = self.closed.lock()[name].waiting.subscribe();
        waiting.wait_for(|waiting| *waiting >= count).await.unwrap();
    }

    /// How many command functions have come to a gate.
    pub fn came(&self, name: &str) -> usize {
        *self.closed.lock()[name].waiting.borrow()
    }

    /// From now on [`Reject`] is not refused any more.
    pub fn be_lenient(&self) {
        self.lenient.store(true, Ordering::SeqCst);
    }

    fn decide_alone<'a>(&'a self, id: &'a str) -> Result<Deciding<'a>, Rejection> {
        match self.deciding.lock().insert(id.to_owned()) {
            true => Ok(Deciding(self, id)),
            false => Err(Rejection::new(
                "nasty.two-lanes",
                "it is decided on twice at once",
            )),
        }
    }

    async fn pass(&self, name: &str) {
        let Some(gate) = self.closed.lock().get(name).cloned() else {
            return;
        };
        gate.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = gate.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
    }
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    tenant = "(0)",
    commands(
        Note, Hold, Tally, Explode, Relay, Never, Reject, Look, Block, Grow, Rig
    ),
    after(explode_in_hook)
)]
pub struct Nasty {
    #[aggregate(id)]
    pub id: String,
    pub notes: Vec<u64>,
    pub padding: String,
    rigged: Rigged,
}

/// What becomes of writing the state as JSON.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rigged {
    #[default]
    Fine,
    Panics,
    Fails,
}

impl Serialize for Rigged {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fine => serializer.serialize_str("fine"),
            Self::Panics => panic!("a state that panics when it is written"),
            Self::Fails => Err(serde::ser::Error::custom("a state that can't be written")),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub enum NastyEvent {
    Noted { n: u64 },
    Mined {},
    Grown { bytes: usize },
    Rigged { how: String },
}

impl Evolve for Nasty {
    type Event = NastyEvent;

    fn evolve(&mut self, event: &NastyEvent) {
        match event {
            NastyEvent::Noted { n } => {
                self.notes.push(*n);
                self.notes.truncate(NOTES_KEPT);
            }
            NastyEvent::Mined {} => panic!("evolve panics"),
            NastyEvent::Grown { bytes } => self.padding = "x".repeat(*bytes),
            NastyEvent::Rigged { how } => {
                self.rigged = match how.as_str() {
                    "panics" => Rigged::Panics,
                    "fails" => Rigged::Fails,
                    _ => Rigged::Fine,
                }
            }
        }
    }
}

fn explode_in_hook(
    _state: &Nasty,
    events: &[NastyEvent],
    _context: &DecideContext,
) -> Result<Vec<NastyEvent>, Rejection> {
    match events {
        [NastyEvent::Noted { n: HOOK_PANICS }] => panic!("a hook panics"),
        _ => Ok(Vec::new()),
    }
}

/// How many notes the state keeps: the log has them all.
const NOTES_KEPT: usize = 64;

/// The number at which the hook panics.
pub const HOOK_PANICS: u64 = u64::MAX;

/// The number that [`Reject`] notes once it is not refused any more.
pub const LENIENT: u64 = u64::MAX - 1;

/// The number at which the transformer panics.
pub const TRANSFORMER_PANICS: u64 = u64::MAX - 2;

type Decided = Result<Decision<NastyEvent>, Rejection>;

/// Notes a number.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Note {
    pub n: u64,
}

impl Decide<Note> for Nasty {
    async fn decide(&self, command: &Note, _context: &DecideContext) -> Decided {
        Ok(Decision::event(NastyEvent::Noted { n: command.n }))
    }
}

/// Notes a number once a gate is open.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub struct Hold {
    pub gate: String,
    pub n: u64,
}

impl Decide<Hold> for Nasty {
    async fn decide(&self, command: &Hold, context: &DecideContext) -> Decided {
        context.service::<Gates>()?.pass(&command.gate).await;
        Ok(Decision::event(NastyEvent::Noted { n: command.n })
            .with_result("notes", self.notes.len()))
    }
}

/// Notes a number after a pause, in which nobody else may decide on the same aggregate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Tally {
    pub n: u64,
}

impl Decide<Tally> for Nasty {
    async fn decide(&self, command: &Tally, context: &DecideContext) -> Decided {
        let gates = context.service::<Gates>()?;
        let _alone = gates.decide_alone(context.aggregate_id().as_str())?;
        tokio::task::yield_now().await;
        Ok(Decision::event(NastyEvent::Noted { n: command.n }))
    }
}

/// Panics: at once, after a wait, or when the event is applied.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub struct Explode {
    pub how: String,
}

impl Decide<Explode> for Nasty {
    async fn decide(&self, command: &Explode, _context: &DecideContext) -> Decided {
        match command.how.as_str() {
            "evolve" => Ok(Decision::event(NastyEvent::Mined {})),
            "hook" => Ok(Decision::event(NastyEvent::Noted { n: HOOK_PANICS })),
            "later" => {
                tokio::task::yield_now().await;
                panic!("decide panics after a wait")
            }
            _ => panic!("decide panics"),
        }
    }
}

/// Sends itself along a path of aggregates, then notes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub struct Relay {
    pub path: Vec<String>,
    pub gate: String,
}

impl Decide<Relay> for Nasty {
    async fn decide(&self, command: &Relay, context: &DecideContext) -> Decided {
        context.service::<Gates>()?.pass(&command.gate).await;
        let noted = Decision::event(NastyEvent::Noted { n: 0 });
        let Some((next, path)) = command.path.split_first() else {
            return Ok(noted);
        };
        let relay = Relay {
            path: path.to_vec(),
            gate: String::new(),
        };
        match context.send(next, relay).await {
            Ok(_) => Ok(noted),
            Err(error) => Err(Rejection::new(error.code(), error.to_string())),
        }
    }
}

/// Never decides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub struct Never {
    pub gate: String,
}

impl Decide<Never> for Nasty {
    async fn decide(&self, command: &Never, context: &DecideContext) -> Decided {
        context.service::<Gates>()?.pass(&command.gate).await;
        std::future::pending().await
    }
}

/// Is refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub struct Reject {
    pub code: String,
}

impl Decide<Reject> for Nasty {
    async fn decide(&self, command: &Reject, context: &DecideContext) -> Decided {
        if context.service::<Gates>()?.lenient.load(Ordering::SeqCst) {
            return Ok(Decision::event(NastyEvent::Noted { n: LENIENT }));
        }
        Err(Rejection::new(command.code.clone(), "no"))
    }
}

/// Decides nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Look {}

impl Decide<Look> for Nasty {
    async fn decide(&self, _command: &Look, _context: &DecideContext) -> Decided {
        Ok(Decision::none().with_result("notes", self.notes.len()))
    }
}

/// Blocks its thread until a gate is open.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, blocking)]
pub struct Block {
    pub gate: String,
}

impl Decide<Block> for Nasty {
    async fn decide(&self, command: &Block, context: &DecideContext) -> Decided {
        let gates = context.service::<Gates>()?.clone();
        let gate = command.gate.clone();
        let (opened, wait) = std::sync::mpsc::channel();
        tokio::spawn(async move {
            gates.pass(&gate).await;
            let _ = opened.send(());
        });
        // As a client library without futures does: nothing else runs on this thread meanwhile.
        let _ = wait.recv();
        Ok(Decision::event(NastyEvent::Noted { n: 1 }))
    }
}

/// Makes the state so large.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Grow {
    pub bytes: usize,
}

impl Decide<Grow> for Nasty {
    async fn decide(&self, command: &Grow, _context: &DecideContext) -> Decided {
        Ok(Decision::event(NastyEvent::Grown {
            bytes: command.bytes,
        }))
    }
}

/// Says what becomes of writing the state: `panics`, `fails` or `fine`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Rig {
    pub how: String,
}

impl Decide<Rig> for Nasty {
    async fn decide(&self, command: &Rig, _context: &DecideContext) -> Decided {
        Ok(Decision::event(NastyEvent::Rigged {
            how: command.how.clone(),
        }))
    }
}

/// An aggregate whose first state can't be made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(tenant = "(0)", commands(Bear))]
pub struct Stillborn {}

impl Default for Stillborn {
    fn default() -> Self {
        panic!("an initial state panics")
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub enum StillbornEvent {
    Born {},
}

impl Evolve for Stillborn {
    type Event = StillbornEvent;

    fn evolve(&mut self, _event: &StillbornEvent) {}
}

/// Asks for a first state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Bear {}

impl Decide<Bear> for Stillborn {
    async fn decide(
        &self,
        _command: &Bear,
        _context: &DecideContext,
    ) -> Result<Decision<StillbornEvent>, Rejection> {
        Ok(Decision::event(StillbornEvent::Born {}))
    }
}
