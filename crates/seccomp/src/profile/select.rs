//! Which rules of a profile count on a machine, and for which architectures.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Arg, Filter, Op, Profile};
use crate::action::Action;
use crate::arch::Arch;
use crate::calls;

/// A kernel version: what profiles compare is its first two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// The newest kernel whose calls are known here.
    pub const NEWEST: Version = Version(6, 18);

    /// Reads `6.18`, or a release such as `6.18.3-arch1`.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = text.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next().unwrap_or("0");
        let digits = minor
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(minor.len());
        Some(Version(major, minor[..digits].parse().ok()?))
    }
}

/// Where the container runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The machine's own architecture.
    pub arch: Arch,
    /// The container's capabilities.
    pub caps: BTreeSet<String>,
    /// The kernel's version.
    pub kernel: Version,
}

/// Something about a profile that its author may not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// No architecture here has a call of this name; the rule has no effect.
    UnknownCall(String),
    /// The profile names an architecture whose calls have no names here.
    UnknownArch(String),
    /// The machine has no capabilities, and so many rules count only with some.
    NoCapabilities(usize),
    /// Rules of one call have different actions, and conditions that may hold
    /// together; which one counts then is libseccomp's order.
    Conflict(String),
}

/// One rule of one call: the conditions (all required) and what happens.
pub(super) type Alternative = (Vec<Arg>, Action);

/// The rules of one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArchRules {
    pub(super) arch: Arch,
    /// For every call with rules its number, and the rules in their order.
    pub(super) calls: Vec<(u32, Vec<Alternative>)>,
}

impl Filter {
    fn holds_everywhere(&self, machine: &Machine) -> bool {
        let arch = self.arches.is_empty() || self.names_arch(machine);
        let caps = self.caps.iter().all(|cap| machine.caps.contains(cap));
        arch && caps && self.min_kernel.is_none_or(|least| machine.kernel >= least)
    }

    fn holds_somewhere(&self, machine: &Machine) -> bool {
        let caps = self.caps.iter().any(|cap| machine.caps.contains(cap));
        let kernel = self.min_kernel.is_some_and(|least| machine.kernel >= least);
        self.names_arch(machine) || caps || kernel
    }

    fn names_arch(&self, machine: &Machine) -> bool {
        self.arches
            .iter()
            .any(|arch| arch == machine.arch.docker_name())
    }
}

impl Profile {
    /// The architectures that the filter is for on a machine, its own first.
    pub(super) fn architectures(&self, machine: &Machine, notes: &mut Vec<Note>) -> Vec<Arch> {
        let own = [machine.arch.profile_name().to_owned()];
        let mapped = self.arch_map.iter().find(|(name, _)| *name == own[0]);
        let others = mapped.map_or(&self.architectures, |(_, others)| others);
        let mut archs = Vec::new();
        for name in own.iter().chain(others) {
            match Arch::from_name(name) {
                Some(arch) if !archs.contains(&arch) => archs.push(arch),
                Some(_) => {}
                None => notes.push(Note::UnknownArch(name.clone())),
            }
        }
        archs
    }

    /// The rules that count on a machine, for each of its architectures.
    pub(super) fn select(&self, machine: &Machine, notes: &mut Vec<Note>) -> Vec<ArchRules> {
        let counts = self.rules.iter().filter(|rule| {
            rule.includes.holds_everywhere(machine)
                && !rule.excludes.holds_somewhere(machine)
                && rule.action != self.default
        });
        let counts: Vec<_> = counts.collect();
        if machine.caps.is_empty() {
            let skipped = self
                .rules
                .iter()
                .filter(|rule| !rule.includes.caps.is_empty());
            match skipped.count() {
                0 => {}
                skipped => notes.push(Note::NoCapabilities(skipped)),
            }
        }
        let mut unknown = BTreeSet::new();
        for name in counts.iter().flat_map(|rule| &rule.names) {
            if !calls::is_known(name) && unknown.insert(name) {
                notes.push(Note::UnknownCall(name.clone()));
            }
        }
        let archs = self.architectures(machine, notes);
        let mut conflicts = BTreeSet::new();
        let rules = archs.into_iter().map(|arch| {
            let mut selected: Vec<(u32, Vec<Alternative>)> = Vec::new();
            for rule in &counts {
                for name in &rule.names {
                    for (number, extra) in numbers(arch, name) {
                        let place = selected.iter().position(|&(known, _)| known == number);
                        let place = place.unwrap_or_else(|| {
                            selected.push((number, Vec::new()));
                            selected.len() - 1
                        });
                        for mut args in alternatives(&rule.args) {
                            // The selector takes the place of the first argument.
                            if let Some(selector) = extra {
                                args.retain(|arg| arg.index != selector.index);
                                args.insert(0, selector);
                            }
                            add(&mut selected[place].1, args, rule.action);
                        }
                    }
                }
            }
            selected.retain(|(_, alternatives)| !alternatives.is_empty());
            for (number, alternatives) in &mut selected {
                let action = alternatives[0].1;
                if alternatives.iter().any(|(_, other)| *other != action) {
                    alternatives.sort_by_key(|(args, _)| precedence(args));
                    let name = calls::name(arch, *number).unwrap_or_default();
                    conflicts.insert(name.to_owned());
                }
            }
            ArchRules {
                arch,
                calls: selected,
            }
        });
        let rules = rules.collect();
        notes.extend(conflicts.into_iter().map(Note::Conflict));
        rules
    }
}

/// Where rules of one call with different actions stand in libseccomp's order
/// (observed with version 2.5.4): conditions on later arguments first; on one
/// argument masks, then equality from the greatest value down, then upper bounds
/// from the least, then lower bounds from the greatest.
fn precedence(args: &[Arg]) -> Vec<(Reverse<u8>, u8, u64)> {
    let mut keys: Vec<_> = args
        .iter()
        .map(|arg| {
            let (class, value) = match arg.op {
                Op::MaskedEq => (0, 0),
                Op::Eq | Op::Ne => (1, !arg.value),
                Op::Le | Op::Lt => (2, arg.value),
                Op::Ge | Op::Gt => (3, !arg.value),
            };
            (Reverse(arg.index), class, value)
        })
        .collect();
    keys.sort();
    keys
}

/// Adds one rule to those of a call. Of two rules where one has all conditions
/// of the other and more, only the other counts, whatever their actions and
/// order; so a rule without conditions stands alone.
fn add(known: &mut Vec<Alternative>, args: Vec<Arg>, action: Action) {
    let has_all = |args: &[Arg], of: &[Arg]| of.iter().all(|arg| args.contains(arg));
    if known.iter().any(|(others, _)| has_all(&args, others)) {
        return;
    }
    known.retain(|(others, _)| !has_all(others, &args));
    known.push((args, action));
}

/// The rules that one set of conditions stands for: several conditions on one
/// argument are rules of their own.
fn alternatives(args: &[Arg]) -> Vec<Vec<Arg>> {
    let repeated = (0..6).any(|index| args.iter().filter(|arg| arg.index == index).count() > 1);
    if repeated {
        args.iter().map(|&arg| vec![arg]).collect()
    } else {
        vec![args.to_vec()]
    }
}

/// The numbers by which a call is reached, perhaps on a condition: on i386 the
/// socket calls and System V IPC also through `socketcall` and `ipc`, which take
/// a selector first.
fn numbers(arch: Arch, name: &str) -> Vec<(u32, Option<Arg>)> {
    let mut numbers = Vec::new();
    numbers.extend(calls::number(arch, name).map(|number| (number, None)));
    if arch == Arch::I386 {
        for (multiplexer, selectors) in [("socketcall", SOCKETCALL), ("ipc", IPC)] {
            let selector = selectors.iter().find(|(_, known)| *known == name);
            let number = calls::number(arch, multiplexer);
            if let (Some(&(value, _)), Some(number)) = (selector, number) {
                let selected = Arg {
                    index: 0,
                    op: Op::Eq,
                    value,
                    value_two: 0,
                };
                numbers.push((number, Some(selected)));
            }
        }
    }
    numbers
}

/// Selectors of `socketcall` (`linux/net.h`).
const SOCKETCALL: &[(u64, &str)] = &[
    (1, "socket"),
    (2, "bind"),
    (3, "connect"),
    (4, "listen"),
    (5, "accept"),
    (6, "getsockname"),
    (7, "getpeername"),
    (8, "socketpair"),
    (9, "send"),
    (10, "recv"),
    (11, "sendto"),
    (12, "recvfrom"),
    (13, "shutdown"),
    (14, "setsockopt"),
    (15, "getsockopt"),
    (16, "sendmsg"),
    (17, "recvmsg"),
    (18, "accept4"),
    (19, "recvmmsg"),
    (20, "sendmmsg"),
];

/// Selectors of `ipc` (`linux/ipc.h`).
const IPC: &[(u64, &str)] = &[
    (1, "semop"),
    (2, "semget"),
    (3, "semctl"),
    (4, "semtimedop"),
    (11, "msgsnd"),
    (12, "msgrcv"),
    (13, "msgget"),
    (14, "msgctl"),
    (21, "shmat"),
    (22, "shmdt"),
    (23, "shmget"),
    (24, "shmctl"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert_eq!(Version::parse("6.18.3-generic"), Some(Version(6, 18)));
        assert_eq!(Version::parse("4.8-rc1"), Some(Version(4, 8)));
        assert_eq!(Version::parse("5"), Some(Version(5, 0)));
        assert_eq!(Version::parse("new"), None);
        assert!(Version(4, 10) > Version(4, 8));
    }
}
