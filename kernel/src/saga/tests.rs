//! A saga's submissions: ids, identity, depth (R83).

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::commit::Headers;
use crate::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, PartitionNo, TenantId,
};
use crate::model::{Decide, DecideContext, Decision, Evolve, Rejection, Saga, SagaEntry};
use crate::registry::RegistryBuilder;
use crate::{Aggregate, Command, Event};

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(owner = "always", commands(Bill))]
struct Order {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
struct Bill {}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum OrderEvent {
    Billed,
}

impl Evolve for Order {
    type Event = OrderEvent;

    fn evolve(&mut self, _event: &OrderEvent) {}
}

impl Decide<Bill> for Order {
    async fn decide(
        &self,
        _command: &Bill,
        _context: &DecideContext,
    ) -> Result<Decision<OrderEvent>, Rejection> {
        Ok(Decision::event(OrderEvent::Billed))
    }
}

struct Billing;

impl Saga for Billing {
    type Aggregate = Order;

    const NAME: &'static str = "billing";

    fn handle(&self, _event: &OrderEvent, _entry: &SagaEntry<'_, Order>) -> Vec<SagaCommand> {
        Vec::new()
    }
}

fn registry() -> Registry {
    RegistryBuilder::new("shop")
        .register::<Order>()
        .saga(Billing)
        .build()
        .unwrap()
}

fn entry() -> Commit {
    Commit {
        partition: PartitionNo(7),
        position: 42,
        key: AggregateKey {
            tenant: TenantId::trusted("acme"),
            aggregate_type: AggregateType::trusted("order"),
            id: AggregateId::trusted("o-1"),
        },
        version: 1,
        request_id: RequestId::trusted("r"),
        command_id: CommandId(uuid::Uuid::nil()),
        command_type: Arc::from("bill"),
        principal: Arc::from("ann"),
        owner: OwnerId::trusted("ann"),
        space: SpaceId::trusted("home"),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([]),
        result: None,
        headers: Headers::new(),
        committed_at: 0,
    }
}

fn submitted(
    entry: &Commit,
    command: SagaCommand,
    index: SagaIndex,
) -> Result<Submission, CommandError> {
    let registry = registry();
    submission(&registry, &registry.sagas()[0], entry, command, index)
}

fn bill() -> SagaCommand {
    SagaCommand::to("b-1", Bill {})
}

fn id_of(submission: &Submission) -> &str {
    match &submission.request_id {
        Some(SubmittedRequestId::System(id)) => id.as_str(),
        other => panic!("a saga names its requests itself: {other:?}"),
    }
}

#[test]
fn r83_a_command_has_the_same_request_id_whenever_its_entry_is_handled() {
    for _ in 0..2 {
        let first = submitted(&entry(), bill(), SagaIndex::Command(0)).unwrap();
        assert_eq!(id_of(&first), "wow:s:shop:billing:7:42:0");
        let third = submitted(&entry(), bill(), SagaIndex::Command(2)).unwrap();
        assert_eq!(id_of(&third), "wow:s:shop:billing:7:42:2");
    }
}

#[test]
fn r83_answers_to_refusals_never_meet_commands_or_each_other() {
    let mut all = std::collections::HashSet::new();
    for index in 0..50 {
        assert!(all.insert(SagaIndex::Command(index).number()));
        for answer in 0..50 {
            let refused = SagaIndex::Answer {
                refused: index,
                answer,
            };
            assert!(all.insert(refused.number()));
        }
    }
}

#[test]
fn r83_a_command_is_the_sagas_own_and_belongs_to_its_entry() {
    let submission = submitted(&entry(), bill(), SagaIndex::Command(0)).unwrap();
    assert!(submission.principal.is_service());
    assert_eq!(submission.principal.subject_text(), "billing");
    assert_eq!(submission.permits, PermitClass::Internal);
    assert_eq!(submission.wait.stage, Stage::Processed);
    let cause = submission.facts.cause.clone().unwrap();
    assert_eq!(
        cause,
        Box::new(entry().identity()),
        "what nothing names is the entry's"
    );
    let facts = &submission.facts;
    assert!(facts.tenant.is_empty() && facts.owner.is_empty() && facts.space.is_empty());
    assert_eq!(facts.aggregate_id[0].1, "b-1");
}

#[test]
fn r83_what_the_saga_names_is_a_source_like_any_other() {
    let named = bill().tenant("other").owner("bob").space("work");
    let facts = submitted(&entry(), named, SagaIndex::Command(0))
        .unwrap()
        .facts;
    let said = [&facts.tenant, &facts.owner, &facts.space].map(|fact| fact[0].1.as_str());
    assert_eq!(said, ["other", "bob", "work"]);

    let nowhere = submitted(&entry(), bill().space(""), SagaIndex::Command(0)).unwrap();
    assert!(nowhere.facts.space.is_empty());
    assert!(nowhere.facts.cause.unwrap().space.is_empty());
}

#[test]
fn r83_a_loop_of_sagas_ends() {
    let mut entry = entry();
    for depth in 1..=SAGA_DEPTH_MAX {
        let submission = submitted(&entry, bill(), SagaIndex::Command(0)).unwrap();
        assert_eq!(submission.headers[DEPTH_HEADER], depth.to_string());
        // What the command commits carries its headers, and the next saga follows that.
        entry.headers = submission.headers;
    }
    let error = submitted(&entry, bill(), SagaIndex::Command(0)).unwrap_err();
    assert_eq!(error.code(), "wow.command.chain-too-deep");
}

#[test]
fn r83_a_command_is_traced_with_its_entry() {
    let mut traced = entry();
    for (name, value) in [
        ("traceparent", "00-1-2-01"),
        ("tracestate", "a=b"),
        ("other", "x"),
    ] {
        traced.headers.insert(name.into(), value.into());
    }
    let headers = submitted(&traced, bill(), SagaIndex::Command(0))
        .unwrap()
        .headers;
    let names: Vec<_> = headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["traceparent", "tracestate", DEPTH_HEADER]);
}

#[test]
fn r83_the_longest_request_id_is_an_id() {
    let newest = Commit {
        partition: PartitionNo(65_535),
        position: i64::MAX as u64,
        ..entry()
    };
    let index = SagaIndex::Answer {
        refused: 9_999,
        answer: 999,
    };
    let (context, name) = ("c".repeat(NAMES_BYTES_MAX - 48), "s".repeat(48));
    let id = request_id(&context, &name, &newest, index);
    assert!(id.as_str().len() <= 128, "{id}");

    let long = RegistryBuilder::new("c".repeat(NAMES_BYTES_MAX))
        .register::<Order>()
        .saga(Billing);
    assert!(long.build().is_err());
}
