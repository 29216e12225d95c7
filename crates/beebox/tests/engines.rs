//! Every engine gives the answer of the plain interpreter, on generated programs
//! and packets. `BEEBOX_ORACLE_PROGRAMS` and `BEEBOX_ORACLE_SEED` set the programs of each
//! comparison.

use beebox::{
    Engine, Filter, JumpLimitExceeded, Metadata, Packet, Rules, Semantics,
    seccomp::{SeccompData, SeccompFilter},
};
use isa::classic::SockFilter;
use std::ops::Range;
use testkit::engines::{PACKETS_PER_PROGRAM, compare_engines};
use testkit::generate::Dialect;

/// The engines that are compared with the plain interpreter.
const COMPARED: [Engine; 2] = [Engine::Interp, Engine::Native];

/// Pairs of a program and a packet in each comparison, unless the environment says
/// otherwise.
const PAIRS: u64 = 300_000;

/// The seeds of a comparison, of which the first is `start` unless the environment says
/// otherwise.
fn seeds(start: u64) -> Range<u64> {
    let seeds = oracle::seeds(PAIRS / PACKETS_PER_PROGRAM);
    start + seeds.start..start + seeds.end
}

/// Runs a program on packets, each with a random source that starts anew.
fn run_all(
    program: &[SockFilter],
    packets: &[Packet<'_>],
    semantics: Semantics,
    engine: Engine,
) -> Vec<Result<u32, JumpLimitExceeded>> {
    let filter = Filter::builder()
        .rules(Rules::Socket)
        .semantics(semantics)
        .engine(engine)
        .build(program)
        .expect("generated programs are valid");
    packets
        .iter()
        .map(|packet| filter.seeded_runner(7).run(packet))
        .collect()
}

fn compare(semantics: Semantics, dialect: Dialect, first_seed: u64) {
    let values = |engine| {
        move |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
            let results = run_all(program, packets, semantics, engine);
            values.extend(
                results
                    .into_iter()
                    .map(|r| r.expect("socket filters have no loops")),
            );
        }
    };
    for (number, engine) in COMPARED.into_iter().enumerate() {
        let seeds = seeds(first_seed + ((number as u64) << 40));
        let engines = (values(Engine::Checked), values(engine));
        let (pairs, difference) = compare_engines(seeds, dialect, engines.0, engines.1);
        let name = engine.name();
        assert!(
            difference.is_none(),
            "{name}, {semantics:?}: {difference:#x?}"
        );
        println!("{name}, {semantics:?}: {pairs} pairs, no difference");
    }
}

#[oracle::test]
fn all_are_classic_with_kernel_semantics() {
    compare(Semantics::Kernel, Dialect::Socket, 0);
}

#[oracle::test]
fn all_are_classic_with_capture_semantics() {
    compare(Semantics::Capture, Dialect::Socket, 1 << 32);
}

#[oracle::test]
fn all_are_classic_on_system_calls() {
    let values = |engine| {
        move |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
            let filter = SeccompFilter::builder()
                .engine(engine)
                .build(program)
                .expect("generated programs are valid");
            let mut filter = filter.runner();
            values.extend(
                packets
                    .iter()
                    .map(|packet| filter.run(&call(packet.data()))),
            );
        }
    };
    for (number, engine) in COMPARED.into_iter().enumerate() {
        let seeds = seeds(1 << 33 | (number as u64) << 40);
        let engines = (values(Engine::Checked), values(engine));
        let (pairs, difference) = compare_engines(seeds, Dialect::Seccomp, engines.0, engines.1);
        let name = engine.name();
        assert!(difference.is_none(), "{name}, seccomp: {difference:#x?}");
        println!("{name}, seccomp: {pairs} pairs, no difference");
    }
}

/// A system call made of a packet's bytes.
fn call(bytes: &[u8]) -> SeccompData {
    let word = |index: usize| {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(at as u8);
        u64::from_le_bytes(std::array::from_fn(|at| byte(8 * index + at)))
    };
    SeccompData {
        nr: word(0) as i32,
        arch: (word(0) >> 32) as u32,
        instruction_pointer: word(1),
        args: std::array::from_fn(|index| word(2 + index)),
    }
}

/// libpcap's `protochain` walks headers with a backward jump; here a loop that
/// adds up bytes until it finds a zero, over every length of packet.
#[oracle::test]
fn loops_of_capture_filters_agree() {
    let program = [
        SockFilter::new(0x01, 0, 0, 0),            //  0: ldx #0
        SockFilter::new(0x50, 0, 0, 0),            //  1: ldb [x + 0]
        SockFilter::new(0x15, 6, 0, 0),            //  2: jeq #0, 9
        SockFilter::new(0x02, 0, 0, 3),            //  3: st M[3]
        SockFilter::new(0x60, 0, 0, 5),            //  4: ld M[5]
        SockFilter::new(0x04, 0, 0, 1),            //  5: add #1
        SockFilter::new(0x02, 0, 0, 5),            //  6: st M[5]
        SockFilter::new(0x07, 0, 0, 0),            //  7: tax
        SockFilter::new(0x05, 0, 0, -8i32 as u32), // 8: ja 1
        SockFilter::new(0x60, 0, 0, 5),            //  9: ld M[5]
        SockFilter::new(0x16, 0, 0, 0),            // 10: ret a
    ];
    let mut bytes = vec![1u8; 300];
    bytes.push(0);
    let both = Engine::ALL.iter().map(|&engine| {
        let filter = Filter::builder()
            .engine(engine)
            .build(&program)
            .expect("capture rules allow backward jumps");
        let run = |data: &[u8]| {
            filter
                .runner()
                .run(&Packet::whole(data, &beebox::Metadata::UNKNOWN))
        };
        (0..=bytes.len())
            .map(|start| run(&bytes[start..]))
            .collect::<Vec<_>>()
    });
    let answers: Vec<_> = both.collect();
    assert_eq!(answers[0][0], Ok(300));
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[oracle::test]
fn endless_loops_end_alike() {
    let program = [
        SockFilter::new(0x05, 0, 0, u32::MAX),
        SockFilter::new(0x06, 0, 0, 1),
    ];
    for &engine in Engine::ALL {
        let filter = Filter::builder()
            .engine(engine)
            .build(&program)
            .expect("capture rules allow backward jumps");
        let packet = Packet::whole(&[], &beebox::Metadata::UNKNOWN);
        assert_eq!(filter.runner().run(&packet), Err(JumpLimitExceeded));
    }
}

/// A branch between two constants, one of which is returned by two instructions: a jump
/// leads to the second.
#[oracle::test]
fn a_return_may_be_entered_behind_its_constant() {
    let program = [
        (0x30, 0, 0, 0), // ldb [0]
        (0x15, 2, 0, 9), // jeq #9, to ret a
        (0x15, 2, 0, 1), // jeq #1, to ret #7
        (0x00, 0, 0, 5), // ld #5
        (0x16, 0, 0, 0), // ret a
        (0x06, 0, 0, 7), // ret #7
    ]
    .map(|(code, jt, jf, k)| SockFilter::new(code, jt, jf, k));
    let data = [[9], [1], [0]];
    let packets = data
        .each_ref()
        .map(|data| Packet::whole(data, &Metadata::UNKNOWN));
    for engine in [Engine::Checked, Engine::Interp, Engine::Native] {
        for semantics in [Semantics::Capture, Semantics::Kernel] {
            let answers = run_all(&program, &packets, semantics, engine);
            assert_eq!(answers, [Ok(9), Ok(7), Ok(5)], "{}", engine.name());
        }
    }
}

#[oracle::test]
fn a_filter_of_packets_has_no_rules_of_system_calls() {
    let program = [SockFilter::new(0x06, 0, 0, 0)];
    for engine in Engine::ALL {
        let builder = Filter::builder().engine(*engine).rules(Rules::Seccomp);
        let refused = builder.build(&program).err();
        assert_eq!(refused, Some(beebox::FilterError::OtherRules), "{engine:?}");
    }
}
