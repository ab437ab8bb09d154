//! Which stages can be reached here at all (R61).

use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::registry::{Registry, SagaDefinition};
use wow_kernel::wait::{FunctionInfo, FunctionKind, Stage, WaitPlan};

/// The function name of a saga: it has one handler.
const SAGA_FUNCTION: &str = "handle";

/// What a saga's signals say of it.
pub(crate) fn saga_function(registry: &Registry, saga: &SagaDefinition) -> FunctionInfo {
    FunctionInfo {
        kind: FunctionKind::Event,
        context: registry.context().clone(),
        processor: saga.name.into(),
        name: SAGA_FUNCTION.into(),
    }
}

/// What the snapshot's signals say of it.
pub(crate) fn snapshot_function(registry: &Registry) -> FunctionInfo {
    FunctionInfo {
        kind: FunctionKind::StateEvent,
        context: registry.context().clone(),
        processor: "snapshot".into(),
        name: "save".into(),
    }
}

/// How many subscriptions have to reach a plan's stage.
pub(crate) fn expected(registry: &Registry, command: &BuiltCommand) -> usize {
    match command.wait.stage {
        Stage::Sent | Stage::Processed | Stage::Snapshot => 1,
        Stage::SagaHandled => matching_sagas(registry, command).count(),
        Stage::Projected | Stage::EventHandled => 0,
    }
}

/// The sagas that handle a command's commit and that its plan names, with what their signals say
/// of them.
pub(crate) fn matching_sagas<'a>(
    registry: &'a Registry,
    command: &'a BuiltCommand,
) -> impl Iterator<Item = (&'a SagaDefinition, FunctionInfo)> {
    registry
        .sagas()
        .iter()
        .filter(|saga| saga.aggregate_type == command.key().aggregate_type)
        .map(|saga| (&**saga, saga_function(registry, saga)))
        .filter(|(_, function)| command.wait.filter.matches(function))
}

/// Refuses a plan that nothing here can ever complete.
///
/// # Errors
/// [`CommandError::StageUnavailable`].
pub(crate) fn check_available(
    registry: &Registry,
    command: &BuiltCommand,
) -> Result<(), CommandError> {
    if command.wait.tail.is_none() && expected(registry, command) > 0 {
        return Ok(());
    }
    Err(CommandError::StageUnavailable {
        stage: describe(&command.wait),
    })
}

fn describe(plan: &WaitPlan) -> String {
    use std::fmt::Write as _;

    let mut text = plan.stage.to_string();
    let parts = [
        &plan.filter.context,
        &plan.filter.processor,
        &plan.filter.function,
    ];
    for part in parts.into_iter().flatten() {
        let _ = write!(text, " of {part}");
    }
    if plan.tail.is_some() {
        text.push_str(" with a tail");
    }
    text
}
