//! Memory of verified programs: addresses are pointers.

use std::convert::Infallible;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU64};

use crate::guard::ReservedRecord;
use crate::lock;
use crate::network::{SocketRef, Sockets};
use crate::{
    Callback, Cursor, Iteration, MapHandle, MapObject, MemoryPort, PacketBuffer, RunContext,
    RunGuard, StackFrames, ValueOf, direct_context,
};

/// The memory of a run of a verified program: addresses are the pointers that the verifier
/// proved, and are followed without a check.
///
/// A context is what [`DirectContext::bind`](crate::DirectContext::bind) returned. Bytes are
/// copied by relaxed atomic operations, because other threads may access the values of maps.
#[derive(Clone, Copy)]
pub struct Direct {
    guard: *const RunGuard,
    /// Address of the run's context.
    context: u64,
    /// The maps whose values may be read by any address.
    maps: *const [MapHandle],
    frames: StackFrames,
}

impl Direct {
    /// The memory of the run of a context.
    ///
    /// # Panics
    /// If the run has no guard.
    ///
    /// # Safety
    /// The guard and the maps of the run context outlive the port, and so do the records of its
    /// stack frames. Whoever calls the methods of the port passes only addresses that are valid
    /// for the access, with exposed provenance: pointers to maps are addresses of
    /// [`MapHandle`]s that exist, pointers to contexts those of
    /// [`DirectContext`](crate::DirectContext)s as described above, which have a packet where
    /// it is asked for. It is so for the arguments of helpers that a verified program
    /// calls.
    pub unsafe fn new(cx: &RunContext<'_>) -> Direct {
        Direct {
            guard: cx.guard.expect("runs of verified programs have a guard"),
            context: cx.context,
            maps: cx.maps,
            frames: cx.frames,
        }
    }

    fn guard(&self) -> &RunGuard {
        // SAFETY: the guard outlives the port (`new`).
        unsafe { &*self.guard }
    }

    /// True if bytes are in the packet, in values of maps or in a context that is memory in the
    /// kernel as well. Other contexts are not among the memory of the run.
    fn is_shared(&self, address: u64, len: usize) -> bool {
        let Some(end) = address.checked_add(len as u64) else {
            return false;
        };
        let is_in = |start: u64, last: u64| start <= address && end <= last;
        if self.context != 0 {
            // SAFETY: it is the run's context (`new`).
            let ([data, data_end], plain) = unsafe {
                let plain = direct_context::plain_bytes_of(self.context);
                (direct_context::bounds_of(self.context), plain)
            };
            if is_in(data, data_end) || is_in(self.context, self.context + plain) {
                return true;
            }
        }
        // SAFETY: the maps outlive the port (`new`).
        let maps = unsafe { &*self.maps };
        maps.iter().any(|map| map.operations().covers(address, len))
    }

    #[inline]
    fn object(&self, pointer: u64) -> &MapObject {
        let map = ptr::with_exposed_provenance::<MapObject>(pointer as usize);
        // SAFETY: it is the address of a handle (`new`). Its program, or the guard of a map that
        // was looked up in another one, outlives the run.
        unsafe { &*map }
    }
}

impl MemoryPort for Direct {
    type Fault = Infallible;

    #[inline]
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Infallible> {
        let whole = match address.is_multiple_of(8) {
            true => into.len() / 8 * 8,
            false => 0,
        };
        let (words, rest) = into.split_at_mut(whole);
        for (at, word) in (address..).step_by(8).zip(words.chunks_exact_mut(8)) {
            let place = ptr::with_exposed_provenance::<AtomicU64>(at as usize);
            // SAFETY: the bytes are valid for reads (`new`), the address is aligned.
            let number = unsafe { (*place).load(Relaxed) };
            word.copy_from_slice(&number.to_ne_bytes());
        }
        for (at, byte) in (address + whole as u64..).zip(rest) {
            let place = ptr::with_exposed_provenance::<AtomicU8>(at as usize);
            // SAFETY: the byte is valid for reads (`new`).
            *byte = unsafe { (*place).load(Relaxed) };
        }
        Ok(())
    }

    #[inline]
    fn probe(&self, address: u64, into: &mut [u8]) -> bool {
        let read = |into: &mut [u8]| {
            let Ok(()) = self.read(address, into);
        };
        if self.is_shared(address, into.len()) {
            read(into);
            return true;
        }
        // SAFETY: the records outlive the port (`new`).
        unsafe { self.frames.probe(address, into, read) }
    }

    #[inline]
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Infallible> {
        let whole = match address.is_multiple_of(8) {
            true => bytes.len() / 8 * 8,
            false => 0,
        };
        let (words, rest) = bytes.split_at(whole);
        for (at, word) in (address..).step_by(8).zip(words.as_chunks::<8>().0) {
            let place = ptr::with_exposed_provenance::<AtomicU64>(at as usize);
            // SAFETY: the bytes are valid for writes (`new`), the address is aligned.
            unsafe { (*place).store(u64::from_ne_bytes(*word), Relaxed) };
        }
        for (at, byte) in (address + whole as u64..).zip(rest) {
            let place = ptr::with_exposed_provenance::<AtomicU8>(at as usize);
            // SAFETY: the byte is valid for writes (`new`).
            unsafe { (*place).store(*byte, Relaxed) };
        }
        Ok(())
    }

    fn per_cpu(&self, _: u64, _: u32) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn context(&self) -> u64 {
        self.context
    }

    fn has_packet(&self, context: u64) -> bool {
        // SAFETY: it is a pointer to a context (`new`).
        unsafe { direct_context::packet_of(context) != 0 }
    }

    fn packet(&self, context: u64) -> Result<&PacketBuffer, Infallible> {
        // SAFETY: it is a pointer to a context (`new`), whose packet is borrowed for the
        // run (`DirectContext::bind`); helpers run one at a time.
        unsafe {
            let packet = direct_context::packet_of(context) as usize;
            Ok(&*ptr::with_exposed_provenance(packet))
        }
    }

    fn change_packet<R>(
        &mut self,
        context: u64,
        change: impl FnOnce(&mut PacketBuffer) -> R,
    ) -> Result<R, Infallible> {
        // SAFETY: as in `packet`.
        unsafe {
            let packet = direct_context::packet_of(context) as usize;
            let packet = &mut *ptr::with_exposed_provenance_mut(packet);
            let result = change(packet);
            direct_context::set_bounds(context, packet);
            Ok(result)
        }
    }

    fn sockets(&self, sockets: &Sockets) -> u64 {
        sockets.address()
    }

    fn socket(&self, sockets: &Sockets, pointer: u64) -> Result<SocketRef, Infallible> {
        // Every other pointer to a socket is that of the context.
        let number = sockets.number_of(sockets.address(), pointer);
        Ok(number.map_or(SocketRef::OfPacket, SocketRef::Numbered))
    }

    fn field(&self, context: u64, offset: usize) -> u64 {
        context + offset as u64
    }

    #[inline]
    fn map(&self, pointer: u64) -> Result<&MapObject, Infallible> {
        Ok(self.object(pointer))
    }

    #[inline]
    fn lookup(&mut self, map: u64, cpu: u32, key: &[u8]) -> Result<u64, Infallible> {
        let (operations, guard) = (self.object(map).operations(), self.guard());
        Ok(match operations.lookup(guard, cpu, key) {
            Some(cells) => cells.address().expose_provenance() as u64,
            None => operations.inner(guard, key).unwrap_or(0),
        })
    }

    fn find(&mut self, map: u64, what: ValueOf<'_>) -> Result<u64, Infallible> {
        let cells = self.object(map).operations().find(self.guard(), what);
        Ok(cells.map_or(0, |cells| cells.address().expose_provenance() as u64))
    }

    fn exchange(&mut self, address: u64, new: u64) -> Result<u64, Infallible> {
        let place = ptr::with_exposed_provenance::<AtomicU64>(address as usize);
        // SAFETY: the bytes are valid and aligned (`new`).
        Ok(unsafe { (*place).swap(new, AcqRel) })
    }

    fn reserve(&mut self, map: u64, len: u64, flags: u64) -> Result<u64, Infallible> {
        let Some((bytes, position)) = self.object(map).operations().reserve(len, flags) else {
            return Ok(0);
        };
        let address = bytes.address().expose_provenance() as u64;
        self.guard().add_record(ReservedRecord {
            address,
            map,
            position,
        });
        Ok(address)
    }

    fn submit(&mut self, record: u64, is_discarded: bool) -> Result<(), Infallible> {
        if let Some(record) = self.guard().take_record(record) {
            let map = self.object(record.map);
            map.operations().submit(record.position, is_discarded);
        }
        Ok(())
    }

    fn lock(&mut self, address: u64) -> Result<(), Infallible> {
        // SAFETY: the address is that of a lock (`new`).
        unsafe { lock::take(address) };
        self.guard().set_held_lock(address);
        Ok(())
    }

    fn unlock(&mut self, address: u64) -> Result<(), Infallible> {
        self.guard().set_held_lock(0);
        // SAFETY: as in `lock`.
        unsafe { lock::free(address) };
        Ok(())
    }

    fn next_entry(
        &mut self,
        map: u64,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Result<Option<[u64; 2]>, Infallible> {
        let entry = self
            .object(map)
            .operations()
            .next_entry(self.guard(), cpu, cursor);
        Ok(entry.map(|entry| entry.map(|cells| cells.address().expose_provenance() as u64)))
    }

    fn end_entries(&mut self, _: u64, cursor: &mut Cursor) -> Result<(), Infallible> {
        if let Some(cell) = cursor.key_cell.take() {
            self.guard().release_key_cell(cell);
        }
        Ok(())
    }

    fn value_address(&self, address: u64) -> Result<u64, Infallible> {
        Ok(address)
    }

    fn callback(&self, function: u64) -> Result<Callback, Infallible> {
        Ok(Callback::of_reference(function))
    }

    fn begin(&mut self, iteration: Box<dyn Iteration<Direct>>) {
        self.guard().iterations().begin(iteration);
    }
}
