//! What the derives write, seen through the traits they implement.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wow_kernel::access::Principal;
use wow_kernel::id::{AggregateId, Identity};
use wow_kernel::model::{
    AccessRule, Aggregate as _, Command as _, CreationRule, Decide, DecideContext, Decision,
    Event as _, Evolve, Method, OwnerPolicy, Purity, Rejection, Route, Variable, VariableSource,
};
use wow_kernel::registry::RegistryBuilder;
use wow_kernel::{Aggregate, Command, Event};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[serde(rename_all_fields = "camelCase")]
enum ParcelEvent {
    ParcelOpened {
        source_id: String,
        weight: u64,
    },
    #[event(name = "moved", alias = "parcel_moved", alias = "shifted", revision = 3, upcast = lift)]
    ParcelMovedOn(Vec<i64>),
    Closed,
}

fn lift(revision: u32, body: Value) -> Result<Value, String> {
    match revision {
        1 | 2 => Ok(json!([body])),
        _ => Err(format!("revision {revision} never was")),
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, garde::Validate, Command)]
#[command(
    creates,
    pure,
    blocking,
    lenient,
    validate,
    name = "open",
    method = "PATCH",
    action = "of/{part}/now",
    roles("clerk", "boss")
)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
struct OpenParcel {
    #[command(id)]
    parcel_id: String,
    #[command(path = "part")]
    part_no: u32,
    #[command(header = "X-Channel")]
    #[serde(rename = "via")]
    channel: String,
    #[garde(range(min = 1))]
    net_weight: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, recovers, policy = weekday)]
struct MoveParcel {
    #[command(id)]
    id: Option<String>,
}

fn weekday(principal: &Principal, _identity: &Identity) -> bool {
    principal.has_role("weekday")
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct CloseParcel {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates, action = "")]
struct Ping;

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    name = "parcel",
    resource = "parcels",
    context = "post",
    tenant = "(0)",
    owner = "always",
    revision = 7,
    read(owner),
    commands(OpenParcel, MoveParcel, CloseParcel, Ping),
    after(nothing_more, nothing_at_all)
)]
struct ParcelState {
    #[aggregate(id)]
    id: String,
    weight: u64,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Ping))]
struct PlainThing {}

impl Evolve for ParcelState {
    type Event = ParcelEvent;

    fn evolve(&mut self, event: &ParcelEvent) {
        if let ParcelEvent::ParcelOpened { weight, .. } = event {
            self.weight = *weight;
        }
    }
}

impl Evolve for PlainThing {
    type Event = ParcelEvent;

    fn evolve(&mut self, _event: &ParcelEvent) {}
}

macro_rules! decides {
    ($aggregate:ty: $($command:ty),*) => {$(
        impl Decide<$command> for $aggregate {
            async fn decide(
                &self,
                _command: &$command,
                _context: &DecideContext,
            ) -> Result<Decision<ParcelEvent>, Rejection> {
                Ok(Decision::event(ParcelEvent::Closed))
            }
        }
    )*};
}

decides!(ParcelState: OpenParcel, MoveParcel, CloseParcel, Ping);
decides!(PlainThing: Ping);

type Hooked = Result<Vec<ParcelEvent>, Rejection>;

fn nothing_more(_: &ParcelState, _: &[ParcelEvent], _: &DecideContext) -> Hooked {
    Ok(Vec::new())
}

fn nothing_at_all(_: &ParcelState, _: &[ParcelEvent], _: &DecideContext) -> Hooked {
    Ok(Vec::new())
}

#[test]
fn an_event_is_named_in_snake_case_unless_declared() {
    let found: Vec<_> = ParcelEvent::specs()
        .iter()
        .map(|s| (s.name, s.aliases, s.revision))
        .collect();
    let aliases: &[&str] = &["parcel_moved", "shifted"];
    assert_eq!(
        found,
        [
            ("parcel_opened", &[][..], 1),
            ("moved", aliases, 3),
            ("closed", &[][..], 1)
        ]
    );
    let upcast = ParcelEvent::specs()[1].upcast.unwrap();
    assert_eq!(upcast(1, json!(5)), Ok(json!([5])));
}

#[test]
fn an_event_is_read_back_from_the_body_it_was_written_as() {
    let opened = ParcelEvent::ParcelOpened {
        source_id: "a".into(),
        weight: u64::MAX,
    };
    for (event, index, body) in [
        (
            opened,
            0,
            r#"{"sourceId":"a","weight":18446744073709551615}"#,
        ),
        (ParcelEvent::ParcelMovedOn(vec![1, -2]), 1, "[1,-2]"),
        (ParcelEvent::Closed, 2, "{}"),
    ] {
        let written = event.encode().unwrap();
        assert_eq!((event.index(), written.get()), (index, body));
        assert_eq!(ParcelEvent::decode(index, &written).unwrap(), event);
    }
}

#[test]
fn a_body_of_another_shape_is_an_error() {
    let body = serde_json::value::to_raw_value(&json!({"weight": 1})).unwrap();
    assert!(ParcelEvent::decode(0, &body).is_err());
}

#[test]
fn a_command_declares_what_it_was_told() {
    let spec = OpenParcel::spec();
    assert_eq!((spec.name, spec.creation), ("open", CreationRule::Creates));
    assert_eq!(spec.purity, Purity::Pure);
    assert!(spec.blocking && !spec.strict && !spec.recovers && !spec.builtin);
    assert_eq!(spec.id_field, Some("parcelId"));
    assert_eq!(
        spec.route,
        Route {
            method: Method::Patch,
            action: "of/{part}/now"
        }
    );
    assert!(matches!(spec.access, AccessRule::Roles(["clerk", "boss"])));
    assert_eq!(spec.empty_body, None);
    assert_eq!(
        spec.variables,
        [
            Variable {
                field: "partNo",
                name: "part",
                source: VariableSource::Path
            },
            Variable {
                field: "via",
                name: "X-Channel",
                source: VariableSource::Header
            },
        ]
    );
}

#[test]
fn a_command_is_plain_unless_declared() {
    let spec = CloseParcel::spec();
    assert_eq!(
        (spec.name, spec.creation),
        ("close_parcel", CreationRule::Updates)
    );
    assert_eq!(
        spec.route,
        Route {
            method: Method::Put,
            action: "close_parcel"
        }
    );
    assert_eq!((spec.purity, spec.empty_body), (Purity::Impure, Some("{}")));
    assert!(spec.strict && !spec.blocking && !spec.recovers);
    assert!(matches!(spec.access, AccessRule::Default));
    assert!(CloseParcel {}.validate().is_empty());

    let spec = Ping::spec();
    assert_eq!(
        spec.route,
        Route {
            method: Method::Post,
            action: ""
        }
    );
    assert_eq!(spec.empty_body, Some("null"));
}

#[test]
fn a_policy_is_asked() {
    let spec = MoveParcel::spec();
    assert_eq!(spec.creation, CreationRule::Upserts);
    assert!(spec.recovers);
    assert!(matches!(spec.access, AccessRule::Policy(_)));
}

#[test]
fn r3_the_marked_field_names_the_aggregate() {
    let open = OpenParcel {
        parcel_id: "p1".into(),
        part_no: 1,
        channel: "shop".into(),
        net_weight: 0,
    };
    assert_eq!(open.aggregate_id().as_deref(), Some("p1"));
    assert_eq!(MoveParcel { id: None }.aggregate_id(), None);
    assert_eq!(CloseParcel {}.aggregate_id(), None);
}

#[test]
fn r5_faults_are_named_as_in_the_body() {
    let open = OpenParcel {
        parcel_id: "p1".into(),
        part_no: 1,
        channel: "shop".into(),
        net_weight: 0,
    };
    let names: Vec<_> = open
        .validate()
        .into_iter()
        .map(|error| error.name)
        .collect();
    assert_eq!(names, ["netWeight"]);
}

#[test]
fn an_aggregate_declares_what_it_was_told() {
    let spec = ParcelState::spec();
    assert_eq!((spec.name, spec.resource), ("parcel", "parcels"));
    assert_eq!(
        (spec.context, spec.static_tenant),
        (Some("post"), Some("(0)"))
    );
    assert_eq!((spec.owner, spec.state_revision), (OwnerPolicy::Always, 7));
    assert!(matches!(spec.read_access, AccessRule::Owner));
    assert_eq!(ParcelState::after_hooks().len(), 2);
    assert_eq!(ParcelState::initial(&AggregateId::trusted("p1")).id, "p1");
}

#[test]
fn an_aggregate_is_plain_unless_declared() {
    let spec = PlainThing::spec();
    assert_eq!((spec.name, spec.resource), ("plain_thing", "plain_thing"));
    assert_eq!((spec.context, spec.static_tenant), (None, None));
    assert_eq!((spec.owner, spec.state_revision), (OwnerPolicy::Never, 1));
    assert!(matches!(spec.read_access, AccessRule::Default));
    assert!(PlainThing::after_hooks().is_empty());
}

#[test]
fn every_command_of_the_list_is_registered() {
    let registry = RegistryBuilder::new("post")
        .register::<ParcelState>()
        .build()
        .unwrap();
    let own: Vec<_> = registry.aggregates()[0]
        .commands
        .iter()
        .filter(|command| !command.spec.builtin)
        .map(|command| command.name.to_string())
        .collect();
    assert_eq!(own, ["open", "move_parcel", "close_parcel", "ping"]);
}
