//! Work on many things in threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What becomes of each item, in the order of the items, by as many threads as `jobs` or items.
pub(crate) fn map_in_threads<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return;
            };
            let result = each(item);
            let mut done = done.lock().unwrap_or_else(|lock| lock.into_inner());
            done.push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(items.len()) {
            // Without another thread, those that run do all of it.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(|lock| lock.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
