//! The key file, read anew when it changes, so that keys rotate without a restart.
//!
//! No task watches it: a verification looks at most once a second whether the file's stamp has
//! changed. A file that can't be read, or gives no keys, leaves those in force that were read
//! before; a rotation that went wrong must not lock everybody out.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use tokio::fs;
use wow_kernel::ports::Clock;

use super::KeySource;
use super::error::KeyError;
use super::keys::KeySet;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const FILE_BYTES_MAX: u64 = 1 << 20;

/// What tells one content of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    modified: SystemTime,
    bytes: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileStamp {
    async fn of(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).await.map_err(unreadable)?;
        Ok(Self {
            modified: metadata.modified().map_err(unreadable)?,
            bytes: metadata.len(),
            // A replaced file can have the old one's length, within one tick of its clock.
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }
}

struct Loaded {
    keys: Arc<KeySet>,
    /// What was seen last; none where the file couldn't be read, so that it is tried again.
    seen: Option<FileStamp>,
}

/// The keys in force, and where they come from.
pub(super) struct KeyFile {
    source: KeySource,
    clock: Arc<dyn Clock>,
    /// When the file was looked at, in milliseconds of the monotonic clock.
    looked_at: AtomicU64,
    loaded: RwLock<Loaded>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl KeySource {
    fn path(&self) -> &Path {
        match self {
            Self::Hs256Secret(path) | Self::Jwks(path) | Self::Pem(path) => path,
        }
    }
}

impl KeyFile {
    pub(super) async fn open(source: KeySource, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        let seen = FileStamp::of(source.path()).await?;
        let keys = Arc::new(read(&source, &seen).await?);
        Ok(Self {
            looked_at: AtomicU64::new(millis(clock.monotonic())),
            loaded: RwLock::new(Loaded {
                keys,
                seen: Some(seen),
            }),
            source,
            clock,
        })
    }

    /// The keys in force, after a look at the file where one is due.
    pub(super) async fn current(&self) -> Arc<KeySet> {
        if self.is_due() {
            self.look().await;
        }
        self.loaded.read().keys.clone()
    }

    /// Whether a look is due, and falls to this caller: of many at one time only one looks.
    fn is_due(&self) -> bool {
        let now = millis(self.clock.monotonic());
        let before = self.looked_at.load(Ordering::Acquire);
        now.saturating_sub(before) >= millis(LOOK_EVERY)
            && self
                .looked_at
                .compare_exchange(before, now, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    async fn look(&self) {
        match self.read_if_changed().await {
            Ok(None) => {}
            Ok(Some((keys, seen))) => {
                *self.loaded.write() = Loaded {
                    keys: Arc::new(keys),
                    seen: Some(seen),
                };
                tracing::info!(file = %self.source.path().display(), "access keys read anew");
            }
            Err((error, seen)) => {
                self.loaded.write().seen = seen;
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(
                    error,
                    "access keys not read anew, the old ones stay in force"
                );
            }
        }
    }

    /// The stamp is taken before the content, so that a change in between is seen next time.
    async fn read_if_changed(
        &self,
    ) -> Result<Option<(KeySet, FileStamp)>, (KeyError, Option<FileStamp>)> {
        let stamp = FileStamp::of(self.source.path())
            .await
            .map_err(|error| (error, None))?;
        if self.loaded.read().seen.as_ref() == Some(&stamp) {
            return Ok(None);
        }
        match read(&self.source, &stamp).await {
            Ok(keys) => Ok(Some((keys, stamp))),
            Err(error @ KeyError::Unreadable { .. }) => Err((error, None)),
            Err(error) => Err((error, Some(stamp))),
        }
    }
}

async fn read(source: &KeySource, stamp: &FileStamp) -> Result<KeySet, KeyError> {
    let path = source.path();
    if stamp.bytes > FILE_BYTES_MAX {
        return Err(KeyError::TooLarge {
            path: path.to_owned(),
            limit: FILE_BYTES_MAX,
        });
    }
    let content = fs::read(path)
        .await
        .map_err(|source| KeyError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    KeySet::parse(source, &content)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
