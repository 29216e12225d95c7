//! Objects whose programs call each other through program arrays: which program ends each
//! run, what ran before, and how often, as native code, in the checked engine and in the
//! running kernel.

use crate::support::three::Three;
use crate::support::{file, packets};
use beebox::internal::ebpf::RawInsn;
use beebox::internal::object::Object;
use beebox::internal::run::{Errno, LoadError, LoadOptions, LoadedObject};

/// Runs a program everywhere; its result.
fn run(three: &mut Three, name: &str, packet: &[u8]) -> u32 {
    let run = three.run_on(name, packet, &[]);
    run.expect("every engine takes the packet")
}

#[oracle::test]
fn a_dispatcher_ends_where_the_kernels_does() {
    let mut three = Three::load("../../examples/packets/dispatch.bpf.o");
    let packets = packets();
    let verdicts = packets
        .iter()
        .map(|packet| run(&mut three, "dispatch", packet));
    let verdicts: Vec<u32> = verdicts.collect();
    // UDP over IPv4 is dropped: 11 packets, as `ip proto 17` counts.
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == 1).count(), 11);
    assert_eq!(three.number("udp_packets"), 11);
    // Of the others, 122 are TCP.
    assert_eq!(three.number("others"), packets.len() as u64 - 11 - 122);
}

/// Names of the programs of `tail_calls.bpf.c`.
const PROGRAMS: [&str; 9] = [
    "constant",
    "again",
    "computed",
    "either",
    "last",
    "caller",
    "nested",
    "tree",
    "calls_global",
];
const LEAF: &str = "leaf";

#[oracle::test]
fn chains_do_what_the_kernels_do() {
    let mut three = Three::load("tests/run/tail_calls.bpf.o");
    // (what begins, slots that are filled, result, programs and functions that were entered)
    type Case<'a> = (&'a str, &'a [(u32, &'a str)], u32, Option<u64>);
    let cases: [Case<'_>; 16] = [
        ("constant", &[], 3, Some(1)),
        ("constant", &[(2, "last")], 66, Some(2)),
        ("constant", &[(0, "last"), (1, "again")], 66, Some(2)),
        // The limit: 33 tail calls, then the call falls through.
        ("again", &[(0, "again")], 1, Some(34)),
        ("constant", &[(0, "again")], 1, Some(34)),
        ("computed", &[], 17, Some(1)),
        ("either", &[(4, "last")], 66, Some(2)),
        ("either", &[(3, "last")], 19, Some(1)),
        // From subprograms, whose callers go on.
        ("caller", &[], 64 * 2 + 64 + 55, None),
        ("caller", &[(1, "last")], 66 + 64 + 55, None),
        // 33 activations return one after the other.
        ("caller", &[(1, "caller")], 0, None),
        ("nested", &[], 5 + 100 + 1000, None),
        ("nested", &[(0, "last")], 66 + 100 + 1000, None),
        // Trees: each function takes part of the count.
        ("tree", &[(0, "tree"), (1, "leaf")], 0, None),
        ("tree", &[(0, "leaf"), (1, "tree")], 0, None),
        ("calls_global", &[(5, "calls_global")], 0, None),
    ];
    for (begin, slots, expected, count) in cases {
        three.set_number("chosen", 0);
        for (index, program) in slots {
            three.set("programs", *index, Some(program));
        }
        let before = three.number("entered");
        let about = format!("{begin} {slots:?}");
        // `caller` adds how many were entered before it.
        let of_before = if begin == "caller" { before as u32 } else { 0 };
        let result = run(&mut three, begin, &[0; 64]);
        if expected != 0 {
            assert_eq!(result, expected.wrapping_add(of_before), "{about}");
        }
        let entered = three.number("entered") - before;
        assert!(count.is_none_or(|count| count == entered), "{about}");
        three.number("trace");
        for (index, _) in slots {
            three.set("programs", *index, None);
        }
    }
}

#[oracle::test]
fn computed_indices_have_32_bits_and_an_end() {
    let mut three = Three::load("tests/run/tail_calls.bpf.o");
    three.set("programs", 3, Some("last"));
    for (index, expected) in [(3, 66), (2, 17), (7, 17), (8, 17), (u32::MAX, 17)] {
        three.set_number("chosen", index);
        assert_eq!(run(&mut three, "computed", &[0; 64]), expected, "{index}");
        three.number("trace");
    }
    // Slots beyond the array, and those that are empty.
    three.set("programs", 8, Some("last"));
    three.set("programs", 5, None);
}

/// Slots of the array that callbacks' subprograms and `loops` use, with their programs.
const OF_CALLBACKS: [[Option<&str>; 2]; 6] = [
    [None, None],
    [Some("last"), None],
    [Some("tree"), Some("last")],
    // The count of tail calls is that of the run, also below callbacks.
    [Some("loops"), None],
    [Some("loops"), Some("loops")],
    [Some("caller"), Some("caller")],
];

#[oracle::test]
fn subprograms_of_callbacks_do_what_the_kernels_do() {
    let mut three = Three::load("tests/run/tail_calls.bpf.o");
    if let Some(theirs) = &three.theirs {
        // The kernel's code counts only if no helper calls the callback.
        let info = theirs.program("loops").expect("it is loaded").info();
        let translated = info.expect("its instructions").translated;
        let is_helper =
            |insn: &RawInsn| insn.code == CALL && insn.src() == 0 && insn.imm != TAIL_CALL;
        assert!(
            !translated.iter().any(is_helper),
            "the loop is not written out"
        );
    }
    for programs in OF_CALLBACKS {
        for (index, program) in [6, 1].into_iter().zip(programs) {
            three.set("programs", index, program);
        }
        run(&mut three, "loops", &[0; 64]);
        let entered = three.number("entered");
        assert!(entered > 0);
        three.number("trace");
    }
}

#[oracle::test]
fn helpers_that_call_back_keep_the_count_in_every_engine() {
    let three = &mut Three::load("tests/run/tail_calls.bpf.o");
    for programs in OF_CALLBACKS {
        for program in ["each", "loops"] {
            for (index, program) in [6, 1].into_iter().zip(programs) {
                let program = program.map(|name| if name == "loops" { "each" } else { name });
                three.set("programs", index, program);
            }
            let ours = [&mut three.native, &mut three.interp, &mut three.checked];
            let runs = ours.map(|loaded| {
                let run = loaded.program(program).expect(program).test_run(&[0; 64]);
                let left = ["trace", "entered"].map(|name| loaded.global::<u64>(name).expect(name));
                (run.expect(program).retval, left)
            });
            assert_eq!(runs[0], runs[1], "{program} {programs:?}");
            assert_eq!(runs[0], runs[2], "{program} {programs:?}");
        }
    }
}

/// Code of calls; of helpers their source register is 0.
const CALL: u8 = 0x85;
/// Number of `bpf_tail_call`.
const TAIL_CALL: i32 = 12;

#[oracle::test]
fn random_changes_between_runs_do_what_the_kernels_do() {
    let mut three = Three::load("tests/run/tail_calls.bpf.o");
    let mut random = spec::SplitMix::new(17);
    let mut below = |most: usize| spec::Random::next_u32(&mut random) as usize % most;
    let mut deep = 0;
    for round in 0..400 {
        for _ in 0..2 {
            let index = below(8) as u32;
            let program = PROGRAMS.get(below(PROGRAMS.len() + 2)).copied();
            let program = program.or((round % 3 == 0).then_some(LEAF));
            three.set("programs", index, program);
        }
        three.set_number("chosen", below(10) as u32);
        let before = three.number("entered");
        let packet = vec![0; 60 + below(8)];
        run(&mut three, PROGRAMS[below(PROGRAMS.len())], &packet);
        deep += u32::from(three.number("entered") - before > 33);
        three.number("trace");
    }
    assert!(deep > 20, "{deep}");
}

#[oracle::test]
fn an_array_that_holds_an_absent_program_is_named() {
    let bytes = std::fs::read(file("../../examples/packets/dispatch.bpf.o")).expect("committed");
    let mut object = Object::open(&bytes).expect("an object");
    object.set_autoload(|program| program.name == "dispatch");
    let kernel = kernel_data::linux_6_18_minimal();
    let error = LoadedObject::load(&object, &kernel, &LoadOptions::default()).unwrap_err();
    let LoadError::ProgramArray {
        map,
        program,
        errno,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (&**map, &**program, *errno),
        ("protocols", "tcp", Errno::EBADF)
    );
}
