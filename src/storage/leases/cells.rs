//! The rows of members and leases, both ways.

use std::time::Duration;

use sea_orm::{DbErr, Value};
use uuid::Uuid;
use wow_kernel::id::{NodeName, PartitionNo};
use wow_kernel::ports::{Member, MemberState, PartitionLease, StorageError};

use super::super::rows::{Cells, signed};

pub(super) fn unread(error: StorageError) -> DbErr {
    DbErr::Custom(error.to_string())
}

pub(super) fn number(partition: PartitionNo) -> Value {
    Value::from(i64::from(partition.0))
}

pub(super) fn duration(duration: Duration) -> Value {
    Value::from(signed(
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    ))
}

pub(super) fn millis(left: i64) -> Duration {
    Duration::from_millis(u64::try_from(left).unwrap_or_default())
}

/// What a member says of itself, besides who it is.
pub(super) fn said(member: &Member) -> [Value; 4] {
    let state = match member.state {
        MemberState::Live => "live",
        MemberState::Draining => "draining",
    };
    [
        Value::from(member.address.as_str()),
        Value::from(state),
        Value::from(i64::from(member.protocol_min)),
        Value::from(i64::from(member.protocol_max)),
    ]
}

fn incarnation(text: &str) -> Result<Uuid, StorageError> {
    Uuid::parse_str(text).map_err(|_| StorageError::Corrupt(format!("'{text}' is no incarnation")))
}

pub(super) fn read_member(cells: &mut Cells<'_>) -> Result<Member, StorageError> {
    Ok(Member {
        name: NodeName::trusted(cells.get::<String>()?),
        incarnation: incarnation(&cells.get::<String>()?)?,
        address: cells.get()?,
        state: match cells.get::<String>()?.as_str() {
            "draining" => MemberState::Draining,
            _ => MemberState::Live,
        },
        protocol_min: cells.number()?,
        protocol_max: cells.number()?,
        valid_for: millis(cells.number()?),
    })
}

pub(super) fn read_lease(cells: &mut Cells<'_>) -> Result<PartitionLease, StorageError> {
    let name: Option<String> = cells.get()?;
    let of: Option<String> = cells.get()?;
    let owner = match (name, of) {
        (Some(name), Some(of)) => Some((NodeName::trusted(name), incarnation(&of)?)),
        _ => None,
    };
    let (_address, _state): (Option<String>, String) = (cells.get()?, cells.get()?);
    let partition = PartitionNo(cells.number()?);
    let _protocol: i64 = cells.number()?;
    Ok(PartitionLease {
        partition,
        owner,
        epoch: cells.number()?,
    })
}
