//! What must hold between keys. A key that is faulty by itself is left out: what follows from a
//! value that nobody set would only mislead.

use std::net::SocketAddr;

use super::Config;
use super::access::AccessModeSetting;
use super::admin::ADMIN_TOKEN_VARIABLE;
use super::cluster::CLUSTER_TOKEN_VARIABLE;
use super::fault::{Fault, Origin};
use super::keys::Origins;
use super::router::RouterKind;
use super::setting::Auto;
use super::storage::{Backend, STORAGE_PASSWORD_VARIABLE};

/// Adds the faults that lie between keys.
pub(super) fn check(config: &Config, origins: &Origins, faults: &mut Vec<Fault>) {
    let mut check = Check { faults };
    check.limits(config);
    check.ports(config);
    check.cluster(config);
    check.storage(config, origins);
    check.access(config);
}

struct Check<'a> {
    faults: &'a mut Vec<Fault>,
}

impl Check<'_> {
    fn demand(&mut self, holds: bool, keys: &[&'static str], advice: &str) {
        let is_certain = !self
            .faults
            .iter()
            .any(|fault| keys.iter().any(|key| fault.is_about(key)));
        if !holds && is_certain {
            self.faults.push(Fault::Conflict {
                keys: keys.to_vec(),
                advice: advice.to_owned(),
            });
        }
    }

    fn limits(&mut self, config: &Config) {
        self.demand(
            config.wait.timeout <= config.wait.max_timeout,
            &["wait.timeout", "wait.max-timeout"],
            "the default must not be longer than the longest; raise the second or lower the first",
        );
        self.demand(
            config.runtime.lane_queue <= config.runtime.in_flight,
            &["runtime.lane-queue", "runtime.in-flight"],
            "one aggregate can't queue more than the whole node; lower the first",
        );
    }

    fn ports(&mut self, config: &Config) {
        let mut ports = vec![
            ("http.bind", config.http.bind),
            ("admin.bind", config.admin.bind),
        ];
        if config.cluster.enabled {
            ports.push(("cluster.bind", config.cluster.bind));
        }
        for (index, (key, bind)) in ports.iter().enumerate() {
            for (other_key, other) in &ports[index + 1..] {
                self.demand(
                    !collide(*bind, *other),
                    &[key, other_key],
                    "they listen on one address; give each a port of its own",
                );
            }
        }
        self.demand(
            config.admin.bind.ip().is_loopback() || config.admin.token.is_some(),
            &["admin.bind", "admin.token-file", ADMIN_TOKEN_VARIABLE],
            "others than this machine reach the admin port; set a token, or bind 127.0.0.1",
        );
    }

    fn cluster(&mut self, config: &Config) {
        if !config.cluster.enabled {
            return;
        }
        self.demand(
            config.cluster.token.is_some(),
            &[
                "cluster.enabled",
                "cluster.token-file",
                CLUSTER_TOKEN_VARIABLE,
            ],
            "a cluster needs a token that all its nodes share; set it in a file or the variable",
        );
        self.demand(
            config.storage.url.backend().is_shared(),
            &["cluster.enabled", "storage.url"],
            "the nodes of a cluster share one database; use postgres:// or mysql://",
        );
        self.demand(
            !config.cluster.bind.ip().is_unspecified() || config.cluster.advertise.is_some(),
            &["cluster.bind", "cluster.advertise"],
            "other nodes can't connect to an unspecified address; say where they reach this one",
        );
        let cluster = &config.cluster;
        let files = [
            &cluster.certificate_file,
            &cluster.key_file,
            &cluster.ca_file,
        ];
        let given = files.iter().filter(|file| file.is_some()).count();
        self.demand(
            given == 0 || given == files.len(),
            &[
                "cluster.certificate-file",
                "cluster.key-file",
                "cluster.ca-file",
            ],
            "TLS on the cluster channel needs all three: both sides show a certificate",
        );
        self.demand(
            config.runtime.shutdown_timeout > config.membership.hand_over_timeout,
            &["runtime.shutdown-timeout", "membership.hand-over-timeout"],
            "a stop hands partitions over, so it must be allowed to take longer than that",
        );
    }

    fn storage(&mut self, config: &Config, origins: &Origins) {
        let from_flag = matches!(origins.get("storage.url"), Some(Origin::CommandLine));
        if from_flag && config.storage.url.has_password() {
            self.faults.push(Fault::SecretOnCommandLine {
                key: "storage.url".to_owned(),
            });
        }
        self.demand(
            config.storage.password.is_none() || !config.storage.url.has_password(),
            &[
                "storage.url",
                "storage.password-file",
                STORAGE_PASSWORD_VARIABLE,
            ],
            "the URL holds a password too; take one out",
        );
        self.demand(
            config.storage.url.backend() != Backend::Sqlite
                || matches!(config.storage.writers, Auto::Auto | Auto::Set(1)),
            &["storage.url", "storage.writers"],
            "SQLite takes one writer; set 1 or \"auto\"",
        );
        self.demand(
            config.kafka.brokers.is_some()
                || !config
                    .router
                    .aggregates
                    .values()
                    .any(|kind| *kind == RouterKind::Kafka),
            &["router", "kafka.brokers"],
            "an aggregate is routed by Kafka; name the brokers",
        );
    }

    fn access(&mut self, config: &Config) {
        let access = &config.access;
        let files = [
            &access.hs256_secret_file,
            &access.jwks_file,
            &access.pem_file,
        ];
        let file_count = files.into_iter().flatten().count();
        let file_keys = [
            "access.hs256-secret-file",
            "access.jwks-file",
            "access.pem-file",
        ];
        match access.mode {
            AccessModeSetting::Open => {
                self.demand(
                    config.http.bind.ip().is_loopback() || access.allow_open_on_public,
                    &["http.bind", "access.mode"],
                    "others than this machine reach the port, and open access believes whatever \
                     they say; set access.mode = \"jwt\", or access.allow-open-on-public = true \
                     where the network keeps strangers out",
                );
                self.demand(
                    file_count == 0,
                    &["access.mode", file_keys[0], file_keys[1], file_keys[2]],
                    "keys are set, and in mode \"open\" nothing checks a token; set \
                     access.mode = \"jwt\", or take them out",
                );
            }
            AccessModeSetting::Jwt => {
                self.demand(
                    file_count == 1,
                    &file_keys,
                    "mode \"jwt\" needs exactly one of these files to check tokens with",
                );
                self.demand(
                    access.issuer.is_some(),
                    &["access.issuer"],
                    "mode \"jwt\" needs it, or any issuer's tokens would do",
                );
                self.demand(
                    access.audience.is_some(),
                    &["access.audience"],
                    "mode \"jwt\" needs it, or tokens for any other service would do",
                );
            }
        }
    }
}

/// Whether two ports can't both be bound. Port 0 is a fresh one each time.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let same_host =
        one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && same_host
}
