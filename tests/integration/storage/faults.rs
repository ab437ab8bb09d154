//! What is between a node and its database fails: each outcome of an append is what it says, and
//! storage goes on afterwards (R54, R75).

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use wow::storage::{Storage, StorageSettings};
use wow_kernel::commit::Commit;
use wow_kernel::id::{RequestId, TenantId};
use wow_kernel::ports::{AppendError, CommitLog, RequestLookup};

use super::databases::{Database, on_every_server};
use super::support::{commit, key, open};
use crate::support::proxy::{Direction, MYSQL_COMMIT, Proxy};

/// The request whose append meets a fault.
const REQUEST: &str = "request-that-meets-a-fault";

/// A database, and storage that reaches it through a proxy.
struct Faulty {
    database: Database,
    proxy: Proxy,
    storage: Storage,
}

impl Faulty {
    async fn open(database: Database) -> Self {
        let (proxy, url) = through_a_proxy(&database);
        let settings = StorageSettings {
            url,
            statement_timeout: Duration::from_secs(1),
            ..database.settings()
        };
        let storage = open(settings).await.unwrap();
        // From here on the statements are prepared.
        storage.append(commit("a", 1, "first")).await.unwrap();
        Self {
            database,
            proxy,
            storage,
        }
    }

    /// What is sent to commit [`REQUEST`], and no earlier: on PostgreSQL the statement that
    /// commits by itself, whose values name the request.
    fn commits(&self) -> &'static [u8] {
        match self.database.url().starts_with("mysql") {
            true => MYSQL_COMMIT,
            false => REQUEST.as_bytes(),
        }
    }

    async fn found(&self) -> Option<Commit> {
        let (tenant, request) = (TenantId::default_tenant(), RequestId::trusted(REQUEST));
        let aggregate_type = key("a").aggregate_type;
        self.storage
            .find(&tenant, &aggregate_type, &request)
            .await
            .unwrap()
    }
}

/// A proxy before the database's server, and the URL through it: in plain text, for the proxy
/// reads along.
fn through_a_proxy(database: &Database) -> (Proxy, String) {
    let (scheme, rest) = database.url().split_once("://").unwrap();
    let (account, place) = rest.split_once('@').unwrap();
    let (server, name) = place.split_once('/').unwrap();
    let server: SocketAddr = server.to_socket_addrs().unwrap().next().unwrap();
    let proxy = Proxy::start(server);
    let plain = match scheme {
        "mysql" => "ssl-mode=DISABLED",
        _ => "sslmode=disable",
    };
    let url = format!("{scheme}://{account}@{}/{name}?{plain}", proxy.address());
    (proxy, url)
}

async fn r54_an_answer_that_is_lost_after_the_commit_leaves_it_unknown_and_it_is_there(
    database: Database,
) {
    let faulty = Faulty::open(database).await;
    let fired = faulty.proxy.cut_before_answer(faulty.commits());
    let lost = commit("a", 2, REQUEST);
    let outcome = faulty.storage.append(lost.clone()).await;
    assert!(
        matches!(outcome, Err(AppendError::OutcomeUnknown(_))),
        "{outcome:?}"
    );
    fired.wait().await;
    // By itself it connects again, and the log tells.
    let found = faulty.found().await.unwrap();
    assert_eq!((found.command_id, found.version), (lost.command_id, 2));
    let again = faulty.storage.append(lost).await;
    assert!(
        matches!(
            again,
            Err(AppendError::DuplicateRequest | AppendError::VersionConflict)
        ),
        "{again:?}"
    );
    faulty.storage.append(commit("a", 3, "next")).await.unwrap();
    faulty.storage.close().await;
}

async fn r54_a_commit_that_never_arrives_is_unknown_too_and_the_same_may_be_appended_again(
    database: Database,
) {
    let faulty = Faulty::open(database).await;
    let fired = faulty.proxy.cut_before_request(faulty.commits());
    let lost = commit("a", 2, REQUEST);
    let outcome = faulty.storage.append(lost.clone()).await;
    assert!(
        matches!(outcome, Err(AppendError::OutcomeUnknown(_))),
        "{outcome:?}"
    );
    fired.wait().await;
    assert!(faulty.found().await.is_none());
    let receipt = faulty.storage.append(lost).await.unwrap();
    // Nothing was left behind by the first try.
    assert_eq!(receipt.position, 2);
    faulty.storage.close().await;
}

async fn r75_a_server_that_cannot_be_reached_is_unavailable_until_it_is_back(database: Database) {
    let faulty = Faulty::open(database).await;
    faulty.proxy.refuse().await;
    faulty.proxy.cut().await;
    // The connection's end may be met only when a batch is on its way.
    let first = faulty.storage.append(commit("a", 2, REQUEST)).await;
    assert!(first.is_err(), "{first:?}");
    let second = faulty.storage.append(commit("a", 2, "second")).await;
    assert!(
        matches!(second, Err(AppendError::Unavailable(_))),
        "{second:?}"
    );
    assert!(faulty.storage.heads(&[]).await.is_err());
    faulty.proxy.accept();
    assert!(faulty.found().await.is_none());
    faulty
        .storage
        .append(commit("a", 2, "third"))
        .await
        .unwrap();
    faulty.storage.close().await;
}

async fn r54_a_server_that_says_nothing_any_more_holds_nobody_up_for_ever(database: Database) {
    let faulty = Faulty::open(database).await;
    faulty.proxy.stall(Direction::ToClient);
    let outcome = faulty.storage.append(commit("a", 2, REQUEST)).await;
    assert!(
        matches!(
            outcome,
            Err(AppendError::OutcomeUnknown(_) | AppendError::Unavailable(_))
        ),
        "{outcome:?}"
    );
    faulty.proxy.pass();
    let version = match faulty.found().await {
        Some(found) => found.version + 1,
        None => 2,
    };
    faulty
        .storage
        .append(commit("a", version, "next"))
        .await
        .unwrap();
    faulty.storage.close().await;
}

on_every_server!(
    r54_an_answer_that_is_lost_after_the_commit_leaves_it_unknown_and_it_is_there,
    r54_a_commit_that_never_arrives_is_unknown_too_and_the_same_may_be_appended_again,
    r75_a_server_that_cannot_be_reached_is_unavailable_until_it_is_back,
    r54_a_server_that_says_nothing_any_more_holds_nobody_up_for_ever,
);
