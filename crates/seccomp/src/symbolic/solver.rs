//! Whether a condition can hold at all, and for which system call.
//!
//! A condition on input bits alone answers by itself: any path to truth is an
//! example. One on named expressions holds if some input gives the expressions
//! the values that it asks for. That is decided by taking the names away, one
//! after the other: each named bit is replaced by what it stands for, as far as
//! that can be built; where it cannot, calls that the condition suggests are
//! tried, and the answer may remain open.

use std::collections::HashMap;

use classic::SeccompData;
use isa::classic::{AluOp, Cond};

use super::bits::{self, Bits};
use super::diagram::{Diagram, Level, Ref, TooComplex};
use super::explore::Space;
use super::value::{Expr, ExprId, input_bit};
use crate::word::Word;

/// Whether a condition can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It never does.
    Never,
    /// It does for this call.
    Example(SeccompData),
    /// Not decided within the effort allowed.
    Unknown,
}

/// Steps for building what a name stands for.
const STEPS: u64 = 300_000;

/// Calls that are tried.
const TRIALS: u64 = 4_000;

impl Space {
    /// Whether a condition can hold, with zeros preferred in the example.
    pub(crate) fn example(&mut self, condition: Ref) -> Result<Verdict, TooComplex> {
        let Some(path) = self.diagram.example(condition) else {
            return Ok(Verdict::Never);
        };
        let mut data = SeccompData::default();
        let mut is_named = false;
        for (level, set) in path {
            match input_bit(level) {
                Some((word, bit)) if set => {
                    let value = word.of(&data) | 1 << bit;
                    word.set(&mut data, value);
                }
                Some(_) => {}
                None => is_named = true,
            }
        }
        if !is_named || self.evaluate(condition, &data) {
            return Ok(Verdict::Example(data));
        }
        match self.without_names(condition) {
            Ok(Ref::FALSE) => Ok(Verdict::Never),
            Ok(condition) => self.example(condition),
            Err(TooComplex) => Ok(self.try_calls(condition, data)),
        }
    }

    /// The condition with every named bit replaced by what it stands for.
    fn without_names(&mut self, condition: Ref) -> Result<Ref, TooComplex> {
        let mut condition = condition;
        // The newest name first: what it stands for may speak of older ones.
        while let Some(&level) = self.diagram.support(condition).last() {
            let Some((expr, levels)) = self.values.named_at(level) else {
                break;
            };
            let values = &self.values;
            condition = self.diagram.within(STEPS, |diagram| {
                let bits = meaning(values, diagram, expr)?;
                let place = usize::from(levels.end - 1 - level);
                let absent = diagram.restrict(condition, level..level + 1, 0)?;
                let present = diagram.restrict(condition, level..level + 1, 1)?;
                diagram.choose(bits[place], present, absent)
            })?;
        }
        Ok(condition)
    }

    /// Tries calls near one that a condition suggests: the low halves of its
    /// arguments, their neighbours, small numbers, and numbers at random.
    fn try_calls(&mut self, condition: Ref, start: SeccompData) -> Verdict {
        let pinned: Vec<Level> = self.diagram.support(condition);
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let arguments: Vec<Word> = (0..6).map(Word::arg_low).collect();
        for trial in 0..TRIALS {
            let mut data = start;
            for &word in &arguments {
                let noise = random();
                let value = match noise >> 61 {
                    0 | 1 => word.of(&start),
                    2 => (noise & 15) as u32,
                    3 => word.of(&start) ^ 1 << (noise & 31),
                    _ => (noise >> (trial % 32)) as u32,
                };
                word.set(&mut data, value);
            }
            // Bits that the condition itself asks for are kept as suggested,
            // half of the time.
            if trial % 2 == 0 {
                for (word, bit) in pinned.iter().filter_map(|&level| input_bit(level)) {
                    let kept = word.of(&start) & 1 << bit;
                    let value = word.of(&data) & !(1 << bit) | kept;
                    word.set(&mut data, value);
                }
            }
            if self.evaluate(condition, &data) {
                return Verdict::Example(data);
            }
        }
        Verdict::Unknown
    }

    /// Whether a condition holds for a call, names and all.
    pub(crate) fn evaluate(&self, condition: Ref, data: &SeccompData) -> bool {
        Evaluation {
            space: self,
            data,
            known: HashMap::new(),
        }
        .holds(condition)
    }
}

/// One call's values; every expression is computed once.
struct Evaluation<'a> {
    space: &'a Space,
    data: &'a SeccompData,
    known: HashMap<ExprId, u32>,
}

impl Evaluation<'_> {
    fn holds(&mut self, condition: Ref) -> bool {
        let mut at = condition;
        while at.value().is_none() {
            let level = self.space.diagram.level(at);
            let (low, high) = self.space.diagram.branches(at);
            let set = match (input_bit(level), self.space.values.named_at(level)) {
                (Some((word, bit)), _) => word.of(self.data) >> bit & 1 != 0,
                (None, Some((expr, levels))) => {
                    self.number(expr) >> (levels.end - 1 - level) & 1 != 0
                }
                (None, None) => false,
            };
            at = if set { high } else { low };
        }
        at == Ref::TRUE
    }

    /// The number that an expression is; a truth is 0 or 1.
    fn number(&mut self, expr: ExprId) -> u32 {
        if let Some(&number) = self.known.get(&expr) {
            return number;
        }
        let number = match self.space.values.expr(expr) {
            Expr::Constant(number) => number,
            Expr::Word(word) => word.of(self.data),
            Expr::Negated(a) => self.number(a).wrapping_neg(),
            Expr::AtMost(a, most) => self.number(a).min(most),
            Expr::Choice(condition, a, b) => {
                let taken = if self.holds(condition) { a } else { b };
                self.number(taken)
            }
            Expr::Compare(cond, a, b) => {
                let (a, b) = (self.number(a), self.number(b));
                u32::from(match cond {
                    Cond::Eq => a == b,
                    Cond::Gt => a > b,
                    Cond::Ge => a >= b,
                    Cond::Set => a & b != 0,
                })
            }
            Expr::Alu(op, a, b) => alu(op, self.number(a), self.number(b)),
        };
        self.known.insert(expr, number);
        number
    }
}

fn alu(op: AluOp, a: u32, b: u32) -> u32 {
    match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        // Filters end at a divisor of zero.
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Mod => a.checked_rem(b).unwrap_or(0),
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Lsh => a << (b & 31),
        AluOp::Rsh => a >> (b & 31),
    }
}

/// The bits that a named expression stands for, over its operands' bits.
fn meaning(
    values: &super::value::Values,
    diagram: &mut Diagram,
    expr: ExprId,
) -> Result<Bits<Ref>, TooComplex> {
    let operand = |id| *values.bits_of(id);
    Ok(match values.expr(expr) {
        Expr::Alu(op, a, b) => bits::alu(diagram, op, &operand(a), &operand(b))?,
        Expr::Negated(a) => bits::negate(diagram, &operand(a))?,
        Expr::Choice(condition, a, b) => {
            bits::choose(diagram, condition, &operand(a), &operand(b))?
        }
        Expr::Compare(cond, a, b) => {
            let mut truth = bits::constant(diagram, 0);
            truth[0] = bits::compare(diagram, cond, &operand(a), &operand(b))?;
            truth
        }
        Expr::AtMost(a, most) => {
            let most = bits::constant(diagram, most);
            let beyond = bits::compare(diagram, Cond::Gt, &operand(a), &most)?;
            bits::choose(diagram, beyond, &most, &operand(a))?
        }
        Expr::Constant(_) | Expr::Word(_) => operand(expr),
    })
}
