//! What a request says beside its body: the facts of identity, the caller, the wait plan, and the
//! headers to keep. Nothing is judged here but what only HTTP can tell; admission does the rest.

use std::borrow::Cow;

use wow_kernel::error::CommandError;
use wow_kernel::id::IdFault;
use wow_kernel::model::VariableSource;
use wow_kernel::registry::CommandDefinition;
use wow_kernel::submission::{
    IdentityFacts, Source, Submission, SubmittedRequestId, Target, VariableValue,
};

use super::edge::Edge;
use super::error::Refusal;
use super::headers::{Known, RequestHeaders, fault};
use super::routes::Parameter;
use super::trace;

/// The variable segments of a request's path, with their names.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathValues<'r> {
    parameters: &'r [Parameter],
    values: &'r [Cow<'r, str>],
}

impl<'r> PathValues<'r> {
    /// The values of a route's variables, in order.
    pub(super) fn new(parameters: &'r [Parameter], values: &'r [Cow<'r, str>]) -> Self {
        Self { parameters, values }
    }

    /// A path without variables.
    pub(super) fn none() -> Self {
        Self {
            parameters: &[],
            values: &[],
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&'r Parameter, &'r str)> + use<'r> {
        self.parameters
            .iter()
            .zip(self.values.iter().map(|value| &**value))
    }

    /// The value of a variable, by its name.
    pub(super) fn get(&self, name: &str) -> Option<&'r str> {
        self.iter()
            .find(|(parameter, _)| parameter.name() == name)
            .map(|(_, value)| value)
    }
}

/// What path and headers say of the identity (R3).
///
/// # Errors
/// [`CommandError::IdentityInvalid`] for an empty fact, which never means "any".
pub(super) fn facts(
    headers: &RequestHeaders<'_>,
    path: PathValues<'_>,
) -> Result<IdentityFacts, CommandError> {
    let mut facts = IdentityFacts::default();
    for (parameter, value) in path.iter() {
        let (fact, list) = match parameter {
            Parameter::Tenant => ("tenant", &mut facts.tenant),
            Parameter::Owner => ("owner", &mut facts.owner),
            Parameter::Space => ("space", &mut facts.space),
            Parameter::Id => ("aggregate id", &mut facts.aggregate_id),
            Parameter::Number(_) | Parameter::Named(_) => continue,
        };
        if value.is_empty() {
            return Err(CommandError::IdentityInvalid {
                fact: fact.into(),
                fault: IdFault::Empty,
            });
        }
        list.push((Source::Path, value.to_owned()));
    }
    for (known, fact, list) in [
        (Known::Tenant, "tenant", &mut facts.tenant),
        (Known::Owner, "owner", &mut facts.owner),
        (Known::AggregateId, "aggregate id", &mut facts.aggregate_id),
    ] {
        if let Some(value) = headers.identity(known, fact)? {
            list.push((Source::Header, value.to_owned()));
        }
    }
    // Two names for one fact: admission finds out whether they agree.
    for known in [Known::Space, Known::WowSpace] {
        if let Some(value) = headers.identity(known, "space")? {
            facts.space.push((Source::Header, value.to_owned()));
        }
    }
    Ok(facts)
}

/// Makes a submission of a request; the body comes later.
///
/// # Errors
/// The first header that can't be used, or a token that proves nothing.
pub(super) async fn submission(
    edge: &Edge,
    headers: &RequestHeaders<'_>,
    target: Target,
    command: Option<&CommandDefinition>,
    path: PathValues<'_>,
) -> Result<Submission, Refusal> {
    let mut submission = Submission::named(target, bytes::Bytes::new());
    submission.facts = facts(headers, path)?;
    submission.principal = edge.authenticator.authenticate(headers.bearer()?).await?;
    submission.expected_version = headers.expected_version()?;
    submission.local_first = headers.local_first()?;
    submission.wait =
        headers.wait_plan(edge.settings.wait_timeout, edge.settings.wait_timeout_max)?;
    let request_id = headers.get(Known::RequestId)?;
    submission.request_id = request_id.map(|id| SubmittedRequestId::Caller(id.to_owned()));
    for kept in headers.kept() {
        let (name, value) = kept?;
        submission.headers.insert(name.to_owned(), value.to_owned());
    }
    let state = headers.tracestate();
    let parent = headers.get(Known::Traceparent)?;
    trace::carry(parent, state.as_deref(), &mut submission.headers);
    if let Some(command) = command {
        submission.variables = variables(headers, command, path)?;
    }
    Ok(submission)
}

/// The declared variables that are there; one that isn't leaves its field to the body.
fn variables(
    headers: &RequestHeaders<'_>,
    command: &CommandDefinition,
    path: PathValues<'_>,
) -> Result<Vec<VariableValue>, CommandError> {
    let mut found = Vec::new();
    for variable in command.spec.variables {
        let value = match variable.source {
            VariableSource::Path => path.get(variable.name),
            VariableSource::Header => headers.variable(variable.name)?,
        };
        if let Some(value) = value {
            found.push(VariableValue {
                source: variable.source,
                name: variable.name.to_owned(),
                value: value.to_owned(),
            });
        }
    }
    Ok(found)
}

/// A header that has to be there and say something.
///
/// # Errors
/// [`CommandError::ParameterInvalid`] where it is missing or empty.
pub(super) fn required<'r>(
    headers: &RequestHeaders<'r>,
    known: Known,
) -> Result<&'r str, CommandError> {
    match headers.get(known)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(fault(known.name(), "it has to be sent here")),
    }
}
