//! A lock that is held for a few instructions (`raw_spinlock_t` of Linux): one atomic
//! operation takes it, a store releases it. Waiting threads spin, then yield.

use std::hint;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

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
                true => hint::spin_loop(),
                false => thread::yield_now(),
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
