//! What the commands share that read the database of the configuration.

use wow::config::Config;
use wow::storage::{Password, StorageReader};

use super::Global;
use super::error::Failure;

/// Opens the database to read, and closes it when the reading is done.
pub(super) fn with_reader(
    global: Global,
    read: impl AsyncFnOnce(&StorageReader, &Config) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let config = global.load()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let storage = &config.storage;
        let password = storage.password.as_ref();
        let password = password.map(|password| Password::new(password.expose()));
        let reader = StorageReader::open(storage.url.expose(), password.as_ref()).await?;
        let done = read(&reader, &config).await;
        reader.close().await;
        done
    })
}
