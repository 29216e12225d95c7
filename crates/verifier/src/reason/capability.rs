//! Capabilities that the caller lacks: a refused program is verified again with them.
//!
//! What a capability changes is known to the checks alone, in some twenty places; so the
//! verification is asked. A refusal that only more capabilities take away is about them.
//!
//! Complexity: a verification for each set of capabilities that the caller lacks, seven at
//! most, and one if capabilities change nothing.

use program::Program;
use spec::Kernel;
use spec::kernel::{Privileges, Source};
use spec::registry::Registry;

use super::explanation::Capability;
use crate::options::Options;
use crate::verdict::{Refusal, RefusalKind, Verdict};
use crate::verify::verify;
use RefusalKind::{
    Argument, AttachTarget, BackEdge, Btf, CallDepth, Complexity, Context, ControlFlow, Encoding,
    Forbidden, KernelBug, License, Limit, Lock, Loop, Map, MapCreation, MaybeNull, Misaligned,
    Other, OutOfBounds, PointerArithmetic, Privilege, Reference, Release, ReturnValue, Section,
    Stack, StackSize, Unavailable, Unbounded, Uninitialized, Unreachable, WrongType,
};

/// Capabilities that the caller lacks, and with which the refusal is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCapabilities {
    /// The fewest without which the program is refused so.
    pub needed: Vec<Capability>,
    /// The fewest with which the program is accepted.
    pub accepted_with: Option<Vec<Capability>>,
}

/// The capabilities that a refusal is about; `None` if it is there with all of them too.
pub(crate) fn missing(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    refusal: &Refusal,
) -> Option<MissingCapabilities> {
    let held = kernel.privileges();
    let options = Options {
        collect_cost: false,
        collect_facts: false,
        log_level: 0,
        ..options.clone()
    };
    let verdict = |added: &[Capability]| {
        let privileges = added.iter().fold(held, |held, added| added.with(held));
        let kernel = (kernel.clone()).with_privileges(privileges, Source::Given);
        verify(program, &kernel, registry, &options).verdict
    };
    let lacking = Capability::ALL.into_iter().filter(|one| !one.is_held(held));
    let lacking: Vec<Capability> = lacking.collect();
    if lacking.is_empty() {
        return None;
    }
    let is_gone = |verdict: &Verdict| match verdict {
        Verdict::Accepted => true,
        Verdict::Refused(other) => is_gate(refusal) && differs(refusal, other),
        Verdict::Unsupported(_) | Verdict::Bug(_) => false,
    };
    let with_all = verdict(&lacking);
    if !is_gone(&with_all) {
        return None;
    }
    let mut needed = None;
    let mut accepted_with = None;
    for added in subsets(&lacking) {
        let verdict = match added.len() == lacking.len() {
            true => with_all.clone(),
            false => verdict(&added),
        };
        if needed.is_none() && is_gone(&verdict) {
            needed = Some(added.clone());
        }
        if verdict == Verdict::Accepted {
            accepted_with = Some(added);
            break;
        }
        if needed.is_some() && with_all != Verdict::Accepted {
            break;
        }
    }
    Some(MissingCapabilities {
        needed: needed?,
        accepted_with,
    })
}

/// True for refusals that are capabilities' by their class, whatever comes behind them.
fn is_gate(refusal: &Refusal) -> bool {
    match refusal.kind {
        Privilege | Unavailable | BackEdge | Limit => true,
        Encoding | ControlFlow | Unreachable | Btf | Uninitialized | PointerArithmetic
        | WrongType | MaybeNull | OutOfBounds | Unbounded | Misaligned | Forbidden | Stack
        | Context | Argument | Reference | Lock | Section | ReturnValue | Loop | Complexity
        | StackSize | CallDepth | Map | MapCreation | Release | License | AttachTarget
        | KernelBug | Other => false,
    }
}

fn differs(one: &Refusal, other: &Refusal) -> bool {
    (one.insn, one.kind, &one.rejection) != (other.insn, other.kind, &other.rejection)
}

/// The sets of some capabilities, smaller ones first; the empty one left out.
fn subsets(all: &[Capability]) -> Vec<Vec<Capability>> {
    let chosen = |bits: usize| {
        let chosen = all.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        chosen.map(|(_, one)| *one).collect()
    };
    let mut sets: Vec<Vec<Capability>> = (1..1usize << all.len()).map(chosen).collect();
    sets.sort_by_key(Vec::len);
    sets
}

impl Capability {
    const ALL: [Capability; 3] = [Capability::Bpf, Capability::Perfmon, Capability::NetAdmin];

    fn is_held(self, privileges: Privileges) -> bool {
        match self {
            Capability::Bpf => privileges.has_bpf(),
            Capability::Perfmon => privileges.has_perfmon(),
            Capability::NetAdmin => privileges.has_net_admin(),
        }
    }

    fn with(self, mut privileges: Privileges) -> Privileges {
        match self {
            Capability::Bpf => privileges.bpf = true,
            Capability::Perfmon => privileges.perfmon = true,
            Capability::NetAdmin => privileges.net_admin = true,
        }
        privileges
    }
}
