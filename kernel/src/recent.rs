//! The requests that an aggregate committed most recently, kept with its cached state (R41).
//!
//! What is found here is certain and costs no read. What is not found is not known: the request
//! may be older, or another aggregate's (R42). An entry takes 56 bytes where the request id is a
//! UUID in its usual form; callers and command types are shared within the set.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::commit::Commit;
use crate::id::{CommandId, OwnerId, RequestId, Version};

/// A snapshot carries the set at every version that this divides: writing it with each would
/// cost more than the state itself. The versions since come from the log.
pub const WRITTEN_EVERY: Version = 64;

/// A result longer than this is not kept: such a duplicate asks the log.
const RESULT_BYTES_MAX: usize = 1024;

/// The most requests that a set can hold.
const ENTRIES_MAX: usize = u16::MAX as usize;

/// The versions up to a snapshot's that its stored set may not hold. The snapshot's own is always
/// among them, for it tells whether the log has the commit that the snapshot was made from (R50).
pub fn unwritten(snapshot: Version) -> RangeInclusive<Version> {
    let written = snapshot - snapshot % WRITTEN_EVERY;
    (written + 1).min(snapshot.max(1))..=snapshot
}

/// What answers a duplicate: who sent which command, and what came of it.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// The request.
    pub request_id: RequestId,
    /// The command that committed for it.
    pub command_id: CommandId,
    /// The version it reached.
    pub version: Version,
    /// That command's type.
    pub command_type: Arc<str>,
    /// The subject that sent it.
    pub principal: Arc<str>,
    /// The owner it was sent for.
    pub owner: OwnerId,
    /// The result map.
    pub result: Option<Arc<RawValue>>,
}

/// Whether a set keeps a request; what is too large for it is left to the log.
pub fn is_kept(record: &RequestRecord) -> bool {
    fits(record.version, record.result.as_deref())
}

fn fits(version: Version, result: Option<&RawValue>) -> bool {
    u32::try_from(version).is_ok()
        && result.is_none_or(|result| result.get().len() <= RESULT_BYTES_MAX)
}

/// The requests that a snapshot stored, oldest first.
///
/// # Errors
/// What serde says of a text that holds none.
pub fn read_stored(json: &str) -> Result<Vec<RequestRecord>, serde_json::Error> {
    let rows: Vec<Row> = serde_json::from_str(json)?;
    Ok(rows.into_iter().map(RequestRecord::from).collect())
}

impl From<&Commit> for RequestRecord {
    fn from(commit: &Commit) -> Self {
        Self {
            request_id: commit.request_id.clone(),
            command_id: commit.command_id,
            version: commit.version,
            command_type: commit.command_type.clone(),
            principal: commit.principal.clone(),
            owner: commit.owner.clone(),
            result: commit.result.clone(),
        }
    }
}

/// A request to remember, as its record or its commit says it.
struct Noted<'a> {
    request_id: &'a RequestId,
    command_id: CommandId,
    version: Version,
    command_type: &'a Arc<str>,
    principal: &'a Arc<str>,
    owner: &'a OwnerId,
    result: Option<&'a Arc<RawValue>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CompactId {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl CompactId {
    fn new(text: &str) -> Self {
        // Only the usual form is kept as a number, so that the text comes back byte for byte.
        match Uuid::try_parse(text) {
            Ok(uuid) if Self::is_usual_form(uuid, text) => Self::Uuid(uuid.into_bytes()),
            _ => Self::Text(text.into()),
        }
    }

    fn of(request_id: &RequestId, CommandId(command_id): CommandId) -> Self {
        // An id that admission made is the command's own: nothing needs to be read then.
        match Self::is_usual_form(command_id, request_id.as_str()) {
            true => Self::Uuid(command_id.into_bytes()),
            false => Self::new(request_id.as_str()),
        }
    }

    fn is_usual_form(uuid: Uuid, text: &str) -> bool {
        uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text
    }

    fn to_request_id(&self) -> RequestId {
        match self {
            Self::Uuid(bytes) => RequestId::trusted(Uuid::from_bytes(*bytes).to_string()),
            Self::Text(text) => RequestId::trusted(&**text),
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    request_id: CompactId,
    command_id: CommandId,
    version: u32,
    command_type: u16,
    caller: u16,
    // Results are rare; a thin pointer keeps the entry small.
    result: Option<Box<Arc<RawValue>>>,
}

const _: () = assert!(std::mem::size_of::<Entry>() <= 64);

impl Entry {
    fn held_bytes(&self) -> usize {
        let id = match &self.request_id {
            CompactId::Uuid(_) => 0,
            CompactId::Text(text) => text.len(),
        };
        id + self.result.as_ref().map_or(0, |result| result.get().len())
    }
}

/// The set: bounded, oldest out first.
#[derive(Debug, Clone)]
pub struct RecentRequests {
    capacity: usize,
    entries: VecDeque<Entry>,
    /// What the entries hold beside themselves: results, and request ids in another form.
    held_bytes: usize,
    callers: SharedValues<(Arc<str>, OwnerId)>,
    command_types: SharedValues<Arc<str>>,
}

impl RecentRequests {
    /// An empty set of at most `capacity` requests, and at most 65 535.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.min(ENTRIES_MAX),
            entries: VecDeque::new(),
            held_bytes: 0,
            callers: SharedValues::new(),
            command_types: SharedValues::new(),
        }
    }

    /// How many requests it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Roughly how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * std::mem::size_of::<Entry>() + self.held_bytes
    }

    /// Remembers a request. What doesn't fit the compact form is left to the log, and what it
    /// remembers already is not remembered twice.
    pub fn remember(&mut self, record: RequestRecord) {
        self.note(&Noted {
            request_id: &record.request_id,
            command_id: record.command_id,
            version: record.version,
            command_type: &record.command_type,
            principal: &record.principal,
            owner: &record.owner,
            result: record.result.as_ref(),
        });
    }

    /// Remembers the request of a commit, as [`Self::remember`] does.
    pub fn remember_commit(&mut self, commit: &Commit) {
        self.note(&Noted {
            request_id: &commit.request_id,
            command_id: commit.command_id,
            version: commit.version,
            command_type: &commit.command_type,
            principal: &commit.principal,
            owner: &commit.owner,
            result: commit.result.as_ref(),
        });
    }

    fn note(&mut self, noted: &Noted<'_>) {
        let fits = fits(noted.version, noted.result.map(|result| &**result));
        let Ok(version) = u32::try_from(noted.version) else {
            return;
        };
        let is_known = self
            .entries
            .back()
            .is_some_and(|last| last.version >= version);
        if self.capacity == 0 || !fits || is_known {
            return;
        }
        if self.entries.len() == self.capacity {
            self.forget_oldest();
        }
        let (principal, owner) = (noted.principal, noted.owner);
        let command_type = (self.command_types).hold(
            |known| known == noted.command_type,
            || Arc::clone(noted.command_type),
        );
        let caller = self.callers.hold(
            |(subject, known)| subject == principal && known == owner,
            || (Arc::clone(principal), owner.clone()),
        );
        let entry = Entry {
            request_id: CompactId::of(noted.request_id, noted.command_id),
            command_id: noted.command_id,
            version,
            command_type,
            caller,
            result: noted.result.cloned().map(Box::new),
        };
        self.held_bytes += entry.held_bytes();
        self.entries.push_back(entry);
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.held_bytes -= oldest.held_bytes();
            self.command_types.release(oldest.command_type);
            self.callers.release(oldest.caller);
        }
    }

    /// The request, if it is one of the recent ones.
    pub fn find(&self, request_id: &RequestId) -> Option<RequestRecord> {
        if self.entries.is_empty() {
            return None;
        }
        let wanted = CompactId::new(request_id.as_str());
        self.entries
            .iter()
            .rev()
            .find(|entry| entry.request_id == wanted)
            .map(|entry| self.record(entry))
    }

    fn record(&self, entry: &Entry) -> RequestRecord {
        let (principal, owner) = self.callers.get(entry.caller).clone();
        RequestRecord {
            request_id: entry.request_id.to_request_id(),
            command_id: entry.command_id,
            version: Version::from(entry.version),
            command_type: self.command_types.get(entry.command_type).clone(),
            principal,
            owner,
            result: entry.result.as_deref().cloned(),
        }
    }

    /// The set as a snapshot stores it.
    pub fn to_json(&self) -> String {
        self.to_json_up_to(Version::MAX)
    }

    /// The same without the requests of later versions: what a snapshot of such a later version
    /// stores, where `up_to` is the last that [`WRITTEN_EVERY`] divides.
    pub fn to_json_up_to(&self, up_to: Version) -> String {
        let rows: Vec<Row> = self
            .entries
            .iter()
            .filter(|entry| Version::from(entry.version) <= up_to)
            .map(|entry| Row::from(self.record(entry)))
            .collect();
        // Rows are texts and numbers: nothing in them that JSON can't hold.
        serde_json::to_string(&rows).unwrap_or_default()
    }

    /// Remembers what a snapshot stored. What can't be read is left out: the log still has it.
    pub fn remember_json(&mut self, json: &str) {
        match read_stored(json) {
            Ok(records) => records.into_iter().for_each(|record| self.remember(record)),
            Err(error) => {
                tracing::warn!(%error, "recent requests of a snapshot can't be read");
            }
        }
    }
}

/// Values that many entries share, each with how many hold it. There are never more of them than
/// entries, whoever comes by.
#[derive(Debug, Clone)]
struct SharedValues<T>(Vec<(T, u32)>);

impl<T> SharedValues<T> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn get(&self, index: u16) -> &T {
        &self.0[usize::from(index)].0
    }

    /// The index of the value that fits, or that is made. A new one takes a place that nobody
    /// holds any more, if there is one.
    fn hold(&mut self, fits: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> u16 {
        if let Some(known) = self.0.iter().rposition(|(known, _)| fits(known)) {
            self.0[known].1 += 1;
            return Self::number(known);
        }
        let free = self.0.iter().position(|(_, holders)| *holders == 0);
        let index = match free {
            Some(index) => {
                self.0[index] = (make(), 1);
                index
            }
            None => {
                self.0.push((make(), 1));
                self.0.len() - 1
            }
        };
        Self::number(index)
    }

    fn number(index: usize) -> u16 {
        u16::try_from(index).expect("there are at most as many values as entries")
    }

    fn release(&mut self, index: u16) {
        self.0[usize::from(index)].1 -= 1;
    }
}

#[derive(Serialize, Deserialize)]
struct Row {
    r: RequestId,
    c: CommandId,
    v: Version,
    t: Arc<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    p: Arc<str>,
    #[serde(default = "OwnerId::none", skip_serializing_if = "OwnerId::is_empty")]
    o: OwnerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<Box<RawValue>>,
}

impl From<RequestRecord> for Row {
    fn from(record: RequestRecord) -> Self {
        Self {
            r: record.request_id,
            c: record.command_id,
            v: record.version,
            t: record.command_type,
            p: record.principal,
            o: record.owner,
            x: record.result.map(|result| (*result).to_owned()),
        }
    }
}

impl From<Row> for RequestRecord {
    fn from(row: Row) -> Self {
        Self {
            request_id: row.r,
            command_id: row.c,
            version: row.v,
            command_type: row.t,
            principal: row.p,
            owner: row.o,
            result: row.x.map(Arc::from),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]
mod tests {
    use super::*;

    fn record(request: &str, version: Version) -> RequestRecord {
        RequestRecord {
            request_id: RequestId::trusted(request),
            command_id: CommandId(Uuid::from_u128(u128::from(version))),
            version,
            command_type: Arc::from("open"),
            principal: Arc::from("ann"),
            owner: OwnerId::none(),
            result: None,
        }
    }

    #[test]
    fn r41_the_last_requests_are_known_and_older_ones_forgotten() {
        let mut set = RecentRequests::new(3);
        for version in 1..=4 {
            set.remember(record(&format!("r{version}"), version));
        }
        assert!(set.find(&RequestId::trusted("r1")).is_none());
        let found = set.find(&RequestId::trusted("r4")).unwrap();
        assert_eq!((found.version, &*found.principal), (4, "ann"));
    }

    #[test]
    fn r41_a_snapshot_stores_the_set_of_the_last_version_at_which_it_is_written() {
        let mut set = RecentRequests::new(256);
        for version in 1..=WRITTEN_EVERY + 6 {
            set.remember(record(&format!("r{version}"), version));
        }
        let mut again = RecentRequests::new(256);
        again.remember_json(&set.to_json_up_to(WRITTEN_EVERY));
        for version in unwritten(WRITTEN_EVERY + 6) {
            assert!(
                again
                    .find(&RequestId::trusted(format!("r{version}")))
                    .is_none()
            );
            again.remember(record(&format!("r{version}"), version));
        }
        assert_eq!(again.to_json(), set.to_json());
    }

    #[test]
    fn r33_results_and_odd_request_ids_count_into_what_a_set_takes() {
        let mut set = RecentRequests::new(2);
        let plain = set.bytes();
        let result = RawValue::from_string(format!("\"{}\"", "x".repeat(998))).unwrap();
        for version in 1..=9 {
            let record = RequestRecord {
                result: Some(Arc::from(result.clone())),
                ..record("1234", version)
            };
            set.remember(record);
        }
        let entries = set.entries.capacity() * std::mem::size_of::<Entry>();
        assert_eq!(set.bytes(), plain + entries + 2 * (1000 + 4));
    }

    #[test]
    fn r41_a_request_id_comes_back_byte_for_byte() {
        let mut set = RecentRequests::new(8);
        let ids = [
            "67e55044-10b1-426f-9247-bb680e5fe0c8",
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "a",
        ];
        for (version, id) in (1..).zip(ids) {
            set.remember(record(id, version));
        }
        let mut again = RecentRequests::new(8);
        again.remember_json(&set.to_json());
        for (version, id) in (1..).zip(ids) {
            let found = again.find(&RequestId::trusted(id)).unwrap();
            assert_eq!((found.request_id.as_str(), found.version), (id, version));
        }
    }

    #[test]
    fn r41_many_callers_take_no_more_room_than_their_requests() {
        let mut set = RecentRequests::new(4);
        for version in 1..=100_000 {
            let caller = Arc::from(format!("caller {version}"));
            set.remember(RequestRecord {
                principal: caller,
                ..record(&format!("r{version}"), version)
            });
        }
        let newest = set.find(&RequestId::trusted("r100000")).unwrap();
        assert_eq!(&*newest.principal, "caller 100000");
        assert!(set.callers.0.len() <= 4, "{} callers", set.callers.0.len());
    }

    #[test]
    fn r41_what_a_snapshot_does_not_hold_begins_behind_its_stored_set() {
        let ranges = [
            (1, 1..=1),
            (63, 1..=63),
            (64, 64..=64),
            (65, 65..=65),
            (130, 129..=130),
        ];
        for (snapshot, expected) in ranges {
            assert_eq!(unwritten(snapshot), expected, "snapshot of {snapshot}");
        }
        assert!(unwritten(0).is_empty());
    }

    #[test]
    fn r41_a_request_loaded_twice_is_remembered_once() {
        let mut set = RecentRequests::new(8);
        for version in [1, 2, 2, 3] {
            set.remember(record(&format!("r{version}"), version));
        }
        assert_eq!(set.len(), 3);
    }
}
