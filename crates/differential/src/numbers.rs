//! The verifier's numeric domain against the running kernel.
//!
//! Random straight-line programs of arithmetic and comparisons are loaded with log level
//! 2, in which the kernel writes the whole abstract value of every register that an
//! instruction changes. Each such value is a case: the same operation on the operands
//! that the log gave before must yield the same value, bit for bit, in all nine
//! components. Comparisons give a case for each operand and outcome.
//!
//! [`compare_logs`] compares the whole logs of the same programs, which have paths, pruning
//! and precision tracking in them.

mod log;
mod program;
mod whole;

use std::fmt;

use isa::ebpf::{Insn, Operand, Reg, Width, decode};
use spec::behaviour::Behaviours;
use spec::programs::ProgramType;
use sys::bpf::{LogLevel, ProgLoad};
use verifier::domain::{Scalar, refine_same, refine_synced};

pub use log::parse_value;
pub use whole::{Logs, compare_logs};

/// Rules of the running kernel.
const RULES: Behaviours = Behaviours::LINUX_6_18;

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct NumberComparison {
    /// Programs loaded.
    pub programs: u64,
    /// Values of the kernel that ours were compared with.
    pub cases: u64,
    /// Differences, at most a hundred.
    pub differences: Vec<NumberDifference>,
}

/// A value that differs.
#[derive(Clone, Debug)]
pub struct NumberDifference {
    /// Seed of the program.
    pub seed: u64,
    /// Index of the instruction.
    pub insn: usize,
    /// The operation.
    pub operation: String,
    /// Operands.
    pub before: Vec<Scalar>,
    /// The kernel's value.
    pub kernel: Scalar,
    /// Ours.
    pub ours: Scalar,
}

impl fmt::Display for NumberDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} insn {}: {}",
            self.seed, self.insn, self.operation
        )?;
        for before in &self.before {
            writeln!(f, "  of     {before:x?}")?;
        }
        writeln!(f, "  kernel {:x?}", self.kernel)?;
        write!(f, "  ours   {:x?}", self.ours)
    }
}

/// Compares programs of these seeds; an error if the kernel cannot be asked.
pub fn compare(seeds: impl Iterator<Item = u64>) -> Result<NumberComparison, String> {
    let mut comparison = NumberComparison::default();
    for seed in seeds {
        let insns = program::generate(seed);
        let request = ProgLoad {
            log_level: LogLevel::LEVEL2,
            log_size: 1 << 22,
            ..ProgLoad::new(ProgramType::SocketFilter.number(), &insns)
        };
        let (_program, text) = request.load().map_err(|error| error.to_string())?;
        comparison.programs += 1;
        let mut replay = Replay {
            seed,
            insns: decode(&insns),
            regs: [None; 10],
            ids: [0; 10],
            jumps: vec![None; insns.len()],
            comparison: &mut comparison,
        };
        replay.run(&text);
    }
    Ok(comparison)
}

/// Operands of a comparison: values before it.
type Operands = (Scalar, Scalar);

/// Follows a log.
struct Replay<'c> {
    seed: u64,
    insns: Vec<Insn>,
    regs: [Option<Scalar>; 10],
    ids: [u32; 10],
    jumps: Vec<Option<Operands>>,
    comparison: &'c mut NumberComparison,
}

impl Replay<'_> {
    fn run(&mut self, text: &str) {
        // The instruction whose results were not seen yet.
        let mut pending = None;
        for line in text.lines() {
            match log::parse_line(line) {
                log::Line::Branch { from, state } => {
                    pending = None;
                    self.take(&state);
                    self.check_taken(from);
                }
                log::Line::Insn { index, state } => {
                    pending = Some(index);
                    if let Some(state) = state {
                        self.check_result(index, &state);
                        pending = None;
                    } else {
                        self.note_operands(index);
                    }
                }
                log::Line::State(state) => match pending.take() {
                    Some(index) => self.check_result(index, &state),
                    None => self.take(&state),
                },
                log::Line::Other => {}
            }
        }
    }

    fn take(&mut self, state: &log::State) {
        for entry in state {
            self.regs[entry.reg] = entry.value;
            self.ids[entry.reg] = entry.id;
        }
    }

    fn operand(&self, operand: Operand) -> Option<Scalar> {
        match operand {
            Operand::Imm(imm) => Some(Scalar::constant(i64::from(imm) as u64)),
            Operand::Reg(reg) => self.regs.get(reg.index()).copied().flatten(),
        }
    }

    /// Keeps the operands of a comparison for the branch that is explored later. Linked
    /// operands are refined a second time by their link, so they are no cases.
    fn note_operands(&mut self, index: usize) {
        let Some(Insn::Jump { dst, src, .. }) = self.insns.get(index).copied() else {
            return;
        };
        let is_linked = match src {
            Operand::Reg(src) => {
                src != dst
                    && self.ids[dst.index()] != 0
                    && self.ids[dst.index()] == self.ids[src.index()]
            }
            Operand::Imm(_) => false,
        };
        let operands = self.regs[dst.index()].zip(self.operand(src));
        self.jumps[index] = operands.filter(|_| !is_linked);
    }

    fn check_result(&mut self, index: usize, state: &log::State) {
        self.note_operands(index);
        let after = |reg: Reg| {
            let entry = state.iter().find(|entry| entry.reg == reg.index());
            entry.and_then(|entry| entry.value)
        };
        match self.insns[index] {
            Insn::Jump { dst, .. } => {
                // A decided comparison changes nothing, which is as its refinement to
                // the outcome that was not taken would not be.
                let before = self.regs[dst.index()];
                if self.jumps[index].is_some() && after(dst) != before {
                    self.check_comparison(index, false, &after);
                }
                self.forget_linked(state);
            }
            insn => {
                if let Some((dst, before, ours)) = self.result(insn)
                    && let Some(kernel) = after(dst)
                {
                    self.compare(index, before, kernel, ours);
                }
            }
        }
        self.take(state);
    }

    /// Registers linked with the compared ones were refined too, which the log does not
    /// show. A register that became a constant shows no identity.
    fn forget_linked(&mut self, state: &log::State) {
        let ids = self.ids;
        for entry in state {
            for reg in (0..self.regs.len()).filter(|reg| *reg != entry.reg) {
                let id = ids[reg];
                if id != 0 && (id == entry.id || id == ids[entry.reg]) {
                    self.regs[reg] = None;
                }
            }
        }
    }

    fn check_taken(&mut self, from: usize) {
        let regs = self.regs;
        self.check_comparison(from, true, &|reg: Reg| regs[reg.index()]);
        if let Some(jump) = self.jumps.get_mut(from) {
            *jump = None;
        }
    }

    /// Compares the operands of a comparison after one of its outcomes.
    fn check_comparison(
        &mut self,
        index: usize,
        outcome: bool,
        after: &dyn Fn(Reg) -> Option<Scalar>,
    ) {
        let Some((a, b)) = self.jumps.get(index).copied().flatten() else {
            return;
        };
        let Some(Insn::Jump {
            cond,
            width,
            dst,
            src,
            ..
        }) = self.insns.get(index).copied()
        else {
            return;
        };
        let (mut x, mut y) = (a, b);
        if src == Operand::Reg(dst) {
            refine_same(cond, outcome, width, &mut x, RULES);
            y = x;
        } else {
            refine_synced(cond, outcome, width, (&mut x, &mut y), RULES);
        }
        for value in [&mut x, &mut y] {
            if value.violation().is_some() {
                value.unbound();
            }
        }
        let before = vec![a, b];
        if let Some(kernel) = after(dst) {
            self.compare(index, before.clone(), kernel, x);
        }
        if let Operand::Reg(src) = src
            && src != dst
            && let Some(kernel) = after(src)
        {
            self.compare(index, before, kernel, y);
        }
    }

    /// Destination, operands and our result of an arithmetic instruction.
    fn result(&self, insn: Insn) -> Option<(Reg, Vec<Scalar>, Scalar)> {
        use isa::ebpf::AluOp;
        let value = |reg: Reg| self.regs.get(reg.index()).copied().flatten();
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src,
            } => {
                let mut result = match (src, width) {
                    (Operand::Imm(imm), Width::W32) => Scalar::constant((imm as u32).into()),
                    _ => self.operand(src)?,
                };
                let before = vec![result];
                if width == Width::W32 {
                    result.zero_extend32();
                    result.sync(RULES);
                }
                Some((dst, before, result))
            }
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let (a, b) = (value(dst)?, self.operand(src)?);
                let forks = matches!(op, AluOp::And | AluOp::Or) && b.is_const();
                let is_mask = a.smin == -1 && a.smax == 0 || a.s32_min == -1 && a.s32_max == 0;
                if forks && is_mask {
                    return None;
                }
                let result = a.alu(op, width, &b, RULES).unwrap_or(Scalar::UNKNOWN);
                Some((dst, vec![a, b], checked(result)))
            }
            Insn::Neg { width, dst } => {
                let a = value(dst)?;
                Some((dst, vec![a], checked(a.neg(width, RULES))))
            }
            Insn::Endian { order, size, dst } => {
                let a = value(dst)?;
                Some((dst, vec![a], checked(a.byte_order(order, size, RULES))))
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                let a = value(src)?;
                let mut result = a;
                match width {
                    Width::W64 => result.sign_extend64(from.bytes()),
                    Width::W32 => {
                        result.sign_extend32(from.bytes());
                        result.zero_extend32();
                        result.sync(RULES);
                    }
                }
                Some((dst, vec![a], checked(result)))
            }
            _ => None,
        }
    }

    fn compare(&mut self, index: usize, before: Vec<Scalar>, kernel: Scalar, ours: Scalar) {
        self.comparison.cases += 1;
        // The log shows a constant tnum as a number, whatever the ranges are.
        let is_same = kernel == ours || kernel.is_const() && kernel.var_off == ours.var_off;
        if !is_same && self.comparison.differences.len() < 100 {
            self.comparison.differences.push(NumberDifference {
                seed: self.seed,
                insn: index,
                operation: self.insns[index].to_string(),
                before,
                kernel,
                ours,
            });
        }
    }
}

/// The ranges of a contradictory value are forgotten.
fn checked(mut value: Scalar) -> Scalar {
    if value.violation().is_some() {
        value.unbound();
    }
    value
}
