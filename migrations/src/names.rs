//! The names of tables, columns and constraints, in one place: migrations create them, storage
//! reads and writes them, errors are told apart by them, and operators' queries rely on them.
//!
//! A landed name never changes. Columns are listed in the order in which statements use them.

/// The log: one row a commit, never updated and never deleted.
pub mod commit_log {
    /// The table.
    pub const TABLE: &str = "commit_log";
    /// Its primary key: (partition_no, position).
    pub const PRIMARY_KEY: &str = "pk_commit_log";
    /// The unique key over (tenant_id, aggregate_type, aggregate_id, version) (R44).
    pub const UNIQUE_VERSION: &str = "uk_commit_log_version";
    /// The unique key over (tenant_id, aggregate_type, request_id) (R44).
    pub const UNIQUE_REQUEST: &str = "uk_commit_log_request";
    /// The columns of [`UNIQUE_VERSION`].
    pub const UNIQUE_VERSION_COLUMNS: [&str; 4] =
        ["tenant_id", "aggregate_type", "aggregate_id", "version"];
    /// The columns of [`UNIQUE_REQUEST`].
    pub const UNIQUE_REQUEST_COLUMNS: [&str; 3] = ["tenant_id", "aggregate_type", "request_id"];
    /// Every column.
    pub const COLUMNS: [&str; 17] = [
        "partition_no",
        "position",
        "tenant_id",
        "aggregate_type",
        "aggregate_id",
        "version",
        "request_id",
        "command_id",
        "command_type",
        "principal",
        "owner_id",
        "space_id",
        "origin",
        "events",
        "result",
        "headers",
        "committed_at",
    ];
}

/// The newest position of each partition.
pub mod log_partition {
    /// The table.
    pub const TABLE: &str = "log_partition";
    /// Every column; the first is the primary key.
    pub const COLUMNS: [&str; 2] = ["partition_no", "head"];
}

/// The newest known state of each aggregate.
pub mod snapshot {
    /// The table.
    pub const TABLE: &str = "snapshot";
    /// Its primary key.
    pub const PRIMARY_KEY: &str = "pk_snapshot";
    /// The columns of the primary key.
    pub const PRIMARY_KEY_COLUMNS: [&str; 3] = ["tenant_id", "aggregate_type", "aggregate_id"];
    /// Every column.
    pub const COLUMNS: [&str; 19] = [
        "tenant_id",
        "aggregate_type",
        "aggregate_id",
        "version",
        "partition_no",
        "position",
        "owner_id",
        "space_id",
        "deleted",
        "tags",
        "state",
        "state_revision",
        "recent_requests",
        "first_operator",
        "operator",
        "first_event_time",
        "event_time",
        "event_id",
        "snapshot_time",
    ];
}

/// The nodes of the service (R70).
pub mod member {
    /// The table.
    pub const TABLE: &str = "member";
    /// Every column; the first is the primary key.
    pub const COLUMNS: [&str; 8] = [
        "name",
        "incarnation",
        "address",
        "state",
        "protocol_min",
        "protocol_max",
        "lease_expires_at",
        "started_at",
    ];
}

/// Who owns which partition (R72).
pub mod partition_lease {
    /// The table.
    pub const TABLE: &str = "partition_lease";
    /// Every column; the first is the primary key.
    pub const COLUMNS: [&str; 5] = [
        "partition_no",
        "owner_name",
        "owner_incarnation",
        "epoch",
        "state",
    ];
}

/// How far each subscription has come in each partition (R81).
pub mod checkpoint {
    /// The table.
    pub const TABLE: &str = "checkpoint";
    /// Its primary key: (subscription, partition_no).
    pub const PRIMARY_KEY: &str = "pk_checkpoint";
    /// Every column.
    pub const COLUMNS: [&str; 6] = [
        "subscription",
        "partition_no",
        "position",
        "epoch",
        "generation",
        "updated_at",
    ];
}

/// Entries that a subscription couldn't handle, and those that wait behind them (R82).
pub mod parked_entry {
    /// The table.
    pub const TABLE: &str = "parked_entry";
    /// Its primary key: (subscription, partition_no, position).
    pub const PRIMARY_KEY: &str = "pk_parked_entry";
    /// Every column.
    pub const COLUMNS: [&str; 11] = [
        "subscription",
        "partition_no",
        "position",
        "tenant_id",
        "aggregate_type",
        "aggregate_id",
        "error",
        "attempts",
        "first_failed_at",
        "next_retry_at",
        "state",
    ];
}

/// What holds for the database as a whole.
pub mod meta {
    /// The table.
    pub const TABLE: &str = "meta";
    /// Every column; the first is the primary key.
    pub const COLUMNS: [&str; 2] = ["key", "value"];
    /// The key of the number of partitions, written at first start.
    pub const PARTITION_COUNT: &str = "partition_count";
    /// The key of the service's context, written at first start.
    pub const CONTEXT: &str = "context";
    /// The key of the schema version, written by each migration run.
    pub const SCHEMA_VERSION: &str = "schema_version";
}
