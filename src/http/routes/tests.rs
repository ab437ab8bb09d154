#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use wow_kernel::model::{AggregateSpec, CommandSpec, CreationRule, Method, OwnerPolicy};
use wow_kernel::registry::{Registry, RegistryBuilder};

use super::*;
use crate::http::fixture::Noted;
use crate::http::fixture::{aggregate, command, registry, spec};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::model::{
    Aggregate, Command, CommandSet, Decide, DecideContext, Decision, Evolve, Rejection, Variable,
    VariableSource,
};

fn table() -> RouteTable {
    RouteTable::new(&registry()).expect("the routes fit together")
}

/// What a request leads to: the route's path and the values of its variables.
fn found(table: &RouteTable, verb: Verb, path: &str) -> Option<(String, Vec<String>)> {
    match table.find(path, Some(verb)) {
        Found::Route(route, values) => {
            let names = route.parameters.iter().map(Parameter::name);
            let values = names
                .zip(&values)
                .map(|(name, value)| format!("{name}={value}"));
            Some((route.origin(), values.collect()))
        }
        _ => None,
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_form_of_a_commands_path_leads_to_it() {
    let table = table();
    for (verb, path, command, values) in [
        (
            Verb::Post,
            "/account/create_account",
            "create_account' of 'account",
            &[][..],
        ),
        (
            Verb::Post,
            "/account/a-1/prepare",
            "prepare' of 'account",
            &["id=a-1"],
        ),
        (
            Verb::Put,
            "/account/a-1/entry",
            "entry' of 'account",
            &["id=a-1"],
        ),
        (
            Verb::Delete,
            "/account/a-1",
            "delete_aggregate' of 'account",
            &["id=a-1"],
        ),
        (
            Verb::Put,
            "/account/a-1/recover",
            "recover_aggregate' of 'account",
            &["id=a-1"],
        ),
        (
            Verb::Put,
            "/account/a-1/tags",
            "apply_resource_tags' of 'account",
            &["id=a-1"],
        ),
        (
            Verb::Post,
            "/owner/o/cart/add_cart_item",
            "add_cart_item' of 'cart",
            &["ownerId=o"],
        ),
        (
            Verb::Post,
            "/cart/add_cart_item",
            "add_cart_item' of 'cart",
            &[],
        ),
        (
            Verb::Delete,
            "/owner/o/cart",
            "delete_aggregate' of 'cart",
            &["ownerId=o"],
        ),
        (
            Verb::Post,
            "/tenant/t/owner/o/sales-order",
            "create_order' of 'order",
            &["tenantId=t", "ownerId=o"],
        ),
        (
            Verb::Post,
            "/owner/o/sales-order",
            "create_order' of 'order",
            &["ownerId=o"],
        ),
        (
            Verb::Post,
            "/tenant/t/sales-order",
            "create_order' of 'order",
            &["tenantId=t"],
        ),
        (Verb::Post, "/sales-order", "create_order' of 'order", &[]),
        (
            Verb::Patch,
            "/tenant/t/owner/o/sales-order/1/items/2",
            "pick' of 'order",
            &["tenantId=t", "ownerId=o", "id=1", "itemId=2"],
        ),
        (Verb::Put, "/sales-order/rename", "rename' of 'order", &[]),
        (
            Verb::Put,
            "/sales-order/7/rename",
            "rename' of 'order",
            &["id=7"],
        ),
        (
            Verb::Put,
            "/billing/tenant/t/invoice/9/bill",
            "bill' of 'billing.invoice",
            &["tenantId=t", "id=9"],
        ),
    ] {
        let (origin, bound) = found(&table, verb, path).unwrap_or_else(|| panic!("{verb} {path}"));
        assert!(origin.contains(command), "{verb} {path}: {origin}");
        assert_eq!(bound, values, "{verb} {path}");
    }
}

#[test]
fn a_part_that_a_type_has_no_use_for_is_no_path_of_it() {
    let table = table();
    for (verb, path) in [
        (Verb::Post, "/tenant/t/account/create_account"),
        (Verb::Post, "/owner/o/account/create_account"),
        (Verb::Post, "/account/a-1/create_account"),
        (Verb::Post, "/owner/o/cart/o/add_cart_item"),
        (Verb::Put, "/account/entry"),
        (Verb::Put, "/invoice/9/bill"),
        (Verb::Post, "/account/create_account/"),
        (Verb::Post, "//account/create_account"),
        (Verb::Post, "/"),
        (Verb::Post, ""),
    ] {
        assert_eq!(found(&table, verb, path), None, "{verb} {path}");
    }
}

#[test]
fn a_declared_put_or_patch_takes_post_and_a_built_in_route_does_not() {
    let table = table();
    for path in [
        "/account/a/entry",
        "/sales-order/1/items/2",
        "/owner/o/cart/view_cart",
    ] {
        assert!(found(&table, Verb::Post, path).is_some(), "{path}");
    }
    for (path, verbs) in [
        ("/account/a/recover", vec![Verb::Put]),
        ("/account/a/tags", vec![Verb::Put]),
        ("/account/a", vec![Verb::Delete]),
        ("/account/a/state", vec![Verb::Get]),
        ("/wow/command/send", vec![Verb::Post]),
    ] {
        let post = table.find(path, Some(Verb::Patch));
        assert!(
            matches!(post, Found::WrongVerb(found) if found == verbs),
            "{path}"
        );
    }
}

#[test]
fn every_type_has_its_reads() {
    let table = table();
    for (path, kind, values) in [
        ("/account/a/state", ReadKind::State, &["id=a"][..]),
        (
            "/account/a/state/3",
            ReadKind::StateAtVersion,
            &["id=a", "version=3"],
        ),
        ("/account/a/state/tracing", ReadKind::Tracing, &["id=a"]),
        (
            "/account/a/state/time/5",
            ReadKind::StateAtTime,
            &["id=a", "createTime=5"],
        ),
        ("/account/a/snapshot", ReadKind::Snapshot, &["id=a"]),
        (
            "/account/a/event/1/2",
            ReadKind::Commits,
            &["id=a", "headVersion=1", "tailVersion=2"],
        ),
        ("/owner/o/cart/state", ReadKind::State, &["ownerId=o"]),
        (
            "/owner/o/cart/state/4",
            ReadKind::StateAtVersion,
            &["ownerId=o", "version=4"],
        ),
        (
            "/tenant/t/owner/o/sales-order/1/state",
            ReadKind::State,
            &["tenantId=t", "ownerId=o", "id=1"],
        ),
        ("/sales-order/1/state/tracing", ReadKind::Tracing, &["id=1"]),
    ] {
        let (origin, bound) = found(&table, Verb::Get, path).expect(path);
        assert!(origin.contains(&format!("{kind:?} ")), "{path}: {origin}");
        assert_eq!(bound, values, "{path}");
    }
}

#[test]
fn segments_are_decoded_before_they_are_compared_and_bound() {
    let table = table();
    let (_, bound) = found(&table, Verb::Put, "/acc%6Funt/%C3%A9%20%2F/entry").unwrap();
    assert_eq!(bound, ["id=é /"]);
    assert!(matches!(
        table.find("/account/%FF/entry", Some(Verb::Put)),
        Found::Unreadable
    ));
    let deep = "/account".repeat(10_000);
    assert!(matches!(table.find(&deep, Some(Verb::Get)), Found::Nothing));
}

#[test]
fn a_plain_path_is_bound_without_a_copy() {
    let table = table();
    match table.find("/account/a-1/entry", Some(Verb::Put)) {
        Found::Route(_, values) => assert!(matches!(values[0], Cow::Borrowed("a-1"))),
        other => panic!("{other:?}"),
    }
}

command!(Touch {}, spec("touch", Method::Put, ""));
command!(Poke {}, spec("poke", Method::Post, ""));
command!(
    Make {},
    CommandSpec {
        creation: CreationRule::Creates,
        ..spec("make", Method::Post, "make")
    }
);
aggregate!(Twice, AggregateSpec::new("twice"), [Touch, Poke]);
aggregate!(Shadowed, AggregateSpec::new("shadowed"), [Touch, Make]);

command!(
    Swallow {},
    CommandSpec {
        variables: &[Variable {
            field: "x",
            name: "x",
            source: VariableSource::Path
        }],
        ..spec("swallow", Method::Put, "{x}")
    }
);
aggregate!(Greedy, AggregateSpec::new("greedy"), [Swallow]);

command!(Unbound {}, spec("unbound", Method::Put, "{nothing}"));
command!(
    Missing {},
    CommandSpec {
        variables: &[Variable {
            field: "x",
            name: "x",
            source: VariableSource::Path
        }],
        ..spec("missing", Method::Put, "missing")
    }
);
command!(Blank {}, spec("blank", Method::Put, "a b"));
aggregate!(
    Wrong,
    AggregateSpec::new("wrong"),
    [Unbound, Missing, Blank]
);
aggregate!(
    Nameless,
    AggregateSpec {
        resource: "",
        ..AggregateSpec::new("nameless")
    },
    []
);
aggregate!(
    Hidden,
    AggregateSpec {
        resource: "id",
        owner: OwnerPolicy::Never,
        ..AggregateSpec::new("hidden")
    },
    []
);

fn errors(build: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Vec<RouteError> {
    let registry: Registry = build(RegistryBuilder::new("example")).build().unwrap();
    RouteTable::new(&registry).err().unwrap_or_default()
}

#[test]
fn routes_that_one_request_could_mean_are_refused_and_both_are_named() {
    let all = errors(|builder| builder.register::<Twice>());
    assert_eq!(all.len(), 1, "{all:?}");
    let text = all[0].to_string();
    assert!(
        text.contains("'touch'") && text.contains("'poke'"),
        "{text}"
    );
    assert!(
        text.contains("POST /tenant/{tenantId}/twice/{id}"),
        "{text}"
    );

    let all = errors(|builder| builder.register::<Greedy>());
    let named = |name: &str| all.iter().any(|error| error.to_string().contains(name));
    assert!(
        named("'recover_aggregate'") && named("'apply_resource_tags'"),
        "{all:?}"
    );
}

#[test]
fn a_post_that_a_put_takes_too_gives_way_to_a_declared_one() {
    let registry = RegistryBuilder::new("example")
        .register::<Shadowed>()
        .build()
        .unwrap();
    let table = RouteTable::new(&registry).expect("nothing is ambiguous");
    assert!(
        found(&table, Verb::Post, "/shadowed/make")
            .unwrap()
            .0
            .contains("'make'")
    );
    assert!(
        found(&table, Verb::Post, "/shadowed/other")
            .unwrap()
            .0
            .contains("'touch'")
    );
}

#[test]
fn a_declaration_that_makes_no_path_is_refused() {
    let all = errors(|builder| builder.register::<Wrong>().register::<Nameless>());
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(
        all.iter()
            .all(|error| matches!(error, RouteError::Declaration { .. }))
    );
}

#[test]
fn a_resource_may_be_called_like_a_variable() {
    assert_eq!(errors(|builder| builder.register::<Hidden>()), []);
}

proptest! {
    #[test]
    fn an_id_of_any_characters_comes_through_the_path_as_it_is(id in "\\PC{1,40}") {
        let encoded = percent_encoding::utf8_percent_encode(&id, percent_encoding::NON_ALPHANUMERIC);
        let path = format!("/account/{encoded}/entry");
        let (_, bound) = found(&table(), Verb::Put, &path).unwrap();
        prop_assert_eq!(bound, [format!("id={id}")]);
    }

    #[test]
    fn no_path_breaks_the_search(path in "[/%a-zA-Z0-9{}.\\PC]{0,200}") {
        let table = table();
        for verb in [None, Some(Verb::Get), Some(Verb::Post)] {
            let _ = table.find(&path, verb);
        }
    }
}
