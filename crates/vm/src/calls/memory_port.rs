//! Helpers as functions over a memory port, so that each is written once for all engines.
//!
//! The port of the checked engine translates model addresses and answers a wrong access
//! with a fault that ends the run; that of an engine for verified programs follows
//! pointers and has no faults.

use crate::network::{SocketRef, Sockets};
use crate::{Callback, Cursor, Iteration, MapObject, PacketBuffer, RunContext, ValueOf};

/// The memory of a run, as helpers reach it.
pub trait MemoryPort {
    /// Fault by which an access ends the run.
    type Fault;

    /// Reads bytes at an address.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Self::Fault>;

    /// Reads bytes at an address that is not proven valid; false if they are not all in the
    /// memory of the run: stack, packet, values of maps, and contexts that carry no packet.
    fn probe(&self, address: u64, into: &mut [u8]) -> bool;

    /// Reads bytes of the process at an address that is not proven valid; false if they are not all in
    /// memory that a test gives.
    fn probe_user(&self, _address: u64, _into: &mut [u8]) -> bool {
        false
    }

    /// Writes bytes at an address.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Self::Fault>;

    /// The address of what a pointer to a variable of the kernel or to an object with copies
    /// stands for on a CPU; 0 if there is no such CPU, and for native code, which has none.
    fn per_cpu(&self, pointer: u64, cpu: u32) -> Result<u64, Self::Fault>;

    /// Address of the run's context; 0 without one.
    fn context(&self) -> u64;

    /// True if a context carries a packet.
    fn has_packet(&self, context: u64) -> bool;

    /// The packet that a context carries.
    fn packet(&self, context: u64) -> Result<&PacketBuffer, Self::Fault>;

    /// Changes the packet that a context carries. The context has its bounds and its length
    /// afterwards; the program must not use pointers that it got before.
    fn change_packet<R>(
        &mut self,
        context: u64,
        change: impl FnOnce(&mut PacketBuffer) -> R,
    ) -> Result<R, Self::Fault>;

    /// Address of the memory of the sockets of the run's network.
    fn sockets(&self, sockets: &Sockets) -> u64;

    /// The socket that a pointer refers to.
    fn socket(&self, sockets: &Sockets, pointer: u64) -> Result<SocketRef, Self::Fault>;

    /// Address of the field at an offset in the structure that a context stands for.
    fn field(&self, context: u64, offset: usize) -> u64;

    /// The map that a pointer to a map refers to.
    fn map(&self, pointer: u64) -> Result<&MapObject, Self::Fault>;

    /// The address of the value that a key has in a map on a CPU; 0 if it has none. It
    /// stays valid during the run.
    fn lookup(&mut self, map: u64, cpu: u32, key: &[u8]) -> Result<u64, Self::Fault>;

    /// The address of a value that is not found by its key; 0 if there is none. It stays valid
    /// during the run, that of a sample until it is released.
    fn find(&mut self, map: u64, what: ValueOf<'_>) -> Result<u64, Self::Fault>;

    /// Puts a number of 64 bits into the value of a map and returns the one that was there, in
    /// one step.
    fn exchange(&mut self, address: u64, new: u64) -> Result<u64, Self::Fault>;

    /// Reserves a record of `len` bytes in a ring buffer; its address, or 0 if there is no
    /// room. It is valid until [`MemoryPort::submit`].
    fn reserve(&mut self, map: u64, len: u64, flags: u64) -> Result<u64, Self::Fault>;

    /// Ends the writing of a record that was reserved. A discarded one does not reach the
    /// host.
    fn submit(&mut self, record: u64, is_discarded: bool) -> Result<(), Self::Fault>;

    /// Takes the spin lock of 4 bytes at an address, which is in the value of a map: waits
    /// until it is free.
    fn lock(&mut self, address: u64) -> Result<(), Self::Fault>;

    /// Frees the spin lock at an address.
    fn unlock(&mut self, address: u64) -> Result<(), Self::Fault>;

    /// The addresses of key and value of the next entry that a program on a CPU visits in a
    /// map; `None` behind the last. They stay valid until [`MemoryPort::end_entries`].
    fn next_entry(
        &mut self,
        map: u64,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Result<Option<[u64; 2]>, Self::Fault>;

    /// Ends a visit.
    fn end_entries(&mut self, map: u64, cursor: &mut Cursor) -> Result<(), Self::Fault>;

    /// The address on the host of bytes in the value of a map, by which all engines know
    /// them.
    fn value_address(&self, address: u64) -> Result<u64, Self::Fault>;

    /// The function of the program that a reference stands for.
    fn callback(&self, function: u64) -> Result<Callback, Self::Fault>;

    /// Has the engine make the calls of an iteration when the helper has returned. The
    /// result of the iteration takes the place of the helper's.
    fn begin(&mut self, iteration: Box<dyn Iteration<Self>>)
    where
        Self: Sized;
}

/// A helper: gets `r1` to `r5`, returns `r0`.
pub type Helper<M> =
    fn([u64; 5], &mut M, &mut RunContext<'_>) -> Result<u64, <M as MemoryPort>::Fault>;
