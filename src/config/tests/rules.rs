//! What must hold between keys.

use super::*;

#[test]
fn open_access_is_refused_where_others_reach_the_port() {
    let open = Given::nothing().set("http.bind", "0.0.0.0:8080");
    assert!(open.faults()[0].starts_with("http.bind, access.mode: others than this machine"));
    open.set("access.allow-open-on-public", "true").load();
    for loopback in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1"] {
        Given::nothing().set("http.bind", loopback).load();
    }
}

#[test]
fn keys_that_nothing_would_use_are_refused_in_open_mode() {
    let faults = Given::nothing()
        .set("access.jwks-file", "keys.json")
        .faults();
    assert!(faults[0].contains("nothing checks a token"), "{faults:?}");
}

#[test]
fn jwt_access_needs_one_source_of_keys_an_issuer_and_an_audience() {
    let jwt = || {
        Given::nothing()
            .set("access.mode", "jwt")
            .set("access.issuer", "https://id.example")
            .set("access.audience", "wow")
            .set("access.pem-file", "key.pem")
    };
    jwt().load();
    let two = jwt().set("access.jwks-file", "keys.json").faults();
    assert!(two[0].contains("exactly one of these files"), "{two:?}");
    jwt().set("http.bind", "0.0.0.0:8080").load();
}

#[test]
fn the_admin_port_needs_a_token_where_others_reach_it() {
    let admin = Given::nothing().set("admin.bind", "0.0.0.0:9091");
    assert!(admin.faults()[0].starts_with("admin.bind, admin.token-file, WOW_ADMIN_TOKEN: others"));
    admin.variable("WOW_ADMIN_TOKEN", "0123456789abcdef").load();
}

#[test]
fn two_ports_are_never_one() {
    let faults = Given::nothing()
        .set("admin.bind", "127.0.0.1:8080")
        .faults();
    assert!(
        faults[0].starts_with("http.bind, admin.bind: they listen on one"),
        "{faults:?}"
    );
    Given::nothing()
        .set("admin.bind", "127.0.0.1:0")
        .set("http.bind", "127.0.0.1:0")
        .load();
    Given::nothing().set("admin.bind", "127.0.0.1:9090").load();
}

#[test]
fn r76_a_cluster_needs_a_token_a_shared_database_and_an_address() {
    let faults = Given::nothing()
        .set("cluster.enabled", "true")
        .set("cluster.bind", "0.0.0.0:9090")
        .set("runtime.shutdown-timeout", "30s")
        .faults();
    let starts = [
        "cluster.enabled, cluster.token-file, WOW_CLUSTER_TOKEN: a cluster needs a token",
        "cluster.enabled, storage.url: the nodes of a cluster share one database",
        "cluster.bind, cluster.advertise: other nodes can't connect",
        "runtime.shutdown-timeout, membership.hand-over-timeout: a stop hands partitions over",
    ];
    assert_eq!(faults.len(), starts.len(), "{faults:?}");
    for (fault, start) in faults.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
    let weak = Given::nothing()
        .set("cluster.enabled", "true")
        .set("storage.url", "postgres://db/wow")
        .variable("WOW_CLUSTER_TOKEN", "weak")
        .faults();
    assert_eq!(
        weak.len(),
        1,
        "a faulty token is not also a missing one: {weak:?}"
    );
    let config = Given::nothing()
        .set("cluster.enabled", "true")
        .set("cluster.bind", "0.0.0.0:9090")
        .set("cluster.advertise", "node-1:9090")
        .set("storage.url", "postgres://db/wow")
        .variable("WOW_CLUSTER_TOKEN", "0123456789abcdef")
        .load();
    assert_eq!(config.cluster.advertised(), "node-1:9090");
    assert_eq!(config.drain_delay(), Duration::from_secs(5), "R34");
}

#[test]
fn values_of_their_own_follow_from_the_other_keys() {
    let alone = Given::nothing().load();
    assert_eq!(
        alone.drain_delay(),
        Duration::ZERO,
        "R34: no balancer to notice"
    );
    assert!(alone.storage.migrates_at_start());
    assert_eq!(
        (
            alone.storage.writer_count(),
            alone.storage.connection_count()
        ),
        (1, 4)
    );
    let shared = Given::nothing().set("storage.url", "mysql://db/wow").load();
    assert!(!shared.storage.migrates_at_start());
    assert_eq!(
        (
            shared.storage.writer_count(),
            shared.storage.connection_count()
        ),
        (2, 10)
    );
    let faults = Given::nothing().set("storage.writers", "2").faults();
    assert!(faults[0].contains("SQLite takes one writer"), "{faults:?}");
}

#[test]
fn the_kafka_router_needs_brokers() {
    let kafka = Given::nothing().set("router.order", "kafka");
    assert!(kafka.faults()[0].contains("name the brokers"));
    let config = kafka.set("kafka.brokers", "127.0.0.1:9092").load();
    assert_eq!(config.router.of("order"), RouterKind::Kafka);
}
