//! What can't be read, one key at a time.

use super::*;

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
