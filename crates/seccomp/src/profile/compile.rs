//! Compiler of profiles to classic programs.
//!
//! The code tests the architecture first, then whether the call is newer than the profile
//! ([`Runtime`](super::Runtime)), then the number (linear comparisons, or a
//! balanced tree over ranges of numbers with the same rules), then the arguments of the
//! call's rules. Comparisons of 64-bit arguments compare the high half, then the low half
//! if the high halves are equal.

use std::fmt;

use isa::classic::{Cond, MAX_INSNS, SockFilter};

use super::code::{Decision, Graph, Test};
use super::select::{Alternative, ArchRules, ProfileNote, TargetMachine};
use super::{ArgCondition, ArgOp, ContainerProfile};
use crate::action::Action;
use crate::arch::{Arch, ByteOrder, X32_BIT};
use crate::word::Word;

/// Lookup of system call numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramShape {
    /// Linear comparisons in the order of the profile.
    Linear,
    /// A balanced binary search tree.
    #[default]
    Tree,
}

/// A compiled profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The code.
    pub program: Vec<SockFilter>,
    /// Architectures of the filter.
    pub architectures: Vec<Arch>,
    /// Notes for the author of the profile.
    pub notes: Vec<ProfileNote>,
}

/// Reason why a profile is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// The code exceeds Linux's limit. Its length, if known.
    TooLong(Option<usize>),
    /// runc refuses the profile: a rule with SCMP_ACT_NOTIFY for `write`, with which runc itself
    /// passes on the descriptor of the notifications. Its place in the profile's list of rules.
    NotifyWrite(usize),
    /// runc refuses the profile: its default action is SCMP_ACT_NOTIFY.
    NotifyDefault,
    /// runc refuses the profile: a flag that it does not know.
    UnknownFlag(String),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::TooLong(length) => {
                match length {
                    Some(len) => write!(f, "the filter has {len} instructions"),
                    None => write!(f, "the filter has too many instructions"),
                }?;
                write!(f, ": Linux takes {MAX_INSNS}")
            }
            CompileError::NotifyWrite(rule) => write!(
                f,
                "syscalls[{rule}]: runc refuses the profile: SCMP_ACT_NOTIFY cannot be used for \
                 the write syscall"
            ),
            CompileError::NotifyDefault => write!(
                f,
                "defaultAction: runc refuses the profile: SCMP_ACT_NOTIFY cannot be used as \
                 default action"
            ),
            CompileError::UnknownFlag(flag) => write!(
                f,
                "flags: runc refuses the profile: seccomp flag {flag} is not known to runc"
            ),
        }
    }
}

impl std::error::Error for CompileError {}

/// Action for calls that are newer than the profile.
const NEWER: Action = Action::Errno(38);

/// libseccomp's action for other architectures.
const FOREIGN: Action = Action::KillThread;

/// Compiles a profile for a machine.
pub fn compile(
    profile: &ContainerProfile,
    machine: &TargetMachine,
    shape: ProgramShape,
) -> Result<Compiled, CompileError> {
    let mut notes = Vec::new();
    profile.check_runtime(machine, &mut notes)?;
    let rules = profile.select(machine, &mut notes);
    let mut calls = rules.iter().flat_map(|rules| &rules.calls);
    if calls.any(|(_, alternatives)| alternatives.len() > MAX_INSNS) {
        return Err(CompileError::TooLong(None));
    }
    let architectures = rules.iter().map(|rules| rules.arch).collect();
    let mut compiler = Compiler {
        graph: Graph::default(),
        default: profile.default,
        refuses_newer: machine.runtime.refuses_newer_calls(profile.default),
        shape,
        order: machine.arch.byte_order(),
    };
    let start = compiler.architectures(&rules);
    let program = compiler
        .graph
        .code(start)
        .map_err(|_| CompileError::TooLong(None))?;
    if program.len() > MAX_INSNS {
        return Err(CompileError::TooLong(Some(program.len())));
    }
    Ok(Compiled {
        program,
        architectures,
        notes,
    })
}

struct Compiler {
    graph: Graph,
    default: Action,
    refuses_newer: bool,
    shape: ProgramShape,
    order: ByteOrder,
}

/// A test of the loaded word.
fn loaded(cond: Cond, k: u32) -> Test {
    Test {
        load: None,
        mask: u32::MAX,
        cond,
        k,
    }
}

impl Compiler {
    fn architectures(&mut self, rules: &[ArchRules]) -> Decision {
        let mut audits: Vec<u32> = Vec::new();
        for rules in rules {
            if !audits.contains(&rules.arch.audit()) {
                audits.push(rules.arch.audit());
            }
        }
        let mut next = self.end(FOREIGN);
        for &audit in audits.iter().rev() {
            let same = rules.iter().filter(|rules| rules.arch.audit() == audit);
            let same: Vec<&ArchRules> = same.collect();
            let numbers = self.numbers(&same);
            let numbers = match self.refuses_newer {
                true => self.newer_calls(&same, numbers),
                false => numbers,
            };
            let calls = self.graph.load(Word::NR.offset(), numbers);
            next = self.graph.test(loaded(Cond::Eq, audit), calls, next);
        }
        self.graph.load(Word::ARCH.offset(), next)
    }

    /// Emits the calls of the architectures with one audit number (one, or x86_64 and x32).
    fn numbers(&mut self, rules: &[&ArchRules]) -> Decision {
        let default = self.end(self.default);
        let mut calls = Vec::new();
        for rules in rules {
            for (number, alternatives) in &rules.calls {
                let body = self.call(rules.arch, alternatives);
                calls.push((*number, body));
            }
        }
        let archs: Vec<Arch> = rules.iter().map(|rules| rules.arch).collect();
        match self.shape {
            ProgramShape::Linear => self.linear(&archs, &calls, default),
            ProgramShape::Tree => self.tree(&archs, calls, default),
        }
    }

    /// runc's tests in front of the code for the architectures with one audit number.
    fn newer_calls(&mut self, rules: &[&ArchRules], known: Decision) -> Decision {
        let newer = self.end(NEWER);
        let above = |graph: &mut Graph, newest: Option<u32>| match newest {
            Some(newest) => graph.test(loaded(Cond::Gt, newest), newer, known),
            None => known,
        };
        let graph = &mut self.graph;
        if let [one] = rules
            && !matches!(one.arch, Arch::X86_64 | Arch::X32)
        {
            let decision = above(graph, one.newest);
            // Numbers that the kernel does not know arrive as 0, that of `setup`.
            return match one.arch == Arch::S390x && one.newest.is_some() {
                true => graph.test(loaded(Cond::Eq, 0), newer, decision),
                false => decision,
            };
        }
        let newest = |arch| rules.iter().find(|rules| rules.arch == arch)?.newest;
        let of_x32 = above(graph, newest(Arch::X32));
        let of_x86_64 = above(graph, newest(Arch::X86_64));
        graph.test(loaded(Cond::Set, X32_BIT), of_x32, of_x86_64)
    }

    fn linear(&mut self, archs: &[Arch], calls: &[(u32, Decision)], default: Decision) -> Decision {
        let mut next = default;
        for &(number, body) in calls.iter().rev() {
            next = self.graph.test(loaded(Cond::Eq, number), body, next);
        }
        let foreign = self.end(FOREIGN);
        match archs {
            // Numbers with the x32 bit belong to another architecture, except
            // -1: tracers set it to skip a call.
            [Arch::X86_64] => {
                let is_skipped = loaded(Cond::Eq, u32::MAX);
                let above = self.graph.test(is_skipped, default, foreign);
                self.graph.test(loaded(Cond::Ge, X32_BIT), above, next)
            }
            [Arch::X32] => self.graph.test(loaded(Cond::Ge, X32_BIT), next, foreign),
            _ => next,
        }
    }

    fn tree(
        &mut self,
        archs: &[Arch],
        mut calls: Vec<(u32, Decision)>,
        default: Decision,
    ) -> Decision {
        calls.sort_by_key(|&(number, _)| number);
        let foreign = self.end(FOREIGN);
        // Boundaries of ranges, and their decisions.
        let outside = |number: u64| match archs {
            [Arch::X86_64] if (u64::from(X32_BIT)..u64::from(u32::MAX)).contains(&number) => {
                foreign
            }
            [Arch::X32] if number < u64::from(X32_BIT) => foreign,
            _ => default,
        };
        let mut starts = vec![0, u64::from(X32_BIT), u64::from(u32::MAX)];
        for &(number, _) in &calls {
            starts.extend([u64::from(number), u64::from(number) + 1]);
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| start <= u64::from(u32::MAX));
        let mut ranges: Vec<(u32, Decision)> = Vec::new();
        for start in starts {
            let number = start as u32;
            let place = calls.binary_search_by_key(&number, |&(number, _)| number);
            let body = place.map_or_else(|_| outside(start), |place| calls[place].1);
            if ranges.last().is_none_or(|&(_, before)| before != body) {
                ranges.push((number, body));
            }
        }
        self.search(&ranges)
    }

    fn search(&mut self, ranges: &[(u32, Decision)]) -> Decision {
        if let [(_, only)] = ranges {
            return *only;
        }
        // A single number between two equal ranges: one comparison.
        if let &[(_, before), (number, body), (next, after)] = ranges
            && before == after
            && next - number == 1
        {
            return self.graph.test(loaded(Cond::Eq, number), body, before);
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let first = high[0].0;
        let (low, high) = (self.search(low), self.search(high));
        self.graph.test(loaded(Cond::Ge, first), high, low)
    }

    fn end(&mut self, action: Action) -> Decision {
        self.graph.return_value(action.to_return())
    }

    /// The rules of a call, in order.
    fn call(&mut self, arch: Arch, alternatives: &[Alternative]) -> Decision {
        let mut next = self.end(self.default);
        for alternative in alternatives.iter().rev() {
            let mut holds = self.end(alternative.action);
            for arg in alternative.args.iter().rev() {
                holds = self.condition(arch, arg, holds, next);
            }
            next = holds;
        }
        next
    }

    /// A condition on an argument. On x32 and 32-bit architectures libseccomp compares low
    /// halves only.
    fn condition(
        &mut self,
        arch: Arch,
        arg: &ArgCondition,
        yes: Decision,
        no: Decision,
    ) -> Decision {
        let wide = !arch.has_narrow_arguments() && arch != Arch::X32;
        let low = Half::new(
            Word::arg_low(arg.index).offset_in(self.order),
            arg.value as u32,
        );
        let high = wide.then(|| {
            let offset = Word::arg_high(arg.index).offset_in(self.order);
            Half::new(offset, (arg.value >> 32) as u32)
        });
        let graph = &mut self.graph;
        match arg.op {
            ArgOp::Eq => equal(graph, high, low, yes, no),
            ArgOp::Ne => equal(graph, high, low, no, yes),
            ArgOp::Gt => greater(graph, Cond::Gt, high, low, yes, no),
            ArgOp::Ge => greater(graph, Cond::Ge, high, low, yes, no),
            ArgOp::Le => greater(graph, Cond::Gt, high, low, no, yes),
            ArgOp::Lt => greater(graph, Cond::Ge, high, low, no, yes),
            ArgOp::MaskedEq => {
                let masked = |half: Half, value: u64| Half {
                    mask: half.k,
                    k: value as u32 & half.k,
                    ..half
                };
                let low = masked(low, arg.value_two);
                let high = high.map(|high| masked(high, arg.value_two >> 32));
                equal(graph, high, low, yes, no)
            }
        }
    }
}

/// One half of an argument and its constant.
#[derive(Clone, Copy)]
struct Half {
    offset: u32,
    mask: u32,
    k: u32,
}

impl Half {
    fn new(offset: u32, k: u32) -> Half {
        Half {
            offset,
            mask: u32::MAX,
            k,
        }
    }

    fn test(self, cond: Cond) -> Test {
        Test {
            load: Some(self.offset),
            mask: self.mask,
            cond,
            k: self.k,
        }
    }
}

fn equal(
    graph: &mut Graph,
    high: Option<Half>,
    low: Half,
    yes: Decision,
    no: Decision,
) -> Decision {
    // A half with an empty mask is always equal.
    let needed = |half: &Half| half.mask != 0;
    let mut decision = yes;
    for half in [Some(low), high].into_iter().flatten().filter(needed) {
        decision = graph.test(half.test(Cond::Eq), decision, no);
    }
    decision
}

fn greater(
    graph: &mut Graph,
    cond: Cond,
    high: Option<Half>,
    low: Half,
    yes: Decision,
    no: Decision,
) -> Decision {
    let decision = graph.test(low.test(cond), yes, no);
    let Some(high) = high else {
        return decision;
    };
    // The word is loaded once for both comparisons.
    let equal = graph.test(loaded(Cond::Eq, high.k), decision, no);
    graph.test(high.test(Cond::Gt), yes, equal)
}
