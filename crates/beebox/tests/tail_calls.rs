//! Objects whose programs call each other through program arrays: which program ends each
//! run, what ran before, and how often, as native code, in the checked engine and in the
//! running kernel.

mod support;

use beebox::object::{Global, Object};
use beebox::run::{Errno, LoadOptions, LoadedObject, NotLoaded, RunEngine};
use support::{file, packets};
use sys::bpf::TestRun;
use testkit::kernel::object::ObjectInKernel;

const WHAT: &str = "test runs of the kernel";

/// An object on both engines and, if it can be asked, in the kernel.
struct Three {
    native: LoadedObject,
    checked: LoadedObject,
    theirs: Option<ObjectInKernel>,
    globals: Vec<Global>,
}

impl Three {
    fn load(path: &str) -> Three {
        let bytes = std::fs::read(file(path)).expect("a committed object");
        let object = Object::open(&bytes).expect("an object");
        let kernel = kernel_data::linux_6_18();
        let linked = object.link(&kernel).expect("it links");
        let programs = linked.programs.iter().map(|linked| &linked.program);
        let theirs = oracle::found(WHAT, ObjectInKernel::load(programs));
        let ours = |engine| {
            let options = LoadOptions {
                engine,
                ..LoadOptions::default()
            };
            let loaded = LoadedObject::load(&object, &kernel, &options);
            loaded.unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        Three {
            native: ours(RunEngine::Native),
            checked: ours(RunEngine::Checked),
            theirs,
            globals: object.globals().collect(),
        }
    }

    /// Changes a slot everywhere.
    fn set(&self, array: &str, index: u32, program: Option<&str>) {
        let done = self.native.set_tail_call(array, index, program);
        assert_eq!(self.checked.set_tail_call(array, index, program), done);
        if let Some(theirs) = &self.theirs {
            let kernels = theirs.set_tail_call(array, index, program);
            assert_eq!(done.map_err(|errno| errno.0), kernels, "{array} {index}");
        }
    }

    /// Runs a program everywhere; its result.
    fn run(&mut self, name: &str, packet: &[u8]) -> u32 {
        let [native, checked] = [&mut self.native, &mut self.checked].map(|loaded| {
            let mut program = loaded.program(name).expect(name);
            let run = program.test_run(packet).expect(name);
            (program.engine(), run.retval)
        });
        assert_eq!(
            [native.0, checked.0],
            [RunEngine::Native, RunEngine::Checked]
        );
        assert_eq!(
            native.1, checked.1,
            "{name}: native code, the checked engine"
        );
        if let Some(theirs) = &self.theirs {
            let program = theirs.program(name).expect(name);
            let mut out = vec![0; 1 << 16];
            let run = program.test_run(&TestRun::on(packet), &mut out, &mut []);
            let kernels = run.expect("the kernel runs it").retval;
            assert_eq!(native.1, kernels, "{name}: native code, the kernel");
        }
        native.1
    }

    /// A variable, which is the same everywhere.
    fn number(&self, name: &str) -> u64 {
        let own = self.native.global::<u64>(name).expect(name);
        assert_eq!(self.checked.global::<u64>(name).expect(name), own, "{name}");
        if let Some(theirs) = &self.theirs {
            let (map, place) = self.place(name);
            let map = theirs.map_at(map).expect(name);
            let mut value = vec![0; map.value_len()];
            map.lookup(&[0; 4], &mut value).expect(name);
            let bytes = value[place..place + 8].try_into().expect("8 bytes");
            assert_eq!(u64::from_le_bytes(bytes), own, "{name}: the kernel");
        }
        own
    }

    /// Index of the map that holds a variable, and the variable's offset.
    fn place(&self, name: &str) -> (usize, usize) {
        let global = self.globals.iter().find(|global| global.name == name);
        let global = global.expect(name);
        (global.map.0 as usize, global.offset as usize)
    }

    /// Sets a variable of 4 bytes everywhere.
    fn set_number(&self, name: &str, number: u32) {
        for ours in [&self.native, &self.checked] {
            ours.set_global(name, &number).expect(name);
        }
        if let Some(theirs) = &self.theirs {
            let (map, place) = self.place(name);
            let map = theirs.map_at(map).expect(name);
            let mut value = vec![0; map.value_len()];
            map.lookup(&[0; 4], &mut value).expect(name);
            value[place..place + 4].copy_from_slice(&number.to_le_bytes());
            map.update(&[0; 4], &value).expect(name);
        }
    }
}

#[test]
fn a_dispatcher_ends_where_the_kernels_does() {
    let mut three = Three::load("../../examples/packets/dispatch.bpf.o");
    let packets = packets();
    let verdicts = packets.iter().map(|packet| three.run("dispatch", packet));
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

#[test]
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
        let result = three.run(begin, &[0; 64]);
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

#[test]
fn computed_indices_have_32_bits_and_an_end() {
    let mut three = Three::load("tests/run/tail_calls.bpf.o");
    three.set("programs", 3, Some("last"));
    for (index, expected) in [(3, 66), (2, 17), (7, 17), (8, 17), (u32::MAX, 17)] {
        three.set_number("chosen", index);
        assert_eq!(three.run("computed", &[0; 64]), expected, "{index}");
        three.number("trace");
    }
    // Slots beyond the array, and those that are empty.
    three.set("programs", 8, Some("last"));
    three.set("programs", 5, None);
}

#[test]
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
        three.run(PROGRAMS[below(PROGRAMS.len())], &packet);
        deep += u32::from(three.number("entered") - before > 33);
        three.number("trace");
    }
    assert!(deep > 20, "{deep}");
}

#[test]
fn an_array_that_holds_an_absent_program_is_named() {
    let bytes = std::fs::read(file("../../examples/packets/dispatch.bpf.o")).expect("committed");
    let mut object = Object::open(&bytes).expect("an object");
    object.set_autoload(|program| program.name == "dispatch");
    let kernel = kernel_data::linux_6_18();
    let error = LoadedObject::load(&object, &kernel, &LoadOptions::default()).unwrap_err();
    let NotLoaded::ProgramArray {
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
