//! Helpers that make, start and cancel timers in values of maps.

use spec::{Errno, Result};
use vm::{MemoryPort, RunContext, TimerClock, Timers};

use super::map::status;
use crate::call::{Call, Return, fail_if};

/// `CLOCK_REALTIME`, `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME`.
const REALTIME: u64 = 0;
const MONOTONIC: u64 = 1;
const BOOTTIME: u64 = 7;

/// `BPF_F_TIMER_ABS`: the time is one of the clock, not a span from now.
const ABSOLUTE: u64 = 1 << 0;
/// `BPF_F_TIMER_CPU_PIN`: the callback runs on the CPU that started the timer. All callbacks
/// do here.
const CPU_PIN: u64 = 1 << 1;

/// `long bpf_timer_init(struct bpf_timer *timer, struct bpf_map *map, u64 flags)`: 0,
/// `-EINVAL` for a clock that timers do not have, `-EBUSY` if the timer is made already.
pub(super) fn timer_init<M: MemoryPort>(
    Call([timer, map, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    let (address, map) = (memory.value_address(timer)?, memory.map(map)?.identity());
    let clock = match flags {
        REALTIME => TimerClock::Realtime,
        MONOTONIC => TimerClock::Monotonic,
        BOOTTIME => TimerClock::Boottime,
        _ => return Ok(Errno::EINVAL.negated()),
    };
    let init = timers(cx).and_then(|timers| timers.init(address, map, clock));
    Ok(status(init))
}

/// `long bpf_timer_set_callback(struct bpf_timer *timer, void *callback_fn)`: 0, `-EINVAL` if
/// the timer is not made.
pub(super) fn timer_set_callback<M: MemoryPort>(
    Call([timer, function, ..], memory, cx): Call<M>,
) -> Return<M> {
    let (address, callback) = (memory.value_address(timer)?, memory.callback(function)?);
    let set = timers(cx).and_then(|timers| timers.set_callback(address, callback));
    Ok(status(set))
}

/// `long bpf_timer_start(struct bpf_timer *timer, u64 nsecs, u64 flags)`: 0, `-EINVAL` for
/// unknown flags, a timer that is not made or one without a callback.
pub(super) fn timer_start<M: MemoryPort>(
    Call([timer, span, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    let address = memory.value_address(timer)?;
    fail_if!(flags & !(ABSOLUTE | CPU_PIN) != 0 => Errno::EINVAL);
    let (now, system) = (cx.nanoseconds() as i64, cx.system);
    // Linux 6.18 takes the number for a signed one.
    let span = span as i64;
    let time = |clock| match flags & ABSOLUTE {
        0 if span < 0 => i64::MAX,
        0 => now.saturating_add(span),
        _ => {
            let ahead = match clock {
                TimerClock::Monotonic => 0,
                TimerClock::Boottime => system.suspended,
                TimerClock::Realtime => system.tai_offset,
            };
            span.saturating_sub_unsigned(ahead)
        }
    };
    let start = timers(cx).and_then(|timers| timers.start(address, time));
    Ok(status(start))
}

/// `long bpf_timer_cancel(struct bpf_timer *timer)`: 1 if it was started, otherwise 0;
/// `-EINVAL` if it is not made, `-EDEADLK` in its own callback.
pub(super) fn timer_cancel<M: MemoryPort>(Call([timer, ..], memory, cx): Call<M>) -> Return<M> {
    let address = memory.value_address(timer)?;
    let cancel = timers(cx).and_then(|timers| match cx.running_timer == address {
        true if timers.is_made(address) => Err(Errno::EDEADLK),
        _ => timers.cancel(address),
    });
    Ok(match cancel {
        Ok(was_started) => was_started.into(),
        Err(errno) => errno.negated(),
    })
}

fn timers<'a>(cx: &RunContext<'a>) -> Result<&'a Timers> {
    cx.timers.ok_or(Errno::EOPNOTSUPP)
}
