//! Satisfiability of conditions, with example calls.
//!
//! A condition on input bits only is satisfiable if its diagram is not `FALSE`; a path to
//! true is an example. Conditions on named expressions are decided by substitution: each
//! named bit is replaced by its definition, within a budget. If that is exceeded, calls
//! near a candidate are tried, and the result may be unknown.

use std::collections::HashMap;

use classic::SeccompData;
use isa::classic::{AluOp, Cond};

use super::bits::{self, Bits};
use super::diagram::{Diagram, Level, OverBudget, Ref};
use super::explore::Space;
use super::value::{Expr, ExprId, input_bit};
use crate::word::Word;

/// Satisfiability of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Unsatisfiable.
    Never,
    /// Satisfied by this call.
    Example(SeccompData),
    /// Unknown: the budget was exceeded.
    Unknown,
}

/// Steps for one condition.
const STEPS: u64 = 150_000;

/// Largest nesting of evaluated expressions, so that recursion fits the stack of any
/// thread.
const MAX_DEPTH: u32 = 1_000;

/// Largest number of calls that are tried for one condition.
const TRIALS: u64 = 1_000;

impl Space {
    /// Decides the satisfiability of a condition, with zeros preferred in the example. The
    /// result is [`Verdict::Unknown`] if the budget is exceeded.
    pub(crate) fn example(&mut self, condition: Ref) -> Verdict {
        if let Some(&known) = self.verdicts.get(&condition) {
            return known;
        }
        let granted = self.diagram.budget().min(STEPS);
        let kept = self.diagram.budget() - granted;
        self.diagram.set_budget(granted);
        let mark = self.diagram.mark();
        let verdict = self.decide(condition).unwrap_or(Verdict::Unknown);
        self.diagram.release(mark, true);
        self.diagram.set_budget(self.diagram.budget() + kept);
        self.verdicts.insert(condition, verdict);
        verdict
    }

    fn decide(&mut self, condition: Ref) -> Result<Verdict, OverBudget> {
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
        if !is_named || self.evaluate(condition, &data)? {
            return Ok(Verdict::Example(data));
        }
        // Half of the steps for a proof, the rest for trials.
        let half = self.diagram.budget() / 2;
        match self.without_names(condition, half) {
            Ok(Ref::FALSE) => Ok(Verdict::Never),
            Ok(condition) => self.decide(condition),
            Err(OverBudget) => self.try_calls(condition, data),
        }
    }

    /// The condition with every named bit replaced by its definition.
    fn without_names(&mut self, condition: Ref, steps: u64) -> Result<Ref, OverBudget> {
        let values = &self.values;
        self.diagram.within(steps, |diagram| {
            let mut condition = condition;
            // The newest name first: its operands may contain older ones.
            while let Some(&level) = diagram.support(condition)?.last() {
                let Some((expr, levels)) = values.named_at(level) else {
                    break;
                };
                let bits = definition(values, diagram, expr)?;
                let place = usize::from(levels.end - 1 - level);
                let absent = diagram.restrict(condition, level..level + 1, 0)?;
                let present = diagram.restrict(condition, level..level + 1, 1)?;
                condition = diagram.choose(bits[place], present, absent)?;
            }
            Ok(condition)
        })
    }

    /// Tries calls near a candidate: with low halves of its arguments, their neighbours,
    /// small numbers and random numbers.
    fn try_calls(&mut self, condition: Ref, start: SeccompData) -> Result<Verdict, OverBudget> {
        let pinned: Vec<Level> = self.diagram.support(condition)?;
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
            // Bits in the support of the condition are kept half of the time.
            if trial % 2 == 0 {
                for (word, bit) in pinned.iter().filter_map(|&level| input_bit(level)) {
                    let kept = word.of(&start) & 1 << bit;
                    let value = word.of(&data) & !(1 << bit) | kept;
                    word.set(&mut data, value);
                }
            }
            if self.evaluate(condition, &data)? {
                return Ok(Verdict::Example(data));
            }
        }
        Ok(Verdict::Unknown)
    }

    /// Evaluates a condition, including named expressions, for a call.
    pub(crate) fn evaluate(
        &mut self,
        condition: Ref,
        data: &SeccompData,
    ) -> Result<bool, OverBudget> {
        let mut evaluation = Evaluation {
            space: self,
            data,
            known: HashMap::new(),
            steps: self.diagram.budget(),
            depth: 0,
        };
        let result = evaluation.holds(condition);
        let steps = evaluation.steps;
        self.diagram.set_budget(steps);
        result
    }
}

/// The values of all expressions for one call; each is computed once.
struct Evaluation<'a> {
    space: &'a Space,
    data: &'a SeccompData,
    known: HashMap<ExprId, u32>,
    /// Steps left: nodes visited and expressions computed.
    steps: u64,
    /// Expressions being computed, each an operand of the one before.
    depth: u32,
}

impl Evaluation<'_> {
    fn holds(&mut self, condition: Ref) -> Result<bool, OverBudget> {
        let mut at = condition;
        while at.value().is_none() {
            self.steps = self.steps.checked_sub(1).ok_or(OverBudget)?;
            let level = self.space.diagram.level(at);
            let (low, high) = self.space.diagram.branches(at);
            let set = match (input_bit(level), self.space.values.named_at(level)) {
                (Some((word, bit)), _) => word.of(self.data) >> bit & 1 != 0,
                (None, Some((expr, levels))) => {
                    self.number(expr)? >> (levels.end - 1 - level) & 1 != 0
                }
                (None, None) => false,
            };
            at = if set { high } else { low };
        }
        Ok(at == Ref::TRUE)
    }

    /// The value of an expression; truth values are 0 or 1.
    fn number(&mut self, expr: ExprId) -> Result<u32, OverBudget> {
        if let Some(&number) = self.known.get(&expr) {
            return Ok(number);
        }
        self.steps = self.steps.checked_sub(1).ok_or(OverBudget)?;
        if self.depth == MAX_DEPTH {
            return Err(OverBudget);
        }
        self.depth += 1;
        let number = match self.space.values.expr(expr) {
            Expr::Constant(number) => number,
            Expr::Word(word) => word.of(self.data),
            Expr::Negated(a) => self.number(a)?.wrapping_neg(),
            Expr::AtMost(a, most) => self.number(a)?.min(most),
            Expr::Choice(condition, a, b) => {
                let taken = if self.holds(condition)? { a } else { b };
                self.number(taken)?
            }
            Expr::Compare(cond, a, b) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                u32::from(match cond {
                    Cond::Eq => a == b,
                    Cond::Gt => a > b,
                    Cond::Ge => a >= b,
                    Cond::Set => a & b != 0,
                })
            }
            Expr::Alu(op, a, b) => alu(op, self.number(a)?, self.number(b)?),
            Expr::And(f, g) => u32::from(self.holds(f)? && self.holds(g)?),
            Expr::Or(f, g) => u32::from(self.holds(f)? || self.holds(g)?),
            Expr::AndNot(f, g) => u32::from(self.holds(f)? && !self.holds(g)?),
        };
        self.depth -= 1;
        self.known.insert(expr, number);
        Ok(number)
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

/// The definition of a named expression, over its operands' bits.
fn definition(
    values: &super::value::Values,
    diagram: &mut Diagram,
    expr: ExprId,
) -> Result<Bits<Ref>, OverBudget> {
    let operand = |id| *values.bits_of(id);
    let truth = |truth| {
        let mut bits = [Ref::FALSE; 32];
        bits[0] = truth;
        bits
    };
    Ok(match values.expr(expr) {
        Expr::Alu(op, a, b) => bits::alu(diagram, op, &operand(a), &operand(b))?,
        Expr::Negated(a) => bits::negate(diagram, &operand(a))?,
        Expr::Choice(condition, a, b) => {
            bits::choose(diagram, condition, &operand(a), &operand(b))?
        }
        Expr::Compare(cond, a, b) => truth(bits::compare(diagram, cond, &operand(a), &operand(b))?),
        Expr::AtMost(a, most) => {
            let most = bits::constant(diagram, most);
            let beyond = bits::compare(diagram, Cond::Gt, &operand(a), &most)?;
            bits::choose(diagram, beyond, &most, &operand(a))?
        }
        Expr::And(f, g) => truth(diagram.and(f, g)?),
        Expr::Or(f, g) => truth(diagram.or(f, g)?),
        Expr::AndNot(f, g) => truth(diagram.minus(f, g)?),
        Expr::Constant(_) | Expr::Word(_) => operand(expr),
    })
}
