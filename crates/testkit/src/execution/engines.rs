//! The engines that run verified programs, each with maps of its own.

use std::sync::Arc;

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Permission};
use jit::memory::Pool;
use jit::{Features, Options};
use kernel::maps::Map;
use kernel::programs::{TestInput, TestProgram};
use lower::{ContextKind, PacketProgram, Passes, VerifiedProgram};
use packet::{Metadata, Packet};
use program::Program;
use spec::SplitMix;
use spec::programs::ProgramType;
use verifier::Proof;
use vm::{DirectContext, MapHandle, MapObject, RunContext, RunGuard, System};

use super::maps;

/// The CPU that programs run on.
const CPU: u32 = 1;

/// What a run leaves behind beside maps: `r0`, the data that a test run returns, the context
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
pub(super) fn input(program: &Program, packet: &[u8]) -> TestInput {
    let rules = TestProgram::of(program.kind()).expect("a type that is test-run");
    let input = rules.test_input(packet, &[], &System::DEFAULT);
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

/// A verified program as native code.
pub(super) struct Native {
    native: jit::Native<PacketProgram>,
    kind: ContextKind,
    pub(super) passes: Passes,
    pub(super) maps: Vec<Arc<Map>>,
}

impl Native {
    pub(super) fn new(proof: &Proof, passes: Passes) -> Result<Native, String> {
        let program = proof.program();
        let maps = maps::create(program);
        let handles: Vec<Option<MapHandle>> = maps
            .iter()
            .map(|map| Some(MapHandle::new(map.clone())))
            .collect();
        let find_call = ::kernel::helpers::find_call;
        let lowered = VerifiedProgram::from_proof_with(proof, &handles, find_call, passes)
            .map_err(|unfit| unfit.to_string())?;
        let lowered = lowered.packet().ok_or("a program without a packet")?;
        let options = Options {
            features: Features::detect(),
            ..Options::default()
        };
        Ok(Native {
            native: jit::Native::compile(&lowered, &options, &Pool::new())
                .map_err(|error| error.to_string())?,
            kind: context_of(program),
            passes,
            maps,
        })
    }

    pub(super) fn run(&self, mut input: TestInput, seed: u64) -> Left {
        let mut packet = input.packet.take().expect("these types have packets");
        let mut context = DirectContext::new(self.kind, &input.context);
        let mut random = SplitMix::new(seed);
        let mut clock = || seed;
        let metadata = Metadata::of_cpu(CPU);
        let no_packet = Packet::whole(&[], &metadata);
        let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
        let run = (self.native).run(&mut packet, &mut context, &RunGuard::new(), cx);
        let r0 = run.expect("the maps have values for this CPU");
        let size = input.context.len();
        input.context.copy_from_slice(&context.structure()[..size]);
        input.packet = Some(packet);
        Left::new(self.kind, r0, &input)
    }
}

/// A program in the checked engine.
pub(super) struct Checked {
    program: CheckedProgram,
    kind: ContextKind,
    pub(super) maps: Vec<Arc<Map>>,
}

impl Checked {
    pub(super) fn new(program: &Program) -> Checked {
        Checked {
            program: CheckedProgram::new(program.decode()),
            kind: context_of(program),
            maps: maps::create(program),
        }
    }

    /// What a run leaves behind; the trap that ended it.
    pub(super) fn run(&self, mut input: TestInput, seed: u64) -> Result<Left, String> {
        let guard = RunGuard::new();
        let inner: Vec<MapHandle> = (self.maps.iter())
            .flat_map(|map| map.inner_maps())
            .collect();
        let mut memory = Memory::new();
        let refused = |error| format!("the checked engine's memory: {error:?}");
        let packet = input.packet.as_mut().expect("these types have packets");
        memory.add_packet(packet).map_err(refused)?;
        let context = memory.add_context(&mut input.context);
        let region = context.map_err(refused)?;
        for map in &self.maps {
            (memory.add_map("", &**map, &guard, Permission::ReadWrite)).map_err(refused)?;
        }
        for handle in &inner {
            memory.add_inner_map(handle, &guard).map_err(refused)?;
        }
        let arguments = [memory.address(region), 0, 0, 0, 0];
        let mut random = SplitMix::new(seed);
        let mut clock = || seed;
        let metadata = Metadata::of_cpu(CPU);
        let no_packet = Packet::whole(&[], &metadata);
        let mut cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
        let mut calls = Calls::resolved(|number, arguments, memory| {
            let helper = ::kernel::helpers::find(number)?;
            Some(helper(arguments, memory, &mut cx))
        });
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let finish = self
            .program
            .run(cx, Entry { arguments }, &Limits::default());
        let r0 = finish.outcome.map_err(|trap| trap.to_string())?;
        drop(memory);
        Ok(Left::new(self.kind, r0, &input))
    }
}
