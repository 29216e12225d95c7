//! Expectations: a list of calls and what must happen to them, proven for every
//! argument that a line leaves open.
//!
//! ```text
//! # one expectation a line; a comment goes to the end of the line
//! x86_64 openat -> ALLOW
//! x86_64 socket(arg0 = 16) -> ERRNO(EPERM)
//! x86_64 clone(arg0 & 0x10000000 != 0) -> ERRNO
//! x86_64 personality(arg0 > 8, arg0 != 0xffffffff) -> not ALLOW
//! i386, arm ptrace -> KILL_PROCESS
//! x86_64 469 -> ERRNO(ENOSYS)
//! x86_64 unnamed -> ERRNO(ENOSYS)
//! any * -> not TRACE
//! other * -> KILL_THREAD
//! ```
//!
//! Architectures are given by name, separated by commas: `any` is all there can
//! be, `other` all without a name here. A call is a name, a number, `*` (every
//! number) or `unnamed` (every number that has no name). Actions are those of
//! seccomp(2); without data any data will do, `KILL` is either kind, and `not`
//! inverts.

use std::fmt;

use classic::SeccompData;

use crate::action::Action;
use crate::arch::Arch;
use crate::calls;
use crate::errno;
use crate::filter::Stack;
use crate::symbolic::diagram::{LEAF_LEVEL, Ref, TooComplex};
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

/// A line that is no expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectationError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for ExpectationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.what
        )
    }
}

impl std::error::Error for ExpectationError {}

/// An expectation that the filters do not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What happens instead.
    pub found: Action,
    /// A call that shows it; without one it is not decided whether there is.
    pub example: Option<SeccompData>,
}

/// Reads a list of expectations.
pub fn read_expectations(text: &str) -> Result<Vec<Expectation>, ExpectationError> {
    let mut list = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        if !content.trim().is_empty() {
            list.push(
                Reader {
                    line: at + 1,
                    text: content,
                    at: 0,
                }
                .expectation()?,
            );
        }
    }
    Ok(list)
}

struct Reader<'a> {
    line: usize,
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, at: usize, what: impl Into<String>) -> ExpectationError {
        ExpectationError {
            line: self.line,
            column: self.text[..at].chars().count() + 1,
            what: what.into(),
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a token if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ExpectationError> {
        if self.take(token) {
            return Ok(());
        }
        Err(self.fault(self.at, format!("expected {token:?}")))
    }

    /// The next word: letters, digits, `_` and `*`.
    fn word(&mut self, what: &str) -> Result<(usize, &'a str), ExpectationError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let is_part = |c: char| {
            c.is_alphanumeric() || matches!(c, '_' | '*' | '-') && !rest.starts_with("->")
        };
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        // The arrow may follow without space.
        if rest[..end].ends_with('-') && rest[end..].starts_with('>') {
            end -= 1;
        }
        if end == 0 {
            return Err(self.fault(self.at, format!("expected {what}")));
        }
        let start = self.at;
        self.at += end;
        Ok((start, &rest[..end]))
    }

    fn number(&mut self) -> Result<u64, ExpectationError> {
        let (at, word) = self.word("a number")?;
        parse_number(word).ok_or_else(|| self.fault(at, format!("{word:?} is no 64-bit number")))
    }

    fn expectation(mut self) -> Result<Expectation, ExpectationError> {
        let mut archs = Vec::new();
        loop {
            let (at, name) = self.word("an architecture")?;
            archs.push(match name {
                "any" | "*" => ArchSet::Any,
                "other" => ArchSet::Other,
                _ => ArchSet::Named(Arch::from_name(name).ok_or_else(|| {
                    self.fault(at, format!("{name:?} is no architecture known here"))
                })?),
            });
            if !self.take(",") {
                break;
            }
        }
        let calls = self.calls(&archs)?;
        let mut conditions = Vec::new();
        if self.take("(") && !self.take(")") {
            loop {
                conditions.extend(self.condition()?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect("->")?;
        let action = self.action()?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.fault(self.at, "expected the end of the line"));
        }
        Ok(Expectation {
            line: self.line,
            text: self.text.trim().to_owned(),
            archs,
            calls,
            conditions,
            action,
        })
    }

    fn calls(&mut self, archs: &[ArchSet]) -> Result<CallSet, ExpectationError> {
        let (at, name) = self.word("a call")?;
        if name == "*" {
            return Ok(CallSet::Every);
        }
        if name == "unnamed" {
            return Ok(CallSet::Unnamed);
        }
        if let Some(number) = parse_number(name) {
            let number = u32::try_from(number)
                .map_err(|_| self.fault(at, "a system call number has 32 bits"))?;
            return Ok(CallSet::Number(number));
        }
        for arch in archs {
            let ArchSet::Named(arch) = *arch else {
                return Err(self.fault(at, "calls have names on named architectures only"));
            };
            if calls::number(arch, name).is_none() {
                let hint = calls::closest(arch, name);
                let hint = hint.map_or(String::new(), |name| format!(" (is it {name}?)"));
                return Err(self.fault(at, format!("{arch} has no call named {name:?}{hint}")));
            }
        }
        Ok(CallSet::Named(name.to_owned()))
    }

    /// `arg0 & 0x40 != 0`; `arg1 = *` says nothing.
    fn condition(&mut self) -> Result<Option<ArgCondition>, ExpectationError> {
        let (at, name) = self.word("an argument, arg0 to arg5")?;
        let arg = name
            .strip_prefix("arg")
            .and_then(|index| index.parse().ok());
        let arg = arg.filter(|&index: &u8| index < 6);
        let arg = arg.ok_or_else(|| self.fault(at, "expected an argument, arg0 to arg5"))?;
        let mask = if self.take("&") {
            self.number()?
        } else {
            u64::MAX
        };
        let compare = [
            ("==", Compare::Eq),
            ("!=", Compare::Ne),
            ("<=", Compare::Le),
            (">=", Compare::Ge),
            ("=", Compare::Eq),
            ("<", Compare::Lt),
            (">", Compare::Gt),
        ];
        self.skip_space();
        let found = compare.into_iter().find(|(token, _)| self.take(token));
        let (_, compare) =
            found.ok_or_else(|| self.fault(self.at, "expected =, !=, <, <=, > or >="))?;
        if self.take("*") {
            return Ok(None);
        }
        Ok(Some(ArgCondition {
            arg,
            mask,
            compare,
            value: self.number()?,
        }))
    }

    fn action(&mut self) -> Result<Expected, ExpectationError> {
        let (mut at, mut name) = self.word("an action")?;
        let negated = name == "not";
        if negated {
            (at, name) = self.word("an action")?;
        }
        let known = [
            "ALLOW",
            "LOG",
            "TRACE",
            "USER_NOTIF",
            "ERRNO",
            "TRAP",
            "KILL_THREAD",
            "KILL_PROCESS",
            "KILL",
        ];
        if !known.contains(&name) {
            let known = known.join(", ");
            return Err(self.fault(at, format!("{name:?} is no action; there are {known}")));
        }
        let mut data = None;
        if self.take("(") {
            let (at, word) = self.word("data")?;
            let number = parse_number(word).and_then(|number| u16::try_from(number).ok());
            let number = number.or_else(|| errno::number(word));
            data = Some(number.ok_or_else(|| {
                self.fault(
                    at,
                    format!("{word:?} is neither an error's name nor a 16-bit number"),
                )
            })?);
            // `ERRNO(1 EPERM)` is how the actions are printed.
            if !self.take(")") {
                let (at, again) = self.word(")")?;
                if errno::number(again) != data {
                    return Err(self.fault(at, format!("{again} is not error {word}")));
                }
                self.expect(")")?;
            }
        }
        Ok(Expected {
            negated,
            name: name.to_owned(),
            data,
        })
    }
}

fn parse_number(word: &str) -> Option<u64> {
    let digits = word.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => match digits.strip_prefix('-') {
            Some(rest) => rest.parse().ok().map(u64::wrapping_neg),
            None => digits.parse().ok(),
        },
    }
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

    /// Whether the answer is the same whatever the action's data are.
    fn ignores_data(&self) -> bool {
        self.data.is_none()
    }
}

impl Analysis {
    /// Whether the filters meet an expectation; if not, how they miss it.
    /// `stack` is what was analysed.
    pub fn check(
        &mut self,
        wanted: &Expectation,
        stack: &Stack,
    ) -> Result<Option<Miss>, TooComplex> {
        let scope = self.scope(wanted)?;
        let inside = self.space.diagram.choose(scope, self.outcome, Ref::FALSE)?;
        let mut undecided = None;
        for leaf in self.space.diagram.exits(inside, LEAF_LEVEL) {
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
            match self.space.example(when)? {
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

    /// The calls that an expectation speaks of.
    fn scope(&mut self, wanted: &Expectation) -> Result<Ref, TooComplex> {
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

    fn numbers(&mut self, wanted: &Expectation, arch: Option<Arch>) -> Result<Ref, TooComplex> {
        let number = match (&wanted.calls, arch) {
            (CallSet::Every, None) => return Ok(Ref::TRUE),
            (CallSet::Every, Some(arch)) => return self.space.number_range(arch),
            (CallSet::Unnamed, Some(arch)) => return self.space.unnamed_numbers(arch),
            // Where nothing has a name, everything is unnamed.
            (CallSet::Unnamed, None) => return Ok(Ref::TRUE),
            (CallSet::Number(number), _) => *number | arch.map_or(0, Arch::bias),
            (CallSet::Named(name), Some(arch)) => calls::number(arch, name).unwrap_or(u32::MAX),
            (CallSet::Named(_), None) => return Ok(Ref::FALSE),
        };
        let levels = field_of_input(level(Word::NR, 0));
        let field = Field { levels, name: "nr" };
        field.interval(&mut self.space.diagram, number.into(), number.into())
    }

    fn argument(&mut self, condition: &ArgCondition) -> Result<Ref, TooComplex> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_line_and_column() {
        let fault = |text| read_expectations(text).unwrap_err().to_string();
        assert_eq!(
            fault("# list\nx86_64 opneat -> ALLOW"),
            "line 2, column 8: x86_64 has no call named \"opneat\" (is it openat?)"
        );
        assert_eq!(
            fault("x86_64 read = ALLOW"),
            "line 1, column 13: expected \"->\""
        );
        assert_eq!(
            fault("x86_64 read(arg7=1) -> ALLOW"),
            "line 1, column 13: expected an argument, arg0 to arg5"
        );
        assert!(
            fault("x86_64 read -> PERMIT")
                .starts_with("line 1, column 16: \"PERMIT\" is no action")
        );
        assert!(fault("x86_64 read -> ERRNO(EWHAT)").contains("EWHAT"));
        assert!(fault("any read -> ALLOW").contains("named architectures only"));
    }

    #[test]
    fn expectations_are_read_as_written() {
        let text =
            "x86_64,i386 socket(arg0=16, arg1 & 0x40 != 0, arg2=*)->ERRNO(1 EPERM) # no netlink\n";
        let list = read_expectations(text).unwrap();
        let [only] = &list[..] else {
            panic!("one line")
        };
        assert_eq!(
            only.archs,
            [ArchSet::Named(Arch::X86_64), ArchSet::Named(Arch::I386)]
        );
        assert_eq!(only.calls, CallSet::Named("socket".to_owned()));
        assert_eq!(only.conditions.len(), 2);
        assert_eq!(only.conditions[1].mask, 0x40);
        assert_eq!(only.action.data, Some(1));
        assert!(only.action.accepts(Action::Errno(1)));
        assert!(!only.action.accepts(Action::Errno(2)));
    }
}
