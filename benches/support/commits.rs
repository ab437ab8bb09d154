//! Commits as a lane makes them: one event of about 150 bytes.

use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;
use wow_kernel::commit::{Commit, RecordedEvent};
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, RequestId, SpaceId,
    TenantId, Version,
};
use wow_kernel::partition::partition_of;

/// The partitions of every log in a bench.
pub(crate) const PARTITIONS: u32 = 64;

/// What fills an event up to the size that is usual.
pub(crate) fn filler() -> String {
    "x".repeat(60)
}

/// The next commit of an account.
pub(crate) fn commit(id: &AggregateId, version: Version) -> Arc<Commit> {
    let key = AggregateKey {
        tenant: TenantId::default_tenant(),
        aggregate_type: AggregateType::trusted("account"),
        id: id.clone(),
    };
    let body = format!(
        r#"{{"sourceId":"0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f","amount":{version},"text":"{}"}}"#,
        filler()
    );
    Arc::new(Commit {
        partition: partition_of(&key, PARTITIONS),
        position: 0,
        key,
        version,
        request_id: RequestId::trusted(Uuid::now_v7().to_string()),
        command_id: CommandId(Uuid::now_v7()),
        command_type: Arc::from("entry"),
        principal: Arc::from("ann"),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([RecordedEvent {
            name: Arc::from("amount_entered"),
            revision: 1,
            body: RawValue::from_string(body).unwrap(),
        }]),
        result: None,
        headers: [(
            "traceparent".to_owned(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
        )]
        .into(),
        committed_at: 0,
    })
}
