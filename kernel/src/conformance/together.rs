//! Does many things at once, the only place where the suites spawn tasks.

use std::future::Future;
use std::panic;

use tokio::task::JoinSet;

/// Runs every future as a task of its own and answers in their order.
pub(super) async fn together<F>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut tasks = JoinSet::new();
    for (index, future) in futures.into_iter().enumerate() {
        tasks.spawn(async move { (index, future.await) });
    }
    let mut outputs = Vec::with_capacity(tasks.len());
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok(output) => outputs.push(output),
            // A failed assertion in a task is one of the case.
            Err(error) => match error.try_into_panic() {
                Ok(panicked) => panic::resume_unwind(panicked),
                Err(error) => panic!("a task of the case didn't end: {error}"),
            },
        }
    }
    outputs.sort_by_key(|(index, _)| *index);
    outputs.into_iter().map(|(_, output)| output).collect()
}
