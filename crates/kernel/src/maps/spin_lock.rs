//! A lock that is held for a few instructions (`raw_spinlock_t` of Linux): one atomic
//! operation takes it, a store releases it. Waiting threads spin, then yield.

use vm::sync::atomic::AtomicBool;
use vm::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vm::sync::{spin_loop, yield_now};

/// Rounds of waiting before a thread yields.
const ROUNDS: u32 = 64;

/// A lock without data.
#[derive(Debug, Default)]
pub(super) struct SpinLock(AtomicBool);

/// A lock that is held, until this is dropped.
pub(super) struct SpinGuard<'a>(&'a AtomicBool);

impl SpinLock {
    /// Takes the lock.
    #[inline]
    pub(super) fn lock(&self) -> SpinGuard<'_> {
        let mut rounds = 0;
        while (self.0.compare_exchange_weak(false, true, Acquire, Relaxed)).is_err() {
            rounds += 1;
            match rounds < ROUNDS {
                true => spin_loop(),
                false => yield_now(),
            }
        }
        SpinGuard(&self.0)
    }
}

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use loom::thread;
    use vm::sync::atomic::AtomicU32;

    use super::*;

    /// A number that its lock protects.
    #[derive(Default)]
    struct Protected {
        lock: SpinLock,
        number: AtomicU32,
    }

    #[test]
    fn one_thread_holds_the_lock_and_sees_what_the_last_one_did() {
        loom::model(|| {
            let shared = Arc::new(Protected::default());
            let count = |shared: &Protected| {
                let _guard = shared.lock.lock();
                let number = shared.number.load(Relaxed);
                shared.number.store(number + 1, Relaxed);
            };
            let threads = [(); 2].map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || count(&shared))
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(shared.number.load(Relaxed), 2);
        });
    }
}
