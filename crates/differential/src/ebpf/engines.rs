//! Differential test of every engine on the same programs and memories.
//!
//! The reference evaluator gives the expected result. To add an engine, add a line to
//! `all`. The memory of a run is surrounded by guard bytes that no program may write;
//! their contents after the run are part of the result. The packet of a run is a copy
//! of its memory.

use interp::checked;
use isa::ebpf::Insn;
use jit::memory::Pool;
use lower::{Lowered, MemoryProgram, Pass, Passes};
use packet::{Metadata, Packet};
use spec::SplitMix;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference::{self, Fault, Limits};
use testkit::ebpf::shrink::shrink;
use testkit::ebpf::{Choices, Dialect, Entry, Generator, PACKET_HELPERS, packet_helper};
use vm::{Deadline, Machine, Outcome, Unchecked};

/// Memories that each program runs on.
const MEMORIES: u64 = 2;
/// Instructions that a program may execute while it is being shrunk.
const STEPS_OF_SMALLER: u64 = 1_000_000;
/// Instructions that a program may execute whose choices are a fuzzer's.
const STEPS_OF_CHOSEN: u64 = 100_000;

/// A program that engines take.
type Program = Lowered<MemoryProgram>;

/// Something that runs programs.
trait Engine {
    /// Name of the engine.
    fn name(&self) -> &'static str;

    /// Prepares a program, or returns the reason why it cannot.
    fn prepare<'a>(&'a self, program: &Program, seed: u64) -> Result<Box<dyn Run + 'a>, String>;
}

/// A program that is ready.
trait Run {
    /// Runs it with random numbers from that seed: `r0` at the end, or what else
    /// happened.
    fn run(&mut self, memory: &mut [u8], seed: u64) -> Result<u64, String>;
}

/// All engines.
fn all() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(Checked),
        Box::new(Interp {
            name: "interp",
            fusions: |_| interp::Fusions::ALL,
        }),
        Box::new(Interp {
            name: "interp, without a fusion",
            fusions: all_fusions_but_one,
        }),
        Box::new(Jit::new("native", |_| jit::Features::detect())),
        Box::new(Jit::new("native, plain", |_| jit::Features::PLAIN)),
        Box::new(Jit::new("native, some features", some_features)),
        Box::new(Jit {
            deadline: true,
            ..Jit::new("native, deadline", |_| jit::Features::detect())
        }),
        Box::new(Jit {
            other_frames: true,
            ..Jit::new("native, retpolines, slots", |_| jit::Features::detect())
        }),
        Box::new(Jit {
            other_frames: true,
            deadline: true,
            ..Jit::new("native, the same with a deadline", |_| {
                jit::Features::detect()
            })
        }),
        Box::new(Jit {
            optimizations: all_but_one,
            ..Jit::new("native, without an optimization", |_| {
                jit::Features::detect()
            })
        }),
        Box::new(Jit {
            optimizations: |_| jit::Optimizations::NONE,
            ..Jit::new("native, without optimizations", |_| jit::Features::detect())
        }),
    ]
}

/// The checked interpreter.
struct Checked;

impl Engine for Checked {
    fn name(&self) -> &'static str {
        "checked"
    }

    fn prepare<'a>(&'a self, program: &Program, _: u64) -> Result<Box<dyn Run + 'a>, String> {
        let insns = program.insns().to_vec();
        Ok(Box::new(checked::CheckedProgram::new(insns)))
    }
}

impl Run for checked::CheckedProgram {
    fn run(&mut self, bytes: &mut [u8], seed: u64) -> Result<u64, String> {
        let packet = bytes.to_vec();
        let packet = Packet::whole(&packet, &Metadata::UNKNOWN);
        let mut memory = checked::Memory::new();
        let len = bytes.len() as u64;
        let region = memory
            .add("memory", bytes)
            .map_err(|no| format!("{no:?}"))?;
        let entry = checked::Entry {
            arguments: [memory.address(region), len, 0, 0, 0],
        };
        let mut random = SplitMix::new(seed);
        let mut calls = checked::Calls::none();
        calls.define(spec::calls::GET_PRANDOM_U32, move |_, _| {
            Ok(spec::Random::next_u32(&mut random).into())
        });
        calls.define(spec::calls::GET_SMP_PROCESSOR_ID, |_, _| Ok(0));
        for &number in PACKET_HELPERS {
            calls.define(number, move |[_, r2, r3, ..], _| {
                Ok(packet_helper(number, &packet, r2, r3))
            });
        }
        let cx = checked::CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: Some(&packet),
        };
        let limits = checked::Limits {
            instructions: u64::MAX,
            ..checked::Limits::default()
        };
        let finish = checked::CheckedProgram::run(self, cx, entry, &limits);
        finish.outcome.map_err(|trap| format!("{trap:?}"))
    }
}

/// The threaded interpreter.
struct Interp {
    name: &'static str,
    /// The fusions that it uses, by seed.
    fusions: fn(u64) -> interp::Fusions,
}

/// All fusions but one, each in turn, or none.
fn all_fusions_but_one(seed: u64) -> interp::Fusions {
    let all = interp::Fusion::ALL;
    match all.get((seed % (all.len() as u64 + 1)) as usize) {
        Some(&fusion) => interp::Fusions::ALL.without(fusion),
        None => interp::Fusions::NONE,
    }
}

impl Engine for Interp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare<'a>(&'a self, program: &Program, seed: u64) -> Result<Box<dyn Run + 'a>, String> {
        let code = interp::ThreadedProgram::compile_with(program, (self.fusions)(seed));
        let code = code.map_err(|why| format!("{why:?}"))?;
        Ok(Box::new((code, Machine::new())))
    }
}

impl Run for (interp::ThreadedProgram<MemoryProgram>, Machine) {
    fn run(&mut self, memory: &mut [u8], seed: u64) -> Result<u64, String> {
        let (code, machine) = self;
        let packet = memory.to_vec();
        let packet = Packet::whole(&packet, &Metadata::UNKNOWN);
        let random = &mut SplitMix::new(seed);
        returned(code.run_with_packet(machine, memory, &packet, random))
    }
}

/// Native code.
struct Jit {
    name: &'static str,
    /// Processor features by seed.
    features: fn(u64) -> jit::Features,
    /// The optimizations that it uses, by seed.
    optimizations: fn(u64) -> jit::Optimizations,
    /// True if it has deadline checks every few iterations.
    deadline: bool,
    /// True if indirect branches go through retpolines, and entries have slots.
    other_frames: bool,
    pool: Pool,
}

impl Jit {
    fn new(name: &'static str, features: fn(u64) -> jit::Features) -> Jit {
        Jit {
            name,
            features,
            optimizations: |_| jit::Optimizations::ALL,
            deadline: false,
            other_frames: false,
            pool: Pool::new(),
        }
    }
}

/// The processor's features, masked by bits of the seed.
fn some_features(seed: u64) -> jit::Features {
    let there = jit::Features::detect();
    let chosen = |bit: u32| SplitMix::new(seed).next_u64() >> bit & 1 != 0;
    jit::Features {
        bmi2: there.bmi2 && chosen(0),
        movbe: there.movbe && chosen(1),
        bmi1: there.bmi1 && chosen(2),
        lzcnt: there.lzcnt && chosen(3),
        popcnt: there.popcnt && chosen(4),
    }
}

/// All optimizations but one, each in turn.
fn all_but_one(seed: u64) -> jit::Optimizations {
    let all = jit::Optimization::ALL;
    jit::Optimizations::ALL.without(all[(seed % all.len() as u64) as usize])
}

impl Engine for Jit {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare<'a>(&'a self, program: &Program, seed: u64) -> Result<Box<dyn Run + 'a>, String> {
        let options = jit::Options {
            features: (self.features)(seed),
            deadline: self.deadline,
            optimizations: (self.optimizations)(seed),
            retpoline: self.other_frames,
            entry_slots: self.other_frames,
            ..jit::Options::default()
        };
        let native = jit::Native::compile(program, &options, &self.pool);
        let native = native.map_err(|why| why.to_string())?;
        let machine = Machine::new();
        Ok(if self.deadline {
            Box::new(WithDeadline { native, machine })
        } else {
            Box::new((native, machine))
        })
    }
}

impl Run for (jit::Native<MemoryProgram>, Machine) {
    fn run(&mut self, memory: &mut [u8], seed: u64) -> Result<u64, String> {
        let (native, machine) = self;
        let packet = memory.to_vec();
        let packet = Packet::whole(&packet, &Metadata::UNKNOWN);
        let random = &mut SplitMix::new(seed);
        returned(native.run_with_packet(machine, memory, &packet, random, None))
    }
}

/// Native code with deadline checks; no run comes near the deadline.
struct WithDeadline {
    native: jit::Native<MemoryProgram>,
    machine: Machine,
}

impl Run for WithDeadline {
    fn run(&mut self, memory: &mut [u8], seed: u64) -> Result<u64, String> {
        let WithDeadline { native, machine } = self;
        let far = Deadline::at(Instant::now() + Duration::from_secs(3600));
        let deadline = far.checking_every(1 + seed as u32 % 3);
        let packet = memory.to_vec();
        let packet = Packet::whole(&packet, &Metadata::UNKNOWN);
        let random = &mut SplitMix::new(seed);
        let deadline = Some(deadline);
        returned(native.run_with_packet(machine, memory, &packet, random, deadline))
    }
}

fn returned(outcome: Outcome) -> Result<u64, String> {
    match outcome {
        Outcome::Returned(value) => Ok(value),
        other => Err(format!("{other:?}")),
    }
}

/// Lowers a program that the reference evaluator runs without a fault on every
/// memory that it is run on.
#[allow(unsafe_code)]
fn assume_safe(program: &[Insn], passes: Passes) -> Result<Program, String> {
    // SAFETY: programs of the generator are safe by construction, and one that
    // was made smaller is only run on the memory on which the reference evaluator
    // found that it reads only what it wrote, stays inside and ends.
    let trusted = unsafe { Unchecked::assume_safe(program.to_vec()) };
    let lowered = Lowered::from_unchecked_with(trusted, passes);
    lowered.map_err(|malformed| malformed.to_string())
}

/// The passes of lowering by seed: all, none, or all but one. The choice is independent of
/// those of engines, which go by the remainder of the seed.
fn some_passes(seed: u64) -> Passes {
    match SplitMix::new(!seed).next_u64() % 4 {
        0 => Passes::NONE,
        1 => Passes::OF_ALL.without(Pass::UnusedResults),
        2 => Passes::OF_ALL.without(Pass::ZeroExtensions),
        _ => Passes::OF_ALL,
    }
}

/// Result of an engine on a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    value: Result<u64, String>,
    memory: Vec<u8>,
    /// True if the guard bytes are unchanged.
    stayed_inside: bool,
}

impl Answer {
    fn describe(&self) -> String {
        let mut text = match &self.value {
            Ok(value) => format!("{value:#x}"),
            Err(why) => why.clone(),
        };
        if !self.stayed_inside {
            text.push_str(", wrote beside the memory");
        }
        text.push_str(", memory ");
        for byte in &self.memory {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// A memory with guard bytes around it.
struct Arena {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

const AROUND: usize = 64;
const UNTOUCHED: u8 = 0xa5;

impl Arena {
    fn new() -> Arena {
        Arena {
            bytes: Vec::new(),
            start: 0,
            len: 0,
        }
    }

    /// Holds these bytes, at a multiple of eight.
    fn fill(&mut self, memory: &[u8]) {
        self.bytes.clear();
        self.bytes.resize(memory.len() + 2 * AROUND + 8, UNTOUCHED);
        self.start = AROUND + self.bytes.as_ptr().align_offset(8);
        self.len = memory.len();
        self.memory().copy_from_slice(memory);
    }

    fn memory(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    fn is_untouched_around(&self) -> bool {
        let (before, rest) = self.bytes.split_at(self.start);
        let mut around = before.iter().chain(&rest[self.len..]);
        around.all(|byte| *byte == UNTOUCHED)
    }
}

/// Programs on which an engine differs.
#[derive(Clone, Debug)]
pub struct EngineDifference {
    /// The seed that made it.
    pub seed: u64,
    /// The engine.
    pub engine: &'static str,
    /// The program, shrunk.
    pub program: Vec<Insn>,
    /// The memory before.
    pub memory: Vec<u8>,
    /// Result of the engine.
    pub answer: String,
    /// Expected result.
    pub reference: String,
}

impl EngineDifference {
    /// The difference in words, with the program.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "seed {}, engine {}: {}\n",
            self.seed, self.engine, self.answer
        );
        let _ = writeln!(text, "reference: {}", self.reference);
        let _ = write!(text, "memory before: ");
        for byte in &self.memory {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        for (at, insn) in self.program.iter().enumerate() {
            let _ = writeln!(text, "{at}: {insn}");
        }
        text
    }
}

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Programs compared.
    pub programs: u64,
    /// Runs of the reference evaluator, each compared with all engines.
    pub runs: u64,
    /// Coverage.
    pub coverage: Coverage,
    /// The first difference, if there is one.
    pub difference: Option<EngineDifference>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            programs: 0,
            runs: 0,
            coverage: Coverage::new(),
            difference: None,
        }
    }
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Tally) {
        self.programs += other.programs;
        self.runs += other.runs;
        self.coverage.add(&other.coverage);
        if self.difference.is_none() {
            self.difference = other.difference;
        }
    }
}

/// Compares all engines on programs from these seeds; it ends at the first
/// difference.
pub fn compare_engines(seeds: Range<u64>) -> Tally {
    let mut engines = Engines::all();
    let mut tally = Tally::default();
    for seed in seeds {
        let steps = Limits::default().steps;
        engines.compare_generated(&mut Choices::from_seed(seed), seed, steps, &mut tally);
        if tally.difference.is_some() {
            break;
        }
    }
    tally
}

/// Engines that are compared with the reference evaluator.
pub struct Engines {
    engines: Vec<Box<dyn Engine>>,
    generator: Generator,
    arena: Arena,
}

impl Engines {
    /// All engines.
    pub fn all() -> Engines {
        Engines {
            engines: all(),
            generator: Generator::new(Dialect::Engines),
            arena: Arena::new(),
        }
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|engine| engine.name()).collect()
    }

    /// Compares them on one program, chosen by these bytes, unless it executes more than
    /// `STEPS_OF_CHOSEN` instructions.
    pub fn compare_chosen(&mut self, bytes: &[u8]) -> Tally {
        let mut tally = Tally::default();
        let mut choices = Choices::from_bytes(bytes);
        self.compare_generated(&mut choices, seed_of(bytes), STEPS_OF_CHOSEN, &mut tally);
        tally
    }

    /// Compares them on a program that may be unsafe: they run it if the
    /// reference finds no fault within so many instructions.
    pub fn compare(
        &mut self,
        program: &[Insn],
        memory: &[u8],
        steps: u64,
    ) -> Option<EngineDifference> {
        let seed = seed_of(memory) ^ program.len() as u64;
        let right = reference_answer(program, memory, seed, steps)?;
        let one = [memory.to_vec()];
        for engine in &self.engines {
            let answers = answers(engine.as_ref(), program, &one, seed, &mut self.arena);
            if answers[0] != right {
                return Some(shrunk(engine.as_ref(), program, memory, seed));
            }
        }
        None
    }

    /// Compares them on a generated program, unless it executes more instructions than `steps`.
    fn compare_generated(
        &mut self,
        choices: &mut Choices<'_>,
        seed: u64,
        steps: u64,
        tally: &mut Tally,
    ) {
        let program = self.generator.program(choices);
        tally.programs += 1;
        tally.coverage.made(&program.notes);
        let code = program.code(Entry::Memory);
        let memories: Vec<Vec<u8>> = (0..MEMORIES)
            .map(|_| program.memory(choices))
            .map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect())
            .collect();
        let limits = Limits {
            steps,
            ..Limits::default()
        };
        let right: Vec<Answer> = memories
            .iter()
            .map(|memory| evaluate(&code, memory, seed, limits, &mut tally.coverage))
            .collect();
        let too_long = Err(format!("{:?}", Fault::TooLong));
        if right.iter().any(|answer| answer.value == too_long) {
            return;
        }
        tally.runs += MEMORIES;
        for engine in &self.engines {
            let answers = answers(engine.as_ref(), &code, &memories, seed, &mut self.arena);
            if let Some(differs) = answers.iter().zip(&right).position(|(a, b)| a != b) {
                let memory = &memories[differs];
                tally.difference = Some(shrunk(engine.as_ref(), &code, memory, seed));
                return;
            }
        }
    }
}

/// The seed of what an input leaves open: random numbers, passes and optimizations.
fn seed_of(bytes: &[u8]) -> u64 {
    let mix = |seed: u64, &byte: &u8| SplitMix::new(seed ^ u64::from(byte)).next_u64();
    bytes.iter().fold(0, mix)
}

/// A difference on the smallest program that shows one.
fn shrunk(engine: &dyn Engine, program: &[Insn], memory: &[u8], seed: u64) -> EngineDifference {
    let smaller = shrink(program, |smaller| {
        still_differs(engine, smaller, memory, seed)
    });
    let one = [memory.to_vec()];
    let answer = &answers(engine, &smaller, &one, seed, &mut Arena::new())[0];
    let right = evaluate(
        &smaller,
        memory,
        seed,
        Limits::default(),
        &mut Coverage::new(),
    );
    EngineDifference {
        seed,
        engine: engine.name(),
        program: smaller,
        memory: memory.to_vec(),
        answer: answer.describe(),
        reference: right.describe(),
    }
}

/// An engine's answers, one for each memory.
fn answers(
    engine: &dyn Engine,
    program: &[Insn],
    memories: &[Vec<u8>],
    seed: u64,
    arena: &mut Arena,
) -> Vec<Answer> {
    let failed = |why: &str| Answer {
        value: Err(why.to_owned()),
        memory: Vec::new(),
        stayed_inside: true,
    };
    let run_all = || {
        let lowered = assume_safe(program, some_passes(seed))?;
        let mut ready = engine.prepare(&lowered, seed)?;
        let mut answers = Vec::with_capacity(memories.len());
        for memory in memories {
            arena.fill(memory);
            let value = ready.run(arena.memory(), seed);
            answers.push(Answer {
                value,
                memory: arena.memory().to_vec(),
                stayed_inside: arena.is_untouched_around(),
            });
        }
        Ok(answers)
    };
    // A panic is an answer too, and a wrong one.
    match catch_unwind(AssertUnwindSafe(run_all)) {
        Ok(Ok(answers)) => answers,
        Ok::<_, _>(Err::<_, String>(why)) => vec![failed(&why); memories.len()],
        Err(_) => vec![failed("it panicked"); memories.len()],
    }
}

/// The reference's answer.
fn evaluate(
    program: &[Insn],
    memory: &[u8],
    seed: u64,
    limits: Limits,
    coverage: &mut Coverage,
) -> Answer {
    let mut memory = memory.to_vec();
    let mut random = SplitMix::new(seed);
    let value = reference::run(program, &mut memory, &mut random, limits, coverage);
    Answer {
        value: value.map_err(|fault| format!("{fault:?}")),
        memory,
        stayed_inside: true,
    }
}

/// The expected result, if the program's structure is valid and the reference evaluator
/// finds no fault within an instruction limit.
fn reference_answer(program: &[Insn], memory: &[u8], seed: u64, steps: u64) -> Option<Answer> {
    let limits = Limits {
        steps,
        ..Limits::default()
    };
    let right = evaluate(program, memory, seed, limits, &mut Coverage::new());
    (right.value.is_ok() && assume_safe(program, Passes::OF_ALL).is_ok()).then_some(right)
}

/// True if a reduced program still shows a difference and is safe.
fn still_differs(engine: &dyn Engine, program: &[Insn], memory: &[u8], seed: u64) -> bool {
    let one = [memory.to_vec()];
    let differs = |right| answers(engine, program, &one, seed, &mut Arena::new())[0] != right;
    reference_answer(program, memory, seed, STEPS_OF_SMALLER).is_some_and(differs)
}
