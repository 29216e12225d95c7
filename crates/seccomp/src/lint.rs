//! Lints: common mistakes in filters.
//!
//! Findings are queries on the symbolic outcome of the filters, not patterns in their code,
//! so they do not depend on how the code is written. Where possible they have an example
//! call.

use classic::SeccompData;
use isa::classic::Insn;

use crate::action::{Action, MAX_ERRNO};
use crate::arch::Arch;
use crate::calls;
use crate::filter::Stack;
use crate::symbolic::TooComplex;
use crate::symbolic::diagram::{LEAF_LEVEL, OverBudget, Ref};
use crate::symbolic::solver::Verdict;
use crate::symbolic::value::{ARCH, NR, high_half};
use crate::table::Analysis;

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The action does not depend on the architecture, so a call by another architecture's
    /// convention is treated as the call of that number.
    NoArchCheck,
    /// Calls of architectures that the filters do not test are allowed.
    ForeignArchAllowed {
        /// An example call.
        example: Option<SeccompData>,
    },
    /// Denied x86_64 calls are allowed under their x32 numbers.
    X32Allowed {
        /// Their names.
        calls: Vec<&'static str>,
        /// An allowed call.
        example: Option<SeccompData>,
    },
    /// Unnamed numbers, including calls of later kernels, are allowed.
    DefaultAllow {
        /// Architecture.
        arch: Arch,
        /// The numbers, as a condition on `nr`; `all` for every unnamed number.
        numbers: String,
        /// A call of such a number.
        example: Option<SeccompData>,
    },
    /// A condition on a 64-bit argument tests its low half only.
    LowHalfOnly {
        /// Architecture.
        arch: Arch,
        /// System call.
        call: &'static str,
        /// Argument index.
        arg: u8,
    },
    /// The kernel ignores the upper half of this argument, the filter does not: with bits
    /// set there, a denied call is allowed.
    UpperHalfEvades {
        /// Architecture.
        arch: Arch,
        /// System call.
        call: &'static str,
        /// Argument index.
        arg: u8,
        /// An allowed call.
        example: Option<SeccompData>,
    },
    /// A rule denies a call, at least for some arguments, but another call with the same
    /// effect is allowed.
    SiblingAllowed {
        /// Architecture.
        arch: Arch,
        /// The denied call.
        refused: &'static str,
        /// The allowed call.
        allowed: &'static str,
    },
    /// Unreachable instructions.
    Unreachable {
        /// Index of the filter in the order of installation.
        filter: usize,
        /// Indexes of the instructions.
        insns: Vec<usize>,
    },
    /// A return value whose action the kernel does not know: it kills the
    /// process.
    UnknownAction {
        /// Index of the filter.
        filter: usize,
        /// Index of the instruction.
        insn: usize,
        /// The value.
        value: u32,
    },
    /// An error number that the kernel caps to 4095.
    ErrnoTooLarge {
        /// Index of the filter.
        filter: usize,
        /// Index of the instruction.
        insn: usize,
        /// The number.
        errno: u16,
    },
}

impl Analysis {
    /// The findings in the filters of the analysed `stack`.
    pub fn findings(&mut self, stack: &Stack) -> Result<Vec<Finding>, TooComplex> {
        self.within_budget(|analysis| analysis.all_findings(stack))
    }

    fn all_findings(&mut self, stack: &Stack) -> Result<Vec<Finding>, OverBudget> {
        let mut found = Vec::new();
        let support = self.space.diagram.support(self.outcome)?;
        let looks_at =
            |levels: std::ops::Range<u16>| support.iter().any(|bit| levels.contains(bit));
        let mut archs = self.singled_out()?;
        if !looks_at(ARCH) {
            if looks_at(NR) {
                found.push(Finding::NoArchCheck);
            }
            archs = Arch::native().into_iter().collect();
        } else {
            self.find_foreign(&mut found)?;
        }
        if archs.contains(&Arch::X86_64) {
            self.find_x32(&mut found)?;
        }
        for &arch in archs.iter().filter(|&&arch| arch != Arch::X32) {
            self.find_default_allow(arch, &mut found)?;
            if !arch.has_narrow_arguments() {
                self.find_halves(arch, &mut found)?;
            }
            self.find_siblings(arch, &mut found)?;
        }
        self.find_in_code(stack, &mut found);
        Ok(found)
    }

    fn always_allows(&mut self, f: Ref) -> Result<bool, OverBudget> {
        let leaves = self.space.diagram.exits(f, LEAF_LEVEL)?;
        Ok(leaves.iter().all(|&leaf| self.leaf_allows(leaf)))
    }

    fn leaf_allows(&self, leaf: Ref) -> bool {
        // Leaf 0 is the empty set of calls.
        leaf.value()
            .is_some_and(|leaf| leaf > 1 && self.space.outcomes.at(leaf).action().allows())
    }

    /// The set of calls that a function allows.
    fn allowed_calls(&mut self, f: Ref) -> Result<Ref, OverBudget> {
        let outcomes = &self.space.outcomes;
        self.space.diagram.map(f, LEAF_LEVEL, &mut |leaf| {
            let leaf = leaf.value().unwrap_or_default();
            Ref::of(leaf > 1 && outcomes.at(leaf).action().allows())
        })
    }

    fn shown(&mut self, condition: Ref) -> Result<Option<Option<SeccompData>>, OverBudget> {
        Ok(match self.space.example(condition) {
            Verdict::Never => None,
            Verdict::Unknown => Some(None),
            Verdict::Example(data) => Some(Some(data)),
        })
    }

    /// Finds the unnamed numbers that are allowed for all arguments. Other unnamed numbers
    /// may be denied (those with the x32 bit, in filters of libseccomp).
    fn find_default_allow(
        &mut self,
        arch: Arch,
        found: &mut Vec<Finding>,
    ) -> Result<(), OverBudget> {
        let outcome = self.of_arch(arch)?;
        let unnamed = self.space.unnamed_numbers(arch)?;
        let mut allowed = Ref::FALSE;
        for (set, rest) in self.space.unnamed(outcome, arch)? {
            if self.always_allows(rest)? {
                allowed = self.space.diagram.or(allowed, set)?;
            }
        }
        if allowed == Ref::FALSE {
            return Ok(());
        }
        let numbers = match allowed == unnamed {
            true => "all".to_owned(),
            false => self.space.set_text(allowed)?,
        };
        let context = self.space.context(arch, None)?;
        let condition = self.space.diagram.and(context, allowed)?;
        let example = self.shown(condition)?.flatten();
        found.push(Finding::DefaultAllow {
            arch,
            numbers,
            example,
        });
        Ok(())
    }

    fn find_foreign(&mut self, found: &mut Vec<Finding>) -> Result<(), OverBudget> {
        for (set, rest) in self.foreign()? {
            let allowed_calls = self.allowed_calls(rest)?;
            let condition = self.space.diagram.and(set, allowed_calls)?;
            if let Some(example) = self.shown(condition)? {
                found.push(Finding::ForeignArchAllowed { example });
                return Ok(());
            }
        }
        Ok(())
    }

    fn find_x32(&mut self, found: &mut Vec<Finding>) -> Result<(), OverBudget> {
        let mut names = Vec::new();
        let mut shown = None;
        for (nr, name) in calls::all(Arch::X86_64) {
            let Some(twin) = calls::number(Arch::X32, name) else {
                continue;
            };
            let native = self.of_call(Arch::X86_64, nr)?;
            let other = self.of_call(Arch::X32, twin)?;
            let native = self.allowed_calls(native)?;
            let other = self.allowed_calls(other)?;
            let mut evades = self.space.diagram.minus(other, native)?;
            // x32 programs have 32-bit arguments; upper halves are a finding of their own.
            for arg in 0..6 {
                evades = self.space.diagram.restrict(evades, high_half(arg), 0)?;
            }
            let context = self.space.context(Arch::X32, Some(twin))?;
            let evades = self.space.diagram.and(context, evades)?;
            if let Some(example) = self.shown(evades)? {
                names.push(name);
                shown = shown.or(example);
            }
        }
        if !names.is_empty() {
            found.push(Finding::X32Allowed {
                calls: names,
                example: shown,
            });
        }
        Ok(())
    }

    fn find_halves(&mut self, arch: Arch, found: &mut Vec<Finding>) -> Result<(), OverBudget> {
        for (nr, call) in calls::all(arch) {
            let outcome = self.of_call(arch, nr)?;
            if outcome.value().is_some() {
                continue;
            }
            let support = self.space.diagram.support(outcome)?;
            for arg in 0..6 {
                let high = high_half(arg);
                let low = high.end..high.end + 32;
                let is_known = is_32_bit(call, arg);
                if support.iter().any(|bit| high.contains(bit)) {
                    if is_known
                        && let Some(example) = self.upper_half_evades(arch, nr, outcome, arg)?
                    {
                        found.push(Finding::UpperHalfEvades {
                            arch,
                            call,
                            arg,
                            example,
                        });
                    }
                    continue;
                }
                // Tests of single bits need no upper half; comparisons of the value, which
                // depend on several high bits, do.
                let bits = support.iter().filter(|bit| low.contains(bit));
                let compared =
                    bits.clone().count() > 1 && bits.clone().any(|&bit| bit == low.start);
                if compared && !is_known {
                    found.push(Finding::LowHalfOnly { arch, call, arg });
                }
            }
        }
        Ok(())
    }

    fn upper_half_evades(
        &mut self,
        arch: Arch,
        nr: u32,
        outcome: Ref,
        arg: u8,
    ) -> Result<Option<Option<SeccompData>>, OverBudget> {
        let as_seen = self.space.diagram.restrict(outcome, high_half(arg), 0)?;
        let honest = self.allowed_calls(as_seen)?;
        let allowed_calls = self.allowed_calls(outcome)?;
        let evades = self.space.diagram.minus(allowed_calls, honest)?;
        let context = self.space.context(arch, Some(nr))?;
        let evades = self.space.diagram.and(context, evades)?;
        self.shown(evades)
    }

    fn find_siblings(&mut self, arch: Arch, found: &mut Vec<Finding>) -> Result<(), OverBudget> {
        let default = self.default_of(arch)?;
        for &(refused, allowed) in SIBLINGS {
            let numbers = (calls::number(arch, refused), calls::number(arch, allowed));
            let (Some(first), Some(second)) = numbers else {
                continue;
            };
            let first = self.of_call(arch, first)?;
            let second = self.of_call(arch, second)?;
            // A call denied by the default was not denied on purpose.
            let refuses = first != default && !self.always_allows(first)?;
            if refuses && self.always_allows(second)? {
                found.push(Finding::SiblingAllowed {
                    arch,
                    refused,
                    allowed,
                });
            }
        }
        Ok(())
    }

    fn find_in_code(&self, stack: &Stack, found: &mut Vec<Finding>) {
        for (filter, unreachable) in self.unreachable().iter().enumerate() {
            if !unreachable.is_empty() {
                let insns = unreachable.clone();
                found.push(Finding::Unreachable { filter, insns });
            }
        }
        for (filter, program) in stack.filters().iter().enumerate() {
            for (insn, decoded) in program.checked().insns().iter().enumerate() {
                let Insn::RetK(value) = *decoded else {
                    continue;
                };
                if let Action::Unknown(value) = Action::from_return(value) {
                    found.push(Finding::UnknownAction {
                        filter,
                        insn,
                        value,
                    });
                }
                if value >> 16 == 5 && value as u16 > MAX_ERRNO {
                    let errno = value as u16;
                    found.push(Finding::ErrnoTooLarge {
                        filter,
                        insn,
                        errno,
                    });
                }
            }
        }
    }
}

/// Calls that bypass conditions on an older call's arguments: the arguments of `clone3` and
/// `openat2` are in memory, which filters cannot read, and operations of io_uring are not
/// filtered.
const SIBLINGS: &[(&str, &str)] = &[
    ("clone", "clone3"),
    ("open", "openat"),
    ("openat", "openat2"),
    ("execve", "execveat"),
    ("mprotect", "pkey_mprotect"),
    ("fchmodat", "fchmodat2"),
    ("kill", "pidfd_send_signal"),
    ("mount", "move_mount"),
    ("socket", "io_uring_setup"),
    ("connect", "io_uring_setup"),
    ("openat", "io_uring_setup"),
];

/// True if the kernel truncates an argument to 32 bits (by the parameters of its
/// `SYSCALL_DEFINE`s: int, unsigned int, mode_t, ids).
fn is_32_bit(call: &str, arg: u8) -> bool {
    let args: &[u8] = match call {
        "socket" | "socketpair" => &[0, 1, 2],
        "bind" | "connect" | "listen" | "accept" | "shutdown" => &[0, 1],
        "setsockopt" | "getsockopt" => &[0, 1, 2],
        "accept4" => &[0, 3],
        "sendto" | "recvfrom" => &[0, 3],
        "sendmsg" | "recvmsg" => &[0, 2],
        "personality" | "unshare" | "umask" | "setuid" | "setgid" => &[0],
        "ioctl" | "fcntl" | "dup2" | "setns" | "fchmod" | "seccomp" => &[0, 1],
        "dup3" | "fchown" => &[0, 1, 2],
        "open" => &[1, 2],
        "creat" | "mkdir" | "chmod" | "access" | "umount2" | "pipe2" | "memfd_create" => &[1],
        "openat" | "fchmodat" | "faccessat" | "unlinkat" | "mkdirat" => &[0, 2, 3],
        "mknod" | "chown" | "lchown" => &[1, 2],
        "mknodat" => &[0, 2, 3],
        "prctl" | "arch_prctl" | "keyctl" | "close" | "read" | "write" => &[0],
        "kill" | "tkill" | "setreuid" | "setregid" => &[0, 1],
        "tgkill" | "setresuid" | "setresgid" => &[0, 1, 2],
        "futex" => &[1, 2, 5],
        "madvise" => &[2],
        "bpf" => &[0, 2],
        "io_uring_setup" | "epoll_create1" | "inotify_init1" => &[0],
        "clock_gettime" | "clock_settime" | "clock_getres" => &[0],
        "prlimit64" | "getrlimit" | "setrlimit" => &[0, 1],
        "perf_event_open" => &[1, 2, 3],
        "sched_setscheduler" => &[0, 1],
        _ => &[],
    };
    args.contains(&arg)
}
