//! Conditions on a system call's data, from decision diagrams back to text.
//!
//! The bits of one field (number, instruction pointer, a 64-bit argument) are adjacent in
//! the variable order, so a function splits field by field: the values of the first field
//! with the same cofactor form a set, and a condition is a disjunction of conjunctions of
//! such sets. Redundant sets and terms are then removed, each removal verified against the
//! function.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use isa::classic::{AluOp, Cond};

use super::diagram::{Level, OverBudget, Ref};
use super::explore::Space;
use super::set::{Binding, Field, Text, number};
use super::value::{Expr, ExprId, field_of_input};

/// Largest number of terms of a condition.
const MAX_TERMS: usize = 4096;
/// Number of terms up to which redundant terms are removed.
const MAX_TERMS_TO_PRUNE: usize = 64;

/// A condition in disjunctive normal form over conditions on single fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    terms: Vec<Vec<Text>>,
}

impl Condition {
    /// True if the condition holds for every call.
    pub fn is_always(&self) -> bool {
        self.terms.iter().any(Vec::is_empty)
    }

    /// Number of parts, as a measure of readability.
    pub fn weight(&self) -> usize {
        self.terms.iter().map(Vec::len).sum()
    }

    /// The terms of the disjunction, each as the text of its parts.
    pub fn terms(&self) -> impl Iterator<Item = Vec<&str>> {
        fn words(term: &[Text]) -> Vec<&str> {
            term.iter().map(|text| &text.text[..]).collect()
        }
        self.terms.iter().map(|term| words(term))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_always() {
            return f.write_str("always");
        }
        if self.terms.is_empty() {
            return f.write_str("never");
        }
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                f.write_str(" or ")?;
            }
            let alone = self.terms.len() == 1 && term.len() == 1;
            for (at, text) in term.iter().enumerate() {
                if at > 0 {
                    f.write_str(" and ")?;
                }
                let binding = if alone { Binding::Or } else { Binding::And };
                f.write_str(&text.within(binding))?;
            }
        }
        Ok(())
    }
}

/// Largest number of operators and operands in the text of an expression.
const MAX_TEXT_PARTS: u32 = 48;

/// Largest number of nodes of a condition inside an expression.
const MAX_NESTED: usize = 300;

/// A set of values of a field.
#[derive(Clone)]
struct Part {
    levels: Range<Level>,
    set: Ref,
}

impl Space {
    /// The text of a Boolean function. With `narrow` arguments, upper halves are zero.
    pub(crate) fn condition(&mut self, f: Ref, narrow: bool) -> Result<Condition, OverBudget> {
        let mark = self.diagram.mark();
        let condition = self.condition_within(f, narrow, &mut None);
        self.diagram.release(mark, true);
        condition
    }

    /// With `room`, expressions are truncated where it is used up; without, each named
    /// expression has [`MAX_TEXT_PARTS`].
    fn condition_within(
        &mut self,
        f: Ref,
        narrow: bool,
        room: &mut Option<u32>,
    ) -> Result<Condition, OverBudget> {
        let mut terms = self.split(f)?;
        self.remove_redundant_parts(f, &mut terms)?;
        self.remove_redundant_terms(&mut terms)?;
        let mut texts = Vec::new();
        let mut known = HashMap::new();
        for term in &terms {
            let mut words = Vec::new();
            for part in term {
                let key = (part.levels.start, part.set);
                let text = match known.get(&key) {
                    Some(text) => Text::clone(text),
                    None => self.part_text(part, narrow, room)?,
                };
                self.diagram.charge(1 + text.text.len() as u64 / 8)?;
                known.insert(key, text.clone());
                words.push(text);
            }
            texts.push(words);
        }
        Ok(Condition { terms: texts })
    }

    /// The text of a set of numbers or architectures.
    pub(crate) fn set_text(&mut self, set: Ref) -> Result<String, OverBudget> {
        if set == Ref::TRUE {
            return Ok("all".to_owned());
        }
        let part = Part {
            levels: field_of_input(self.diagram.level(set)),
            set,
        };
        let mark = self.diagram.mark();
        let text = self.part_text(&part, false, &mut None);
        self.diagram.release(mark, true);
        Ok(text?.text)
    }

    fn field(&self, level: Level) -> Range<Level> {
        match self.values.named_at(level) {
            Some((_, levels)) => levels,
            None => field_of_input(level),
        }
    }

    fn split(&mut self, f: Ref) -> Result<Vec<Vec<Part>>, OverBudget> {
        if let Some(truth) = f.as_bool() {
            return Ok(if truth { vec![Vec::new()] } else { Vec::new() });
        }
        let levels = self.field(self.diagram.level(f));
        let mut terms = Vec::new();
        for exit in self.diagram.exits(f, levels.end)? {
            if exit == Ref::FALSE {
                continue;
            }
            let leads = &mut |rest| Ref::of(rest == exit);
            let set = self.diagram.map(f, levels.end, leads)?;
            for rest in self.split(exit)? {
                let mut term = vec![Part {
                    levels: levels.clone(),
                    set,
                }];
                term.extend(rest);
                terms.push(term);
            }
            if terms.len() > MAX_TERMS {
                return Err(OverBudget);
            }
        }
        Ok(terms)
    }

    /// Removes parts of terms that are redundant.
    fn remove_redundant_parts(
        &mut self,
        f: Ref,
        terms: &mut Vec<Vec<Part>>,
    ) -> Result<(), OverBudget> {
        for term in terms.iter_mut() {
            let mut at = 0;
            while at < term.len() {
                let mut shorter = term.clone();
                shorter.remove(at);
                let conjunction = self.conjunction(&shorter)?;
                if self.diagram.implies(conjunction, f)? {
                    *term = shorter;
                } else {
                    at += 1;
                }
            }
        }
        // The shortest first: they make others redundant.
        terms.sort_by_key(Vec::len);
        terms.dedup_by(|a, b| {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.set == b.set)
        });
        Ok(())
    }

    /// Removes redundant terms.
    fn remove_redundant_terms(&mut self, terms: &mut Vec<Vec<Part>>) -> Result<(), OverBudget> {
        if terms.len() > MAX_TERMS_TO_PRUNE {
            return Ok(());
        }
        let mut at = terms.len();
        while at > 0 {
            at -= 1;
            let mut others = Ref::FALSE;
            for (other, term) in terms.iter().enumerate() {
                if other != at {
                    let conjunction = self.conjunction(term)?;
                    others = self.diagram.or(others, conjunction)?;
                }
            }
            let conjunction = self.conjunction(&terms[at])?;
            if self.diagram.implies(conjunction, others)? {
                terms.remove(at);
            }
        }
        Ok(())
    }

    fn conjunction(&mut self, term: &[Part]) -> Result<Ref, OverBudget> {
        let mut conjunction = Ref::TRUE;
        for part in term.iter().rev() {
            conjunction = self.diagram.and(part.set, conjunction)?;
        }
        Ok(conjunction)
    }

    fn part_text(
        &mut self,
        part: &Part,
        narrow: bool,
        room: &mut Option<u32>,
    ) -> Result<Text, OverBudget> {
        if let Some((expr, levels)) = self.values.named_at(part.levels.start) {
            let mut fresh = MAX_TEXT_PARTS;
            let name = self.expr_text_within(expr, room.as_mut().unwrap_or(&mut fresh))?;
            if self.values.expr(expr).is_truth() {
                let bit = self.diagram.bit(levels.end - 1)?;
                let text = if part.set == bit {
                    name
                } else {
                    format!("not ({name})")
                };
                return Ok(Text {
                    text,
                    binding: Binding::Single,
                });
            }
            return self.described(part.set, levels, &name);
        }
        let start = part.levels.start;
        match start {
            0 => self.described(part.set, part.levels.clone(), "arch"),
            32 => self.described(part.set, part.levels.clone(), "nr"),
            _ => {
                let name = match start {
                    64 => "ip".to_owned(),
                    _ => format!("arg{}", (start - 128) / 64),
                };
                self.wide_text(part, &name, narrow)
            }
        }
    }

    /// The text of an expression in C's notation, abbreviated if very long.
    pub(crate) fn expr_text(&mut self, id: ExprId) -> Result<String, OverBudget> {
        let mark = self.diagram.mark();
        let text = self.expr_text_within(id, &mut { MAX_TEXT_PARTS });
        self.diagram.release(mark, true);
        text
    }

    fn expr_text_within(&mut self, id: ExprId, room: &mut u32) -> Result<String, OverBudget> {
        let Some(rest) = room.checked_sub(1) else {
            return Ok("…".to_owned());
        };
        *room = rest;
        let expr = self.values.expr(id);
        let mut text = |id| self.expr_text_within(id, room);
        Ok(match expr {
            Expr::Constant(value) => number(value.into()),
            Expr::Word(word) => word.to_string(),
            Expr::Alu(op, a, b) => format!("({} {} {})", text(a)?, operator(op), text(b)?),
            Expr::Negated(a) => format!("(0 - {})", text(a)?),
            Expr::AtMost(a, most) => format!("min({}, {})", text(a)?, number(most.into())),
            Expr::Compare(Cond::Set, a, b) => format!("({} & {}) != 0", text(a)?, text(b)?),
            Expr::Compare(cond, a, b) => {
                let cond = match cond {
                    Cond::Eq => "==",
                    Cond::Gt => ">",
                    _ => ">=",
                };
                format!("{} {cond} {}", text(a)?, text(b)?)
            }
            Expr::Choice(condition, a, b) => {
                let (a, b) = (text(a)?, text(b)?);
                let condition = self.condition_text(condition, room)?;
                format!("({condition} ? {a} : {b})")
            }
            Expr::And(f, g) => self.connected(f, " and ", g, "", room)?,
            Expr::Or(f, g) => self.connected(f, " or ", g, "", room)?,
            Expr::AndNot(f, g) => self.connected(f, " and ", g, "not ", room)?,
        })
    }

    /// Two conditions with a connective.
    fn connected(
        &mut self,
        f: Ref,
        word: &str,
        g: Ref,
        negation: &str,
        room: &mut u32,
    ) -> Result<String, OverBudget> {
        let f = self.condition_text(f, room)?;
        let g = self.condition_text(g, room)?;
        Ok(format!("(({f}){word}{negation}({g}))"))
    }

    /// A condition inside an expression.
    fn condition_text(&mut self, f: Ref, room: &mut u32) -> Result<String, OverBudget> {
        let rest = match room.checked_sub(1) {
            Some(rest) if !self.diagram.has_more_nodes(f, MAX_NESTED) => rest,
            _ => {
                *room = 0;
                return Ok("…".to_owned());
            }
        };
        let mut nested = Some(rest);
        let condition = self.condition_within(f, false, &mut nested)?;
        *room = nested
            .unwrap_or(0)
            .saturating_sub(condition.weight() as u32);
        Ok(condition.to_string())
    }

    /// The text of a 64-bit field, or of one half if only that matters.
    fn wide_text(&mut self, part: &Part, name: &str, narrow: bool) -> Result<Text, OverBudget> {
        let middle = part.levels.start + 32;
        let support = self.diagram.support(part.set)?;
        if support.iter().all(|&level| level >= middle) {
            let levels = middle..part.levels.end;
            if narrow {
                return self.described(part.set, levels, name);
            }
            return self.described(part.set, levels, &format!("(u32){name}"));
        }
        if support.iter().all(|&level| level < middle) {
            let levels = part.levels.start..middle;
            return self.described(part.set, levels, &format!("({name} >> 32)"));
        }
        self.described(part.set, part.levels.clone(), name)
    }

    fn described(
        &mut self,
        set: Ref,
        levels: Range<Level>,
        name: &str,
    ) -> Result<Text, OverBudget> {
        Field { levels, name }.describe(&mut self.diagram, set)
    }
}

fn operator(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+",
        AluOp::Sub => "-",
        AluOp::Mul => "*",
        AluOp::Div => "/",
        AluOp::Mod => "%",
        AluOp::Or => "|",
        AluOp::And => "&",
        AluOp::Xor => "^",
        AluOp::Lsh => "<<",
        AluOp::Rsh => ">>",
    }
}
