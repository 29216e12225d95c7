//! Runs programs without checks.

use std::sync::Arc;

use btf::TypeId;
use isa::ebpf::{Imm64, Insn};
use jit::memory::Pool;
use jit::{Features, Options};
use kernel::maps::RunGuard;
use kernel::process::ProgramVerifier;
use kernel::programs::TestProgram;
use lower::VerifiedProgram;
use packet::Packet;
use program::{MapDef, Program};
use spec::programs::{LoadFlags, ProgramType};
use spec::registry::Registry;
use spec::{Errno, Kernel, SplitMix};
use verifier::{Proof, Verdict};
use vm::{DirectContext, MapHandle, RunContext};

use super::case::{Case, MAP};
use super::checked::{OurSide, metadata, our_map, own_host};
use super::compare::{self, Left, attach_type, is_returned};
use crate::direct::{DirectEngine, DirectProgram};
use crate::execution::Setting;
use testkit::verifier::assembled;

/// Result of a program in an engine without checks; `None` for one with maps of types, which
/// are those of the kernel's side.
pub(super) fn left(
    engine: DirectEngine,
    setting: Setting<'_>,
    case: &Case,
    side: &OurSide<'_>,
) -> Option<Left> {
    let mut maps = case.maps.iter();
    let has_types = case.has_types || maps.any(|map| map.0.value_type != TypeId::VOID);
    (!has_types).then(|| run(engine, setting, case, side))
}

fn run(engine: DirectEngine, setting: Setting<'_>, case: &Case, side: &OurSide<'_>) -> Left {
    let program = program(case)?;
    let proof = Proof::of(&program, setting.kernel, setting.registry)
        .map_err(|refused| format!("refused: {:?}", refused.verdict))?;
    let host = own_host();
    let maps = case.maps.iter();
    let maps = maps.map(|map| {
        let map = Arc::new(our_map(map, side.system, &host));
        Some(map.handle().clone())
    });
    let maps: Vec<Option<MapHandle>> = maps.collect();
    let lowered = VerifiedProgram::from_proof(&proof, &maps, ::kernel::find_call);
    let lowered = lowered.map_err(|unfit| unfit.to_string())?;
    let options = Options {
        features: Features::detect(),
        ..Options::default()
    };
    let direct = DirectProgram::compile(engine, &lowered, &options, &Pool::new())?;
    let (mut data, mut context, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for cpu in case.runs() {
        let retval;
        (retval, data, context) = run_on(&direct, case, side, cpu)?;
        results.push(retval);
    }
    Ok((case.result(&results), data, context))
}

fn run_on(program: &DirectProgram, case: &Case, side: &OurSide<'_>, cpu: Option<u32>) -> Left {
    let (system, kind) = (side.system, program.context_kind());
    let rules = TestProgram::of(case.kind).ok_or("a type that is not test-run")?;
    let input = rules.test_input(&case.packet, &compare::context(case), system);
    let mut input = input.map_err(|errno| format!("errno {}", errno.0))?;
    input.begin_run();
    let mut context = DirectContext::new(kind, &input.context);
    if let Some(socket) = &input.packet_socket {
        context.set_socket(socket);
    }
    let (process, metadata) = (side.process(), metadata(cpu));
    let (mut random, mut clock) = (SplitMix::new(0), || 0);
    let no_packet = Packet::whole(&[], &metadata);
    let cx = RunContext {
        system,
        types: Some(side.types),
        process: Some(&process),
        ..RunContext::new(&no_packet, &mut random, Some(&mut clock))
    };
    let guard = RunGuard::new();
    let value = program.run(input.packet.as_mut(), &mut context, &guard, cx)?;
    let size = input.context.len();
    input.context.copy_from_slice(&context.structure()[..size]);
    let retval = input.end_run(value as u32, system);
    let retval = retval.map_err(|errno| format!("errno {}", errno.0))?;
    let context = match is_returned(case) {
        true => input.context_out(),
        false => Vec::new(),
    };
    Ok((retval, input.data_out(), context))
}

/// The program of a case, with references to maps in place of its constants.
fn program(case: &Case) -> Result<Program, String> {
    let mut slots = isa::ebpf::decode(&assembled(&case.text)?);
    for insn in &mut slots {
        if let Insn::LoadImm64 { imm, .. } = insn
            && let Imm64::Value(value) = imm
            && value.get() & !0xff == MAP
        {
            let index = value.get() as i32 & 0xff;
            *imm = Imm64::MapIndex { index, high: 0 };
        }
    }
    let maps = case.maps.iter();
    let maps = maps.map(|setup| Arc::new(MapDef::new("map", setup.0)));
    let insns = isa::ebpf::encode(&slots).map_err(|error| format!("{error:?}"))?;
    Program::builder(case.kind, insns)
        .maps(maps.collect::<Vec<_>>())
        .license("GPL")
        .flags(match case.kind {
            ProgramType::Syscall => LoadFlags::SLEEPABLE,
            _ => LoadFlags::default(),
        })
        .expected_attach_type(attach_type(case.kind))
        .build()
        .map_err(|invalid| invalid.to_string())
}

/// Verifies programs that programs load.
#[derive(Debug)]
struct KernelVerifier(Kernel, Registry);

impl ProgramVerifier for KernelVerifier {
    fn verify(&self, program: &Program) -> Result<(), Errno> {
        match Proof::of(program, &self.0, &self.1) {
            Ok(_) => Ok(()),
            Err(verification) => match verification.verdict {
                Verdict::Refused(refusal) => Err(refusal.errno),
                verdict => panic!("{verdict:?}"),
            },
        }
    }
}

/// The verifier of a setting.
pub(super) fn verifier(setting: Setting<'_>) -> Arc<dyn ProgramVerifier> {
    Arc::new(KernelVerifier(
        setting.kernel.clone(),
        setting.registry.clone(),
    ))
}
