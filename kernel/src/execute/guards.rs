//! What is checked before deciding: scope, creation rule, deleted (R10, R11, R57).

use crate::access::{AccessMode, Principal};
use crate::commit::AggregateFacts;
use crate::error::CommandError;
use crate::id::Identity;
use crate::model::{CommandSpec, CreationRule, OwnerPolicy};

/// Whether an existing aggregate is in the caller's scope (R57).
///
/// # Errors
/// To a caller known by its token, another's aggregate doesn't exist; to services and in open
/// mode it is named as another's.
pub fn check_scope(
    mode: AccessMode,
    policy: OwnerPolicy,
    principal: &Principal,
    claimed: &Identity,
    facts: &AggregateFacts,
) -> Result<(), CommandError> {
    let hidden = mode == AccessMode::Jwt && !principal.is_service();
    if policy != OwnerPolicy::Never && claimed.owner != facts.owner {
        return Err(if hidden {
            CommandError::NotFound
        } else {
            CommandError::OtherOwner
        });
    }
    if claimed.space != facts.space {
        return Err(if hidden {
            CommandError::NotFound
        } else {
            CommandError::OtherSpace
        });
    }
    Ok(())
}

/// Whether the aggregate exists as the command needs, and isn't deleted.
///
/// # Errors
/// R10's and R11's.
pub fn check_existence(
    command: &CommandSpec,
    exists: bool,
    deleted: bool,
) -> Result<(), CommandError> {
    match (command.creation, exists) {
        (CreationRule::Creates, true) => return Err(CommandError::AggregateExists),
        (CreationRule::Updates, false) => return Err(CommandError::NotFound),
        _ => {}
    }
    if deleted && !command.recovers {
        Err(CommandError::Deleted)
    } else {
        Ok(())
    }
}
