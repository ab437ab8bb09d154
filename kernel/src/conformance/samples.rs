//! Commits, snapshots and keys for the cases, and what it means that one came back whole.

use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use super::PARTITIONS;
use crate::commit::{AggregateFacts, Commit, RecordedEvent, StoredSnapshot};
use crate::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, PartitionNo, RequestId,
    SpaceId, TenantId, Version,
};
use crate::partition::partition_of;
use crate::ports::{AppendError, AppendReceipt, CommitLog};

/// An aggregate by all three parts of its key.
pub(crate) fn key_of(tenant: &str, aggregate_type: &str, id: &str) -> AggregateKey {
    AggregateKey {
        tenant: TenantId::trusted(tenant),
        aggregate_type: AggregateType::trusted(aggregate_type),
        id: AggregateId::trusted(id),
    }
}

/// An account of the default tenant.
pub(crate) fn key(id: &str) -> AggregateKey {
    key_of("(0)", "account", id)
}

/// Accounts that all lie in one partition, and the partition.
pub(crate) fn neighbours(count: usize) -> (PartitionNo, Vec<AggregateKey>) {
    let partition = PartitionNo(0);
    let keys = (0..)
        .map(|number| key(&format!("neighbour-{number}")))
        .filter(|key| partition_of(key, PARTITIONS) == partition)
        .take(count)
        .collect();
    (partition, keys)
}

/// Every partition of the store.
pub(crate) fn all_partitions() -> Vec<PartitionNo> {
    (0..PARTITIONS).map(PartitionNo).collect()
}

/// An id that the arguments decide.
pub(crate) fn uuid_of(parts: &[&str]) -> Uuid {
    Uuid::from_u128(xxh3_128(parts.join("\u{0}").as_bytes()))
}

/// A JSON text, kept as it is.
pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the suites write valid JSON")
}

/// An event without surprises.
pub(crate) fn event(body: &str) -> RecordedEvent {
    RecordedEvent {
        name: Arc::from("deposited"),
        revision: 1,
        body: raw(body),
    }
}

/// A small commit of one event. `position` and `committed_at` hold nonsense: the log ignores them.
pub(crate) fn commit(key: &AggregateKey, version: Version, request: &str) -> Commit {
    let id = uuid_of(&[&key.to_string(), &version.to_string(), request]);
    Commit {
        partition: partition_of(key, PARTITIONS),
        position: 77,
        key: key.clone(),
        version,
        request_id: RequestId::trusted(request),
        command_id: CommandId(id),
        command_type: Arc::from("deposit"),
        principal: Arc::from("ann"),
        owner: OwnerId::trusted("ann"),
        space: SpaceId::trusted("home"),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([event(&format!(r#"{{"amount":{version}}}"#))]),
        result: None,
        headers: [("channel".to_owned(), "web".to_owned())].into(),
        committed_at: 77,
    }
}

/// Appends a commit that the log has to take.
pub(crate) async fn append(log: &dyn CommitLog, commit: &Commit) -> AppendReceipt {
    match log.append(Arc::new(commit.clone())).await {
        Ok(receipt) => receipt,
        Err(error) => panic!("{} has to be appended, but: {error:?}", name_of(commit)),
    }
}

/// Appends a commit that the log has to refuse, and answers with how it did.
pub(crate) async fn refusal(log: &dyn CommitLog, commit: &Commit) -> AppendError {
    match log.append(Arc::new(commit.clone())).await {
        Ok(receipt) => panic!("{} must not be appended, but: {receipt:?}", name_of(commit)),
        Err(error) => error,
    }
}

/// Appends versions 1 to `newest` of an aggregate, and answers with them as the log has them.
pub(crate) async fn append_versions(
    log: &dyn CommitLog,
    key: &AggregateKey,
    newest: Version,
) -> Vec<Commit> {
    let mut commits = Vec::new();
    for version in 1..=newest {
        let commit = commit(key, version, &format!("{}-{version}", key.id));
        let receipt = append(log, &commit).await;
        commits.push(stored(commit, receipt));
    }
    commits
}

/// All that the log holds of an aggregate.
pub(crate) async fn everything(log: &dyn CommitLog, key: &AggregateKey) -> Vec<Commit> {
    log.read_aggregate(key, 0, 1_000_000, 1_000_000)
        .await
        .unwrap()
}

/// All that the log holds of a partition.
pub(crate) async fn everything_in(log: &dyn CommitLog, partition: PartitionNo) -> Vec<Commit> {
    log.read_partition(partition, 0, 1_000_000).await.unwrap()
}

/// A commit as it has to come back from the log that gave this receipt.
pub(crate) fn stored(commit: Commit, receipt: AppendReceipt) -> Commit {
    Commit {
        position: receipt.position,
        committed_at: receipt.committed_at,
        ..commit
    }
}

/// A commit in a message.
pub(crate) fn name_of(commit: &Commit) -> String {
    format!(
        "version {} of {} (request {})",
        commit.version, commit.key, commit.request_id
    )
}

/// Checks that a commit came back whole, byte for byte.
#[track_caller]
pub(crate) fn assert_same(found: &Commit, expected: &Commit) {
    let name = name_of(expected);
    assert_eq!(found.key, expected.key, "key of {name}");
    assert_eq!(found.version, expected.version, "version of {name}");
    assert_eq!(found.partition, expected.partition, "partition of {name}");
    assert_eq!(found.position, expected.position, "position of {name}");
    assert_eq!(
        found.request_id, expected.request_id,
        "request id of {name}"
    );
    assert_eq!(
        found.command_id, expected.command_id,
        "command id of {name}"
    );
    assert_eq!(
        found.command_type, expected.command_type,
        "command type of {name}"
    );
    assert_eq!(found.principal, expected.principal, "principal of {name}");
    assert_eq!(found.owner, expected.owner, "owner of {name}");
    assert_eq!(found.space, expected.space, "space of {name}");
    assert_eq!(found.origin, expected.origin, "origin of {name}");
    assert_eq!(found.headers, expected.headers, "headers of {name}");
    assert_eq!(found.committed_at, expected.committed_at, "time of {name}");
    let result = |commit: &Commit| commit.result.as_ref().map(|result| result.get().to_owned());
    assert_eq!(result(found), result(expected), "result of {name}");

    assert_eq!(
        found.events.len(),
        expected.events.len(),
        "number of events of {name}"
    );
    for (index, (found, expected)) in found.events.iter().zip(&*expected.events).enumerate() {
        assert_eq!(found.name, expected.name, "name of event {index} of {name}");
        assert_eq!(
            found.revision, expected.revision,
            "revision of event {index} of {name}"
        );
        assert_same_text(
            found.body.get(),
            expected.body.get(),
            &format!("event {index} of {name}"),
        );
    }
}

/// Checks that commits came back whole and in order.
#[track_caller]
pub(crate) fn assert_all_same(found: &[Commit], expected: &[Commit]) {
    let versions = |commits: &[Commit]| -> Vec<String> { commits.iter().map(name_of).collect() };
    assert_eq!(
        versions(found),
        versions(expected),
        "other commits than expected"
    );
    for (found, expected) in found.iter().zip(expected) {
        assert_same(found, expected);
    }
}

/// Compares texts that may be too large to be shown.
#[track_caller]
pub(crate) fn assert_same_text(found: &str, expected: &str, what: &str) {
    if found == expected {
        return;
    }
    let same = found
        .bytes()
        .zip(expected.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let excerpt = |text: &str| {
        let bytes: Vec<u8> = text
            .bytes()
            .skip(same.saturating_sub(10))
            .take(40)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    panic!(
        "{what} came back as another text, from byte {same} on: found {:?} ({} bytes), \
         written {:?} ({} bytes)",
        excerpt(found),
        found.len(),
        excerpt(expected),
        expected.len(),
    );
}

/// A snapshot of an aggregate that holds a version.
pub(crate) fn snapshot(key: &AggregateKey, version: Version) -> StoredSnapshot {
    StoredSnapshot {
        key: key.clone(),
        version,
        partition: partition_of(key, PARTITIONS),
        position: version + 1000,
        facts: AggregateFacts {
            owner: OwnerId::trusted("ann"),
            space: SpaceId::trusted("home"),
            first_operator: Arc::from("ann"),
            operator: Arc::from("bob"),
            first_event_time: 1_767_225_600_001,
            event_time: 1_767_225_600_002,
            event_id: Some(CommandId(uuid_of(&["event", &version.to_string()]))),
            ..AggregateFacts::default()
        },
        state: format!(r#"{{"balance":{version}}}"#),
        state_revision: 1,
        recent_requests: None,
        snapshot_time: 0,
    }
}

/// Checks that a snapshot came back whole, byte for byte; storage itself gives `snapshot_time`.
#[track_caller]
pub(crate) fn assert_same_snapshot(found: &StoredSnapshot, expected: &StoredSnapshot) {
    let name = format!(
        "the snapshot of version {} of {}",
        expected.version, expected.key
    );
    assert_eq!(found.key, expected.key, "key of {name}");
    assert_eq!(found.version, expected.version, "version of {name}");
    assert_eq!(found.partition, expected.partition, "partition of {name}");
    assert_eq!(found.position, expected.position, "position of {name}");
    assert_eq!(found.facts, expected.facts, "facts of {name}");
    assert_eq!(
        found.state_revision, expected.state_revision,
        "state revision of {name}"
    );
    assert_same_text(
        &found.state,
        &expected.state,
        &format!("the state of {name}"),
    );
    assert_eq!(
        found.recent_requests, expected.recent_requests,
        "recent requests of {name}"
    );
    assert!(
        found.snapshot_time > 0,
        "snapshot_time {} of {name}",
        found.snapshot_time
    );
}
