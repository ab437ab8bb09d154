//! The methods of the storage ports, by name.

/// A method of a storage port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `CommitLog::append`
    Append,
    /// `CommitLog::read_aggregate`
    ReadAggregate,
    /// `CommitLog::read_partition`
    ReadPartition,
    /// `CommitLog::heads`
    Heads,
    /// `History::load`
    LoadHistory,
    /// `History::probe`
    Probe,
    /// `RequestLookup::find`
    FindRequest,
    /// `SnapshotStore::save`
    SaveSnapshots,
    /// `SnapshotStore::find`
    FindSnapshot,
    /// `SnapshotStore::versions`
    SnapshotVersions,
    /// `CheckpointStore::load`
    LoadCheckpoints,
    /// `CheckpointStore::save`
    SaveCheckpoint,
    /// `LeaseStore::claim`
    Claim,
    /// `LeaseStore::renew`
    Renew,
    /// `LeaseStore::view`
    ViewLeases,
    /// `LeaseStore::take`
    Take,
    /// `LeaseStore::release`
    Release,
    /// `LeaseStore::leave`
    Leave,
}

impl Call {
    /// Every method.
    pub const ALL: [Self; 18] = [
        Self::Append,
        Self::ReadAggregate,
        Self::ReadPartition,
        Self::Heads,
        Self::LoadHistory,
        Self::Probe,
        Self::FindRequest,
        Self::SaveSnapshots,
        Self::FindSnapshot,
        Self::SnapshotVersions,
        Self::LoadCheckpoints,
        Self::SaveCheckpoint,
        Self::Claim,
        Self::Renew,
        Self::ViewLeases,
        Self::Take,
        Self::Release,
        Self::Leave,
    ];

    /// Whether it only reads.
    pub fn is_read(self) -> bool {
        matches!(
            self,
            Self::ReadAggregate
                | Self::ReadPartition
                | Self::Heads
                | Self::LoadHistory
                | Self::Probe
                | Self::FindRequest
                | Self::FindSnapshot
                | Self::SnapshotVersions
                | Self::LoadCheckpoints
                | Self::ViewLeases
        )
    }
}
