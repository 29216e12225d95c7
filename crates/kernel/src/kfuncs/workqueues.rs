//! Work queues in values of maps: what is started runs after the program, as the functions of
//! timers whose time has come do.

use spec::{Errno, Result};
use vm::{ModelPort, RunContext, TimerClock, Timers};

use super::int;
use crate::call::{Call, Return};

/// `int bpf_wq_init(struct bpf_wq *wq, void *p__map, unsigned int flags)`: 0, `-EINVAL` for
/// flags, `-EBUSY` if it is made already.
pub(super) fn wq_init<M: ModelPort>(
    Call([queue, map, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    let (address, map) = (memory.value_address(queue)?, memory.map(map)?.identity());
    let made = of_queues(cx, flags, |timers| {
        timers.init(address, map, TimerClock::Monotonic)
    });
    Ok(made)
}

/// `int bpf_wq_set_callback_impl(struct bpf_wq *wq, int (*callback_fn)(void *map, int *key, void
/// *value), unsigned int flags, void *aux__prog)`: 0, `-EINVAL` for flags and one that is not
/// made.
pub(super) fn wq_set_callback_impl<M: ModelPort>(
    Call([queue, function, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    let (address, callback) = (memory.value_address(queue)?, memory.callback(function)?);
    let set = of_queues(cx, flags, |timers| timers.set_callback(address, callback));
    Ok(set)
}

/// `int bpf_wq_start(struct bpf_wq *wq, unsigned int flags)`: 0, `-EINVAL` for flags and one that
/// is not made or has no callback.
pub(super) fn wq_start<M: ModelPort>(Call([queue, flags, ..], memory, cx): Call<M>) -> Return<M> {
    let address = memory.value_address(queue)?;
    let now = cx.nanoseconds() as i64;
    Ok(of_queues(cx, flags, |timers| {
        timers.start(address, |_| now)
    }))
}

/// Result of a function without flags.
fn of_queues(cx: &RunContext<'_>, flags: u64, call: impl FnOnce(&Timers) -> Result) -> u64 {
    let result = match (flags as u32, cx.timers) {
        (0, Some(timers)) => call(timers),
        (0, None) => Err(Errno::EOPNOTSUPP),
        _ => Err(Errno::EINVAL),
    };
    int(result.map_or_else(Errno::negated, |()| 0))
}
