//! Symbolic values: computed words, as expressions over the loaded words and as 32 decision
//! diagrams.
//!
//! If the diagrams of an operation are too large (as for a product of two arguments), the
//! result is *named*: it gets 32 fresh variables, which conditions refer to (a cut point).
//! A path condition that is too large is named in the same way, with one fresh variable.
//! Conditions remain exact, but dependences between named expressions are not in the
//! diagrams; [`super::solver`] decides satisfiability.

use std::collections::HashMap;
use std::ops::Range;

use isa::classic::{AluOp, Cond};

use super::bits::{self, Bits};
use super::diagram::{Diagram, Level, OverBudget, Ref};
use super::set::Field;
use crate::word::Word;

/// Number of nodes up to which a comparison is readable.
const SMALL_COMPARISON: usize = 100;
/// Number of nodes beyond which a comparison is not readable.
const LARGE_COMPARISON: usize = 2000;

/// Largest number of named expressions, by the range of [`Level`].
const MAX_NAMED: usize = 1500;

/// Index of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExprId(u32);

/// Index of a computed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueId(u32);

/// Definition of a word or truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Expr {
    Constant(u32),
    Word(Word),
    Alu(AluOp, ExprId, ExprId),
    Negated(ExprId),
    /// A truth.
    Compare(Cond, ExprId, ExprId),
    /// `if condition then first else second`, at a join point.
    Choice(Ref, ExprId, ExprId),
    /// The lesser of a word and a number.
    AtMost(ExprId, u32),
    /// A truth: both conditions hold.
    And(Ref, Ref),
    /// A truth: one of the conditions holds.
    Or(Ref, Ref),
    /// A truth: the first condition holds and the second does not.
    AndNot(Ref, Ref),
}

impl Expr {
    /// True if its value is a truth value, not a word.
    pub(crate) fn is_truth(self) -> bool {
        match self {
            Expr::Compare(..) | Expr::And(..) | Expr::Or(..) | Expr::AndNot(..) => true,
            Expr::Constant(_)
            | Expr::Word(_)
            | Expr::Alu(..)
            | Expr::Negated(_)
            | Expr::Choice(..)
            | Expr::AtMost(..) => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Value {
    expr: ExprId,
    bits: Bits<Ref>,
}

/// True if a comparison has a short text. Others are named, so that conditions show the
/// expression.
fn is_readable(diagram: &mut Diagram, truth: Ref) -> Result<bool, OverBudget> {
    if !diagram.has_more_nodes(truth, SMALL_COMPARISON) {
        return Ok(true);
    }
    if diagram.has_more_nodes(truth, LARGE_COMPARISON) {
        return Ok(false);
    }
    let support = diagram.support(truth)?;
    let levels = match (support.first(), support.last()) {
        (Some(&first), Some(&last)) if last < NAMED => {
            let levels = field_of_input(first);
            match levels.contains(&last) {
                true => levels,
                false => return Ok(true),
            }
        }
        _ => return Ok(true),
    };
    Field { levels, name: "" }.is_readable(diagram, truth)
}

/// The level of a bit of an input word: architecture, number, instruction
/// pointer, arguments; each with the most significant bit first.
pub(crate) fn level(word: Word, bit: usize) -> Level {
    let place = match word.index() {
        0 => 1,
        1 => 0,
        // High halves precede low ones.
        at => at ^ 1,
    };
    (place * 32 + 31 - bit) as Level
}

/// First level of named expressions.
const NAMED: Level = (Word::COUNT * 32) as Level;

/// The input word and bit of a level, if it is an input.
pub(crate) fn input_bit(level: Level) -> Option<(Word, usize)> {
    if level >= NAMED {
        return None;
    }
    let place = usize::from(level / 32);
    let at = match place {
        0 => 1,
        1 => 0,
        at => at ^ 1,
    };
    let word = Word::at_offset(at as u32 * 4)?;
    Some((word, 31 - usize::from(level % 32)))
}

/// The levels of architecture and number.
pub(crate) const ARCH: Range<Level> = 0..32;
pub(crate) const NR: Range<Level> = 32..64;

/// The levels of the high half of an argument.
pub(crate) fn high_half(arg: u8) -> Range<Level> {
    let last = level(Word::arg_high(arg), 0);
    last - 31..last + 1
}

/// All levels of the field that an input level belongs to: 32 for architecture
/// and number, 64 for the others.
pub(crate) fn field_of_input(level: Level) -> Range<Level> {
    if level < NR.end {
        let start = level / 32 * 32;
        start..start + 32
    } else {
        let start = level / 64 * 64;
        start..start + 64
    }
}

/// All expressions and computed words of one analysis.
pub(crate) struct Values {
    /// Steps of an operation beyond which its result is named.
    steps_per_operation: u64,
    exprs: Vec<Expr>,
    expr_ids: HashMap<Expr, ExprId>,
    values: Vec<Value>,
    value_ids: HashMap<Value, ValueId>,
    /// The word of each expression, other than truth values.
    values_of: HashMap<ExprId, ValueId>,
    named: Vec<ExprId>,
    named_places: HashMap<ExprId, usize>,
}

impl Values {
    /// An empty set of values; the result of an operation with more than
    /// `steps_per_operation` steps is named.
    pub(crate) fn new(steps_per_operation: u64) -> Values {
        Values {
            steps_per_operation,
            exprs: Vec::new(),
            expr_ids: HashMap::new(),
            values: Vec::new(),
            value_ids: HashMap::new(),
            values_of: HashMap::new(),
            named: Vec::new(),
            named_places: HashMap::new(),
        }
    }

    fn expr_id(&mut self, expr: Expr) -> ExprId {
        let next = ExprId(self.exprs.len() as u32);
        let id = *self.expr_ids.entry(expr).or_insert(next);
        if id == next {
            self.exprs.push(expr);
        }
        id
    }

    fn value_id(&mut self, value: Value) -> ValueId {
        let next = ValueId(self.values.len() as u32);
        let id = *self.value_ids.entry(value).or_insert(next);
        if id == next {
            self.values.push(value);
            self.values_of.insert(value.expr, id);
        }
        id
    }

    /// The definition of an expression.
    pub(crate) fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// The expression of a computed word.
    pub(crate) fn expr_of(&self, id: ValueId) -> ExprId {
        self.values[id.0 as usize].expr
    }

    /// The bits of an expression.
    pub(crate) fn bits_of(&self, expr: ExprId) -> &Bits<Ref> {
        self.bits(self.values_of[&expr])
    }

    /// The bits of a computed word.
    pub(crate) fn bits(&self, id: ValueId) -> &Bits<Ref> {
        &self.values[id.0 as usize].bits
    }

    /// The value of a constant word.
    pub(crate) fn as_constant(&self, id: ValueId) -> Option<u32> {
        let mut number = 0;
        for (at, bit) in self.bits(id).iter().enumerate() {
            number |= u32::from(bit.as_bool()?) << at;
        }
        Some(number)
    }

    pub(crate) fn constant(&mut self, diagram: &Diagram, number: u32) -> ValueId {
        let expr = self.expr_id(Expr::Constant(number));
        let bits = bits::constant(diagram, number);
        self.value_id(Value { expr, bits })
    }

    pub(crate) fn word(
        &mut self,
        diagram: &mut Diagram,
        word: Word,
    ) -> Result<ValueId, OverBudget> {
        let expr = self.expr_id(Expr::Word(word));
        let mut bits = [Ref::FALSE; 32];
        for (at, bit) in bits.iter_mut().enumerate() {
            *bit = diagram.bit(level(word, at))?;
        }
        Ok(self.value_id(Value { expr, bits }))
    }

    /// `a op b`; `b` is not zero when it divides.
    pub(crate) fn alu(
        &mut self,
        diagram: &mut Diagram,
        op: AluOp,
        a: ValueId,
        b: ValueId,
    ) -> Result<ValueId, OverBudget> {
        let expr = Expr::Alu(op, self.expr_of(a), self.expr_of(b));
        let (a, b) = (*self.bits(a), *self.bits(b));
        self.computed(diagram, expr, |diagram| bits::alu(diagram, op, &a, &b))
    }

    /// `-a`.
    pub(crate) fn negated(
        &mut self,
        diagram: &mut Diagram,
        a: ValueId,
    ) -> Result<ValueId, OverBudget> {
        let expr = Expr::Negated(self.expr_of(a));
        let a = *self.bits(a);
        self.computed(diagram, expr, |diagram| bits::negate(diagram, &a))
    }

    /// `if condition then a else b`.
    pub(crate) fn choice(
        &mut self,
        diagram: &mut Diagram,
        condition: Ref,
        a: ValueId,
        b: ValueId,
    ) -> Result<ValueId, OverBudget> {
        let expr = Expr::Choice(condition, self.expr_of(a), self.expr_of(b));
        let (a, b) = (*self.bits(a), *self.bits(b));
        self.computed(diagram, expr, |diagram| {
            bits::choose(diagram, condition, &a, &b)
        })
    }

    /// The lesser of a word and a number.
    pub(crate) fn at_most(
        &mut self,
        diagram: &mut Diagram,
        a: ValueId,
        most: u32,
    ) -> Result<ValueId, OverBudget> {
        let limit = self.constant(diagram, most);
        let beyond = self.compare(diagram, Cond::Gt, a, limit)?;
        let expr = Expr::AtMost(self.expr_of(a), most);
        let (a, limit) = (*self.bits(a), *self.bits(limit));
        self.computed(diagram, expr, |diagram| {
            bits::choose(diagram, beyond, &limit, &a)
        })
    }

    /// The condition `a cond b`.
    pub(crate) fn compare(
        &mut self,
        diagram: &mut Diagram,
        cond: Cond,
        a: ValueId,
        b: ValueId,
    ) -> Result<Ref, OverBudget> {
        let expr = Expr::Compare(cond, self.expr_of(a), self.expr_of(b));
        let (a, b) = (*self.bits(a), *self.bits(b));
        self.truth(diagram, expr, |diagram| {
            let truth = bits::compare(diagram, cond, &a, &b)?;
            match is_readable(diagram, truth)? {
                true => Ok(truth),
                false => Err(OverBudget),
            }
        })
    }

    /// Conjunction.
    pub(crate) fn and(&mut self, diagram: &mut Diagram, f: Ref, g: Ref) -> Result<Ref, OverBudget> {
        self.truth(diagram, Expr::And(f, g), |diagram| diagram.and(f, g))
    }

    /// Disjunction.
    pub(crate) fn or(&mut self, diagram: &mut Diagram, f: Ref, g: Ref) -> Result<Ref, OverBudget> {
        self.truth(diagram, Expr::Or(f, g), |diagram| diagram.or(f, g))
    }

    /// Difference: `f` and not `g`.
    pub(crate) fn minus(
        &mut self,
        diagram: &mut Diagram,
        f: Ref,
        g: Ref,
    ) -> Result<Ref, OverBudget> {
        self.truth(diagram, Expr::AndNot(f, g), |diagram| diagram.minus(f, g))
    }

    /// The condition of `compute`, or the named `expr` if that is too large.
    fn truth(
        &mut self,
        diagram: &mut Diagram,
        expr: Expr,
        compute: impl FnOnce(&mut Diagram) -> Result<Ref, OverBudget>,
    ) -> Result<Ref, OverBudget> {
        match diagram.within(self.steps_per_operation, compute) {
            Ok(truth) => Ok(truth),
            Err(OverBudget) => {
                let levels = self.name(expr)?;
                diagram.bit(levels.end - 1)
            }
        }
    }

    fn computed(
        &mut self,
        diagram: &mut Diagram,
        expr: Expr,
        compute: impl FnOnce(&mut Diagram) -> Result<Bits<Ref>, OverBudget>,
    ) -> Result<ValueId, OverBudget> {
        let bits = match diagram.within(self.steps_per_operation, compute) {
            Ok(bits) => bits,
            Err(OverBudget) => {
                let levels = self.name(expr)?;
                let mut bits = [Ref::FALSE; 32];
                for (bit, level) in bits.iter_mut().rev().zip(levels) {
                    *bit = diagram.bit(level)?;
                }
                bits
            }
        };
        let constant = bits.iter().all(|bit| bit.as_bool().is_some());
        let expr = if constant {
            let number = (0..32).fold(0, |sum, at| sum | u32::from(bits[at] == Ref::TRUE) << at);
            Expr::Constant(number)
        } else {
            expr
        };
        let expr = self.expr_id(expr);
        Ok(self.value_id(Value { expr, bits }))
    }

    fn name(&mut self, expr: Expr) -> Result<Range<Level>, OverBudget> {
        let expr = self.expr_id(expr);
        let next = self.named.len();
        let place = *self.named_places.entry(expr).or_insert(next);
        if place == next {
            if next >= MAX_NAMED {
                return Err(OverBudget);
            }
            self.named.push(expr);
        }
        Ok(levels_of_named(place))
    }

    /// The named expression that owns a level, with all its levels.
    pub(crate) fn named_at(&self, level: Level) -> Option<(ExprId, Range<Level>)> {
        let place = usize::from(level.checked_sub(NAMED)? / 32);
        let expr = self.named.get(place).copied()?;
        Some((expr, levels_of_named(place)))
    }
}

fn levels_of_named(place: usize) -> Range<Level> {
    let start = NAMED + 32 * place as Level;
    start..start + 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_input_bits_are_inverse() {
        let mut seen = [false; NAMED as usize];
        for offset in (0..64).step_by(4) {
            let word = Word::at_offset(offset).unwrap();
            for bit in 0..32 {
                let level = level(word, bit);
                assert_eq!(input_bit(level), Some((word, bit)));
                assert!(!std::mem::replace(&mut seen[usize::from(level)], true));
            }
        }
        assert!(level(Word::arg_high(0), 0) < level(Word::arg_low(0), 31));
    }

    #[test]
    fn a_product_of_two_arguments_is_named_once() -> Result<(), OverBudget> {
        let mut diagram = Diagram::new(1_000_000);
        let mut values = Values::new(10_000);
        let a = values.word(&mut diagram, Word::arg_low(0))?;
        let b = values.word(&mut diagram, Word::arg_low(1))?;
        let product = values.alu(&mut diagram, AluOp::Mul, a, b)?;
        let again = values.alu(&mut diagram, AluOp::Mul, a, b)?;
        assert_eq!(product, again);
        assert_eq!(values.named.len(), 1);
        Ok(())
    }
}
