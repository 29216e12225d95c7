//! Tail calls in the checked engine and in the running kernel: generated programs that call
//! each other from their main functions and from subprograms, by constant and by computed
//! indices, in cycles, into empty slots and beyond the array, with changes between runs.

use std::fmt::Write as _;
use std::sync::Arc;

use interp::checked::{
    Calls, CheckedContext, CheckedProgram, Entry, Limits, MAX_TAIL_CALLS, Memory, Permission,
};
use isa::ebpf::{RawInsn, assemble, decode, encode};
use kernel::maps::{
    Host, Map, NoResources, ProgramClass, Resources, RunGuard, StoredProgram, ValueLayout,
};
use kernel::programs::SKB;
use program::MapParams;
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};
use sys::Errno;
use sys::bpf::{BtfObject, LoadedProgram, Map as KernelMap, MapRequest, ProgLoad, TestRun};

use beebox_testkit::ebpf::Choices;
use beebox_testkit::registry::fields::with_callback;

const WHAT: &str = "tail calls of the running kernel";

/// Indices of the maps: the program array, and an array of one counter.
const ARRAY: u32 = 0;
const COUNTER: u32 = 1;

/// Programs in a chain, and the slots of their array.
const PROGRAMS: u32 = 5;
const SLOTS: u32 = PROGRAMS + 2;

const LD_IMM64: u8 = 0x18;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
const PSEUDO_MAP_INDEX: u8 = 5;
const PSEUDO_MAP_INDEX_VALUE: u8 = 6;

/// A program's instructions without addresses of maps, and where its functions begin.
struct Code {
    text: String,
    slots: Vec<RawInsn>,
    functions: Vec<u32>,
}

/// One step: an arithmetic trace of what ran, or a tail call, which falls through if it
/// does not happen.
fn step(choices: &mut Choices<'_>, id: u32, text: &mut String) {
    let _ = writeln!(text, "r8 = *(u64 *)(r7 + 0)\nr8 *= 31\nr8 += {id}");
    let _ = writeln!(text, "*(u64 *)(r7 + 0) = r8");
    match choices.below(4) {
        0 => {
            let _ = writeln!(text, "r3 = {}", choices.below(SLOTS + 3));
        }
        1 => {
            let _ = writeln!(text, "r3 = r8\nr3 %= {}", SLOTS + 2);
        }
        // Only the low 32 bits count.
        2 => {
            let _ = writeln!(
                text,
                "r3 = r8\nr3 &= 3\nr9 = {:#x} ll\nr3 |= r9",
                1u64 << 32
            );
        }
        _ => return,
    }
    let _ = writeln!(text, "r1 = r6\nr2 = map_idx({ARRAY}) ll\ncall 12");
}

fn prologue() -> String {
    format!("r6 = r1\nr7 = map_idx_value({COUNTER}) ll\n")
}

/// A program with up to two subprograms.
fn code(choices: &mut Choices<'_>, id: u32) -> Code {
    let subprograms = choices.below(3);
    let mut text = prologue();
    for _ in 0..1 + choices.below(3) {
        step(choices, id, &mut text);
        if subprograms > 0 && choices.below(2) == 0 {
            let callee = choices.below(subprograms);
            let _ = writeln!(text, "r1 = r6\ncall f{callee}");
            text += "r8 = *(u64 *)(r7 + 0)\nr8 ^= r0\n*(u64 *)(r7 + 0) = r8\n";
        }
    }
    for callee in 0..subprograms {
        // Every subprogram is called.
        let _ = writeln!(text, "r1 = r6\ncall f{callee}");
    }
    text += "r0 = *(u64 *)(r7 + 0)\nr0 &= 0xffff\nexit\n";
    for callee in 0..subprograms {
        let _ = writeln!(text, "f{callee}:");
        text += &prologue();
        for _ in 0..1 + choices.below(2) {
            step(choices, 100 * (callee + 1) + id, &mut text);
        }
        let _ = writeln!(text, "r0 = {}\nexit", 1000 + id);
    }
    let slots = encode(&assemble(&text).unwrap()).unwrap();
    let exits = slots.iter().zip(1..).filter(|(slot, _)| slot.code == 0x95);
    let ends = exits.map(|(_, end)| end).take(subprograms as usize);
    Code {
        text,
        functions: [0].into_iter().chain(ends).collect(),
        slots,
    }
}

fn array(map_type: MapKind, value_size: u32, max_entries: u32) -> MapParams {
    MapParams {
        map_type: map_type.number(),
        key_size: 4,
        value_size,
        max_entries,
        ..MapParams::default()
    }
}

/// The chain in the kernel.
struct Theirs {
    programs: Vec<LoadedProgram>,
    array: KernelMap,
    counter: KernelMap,
}

impl Theirs {
    fn load(codes: &[Code]) -> Result<Theirs, Errno> {
        let create = |params: MapParams| {
            KernelMap::create(&MapRequest {
                map_type: params.map_type,
                key_size: params.key_size,
                value_size: params.value_size,
                max_entries: params.max_entries,
                ..MapRequest::default()
            })
        };
        let maps = [
            create(array(MapKind::ProgArray, 4, SLOTS))?,
            create(array(MapKind::Array, 8, 1))?,
        ];
        let (blob, [main, callee]) = with_callback();
        let btf = BtfObject::load(&blob)?;
        let mut programs = Vec::new();
        for code in codes {
            let mut slots = code.slots.clone();
            for slot in slots.iter_mut().filter(|slot| slot.code == LD_IMM64) {
                let source = match slot.src() {
                    PSEUDO_MAP_INDEX => PSEUDO_MAP_FD,
                    PSEUDO_MAP_INDEX_VALUE => PSEUDO_MAP_VALUE,
                    _ => continue,
                };
                slot.regs = slot.dst() | source << 4;
                slot.imm = maps[slot.imm as usize].descriptor() as i32;
            }
            let types = [main].into_iter().chain(std::iter::repeat(callee));
            let functions = code.functions.iter().zip(types);
            let func_info: Vec<[u32; 2]> = functions.map(|(at, ty)| [*at, ty.0]).collect();
            let request = ProgLoad {
                btf: Some(&btf),
                func_info: &func_info,
                ..ProgLoad::new(ProgramType::SchedCls.number(), &slots)
            };
            let loaded = request.load().map_err(|refused| {
                eprintln!("{}\n{}", code.text, refused.reason());
                refused.errno
            });
            programs.push(loaded?.0);
        }
        let [array, counter] = maps;
        Ok(Theirs {
            programs,
            array,
            counter,
        })
    }

    fn run(&self, packet: &[u8]) -> (u32, u64) {
        let mut out = [0; 256];
        let result = self.programs[0].test_run(&TestRun::on(packet), &mut out, &mut []);
        let mut counter = [0; 8];
        self.counter.lookup(&[0; 4], &mut counter).unwrap();
        (result.unwrap().retval, u64::from_le_bytes(counter))
    }
}

/// The chain in the checked engine.
struct Ours {
    programs: Vec<Arc<CheckedProgram>>,
    array: Map,
    counter: Map,
}

/// Programs by descriptor: their number in the chain.
struct Chain;

impl Resources for Chain {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        let id = descriptor;
        let class = CLASSES[0].ours();
        Some(Arc::new(StoredProgram { id, class }))
    }
}

impl Ours {
    fn load(codes: &[Code]) -> Ours {
        let create = |params: MapParams| {
            let layout = ValueLayout::plain(params.value_size as usize);
            Map::create(&params, layout, &Host::default()).unwrap()
        };
        let programs = codes.iter().map(|code| {
            let insns = decode(&code.slots);
            Arc::new(CheckedProgram::new(insns))
        });
        Ours {
            programs: programs.collect(),
            array: create(array(MapKind::ProgArray, 4, SLOTS)),
            counter: create(array(MapKind::Array, 8, 1)),
        }
    }

    fn run(&self) -> (u32, u64) {
        let guard = RunGuard::new();
        // No program reads its context.
        let mut context = vec![0; SKB.size];
        let mut memory = Memory::new();
        let context = memory.add_context(&mut context).unwrap();
        for map in [&self.array, &self.counter] {
            (memory.add_map("map", map, &guard, Permission::ReadWrite)).unwrap();
        }
        let entry = Entry {
            arguments: [memory.address(context), 0, 0, 0, 0],
        };
        let mut calls = Calls::none();
        calls.set_tail_targets(|map: u32, index: u32| {
            let array = (map == ARRAY).then_some(&self.array)?;
            let stored = array.operations().program(index)?;
            self.programs.get(stored.id as usize).cloned()
        });
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let finish = self.programs[0].run(cx, entry, &Limits::default());
        let mut counter = [0; 8];
        self.counter.lookup(&[0; 4], &mut counter, 0).unwrap();
        (finish.outcome.unwrap() as u32, u64::from_le_bytes(counter))
    }
}

#[test]
fn chains_and_trees_do_what_the_kernels_do() {
    let mut calls = 0;
    for seed in oracle::seeds(150) {
        let mut choices = Choices::from_seed(seed);
        let codes: Vec<Code> = (0..PROGRAMS).map(|id| code(&mut choices, id)).collect();
        let Some(theirs) = oracle::found(WHAT, Theirs::load(&codes)) else {
            return;
        };
        let ours = Ours::load(&codes);
        for round in 0..4 {
            for index in 0..SLOTS {
                let key = index.to_ne_bytes();
                let program = choices.below(PROGRAMS + 1);
                if let Some(loaded) = theirs.programs.get(program as usize) {
                    let descriptor = loaded.descriptor().to_ne_bytes();
                    theirs.array.update(&key, &descriptor).unwrap();
                    let own = program.to_ne_bytes();
                    ours.array.update_with(&key, &own, 0, &Chain).unwrap();
                    calls += 1;
                } else {
                    let errno = |errno: Result<(), _>| errno.map_err(|errno: Errno| errno.0);
                    let kernels = errno(theirs.array.delete(&key));
                    let own = ours.array.delete(&key).map_err(|errno| errno.0);
                    assert_eq!(own, kernels);
                }
            }
            let packet = vec![0; 64];
            let (own, kernels) = (ours.run(), theirs.run(&packet));
            let texts: Vec<&str> = codes.iter().map(|code| &*code.text).collect();
            assert_eq!(
                own,
                kernels,
                "seed {seed}, round {round}\n{}",
                texts.join("\n---\n")
            );
        }
    }
    assert!(calls > 1000);
}

#[test]
fn a_program_that_calls_itself_does_so_33_times() {
    let mut text = prologue();
    text += "r8 = *(u64 *)(r7 + 0)\nr8 += 1\n*(u64 *)(r7 + 0) = r8\n";
    let _ = writeln!(
        text,
        "r1 = r6\nr2 = map_idx({ARRAY}) ll\nr3 = 0\ncall 12\nr0 = 7\nexit"
    );
    let slots = encode(&assemble(&text).unwrap()).unwrap();
    let codes = [Code {
        text,
        slots,
        functions: vec![0],
    }];
    let ours = Ours::load(&codes);
    ours.array.update_with(&[0; 4], &[0; 4], 0, &Chain).unwrap();
    assert!(
        ours.array
            .update_with(&[0; 4], &[0; 4], 0, &NoResources)
            .is_err()
    );
    let expected = (7, u64::from(MAX_TAIL_CALLS) + 1);
    assert_eq!(ours.run(), expected);
    let Some(theirs) = oracle::found(WHAT, Theirs::load(&codes)) else {
        return;
    };
    let descriptor = theirs.programs[0].descriptor().to_ne_bytes();
    theirs.array.update(&[0; 4], &descriptor).unwrap();
    assert_eq!(theirs.run(&[0; 64]), expected);
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
        Some(Arc::new(StoredProgram { id, class }))
    }
}

#[test]
fn the_first_program_decides_which_others_an_array_takes() {
    if oracle::found(WHAT, CLASSES[0].load(None)).is_none() {
        return;
    }
    let slots = array(MapKind::ProgArray, 4, 2);
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
