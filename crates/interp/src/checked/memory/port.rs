//! The memory as helpers reach it.

use vm::network::{SocketRef, Sockets};
use vm::{Callback, Cursor, Iteration, MapObject, MemoryPort, PacketBuffer, ValueOf};

use super::{Access, Bytes, MOST_WAITS, Memory, PACKET_PLACES, in_buffer};
use crate::checked::calls::CallFault;

/// Accesses of helpers.
impl<'m> MemoryPort for Memory<'m> {
    type Fault = CallFault;

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), CallFault> {
        if self.read_shared(address, into).is_none() && !self.read_given(address, into)? {
            into.copy_from_slice(Memory::read(self, address, into.len() as u64)?);
            self.note_read(address, into.len() as u64);
        }
        Ok(())
    }

    fn probe(&self, address: u64, into: &mut [u8]) -> bool {
        // A context that carries a packet is another structure in the kernel.
        let described = self.context.filter(|_| self.packet.is_some());
        let is_described = described.is_some_and(|id| {
            let region = &self.regions[id.0];
            region.start <= address && address - region.start < region.len()
        });
        let read = match is_described {
            true => Ok(false),
            false => match MemoryPort::read(self, address, into) {
                Ok(()) => Ok(true),
                Err(CallFault::Memory(access)) => Err(access),
                Err(CallFault::Refused(_)) => Ok(false),
            },
        };
        self.note_given(read)
    }

    fn probe_user(&self, address: u64, into: &mut [u8]) -> bool {
        self.note_given(self.read_given_user(address, into))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), CallFault> {
        if self.write_shared(address, bytes).is_none() && !self.write_given(address, bytes)? {
            Memory::write(self, address, bytes.len() as u64)?.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn per_cpu(&self, pointer: u64, cpu: u32) -> Result<u64, CallFault> {
        if let Some((len, block)) = self.variables
            && let Some(offset) = pointer.checked_sub(self.addresses.variables)
            && offset < len
        {
            let copy = u64::from(cpu) * block;
            return Ok(if copy < len { pointer + copy } else { 0 });
        }
        match &self.objects {
            Some(objects) if objects.start(pointer).is_some() => {
                Ok(objects.copy_on(pointer, cpu).unwrap_or(0))
            }
            _ => Err(refused(format!(
                "{pointer:#x} is no pointer to what exists for each CPU"
            ))),
        }
    }

    fn context(&self) -> u64 {
        self.context.map_or(0, |region| self.address(region))
    }

    fn has_packet(&self, context: u64) -> bool {
        let of_packet = [self.context, self.packet_object];
        let mut of_packet = of_packet.into_iter().flatten();
        of_packet.any(|region| self.address(region) == context) && self.packet.is_some()
    }

    fn packet(&self, context: u64) -> Result<&PacketBuffer, CallFault> {
        let packet = self.packet_buffer().filter(|_| self.has_packet(context));
        packet.ok_or_else(|| no_packet(context))
    }

    fn change_packet<R>(
        &mut self,
        context: u64,
        change: impl FnOnce(&mut PacketBuffer) -> R,
    ) -> Result<R, CallFault> {
        let place = self.packet.filter(|_| self.has_packet(context));
        let place = place.ok_or_else(|| no_packet(context))?;
        let region = &mut self.regions[place.id.0];
        let Bytes::Packet(packet) = &mut region.bytes else {
            return Err(no_packet(context));
        };
        let result = change(packet);
        // It may have been moved before it was added.
        let moves = packet.moves().wrapping_sub(place.moves);
        let number = u64::from(moves) % PACKET_PLACES;
        region.start = place.buffer + number * place.stride + in_buffer(packet);
        self.describe_packet();
        Ok(result)
    }

    fn sockets(&self, _: &Sockets) -> u64 {
        self.addresses.sockets
    }

    fn socket(&self, sockets: &Sockets, pointer: u64) -> Result<SocketRef, CallFault> {
        if let Some(number) = sockets.number_of(self.addresses.sockets, pointer) {
            return Ok(SocketRef::Numbered(number));
        }
        let of_packet = self.packet_socket.map(|region| self.address(region));
        match of_packet == Some(pointer) {
            true => Ok(SocketRef::OfPacket),
            false => Err(refused(format!("no socket is at {pointer:#x}"))),
        }
    }

    fn field(&self, context: u64, offset: usize) -> u64 {
        context.wrapping_add(offset as u64)
    }

    fn map(&self, pointer: u64) -> Result<&MapObject, CallFault> {
        let index = self.called_map(pointer)?;
        self.maps.object(index).ok_or_else(|| no_map(pointer))
    }

    fn lookup(&mut self, map: u64, cpu: u32, key: &[u8]) -> Result<u64, CallFault> {
        let index = self.called_map(map)?;
        let value = self.maps.lookup(index, cpu, key);
        value.map_err(|no_room| refused(no_room.to_string()))
    }

    fn find(&mut self, map: u64, what: ValueOf<'_>) -> Result<u64, CallFault> {
        let index = self.called_map(map)?;
        let found = self.maps.find(index, what);
        found.map_err(|no_room| refused(no_room.to_string()))
    }

    fn exchange(&mut self, address: u64, new: u64) -> Result<u64, CallFault> {
        if self.update_shared::<8>(address, |old| old).is_none() {
            return Err(self.fault(address, 8, Access::Update).into());
        }
        self.pass_reference(new)?;
        let old = self.update_shared::<8>(address, |_| new).unwrap_or(0);
        self.take_reference(old);
        Ok(old)
    }

    fn reserve(&mut self, map: u64, len: u64, flags: u64) -> Result<u64, CallFault> {
        let index = self.called_map(map)?;
        let record = self.maps.reserve(index, len, flags);
        record.map_err(|no_room| refused(no_room.to_string()))
    }

    fn submit(&mut self, record: u64, is_discarded: bool) -> Result<(), CallFault> {
        match self.maps.submit(record, is_discarded) {
            true => Ok(()),
            false => Err(refused(format!(
                "{record:#x} is no record of a ring buffer that is being written"
            ))),
        }
    }

    fn lock(&mut self, address: u64) -> Result<(), CallFault> {
        if let Some(held) = self.held_lock {
            return Err(refused(format!(
                "the run holds the lock at {held:#x} already"
            )));
        }
        let mut waits = 0..MOST_WAITS;
        if !self.wait_for_lock(address, || waits.next().is_some())? {
            return Err(refused(format!("the lock at {address:#x} is not freed")));
        }
        self.held_lock = Some(address);
        Ok(())
    }

    fn unlock(&mut self, address: u64) -> Result<(), CallFault> {
        if self.held_lock != Some(address) {
            return Err(refused(format!(
                "the run does not hold the lock at {address:#x}"
            )));
        }
        self.free_held_lock();
        Ok(())
    }

    fn next_entry(
        &mut self,
        map: u64,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Result<Option<[u64; 2]>, CallFault> {
        let index = self.called_map(map)?;
        let entry = self.maps.next_entry(index, cpu, cursor);
        entry.map_err(|no_room| refused(no_room.to_string()))
    }

    fn end_entries(&mut self, map: u64, cursor: &mut Cursor) -> Result<(), CallFault> {
        let index = self.called_map(map)?;
        self.maps.end_entries(index, cursor);
        Ok(())
    }

    fn value_address(&self, address: u64) -> Result<u64, CallFault> {
        let objects = self.objects.as_ref();
        let found = (self.maps.host_address(address))
            .or_else(|| objects.and_then(|objects| objects.place(address)));
        found.ok_or_else(|| refused(format!("{address:#x} is not in the value of a map")))
    }

    fn callback(&self, function: u64) -> Result<Callback, CallFault> {
        let slot = self.slot_at(function);
        let slot = slot.and_then(|slot| u32::try_from(slot).ok());
        let slot = slot.ok_or_else(|| refused(format!("no function is at {function:#x}")))?;
        Ok(Callback {
            program: self.program,
            slot,
        })
    }

    fn begin(&mut self, iteration: Box<dyn Iteration<Memory<'m>>>) {
        self.begun = Some(iteration);
    }
}

fn no_packet(context: u64) -> CallFault {
    refused(format!(
        "{context:#x} is no pointer to a context with a packet"
    ))
}

pub(super) fn no_map(pointer: u64) -> CallFault {
    refused(format!("{pointer:#x} is no pointer to a map"))
}

pub(in crate::checked) fn refused(why: String) -> CallFault {
    CallFault::Refused(why.into())
}
