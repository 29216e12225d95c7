//! Helpers that call functions of the program.

use spec::Errno;
use spec::limits;
use vm::{Cursor, Iteration, IterationStep, MemoryPort, Samples, SamplesReader, ValueOf};

use crate::call::{Call, Return, fail_if};
use crate::dynptr::{Dynptr, DynptrKind};

/// Most calls of `bpf_loop` (`BPF_MAX_LOOPS`).
const MAX_LOOPS: u64 = limits::LOOPS as u64;

/// `long bpf_loop(u32 nr_loops, void *callback_fn, void *callback_ctx, u64 flags)`: the number
/// of calls, until one returned 1. `-E2BIG` for more than 2^23.
///
/// It is the loop that Linux 6.18 puts in place of the call if the flags are a constant 0: the
/// count is compared with all 64 bits, and the upper half of `-E2BIG` is 0.
pub(super) fn r#loop<M: MemoryPort>(
    Call([count, function, context, flags, _], memory, _): Call<M>,
) -> Return<M> {
    fail_if!(flags != 0 => Errno::EINVAL);
    if count > MAX_LOOPS {
        return Ok(u64::from(Errno::E2BIG.negated() as u32));
    }
    memory.begin(Box::new(Loop {
        round: 0,
        count,
        function,
        context,
    }));
    Ok(0)
}

/// The calls of `bpf_loop`.
struct Loop {
    /// Calls made.
    round: u64,
    count: u64,
    function: u64,
    context: u64,
}

impl<M: MemoryPort> Iteration<M> for Loop {
    fn next(&mut self, _: &mut M, returned: Option<u64>) -> Result<IterationStep, M::Fault> {
        if self.round == self.count || returned.is_some_and(|returned| returned != 0) {
            return Ok(IterationStep::Return(self.round));
        }
        let arguments = [self.round, self.context, 0, 0, 0];
        self.round += 1;
        Ok(IterationStep::Call {
            function: self.function,
            arguments,
        })
    }
}

/// `long bpf_for_each_map_elem(struct bpf_map *map, void *callback_fn, void *callback_ctx, u64
/// flags)`: the number of entries visited, until a call returned 1.
///
/// Arrays are visited by index, hashes bucket by bucket. An entry of a hash that is deleted
/// before its turn is not visited; Linux visits it if it was next in its bucket.
pub(super) fn for_each_map_elem<M: MemoryPort>(
    Call([map, function, context, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    let kind = memory.map(map)?.kind;
    fail_if!(!kind.has_for_each() => Errno::ENOTSUPP);
    fail_if!(flags != 0 => Errno::EINVAL);
    memory.begin(Box::new(Entries {
        map,
        function,
        context,
        cpu: cx.cpu(),
        visited: 0,
        cursor: Cursor::default(),
    }));
    Ok(0)
}

/// Most samples that `bpf_user_ringbuf_drain` reads (`BPF_MAX_USER_RINGBUF_SAMPLES`).
const MOST_SAMPLES: u64 = 128 << 10;

/// `BPF_RB_NO_WAKEUP` and `BPF_RB_FORCE_WAKEUP`.
const WAKEUPS: u64 = 1 << 0 | 1 << 1;

/// `long bpf_user_ringbuf_drain(map, void *callback_fn, void *callback_ctx, u64 flags)`: the
/// number of samples that were read, until a call returned 1. `-EINVAL` for unknown flags,
/// `-EBUSY` while another run reads.
pub(super) fn user_ringbuf_drain<M: MemoryPort>(
    Call([map, function, context, flags, _], memory, _): Call<M>,
) -> Return<M> {
    fail_if!(flags & !WAKEUPS != 0 => Errno::EINVAL);
    let started = match memory.map(map)?.operations().samples() {
        Some(samples) => samples.start(),
        None => Err(Errno::EINVAL),
    };
    let reader = match started {
        Ok(reader) => reader,
        Err(errno) => return Ok(errno.negated()),
    };
    let dynptr = memory.find(map, ValueOf::SampleDynptr)?;
    memory.begin(Box::new(Drain {
        map,
        function,
        context,
        dynptr,
        read: 0,
        _reader: reader,
    }));
    Ok(0)
}

/// The calls of `bpf_user_ringbuf_drain`.
struct Drain {
    map: u64,
    function: u64,
    context: u64,
    /// Address of the dynptr of each sample.
    dynptr: u64,
    /// Samples that were read.
    read: u64,
    _reader: SamplesReader,
}

impl<M: MemoryPort> Iteration<M> for Drain {
    fn next(&mut self, memory: &mut M, returned: Option<u64>) -> Result<IterationStep, M::Fault> {
        if returned.is_some() {
            self.read += 1;
            if let Some(samples) = memory.map(self.map)?.operations().samples() {
                samples.release();
            }
        }
        let goes_on = returned.is_none_or(|returned| returned == 0) && self.read < MOST_SAMPLES;
        let sample = match goes_on {
            true => memory.find(self.map, ValueOf::Sample)?,
            false => 0,
        };
        if sample == 0 {
            return Ok(IterationStep::Return(self.read));
        }
        let len = memory
            .map(self.map)?
            .operations()
            .samples()
            .map_or(0, Samples::oldest_len);
        Dynptr::new(DynptrKind::Local, sample, len).write(memory, self.dynptr)?;
        Ok(IterationStep::Call {
            function: self.function,
            arguments: [self.dynptr, self.context, 0, 0, 0],
        })
    }
}

/// The calls of `bpf_for_each_map_elem`.
struct Entries {
    map: u64,
    function: u64,
    context: u64,
    cpu: u32,
    visited: u64,
    cursor: Cursor,
}

impl<M: MemoryPort> Iteration<M> for Entries {
    fn next(&mut self, memory: &mut M, returned: Option<u64>) -> Result<IterationStep, M::Fault> {
        let entry = match returned {
            None | Some(0) => memory.next_entry(self.map, self.cpu, &mut self.cursor)?,
            Some(_) => None,
        };
        let Some([key, value]) = entry else {
            memory.end_entries(self.map, &mut self.cursor)?;
            return Ok(IterationStep::Return(self.visited));
        };
        self.visited += 1;
        Ok(IterationStep::Call {
            function: self.function,
            arguments: [self.map, key, value, self.context, 0],
        })
    }
}
