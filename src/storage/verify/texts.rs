//! Whether an entry's texts and time are such as this code writes.

use wow_kernel::commit::Commit;
use wow_kernel::id::{EpochMillis, IdFault, NodeName, OwnerId, RequestId, TenantId};

/// The end of the year 9999: no clock that is set shows more.
const TIME_MAX: EpochMillis = 253_402_300_799_999;

/// Every column that holds what is never written there, and why not.
pub(super) fn odd_columns(commit: &Commit) -> Vec<(&'static str, String)> {
    let key = &commit.key;
    let mut odd = Vec::new();
    let mut note = |column, fault: Option<String>| odd.extend(fault.map(|fault| (column, fault)));
    // All ids have one form (R3).
    let id = |text: &str| TenantId::parse(text).err().map(|fault| fault.to_string());
    let optional = |text: &str| (!text.is_empty()).then(|| id(text)).flatten();
    note("tenant_id", id(key.tenant.as_str()));
    note("aggregate_type", id(key.aggregate_type.as_str()));
    note("aggregate_id", id(key.id.as_str()));
    note("request_id", request_fault(commit.request_id.as_str()));
    note("command_type", id(&commit.command_type));
    note("principal", principal_fault(&commit.principal));
    note("owner_id", optional(OwnerId::as_str(&commit.owner)));
    note("space_id", optional(commit.space.as_str()));
    note("origin", id(NodeName::as_str(&commit.origin)));
    note("committed_at", time_fault(commit.committed_at));
    odd
}

/// A caller's id has one form; the system's own begin with what no caller's may (R8).
fn request_fault(text: &str) -> Option<String> {
    match RequestId::from_caller(text) {
        Ok(_) | Err(IdFault::Reserved) => None,
        Err(fault) => Some(fault.to_string()),
    }
}

/// A subject is whatever the issuer of a token calls it, within reason.
fn principal_fault(text: &str) -> Option<String> {
    text.chars()
        .any(char::is_control)
        .then(|| "it contains a control character".to_owned())
}

/// Why a time is none at which anything was written.
pub(super) fn time_fault(time: EpochMillis) -> Option<String> {
    match time {
        1..=TIME_MAX => None,
        _ => Some(format!("{time} is no time of a commit")),
    }
}
