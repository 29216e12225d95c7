//! Timers in values of maps (`struct bpf_timer`), which the host fires between runs.
//!
//! A timer is known by the address of its field in the value, so that programs of all engines
//! and the maps that free values mean the same one. The field itself stays zero. Timers fire
//! in the order of their times, those of one time in the order in which they were started.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spec::{Errno, Result};

/// A function of a program that outlives the run which named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Number of the program, as its engine was told.
    pub program: u32,
    /// First slot of the function.
    pub slot: u32,
}

impl Callback {
    /// The number that stands for the function in native code. It is not 0, and its lower
    /// half tells the functions of a program apart.
    pub const fn reference(self) -> u64 {
        (self.program as u64) << 32 | (self.slot as u64 + 1)
    }

    /// The function that such a number stands for.
    pub(crate) const fn of_reference(number: u64) -> Callback {
        Callback {
            program: (number >> 32) as u32,
            slot: (number as u32).wrapping_sub(1),
        }
    }
}

/// The clock of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// `CLOCK_REALTIME`.
    Realtime,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_BOOTTIME`.
    Boottime,
}

/// A timer that fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiredTimer {
    /// Address of its field.
    pub address: u64,
    /// Identity of its map ([`crate::MapObject::identity`]).
    pub map: u64,
    /// Function that it calls.
    pub callback: Callback,
    /// Its time, in nanoseconds of the monotonic clock.
    pub time: u64,
}

/// The timers of all maps of a host.
#[derive(Debug, Default)]
pub struct Timers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By address.
    timers: BTreeMap<u64, Timer>,
    /// Those that are started: time, order of starting, address.
    queue: BTreeSet<(i64, u64, u64)>,
    /// Number of starts.
    starts: u64,
    /// The latest time at which one fired or fires were looked for.
    latest: u64,
}

#[derive(Debug)]
struct Timer {
    map: u64,
    clock: TimerClock,
    callback: Option<Callback>,
    /// Its place in the queue.
    started: Option<(i64, u64)>,
}

impl Timers {
    /// No timers.
    pub fn new() -> Timers {
        Timers::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a timer in a value of a map. EBUSY if it is made already.
    pub fn init(&self, address: u64, map: u64, clock: TimerClock) -> Result {
        let mut state = self.state();
        Errno::EBUSY.when(state.timers.contains_key(&address))?;
        let timer = Timer {
            map,
            clock,
            callback: None,
            started: None,
        };
        state.timers.insert(address, timer);
        Ok(())
    }

    /// True if there is a timer at an address.
    pub fn is_made(&self, address: u64) -> bool {
        self.state().timers.contains_key(&address)
    }

    /// Sets what a timer calls. EINVAL if it is not made.
    pub fn set_callback(&self, address: u64, callback: Callback) -> Result {
        let mut state = self.state();
        let timer = state.timers.get_mut(&address).ok_or(Errno::EINVAL)?;
        timer.callback = Some(callback);
        Ok(())
    }

    /// Starts a timer, anew if it is started, for the time that `time` says by its clock.
    /// EINVAL if it is not made or calls nothing.
    pub fn start(&self, address: u64, time: impl FnOnce(TimerClock) -> i64) -> Result {
        let state = &mut *self.state();
        let timer = state.timers.get_mut(&address).ok_or(Errno::EINVAL)?;
        Errno::EINVAL.when(timer.callback.is_none())?;
        if let Some((time, start)) = timer.started.take() {
            state.queue.remove(&(time, start, address));
        }
        let place = (time(timer.clock), state.starts);
        state.starts += 1;
        timer.started = Some(place);
        state.queue.insert((place.0, place.1, address));
        Ok(())
    }

    /// Stops a timer, which calls nothing from then on; true if it was started. EINVAL if it
    /// is not made.
    pub fn cancel(&self, address: u64) -> Result<bool> {
        let state = &mut *self.state();
        let timer = state.timers.get_mut(&address).ok_or(Errno::EINVAL)?;
        timer.callback = None;
        let started = timer.started.take();
        if let Some((time, start)) = started {
            state.queue.remove(&(time, start, address));
        }
        Ok(started.is_some())
    }

    /// Frees the timers at addresses: those of a value that is freed.
    pub fn free(&self, addresses: Range<u64>) {
        self.free_if(addresses, |_| true);
    }

    /// Frees all timers of a map.
    pub fn free_map(&self, map: u64) {
        self.free_if(0..u64::MAX, |timer| timer.map == map);
    }

    fn free_if(&self, addresses: Range<u64>, is_freed: impl Fn(&Timer) -> bool) {
        let state = &mut *self.state();
        let found = state.timers.range(addresses);
        let freed: Vec<u64> = found
            .filter(|(_, timer)| is_freed(timer))
            .map(|(address, _)| *address)
            .collect();
        for address in freed {
            let timer = state.timers.remove(&address);
            if let Some((time, start)) = timer.and_then(|timer| timer.started) {
                state.queue.remove(&(time, start, address));
            }
        }
    }

    /// The next timer that fires at a time or before it; it is not started any more. Its
    /// time is not before that of the last one.
    pub fn fire(&self, now: u64) -> Option<FiredTimer> {
        let state = &mut *self.state();
        let &(time, start, address) = state.queue.first()?;
        if time > i64::try_from(now).unwrap_or(i64::MAX) {
            state.latest = state.latest.max(now);
            return None;
        }
        state.queue.remove(&(time, start, address));
        let timer = state.timers.get_mut(&address)?;
        timer.started = None;
        let time = u64::try_from(time).unwrap_or(0);
        state.latest = state.latest.max(time).min(now);
        Some(FiredTimer {
            address,
            map: timer.map,
            callback: timer.callback?,
            time: state.latest,
        })
    }

    /// True if no timer is started.
    pub fn is_idle(&self) -> bool {
        self.state().queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLBACK: Callback = Callback {
        program: 0,
        slot: 9,
    };

    fn started(timers: &Timers, address: u64, time: i64) {
        timers.init(address, 1, TimerClock::Monotonic).unwrap();
        timers.set_callback(address, CALLBACK).unwrap();
        timers.start(address, |_| time).unwrap();
    }

    fn addresses(timers: &Timers, now: u64) -> Vec<(u64, u64)> {
        let fired = std::iter::from_fn(|| timers.fire(now));
        fired.map(|fired| (fired.address, fired.time)).collect()
    }

    #[test]
    fn timers_fire_in_the_order_of_time_and_start() {
        let timers = Timers::new();
        for (address, time) in [(8, 30), (16, 10), (24, 30), (32, -5), (40, 31)] {
            started(&timers, address, time);
        }
        assert_eq!(
            addresses(&timers, 30),
            [(32, 0), (16, 10), (8, 30), (24, 30)]
        );
        assert!(!timers.is_idle());
        assert_eq!(addresses(&timers, 31), [(40, 31)]);
        assert!(timers.is_idle());
    }

    #[test]
    fn freed_and_cancelled_timers_do_not_fire() {
        let timers = Timers::new();
        for address in [8, 16, 24] {
            started(&timers, address, 1);
        }
        timers.free(8..16);
        assert_eq!(timers.cancel(16), Ok(true));
        assert_eq!(timers.cancel(16), Ok(false));
        assert_eq!(timers.start(16, |_| 1), Err(Errno::EINVAL));
        assert_eq!(timers.cancel(8), Err(Errno::EINVAL));
        assert_eq!(addresses(&timers, 1), [(24, 1)]);
        timers.free_map(1);
        assert_eq!(timers.init(24, 1, TimerClock::Boottime), Ok(()));
        assert_eq!(timers.init(24, 1, TimerClock::Boottime), Err(Errno::EBUSY));
    }
}
