//! Tables: the actions of filters for all system calls of an architecture.
//!
//! The filters are executed symbolically once; for each architecture, calls with the same
//! cofactor (a function of instruction pointer and arguments) are grouped.

mod space;

use std::collections::HashMap;

use classic::SeccompData;
use isa::classic::{Insn, Operand};
use spec::SplitMix;
use spec::context::SECCOMP_DATA_SIZE;

use crate::action::Action;
use crate::arch::{Arch, X32_BIT};
use crate::calls;
use crate::filter::{FilterProgram, Stack};
use crate::symbolic::TooComplex;
use crate::symbolic::condition::Condition;
use crate::symbolic::diagram::{OverBudget, Ref};
use crate::symbolic::explore::{Effort, Space};
use crate::symbolic::outcome::Outcome;
use crate::symbolic::solver::Verdict;
use crate::symbolic::value::{ARCH, NR};
use crate::word::Word;
use space::field;

/// Calls by number and name.
type Calls = Vec<(u32, &'static str)>;

/// The symbolic result of filters, for queries.
pub struct Analysis {
    pub(crate) space: Space,
    /// The effect of all filters together.
    pub(crate) outcome: Ref,
    /// The same restricted to single architectures, computed on demand.
    by_arch: HashMap<Arch, Ref>,
    /// Instructions that no system call reaches, for each filter.
    unreachable: Vec<Vec<usize>>,
    /// Path condition of each instruction of each filter.
    reached: Vec<Vec<Ref>>,
}

/// An action and its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The action, without computed data.
    pub action: Action,
    /// Expression of computed data.
    pub data: Option<String>,
    /// Condition on instruction pointer and arguments.
    pub when: Condition,
    /// An example call, if one was found.
    pub example: Option<SeccompData>,
}

/// Calls with the same cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number and name of each.
    pub calls: Vec<(u32, &'static str)>,
    /// Cases, which cover all calls. The default, or the least readable condition, is last.
    pub cases: Vec<Case>,
    /// True if most unnamed numbers have these cases.
    pub is_default: bool,
}

/// Unnamed numbers or architectures with the same cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
    /// The set, as text.
    pub which: String,
    /// True if these are all unnamed ones.
    pub is_all: bool,
    /// Cases.
    pub cases: Vec<Case>,
}

/// The table of an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The architecture.
    pub arch: Arch,
    /// Calls.
    pub groups: Vec<Group>,
    /// Its unnamed numbers.
    pub others: Vec<Others>,
}

impl Analysis {
    /// Executes filters symbolically.
    ///
    /// Time and memory are bounded: an optimised build succeeds or fails with
    /// [`TooComplex`] within two seconds and 200 MB, and so does each query
    /// (docs/seccomp.md has the measurement).
    pub fn new(stack: &Stack) -> Result<Analysis, TooComplex> {
        let mut analysis = with_efforts(|space| Analysis::in_space(stack, space))
            .map(|(parts, space)| parts.into_analysis(space))?;
        analysis.find_unreachable(stack);
        Ok(analysis)
    }

    pub(crate) fn in_space(stack: &Stack, space: &mut Space) -> Result<Parts, TooComplex> {
        let mut total = space.outcomes.leaf(Outcome::of(Action::Allow.to_return()));
        let mut parts = Parts {
            outcome: total,
            reached: Vec::new(),
        };
        for (place, filter) in stack.filters().iter().enumerate() {
            let behaviour = space.explore(place, filter)?;
            let combined = space.combine(total, behaviour.outcome);
            total = combined.map_err(|OverBudget| space.too_complex())?;
            parts.reached.push(behaviour.reached);
        }
        let effect = space.effect(total);
        parts.outcome = effect.map_err(|OverBudget| space.too_complex())?;
        Ok(parts)
    }

    /// Runs a query within its budget.
    pub(crate) fn within_budget<T>(
        &mut self,
        question: impl FnOnce(&mut Analysis) -> Result<T, OverBudget>,
    ) -> Result<T, TooComplex> {
        self.space.diagram.set_budget(QUESTION_STEPS);
        question(self).map_err(|OverBudget| self.space.too_complex())
    }

    /// Finds unreachable instructions. Those that a sample of calls reaches need no query
    /// of the solver.
    fn find_unreachable(&mut self, stack: &Stack) {
        self.space.diagram.set_budget(REACHABILITY_STEPS);
        let sample = sample(stack);
        for (filter, reached) in stack
            .filters()
            .iter()
            .zip(std::mem::take(&mut self.reached))
        {
            let mut is_reached = vec![false; reached.len()];
            for call in &sample {
                filter.trace(call, &mut |step| is_reached[step.at] = true);
            }
            let mut unreachable = Vec::new();
            for (at, &condition) in reached.iter().enumerate() {
                if !is_reached[at] && self.space.example(condition) == Verdict::Never {
                    unreachable.push(at);
                }
            }
            self.unreachable.push(unreachable);
        }
    }

    /// The unreachable instructions of each filter.
    pub fn unreachable(&self) -> &[Vec<usize>] {
        &self.unreachable
    }

    /// The architectures that the filters distinguish from unsupported ones.
    pub fn architectures(&mut self) -> Result<Vec<Arch>, TooComplex> {
        self.within_budget(Analysis::singled_out)
    }

    pub(crate) fn singled_out(&mut self) -> Result<Vec<Arch>, OverBudget> {
        let foreign = self.foreign()?;
        let mut found = Vec::new();
        for &arch in Arch::ALL {
            let outcome = self.of_arch(arch)?;
            let differs = match foreign[..] {
                [(_, alike)] => self.without_narrowing(arch)? != alike,
                _ => true,
            };
            if differs && (arch != Arch::X32 || self.x32_matters(outcome)?) {
                found.push(arch);
            }
        }
        Ok(found)
    }

    /// Sets of unsupported architectures with their outcomes.
    pub(crate) fn foreign(&mut self) -> Result<Vec<(Ref, Ref)>, OverBudget> {
        let mut foreign = Ref::TRUE;
        for &arch in Arch::ALL {
            let audit = u64::from(arch.audit());
            let single = field(ARCH).interval(&mut self.space.diagram, audit, audit)?;
            foreign = self.space.diagram.minus(foreign, single)?;
        }
        let rest = self
            .space
            .diagram
            .choose(foreign, self.outcome, Ref::FALSE)?;
        self.space.classes(rest, ARCH)
    }

    /// The cases of unsupported architectures.
    pub fn foreign_architectures(&mut self) -> Result<Vec<Others>, TooComplex> {
        self.within_budget(Analysis::others)
    }

    fn others(&mut self) -> Result<Vec<Others>, OverBudget> {
        let mut others = Vec::new();
        let foreign = self.foreign()?;
        for &(set, rest) in &foreign {
            others.push(Others {
                which: self.space.set_text(set)?,
                is_all: foreign.len() == 1,
                cases: self.space.cases(rest, false, set, [rest, rest])?,
            });
        }
        Ok(others)
    }

    /// True if numbers with the x32 bit have different actions.
    fn x32_matters(&mut self, outcome: Ref) -> Result<bool, OverBudget> {
        let range = self.space.number_range(Arch::X32)?;
        let rest = self.space.diagram.choose(range, outcome, Ref::FALSE)?;
        Ok(self.space.classes(rest, NR)?.len() > 1)
    }

    fn without_narrowing(&mut self, arch: Arch) -> Result<Ref, OverBudget> {
        let audit = u64::from(arch.audit());
        self.space.diagram.restrict(self.outcome, ARCH, audit)
    }

    /// The outcome of an architecture's calls, as a function of the other words.
    pub(crate) fn of_arch(&mut self, arch: Arch) -> Result<Ref, OverBudget> {
        if let Some(&outcome) = self.by_arch.get(&arch) {
            return Ok(outcome);
        }
        let outcome = self.space.of_arch(self.outcome, arch)?;
        self.by_arch.insert(arch, outcome);
        Ok(outcome)
    }

    /// The outcome of one call, as a function of instruction pointer and
    /// arguments.
    pub(crate) fn of_call(&mut self, arch: Arch, nr: u32) -> Result<Ref, OverBudget> {
        let outcome = self.of_arch(arch)?;
        self.space.diagram.restrict(outcome, NR, u64::from(nr))
    }

    /// The outcome of most unnamed numbers of an architecture, of those below its newest call if
    /// there are any: runc refuses newer ones by another action. Numbers from [`X32_BIT`] on, which
    /// filters of libseccomp deny, count for x32 only.
    pub(crate) fn default_of(&mut self, arch: Arch) -> Result<Ref, OverBudget> {
        let outcome = self.of_arch(arch)?;
        let others = self.space.unnamed(outcome, arch)?;
        let last = if arch == Arch::X32 {
            u32::MAX
        } else {
            X32_BIT - 1
        };
        let newest = calls::all(arch).map(|(number, _)| number).max();
        let mut most = (0, Ref::FALSE);
        for last in [newest.unwrap_or(last), last] {
            let range = field(NR).interval(&mut self.space.diagram, 0, last.into())?;
            for &(set, rest) in &others {
                let set = self.space.diagram.and(set, range)?;
                let count = field(NR).count(&mut self.space.diagram, set)?;
                // The last of equal maxima.
                if count >= most.0 {
                    most = (count, rest);
                }
            }
            if most.0 > 0 {
                break;
            }
        }
        Ok(most.1)
    }

    /// The outcomes that stand last among the cases of a call: the default, and before it the one
    /// by which most calls are refused, which is the profile's where runc refuses newer calls by
    /// another.
    fn last_cases(&mut self, arch: Arch) -> Result<[Ref; 2], OverBudget> {
        let default = self.default_of(arch)?;
        let outcome = self.of_arch(arch)?;
        let groups = self.space.calls_by_rest(outcome, arch)?;
        let refused = groups.iter().filter(|(_, rest)| {
            let outcome = rest.value().map(|value| self.space.outcomes.at(value));
            *rest != default && outcome.is_some_and(|it| it.action() != Action::Allow)
        });
        let most = refused.max_by_key(|(calls, _)| calls.len());
        Ok([most.map_or(default, |(_, rest)| *rest), default])
    }

    /// The table of one architecture.
    pub fn table(&mut self, arch: Arch) -> Result<Table, TooComplex> {
        self.within_budget(|analysis| analysis.table_of(arch))
    }

    /// The cases of one number of an architecture, named or not. The default, or the least
    /// readable condition, is last.
    pub fn cases_of(&mut self, arch: Arch, nr: u32) -> Result<Vec<Case>, TooComplex> {
        self.within_budget(|analysis| {
            let last = analysis.last_cases(arch)?;
            let rest = analysis.of_call(arch, nr)?;
            let context = analysis.space.context(arch, Some(nr))?;
            let narrow = arch.has_narrow_arguments();
            analysis.space.cases(rest, narrow, context, last)
        })
    }

    fn table_of(&mut self, arch: Arch) -> Result<Table, OverBudget> {
        let narrow = arch.has_narrow_arguments();
        let outcome = self.of_arch(arch)?;
        let default = self.default_of(arch)?;
        let last = self.last_cases(arch)?;
        let mut groups = Vec::new();
        for (calls, rest) in self.space.calls_by_rest(outcome, arch)? {
            let is_default = rest == default;
            let context = self.space.context(arch, calls.first().map(|&(nr, _)| nr))?;
            groups.push(Group {
                calls,
                cases: self.space.cases(rest, narrow, context, last)?,
                is_default,
            });
        }
        // Unconditional groups first, larger groups before smaller ones.
        groups.sort_by_key(|group| (group.cases.len() > 1, std::cmp::Reverse(group.calls.len())));
        let mut others = Vec::new();
        let unnamed = self.space.unnamed(outcome, arch)?;
        for &(set, rest) in &unnamed {
            let context = self.space.context(arch, None)?;
            let context = self.space.diagram.and(context, set)?;
            others.push(Others {
                which: self.space.set_text(set)?,
                is_all: unnamed.len() == 1,
                cases: self.space.cases(rest, narrow, context, last)?,
            });
        }
        Ok(Table {
            arch,
            groups,
            others,
        })
    }
}

/// Budgets in the order in which they are tried: the more operations are named, the cheaper
/// the exploration.
const EFFORTS: &[Effort] = &[
    Effort {
        steps: 1_500_000,
        steps_per_operation: 100_000,
    },
    Effort {
        steps: 1_500_000,
        steps_per_operation: 5_000,
    },
    Effort {
        steps: 1_500_000,
        steps_per_operation: 500,
    },
];

/// Steps of a query.
pub(crate) const QUESTION_STEPS: u64 = 12_000_000;

/// Steps to decide which instructions are reached.
const REACHABILITY_STEPS: u64 = 1_500_000;

/// Explores with each effort in turn until one suffices.
pub(crate) fn with_efforts<T>(
    explore: impl Fn(&mut Space) -> Result<T, TooComplex>,
) -> Result<(T, Space), TooComplex> {
    let mut failed = TooComplex { filter: 0, insn: 0 };
    for &effort in EFFORTS {
        let mut space = Space::new(effort);
        match explore(&mut space) {
            Ok(found) => return Ok((found, space)),
            Err(too_complex) => failed = too_complex,
        }
    }
    Err(failed)
}

/// Number of calls of a sample.
const SAMPLE: usize = 256;

/// Calls whose words are near the constants of the filters, from a fixed seed.
fn sample(stack: &Stack) -> Vec<SeccompData> {
    let mut random = SplitMix::new(0);
    let programs = stack.filters().iter().map(FilterProgram::checked);
    let mut constants: Vec<u32> = programs
        .flat_map(|program| program.insns())
        .filter_map(|insn| match *insn {
            Insn::Jump {
                src: Operand::K(k), ..
            }
            | Insn::Alu {
                src: Operand::K(k), ..
            } => Some(k),
            _ => None,
        })
        .collect();
    constants.push(0);
    let audits: Vec<u32> = Arch::ALL.iter().map(|arch| arch.audit()).collect();
    let mut word = |choices: &[u32]| {
        let bits = random.next_u64();
        let near = choices[(bits >> 32) as usize % choices.len()];
        match bits & 15 {
            0 => near.wrapping_add(1),
            1 => near.wrapping_sub(1),
            2 => bits as u32,
            3 | 4 => 0,
            _ => near,
        }
    };
    let mut call = || {
        let mut data = SeccompData::default();
        for offset in (0..SECCOMP_DATA_SIZE as u32).step_by(4) {
            if let Some(at) = Word::at_offset(offset) {
                let choices = if at == Word::ARCH {
                    &audits
                } else {
                    &constants
                };
                at.set(&mut data, word(choices));
            }
        }
        data
    };
    (0..SAMPLE).map(|_| call()).collect()
}

/// State of an analysis without the shared space.
pub(crate) struct Parts {
    pub(crate) outcome: Ref,
    reached: Vec<Vec<Ref>>,
}

impl Parts {
    fn into_analysis(self, space: Space) -> Analysis {
        Analysis {
            space,
            outcome: self.outcome,
            by_arch: HashMap::new(),
            unreachable: Vec::new(),
            reached: self.reached,
        }
    }
}
