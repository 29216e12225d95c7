//! The engines that run verified programs, each with maps of its own: the first program, those
//! that it calls, and the functions that timers call after a run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use jit::memory::Pool;
use jit::{Features, Options};
use kernel::maps::{Host, Map, ProgramClass, Resources, StoredProgram};
use kernel::programs::{TestInput, TestProgram};
use lower::{ContextKind, Lowered, Passes, VerifiedProgram, timer_callbacks};
use packet::{Metadata, Packet};
use program::Program;
use spec::SplitMix;
use spec::programs::ProgramType;
use verifier::Proof;
use vm::{DirectContext, FiredTimer, MapHandle, RunContext, RunGuard};

use super::machine::Machine;
use super::maps::{self, PROGRAMS, TARGETS};
use crate::direct::{DirectEngine, DirectFunction, DirectProgram};

/// Result of a run beside maps: `r0`, the data that a test run returns, the context
/// without packet bounds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) r0: u64,
    pub(super) data: Vec<u8>,
    context: Vec<u8>,
}

impl Left {
    fn new(kind: ContextKind, r0: u64, input: &TestInput) -> Left {
        Left {
            r0,
            data: input.data_out(),
            context: without_bounds(kind, &input.context),
        }
    }
}

fn context_of(program: &Program) -> ContextKind {
    match program.kind() {
        ProgramType::Xdp => ContextKind::Xdp,
        _ => ContextKind::SkBuff,
    }
}

/// Packet and context of a test run.
pub(super) fn input(program: &Program, packet: &[u8], machine: &Machine) -> TestInput {
    let rules = TestProgram::of(program.kind()).expect("a type that is test-run");
    let input = rules.test_input(packet, &[], &machine.system);
    input.expect("the packet has a size that test runs take")
}

/// The context without the packet's bounds, which are addresses.
fn without_bounds(kind: ContextKind, context: &[u8]) -> Vec<u8> {
    let mut context = context.to_vec();
    let bounds: &[usize] = match kind {
        ContextKind::Xdp => &[0, 4, 8],
        // With the pointer to the socket.
        ContextKind::SkBuff => &[76, 80, 140, 168, 172],
        other => unreachable!("no program is generated for {other:?}"),
    };
    for &at in bounds {
        context[at..at + 4].fill(0);
    }
    context
}

/// The time of a run, which stands still.
fn time(run: u64) -> u64 {
    1_000_000 * (run + 1)
}

/// Runs something in the context of a run, or of a timer that fires after it.
fn with_context<R>(
    machine: &Machine,
    host: &Host,
    run: u64,
    timer: Option<FiredTimer>,
    action: impl FnOnce(RunContext<'_>) -> R,
) -> R {
    let mut random = SplitMix::new(run);
    let mut clock = || timer.map_or(time(run), |timer| timer.time);
    let metadata = Metadata::from_cpu(machine.cpu(run));
    let no_packet = Packet::whole(&[], &metadata);
    action(RunContext {
        system: &machine.system,
        timers: Some(&host.timers),
        running_timer: timer.map_or(0, |timer| timer.address),
        ..RunContext::new(&no_packet, &mut random, Some(&mut clock))
    })
}

/// The timers that a run started for a time that has passed.
fn fired(host: &Host, run: u64) -> impl Iterator<Item = FiredTimer> {
    iter::from_fn(move || host.timers.fire(time(run)))
}

/// Puts the programs of these numbers into the program array.
fn fill(maps: &[Arc<Map>], programs: &dyn Resources) {
    for (index, number) in TARGETS {
        let (key, descriptor) = (index.to_ne_bytes(), (*number as u32).to_ne_bytes());
        let put = maps[PROGRAMS as usize].update_with(&key, &descriptor, 0, programs);
        put.expect("the program fits");
    }
}

fn class(program: &Program) -> ProgramClass {
    ProgramClass {
        program_type: program.kind(),
        attach_type: 0,
        has_frags: false,
        is_native: true,
        is_device_bound: false,
        cgroup_storage: [0; 2],
    }
}

/// A verified program in an engine without checks, with those that it calls.
pub(super) struct Direct {
    pub(super) engine: DirectEngine,
    programs: Vec<Compiled>,
    /// The functions that timers call, by their first slots.
    callbacks: BTreeMap<u32, DirectFunction>,
    kind: ContextKind,
    pub(super) passes: Passes,
    pub(super) maps: Vec<Arc<Map>>,
    host: Host,
}

struct Compiled {
    program: DirectProgram,
    stored: Arc<StoredProgram>,
}

impl Resources for Direct {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        let program = self.programs.get(descriptor as usize)?;
        Some(program.stored.clone())
    }
}

impl Drop for Direct {
    /// The program array and the programs keep each other.
    fn drop(&mut self) {
        self.maps[PROGRAMS as usize].release();
    }
}

impl Direct {
    pub(super) fn new(
        engine: DirectEngine,
        proofs: &[Proof],
        passes: Passes,
        machine: &Machine,
    ) -> Result<Direct, String> {
        let first = proofs[0].program();
        let host = Host::new(machine.cpus, 1);
        let maps = maps::create_on(first, &host);
        let handles: Vec<Option<MapHandle>> =
            maps.iter().map(|map| Some(map.handle().clone())).collect();
        let find_call = ::kernel::helpers::find_call;
        let options = Options {
            features: Features::detect(),
            tail_target: proofs.len() > 1,
            ..Options::default()
        };
        let pool = Pool::new();
        let compile = |(proof, id): (&Proof, u32)| {
            let lowered = VerifiedProgram::from_proof_with(proof, &handles, find_call, passes)
                .map_err(|unfit| unfit.to_string())?;
            let program = DirectProgram::compile(engine, &lowered, &options, &pool)?;
            let target = program.tail_target();
            let class = class(proof.program());
            Ok(Compiled {
                program,
                stored: Arc::new(StoredProgram { id, class, target }),
            })
        };
        let programs = proofs.iter().zip(0..).map(compile);
        let programs: Vec<Compiled> = programs.collect::<Result<_, String>>()?;
        let callback = |slot| {
            let (no_host, function) = (Arc::default(), (0, slot));
            let lowered = Lowered::from_function_with(
                &proofs[0], &handles, find_call, &no_host, function, passes,
            );
            let lowered = lowered.map_err(|unfit| unfit.to_string())?;
            let options = Options {
                tail_target: false,
                ..options
            };
            let function = DirectFunction::compile(engine, &lowered, &options, &pool)?;
            Ok((slot, function))
        };
        let callbacks = timer_callbacks(&proofs[0]).into_iter().map(callback);
        let direct = Direct {
            engine,
            callbacks: callbacks.collect::<Result<_, String>>()?,
            programs,
            kind: context_of(first),
            passes,
            maps,
            host,
        };
        if direct.programs.len() > 1 {
            fill(&direct.maps, &direct);
        }
        Ok(direct)
    }

    pub(super) fn run(&self, mut input: TestInput, machine: &Machine, run: u64) -> Left {
        let mut packet = input.packet.take().expect("these types have packets");
        let mut context = DirectContext::new(self.kind, &input.context);
        let result = with_context(machine, &self.host, run, None, |mut cx| {
            let program = &self.programs[0].program;
            let guard = RunGuard::new();
            program.run(Some(&mut packet), &mut context, &guard, cx.reborrow())
        });
        let r0 = result.expect("the maps have values for this CPU, and the program ends");
        let size = input.context.len();
        input.context.copy_from_slice(&context.structure()[..size]);
        input.packet = Some(packet);
        Left::new(self.kind, r0, &input)
    }

    /// Calls the functions of the timers that fire after a run; their number.
    pub(super) fn fire(&self, machine: &Machine, run: u64) -> Result<u64, String> {
        let mut calls = 0;
        for timer in fired(&self.host, run) {
            let guard = RunGuard::new();
            let map = self
                .maps
                .iter()
                .find(|map| map.handle().identity() == timer.map);
            let map = map.ok_or("a timer without a map")?;
            let handle = map.handle();
            let entry = handle.operations().entry_at(&guard, timer.address);
            let entry = entry.ok_or("a timer without a value")?;
            let function = &self.callbacks[&timer.callback.slot];
            with_context(machine, &self.host, run, Some(timer), |mut cx| {
                function.call(handle, entry, &guard, cx.reborrow())
            })?;
            calls += 1;
        }
        Ok(calls)
    }
}

/// A program in the checked engine, with those that it calls.
pub(super) struct Checked {
    programs: Vec<Arc<CheckedProgram>>,
    kind: ContextKind,
    pub(super) maps: Vec<Arc<Map>>,
    host: Host,
    /// Sockets that were found, and tail calls that were made.
    pub(super) found: Cell<[u64; 2]>,
}

/// Helpers that look for sockets.
const SOCKETS: &[&str] = &[
    "bpf_sk_lookup_tcp",
    "bpf_sk_lookup_udp",
    "bpf_skc_lookup_tcp",
];

/// Programs by descriptor, which are their numbers, of one class.
struct Numbers(ProgramClass);

impl Resources for Numbers {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        Some(Arc::new(StoredProgram {
            id: descriptor,
            class: self.0,
            target: None,
        }))
    }
}

/// Initial state of the checked engine.
enum Start<'i> {
    Program(&'i mut TestInput),
    Timer(FiredTimer),
}

impl Checked {
    pub(super) fn new(programs: &[Program], machine: &Machine) -> Checked {
        let host = Host::new(machine.cpus, 1);
        let maps = maps::create_on(&programs[0], &host);
        if programs.len() > 1 {
            fill(&maps, &Numbers(class(&programs[0])));
        }
        let checked = |program: &Program| Arc::new(CheckedProgram::new(program.decode()));
        Checked {
            programs: programs.iter().map(checked).collect(),
            kind: context_of(&programs[0]),
            maps,
            host,
            found: Cell::default(),
        }
    }

    /// Result of a run; the trap that ended it.
    pub(super) fn run(
        &self,
        mut input: TestInput,
        machine: &Machine,
        run: u64,
    ) -> Result<Left, String> {
        let r0 = self.start(Start::Program(&mut input), machine, run)?;
        Ok(Left::new(self.kind, r0, &input))
    }

    /// Calls the functions of the timers that fire after a run; their number.
    pub(super) fn fire(&self, machine: &Machine, run: u64) -> Result<u64, String> {
        let calls = fired(&self.host, run);
        let calls = calls.map(|timer| self.start(Start::Timer(timer), machine, run));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        Ok(calls.len() as u64)
    }

    fn start(&self, start: Start<'_>, machine: &Machine, run: u64) -> Result<u64, String> {
        let guard = RunGuard::new();
        let inner: Vec<_> = (self.maps.iter())
            .flat_map(|map| map.operations().inner_maps())
            .collect();
        let mut memory = Memory::new();
        let refused = |error| format!("the checked engine's memory: {error:?}");
        let (mut arguments, mut fired) = ([0; 5], None);
        match start {
            Start::Program(input) => {
                let packet = input.packet.as_mut().expect("these types have packets");
                memory.add_packet(packet).map_err(refused)?;
                let context = memory.add_context(&mut input.context);
                arguments[0] = memory.address(context.map_err(refused)?);
            }
            Start::Timer(timer) => fired = Some(timer),
        }
        for map in &self.maps {
            (memory.add_map("", map.handle(), &guard, Permission::ReadWrite)).map_err(refused)?;
        }
        for handle in &inner {
            memory
                .add_inner_map(handle.map.handle(), &guard)
                .map_err(refused)?;
        }
        memory.add_sockets(&machine.system.network.sockets);
        let mut slot = 0;
        if let Some(timer) = fired {
            let entry = memory.entry_at(timer.map, timer.address);
            let entry = entry.map_err(|error| format!("{error:?}"))?;
            arguments[..3].copy_from_slice(&entry.ok_or("a timer without a value")?);
            slot = timer.callback.slot as usize;
        }
        let count = |at: usize| {
            let mut found = self.found.get();
            found[at] += 1;
            self.found.set(found);
        };
        let finds_sockets = |number| {
            let helper = spec::helpers::helper(number);
            helper.is_some_and(|helper| SOCKETS.contains(&helper.name))
        };
        let finish = with_context(machine, &self.host, run, fired, |mut cx| {
            let mut calls = Calls::resolved(|number, arguments, memory| {
                let helper = ::kernel::helpers::find(number)?;
                let result = helper(arguments, memory, &mut cx);
                if result.as_ref().is_ok_and(|result| *result != 0) && finds_sockets(number) {
                    count(0);
                }
                Some(result)
            });
            calls.set_tail_targets(|array: u32, index: u32| {
                let array = self.maps.get(array as usize)?;
                let stored = array.operations().program(index)?;
                count(1);
                self.programs.get(stored.id as usize).cloned()
            });
            let cx = CheckedContext {
                memory: &mut memory,
                calls: &mut calls,
                packet: None,
            };
            let limits = Limits::default();
            self.programs[0].run_function(slot, cx, Entry { arguments }, &limits)
        });
        finish.outcome.map_err(|trap| trap.to_string())
    }
}
