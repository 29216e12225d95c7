//! Programs with the proof that they are safe.

use std::collections::BTreeMap;
use std::sync::Arc;

use isa::ebpf::{Callee, Insn};
use program::{MapEntry, Program};
use spec::Kernel;
use spec::helpers::HelperId;
use spec::host::Prototype;
use spec::kfuncs::KernelFunction;
use spec::maps::MapKind;
use spec::registry::{Registry, kfunc_signature};

use crate::input::{context_of, mitigates};

use crate::{
    KernelCode, LiveCode, Options, ProgramFacts, Spills, Verdict, Verification, verify, xlated,
};

/// A program that this verifier accepted, with the facts that it found. Nothing else makes
/// one, so engines run such programs without checks.
#[derive(Clone, Debug)]
pub struct Proof {
    program: Program,
    facts: ProgramFacts,
    /// Calls and addresses of kernel functions that are known, by slot.
    functions: BTreeMap<usize, KernelFunction>,
    /// The functions of the host, if the program refers to one.
    host: Option<Arc<[Prototype]>>,
    /// Signatures of the helpers and kfuncs that a run may call, by number of resolved code.
    signatures: BTreeMap<i32, String>,
    has_own_tail_call_maps: bool,
    is_mitigated: bool,
}

impl Proof {
    /// Verifies a program, by the rules of [`RULES`](crate::RULES) whatever the kernel's release
    /// is, since they are those that engines rest on; the verification without a proof if it
    /// is not accepted.
    pub fn of(
        program: &Program,
        kernel: &Kernel,
        registry: &Registry,
    ) -> Result<Proof, Box<Verification>> {
        let options = Options {
            collect_facts: true,
            assume_rules: true,
            ..Options::default()
        };
        let mut verification = verify(program, kernel, registry, &options);
        match (&verification.verdict, verification.facts.take()) {
            (Verdict::Accepted, Some(facts)) => {
                let functions = functions(program, kernel);
                let is_host =
                    |function: &KernelFunction| matches!(function, KernelFunction::Host(_));
                let host = kernel.host_functions();
                Ok(Proof {
                    signatures: signatures(program, kernel, registry, &facts),
                    has_own_tail_call_maps: has_own_tail_call_maps(program, registry),
                    is_mitigated: mitigates(kernel, |on| on.spectre_v1 || on.spectre_v4),
                    program: program.clone(),
                    facts,
                    host: functions.values().any(is_host).then(|| host.clone()),
                    functions,
                })
            }
            _ => Err(Box::new(verification)),
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The instructions that are left when those that no run reaches are removed, as Linux
    /// removes them before it rewrites and compiles a program.
    pub fn live_code(&self, spills: Spills) -> LiveCode {
        xlated::live_code(&self.program.decode(), &self.facts, spills)
    }

    /// The program as Linux compiles it: live code, in which divisions are guarded and
    /// `may_goto` counts its iterations. What depends on one kernel is left open.
    pub fn kernel_code(&self) -> KernelCode {
        xlated::kernel_code(&self.program.decode(), &self.facts)
    }

    /// The kernel function that the instruction at a slot calls or loads the address of, if
    /// it is known.
    pub fn kernel_function(&self, slot: usize) -> Option<KernelFunction> {
        self.functions.get(&slot).copied()
    }

    /// The functions of the host that the program was verified for; `None` if it refers to
    /// none.
    pub fn host(&self) -> Option<&[Prototype]> {
        self.host.as_deref()
    }

    /// Numbers of resolved code of the helpers and kfuncs that a run may call, with the
    /// signatures of the prototypes by which the calls were checked
    /// ([`HelperProto::signature`](spec::registry::HelperProto::signature),
    /// [`kfunc_signature`]). Kfuncs whose function is unknown are not among them.
    pub fn signatures(&self) -> impl Iterator<Item = (i32, &str)> {
        let signatures = self.signatures.iter();
        signatures.map(|(number, signature)| (*number, signature.as_str()))
    }

    /// True if the registry gives program arrays to `bpf_tail_call` alone, and no other map.
    pub fn has_own_tail_call_maps(&self) -> bool {
        self.has_own_tail_call_maps
    }

    /// True if the program needs barriers and masks against speculative execution: the caller
    /// has no CAP_PERFMON, and the kernel mitigates.
    pub fn is_mitigated(&self) -> bool {
        self.is_mitigated
    }

    /// Facts that hold in every run of it.
    pub fn facts(&self) -> &ProgramFacts {
        &self.facts
    }
}

/// See [`Proof::signatures`].
fn signatures(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    facts: &ProgramFacts,
) -> BTreeMap<i32, String> {
    let context = context_of(program, kernel);
    let insns = program.decode();
    let reached = insns.iter().zip(&facts.insns);
    let reached = reached.filter(|(_, fact)| fact.is_reached);
    let called = reached.filter_map(|(insn, _)| {
        let function = KernelFunction::from_insn(kernel, insn).map(KernelFunction::number);
        match *insn {
            Insn::Call(Callee::Helper(number)) => {
                let proto = registry.helper(&context, u32::try_from(number).ok()?);
                Some((function.unwrap_or(number), proto.ok()?.signature()))
            }
            Insn::Call(Callee::Kfunc { id, module }) => {
                let id = u32::try_from(id).ok()?;
                let module = usize::try_from(module).ok()?.checked_sub(1);
                let (btf, kfunc) = match module.map(|at| kernel.modules().get(at)) {
                    None => (kernel.btf()?, registry.kfunc(id)?),
                    Some(module) => (&module?.btf, registry.kfunc_of_module(module?, id)?),
                };
                Some((function?, kfunc_signature(btf, id, kfunc.flags)?))
            }
            _ => None,
        }
    });
    called.collect()
}

/// See [`Proof::has_own_tail_call_maps`]. The verifier lets any helper take a map of a kind that
/// the registry lacks.
fn has_own_tail_call_maps(program: &Program, registry: &Registry) -> bool {
    const NUMBER: u32 = HelperId::TailCall.number() as u32;
    let used = program.used_maps();
    let used = used.iter().filter_map(|id| program.map(*id));
    let held = used.clone().flat_map(|map| map.contents.entries());
    let held = held.filter_map(|(_, entry)| match entry {
        MapEntry::Map(held) => program.map(*held),
        MapEntry::Program(_) => None,
    });
    let used: Vec<_> = used.chain(held).map(|map| map.kind()).collect();
    let is_used = |kind| used.contains(&Some(kind));
    MapKind::ALL.iter().all(|&kind| match registry.map(kind) {
        Some(traits) if kind == MapKind::ProgArray => *traits.helpers == [NUMBER],
        Some(traits) => !traits.allows_helper(NUMBER),
        None => !is_used(kind),
    })
}

/// The calls and addresses of kernel functions in a program, by slot.
fn functions(program: &Program, kernel: &Kernel) -> BTreeMap<usize, KernelFunction> {
    let insns = program.decode();
    let named = insns.iter().enumerate();
    let named =
        named.filter_map(|(slot, insn)| Some((slot, KernelFunction::from_insn(kernel, insn)?)));
    named.collect()
}
