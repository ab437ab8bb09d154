//! Given what has happened, when a command comes.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::block_on;
use super::story::{Place, Story, mode_of, recorded};
use super::then::Then;
use crate::access::Principal;
use crate::commit::RecordedEvent;
use crate::id::{EpochMillis, Version};
use crate::memory::ManualClock;
use crate::model::{Aggregate, Command, Decide, Evolve, OwnerPolicy, Services};
use crate::registry::{DELETED, Registry, RegistryBuilder};
use crate::submission::Submission;

/// Begins a test of an aggregate with this id, to which nothing has happened yet.
pub fn given<A: Aggregate>(id: impl Into<String>) -> Given<A> {
    Given {
        place: Place {
            id: id.into(),
            tenant: None,
            owner: None,
            space: None,
        },
        commits: Vec::new(),
        services: Services::default(),
        clock: ManualClock::new(),
        registry: RegistryBuilder::new("test").register::<A>(),
        aggregate: PhantomData,
    }
}

/// What has happened to an aggregate, and what its command functions may use.
#[must_use = "nothing is tested before `when` and `then`"]
pub struct Given<A> {
    pub(super) place: Place,
    commits: Vec<Vec<RecordedEvent>>,
    services: Services,
    clock: ManualClock,
    registry: RegistryBuilder,
    aggregate: PhantomData<fn() -> A>,
}

impl<A> std::fmt::Debug for Given<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given")
            .field("id", &self.place.id)
            .field("commits", &self.commits.len())
            .finish_non_exhaustive()
    }
}

impl<A: Aggregate> Given<A> {
    /// These events have happened, in one commit.
    #[track_caller]
    pub fn events(mut self, events: impl IntoIterator<Item = <A as Evolve>::Event>) -> Self {
        let events: Vec<_> = events.into_iter().map(|event| recorded(&event)).collect();
        if !events.is_empty() {
            self.commits.push(events);
        }
        self
    }

    /// It was deleted.
    pub fn deleted(mut self) -> Self {
        self.commits.push(vec![RecordedEvent {
            name: Arc::from(DELETED),
            revision: 1,
            body: RawValue::from_string("{}".to_owned()).expect("an empty object is JSON"),
        }]);
        self
    }

    /// It belongs to this tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.place.tenant = Some(tenant.into());
        self
    }

    /// It has this owner, for whom the command is sent too unless it names another.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.place.owner = Some(owner.into());
        self
    }

    /// It lies in this space, in which the command is sent too unless it names another.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.place.space = Some(space.into());
        self
    }

    /// The clock shows this time.
    pub fn at(mut self, now: EpochMillis) -> Self {
        self.clock = ManualClock::starting_at(now);
        self
    }

    /// Command functions get this service, as from a node that was given it.
    pub fn provide<T: Send + Sync + 'static>(mut self, service: T) -> Self {
        self.services.provide(service);
        self
    }

    /// The types are registered by this function, with their transformers; without it, just the
    /// aggregate is.
    pub fn registered_by(
        mut self,
        register: impl FnOnce(RegistryBuilder) -> RegistryBuilder,
    ) -> Self {
        self.registry = register(RegistryBuilder::new("test"));
        self
    }

    /// A command comes.
    #[track_caller]
    pub fn when<C: Command>(self, command: C) -> When<A>
    where
        A: Decide<C>,
    {
        When::new(
            self.tell(|registry| registry),
            C::spec().name,
            &written(&command),
        )
    }

    /// A command comes as JSON, named as in a route; also the system's own, like
    /// `delete_aggregate`.
    #[track_caller]
    pub fn when_json(self, command: &str, body: &str) -> When<A> {
        When::new(self.tell(|registry| registry), command, body)
    }

    /// The story so far.
    #[track_caller]
    pub(super) fn tell(self, add: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Story<A> {
        let registry = built(add(self.registry));
        let is_named = self.place.owner.is_some();
        let spec = A::spec();
        assert!(
            spec.owner != OwnerPolicy::Always || is_named,
            "each '{}' has an owner: write `given(…).owner(\"…\")`",
            spec.name
        );
        let mut story = Story::new(registry, &self.place, self.services, self.clock);
        for events in self.commits {
            story.commit(events);
        }
        story
    }
}

#[track_caller]
fn built(registry: RegistryBuilder) -> Registry {
    registry.build().unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(|error| format!("  {error}")).collect();
        panic!("the types don't fit together:\n{}", errors.join("\n"))
    })
}

/// A command's body as a client would send it.
#[track_caller]
pub(super) fn written<C: Command>(command: &C) -> String {
    serde_json::to_string(command)
        .unwrap_or_else(|error| panic!("the command can't be written as JSON: {error}"))
}

/// A command on its way. `then` runs it; in a test with a runtime, so does `.await`.
#[must_use = "nothing is tested before `then`, or `.await`"]
pub struct When<A> {
    story: Story<A>,
    command: String,
    body: String,
    owner: Option<String>,
    space: Option<String>,
    principal: Option<Principal>,
    expected_version: Option<Version>,
    headers: Vec<(String, String)>,
}

impl<A> std::fmt::Debug for When<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("When")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl<A: Aggregate> When<A> {
    pub(super) fn new(story: Story<A>, command: &str, body: &str) -> Self {
        Self {
            story,
            command: command.to_owned(),
            body: body.to_owned(),
            owner: None,
            space: None,
            principal: None,
            expected_version: None,
            headers: Vec::new(),
        }
    }

    /// It is sent for this owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// It is sent in this space.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.space = Some(space.into());
        self
    }

    /// This caller sends it, known by a token: access is judged as in `jwt` mode. Without a
    /// principal the caller is anonymous, as in `open` mode.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Its caller expects this version.
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// It comes with this header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Runs the command to its end, on this thread.
    pub fn then(self) -> Then<A> {
        block_on(self.run())
    }

    async fn run(mut self) -> Then<A> {
        let submission = self.submission();
        let mode = mode_of(self.principal.as_ref());
        let executed = self.story.run(mode, submission).await;
        Then::new(self.story, self.command, executed)
    }

    fn submission(&self) -> Submission {
        let story = &self.story;
        let spec = &story.definition.spec;
        let body = self.body.clone().into_bytes();
        let mut submission =
            Submission::json(spec.name, &self.command, body).aggregate_id(story.key.id.as_str());
        if spec.static_tenant.is_none() {
            submission = submission.tenant(story.key.tenant.as_str());
        }
        if let Some(owner) = named(self.owner.as_deref(), story.owner.as_str()) {
            submission = submission.owner(owner);
        }
        if let Some(space) = named(self.space.as_deref(), story.space.as_str()) {
            submission = submission.space(space);
        }
        if let Some(principal) = &self.principal {
            submission = submission.principal(principal.clone());
        }
        if let Some(version) = self.expected_version {
            submission = submission.expected_version(version);
        }
        for (name, value) in &self.headers {
            submission = submission.header(name, value);
        }
        submission
    }
}

/// What the command names, else what the story has; nothing where that is empty.
fn named<'a>(own: Option<&'a str>, story: &'a str) -> Option<&'a str> {
    own.or(Some(story)).filter(|name| !name.is_empty())
}

impl<A: Aggregate> IntoFuture for When<A> {
    type Output = Then<A>;
    type IntoFuture = BoxFuture<'static, Then<A>>;

    fn into_future(self) -> Self::IntoFuture {
        self.run().boxed()
    }
}
