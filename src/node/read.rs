//! Reading states from the node's own process, as the types they are.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use wow_kernel::access::Principal;
use wow_kernel::error::CommandError;
use wow_kernel::id::AggregateType;
use wow_kernel::model::Aggregate;
use wow_kernel::read::{ReadRequest, Reader};
use wow_kernel::submission::{IdentityFacts, Source};

/// A state about to be read; awaiting it reads the newest one.
#[derive(Debug)]
#[must_use = "a state is read when this is awaited"]
pub struct Read<A> {
    reader: Arc<Reader>,
    id: String,
    facts: IdentityFacts,
    principal: Principal,
    aggregate: PhantomData<fn() -> A>,
}

impl<A: Aggregate> Read<A> {
    pub(super) fn new(reader: Arc<Reader>, id: String) -> Self {
        Self {
            reader,
            id,
            facts: IdentityFacts::default(),
            principal: Principal::anonymous(),
            aggregate: PhantomData,
        }
    }

    /// Names the tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.facts.tenant.push((Source::Call, tenant.into()));
        self
    }

    /// Names the owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.facts.owner.push((Source::Call, owner.into()));
        self
    }

    /// Names the space.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.facts.space.push((Source::Call, space.into()));
        self
    }

    /// Reads as this caller.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    async fn run(mut self) -> Result<A, CommandError> {
        self.facts.aggregate_id.push((Source::Call, self.id));
        let request = ReadRequest {
            aggregate_type: aggregate_type::<A>(&self.reader)?,
            facts: self.facts,
            principal: self.principal,
        };
        let read = self.reader.state(&request).await?;
        serde_json::from_str(&read.state).map_err(|error| {
            tracing::error!(key = %read.key, %error, "a state isn't read back as it was written");
            CommandError::Internal
        })
    }
}

fn aggregate_type<A: Aggregate>(reader: &Reader) -> Result<AggregateType, CommandError> {
    let aggregates = reader.registry.aggregates().iter();
    let known = aggregates.into_iter().find(|aggregate| aggregate.is::<A>());
    known
        .map(|aggregate| aggregate.aggregate_type.clone())
        .ok_or_else(|| CommandError::TypeUnknown {
            what: format!("aggregate '{}'", A::spec().name),
        })
}

impl<A: Aggregate> IntoFuture for Read<A> {
    type Output = Result<A, CommandError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
