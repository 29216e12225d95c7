//! Programs with the proof that they are safe.

use std::collections::BTreeMap;
use std::sync::Arc;

use program::Program;
use spec::Kernel;
use spec::host::Prototype;
use spec::kfuncs::KernelFunction;
use spec::registry::Registry;

use crate::{
    KernelCode, LiveCode, Options, ProgramFacts, Spills, Verdict, Verification, rewrite, verify,
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
        rewrite::live_code(&self.program.decode(), &self.facts, spills)
    }

    /// The program as Linux compiles it: live code, in which divisions are guarded and
    /// `may_goto` counts its iterations. What depends on one kernel is left open.
    pub fn kernel_code(&self) -> KernelCode {
        rewrite::kernel_code(&self.program.decode(), &self.facts)
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

    /// Facts that hold in every run of it.
    pub fn facts(&self) -> &ProgramFacts {
        &self.facts
    }
}

/// The calls and addresses of kernel functions in a program, by slot.
fn functions(program: &Program, kernel: &Kernel) -> BTreeMap<usize, KernelFunction> {
    let insns = program.decode();
    let named = insns.iter().enumerate();
    let named =
        named.filter_map(|(slot, insn)| Some((slot, KernelFunction::of_insn(kernel, insn)?)));
    named.collect()
}
