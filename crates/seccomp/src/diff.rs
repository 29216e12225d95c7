//! Differences between two stacks of filters, with example calls.
//!
//! Both are executed symbolically in one diagram; the result is the function from calls to
//! pairs of different outcomes, which is printed like a [table](crate::Table). Every
//! example is verified by running both.

use classic::SeccompData;

use crate::action::Action;
use crate::arch::Arch;
use crate::filter::Stack;
use crate::symbolic::TooComplex;
use crate::symbolic::condition::Condition;
use crate::symbolic::diagram::{LEAF_LEVEL, OverBudget, Ref};
use crate::symbolic::explore::Space;
use crate::symbolic::outcome::Outcome;
use crate::symbolic::solver::Verdict;
use crate::table::{Analysis, QUESTION_STEPS, with_efforts};

/// A condition under which two stacks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contrast {
    /// Action of the first stack; computed data are those of the example.
    pub first: Action,
    /// Action of the second stack.
    pub second: Action,
    /// Condition on instruction pointer and arguments.
    pub when: Condition,
    /// An example call. Without one, the satisfiability of the condition is undecided.
    pub example: Option<SeccompData>,
}

/// Calls with the same difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The architecture; `None` for unsupported ones.
    pub arch: Option<Arch>,
    /// Number and name of each call.
    pub calls: Vec<(u32, &'static str)>,
    /// Set of unnamed numbers (or architectures), as text.
    pub others: Option<String>,
    /// True if these are all unnamed ones.
    pub is_all_others: bool,
    /// Differences by condition.
    pub contrasts: Vec<Contrast>,
}

/// The differences between two stacks of filters.
///
/// The time is bounded as that of [`Analysis::new`] and one query.
pub fn diff(first: &Stack, second: &Stack) -> Result<Vec<Difference>, TooComplex> {
    let ((one, two), mut space) = with_efforts(|space| {
        let one = Analysis::in_space(first, space)?.outcome;
        let two = Analysis::in_space(second, space)?.outcome;
        Ok((one, two))
    })?;
    space.diagram.set_budget(QUESTION_STEPS);
    let mut comparison = Comparison {
        first,
        second,
        pairs: Vec::new(),
        space,
    };
    let found = comparison.run(one, two);
    found.map_err(|OverBudget| comparison.space.too_complex())
}

struct Comparison<'a> {
    first: &'a Stack,
    second: &'a Stack,
    /// Pairs of different outcomes; a leaf is the index plus one.
    pairs: Vec<(Outcome, Outcome)>,
    space: Space,
}

impl Comparison<'_> {
    fn run(&mut self, one: Ref, two: Ref) -> Result<Vec<Difference>, OverBudget> {
        let differing = self.pair(one, two)?;
        let mut found = Vec::new();
        for &arch in Arch::ALL {
            self.compare_arch(differing, arch, &mut found)?;
        }
        let everywhere = self.space.foreign(Ref::TRUE)?;
        for (set, rest) in self.space.foreign(differing)? {
            let contrasts = self.contrasts(rest, false, set)?;
            if !contrasts.is_empty() {
                found.push(Difference {
                    arch: None,
                    calls: Vec::new(),
                    others: Some(self.space.set_text(set)?),
                    is_all_others: everywhere.iter().any(|&(all, _)| all == set),
                    contrasts,
                });
            }
        }
        Ok(found)
    }

    fn compare_arch(
        &mut self,
        differing: Ref,
        arch: Arch,
        found: &mut Vec<Difference>,
    ) -> Result<(), OverBudget> {
        let narrow = arch.has_narrow_arguments();
        let differing = self.space.of_arch(differing, arch)?;
        for (calls, rest) in self.space.calls_by_rest(differing, arch)? {
            let nr = calls.first().map(|&(nr, _)| nr);
            let context = self.space.context(arch, nr)?;
            let contrasts = self.contrasts(rest, narrow, context)?;
            if !contrasts.is_empty() {
                found.push(Difference {
                    arch: Some(arch),
                    calls,
                    others: None,
                    is_all_others: false,
                    contrasts,
                });
            }
        }
        let unnamed = self.space.unnamed_numbers(arch)?;
        for (set, rest) in self.space.unnamed(differing, arch)? {
            let context = self.space.context(arch, None)?;
            let context = self.space.diagram.and(context, set)?;
            let contrasts = self.contrasts(rest, narrow, context)?;
            if !contrasts.is_empty() {
                found.push(Difference {
                    arch: Some(arch),
                    calls: Vec::new(),
                    others: Some(self.space.set_text(set)?),
                    is_all_others: set == unnamed,
                    contrasts,
                });
            }
        }
        Ok(())
    }

    /// The function from calls to leaves of pairs, `FALSE` for equal outcomes.
    fn pair(&mut self, one: Ref, two: Ref) -> Result<Ref, OverBudget> {
        let (outcomes, pairs) = (&self.space.outcomes, &mut self.pairs);
        let mut paired = self.space.diagram.pair(one, two, &mut |one, two| {
            if one == two {
                return 0;
            }
            let pair = (outcomes.at(one), outcomes.at(two));
            let place = pairs.iter().position(|&known| known == pair);
            let place = place.unwrap_or_else(|| {
                pairs.push(pair);
                pairs.len() - 1
            });
            place as u32 + 1
        })?;
        // Computed data may be equal.
        for (place, (one, two)) in self.pairs.clone().into_iter().enumerate() {
            let (Some(one), Some(two)) = (self.data_of(one, two), self.data_of(two, one)) else {
                continue;
            };
            let Space {
                diagram, values, ..
            } = &mut self.space;
            let same = values.compare(diagram, isa::classic::Cond::Eq, one, two)?;
            let leaf = Ref::leaf(place as u32 + 1);
            let here = diagram.map(paired, LEAF_LEVEL, &mut |other| Ref::of(other == leaf))?;
            let equal = diagram.and(here, same)?;
            paired = diagram.choose(equal, Ref::FALSE, paired)?;
        }
        Ok(paired)
    }

    /// The data of an outcome as a word, if two outcomes have the same action and one of
    /// them computes its data.
    fn data_of(
        &mut self,
        outcome: Outcome,
        other: Outcome,
    ) -> Option<crate::symbolic::value::ValueId> {
        if outcome.action().rank() != other.action().rank() {
            return None;
        }
        match (outcome, other) {
            (Outcome::Computed { data, .. }, _) => Some(data),
            (Outcome::Return(value), Outcome::Computed { .. }) => {
                let Space {
                    diagram, values, ..
                } = &mut self.space;
                Some(values.constant(diagram, value & 0xffff))
            }
            _ => None,
        }
    }

    fn contrasts(
        &mut self,
        f: Ref,
        narrow: bool,
        context: Ref,
    ) -> Result<Vec<Contrast>, OverBudget> {
        let mut contrasts = Vec::new();
        for leaf in self.space.diagram.exits(f, LEAF_LEVEL)? {
            let Some(place) = leaf.value().and_then(|leaf| leaf.checked_sub(1)) else {
                continue;
            };
            let is_leaf = &mut |other| Ref::of(other == leaf);
            let when = self.space.diagram.map(f, LEAF_LEVEL, is_leaf)?;
            let whole = self.space.diagram.and(context, when)?;
            let mut example = match self.space.example(whole) {
                Verdict::Never => continue,
                Verdict::Unknown => None,
                Verdict::Example(data) => Some(data),
            };
            let (one, two) = self.pairs[place as usize];
            let (mut first, mut second) = (one.action(), two.action());
            if let Some(data) = &example {
                first = self.first.run(data).effect();
                second = self.second.run(data).effect();
                debug_assert_ne!(first, second, "symbolic and plain run disagree: {data:?}");
                // Only examples verified by running both are reported.
                example = example.filter(|_| first != second);
            }
            contrasts.push(Contrast {
                first,
                second,
                when: self.space.condition(when, narrow)?,
                example,
            });
        }
        contrasts.sort_by_key(|contrast| contrast.when.weight());
        Ok(contrasts)
    }
}
