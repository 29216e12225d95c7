//! Tail calls in the checked engine, in native code and in the running kernel: generated
//! programs that call each other from their main functions and from subprograms, by constant
//! and by computed indices, in cycles, into empty slots and beyond the array, with changes
//! between runs.

use std::sync::Arc;

use ::kernel::maps::{Host, Map, ProgramClass, Resources, StoredProgram, ValueLayout};
use beebox_differential::direct::DirectEngine;
use beebox_differential::tail_calls::{
    Checked, Code, Direct, InKernel, Left, PROGRAMS, SLOTS, counting_program, generate,
};
use isa::ebpf::{assemble, encode};
use jit::Options;
use lower::{Pass, Passes};
use program::MapParams;
use spec::Kernel;
use spec::limits;
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};
use spec::registry::Registry;
use sys::Errno;
use sys::bpf::{LoadedProgram, Map as KernelMap, MapRequest, ProgLoad};
use testkit::ebpf::Choices;

const WHAT: &str = "tail calls of the running kernel";

fn kernel() -> (Kernel, Registry) {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    (kernel, registry)
}

fn plain() -> Options {
    Options {
        features: jit::Features::detect(),
        ..Options::default()
    }
}

fn compile(
    (kernel, registry): &(Kernel, Registry),
    codes: &[Code],
    passes: Passes,
    options: Options,
) -> Direct {
    load(
        (kernel, registry),
        codes,
        passes,
        (DirectEngine::Native, &options),
    )
}

fn load(
    (kernel, registry): (&Kernel, &Registry),
    codes: &[Code],
    passes: Passes,
    engine: (DirectEngine, &Options),
) -> Direct {
    let direct = Direct::load(codes, kernel, registry, passes, engine);
    direct.unwrap_or_else(|why| panic!("{why}"))
}

/// The chain in the threaded interpreter.
fn threaded((kernel, registry): &(Kernel, Registry), codes: &[Code], passes: Passes) -> Direct {
    let engine = (DirectEngine::Interp, &plain());
    load((kernel, registry), codes, passes, engine)
}

#[oracle::test]
fn chains_and_trees_do_what_the_kernels_do() {
    let kernel = kernel();
    let plain = plain();
    let deadline = Options {
        deadline: true,
        ..plain
    };
    let other_frames = Options {
        retpoline: true,
        entry_slots: true,
        ..plain
    };
    let mut calls = 0;
    for seed in oracle::seeds(150) {
        let mut choices = Choices::from_seed(seed);
        let codes: Vec<Code> = (0..PROGRAMS).map(|id| generate(&mut choices, id)).collect();
        let texts: Vec<&str> = codes.iter().map(|code| &*code.text).collect();
        let text = texts.join("\n---\n");
        let theirs = oracle::found(WHAT, InKernel::load(&codes));
        let checked = Checked::load(&codes);
        let natives = [
            compile(&kernel, &codes, Passes::ALL, plain),
            compile(&kernel, &codes, Passes::NONE, plain),
            compile(&kernel, &codes, Passes::ALL.without(Pass::TailCalls), plain),
            compile(&kernel, &codes, Passes::ALL, deadline),
            compile(&kernel, &codes, Passes::ALL, other_frames),
            compile(
                &kernel,
                &codes,
                Passes::NONE,
                Options {
                    deadline: true,
                    ..other_frames
                },
            ),
            threaded(&kernel, &codes, Passes::ALL),
            threaded(&kernel, &codes, Passes::NONE),
        ];
        for round in 0..4 {
            for index in 0..SLOTS {
                let program = choices.below(PROGRAMS + 1);
                let program = (program < PROGRAMS).then_some(program);
                let done = checked.set(index, program);
                for native in &natives {
                    assert_eq!(native.set(index, program), done);
                }
                if let Some(theirs) = &theirs {
                    assert_eq!(theirs.set(index, program), done);
                }
                calls += u32::from(program.is_some());
            }
            let about = format!("seed {seed}, round {round}\n{text}");
            let left = checked
                .run()
                .unwrap_or_else(|trap| panic!("{about}\n{trap}"));
            for native in &natives {
                assert_eq!(native.run(), left, "without checks, {about}");
            }
            if let Some(theirs) = &theirs {
                assert_eq!(left, theirs.run(), "the kernel, {about}");
            }
        }
    }
    assert!(calls > 1000);
}

#[oracle::test]
fn a_program_that_calls_itself_does_so_33_times() {
    let codes = [counting_program()];
    let expected = Left {
        retval: 7,
        counter: u64::from(limits::TAIL_CALLS) + 1,
    };
    let checked = Checked::load(&codes);
    checked.set(0, Some(0)).unwrap();
    assert_eq!(checked.run(), Ok(expected));
    let native = compile(&kernel(), &codes, Passes::ALL, plain());
    let threaded = threaded(&kernel(), &codes, Passes::ALL);
    for direct in [native, threaded] {
        direct.set(0, Some(0)).unwrap();
        assert_eq!(direct.run(), expected);
        // The next run counts anew.
        let counter = 2 * expected.counter;
        assert_eq!(
            direct.run(),
            Left {
                counter,
                ..expected
            }
        );
    }
    let Some(theirs) = oracle::found(WHAT, InKernel::load(&codes)) else {
        return;
    };
    theirs.set(0, Some(0)).unwrap();
    assert_eq!(theirs.run(), expected);
}

/// What decides about programs of an array.
#[derive(Clone, Copy, Debug)]
struct Class {
    program_type: ProgramType,
    attach_type: u32,
    flags: LoadFlags,
}

const fn class(program_type: ProgramType, attach_type: u32, flags: LoadFlags) -> Class {
    Class {
        program_type,
        attach_type,
        flags,
    }
}

const NO_FLAGS: LoadFlags = LoadFlags(0);
const CONNECT4: u32 = 10;
const CONNECT6: u32 = 11;

const CLASSES: [Class; 5] = [
    class(ProgramType::SchedCls, 0, NO_FLAGS),
    class(ProgramType::Xdp, 0, NO_FLAGS),
    class(ProgramType::Xdp, 0, LoadFlags::XDP_HAS_FRAGS),
    class(ProgramType::CgroupSockAddr, CONNECT4, NO_FLAGS),
    class(ProgramType::CgroupSockAddr, CONNECT6, NO_FLAGS),
];

impl Class {
    fn ours(self) -> ProgramClass {
        ProgramClass {
            program_type: self.program_type,
            attach_type: self.attach_type,
            has_frags: self.flags.has(LoadFlags::XDP_HAS_FRAGS),
            is_native: true,
            is_device_bound: false,
            cgroup_storage: [0; 2],
        }
    }

    /// Loads a program of this class that uses the array, if there is one.
    fn load(self, array: Option<&KernelMap>) -> Result<LoadedProgram, Errno> {
        let call = "r2 = map_fd(0) ll\nr3 = 0\ncall 12\n";
        let text = format!("{}r0 = 1\nexit\n", array.map_or("", |_| call));
        let mut slots = encode(&assemble(&text).unwrap()).unwrap();
        if let Some(array) = array {
            slots[0].imm = array.descriptor() as i32;
        }
        let request = ProgLoad {
            expected_attach_type: self.attach_type,
            flags: self.flags.0,
            ..ProgLoad::new(self.program_type.number(), &slots)
        };
        let loaded = request.load().map_err(|refused| refused.errno)?;
        Ok(loaded.0)
    }
}

impl Resources for Class {
    fn program(&self, id: u32) -> Option<Arc<StoredProgram>> {
        let class = self.ours();
        Some(Arc::new(StoredProgram {
            id,
            class,
            target: None,
        }))
    }
}

#[oracle::test]
fn the_first_program_decides_which_others_an_array_takes() {
    if oracle::found(WHAT, CLASSES[0].load(None)).is_none() {
        return;
    }
    let slots = MapParams {
        map_type: MapKind::ProgArray.number(),
        key_size: 4,
        value_size: 4,
        max_entries: 2,
        ..MapParams::default()
    };
    for (first, second) in CLASSES
        .iter()
        .flat_map(|first| CLASSES.map(|second| (first, second)))
    {
        // Each of them comes into the array, or uses it.
        for uses in [[false, false], [false, true], [true, false], [true, true]] {
            let theirs = KernelMap::create(&MapRequest {
                map_type: slots.map_type,
                key_size: 4,
                value_size: 4,
                max_entries: 2,
                ..MapRequest::default()
            });
            let theirs = theirs.unwrap();
            let ours = Map::create(&slots, ValueLayout::plain(4), &Host::default()).unwrap();
            let mut kept = Vec::new();
            for (class, uses) in [*first, second].into_iter().zip(uses) {
                let (own, kernels) = if uses {
                    let loaded = class.load(Some(&theirs));
                    let kernels = loaded.map(|loaded| kept.push(loaded));
                    (ours.admit(&class.ours()), kernels)
                } else {
                    let loaded = class.load(None).unwrap();
                    let kernels = theirs.update(&[0; 4], &loaded.descriptor().to_ne_bytes());
                    kept.push(loaded);
                    (ours.update_with(&[0; 4], &[9, 0, 0, 0], 0, &class), kernels)
                };
                let kernels = kernels.map_err(|errno| errno.0);
                assert_eq!(
                    own.map_err(|errno| errno.0),
                    kernels,
                    "{first:?} {second:?} {uses}"
                );
            }
        }
    }
}
