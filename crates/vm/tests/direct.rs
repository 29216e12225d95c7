//! The memory of verified programs, on memory and maps of this test.

use std::sync::Arc;

use beebox_vm::{
    CellSlice, Cells, ContextKind, Direct, DirectContext, MapAttributes, MapHandle, MapOperations,
    MemoryPort, PacketBuffer, RunContext, RunGuard, SKB,
};
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, SplitMix};

/// One value, of the key 7.
#[derive(Debug)]
struct One(Cells);

impl MapOperations for One {
    fn lookup<'g>(&'g self, _: &'g RunGuard, _: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        (key == [7]).then(|| self.0.slice(0, 16))
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }
}

/// The context of a run with a guard and the context of a program.
fn of_run<'a>(
    guard: &'a RunGuard,
    context: u64,
    packet: &'a packet::Packet<'a>,
    random: &'a mut SplitMix,
) -> RunContext<'a> {
    RunContext {
        context,
        guard: Some(guard),
        ..RunContext::new(packet, random, None)
    }
}

#[test]
fn any_bytes_are_copied() {
    let guard = RunGuard::new();
    let mut bytes: Vec<u8> = (0..64).collect();
    let mut model = bytes.clone();
    let start = bytes.as_mut_ptr().expose_provenance() as u64;
    let (packet, mut random) = (
        packet::Packet::whole(&[], &packet::Metadata::UNKNOWN),
        SplitMix::new(0),
    );
    let cx = of_run(&guard, 0, &packet, &mut random);
    // SAFETY: all addresses below are in the bytes.
    let mut memory = unsafe { Direct::new(&cx) };
    for (at, len) in [(0, 64), (0, 0), (8, 8), (3, 5), (8, 19), (1, 63), (63, 1)] {
        let new: Vec<u8> = (0..len).map(|i| (at * 3 + i * 5) as u8).collect();
        memory.write(start + at as u64, &new).unwrap();
        model[at..at + len].copy_from_slice(&new);
        let mut back = vec![0; len];
        memory.read(start + at as u64, &mut back).unwrap();
        assert_eq!(back, new);
        let mut all = vec![0; 64];
        memory.read(start, &mut all).unwrap();
        assert_eq!(all, model);
    }
}

#[test]
fn pointers_to_maps_are_addresses_of_their_handles() {
    let guard = RunGuard::new();
    let cells = Cells::zeroed(2).unwrap();
    let attributes = MapAttributes {
        kind: MapKind::Hash,
        max_entries: 2,
        key_size: 1,
        value_size: 16,
        flags: MapFlags::default(),
        copies: 1,
        timers: None,
        objects: None,
        charge: None,
    };
    let handle = MapHandle::new(attributes, Arc::new(One(cells)));
    let kept = handle.clone();
    let pointer = handle.address();
    drop(handle);
    let (packet, mut random) = (
        packet::Packet::whole(&[], &packet::Metadata::UNKNOWN),
        SplitMix::new(0),
    );
    let cx = of_run(&guard, 0, &packet, &mut random);
    // SAFETY: the addresses below are those of the handle, which exists, and of its value.
    let mut memory = unsafe { Direct::new(&cx) };
    assert_eq!(memory.map(pointer).unwrap().value_size, 16);
    assert_eq!(memory.lookup(pointer, 0, &[1]), Ok(0));
    let value = memory.lookup(pointer, 0, &[7]).unwrap();
    memory.write(value + 9, &[5]).unwrap();
    let value = kept.operations().lookup(&guard, 0, &[7]).unwrap();
    assert_eq!(value.to_vec()[8..], [0, 5, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn helpers_change_the_packet_of_a_context() {
    let guard = RunGuard::new();
    let mut packet = PacketBuffer::new(SKB, b"packet", 4, 0);
    let mut context = DirectContext::new(ContextKind::SkBuff, &[0; 4]);
    let address = context.bind(Some(&mut packet));
    let (none, mut random) = (
        packet::Packet::whole(&[], &packet::Metadata::UNKNOWN),
        SplitMix::new(0),
    );
    let cx = of_run(&guard, address, &none, &mut random);
    // SAFETY: the address is that of a context with a packet.
    let mut memory = unsafe { Direct::new(&cx) };
    assert!(memory.has_packet(memory.context()));
    // More than the room in front.
    memory
        .change_packet(address, |packet| packet.insert(0, 100))
        .unwrap();
    assert_eq!(memory.packet(address).unwrap().len(), 106);
    let mut bounds = [[0; 8]; 2];
    for (offset, bytes) in [DirectContext::DATA, DirectContext::DATA_END]
        .into_iter()
        .zip(&mut bounds)
    {
        memory
            .read(address.wrapping_add_signed(offset.into()), bytes)
            .unwrap();
    }
    let [data, end] = bounds.map(u64::from_ne_bytes);
    assert_eq!(end - data, 106);
    memory.write(data + 99, b"P").unwrap();
    let mut len = [0; 4];
    memory.read(memory.field(address, 0), &mut len).unwrap();
    assert_eq!(u32::from_le_bytes(len), 106);
    assert_eq!(packet.to_vec()[98..], *b"\0Ppacket");
}
