//! Helpers over a memory of one buffer with a packet in it.

pub(crate) mod accesses;
mod model;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use packet::{Metadata, Packet};
use program::MapParams;
use spec::SplitMix;
use spec::maps::MapKind;
use vm::network::{SocketRef, Sockets};
use vm::{
    Callback, Cursor, Iteration, MapObject, MemoryPort, PacketBuffer, RunContext, RunGuard, SKB,
    ValueOf,
};

use super::{NUMBERS, find};
use crate::maps::{Host, Map, ValueLayout};
use model::Model;

pub(crate) const CONTEXT: u64 = 0xb000;
pub(crate) const MAP: u64 = 0xc000;

/// Bytes at addresses from 0 on; everything else is a fault.
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    packet: PacketBuffer,
    map: Map,
    /// The reads and writes, of bytes from these addresses on: true for writes.
    pub(crate) accesses: RefCell<Vec<(bool, Range<u64>)>>,
    /// True if bytes at an address that is not proven valid were asked for.
    pub(crate) is_probed: Cell<bool>,
    model: Model,
}

impl Buffer {
    fn note(&self, is_write: bool, address: u64, len: usize) {
        let range = address..address.saturating_add(len as u64);
        self.accesses.borrow_mut().push((is_write, range));
    }
}

impl MemoryPort for Buffer {
    type Fault = u64;

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), u64> {
        self.note(false, address, into.len());
        if self.model.objects.read(address, into).is_some() {
            return Ok(());
        }
        let start = address as usize;
        let bytes = (start.checked_add(into.len())).and_then(|end| self.bytes.get(start..end));
        let bytes = bytes.ok_or(address)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        self.note(true, address, bytes.len());
        if self.model.objects.write(address, bytes).is_some() {
            return Ok(());
        }
        let start = address as usize;
        let end = start.checked_add(bytes.len());
        let place = end.and_then(|end| self.bytes.get_mut(start..end));
        place.ok_or(address)?.copy_from_slice(bytes);
        Ok(())
    }

    fn probe(&self, address: u64, into: &mut [u8]) -> bool {
        self.is_probed.set(true);
        let start = address as usize;
        let bytes = (start.checked_add(into.len())).and_then(|end| self.bytes.get(start..end));
        bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }

    fn per_cpu(&self, pointer: u64, cpu: u32) -> Result<u64, Self::Fault> {
        Ok(pointer + u64::from(cpu))
    }

    fn find(&mut self, map: u64, _: ValueOf<'_>) -> Result<u64, u64> {
        Err(map)
    }

    fn exchange(&mut self, address: u64, new: u64) -> Result<u64, u64> {
        let mut old = [0; 8];
        self.read(address, &mut old)?;
        self.write(address, &new.to_le_bytes())?;
        Ok(u64::from_le_bytes(old))
    }

    fn value_address(&self, address: u64) -> Result<u64, u64> {
        Ok(address)
    }

    fn callback(&self, function: u64) -> Result<Callback, u64> {
        Ok(Callback {
            program: 0,
            slot: function as u32,
        })
    }

    fn context(&self) -> u64 {
        CONTEXT
    }

    fn has_packet(&self, context: u64) -> bool {
        context == CONTEXT
    }

    fn packet(&self, context: u64) -> Result<&PacketBuffer, u64> {
        match context {
            CONTEXT => Ok(&self.packet),
            _ => Err(context),
        }
    }

    fn change_packet<R>(
        &mut self,
        context: u64,
        change: impl FnOnce(&mut PacketBuffer) -> R,
    ) -> Result<R, u64> {
        match context {
            CONTEXT => Ok(change(&mut self.packet)),
            _ => Err(context),
        }
    }

    fn sockets(&self, _: &Sockets) -> u64 {
        0xd000
    }

    fn socket(&self, sockets: &Sockets, pointer: u64) -> Result<SocketRef, u64> {
        let number = sockets.number_of(0xd000, pointer);
        number.map(SocketRef::Numbered).ok_or(pointer)
    }

    fn field(&self, context: u64, offset: usize) -> u64 {
        context + offset as u64
    }

    fn map(&self, pointer: u64) -> Result<&MapObject, u64> {
        match pointer {
            MAP => Ok(self.map.handle()),
            _ => Err(pointer),
        }
    }

    /// The first byte of the value in place of its address.
    fn lookup(&mut self, map: u64, cpu: u32, key: &[u8]) -> Result<u64, u64> {
        let guard = RunGuard::new();
        let value = self.map(map)?.operations().lookup(&guard, cpu, key);
        Ok(value.map_or(0, |value| value.to_vec()[0].into()))
    }

    fn reserve(&mut self, _: u64, _: u64, _: u64) -> Result<u64, u64> {
        Ok(0)
    }

    fn submit(&mut self, record: u64, _: bool) -> Result<(), u64> {
        Err(record)
    }

    fn lock(&mut self, address: u64) -> Result<(), u64> {
        Err(address)
    }

    fn unlock(&mut self, address: u64) -> Result<(), u64> {
        Err(address)
    }

    fn next_entry(&mut self, map: u64, _: u32, _: &mut Cursor) -> Result<Option<[u64; 2]>, u64> {
        Err(map)
    }

    fn end_entries(&mut self, _: u64, _: &mut Cursor) -> Result<(), u64> {
        Ok(())
    }

    fn begin(&mut self, _: Box<dyn Iteration<Buffer>>) {}
}

pub(crate) fn buffer() -> Buffer {
    let params = MapParams {
        map_type: MapKind::PercpuHash.number(),
        key_size: 4,
        value_size: 8,
        max_entries: 2,
        ..MapParams::default()
    };
    let host = Host::new(4, 1);
    let packet: Vec<u8> = (64..84).collect();
    Buffer {
        bytes: (0..128).collect(),
        packet: PacketBuffer::new(SKB, &packet, 0, 0),
        map: Map::create(&params, ValueLayout::plain(8), &host).unwrap(),
        accesses: RefCell::default(),
        is_probed: Cell::default(),
        model: Model::new(),
    }
}

fn call(memory: &mut Buffer, name: &str, arguments: [u64; 5]) -> Result<u64, u64> {
    let number = spec::helpers::number(name).unwrap();
    let mut random = SplitMix::new(0);
    let mut clock = || 77;
    let metadata = Metadata::from_cpu(3);
    let packet = Packet::whole(&[], &metadata);
    let mut cx = RunContext::new(&packet, &mut random, Some(&mut clock));
    find(number).unwrap()(arguments, memory, &mut cx)
}

#[test]
fn every_number_has_a_helper() {
    assert!(NUMBERS.is_sorted());
    assert!(
        NUMBERS
            .iter()
            .all(|number| find::<Buffer>(*number).is_some())
    );
    assert!(find::<Buffer>(2_000_000).is_none());
}

#[test]
fn bytes_beyond_a_packet_are_zero_and_an_error() {
    let mut memory = buffer();
    let load = |memory: &mut Buffer, offset: u64, len: u64| {
        call(memory, "bpf_skb_load_bytes", [CONTEXT, offset, 0, len, 0])
    };
    assert_eq!(load(&mut memory, 16, 4), Ok(0));
    assert_eq!(memory.bytes[..5], [80, 81, 82, 83, 4]);
    for (offset, len) in [(17, 4), (0, 21), (0xffff_ffff, 4)] {
        memory.bytes[0] = 9;
        assert_eq!(load(&mut memory, offset, len), Ok(-14i64 as u64));
        assert_eq!(memory.bytes[0], 0);
    }
}

#[test]
fn checksums_change_by_what_is_replaced() {
    let mut memory = buffer();
    let mut diff = |from, from_size, to, to_size, seed| {
        call(
            &mut memory,
            "bpf_csum_diff",
            [from, from_size, to, to_size, seed],
        )
    };
    assert_eq!(diff(0, 0, 0, 0, 0x1_0001), Ok(2));
    assert_eq!(diff(4, 4, 4, 4, 0), Ok(0xffff));
    assert_eq!(diff(0, 0, 4, 4, 0), Ok(0x0504 + 0x0706));
    assert_eq!(diff(0, 0, 4, 3, 0), Ok(0x0504 + 0x06));
    assert_eq!(diff(1000, 4, 0, 0, 0), Err(1000));
}

#[test]
fn clock_cpu_and_process_are_reported() {
    let mut memory = buffer();
    assert_eq!(call(&mut memory, "bpf_ktime_get_ns", [0; 5]), Ok(77));
    assert_eq!(call(&mut memory, "bpf_get_smp_processor_id", [0; 5]), Ok(3));
    let random = call(&mut memory, "bpf_get_prandom_u32", [0; 5]).unwrap();
    assert!(random <= u64::from(u32::MAX));
    assert_eq!(
        call(&mut memory, "bpf_get_current_comm", [8, 4, 0, 0, 0]),
        Ok(0)
    );
    assert_eq!(memory.bytes[8..13], *b"bee\0\x0c");
    let ids = [0, 0, 8, 8, 0];
    assert_eq!(call(&mut memory, "bpf_get_ns_current_pid_tgid", ids), Ok(0));
    assert_eq!(memory.bytes[8..16], [1, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn entries_of_maps_are_those_of_the_cpu() {
    let mut memory = buffer();
    let mut map = |name: &str, arguments: [u64; 3]| {
        let [key, value, flags] = arguments;
        let name = format!("bpf_map_{name}_elem");
        call(&mut memory, &name, [MAP, key, value, flags, 0])
    };
    let error = |number: i64| Ok(-number as u64);
    assert_eq!(map("lookup", [8, 0, 0]), Ok(0));
    assert_eq!(map("update", [8, 16, 2]), error(2));
    assert_eq!(map("update", [8, 16, 0]), Ok(0));
    assert_eq!(map("update", [8, 24, 1]), error(17));
    assert_eq!(map("lookup", [8, 0, 0]), Ok(16));
    for (cpu, value) in [(0, 0), (3, 16), (1 << 32 | 3, 16), (4, 0), (u64::MAX, 0)] {
        assert_eq!(map("lookup_percpu", [8, cpu, 0]), Ok(value));
    }
    assert_eq!(map("delete", [8, 0, 0]), Ok(0));
    assert_eq!(map("delete", [8, 0, 0]), error(2));
    assert_eq!(map("update", [8, 125, 0]), Err(125));
    assert_eq!(call(&mut memory, "bpf_map_delete_elem", [0; 5]), Err(0));
}

#[test]
#[cfg(target_os = "linux")]
fn reads_of_more_bytes_than_there_is_room_for_take_no_memory() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("the process");
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
    };
    let (mut memory, before) = (buffer(), peak());
    for name in [
        "bpf_probe_read",
        "bpf_probe_read_kernel",
        "bpf_probe_read_kernel_str",
        "bpf_probe_read_user",
    ] {
        let read = call(&mut memory, name, [0, u32::MAX.into(), 1 << 60, 0, 0]);
        assert_eq!(read, Err(0), "{name}");
    }
    assert!(peak() - before < 1 << 20, "{} KiB", peak() - before);
}
