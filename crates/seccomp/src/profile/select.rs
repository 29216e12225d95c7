//! Selection of the rules of a profile for a machine and its architectures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use isa::classic::MAX_INSNS;
use spec::kernel::KernelVersion;

use super::{ArgCondition, ArgOp, CompileError, ContainerProfile, MachineCondition, SyscallRule};
use crate::action::Action;
use crate::arch::Arch;
use crate::calls;

/// The newest kernel whose calls are supported.
pub const NEWEST_KERNEL: KernelVersion = KernelVersion::new(6, 18, 0);

/// The machine of the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetMachine {
    /// The machine's own architecture.
    pub arch: Arch,
    /// The container's capabilities.
    pub caps: BTreeSet<String>,
    /// The kernel's version.
    pub kernel: KernelVersion,
    /// The program that installs the filter.
    pub runtime: Runtime,
}

/// The program that makes a filter of a profile and installs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// runc 1.2: where the default action refuses calls, those with greater numbers than any
    /// call that the profile names get ENOSYS, as from a kernel that lacks them.
    #[default]
    Runc,
    /// The code of libseccomp alone, as crun installs it.
    Libseccomp,
}

impl Runtime {
    /// True if calls above the newest that a profile names get ENOSYS. To runc, a default
    /// that a tracer decides allows.
    pub(super) fn refuses_newer_calls(self, default: Action) -> bool {
        const ENOSYS: u16 = 38;
        let refuses = match default {
            Action::Allow | Action::Log | Action::Trace(_) => false,
            // The same action for all numbers.
            Action::Errno(ENOSYS) => false,
            Action::Errno(_)
            | Action::Trap(_)
            | Action::UserNotif
            | Action::KillThread
            | Action::KillProcess
            | Action::Unknown(_) => true,
        };
        refuses && self == Runtime::Runc
    }
}

/// Flags that runc 1.2 knows (`setFlag` of libcontainer/seccomp/seccomp_linux.go).
const RUNC_FLAGS: &[&str] = &[
    "SECCOMP_FILTER_FLAG_TSYNC",
    "SECCOMP_FILTER_FLAG_LOG",
    "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
];

/// A note for the author of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileNote {
    /// No supported architecture has a call of this name; the rule has no effect.
    UnknownCall(String),
    /// The profile names an unsupported architecture.
    UnknownArch(String),
    /// The profile has a flag that runc does not know.
    UnknownFlag(String),
    /// Number of rules that do not apply because the machine has no capabilities.
    NoCapabilities(usize),
    /// A rule has no effect on a call that it names, because another rule decides it.
    Ineffective {
        /// Its place in the profile's list of rules.
        rule: usize,
        /// The call.
        call: String,
        /// The place of the rule that decides the call.
        by: usize,
        /// The action of that rule.
        action: Action,
    },
    /// Rules of one call have different actions and overlapping conditions; libseccomp's
    /// order decides.
    Conflict(String),
}

impl fmt::Display for ProfileNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileNote::Ineffective {
                rule,
                call,
                by,
                action,
            } => write!(
                f,
                "syscalls[{rule}] has no effect on {call}: syscalls[{by}] decides it ({action})"
            ),
            ProfileNote::NoCapabilities(skipped) => write!(
                f,
                "no capabilities are assumed; rules skipped that need some: {skipped}"
            ),
            ProfileNote::UnknownCall(name) => write!(
                f,
                "no supported architecture has a call {name}: its rules have no effect"
            ),
            ProfileNote::UnknownArch(name) => {
                write!(f, "{name} is ignored: names of its calls are not built in")
            }
            ProfileNote::UnknownFlag(name) => write!(f, "flag {name} is unknown to runc"),
            ProfileNote::Conflict(name) => write!(
                f,
                "rules for {name} have different actions; where the conditions of several hold, \
                 libseccomp's order decides"
            ),
        }
    }
}

/// A rule of one call: a conjunction of conditions and an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternative {
    pub(super) args: Vec<ArgCondition>,
    pub(super) action: Action,
    /// Its place in the profile's list of rules.
    pub(super) rule: usize,
}

/// The rules of one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArchRules {
    pub(super) arch: Arch,
    /// The greatest number of a call that the rules name, those with the default action
    /// included; `None` if they name none.
    pub(super) newest: Option<u32>,
    /// Number and rules of each call, in order.
    pub(super) calls: Vec<(u32, Vec<Alternative>)>,
}

impl MachineCondition {
    fn is_satisfied(&self, machine: &TargetMachine) -> bool {
        let arch = self.arches.is_empty() || self.names_arch(machine);
        let caps = self.caps.iter().all(|cap| machine.caps.contains(cap));
        let kernel = self
            .min_kernel
            .is_none_or(|least| is_at_least(machine.kernel, least));
        arch && caps && kernel
    }

    fn is_partly_satisfied(&self, machine: &TargetMachine) -> bool {
        let caps = self.caps.iter().any(|cap| machine.caps.contains(cap));
        let kernel = self
            .min_kernel
            .is_some_and(|least| is_at_least(machine.kernel, least));
        self.names_arch(machine) || caps || kernel
    }

    fn names_arch(&self, machine: &TargetMachine) -> bool {
        self.arches
            .iter()
            .any(|arch| arch == machine.arch.docker_name())
    }
}

/// Compares the first two numbers, as runc and Docker do.
fn is_at_least(kernel: KernelVersion, least: KernelVersion) -> bool {
    (kernel.major, kernel.minor) >= (least.major, least.minor)
}

impl SyscallRule {
    fn applies(&self, machine: &TargetMachine) -> bool {
        self.includes.is_satisfied(machine) && !self.excludes.is_partly_satisfied(machine)
    }
}

impl ContainerProfile {
    /// The architectures of the filter on a machine, the native one first.
    pub(super) fn architectures(
        &self,
        machine: &TargetMachine,
        notes: &mut Vec<ProfileNote>,
    ) -> Vec<Arch> {
        let own = [machine.arch.profile_name().to_owned()];
        let mapped = self.arch_map.iter().find(|(name, _)| *name == own[0]);
        let others = mapped.map_or(&self.architectures, |(_, others)| others);
        let mut archs = Vec::new();
        for name in own.iter().chain(others) {
            match Arch::from_name(name) {
                Some(arch) if !archs.contains(&arch) => archs.push(arch),
                Some(_) => {}
                None => notes.push(ProfileNote::UnknownArch(name.clone())),
            }
        }
        archs
    }

    /// Notes flags that runc does not know.
    ///
    /// # Errors
    /// If the runtime is runc, for what its `InitSeccomp` refuses, in its order.
    pub(super) fn check_runtime(
        &self,
        machine: &TargetMachine,
        notes: &mut Vec<ProfileNote>,
    ) -> Result<(), CompileError> {
        let is_runc = machine.runtime == Runtime::Runc;
        let notifies_write = |rule: &SyscallRule| {
            rule.action == Action::UserNotif
                && rule.applies(machine)
                && rule.names.iter().any(|name| name == "write")
        };
        match self.rules.iter().position(notifies_write) {
            Some(rule) if is_runc => return Err(CompileError::NotifyWrite(rule)),
            _ => {}
        }
        if is_runc && self.default == Action::UserNotif {
            return Err(CompileError::NotifyDefault);
        }
        let known = |flag: &&String| RUNC_FLAGS.contains(&flag.as_str());
        let mut unknown = self.flags.iter().filter(|flag| !known(flag));
        match (is_runc, unknown.next()) {
            (true, Some(flag)) => Err(CompileError::UnknownFlag(flag.clone())),
            (_, first) => {
                let unknown = first.into_iter().chain(unknown).cloned();
                notes.extend(unknown.map(ProfileNote::UnknownFlag));
                Ok(())
            }
        }
    }

    /// The rules that apply on a machine, for each of its architectures.
    pub(super) fn select(
        &self,
        machine: &TargetMachine,
        notes: &mut Vec<ProfileNote>,
    ) -> Vec<ArchRules> {
        let rules = self.rules.iter().enumerate();
        let applies = rules.filter(|(_, rule)| rule.applies(machine));
        // As in runc, a rule with the default action is left out.
        let (defaults, counts): (Vec<_>, Vec<_>) =
            applies.partition(|(_, rule)| rule.action == self.default);
        let mut first: HashMap<&str, (usize, Action)> = HashMap::new();
        for (at, rule) in &counts {
            for name in &rule.names {
                first.entry(name).or_insert((*at, rule.action));
            }
        }
        let mut overridden = Overridden::default();
        for (rule, of_default) in &defaults {
            for name in &of_default.names {
                if let Some(&(by, action)) = first.get(name.as_str()) {
                    overridden.add(*rule, name, by, action);
                }
            }
        }
        if machine.caps.is_empty() {
            let skipped = self
                .rules
                .iter()
                .filter(|rule| !rule.includes.caps.is_empty());
            match skipped.count() {
                0 => {}
                skipped => notes.push(ProfileNote::NoCapabilities(skipped)),
            }
        }
        let mut unknown = BTreeSet::new();
        for name in counts.iter().flat_map(|(_, rule)| &rule.names) {
            if !calls::is_known(name) && unknown.insert(name) {
                notes.push(ProfileNote::UnknownCall(name.clone()));
            }
        }
        let archs = self.architectures(machine, notes);
        let mut conflicts = BTreeSet::new();
        let named = defaults.iter().chain(&counts);
        let named: Vec<&String> = named.flat_map(|(_, rule)| &rule.names).collect();
        let rules = archs.into_iter().map(|arch| {
            let newest = named
                .iter()
                .filter_map(|name| direct_number(arch, name))
                .max();
            let mut selected: Vec<(u32, Vec<Alternative>)> = Vec::new();
            for &(at, rule) in &counts {
                for name in &rule.names {
                    for (number, extra) in numbers(arch, name) {
                        let place = selected.iter().position(|&(known, _)| known == number);
                        let place = place.unwrap_or_else(|| {
                            selected.push((number, Vec::new()));
                            selected.len() - 1
                        });
                        // Each takes an instruction, so there is no filter of more.
                        let room = (MAX_INSNS + 1).saturating_sub(selected[place].1.len());
                        for mut args in alternatives(&rule.args).into_iter().take(room) {
                            // The selector is the first argument.
                            if let Some(selector) = extra {
                                args.retain(|arg| arg.index != selector.index);
                                args.insert(0, selector);
                            }
                            let alternative = Alternative {
                                args,
                                action: rule.action,
                                rule: at,
                            };
                            let dropped = add(&mut selected[place].1, alternative);
                            for (loser, by, action) in dropped {
                                overridden.add(loser, name, by, action);
                            }
                        }
                    }
                }
            }
            selected.retain(|(_, alternatives)| !alternatives.is_empty());
            for (number, alternatives) in &mut selected {
                let name = calls::name(arch, *number).unwrap_or_default();
                for alternative in &*alternatives {
                    overridden.remove(alternative.rule, name);
                }
                let action = alternatives[0].action;
                if alternatives.iter().any(|other| other.action != action) {
                    alternatives.sort_by_key(|alternative| precedence(&alternative.args));
                    conflicts.insert(name.to_owned());
                }
            }
            ArchRules {
                arch,
                newest: newest.filter(|&number| number != 0),
                calls: selected,
            }
        });
        let rules = rules.collect();
        notes.extend(overridden.notes());
        notes.extend(conflicts.into_iter().map(ProfileNote::Conflict));
        rules
    }
}

/// The order of rules of one call with different actions in libseccomp (observed with
/// version 2.5.4): conditions on later arguments first; on one argument masks, then
/// equality from the greatest value down, then upper bounds from the least, then lower
/// bounds from the greatest.
fn precedence(args: &[ArgCondition]) -> Vec<(Reverse<u8>, u8, u64)> {
    let mut keys: Vec<_> = args
        .iter()
        .map(|arg| {
            let (class, value) = match arg.op {
                ArgOp::MaskedEq => (0, 0),
                ArgOp::Eq | ArgOp::Ne => (1, !arg.value),
                ArgOp::Le | ArgOp::Lt => (2, arg.value),
                ArgOp::Ge | ArgOp::Gt => (3, !arg.value),
            };
            (Reverse(arg.index), class, value)
        })
        .collect();
    keys.sort();
    keys
}

/// Rules that other rules override, with the call, the other rule and its action.
#[derive(Default)]
struct Overridden(BTreeMap<(usize, String), (usize, Action)>);

impl Overridden {
    fn add(&mut self, rule: usize, call: &str, by: usize, action: Action) {
        self.0
            .entry((rule, call.to_owned()))
            .or_insert((by, action));
    }

    /// Takes a rule out that decides a call for some arguments.
    fn remove(&mut self, rule: usize, call: &str) {
        self.0.remove(&(rule, call.to_owned()));
    }

    fn notes(self) -> impl Iterator<Item = ProfileNote> {
        self.0
            .into_iter()
            .map(|((rule, call), (by, action))| ProfileNote::Ineffective {
                rule,
                call,
                by,
                action,
            })
    }
}

/// Adds one rule to those of a call. Of two rules where one has all conditions
/// of the other and more, only the other counts, whatever their actions and
/// order; so a rule without conditions stands alone. Returns the rules that no longer
/// count, with the rule that does and its action, where the actions differ.
fn add(known: &mut Vec<Alternative>, new: Alternative) -> Vec<(usize, usize, Action)> {
    let has_all =
        |args: &[ArgCondition], of: &[ArgCondition]| of.iter().all(|arg| args.contains(arg));
    if let Some(other) = known.iter().find(|other| has_all(&new.args, &other.args)) {
        let differs = other.action != new.action;
        let lost = (new.rule, other.rule, other.action);
        return differs.then_some(lost).into_iter().collect();
    }
    let mut dropped = Vec::new();
    known.retain(|other| {
        let is_lost = has_all(&other.args, &new.args);
        if is_lost && other.action != new.action {
            dropped.push((other.rule, new.rule, new.action));
        }
        !is_lost
    });
    known.push(new);
    dropped
}

/// Expands a set of conditions: several conditions on one argument become separate rules.
fn alternatives(args: &[ArgCondition]) -> Vec<Vec<ArgCondition>> {
    let repeated = (0..6).any(|index| args.iter().filter(|arg| arg.index == index).count() > 1);
    if repeated {
        args.iter().map(|&arg| vec![arg]).collect()
    } else {
        vec![args.to_vec()]
    }
}

/// The numbers of a call, with a condition where needed: on i386, s390x and ppc64le the socket calls and
/// System V IPC are also available through `socketcall` and `ipc`, whose first argument is
/// a selector.
fn numbers(arch: Arch, name: &str) -> Vec<(u32, Option<ArgCondition>)> {
    let mut numbers = Vec::new();
    numbers.extend(calls::number(arch, name).map(|number| (number, None)));
    if has_multiplexers(arch) {
        for (multiplexer, selectors) in [("socketcall", SOCKETCALL), ("ipc", IPC)] {
            let selector = selector(selectors, name);
            let number = calls::number(arch, multiplexer);
            if let (Some(value), Some(number)) = (selector, number) {
                let selected = ArgCondition {
                    index: 0,
                    op: ArgOp::Eq,
                    value,
                    value_two: 0,
                };
                numbers.push((number, Some(selected)));
            }
        }
    }
    numbers
}

/// The number of a call that libseccomp finds for a name: none for calls that are also
/// available through a multiplexer.
fn direct_number(arch: Arch, name: &str) -> Option<u32> {
    let is_multiplexed = [SOCKETCALL, IPC]
        .iter()
        .any(|all| selector(all, name).is_some());
    calls::number(arch, name).filter(|_| !(has_multiplexers(arch) && is_multiplexed))
}

fn has_multiplexers(arch: Arch) -> bool {
    matches!(arch, Arch::I386 | Arch::S390x | Arch::Ppc64le)
}

fn selector(selectors: &[(u64, &str)], name: &str) -> Option<u64> {
    let known = selectors.iter().find(|(_, known)| *known == name);
    known.map(|(value, _)| *value)
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
    fn versions_compare_by_their_first_two_numbers() {
        let is_at_least = |kernel: (u8, u8, u16), least: (u8, u8, u16)| {
            let version = |(major, minor, patch)| KernelVersion::new(major, minor, patch);
            is_at_least(version(kernel), version(least))
        };
        assert!(is_at_least((4, 10, 0), (4, 8, 0)));
        assert!(is_at_least((4, 8, 0), (4, 8, 7)));
        assert!(!is_at_least((4, 7, 9), (4, 8, 0)));
    }
}
