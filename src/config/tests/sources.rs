//! Which source wins, and what is printed of it.

use super::*;

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
fn the_password_of_the_database_comes_from_one_place() {
    let given = Given::nothing().set("storage.url", "postgres://wow@db/wow");
    assert_eq!(given.load().storage.password, None);
    let path = given.write("password", "hunter2\n");
    let from_file = given.set("storage.password-file", path.to_str().unwrap());
    let password = from_file.load().storage.password.unwrap();
    assert_eq!(password.expose(), "hunter2", "a file ends with a newline");
    let both = from_file.variable("WOW_STORAGE_PASSWORD", "hunter3");
    let expected = "storage.password-file: WOW_STORAGE_PASSWORD holds one too; take one out";
    assert_eq!(both.faults(), [expected]);

    let from_variable = Given::nothing()
        .set("storage.url", "postgres://wow@db/wow")
        .variable("WOW_STORAGE_PASSWORD", "hunter3");
    let config = from_variable.load();
    assert_eq!(
        config.storage.password.as_ref().unwrap().expose(),
        "hunter3"
    );
    assert!(!format!("{config:?}{}", config.print()).contains("hunter"));
    let faults = Given::nothing()
        .variable("WOW__STORAGE__URL", "postgres://wow:hunter4@db/wow")
        .variable("WOW_STORAGE_PASSWORD", "hunter3")
        .faults();
    assert!(faults[0].contains("holds a password too"), "{faults:?}");
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
        ["admin.token-file: WOW_ADMIN_TOKEN holds one too; take one out"]
    );
    let absent = Given::nothing()
        .set("cluster.token-file", "/nowhere/token")
        .faults();
    assert!(absent[0].starts_with("cluster.token-file: /nowhere/token can't be read: "));
}

#[test]
fn r70_a_node_has_a_name_from_its_key_its_variable_or_its_host() {
    let named = |given: Given| given.load().node_name().as_str().to_owned();
    let variable = || Given::nothing().variable("WOW_NODE_NAME", "pod-7");
    assert_eq!(named(variable()), "pod-7");
    assert!(
        variable()
            .load()
            .print()
            .contains("name = \"pod-7\"  # WOW_NODE_NAME\n")
    );
    assert_eq!(named(variable().set("node.name", "own")), "own");
    assert!(named(Given::nothing()).ends_with(":8080"));
    let bad = Given::nothing().variable("WOW_NODE_NAME", "a/b").faults();
    assert!(
        bad[0].starts_with("WOW_NODE_NAME: the name can't be used"),
        "{bad:?}"
    );
}
