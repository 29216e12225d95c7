//! Sets of calls in the space of an analysis: by architecture, number and outcome.

use std::collections::HashMap;
use std::ops::Range;

use isa::classic::Cond;

use super::{Calls, Case};
use crate::arch::{Arch, X32_BIT};
use crate::calls;
use crate::symbolic::diagram::{LEAF_LEVEL, Level, OverBudget, Ref};
use crate::symbolic::explore::Space;
use crate::symbolic::outcome::Outcome;
use crate::symbolic::set::Field;
use crate::symbolic::solver::Verdict;
use crate::symbolic::value::{ARCH, NR, high_half};

/// The field of the bits at these levels.
pub(super) fn field(levels: Range<Level>) -> Field<'static> {
    Field { levels, name: "nr" }
}

impl Space {
    /// The numbers that belong to an architecture: x32 and x86_64 share theirs.
    pub(crate) fn number_range(&mut self, arch: Arch) -> Result<Ref, OverBudget> {
        let (first, last) = (u64::from(X32_BIT), u64::from(2 * X32_BIT - 1));
        let diagram = &mut self.diagram;
        match arch {
            Arch::X32 => field(NR).interval(diagram, first, last),
            Arch::X86_64 => {
                let x32 = field(NR).interval(diagram, first, last)?;
                diagram.not(x32)
            }
            _ => Ok(Ref::TRUE),
        }
    }

    /// The cofactor of an architecture, including zero upper halves of its arguments.
    pub(crate) fn of_arch(&mut self, f: Ref, arch: Arch) -> Result<Ref, OverBudget> {
        let mut f = self.diagram.restrict(f, ARCH, u64::from(arch.audit()))?;
        if arch.has_narrow_arguments() {
            for arg in 0..6 {
                f = self.diagram.restrict(f, high_half(arg), 0)?;
            }
        }
        Ok(f)
    }

    /// Sets of unsupported architectures by cofactor.
    pub(crate) fn foreign(&mut self, f: Ref) -> Result<Vec<(Ref, Ref)>, OverBudget> {
        let mut foreign = Ref::TRUE;
        for &arch in Arch::ALL {
            let audit = u64::from(arch.audit());
            let single = field(ARCH).interval(&mut self.diagram, audit, audit)?;
            foreign = self.diagram.minus(foreign, single)?;
        }
        let rest = self.diagram.choose(foreign, f, Ref::FALSE)?;
        self.classes(rest, ARCH)
    }

    /// Sets of values of a field by cofactor, without `FALSE`.
    pub(crate) fn classes(
        &mut self,
        f: Ref,
        levels: Range<Level>,
    ) -> Result<Vec<(Ref, Ref)>, OverBudget> {
        let mut classes = Vec::new();
        for rest in self.diagram.exits(f, levels.end)? {
            if rest != Ref::FALSE {
                let leads = &mut |exit| Ref::of(exit == rest);
                classes.push((self.diagram.map(f, levels.end, leads)?, rest));
            }
        }
        Ok(classes)
    }

    /// The unnamed numbers of an architecture.
    pub(crate) fn unnamed_numbers(&mut self, arch: Arch) -> Result<Ref, OverBudget> {
        let mut unnamed = self.number_range(arch)?;
        for (nr, _) in calls::all(arch) {
            let single = field(NR).interval(&mut self.diagram, nr.into(), nr.into())?;
            unnamed = self.diagram.minus(unnamed, single)?;
        }
        Ok(unnamed)
    }

    /// Sets of unnamed numbers of an architecture by outcome.
    pub(crate) fn unnamed(
        &mut self,
        outcome: Ref,
        arch: Arch,
    ) -> Result<Vec<(Ref, Ref)>, OverBudget> {
        let unnamed = self.unnamed_numbers(arch)?;
        let rest = self.diagram.choose(unnamed, outcome, Ref::FALSE)?;
        self.classes(rest, NR)
    }

    /// The calls of an architecture, grouped by cofactor.
    pub(crate) fn calls_by_rest(
        &mut self,
        f: Ref,
        arch: Arch,
    ) -> Result<Vec<(Calls, Ref)>, OverBudget> {
        let mut groups: Vec<(Calls, Ref)> = Vec::new();
        let mut places = HashMap::new();
        for (nr, name) in calls::all(arch) {
            let rest = self.diagram.restrict(f, NR, u64::from(nr))?;
            let place = *places.entry(rest).or_insert(groups.len());
            if place == groups.len() {
                groups.push((Vec::new(), rest));
            }
            groups[place].0.push((nr, name));
        }
        Ok(groups)
    }

    /// The condition that a call belongs to an architecture, and optionally has a number.
    pub(crate) fn context(&mut self, arch: Arch, nr: Option<u32>) -> Result<Ref, OverBudget> {
        let diagram = &mut self.diagram;
        let mut context = Ref::TRUE;
        if arch.has_narrow_arguments() {
            for arg in (0..6).rev() {
                let zero = field(high_half(arg)).interval(diagram, 0, 0)?;
                context = diagram.and(zero, context)?;
            }
        }
        if let Some(nr) = nr {
            let number = field(NR).interval(diagram, nr.into(), nr.into())?;
            context = diagram.and(number, context)?;
        }
        let audit = u64::from(arch.audit());
        let audit = field(ARCH).interval(diagram, audit, audit)?;
        diagram.and(audit, context)
    }

    /// The cases of an outcome function `f` for the calls of a `context`. Those of `last` stand
    /// last in their order, behind the others by how readable their conditions are.
    pub(crate) fn cases(
        &mut self,
        f: Ref,
        narrow: bool,
        context: Ref,
        last: [Ref; 2],
    ) -> Result<Vec<Case>, OverBudget> {
        let mut cases = Vec::new();
        for leaf in self.diagram.exits(f, LEAF_LEVEL)? {
            let is_leaf = &mut |other| Ref::of(other == leaf);
            let when = self.diagram.map(f, LEAF_LEVEL, is_leaf)?;
            let whole = self.diagram.and(context, when)?;
            let example = match self.example(whole) {
                Verdict::Never => continue,
                Verdict::Unknown => None,
                Verdict::Example(data) => Some(data),
            };
            let outcome = self.outcomes.at(leaf.value().unwrap_or_default());
            let case = Case {
                action: outcome.action(),
                data: self.data_text(outcome)?,
                when: self.condition(when, narrow)?,
                example,
            };
            let place = last.iter().rposition(|outcome| *outcome == leaf);
            cases.push((place, case));
        }
        cases.sort_by_key(|(place, case)| (*place, case.when.weight()));
        let mut cases: Vec<Case> = cases.into_iter().map(|(_, case)| case).collect();
        if let [only] = &mut cases[..] {
            only.when = self.condition(Ref::TRUE, narrow)?;
        }
        Ok(cases)
    }

    /// The condition that computed data equal a number.
    pub(crate) fn data_is(&mut self, outcome: Outcome, number: u16) -> Result<Ref, OverBudget> {
        let Outcome::Computed { data, .. } = outcome else {
            return Ok(Ref::FALSE);
        };
        let number = self.values.constant(&self.diagram, number.into());
        self.values
            .compare(&mut self.diagram, Cond::Eq, data, number)
    }

    /// The text of the expression of computed data.
    pub(crate) fn data_text(&mut self, outcome: Outcome) -> Result<Option<String>, OverBudget> {
        match outcome {
            Outcome::Return(_) => Ok(None),
            Outcome::Computed { data, .. } => Ok(Some(self.expr_text(self.values.expr_of(data))?)),
        }
    }
}
