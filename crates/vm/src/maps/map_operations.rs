//! What programs do with a map: the operations of its kind.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spec::{Errno, Result};

use crate::network::NetSocket;
use crate::{ArenaObject, CellSlice, Cursor, DirectAccess, MapFunction, RunGuard, TailTable};

/// A value that a helper finds otherwise than by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOf<'a> {
    /// That of an object in local storage, by its identity; made of the bytes if it has none.
    Owner(u64, Option<&'a [u8]>),
    /// That of the program's control group on a CPU.
    Local(u32),
    /// The oldest sample of a user ring buffer.
    Sample,
    /// The 16 bytes in which the reader of a user ring buffer gets each sample.
    SampleDynptr,
}

/// The samples of a user ring buffer.
pub trait Samples {
    /// Starts to read. EBUSY while another run does.
    fn start(&self) -> Result<SamplesReader>;

    /// Bytes of the oldest sample; 0 without one.
    fn oldest_len(&self) -> u32;

    /// Ends the reading of the oldest sample, whose room is the host's again.
    fn release(&self);
}

/// The only run that reads a user ring buffer, until this is dropped.
#[derive(Debug)]
pub struct SamplesReader(Arc<AtomicBool>);

impl SamplesReader {
    /// The reader, if no other one has set the flag.
    pub fn new(is_busy: &Arc<AtomicBool>) -> Option<SamplesReader> {
        let was_busy = is_busy.swap(true, Ordering::Acquire);
        (!was_busy).then(|| SamplesReader(Arc::clone(is_busy)))
    }
}

impl Drop for SamplesReader {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Operations of programs on the maps of a kind (`struct bpf_map_ops`). Keys and values have the
/// map's sizes; the caller checks that. An operation that a kind does not define fails as in the
/// kernel's kinds without it; updates of kinds that Linux lets no program update, with EOPNOTSUPP.
#[expect(unused_variables, reason = "defaults do not read them")]
pub trait MapOperations: Any + fmt::Debug + Send + Sync {
    /// The value of a key, as a program on this CPU gets it.
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        None
    }

    /// The value that programs may address without a lookup, if the map has one
    /// (`map_direct_value_addr`).
    fn direct_value(&self) -> Option<CellSlice<'_>> {
        None
    }

    /// Inlined lookup of native code, without the helper, if there is one (`map_gen_lookup`).
    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        None
    }

    /// The function that adds records of native code in place of the helper, if there is
    /// one.
    fn direct_output(self: Arc<Self>) -> Option<MapFunction> {
        None
    }

    /// A value that is not found by its key.
    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        None
    }

    /// Removes the value of an object from local storage. ENOENT if it has none.
    fn disown(&self, owner: u64) -> Result {
        Err(Errno::EINVAL)
    }

    /// True if bytes at an address on the host are in the map's values, or in those of maps
    /// in it.
    fn covers(&self, address: u64, len: usize) -> bool {
        false
    }

    /// The key and the value that has an address in it, where timers are.
    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        None
    }

    /// The key and the value of the next entry that a program on this CPU visits. An entry
    /// that is there during the whole visit is visited once; changes end no visit and make
    /// none endless.
    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        None
    }

    /// Adds or changes an entry.
    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result {
        Err(Errno::EOPNOTSUPP)
    }

    /// Removes an entry.
    fn delete(&self, cpu: u32, key: &[u8]) -> Result;

    /// Adds a value to a map without keys.
    fn push(&self, value: &[u8], flags: u64) -> Result {
        Err(Errno::ENOTSUPP)
    }

    /// Removes the next value of a map without keys. Without one, writes zeros.
    fn pop(&self, out: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    /// Reads the next value of a map without keys; of a set, tests the given one.
    fn peek(&self, out: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    /// Adds a record to a ring buffer.
    fn output(&self, record: &[u8], flags: u64) -> Result {
        Err(Errno::EINVAL)
    }

    /// Reserves a record of `len` bytes in a ring buffer, if there is room: its bytes, which hold
    /// what was there before, and its name in [`MapOperations::submit`].
    fn reserve(&self, len: u64, flags: u64) -> Option<(CellSlice<'_>, u64)> {
        None
    }

    /// Ends the writing of a record that was reserved. A discarded one does not reach the
    /// host.
    fn submit(&self, record: u64, is_discarded: bool) {}

    /// A number about a ring buffer (`bpf_ringbuf_query`).
    fn query(&self, what: u64) -> u64 {
        0
    }

    /// Adds a record of a program on this CPU to the perf buffer at an index.
    fn perf_output(&self, index: u32, cpu: u32, record: &[u8]) -> Result {
        Err(Errno::EINVAL)
    }

    /// The address of the handle of the map that a map of maps holds under a key. It is valid
    /// while the guard exists.
    fn inner(&self, guard: &RunGuard, key: &[u8]) -> Option<u64> {
        None
    }

    /// Table of a program array for native code; `None` for other maps, and if there is no
    /// memory for it or it holds a program without native code.
    fn tail_table(&self) -> Option<Arc<TailTable>> {
        None
    }

    /// The memory of an arena.
    fn arena(&self) -> Option<&dyn ArenaObject> {
        None
    }

    /// The samples of a user ring buffer.
    fn samples(&self) -> Option<&dyn Samples> {
        None
    }

    /// Id of the control group at an index. E2BIG if it is out of range, EAGAIN if there is
    /// none.
    fn cgroup(&self, index: u32) -> Result<u64> {
        Err(Errno::EINVAL)
    }

    /// The cookie of the socket that a map of sockets holds under a key.
    fn socket(&self, key: &[u8]) -> Option<u64> {
        None
    }

    /// Puts a socket of the network into a map of sockets.
    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result {
        Err(Errno::EOPNOTSUPP)
    }
}
