//! What several nodes on one server see of each other, and what becomes of a connection that ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, TransactionTrait};
use uuid::Uuid;
use wow::storage::{Finding, OpenError, Storage, StorageReader, StorageSettings};
use wow_kernel::commit::Commit;
use wow_kernel::conformance::PARTITIONS;
use wow_kernel::id::{NodeName, PartitionNo, Position};
use wow_kernel::ports::{AppendError, CommitLog, LeaseStore, Member, MemberState, RequestLookup};

use super::databases::{Database, on_every_server};
use super::support::{append_versions, commit, key, open};

/// Ends every connection to the database but the one that asks.
async fn end_connections(database: &Database) {
    let admin = database.connect().await;
    if database.url().starts_with("postgres") {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where datname = current_database() and pid <> pg_backend_pid()";
        admin.execute_unprepared(end).await.unwrap();
    } else {
        let ids = "select id from information_schema.processlist \
                   where db = database() and id <> connection_id()";
        let statement = sea_orm::Statement::from_string(admin.get_database_backend(), ids);
        for row in admin.query_all_raw(statement).await.unwrap() {
            let id: u64 = row
                .try_get_by_index::<u64>(0)
                .or_else(|_| row.try_get_by_index::<i64>(0).map(|id| id as u64))
                .unwrap();
            // One that has ended by itself can't be ended.
            let _ = admin.execute_unprepared(&format!("kill {id}")).await;
        }
    }
    admin.close().await.unwrap();
}

/// Appends until it is in the log, as the kernel does (R54).
async fn append_surely(storage: &Storage, commit: &Arc<Commit>) -> Position {
    for _ in 0..200 {
        match storage.append(commit.clone()).await {
            Ok(receipt) => return receipt.position,
            Err(AppendError::DuplicateRequest) => {
                let key = &commit.key;
                let found = RequestLookup::find(
                    storage,
                    &key.tenant,
                    &key.aggregate_type,
                    &commit.request_id,
                );
                let found = found.await.unwrap().unwrap();
                assert_eq!(found.command_id, commit.command_id);
                return found.position;
            }
            Err(AppendError::Unavailable(_) | AppendError::OutcomeUnknown(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the log didn't come back");
}

/// Holds the log to its rules: versions and positions are contiguous (R80).
async fn assert_clean(database: &Database, entries: u64) {
    let reader = StorageReader::open(database.url(), None).await.unwrap();
    let report = reader.verify(None, &mut |_| {}).await.unwrap();
    reader.close().await;
    assert_eq!(report.findings, []);
    assert_eq!(report.entries, entries);
}

async fn r54_connections_that_end_in_mid_batch_lose_and_double_nothing(database: Database) {
    let settings = StorageSettings {
        writers: 2,
        ..database.settings()
    };
    let storage = Arc::new(open(settings).await.unwrap());
    let mut lanes = Vec::new();
    for lane in 0..16 {
        let storage = storage.clone();
        lanes.push(tokio::spawn(async move {
            for version in 1..=40 {
                let id = format!("a-{lane}");
                let commit = commit(&id, version, &format!("{id}-{version}"));
                append_surely(&storage, &commit).await;
            }
        }));
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(30)).await;
        end_connections(&database).await;
    }
    for lane in lanes {
        lane.await.unwrap();
    }
    storage.close().await;
    assert_clean(&database, 16 * 40).await;
}

async fn r75_idle_connections_that_ended_are_replaced_before_anybody_notices(database: Database) {
    let storage = open(database.settings()).await.unwrap();
    append_versions(&storage, "a", 1).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    end_connections(&database).await;
    storage.append(commit("a", 2, "a-2")).await.unwrap();
    let found = storage.read_aggregate(&key("a"), 0, u64::MAX, 10).await;
    assert_eq!(found.unwrap().len(), 2);
    storage.close().await;
}

async fn r80_two_nodes_on_one_database_lose_no_update_and_a_reader_misses_none(database: Database) {
    let settings = StorageSettings {
        writers: 2,
        ..database.settings()
    };
    // Both start at once, too.
    let (one, other) = tokio::join!(open(settings.clone()), open(settings));
    let nodes = [Arc::new(one.unwrap()), Arc::new(other.unwrap())];
    let mut lanes = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        for lane in 0..8 {
            let node = node.clone();
            lanes.push(tokio::spawn(rival(node, number, format!("a-{lane}"))));
        }
    }
    let reader = tokio::spawn(follow(nodes[0].clone(), 2 * 8 * 25));
    for lane in lanes {
        lane.await.unwrap();
    }
    let seen = tokio::time::timeout(Duration::from_secs(30), reader).await;
    assert_eq!(
        seen.expect("the reader missed an entry").unwrap(),
        2 * 8 * 25
    );
    for node in &nodes {
        node.close().await;
    }
    assert_clean(&database, 2 * 8 * 25).await;
}

/// Commits 25 entries of an aggregate that another node writes too.
async fn rival(node: Arc<Storage>, number: usize, id: String) {
    let mut done = 0;
    while done < 25 {
        let history = node.read_aggregate(&key(&id), 0, u64::MAX, 1000).await;
        let version = history.unwrap().last().map_or(1, |last| last.version + 1);
        match node
            .append(commit(&id, version, &format!("{number}-{id}-{done}")))
            .await
        {
            Ok(_) => done += 1,
            Err(AppendError::VersionConflict) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Follows the heads, and reads each partition up to them.
async fn follow(node: Arc<Storage>, entries: usize) -> usize {
    let partitions: Vec<_> = (0..PARTITIONS).map(PartitionNo).collect();
    let mut read: BTreeMap<PartitionNo, Position> = BTreeMap::new();
    let mut seen = 0;
    while seen < entries {
        for head in node.heads(&partitions).await.unwrap() {
            let after = read.entry(head.partition).or_default();
            if head.head <= *after {
                continue;
            }
            let page = node.read_partition(head.partition, *after, 1000).await;
            let page = page.unwrap();
            for commit in &page {
                assert_eq!(
                    commit.position,
                    *after + 1,
                    "in partition {}",
                    head.partition
                );
                *after = commit.position;
            }
            assert!(*after >= head.head, "what a head counts can be read");
            seen += page.len();
        }
    }
    seen
}

async fn three_processes_migrate_and_start_at_once(database: Database) {
    let start = || open(database.settings());
    let (one, two, three) = tokio::join!(start(), start(), start());
    for storage in [one, two, three] {
        let storage = storage.unwrap();
        storage.heads(&[PartitionNo(0)]).await.unwrap();
        storage.close().await;
    }
    assert_clean(&database, 0).await;
}

async fn a_database_that_is_not_there_is_refused_at_once(database: Database) {
    let (server, _) = database.url().rsplit_once('/').unwrap();
    let misled = StorageSettings {
        url: format!("{server}/wow_test_nowhere"),
        ..database.settings()
    };
    let opened = tokio::time::timeout(Duration::from_secs(20), open(misled)).await;
    let error = opened.expect("waiting doesn't mend it").unwrap_err();
    assert!(matches!(error, OpenError::Database(_)), "{error}");
}

async fn r75_a_start_waits_for_a_server_that_is_away_until_it_is_told_to_stop(database: Database) {
    let (scheme, _) = database.url().split_once("://").unwrap();
    // Nothing listens on port 1.
    let away = StorageSettings {
        url: format!("{scheme}://wow@127.0.0.1:1/wow"),
        ..database.settings()
    };
    let give_up = away.give_up.clone();
    let starting = tokio::spawn(open(away));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!starting.is_finished(), "it waits");
    give_up.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(20), starting).await;
    let error = ended.expect("it ends").unwrap().unwrap_err();
    assert!(matches!(error, OpenError::GivenUp), "{error}");
}

async fn an_index_that_is_missing_is_found(database: Database) {
    open(database.settings()).await.unwrap().close().await;
    let of_table = if database.url().starts_with("mysql") {
        " on commit_log"
    } else {
        ""
    };
    let drop = format!("drop index uk_commit_log_request{of_table}");
    database.run(&drop).await;
    let reader = StorageReader::open(database.url(), None).await.unwrap();
    let report = reader.verify(None, &mut |_| {}).await.unwrap();
    reader.close().await;
    // The server tells of an index that is missing or half made, and the schema of its keys.
    let [Finding::Files { text }, Finding::KeyMissing { key }] = &report.findings[..] else {
        panic!("{report:?}");
    };
    assert!(text.contains("uk_commit_log_request"), "{text}");
    assert_eq!(*key, "uk_commit_log_request");
}

async fn r75_a_lock_that_nobody_gives_back_is_unavailable_within_its_time(database: Database) {
    let settings = StorageSettings {
        statement_timeout: Duration::from_secs(1),
        ..database.settings()
    };
    let storage = open(settings).await.unwrap();
    let other = database.connect().await;
    let transaction = other.begin().await.unwrap();
    let lock = "update log_partition set head = head + 1";
    transaction.execute_unprepared(lock).await.unwrap();
    let append = storage.append(commit("a", 1, "a-1"));
    let outcome = tokio::time::timeout(Duration::from_secs(20), append).await;
    let outcome = outcome.expect("it isn't waited for");
    assert!(
        matches!(outcome, Err(AppendError::Unavailable(_))),
        "{outcome:?}"
    );
    transaction.rollback().await.unwrap();
    let receipt = storage.append(commit("a", 1, "a-1")).await.unwrap();
    assert_eq!(receipt.position, 1);
    other.close().await.unwrap();
    storage.close().await;
}

async fn r70_a_renewal_waits_for_no_load_on_the_log(database: Database) {
    let storage = Arc::new(open(database.settings()).await.unwrap());
    let member = Member {
        name: NodeName::trusted("node-1"),
        incarnation: Uuid::now_v7(),
        address: "127.0.0.1:9090".to_owned(),
        state: MemberState::Live,
        protocol_min: 1,
        protocol_max: 1,
        valid_for: Duration::ZERO,
    };
    let ttl = Duration::from_secs(10);
    storage.claim(&member, ttl).await.unwrap();
    let mut lanes = Vec::new();
    for lane in 0..64 {
        let storage = storage.clone();
        lanes.push(tokio::spawn(async move {
            append_versions(&*storage, &format!("a-{lane}"), 20).await;
        }));
    }
    let mut renewals = 0;
    while !lanes.iter().all(|lane| lane.is_finished()) {
        let renewed = storage.renew(&member, ttl);
        let renewed = tokio::time::timeout(Duration::from_secs(3), renewed).await;
        assert!(renewed.expect("a renewal within TTL / 3").unwrap());
        renewals += 1;
    }
    assert!(renewals > 0);
    for lane in lanes {
        lane.await.unwrap();
    }
    storage.close().await;
}

on_every_server!(
    r54_connections_that_end_in_mid_batch_lose_and_double_nothing,
    r75_idle_connections_that_ended_are_replaced_before_anybody_notices,
    r80_two_nodes_on_one_database_lose_no_update_and_a_reader_misses_none,
    three_processes_migrate_and_start_at_once,
    a_database_that_is_not_there_is_refused_at_once,
    r75_a_start_waits_for_a_server_that_is_away_until_it_is_told_to_stop,
    an_index_that_is_missing_is_found,
    r75_a_lock_that_nobody_gives_back_is_unavailable_within_its_time,
    r70_a_renewal_waits_for_no_load_on_the_log,
);
