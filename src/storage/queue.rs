//! How the tasks of storage take work from their queues.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Waits for work, and takes what is there, up to a limit. Once told to stop it lets nothing new
/// in, and the queue only empties. Nothing means that there will never be any.
pub(super) async fn take<T>(
    queue: &mut mpsc::Receiver<T>,
    limit: usize,
    stop: &CancellationToken,
) -> Vec<T> {
    let mut taken = Vec::new();
    if !queue.is_closed() {
        // Stopping comes first, or a queue that is never empty would put it off for ever.
        tokio::select! {
            biased;
            () = stop.cancelled() => queue.close(),
            _ = queue.recv_many(&mut taken, limit) => return taken,
        }
    }
    queue.recv_many(&mut taken, limit).await;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn r34_a_queue_that_is_told_to_stop_gives_what_it_has_and_takes_nothing_more() {
        let (work, mut queue) = mpsc::channel(8);
        let stop = CancellationToken::new();
        for number in 0..3 {
            assert!(work.send(number).await.is_ok());
        }
        assert_eq!(take(&mut queue, 2, &stop).await, [0, 1]);
        stop.cancel();
        assert_eq!(take(&mut queue, 2, &stop).await, [2]);
        assert!(work.send(3).await.is_err());
        assert_eq!(take(&mut queue, 2, &stop).await, [] as [i32; 0]);
    }

    #[tokio::test]
    async fn a_queue_that_nobody_can_fill_ends() {
        let (work, mut queue) = mpsc::channel(8);
        assert!(work.send(1).await.is_ok());
        drop(work);
        let stop = CancellationToken::new();
        assert_eq!(take(&mut queue, 2, &stop).await, [1]);
        assert_eq!(take(&mut queue, 2, &stop).await, [] as [i32; 0]);
    }
}
