#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// Sources made of texts, with no file of the machine's.
struct Given {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl Given {
    fn nothing() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            sources: Sources::default(),
        }
    }

    fn file(text: &str) -> Self {
        let mut given = Self::nothing();
        given.sources.file = Some(given.write("node.toml", text));
        given
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.push((name.into(), value.into()));
        self
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.sources
            .overrides
            .push((key.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> Config {
        Config::load(&self.sources).unwrap_or_else(|error| panic!("{error}"))
    }

    fn faults(&self) -> Vec<String> {
        let error = Config::load(&self.sources).unwrap_err();
        let folder = format!("{}/", self.folder.path().display());
        error
            .faults()
            .iter()
            .map(|fault| fault.to_string().replace(&folder, ""))
            .collect()
    }
}

#[test]
fn without_any_source_the_defaults_of_the_code_hold() {
    let loaded = Given::nothing().load();
    assert_eq!(loaded.print(), Config::default().print());
    assert_eq!(loaded.storage.url.expose(), "sqlite://data/wow.db");
}

#[test]
fn a_later_source_wins_over_an_earlier_one() {
    let file = "[http]\nbind = \"127.0.0.1:1\"\nworkers = 3\n[wait]\ntimeout = \"7s\"";
    let config = Given::file(file)
        .variable("WOW__HTTP__BIND", "127.0.0.1:2")
        .variable("WOW__RUNTIME__LANE_QUEUE", "9")
        .variable("WOW__RUNTIME__IN_FLIGHT", "100")
        .set("runtime.lane-queue", "10")
        .load();
    assert_eq!(config.http.bind.port(), 2, "environment over file");
    assert_eq!(config.http.worker_count(), 3, "file over default");
    assert_eq!(config.wait.timeout, Duration::from_secs(7));
    assert_eq!(config.runtime.lane_queue, 10, "flag over environment");
    assert_eq!(config.runtime.in_flight, 100);
    assert_eq!(config.log.partitions, 64, "default");
}

#[test]
fn a_later_source_can_take_back_what_an_earlier_one_set() {
    let file = "[context]\nalias = \"shop\"\n[http]\nworkers = 3";
    let config = Given::file(file)
        .variable("WOW__CONTEXT__ALIAS", "")
        .variable("WOW__HTTP__WORKERS", "auto")
        .load();
    assert_eq!(config.context.alias, None);
    assert_eq!(config.http.workers, Auto::Auto);
}

#[test]
fn the_file_in_the_folder_is_read_when_it_is_there() {
    let mut given = Given::nothing();
    given.sources.folder = Some(given.folder.path().to_owned());
    assert_eq!(given.load().log.partitions, 64, "not there, and not missed");
    given.write(DEFAULT_FILE, "[log]\npartitions = 8");
    assert_eq!(given.load().log.partitions, 8);
}

#[test]
fn a_named_file_has_to_be_there() {
    let mut given = Given::nothing();
    given.sources.file = Some(given.folder.path().join("absent.toml"));
    let faults = given.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("absent.toml can't be read: "),
        "{faults:?}"
    );
}

#[test]
fn all_faults_of_all_sources_are_reported_at_once() {
    let file = "[http]\nbind = \"localhost:80\"\nmax-body-bytes = 5\n[htp]\nport = 1\n\
                [runtime]\nlane-queue = 0\nin-flight = -1\n[log]\nfoo = 1\n\
                [wait]\ntimeout = \"10m\"\n[access]\nmode = \"jwt\"";
    let faults = Given::file(file)
        .variable("WOW__HTTP__WORKRES", "2")
        .variable("WOW__LOG__PARTITIONS", "many")
        .set("telemetry.format", "xml")
        .faults();
    let expected = [
        "http.bind is \"localhost:80\" (node.toml); use an IP address with a port, such as \
         \"127.0.0.1:8080\" or \"[::1]:8080\"",
        "http.max-body-bytes is 5 (node.toml); use a size with its unit, such as \"64KiB\", \
         \"1MiB\" or \"10MB\"",
        "log.partitions is \"many\" (WOW__LOG__PARTITIONS); use a whole number",
        "runtime.lane-queue is 0 (node.toml); use 1 to 65536",
        "runtime.in-flight is -1 (node.toml); use a whole number",
        "telemetry.format is \"xml\" (command line); use \"text\" or \"json\", or \"auto\"",
        "http.workres is unknown (WOW__HTTP__WORKRES); did you mean http.workers?",
        "log.foo is unknown (node.toml); wow config print lists all keys",
        "htp.port is unknown (node.toml); wow config print lists all keys",
        "wait.timeout, wait.max-timeout: the default must not be longer than the longest; raise \
         the second or lower the first",
        "access.hs256-secret-file, access.jwks-file, access.pem-file: mode \"jwt\" needs exactly \
         one of these files to check tokens with",
        "access.issuer: mode \"jwt\" needs it, or any issuer's tokens would do",
        "access.audience: mode \"jwt\" needs it, or tokens for any other service would do",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn zero_is_no_bound() {
    let zero = |key: &str| Given::nothing().set(key, "0").faults();
    let size = |key: &str| Given::nothing().set(key, "0B").faults();
    let time = |key: &str| Given::nothing().set(key, "0s").faults();
    let bounds = [
        "http.workers",
        "http.max-connections",
        "storage.writers",
        "storage.connections",
        "log.partitions",
        "runtime.arbiters",
        "runtime.lane-queue",
        "runtime.in-flight",
        "runtime.max-live-aggregates",
        "runtime.conflict-retries",
        "runtime.recent-requests",
        "wait.max-waiters",
        "forward.in-flight",
    ];
    let sizes = [
        "http.max-body-bytes",
        "http.max-header-bytes",
        "http.max-url-bytes",
        "log.max-entry-bytes",
        "runtime.max-state-bytes",
    ];
    let times = [
        "http.header-timeout",
        "http.body-timeout",
        "http.idle-timeout",
        "storage.append-timeout",
        "storage.connect-timeout",
        "storage.statement-timeout",
        "runtime.idle-timeout",
        "runtime.decide-timeout",
        "runtime.shutdown-timeout",
        "wait.timeout",
        "wait.max-timeout",
        "membership.lease-ttl",
        "membership.hand-over-timeout",
        "forward.timeout",
        "subscriptions.poll",
    ];
    let faults = bounds
        .map(zero)
        .into_iter()
        .chain(sizes.map(size))
        .chain(times.map(time));
    for (faults, key) in faults.zip(bounds.iter().chain(&sizes).chain(&times)) {
        assert_eq!(faults.len(), 1, "{key}: {faults:?}");
        let is_range = faults[0].starts_with(&format!("{key} is ")) && faults[0].contains(" to ");
        assert!(is_range, "{faults:?}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_a_fault_that_shows_no_line_of_it() {
    let text = "[storage]\nurl = \"postgres://wow:hunter2@db/wow\" oops\n";
    let faults = Given::file(text).set("log.partitions", "0").faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("node.toml, line 2: "), "{faults:?}");
    assert!(!faults.concat().contains("hunter2"), "{faults:?}");
}

#[test]
fn a_key_written_twice_is_a_fault() {
    let faults = Given::file("[log]\npartitions = 1\npartitions = 2").faults();
    assert!(faults[0].contains("line 3: duplicate key"), "{faults:?}");
}

#[test]
fn a_value_in_the_place_of_a_section_is_a_fault() {
    let faults = Given::file("http = 5").faults();
    assert_eq!(
        faults,
        ["http is a section (node.toml); write [http] and its keys below"]
    );
    let faults = Given::nothing().variable("WOW__HTTP", "x").faults();
    assert_eq!(
        faults,
        ["http is a section (WOW__HTTP); write [http] and its keys below"]
    );
}

#[test]
fn a_variable_that_is_not_utf8_is_a_fault() {
    let mut given = Given::nothing();
    let broken = OsString::from_vec(vec![b'a', 0xff]);
    given
        .sources
        .environment
        .push(("WOW__CONTEXT__NAME".into(), broken.clone()));
    given.sources.environment.push(("UNRELATED".into(), broken));
    assert_eq!(
        given.faults(),
        ["WOW__CONTEXT__NAME is not UTF-8; environment variables have to be"]
    );
}

#[test]
fn what_is_printed_can_be_loaded_and_says_where_values_come_from() {
    let config = Given::file("[router]\norder = \"local\"\n[context]\nalias = \"sh.op\"")
        .variable("WOW__WAIT__TIMEOUT", "90s")
        .set("http.bind", "[::1]:8080")
        .load();
    let printed = config.print();
    assert!(
        printed.contains("timeout = \"1m 30s\"  # WOW__WAIT__TIMEOUT\n"),
        "{printed}"
    );
    assert!(
        printed.contains("bind = \"[::1]:8080\"  # command line\n"),
        "{printed}"
    );
    assert!(printed.contains("partitions = 64\n"), "{printed}");
    let again = Given::file(&printed).load();
    let values = |config: &Config| -> Vec<_> {
        config
            .printed_keys()
            .into_iter()
            .map(|key| (key.section, key.key, key.value))
            .collect()
    };
    assert_eq!(values(&again), values(&config));
    assert_eq!(again.router.of("order"), RouterKind::Local);
    assert_eq!(again.router.of("cart"), RouterKind::Partitioned);
}

#[test]
fn secrets_are_neither_printed_nor_shown_in_faults() {
    let given = Given::nothing()
        .variable("WOW__STORAGE__URL", "postgres://wow:hunter2@db/wow")
        .variable("WOW_CLUSTER_TOKEN", "hunter2hunter2hunter2")
        .variable("WOW_ADMIN_TOKEN", "hunter2hunter2hunter2");
    let config = given.load();
    assert_eq!(
        config.cluster.token.as_ref().unwrap().expose(),
        "hunter2hunter2hunter2"
    );
    assert!(!format!("{config:?}{}", config.print()).contains("hunter2"));
    let faults = Given::nothing()
        .variable("WOW__STORAGE__URL", "postgre://wow:hunter2@db/wow")
        .variable("WOW_CLUSTER_TOKEN", "hunter2")
        .faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(!faults.concat().contains("hunter2"), "{faults:?}");
}

#[test]
fn a_password_is_refused_on_the_command_line() {
    let url = "postgres://wow:hunter2@db/wow";
    let faults = Given::nothing().set("storage.url", url).faults();
    assert_eq!(
        faults,
        ["storage.url holds a password on the command line; set it in a file or the environment"]
    );
    Given::nothing()
        .set("storage.url", "postgres://wow@db/wow")
        .load();
}

#[test]
fn a_token_comes_from_its_file_or_its_variable() {
    let given = Given::nothing();
    let path = given.write("token", "0123456789abcdef0123456789abcdef\n");
    let given = given.set("admin.token-file", path.to_str().unwrap());
    let token = given.load().admin.token.unwrap();
    assert_eq!(
        token.expose(),
        "0123456789abcdef0123456789abcdef",
        "without the line's end"
    );
    let both = given
        .variable("WOW_ADMIN_TOKEN", "fedcba9876543210")
        .faults();
    assert_eq!(
        both,
        ["admin.token-file: WOW_ADMIN_TOKEN holds a token too; take one out"]
    );
    let absent = Given::nothing()
        .set("cluster.token-file", "/nowhere/token")
        .faults();
    assert!(absent[0].starts_with("cluster.token-file: /nowhere/token can't be read: "));
}

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
fn r70_a_node_has_a_name_from_its_key_its_variable_or_its_host() {
    let named = |given: Given| given.load().node_name().as_str().to_owned();
    let variable = || Given::nothing().variable("WOW_NODE_NAME", "pod-7");
    assert_eq!(named(variable()), "pod-7");
    assert_eq!(named(variable().set("node.name", "own")), "own");
    assert!(named(Given::nothing()).ends_with(":8080"));
    let bad = Given::nothing().variable("WOW_NODE_NAME", "a/b").faults();
    assert!(
        bad[0].starts_with("WOW_NODE_NAME: the name can't be used"),
        "{bad:?}"
    );
}

#[test]
fn the_kafka_router_needs_brokers() {
    let kafka = Given::nothing().set("router.order", "kafka");
    assert!(kafka.faults()[0].contains("name the brokers"));
    let config = kafka.set("kafka.brokers", "127.0.0.1:9092").load();
    assert_eq!(config.router.of("order"), RouterKind::Kafka);
}
