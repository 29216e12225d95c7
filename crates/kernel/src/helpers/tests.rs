//! Helpers over a memory of one buffer with a packet in it.

use spec::SplitMix;
use vm::{MemoryPort, World};

use super::{NUMBERS, find};

const CONTEXT: u64 = 0xb000;

/// Bytes at addresses from 0 on; everything else is a fault.
struct Buffer {
    bytes: Vec<u8>,
    packet: (u64, u64),
}

impl MemoryPort for Buffer {
    type Fault = u64;

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), u64> {
        let start = address as usize;
        let bytes = self.bytes.get(start..start + into.len()).ok_or(address)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        let start = address as usize;
        let place = self.bytes.get_mut(start..start + bytes.len());
        place.ok_or(address)?.copy_from_slice(bytes);
        Ok(())
    }

    fn packet(&self, context: u64) -> Result<(u64, u64), u64> {
        match context {
            CONTEXT => Ok(self.packet),
            _ => Err(context),
        }
    }
}

fn buffer() -> Buffer {
    Buffer {
        bytes: (0..128).collect(),
        packet: (64, 20),
    }
}

fn call(memory: &mut Buffer, name: &str, arguments: [u64; 5]) -> Result<u64, u64> {
    let number = spec::helpers::number(name).unwrap();
    let mut world = World {
        random: &mut SplitMix::new(0),
        clock: &mut || 77,
        cpu: 3,
    };
    find(number).unwrap()(arguments, memory, &mut world)
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
fn the_world_answers() {
    let mut memory = buffer();
    assert_eq!(call(&mut memory, "bpf_ktime_get_ns", [0; 5]), Ok(77));
    assert_eq!(call(&mut memory, "bpf_get_smp_processor_id", [0; 5]), Ok(3));
    let random = call(&mut memory, "bpf_get_prandom_u32", [0; 5]).unwrap();
    assert!(random <= u64::from(u32::MAX));
}
