//! Programs with the proof that they are safe.

use std::collections::BTreeMap;

use program::Program;
use spec::Kernel;
use spec::bits::BitOp;
use spec::registry::Registry;

use crate::{LiveCode, Options, ProgramFacts, Spills, Verdict, Verification, rewrite, verify};

/// A program that this verifier accepted, with the facts that it found. Nothing else makes
/// one, so engines run such programs without checks.
#[derive(Clone, Debug)]
pub struct Proof {
    program: Program,
    facts: ProgramFacts,
    /// Calls and addresses of bit operations, by slot.
    bit_ops: BTreeMap<usize, BitOp>,
}

impl Proof {
    /// Verifies a program; the verification without a proof if it is not accepted.
    pub fn of(
        program: &Program,
        kernel: &Kernel,
        registry: &Registry,
    ) -> Result<Proof, Box<Verification>> {
        let options = Options {
            collect_facts: true,
            ..Options::default()
        };
        let mut verification = verify(program, kernel, registry, &options);
        match (&verification.verdict, verification.facts.take()) {
            (Verdict::Accepted, Some(facts)) => Ok(Proof {
                program: program.clone(),
                facts,
                bit_ops: bit_ops(program, kernel),
            }),
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

    /// The bit operation that the instruction at a slot calls or loads the address of.
    pub fn bit_op(&self, slot: usize) -> Option<BitOp> {
        self.bit_ops.get(&slot).copied()
    }

    /// What holds in every run of it.
    pub fn facts(&self) -> &ProgramFacts {
        &self.facts
    }
}

/// The calls and addresses of bit operations in a program, by slot.
fn bit_ops(program: &Program, kernel: &Kernel) -> BTreeMap<usize, BitOp> {
    let insns = program.decode();
    let named = insns.iter().enumerate();
    let named = named.filter_map(|(slot, insn)| Some((slot, BitOp::of_insn(kernel, insn)?)));
    named.collect()
}
