//! Registers that hold one number wherever they are used.
//!
//! A compiler keeps the masks of a loop in registers that it loads before the
//! loop. A register that was loaded with a constant holds it in the slots that
//! are only reached by way of the load: those from there on up to the next write,
//! or to the first slot that something from outside of them jumps to.
//!
//! Cost: a few passes over a function for each register that is asked for, and
//! no more than [`MOST_SEARCHES`] times.

use isa::ebpf::{AluOp, Imm64, Insn, Operand, Reg, Width};
use lower::Function;

use crate::analysis::Fact;

/// Loads that are looked for in a function.
const MOST_SEARCHES: u8 = 24;
/// Passes after which a load is given up.
const MOST_PASSES: usize = 4;

/// Such a register's number, and the slots where it holds it.
#[derive(Clone, Copy)]
struct Constant {
    value: u64,
    from: usize,
    to: usize,
}

/// The registers of one function that were asked for.
pub(super) struct Constants {
    function: Function,
    known: [Option<Constant>; Reg::COUNT],
    /// How many more loads may be looked for.
    searches: u8,
}

/// The constant that an instruction loads into its destination.
pub(super) fn loaded(insn: Insn) -> Option<u64> {
    match insn {
        Insn::LoadImm64 {
            imm: Imm64::Value(value),
            ..
        } => Some(value.get()),
        Insn::Alu {
            op: AluOp::Mov,
            width,
            src: Operand::Imm(imm),
            ..
        } => Some(number(imm, width)),
        _ => None,
    }
}

/// What an immediate operand stands for.
pub(super) fn number(imm: i32, width: Width) -> u64 {
    match width {
        Width::W32 => u64::from(imm as u32),
        Width::W64 => imm as i64 as u64,
    }
}

impl Constants {
    pub(super) fn of(function: Function) -> Constants {
        Constants {
            function,
            known: [None; Reg::COUNT],
            searches: MOST_SEARCHES,
        }
    }

    /// Whether the slot belongs to the function.
    pub(super) fn covers(&self, slot: usize) -> bool {
        (self.function.start..self.function.end).contains(&slot)
    }

    /// The number that the register surely holds before a slot of the function.
    pub(super) fn get(
        &mut self,
        insns: &[Insn],
        facts: &[Fact],
        slot: usize,
        reg: Reg,
    ) -> Option<u64> {
        let holds = |constant: &Constant| (constant.from..constant.to).contains(&slot);
        let known = &mut self.known[reg.index()];
        if !known.as_ref().is_some_and(holds) {
            self.searches = self.searches.checked_sub(1)?;
            *known = find(self.function, insns, facts, slot, reg);
        }
        known
            .as_ref()
            .filter(|known| holds(known))
            .map(|known| known.value)
    }
}

/// The load that is the last write of the register before a slot.
fn find(
    function: Function,
    insns: &[Insn],
    facts: &[Fact],
    slot: usize,
    reg: Reg,
) -> Option<Constant> {
    let writes = |&at: &usize| facts[at].transfer.writes(reg);
    let load = (function.start..slot).rev().find(writes)?;
    let value = loaded(insns[load]).filter(|_| !facts[load].is_rewritten())?;
    let mut to = (slot..function.end)
        .find(writes)
        .map_or(function.end, |write| write + 1);
    for _ in 0..MOST_PASSES {
        // The first slot behind the load that is reached from outside.
        let entered = (function.start..function.end)
            .filter(|at| !(load..to).contains(at))
            .filter_map(|at| facts[at].jump())
            .filter(|target| (load + 1..to).contains(target))
            .min();
        match entered {
            Some(target) => to = target,
            None => {
                let from = load + 1;
                return Some(Constant { value, from, to });
            }
        }
    }
    None
}
