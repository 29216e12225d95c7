//! Filters whose constants are hidden answer as the plain interpreter does.

use beebox_jit::memory::Pool;
use beebox_jit::{Native, Options};
use classic::{Program, Rules, Semantics, check, convert};
use isa::classic::SockFilter;
use lower::Lowered;
use packet::Packet;
use spec::SplitMix;
use testkit::engines::{PACKETS_PER_PROGRAM, compare_engines};
use testkit::generate::Dialect;
use vm::{Machine, Outcome};

/// Pairs of a program and a packet for each of the two semantics.
const PAIRS: u64 = 100_000;

fn compare(semantics: Semantics) {
    let checked = |program: &[SockFilter]| {
        check(program, Rules::Socket).expect("generated programs are valid")
    };
    let plain = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let program = Program::prepare(&checked(program), semantics);
        values.extend(packets.iter().map(|packet| {
            let value = program.run(packet, &mut SplitMix::new(7));
            value.expect("socket filters have no loops")
        }));
    };
    let pool = Pool::new();
    let hardened = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let lowered = Lowered::from_classic(convert(&checked(program), semantics));
        let random = &mut SplitMix::new(3);
        let native = Native::compile_hardened(&lowered, &Options::default(), &pool, random);
        let native = native.expect("every filter compiles");
        let mut machine = Machine::new();
        values.extend(packets.iter().map(|packet| {
            let random = &mut SplitMix::new(7);
            let outcome = native.run_packet(&mut machine, packet, random, u64::MAX);
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

#[test]
fn with_the_semantics_of_captures() {
    compare(Semantics::Capture);
}

#[test]
fn with_the_semantics_of_the_kernel() {
    compare(Semantics::Kernel);
}
