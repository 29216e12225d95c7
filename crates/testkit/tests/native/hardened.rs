//! Hardened filters return what the plain interpreter returns, and their code contains no
//! constant of the program.

use beebox_testkit::engines::{PACKETS_PER_PROGRAM, compare_engines};
use beebox_testkit::generate::Dialect;
use classic::{Checked, PlainProgram, Rules, Semantics, check, convert};
use isa::classic::SockFilter;
use isa::ebpf::assemble;
use jit::memory::Pool;
use jit::{Native, NativeCode, Options};
use lower::{ClassicFilter, Lowered, PacketFilter};
use packet::Packet;
use spec::SplitMix;
use vm::{Machine, Outcome, Unchecked};

/// Pairs of a program and a packet for each of the two semantics.
const PAIRS: u64 = 100_000;

fn compare(semantics: Semantics) {
    let checked = |program: &[SockFilter]| {
        check(program, Rules::Socket).expect("generated programs are valid")
    };
    let plain = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let program = PlainProgram::prepare(&checked(program), semantics);
        values.extend(packets.iter().map(|packet| {
            let value = program.run(packet, &mut SplitMix::new(7));
            value.expect("socket filters have no loops")
        }));
    };
    let pool = Pool::new();
    let hardened = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let lowered = lowered(&checked(program), semantics);
        let random = &mut SplitMix::new(3);
        let native = Native::compile_hardened(&lowered, &Options::default(), &pool, random);
        let native = native.expect("every filter compiles");
        let mut machine = Machine::new();
        values.extend(packets.iter().map(|packet| {
            let random = &mut SplitMix::new(7);
            let outcome = native.run(&mut machine, packet, random, u64::MAX);
            match outcome {
                Outcome::Returned(value) => value as u32,
                other => panic!("a socket filter ended with {other:?}"),
            }
        }));
    };
    let seeds = 0..PAIRS / PACKETS_PER_PROGRAM;
    let (_, difference) = compare_engines(seeds, Dialect::Socket, plain, hardened);
    assert!(difference.is_none(), "{semantics:?}: {difference:#x?}");
}

/// Lowers a filter of packets.
fn lowered(checked: &Checked, semantics: Semantics) -> Lowered<PacketFilter> {
    let filter = ClassicFilter::from_converted(convert(checked, semantics)).packet();
    filter.expect("the rules are those of packets")
}

#[test]
fn hardened_filters_agree_with_capture_semantics() {
    compare(Semantics::Capture);
}

#[test]
fn hardened_filters_agree_with_kernel_semantics() {
    compare(Semantics::Kernel);
}

/// A constant that occurs nowhere else; as an offset of a load it is negative.
const DISTINCT: u32 = 0x9317_c3e9;
/// A constant that occurs nowhere else; as an offset it is positive.
const DISTINCT_POSITIVE: u32 = 0x1317_c3e9;
/// Number of times that each program is compiled.
const TIMES: u64 = 50;

/// True if the code contains the bytes of the constant, in either order.
fn contains(native: &NativeCode, constant: u32) -> bool {
    let holds = |bytes: [u8; 4]| native.image().windows(4).any(|at| at == bytes);
    holds(constant.to_le_bytes()) || holds(constant.to_be_bytes())
}

#[test]
fn both_halves_of_a_64_bit_constant_are_blinded() {
    let long = u64::from(DISTINCT) << 32 | u64::from(DISTINCT_POSITIVE);
    let high = u64::from(DISTINCT) << 32;
    for value in [
        long,
        high,
        u64::from(DISTINCT_POSITIVE),
        u64::from(DISTINCT),
        !long,
    ] {
        let text = format!("r0 = {value:#x} ll; exit");
        // SAFETY: it accesses no memory and ends.
        let trusted = unsafe { Unchecked::assume_safe(assemble(&text).expect("it is a program")) };
        let lowered = Lowered::from_unchecked(trusted).expect("it is whole");
        let halves = [value as u32, (value >> 32) as u32];
        let (pool, options) = (Pool::new(), Options::default());
        for seed in 0..TIMES {
            let random = &mut SplitMix::new(seed);
            let native = Native::compile_hardened(&lowered, &options, &pool, random);
            let native = native.expect("it compiles");
            for half in halves.into_iter().filter(|&half| half != 0) {
                assert!(
                    !contains(&native, half),
                    "{value:#x}: {:x?}",
                    native.image()
                );
            }
            let outcome = native.run(&mut Machine::new(), &mut [], &mut SplitMix::new(0));
            assert_eq!(outcome, Outcome::Returned(value));
        }
    }
}

#[test]
fn no_constant_of_the_program_is_in_the_code() {
    let insn = |code, k| SockFilter::new(code, 0, 0, k);
    let ret_a = insn(0x16, 0);
    let jump = |code, k| {
        vec![
            insn(0x20, 2),
            SockFilter::new(code, 1, 0, k),
            ret_a,
            insn(0x06, 1),
        ]
    };
    let mut programs = vec![vec![insn(0x06, DISTINCT)]];
    // Comparisons, also with a half of a packet.
    programs.extend([0x15, 0x25, 0x35, 0x45].map(|code| jump(code, DISTINCT)));
    // Arithmetic with what was loaded.
    let alu = [0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x94, 0xa4];
    programs.extend(alu.map(|code| vec![insn(0x30, 2), insn(code, DISTINCT), ret_a]));
    // Into A, X and scratch memory.
    programs.push(vec![
        insn(0x00, DISTINCT),
        insn(0x02, 3),
        insn(0x60, 3),
        ret_a,
    ]);
    programs.push(vec![
        insn(0x20, 2),
        insn(0x01, DISTINCT),
        insn(0x0c, 0),
        ret_a,
    ]);
    // Loads of every size, also by X and of a header's length.
    for offset in [DISTINCT, DISTINCT_POSITIVE] {
        for code in [0x20, 0x28, 0x30] {
            programs.push(vec![insn(code, offset), ret_a]);
            programs.push(vec![insn(0xb1, 2), insn(code + 0x20, offset), ret_a]);
        }
        programs.push(vec![insn(0xb1, offset), insn(0x87, 0), ret_a]);
    }
    let mut shown = 0;
    for (program, semantics) in programs
        .iter()
        .flat_map(|program| [(program, Semantics::Capture), (program, Semantics::Kernel)])
    {
        let checked = check(program, Rules::Socket).expect("the program is valid");
        let lowered = lowered(&checked, semantics);
        let contains =
            |native: &NativeCode| contains(native, DISTINCT) || contains(native, DISTINCT_POSITIVE);
        let (pool, options) = (Pool::new(), Options::default());
        let plain = Native::compile(&lowered, &options, &pool).expect("it compiles");
        shown += u32::from(contains(&plain));
        for seed in 0..TIMES {
            let random = &mut SplitMix::new(seed);
            let native = Native::compile_hardened(&lowered, &options, &pool, random);
            let native = native.expect("it compiles");
            assert!(!contains(&native), "{semantics:?}: {program:x?}");
        }
    }
    assert!(shown >= 40, "{shown} would show their constants");
}
