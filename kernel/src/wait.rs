//! What a caller waits for: stages, plans and the signals that complete them (R60 to R62).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How far a command has come (R60). Ordered by when they are reached.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Stage {
    /// Admitted, and accepted by the router.
    Sent,
    /// Committed.
    Processed,
    /// A snapshot holds the commit: the caller can read its own write.
    #[default]
    Snapshot,
    /// A projection has handled the commit.
    Projected,
    /// An event processor has handled the commit.
    EventHandled,
    /// A saga has handled the commit: its commands have final outcomes.
    SagaHandled,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 6] = [
        Self::Sent,
        Self::Processed,
        Self::Snapshot,
        Self::Projected,
        Self::EventHandled,
        Self::SagaHandled,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "SENT",
            Self::Processed => "PROCESSED",
            Self::Snapshot => "SNAPSHOT",
            Self::Projected => "PROJECTED",
            Self::EventHandled => "EVENT_HANDLED",
            Self::SagaHandled => "SAGA_HANDLED",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stage that isn't one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no stage: use SENT, PROCESSED, SNAPSHOT, PROJECTED, EVENT_HANDLED or SAGA_HANDLED"
)]
pub struct UnknownStage(pub String);

impl FromStr for Stage {
    type Err = UnknownStage;

    fn from_str(text: &str) -> Result<Self, UnknownStage> {
        Self::ALL
            .into_iter()
            .find(|stage| stage.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownStage(text.to_owned()))
    }
}

/// Which subscription completes a stage after [`Stage::Snapshot`]; an empty part means any (R61).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFilter {
    /// The context of the subscription.
    pub context: Option<String>,
    /// The subscription's name.
    pub processor: Option<String>,
    /// The function within it.
    pub function: Option<String>,
}

impl StageFilter {
    /// Whether it names nothing.
    pub fn is_any(&self) -> bool {
        self.context.is_none() && self.processor.is_none() && self.function.is_none()
    }

    /// Whether a function is one of those that it names.
    pub fn matches(&self, function: &FunctionInfo) -> bool {
        let fits = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        fits(&self.context, &function.context)
            && fits(&self.processor, &function.processor)
            && fits(&self.function, &function.name)
    }
}

/// What a caller waits for, and how long (R60 to R63).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPlan {
    /// The stage that ends the wait.
    pub stage: Stage,
    /// Which subscription has to reach it.
    pub filter: StageFilter,
    /// The stage that the saga's own commands must reach too (R62).
    pub tail: Option<(Stage, StageFilter)>,
    /// How long the caller waits.
    pub timeout: Duration,
}

impl WaitPlan {
    /// Waits until the snapshot holds the commit, 30 s at most: the default.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// A plan for a stage with the default timeout.
    pub fn until(stage: Stage) -> Self {
        Self {
            stage,
            filter: StageFilter::default(),
            tail: None,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }
}

impl Default for WaitPlan {
    fn default() -> Self {
        Self::until(Stage::Snapshot)
    }
}

/// The kind of function that reached a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FunctionKind {
    /// A command function.
    Command,
    /// A function over states and their events: the snapshot.
    StateEvent,
    /// A function over events: projections, processors, sagas.
    Event,
}

/// Which function reached a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// Its kind.
    pub kind: FunctionKind,
    /// The context it runs in.
    pub context: Arc<str>,
    /// The aggregate or subscription it belongs to.
    pub processor: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}
