//! A saga with the type it follows erased.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use super::aggregate::typed;
use super::builtin::BUILTIN_EVENTS;
use crate::commit::{RecordedEvent, StateView};
use crate::id::AggregateType;
use crate::model::{
    EventFault, Evolve, RejectedCommand, Saga, SagaCommand, SagaEntry, decode_stored,
};

type HandleFn =
    Box<dyn Fn(&RecordedEvent, &StateView) -> Result<Vec<SagaCommand>, EventFault> + Send + Sync>;
type RejectedFn = Box<
    dyn Fn(
            &RecordedEvent,
            &StateView,
            &RejectedCommand<'_>,
        ) -> Result<Option<Vec<SagaCommand>>, EventFault>
        + Send
        + Sync,
>;

/// A saga.
pub struct SagaDefinition {
    /// Its name.
    pub name: &'static str,
    /// The aggregate type it follows.
    pub aggregate_type: AggregateType,
    pub(super) state_type: TypeId,
    handle: HandleFn,
    on_rejected: RejectedFn,
}

impl fmt::Debug for SagaDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaDefinition")
            .field("name", &self.name)
            .field("aggregate_type", &self.aggregate_type)
            .finish_non_exhaustive()
    }
}

impl SagaDefinition {
    pub(super) fn of<S: Saga>(saga: S) -> Self {
        let handler = Arc::new(saga);
        let answerer = Arc::clone(&handler);
        Self {
            name: S::NAME,
            aggregate_type: AggregateType::trusted(""),
            state_type: TypeId::of::<S::Aggregate>(),
            handle: Box::new(move |event, view| {
                with_entry::<S, _>(event, view, |event, entry| handler.handle(event, entry))
            }),
            on_rejected: Box::new(move |event, view, rejected| {
                with_entry::<S, _>(event, view, |event, entry| {
                    answerer.on_rejected(event, entry, rejected)
                })
            }),
        }
    }

    pub(super) fn following(mut self, aggregate_type: AggregateType) -> Self {
        self.aggregate_type = aggregate_type;
        self
    }

    /// Whether it handles an event: the system's own are passed over.
    pub fn takes(&self, event: &RecordedEvent) -> bool {
        !BUILTIN_EVENTS.contains(&&*event.name)
    }

    /// The commands for one event of a commit.
    ///
    /// # Errors
    /// [`EventFault`], when the event can't be read: the runner stops there (R50).
    pub fn handle(
        &self,
        event: &RecordedEvent,
        view: &StateView,
    ) -> Result<Vec<SagaCommand>, EventFault> {
        (self.handle)(event, view)
    }

    /// The commands that answer a refusal for good; none where the saga has no answer.
    ///
    /// # Errors
    /// [`EventFault`], when the event can't be read.
    pub fn on_rejected(
        &self,
        event: &RecordedEvent,
        view: &StateView,
        rejected: &RejectedCommand<'_>,
    ) -> Result<Option<Vec<SagaCommand>>, EventFault> {
        (self.on_rejected)(event, view, rejected)
    }
}

fn with_entry<S: Saga, T>(
    event: &RecordedEvent,
    view: &StateView,
    run: impl FnOnce(&<S::Aggregate as Evolve>::Event, &SagaEntry<'_, S::Aggregate>) -> T,
) -> Result<T, EventFault> {
    let decoded: <S::Aggregate as Evolve>::Event =
        decode_stored(&event.name, event.revision, &event.body)?;
    let identity = view.commit.identity();
    let entry = SagaEntry {
        identity: &identity,
        version: view.commit.version,
        position: view.commit.position,
        committed_at: view.commit.committed_at,
        state: typed::<S::Aggregate>(&view.state),
    };
    Ok(run(&decoded, &entry))
}
