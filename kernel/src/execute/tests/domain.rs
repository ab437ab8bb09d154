//! A nasty aggregate: its commands do whatever the test says, and two hooks have their own ideas.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::memory::ManualClock;
use crate::model::{Decide, DecideContext, Decision, Evolve, Rejection};
use crate::ports::Clock;
use crate::{Aggregate, Command, Event};

/// What a command does when it is decided.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) enum How {
    /// Adds, and tells the new total in its result.
    Add(i64),
    /// Takes what is there, and rejects what isn't.
    Take(i64),
    /// Notes a text, which the hooks read.
    Note(String),
    Reject,
    Nothing,
    Panic,
    Never,
    /// Adds one after so many milliseconds.
    Wait(u64),
    /// Never ends, and panics when it is given up.
    Clutch,
    /// Holds its thread for so many milliseconds, and adds one.
    Stall(u64),
    /// Sends a command to another jar, and rejects with what becomes of it.
    Send(String),
    /// An event with a body of so many bytes.
    Large(usize),
    /// An event that JSON can't hold.
    Unwritable,
    /// An event with a number that is none.
    NotANumber,
    /// A result with one, and no event.
    NotAResult,
    /// An event whose evolution panics.
    Poison,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(super) enum JarEvent {
    Opened {
        name: String,
    },
    #[event(revision = 2, upcast = lift)]
    Added {
        amount: i64,
    },
    Noted {
        text: String,
    },
    Mapped(BTreeMap<Vec<u8>, u8>),
    Weighed {
        grams: Option<f64>,
    },
    Poisoned,
}

/// The first revision called the amount a sum.
fn lift(_revision: u32, body: Value) -> Result<Value, String> {
    let sum = body.get("sum").ok_or("there is no sum")?;
    Ok(json!({ "amount": sum }))
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    revision = 3,
    commands(Open, Act, ActPurely, ActApart, Put, Revive),
    after(listen, count)
)]
pub(super) struct Jar {
    pub(super) name: String,
    pub(super) total: i64,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates)]
pub(super) struct Open {
    pub(super) name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
pub(super) struct Act {
    pub(super) how: How,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure)]
pub(super) struct ActPurely {
    pub(super) how: How,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(blocking)]
pub(super) struct ActApart {
    pub(super) how: How,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, public)]
pub(super) struct Put {
    pub(super) amount: i64,
}

/// May be sent to a deleted jar, and brings nothing back by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(recovers)]
pub(super) struct Revive {
    pub(super) amount: i64,
}

/// How often anything was decided, of which kind.
#[derive(Debug, Default)]
pub(super) struct Effects {
    decided: AtomicUsize,
}

impl Effects {
    pub(super) fn decided(&self) -> usize {
        self.decided.load(Ordering::Relaxed)
    }
}

impl Evolve for Jar {
    type Event = JarEvent;

    fn evolve(&mut self, event: &JarEvent) {
        match event {
            JarEvent::Opened { name } => self.name.clone_from(name),
            JarEvent::Added { amount } => self.total += amount,
            JarEvent::Noted { text } => self.notes.push(text.clone()),
            JarEvent::Mapped(_) | JarEvent::Weighed { .. } => {}
            JarEvent::Poisoned => panic!("this event was never meant to be"),
        }
    }
}

/// Adds to a note that asks for more, and rejects one that asks for it.
fn listen(_jar: &Jar, events: &[JarEvent], _: &DecideContext) -> Result<Vec<JarEvent>, Rejection> {
    let asks = |wish: &str| {
        let asked = |event: &JarEvent| matches!(event, JarEvent::Noted { text } if text == wish);
        events.iter().any(asked)
    };
    if asks("refuse me") {
        return Err(Rejection::new("jar.hook", "as it was asked"));
    }
    Ok(match asks("more") {
        true => vec![JarEvent::Added { amount: 100 }],
        false => Vec::new(),
    })
}

/// Counts what the command and the hook before it made of a note that asks for more.
fn count(jar: &Jar, events: &[JarEvent], _: &DecideContext) -> Result<Vec<JarEvent>, Rejection> {
    Ok(match events {
        [JarEvent::Noted { .. }, _, ..] => vec![JarEvent::Noted {
            text: format!("{} so far, {} before", events.len(), jar.notes.len()),
        }],
        _ => Vec::new(),
    })
}

/// Panics when it is dropped.
struct Clutched;

impl Drop for Clutched {
    fn drop(&mut self) {
        panic!("it won't be given up");
    }
}

fn added(jar: &Jar, amount: i64) -> Decision<JarEvent> {
    Decision::event(JarEvent::Added { amount }).with_result("total", jar.total + amount)
}

async fn act(
    jar: &Jar,
    how: &How,
    context: &DecideContext,
) -> Result<Decision<JarEvent>, Rejection> {
    let effects = context.service::<std::sync::Arc<Effects>>()?;
    effects.decided.fetch_add(1, Ordering::Relaxed);
    Ok(match how {
        How::Add(amount) => added(jar, *amount),
        How::Take(amount) if *amount > jar.total => {
            return Err(Rejection::new("jar.empty", "there is less in it"));
        }
        How::Take(amount) => added(jar, -amount),
        How::Note(text) => Decision::event(JarEvent::Noted { text: text.clone() }),
        How::Reject => return Err(Rejection::new("jar.no", "as it was asked")),
        How::Nothing => Decision::none().with_result("total", jar.total),
        How::Panic => panic!("as it was asked"),
        How::Never => std::future::pending().await,
        How::Wait(millis) => {
            let clock = context.service::<ManualClock>()?;
            clock.sleep(Duration::from_millis(*millis)).await;
            added(jar, 1)
        }
        How::Stall(millis) => {
            let clock = context.service::<ManualClock>()?;
            clock.advance(Duration::from_millis(*millis));
            added(jar, 1)
        }
        How::Clutch => {
            let _clutched = Clutched;
            std::future::pending().await
        }
        How::Send(to) => match context.send(to, Put { amount: 1 }).await {
            Ok(_) => Decision::none(),
            Err(error) => return Err(Rejection::new("jar.unsent", error.to_string())),
        },
        How::Large(bytes) => Decision::event(JarEvent::Noted {
            text: "x".repeat(*bytes),
        }),
        How::Unwritable => Decision::event(JarEvent::Mapped([(vec![1], 1)].into())),
        How::NotANumber => Decision::event(JarEvent::Weighed {
            grams: Some(f64::NAN),
        }),
        How::NotAResult => Decision::none().with_result("mean", f64::INFINITY),
        How::Poison => Decision::event(JarEvent::Poisoned),
    })
}

impl Decide<Open> for Jar {
    async fn decide(
        &self,
        command: &Open,
        context: &DecideContext,
    ) -> Result<Decision<JarEvent>, Rejection> {
        let effects = context.service::<std::sync::Arc<Effects>>()?;
        effects.decided.fetch_add(1, Ordering::Relaxed);
        let name = command.name.clone();
        Ok(Decision::event(JarEvent::Opened { name }))
    }
}

/// Commands that hold what to do.
macro_rules! acts {
    ($($command:ident),*) => {$(
        impl Decide<$command> for Jar {
            async fn decide(
                &self,
                command: &$command,
                context: &DecideContext,
            ) -> Result<Decision<JarEvent>, Rejection> {
                act(self, &command.how, context).await
            }
        }
    )*};
}

acts!(Act, ActPurely, ActApart);

/// Commands that hold what to add.
macro_rules! adds {
    ($($command:ident),*) => {$(
        impl Decide<$command> for Jar {
            async fn decide(
                &self,
                command: &$command,
                context: &DecideContext,
            ) -> Result<Decision<JarEvent>, Rejection> {
                act(self, &How::Add(command.amount), context).await
            }
        }
    )*};
}

adds!(Put, Revive);

/// A type with owners.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(owner = "always", commands(Store, Lock))]
pub(super) struct Safe {
    held: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, public)]
pub(super) struct Store {
    pub(super) amount: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates, public)]
pub(super) struct Lock {}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(super) enum SafeEvent {
    Stored { amount: i64 },
}

impl Evolve for Safe {
    type Event = SafeEvent;

    fn evolve(&mut self, SafeEvent::Stored { amount }: &SafeEvent) {
        self.held += amount;
    }
}

impl Decide<Store> for Safe {
    async fn decide(
        &self,
        command: &Store,
        _context: &DecideContext,
    ) -> Result<Decision<SafeEvent>, Rejection> {
        let amount = command.amount;
        Ok(Decision::event(SafeEvent::Stored { amount }))
    }
}

impl Decide<Lock> for Safe {
    async fn decide(
        &self,
        _command: &Lock,
        _context: &DecideContext,
    ) -> Result<Decision<SafeEvent>, Rejection> {
        Ok(Decision::event(SafeEvent::Stored { amount: 0 }))
    }
}

/// A type whose initial state can't be made, and whose stored states can't be read.
#[derive(Debug, Clone, Serialize, JsonSchema, Aggregate)]
#[aggregate(commands(Chant))]
pub(super) struct Cursed {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
pub(super) struct Chant {}

impl Default for Cursed {
    fn default() -> Self {
        panic!("it is cursed");
    }
}

impl<'de> Deserialize<'de> for Cursed {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it is cursed");
    }
}

impl Evolve for Cursed {
    type Event = SafeEvent;

    fn evolve(&mut self, _event: &SafeEvent) {}
}

impl Decide<Chant> for Cursed {
    async fn decide(
        &self,
        _command: &Chant,
        _context: &DecideContext,
    ) -> Result<Decision<SafeEvent>, Rejection> {
        Ok(Decision::none())
    }
}
