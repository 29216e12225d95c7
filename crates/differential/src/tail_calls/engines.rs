//! A chain in the checked engine and in those without checks.

use std::sync::Arc;

use ::kernel::maps::{Host, Map, ProgramClass, Resources, RunGuard, StoredProgram, ValueLayout};
use ::kernel::programs::SKB;
use btf::Btf;
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use isa::ebpf::decode;
use jit::Options;
use jit::memory::Pool;
use lower::{ContextKind, Passes, VerifiedProgram};
use packet::{Metadata, Packet};
use program::{FuncInfo, MapDef, Program};
use spec::programs::ProgramType;
use spec::registry::Registry;
use spec::{Kernel, SplitMix};
use verifier::Proof;
use vm::{DirectContext, HEADROOM, PacketBuffer, RunContext};

use super::{ARRAY, Code, Left, maps};
use crate::direct::{DirectEngine, DirectProgram};
use crate::registry::fields::with_callback;

/// Runs for which one guard lasts.
const BATCH: u32 = 64;

/// The class of all programs here.
pub(super) const CLASS: ProgramClass = ProgramClass {
    program_type: ProgramType::SchedCls,
    attach_type: 0,
    has_frags: false,
    is_native: true,
    is_device_bound: false,
    cgroup_storage: [0; 2],
};

/// The maps of a chain: the array, and the counter.
#[derive(Debug)]
struct Maps {
    array: Arc<Map>,
    counter: Arc<Map>,
}

impl Maps {
    fn create() -> Maps {
        let [array, counter] = maps().map(|params| {
            let layout = ValueLayout::plain(params.value_size as usize);
            let map = Map::create(&params, layout, &Host::default());
            Arc::new(map.expect("the parameters are valid"))
        });
        Maps { array, counter }
    }

    fn set(&self, index: u32, program: Option<u32>, from: &dyn Resources) -> Result<(), i32> {
        let key = index.to_ne_bytes();
        let done = match program {
            Some(program) => {
                let descriptor = program.to_ne_bytes();
                self.array.update_with(&key, &descriptor, 0, from)
            }
            None => self.array.delete(&key),
        };
        done.map_err(|errno| errno.0)
    }

    fn left(&self, r0: u64) -> Left {
        let mut counter = [0; 8];
        let read = self.counter.lookup(&[0; 4], &mut counter, 0);
        read.expect("the counter is there");
        Left {
            retval: r0 as u32,
            counter: u64::from_le_bytes(counter),
        }
    }
}

/// A chain in the checked engine.
#[derive(Debug)]
pub struct Checked {
    programs: Vec<Arc<CheckedProgram>>,
    maps: Maps,
}

/// Programs by descriptor: their number in the chain.
struct Numbers;

impl Resources for Numbers {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        Some(Arc::new(StoredProgram {
            id: descriptor,
            class: CLASS,
            target: None,
        }))
    }
}

impl Checked {
    /// The programs, none of which is in the array.
    pub fn load(codes: &[Code]) -> Checked {
        let programs = codes.iter().map(|code| {
            let insns = decode(&code.slots);
            Arc::new(CheckedProgram::new(insns))
        });
        Checked {
            programs: programs.collect(),
            maps: Maps::create(),
        }
    }

    /// Puts the program of that number into a slot, or empties the slot.
    pub fn set(&self, index: u32, program: Option<u32>) -> Result<(), i32> {
        self.maps.set(index, program, &Numbers)
    }

    /// Runs the first program; the trap that ended it.
    pub fn run(&self) -> Result<Left, String> {
        let guard = RunGuard::new();
        // No program reads its context.
        let mut context = vec![0; SKB.size];
        let mut memory = Memory::new();
        let refused = |error| format!("the checked engine's memory: {error:?}");
        let context = memory.add_context(&mut context).map_err(refused)?;
        for map in [&self.maps.array, &self.maps.counter] {
            (memory.add_map("map", map.handle(), &guard, Permission::ReadWrite))
                .map_err(refused)?;
        }
        let entry = Entry {
            arguments: [memory.address(context), 0, 0, 0, 0],
        };
        let mut calls = Calls::none();
        calls.set_tail_targets(|map: u32, index: u32| {
            let array = (map == ARRAY).then_some(&self.maps.array)?;
            let stored = array.operations().program(index)?;
            self.programs.get(stored.id as usize).cloned()
        });
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let finish = self.programs[0].run(cx, entry, &Limits::default());
        let r0 = finish.outcome.map_err(|trap| trap.to_string())?;
        Ok(self.maps.left(r0))
    }
}

/// A chain in an engine without checks.
#[derive(Debug)]
pub struct Direct {
    programs: Vec<Compiled>,
    maps: Maps,
}

/// A program for the engine and as a target of tail calls.
struct Compiled {
    program: DirectProgram,
    stored: Arc<StoredProgram>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stored.fmt(f)
    }
}

impl Resources for Direct {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        let program = self.programs.get(descriptor as usize)?;
        Some(program.stored.clone())
    }
}

impl Direct {
    /// Verifies and compiles the programs, none of which is in the array; why that fails.
    pub fn load(
        codes: &[Code],
        kernel: &Kernel,
        registry: &Registry,
        passes: Passes,
        (engine, options): (DirectEngine, &Options),
    ) -> Result<Direct, String> {
        let maps = Maps::create();
        let handles = [&maps.array, &maps.counter].map(|map| Some(map.handle().clone()));
        let options = Options {
            tail_target: true,
            ..*options
        };
        let pool = Pool::new();
        let compile = |(code, id): (&Code, u32)| {
            let program = program(code)?;
            let proof = Proof::of(&program, kernel, registry);
            let proof = proof.map_err(|refused| format!("{:?}\n{}", refused.verdict, code.text))?;
            let find_call = ::kernel::helpers::find_call;
            let lowered = VerifiedProgram::from_proof_with(&proof, &handles, find_call, passes);
            let lowered = lowered.map_err(|unfit| unfit.to_string())?;
            let program = DirectProgram::compile(engine, &lowered, &options, &pool)?;
            let target = program.tail_target();
            let class = CLASS;
            Ok(Compiled {
                program,
                stored: Arc::new(StoredProgram { id, class, target }),
            })
        };
        let programs: Result<Vec<Compiled>, String> = codes.iter().zip(0..).map(compile).collect();
        Ok(Direct {
            programs: programs?,
            maps,
        })
    }

    /// Puts the program of that number into a slot, or empties the slot.
    pub fn set(&self, index: u32, program: Option<u32>) -> Result<(), i32> {
        self.maps.set(index, program, self)
    }

    /// Runs the first program.
    pub fn run(&self) -> Left {
        self.maps.left(self.r0(1))
    }

    /// Runs the first program so many times; the low 32 bits of the last `r0`.
    pub fn run_repeated(&self, rounds: u32) -> u32 {
        self.r0(rounds) as u32
    }

    /// As in the kernel's test run, one guard lasts for several runs.
    fn r0(&self, rounds: u32) -> u64 {
        let mut packet = PacketBuffer::new(SKB, &[0; 64], HEADROOM, HEADROOM);
        let mut context = DirectContext::new(ContextKind::SkBuff, &[]);
        let mut random = SplitMix::new(1);
        let mut clock = || 0;
        let metadata = Metadata::from_cpu(0);
        let no_packet = Packet::whole(&[], &metadata);
        let program = &self.programs[0].program;
        let (mut guard, mut r0) = (RunGuard::new(), 0);
        for round in 1..=rounds {
            if round % BATCH == 0 {
                drop(guard);
                guard = RunGuard::new();
            }
            let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
            let run = program.run(Some(&mut packet), &mut context, &guard, cx);
            r0 = run.expect("the maps are for this CPU, and the program ends");
        }
        r0
    }
}

impl Drop for Direct {
    /// The array and the programs keep each other.
    fn drop(&mut self) {
        self.maps.array.release();
    }
}

/// A program with its maps and types.
fn program(code: &Code) -> Result<Program, String> {
    let (blob, [main, callee]) = with_callback();
    let types = Btf::parse(blob).map_err(|error| error.to_string())?;
    let ids = [main].into_iter().chain(std::iter::repeat(callee));
    let functions = code.functions.iter().zip(ids);
    let records = functions.map(|(&insn, type_id)| FuncInfo { insn, type_id });
    let maps = maps().map(|params| Arc::new(MapDef::new("m", params)));
    Program::builder(ProgramType::SchedCls, code.slots.clone())
        .maps(maps.to_vec())
        .btf(Some(Arc::new(types)))
        .func_info(records.collect())
        .license("GPL")
        .build()
        .map_err(|invalid| invalid.to_string())
}
