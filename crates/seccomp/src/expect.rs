//! Expectations: a list of calls with required actions, which are proven for all arguments
//! that a line leaves open.
//!
//! ```text
//! # one expectation a line; a comment goes to the end of the line
//! x86_64 openat -> ALLOW
//! x86_64 socket(arg0 = 16) -> ERRNO(EPERM)
//! x86_64 clone(arg0 & CLONE_NEWUSER|CLONE_NEWNS != 0) -> ERRNO
//! x86_64 personality(arg0 > 8, arg0 != 0xffffffff) -> not ALLOW
//! i386, arm ptrace -> KILL_PROCESS
//! x86_64 469 -> ERRNO(ENOSYS)
//! x86_64 unnamed -> ERRNO(ENOSYS)
//! any * -> not TRACE
//! other * -> KILL_THREAD
//! ```
//!
//! Architectures are names, separated by commas: `any` is all of them, `other` all
//! unsupported ones. A call is a name, a number, `*` (every number) or `unnamed` (every
//! number without a name). Values are numbers or names of constants, combined by `|`. Actions
//! are those of seccomp(2); without data any data matches, `KILL` matches either kind, and
//! `not` negates.

mod read;

pub use read::{ExpectationError, read_expectations};

use classic::SeccompData;

use crate::action::Action;
use crate::arch::Arch;
use crate::calls;
use crate::filter::Stack;
use crate::symbolic::TooComplex;
use crate::symbolic::diagram::{LEAF_LEVEL, OverBudget, Ref};
use crate::symbolic::outcome::Outcome;
use crate::symbolic::set::Field;
use crate::symbolic::solver::Verdict;
use crate::symbolic::value::{field_of_input, level};
use crate::table::Analysis;
use crate::word::Word;

/// One line's expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line, from 1.
    pub line: usize,
    /// As written, without comment.
    pub text: String,
    archs: Vec<ArchSet>,
    calls: CallSet,
    conditions: Vec<ArgCondition>,
    action: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchSet {
    Any,
    Other,
    Named(Arch),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CallSet {
    Every,
    Unnamed,
    Number(u32),
    Named(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ArgCondition {
    arg: u8,
    mask: u64,
    compare: Compare,
    value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    negated: bool,
    name: String,
    data: Option<u16>,
}

/// A violated expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The action instead.
    pub found: Action,
    /// An example call; without one, the violation is undecided.
    pub example: Option<SeccompData>,
}

impl Expected {
    fn accepts(&self, action: Action) -> bool {
        let action = action.effect();
        let name = match self.name.as_str() {
            "KILL" => matches!(action, Action::KillProcess | Action::KillThread),
            name => name == action.name(),
        };
        let data = match (self.data, action) {
            (None, _) => true,
            (Some(data), Action::Errno(found) | Action::Trap(found) | Action::Trace(found)) => {
                data == found
            }
            (Some(_), _) => false,
        };
        (name && data) != self.negated
    }

    /// True if the data of the action do not matter.
    fn ignores_data(&self) -> bool {
        self.data.is_none()
    }
}

impl Analysis {
    /// Checks an expectation; returns a violation. `stack` is the analysed stack.
    pub fn check(
        &mut self,
        wanted: &Expectation,
        stack: &Stack,
    ) -> Result<Option<Miss>, TooComplex> {
        self.within_budget(|analysis| analysis.miss(wanted, stack))
    }

    fn miss(&mut self, wanted: &Expectation, stack: &Stack) -> Result<Option<Miss>, OverBudget> {
        let scope = self.scope(wanted)?;
        let inside = self.space.diagram.choose(scope, self.outcome, Ref::FALSE)?;
        let mut undecided = None;
        for leaf in self.space.diagram.exits(inside, LEAF_LEVEL)? {
            if leaf == Ref::FALSE {
                continue;
            }
            let outcome = self.space.outcomes.at(leaf.value().unwrap_or_default());
            let computed = matches!(outcome, Outcome::Computed { .. });
            let decided = !computed || wanted.action.ignores_data();
            if decided && wanted.action.accepts(outcome.action()) {
                continue;
            }
            let is_leaf = &mut |other| Ref::of(other == leaf);
            let mut when = self.space.diagram.map(inside, LEAF_LEVEL, is_leaf)?;
            if !decided && let Some(data) = wanted.action.data {
                let right = self.space.data_is(outcome, data)?;
                when = if wanted.action.negated {
                    self.space.diagram.and(when, right)?
                } else {
                    self.space.diagram.minus(when, right)?
                };
            }
            match self.space.example(when) {
                Verdict::Never => {}
                Verdict::Unknown => {
                    undecided = Some(Miss {
                        found: outcome.action(),
                        example: None,
                    });
                }
                Verdict::Example(data) => {
                    return Ok(Some(Miss {
                        found: stack.run(&data).effect(),
                        example: Some(data),
                    }));
                }
            }
        }
        Ok(undecided)
    }

    /// The set of calls of an expectation.
    fn scope(&mut self, wanted: &Expectation) -> Result<Ref, OverBudget> {
        let mut arguments = Ref::TRUE;
        for condition in &wanted.conditions {
            let truth = self.argument(condition)?;
            arguments = self.space.diagram.and(arguments, truth)?;
        }
        let mut scope = Ref::FALSE;
        for &arch in &wanted.archs {
            let calls = match arch {
                ArchSet::Any => self.numbers(wanted, None)?,
                ArchSet::Other => {
                    let mut other = Ref::FALSE;
                    for (set, _) in self.space.foreign(Ref::TRUE)? {
                        other = self.space.diagram.or(other, set)?;
                    }
                    let numbers = self.numbers(wanted, None)?;
                    self.space.diagram.and(other, numbers)?
                }
                ArchSet::Named(arch) => {
                    let context = self.space.context(arch, None)?;
                    let numbers = self.numbers(wanted, Some(arch))?;
                    self.space.diagram.and(context, numbers)?
                }
            };
            scope = self.space.diagram.or(scope, calls)?;
        }
        self.space.diagram.and(scope, arguments)
    }

    fn numbers(&mut self, wanted: &Expectation, arch: Option<Arch>) -> Result<Ref, OverBudget> {
        let number = match (&wanted.calls, arch) {
            (CallSet::Every, None) => return Ok(Ref::TRUE),
            (CallSet::Every, Some(arch)) => return self.space.number_range(arch),
            (CallSet::Unnamed, Some(arch)) => return self.space.unnamed_numbers(arch),
            // On unsupported architectures every number is unnamed.
            (CallSet::Unnamed, None) => return Ok(Ref::TRUE),
            (CallSet::Number(number), _) => *number | arch.map_or(0, Arch::bias),
            (CallSet::Named(name), Some(arch)) => calls::number(arch, name).unwrap_or(u32::MAX),
            (CallSet::Named(_), None) => return Ok(Ref::FALSE),
        };
        let levels = field_of_input(level(Word::NR, 0));
        let field = Field { levels, name: "nr" };
        field.interval(&mut self.space.diagram, number.into(), number.into())
    }

    fn argument(&mut self, condition: &ArgCondition) -> Result<Ref, OverBudget> {
        let levels = field_of_input(level(Word::arg_low(condition.arg), 0));
        let field = Field { levels, name: "" };
        let diagram = &mut self.space.diagram;
        // A masked comparison tests the bits of the mask as a number.
        let (mut below, mut equal) = (Ref::FALSE, Ref::TRUE);
        for place in 0..64 {
            let bit = if condition.mask >> place & 1 != 0 {
                diagram.bit(field.levels.end - 1 - place)?
            } else {
                Ref::FALSE
            };
            if condition.value >> place & 1 != 0 {
                below = diagram.choose(bit, below, Ref::TRUE)?;
                equal = diagram.and(bit, equal)?;
            } else {
                below = diagram.choose(bit, Ref::FALSE, below)?;
                equal = diagram.minus(equal, bit)?;
            }
        }
        match condition.compare {
            Compare::Eq => Ok(equal),
            Compare::Ne => diagram.not(equal),
            Compare::Lt => Ok(below),
            Compare::Ge => diagram.not(below),
            Compare::Le => diagram.or(below, equal),
            Compare::Gt => {
                let reaches = diagram.or(below, equal)?;
                diagram.not(reaches)
            }
        }
    }
}
