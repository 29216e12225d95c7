//! Helpers in the checked engine and in the running kernel: equal results.

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::{assemble, decode, encode};
use kernel::programs::SKB;
use spec::SplitMix;
use spec::programs::ProgramType;
use sys::bpf::{ProgLoad, TestRun};
use vm::World;

use beebox_testkit::ebpf::Choices;

/// The low half of what a tc program returns for a packet, in the checked engine.
fn ours(text: &str, packet: &[u8]) -> u32 {
    let (mut packet, mut context) = (packet.to_vec(), vec![0; SKB.size]);
    let len = packet.len() as u32;
    let mut memory = Memory::new();
    let data = memory.add_packet(&mut packet).unwrap();
    SKB.set_packet(&mut context, memory.address(data) as u32, len);
    let context = memory.add_context(&mut context).unwrap();
    let entry = Entry {
        arguments: [memory.address(context), 0, 0, 0, 0],
    };
    let mut calls = Calls::resolved(|number, arguments, memory| {
        let mut world = World {
            random: &mut SplitMix::new(0),
            clock: &mut || 0,
            cpu: 0,
        };
        let helper = kernel::helpers::find(number)?;
        Some(helper(arguments, memory, &mut world))
    });
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let slots = encode(&assemble(text).unwrap()).unwrap();
    let program = CheckedProgram::new(decode(&slots));
    program.run(cx, entry, &Limits::default()).outcome.unwrap() as u32
}

/// The same in the running kernel; `None` where it cannot be asked.
fn theirs(text: &str, packet: &[u8]) -> Option<u32> {
    const WHAT: &str = "helpers and the running kernel's";
    let slots = encode(&assemble(text).unwrap()).unwrap();
    let request = ProgLoad::new(ProgramType::SchedCls.number(), &slots);
    let (loaded, _) = oracle::found(WHAT, request.load().map_err(|refused| refused.errno))?;
    let result = loaded.test_run(&TestRun::on(packet), &mut [0; 1024], &mut []);
    Some(result.unwrap().retval)
}

/// Compares a number of generated programs on generated packets.
fn compare(seed: u64, mut program: impl FnMut(&mut Choices<'_>, usize) -> String) {
    let mut choices = Choices::from_seed(seed);
    for _ in 0..200 {
        let len = 34 + choices.below(100) as usize;
        let packet: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
        let text = program(&mut choices, len);
        let Some(theirs) = theirs(&text, &packet) else {
            return;
        };
        assert_eq!(ours(&text, &packet), theirs, "{text}\n{packet:02x?}");
    }
}

/// Stores random words below the frame pointer.
fn words(choices: &mut Choices<'_>, count: u32) -> String {
    let store = |slot| {
        let value = choices.value();
        format!("r1 = {value:#x} ll\n*(u64 *)(r10 - {}) = r1\n", 8 * slot)
    };
    (1..=count).map(store).collect()
}

#[test]
fn checksum_differences_are_those_of_linux() {
    compare(28, |choices, _| {
        let stores = words(choices, 8);
        let mut side = |register: u32| {
            let size = 4 * choices.below(9);
            let (from, size_in) = (register, register + 1);
            match (size, choices.one_in(8)) {
                (0, true) => format!("r{from} = 0\nr{size_in} = 0\n"),
                _ => format!(
                    "r{from} = r10\nr{from} += -{}\nr{size_in} = {size}\n",
                    size.max(4)
                ),
            }
        };
        let (from, to) = (side(1), side(3));
        let seed = choices.value();
        format!("{stores}{from}{to}r5 = {seed:#x} ll\ncall 28\nexit")
    });
}

#[test]
fn checksums_of_any_size_are_those_of_linux() {
    compare(29, |choices, _| {
        let stores = words(choices, 2);
        let size = 1 + choices.below(16);
        format!("{stores}r1 = r10\nr1 += -16\nr2 = {size}\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28\nexit")
    });
}

#[test]
fn packet_bytes_and_errors_are_those_of_linux() {
    compare(26, |choices, packet| {
        let len = 1 + choices.below(16);
        let offset = match choices.below(4) {
            0 => choices.value(),
            1 => packet as u64 - choices.below(20) as u64,
            _ => choices.below(packet as u32).into(),
        };
        // The error, mixed with every byte that was written.
        format!(
            "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\nr2 = {offset:#x} ll\nr3 = r10\n\
             r3 += -16\nr4 = {len}\ncall 26\nr1 = *(u64 *)(r10 - 8)\nr0 *= 31\nr0 += r1\n\
             r1 = *(u64 *)(r10 - 16)\nr0 *= 31\nr0 += r1\nr1 = r0\nr1 >>= 32\nr0 ^= r1\nexit"
        )
    });
}
