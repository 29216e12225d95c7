//! Analysis of a program before code generation: selections, comparison trees, rewrites, the
//! registers and stack that each function uses.
//!
//! Control flow and liveness come with the program ([`lower::flow::DefUse`]), for both halves
//! of every register: most 64-bit operations whose upper half is not live are done on 32 bits,
//! and an instruction whose result is dead is left out. One pass (`scan.rs`) records what each
//! function uses (`usage.rs`). Then the rewrites are found (`idiom.rs`) and their effect on
//! liveness is propagated.
//!
//! Cost: linear.

mod idiom;
mod lists;
mod scan;
mod slot_info;
mod usage;
mod window;

pub(crate) use idiom::Rewrite;
pub(crate) use lower::flow::Halves;
pub(crate) use slot_info::SlotInfo;
pub(crate) use usage::Usage;
pub(crate) use window::Window;

use isa::ebpf::AluOp;
use lower::LoweredCode;
use lower::flow::{DefUse, Kept};
use lower::trees::Trees;

use lists::SlotLists;
use scan::Scan;

use crate::{Applied, Optimization, Optimizations};

/// The analysis of one program.
pub(crate) struct Analysis {
    infos: Vec<SlotInfo>,
    /// Usage of each function.
    usage: Vec<Usage>,
    /// Comparison trees that become jump tables or binary searches.
    pub(crate) trees: Trees,
    rewrites: Vec<Rewrite>,
    pub(crate) applied: Applied,
}

impl Analysis {
    pub(crate) fn of(program: &LoweredCode, optimizations: Optimizations) -> Analysis {
        let uses = |optimization| optimizations.contains(optimization);
        let mut applied = Applied::NONE;
        let (insns, functions) = (program.insns(), program.functions());
        let all_kept;
        let def_use = match uses(Optimization::DeadCode) {
            true => program.def_use(),
            false => {
                all_kept = DefUse::keeping(insns, functions, program.evidence(), Kept::All);
                &all_kept
            }
        };
        let mut infos: Vec<SlotInfo> = def_use.nodes().iter().copied().map(SlotInfo::new).collect();
        let mut lists = SlotLists::default();
        let mut scan = Scan::new(insns, def_use, &mut lists);
        let usage: Vec<Usage> = functions
            .iter()
            .map(|&function| scan.visit_function(function, &mut infos))
            .collect();
        scan.decide_selections(&mut infos, uses(Optimization::ConditionalMove));
        let trees = match uses(Optimization::ComparisonTree) {
            true => scan.find_trees(program, &mut infos),
            false => Trees::default(),
        };
        let Scan { lists, ops, .. } = scan;
        let candidates = || lists.candidates.iter().map(|&slot| slot as usize);
        let mut rewrites = Vec::new();
        if uses(Optimization::Rotation)
            && ops.has(AluOp::Lsh)
            && ops.has(AluOp::Rsh)
            && idiom::find_rotations(insns, candidates(), def_use, &mut infos, &mut rewrites)
        {
            def_use.propagate(functions, &mut infos);
        }
        for rewrite in &rewrites {
            match rewrite {
                Rewrite::Skip => {}
                Rewrite::Rotate { .. } => applied.add(Optimization::Rotation),
            }
        }
        Analysis {
            infos,
            usage,
            trees,
            rewrites,
            applied,
        }
    }

    /// The result for every slot.
    pub(crate) fn infos(&self) -> &[SlotInfo] {
        &self.infos
    }

    /// Usage of a function.
    pub(crate) fn usage(&self, function: usize) -> &Usage {
        &self.usage[function]
    }

    /// The rewrite of a slot.
    pub(crate) fn rewrite(&self, slot: usize) -> Option<Rewrite> {
        self.infos()[slot].rewritten(&self.rewrites)
    }
}
