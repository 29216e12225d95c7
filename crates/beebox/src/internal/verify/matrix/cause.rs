//! What decides that one kernel refuses a program that another takes.
//!
//! Two things make kernels differ, and each is tried by verifying again:
//!
//! * what the verifier concludes: the refusing kernel with the behaviours of the other. If it takes the
//!   program then, a smallest set of behaviours is searched that makes it do so, by bisection: with
//!   `n` behaviours in which both differ and `k` in the set, about `k log n` verifications;
//! * what the kernel offers: the other kernel with the behaviours of the refusing one. If it still takes
//!   the program, what it offers decides alone, otherwise behaviours beside it, which are searched in
//!   the same way. What is offered is named by the refused instruction: the helper, kfunc, map, field,
//!   type or opcode there.
//!
//! A refusal that names what the kernel lacks is decided by that, if the other kernel takes the program
//! by the behaviours of the refusing one, too: one verification.
//!
//! What was found for one answer is tried first for the next one of the same program, and for others
//! that are refused by the same words ([`Found`]): one verification tells if it decides there, too. The
//! searches for a program have one [`Budget`] of instructions together.

use std::cell::Cell;
use std::collections::BTreeMap;

use btf::{Kind, Shape};
use isa::ebpf::{Callee, Insn};
use program::{CORE_POISON, ExternResolution, Program};
use spec::behaviour::{Behaviour, Behaviours};
use spec::helpers;
use spec::kernel::KernelVersion;
use spec::maps::MapKind;
use spec::programs::HookKind;
use spec::since::{Feature, Release, kfunc};
use verifier::{Options, Refusal, RefusalKind, Requirement, Verdict};

use super::super::results::{Row, verify_program};
use super::super::{LogTail, StandaloneProgram};
use crate::Kernel;

/// What decides that a kernel refuses a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalCause {
    /// The kernel of the row that takes it and that this one was compared with; none if no kernel
    /// takes it.
    pub accepting: Option<usize>,
    /// What this kernel lacks, or has and the other lacks.
    pub deciders: Vec<Decider>,
    /// The verdict was changed by switching these, and nothing else.
    pub is_tried: bool,
    /// The search ended at its budget ([`SEARCH_INSNS`]), with what it had found by then.
    pub is_cut: bool,
}

/// Instructions that the verifications of the searches for what decides the answers about one program
/// process together, and those of the search for one edit: as many as one verification may.
pub const SEARCH_INSNS: u32 = 1_000_000;

/// What a search may still spend.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<u32>,
}

impl Budget {
    /// The whole of it.
    pub(super) fn new() -> Budget {
        Budget {
            left: Cell::new(SEARCH_INSNS),
        }
    }

    /// The verdict of a kernel about a program; `None` if the budget does not reach for it.
    pub(super) fn verdict(&self, loaded: &StandaloneProgram, kernel: &Kernel) -> Option<Verdict> {
        let program = loaded.program.as_ref().ok()?;
        let mut log = LogTail::new(0);
        let options = Options {
            most_insns: self.left.get(),
            ..Options::default()
        };
        let done = verify_program(program, kernel, kernel.registry()?, &options, &mut log).ok()?;
        // The passes before the walk cost about as much as walking once.
        let spent = done.statistics.insns_processed + program.insns().len() as u32;
        let is_enough = done.statistics.insns_processed <= self.left.get();
        self.left.set(self.left.get().saturating_sub(spent));
        let verdict = loaded.check_release(done, kernel).verdict;
        is_enough.then_some(verdict)
    }

    /// Options of an explanation.
    pub(super) fn options(&self) -> Options {
        Options {
            most_insns: self.left.get(),
            ..Options::default()
        }
    }

    /// True if a kernel with these behaviours takes a program.
    fn takes(
        &self,
        loaded: &StandaloneProgram,
        kernel: &Kernel,
        behaviours: Behaviours,
    ) -> Result<bool, Spent> {
        let verdict = self.verdict(loaded, &kernel.clone().with_behaviours(behaviours));
        Ok(verdict.ok_or(Spent)? == Verdict::Accepted)
    }
}

/// The budget does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spent;

/// Sets of behaviours that decide answers about programs of a file, by the words of the refusal.
#[derive(Debug, Default)]
pub(super) struct Found {
    by_words: BTreeMap<String, Vec<Vec<Behaviour>>>,
    /// Those of the program at hand.
    of_program: Vec<Vec<Behaviour>>,
}

impl Found {
    /// Begins with another program.
    pub(super) fn next_program(&mut self) {
        self.of_program.clear();
    }

    /// Sets that may decide a refusal, each once.
    fn guesses(&self, refusal: &Refusal) -> Vec<Vec<Behaviour>> {
        let of_words = self.by_words.get(&words(refusal)).into_iter().flatten();
        let mut guesses: Vec<Vec<Behaviour>> = Vec::new();
        for set in self.of_program.iter().chain(of_words) {
            if !guesses.contains(set) {
                guesses.push(set.clone());
            }
        }
        guesses
    }

    fn keep(&mut self, refusal: &Refusal, set: &[Behaviour]) {
        let of_words = self.by_words.entry(words(refusal)).or_default();
        for known in [of_words, &mut self.of_program] {
            if !known.iter().any(|known| known == set) {
                known.push(set.to_vec());
            }
        }
    }
}

/// The words of a refusal without its numbers.
fn words(refusal: &Refusal) -> String {
    let reason = refusal.reason();
    reason
        .chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

/// End of a search for behaviours that decide.
#[derive(Debug, PartialEq, Eq)]
enum Search {
    /// A smallest set with which the program is taken.
    Found(Vec<Behaviour>),
    /// It is not taken with all of them.
    NotTaken,
    /// The budget does not reach; some of the set.
    Cut(Vec<Behaviour>),
}

/// A thing by which kernels differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// What it is.
    pub kind: DeciderKind,
    /// Its name.
    pub name: String,
    /// The release that has it first, if that is known.
    pub since: Option<Release>,
    /// Point releases of older series that have it.
    pub backports: Vec<KernelVersion>,
    /// What it means; empty if the name says it.
    pub title: String,
    /// True if the kernel that takes the program has it, false if the one that refuses it.
    pub is_theirs: bool,
    /// True if the refusing kernel has it, too, for programs of other types or with other rules, so that
    /// a check of its existence does not tell the kernels apart.
    pub is_there: bool,
}

/// Kind of a thing by which kernels differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeciderKind {
    /// A behaviour of the verifier.
    Behaviour,
    /// A helper.
    Helper,
    /// A kfunc.
    Kfunc,
    /// A map that the kernel does not create.
    Map,
    /// An instruction, or another feature.
    Feature,
    /// A load flag.
    Flag,
    /// A flag of a map.
    MapFlag,
    /// A type of programs.
    ProgramType,
    /// An attach type.
    AttachType,
    /// A field of the context.
    Field,
    /// Another part of the context: an argument of what a program attaches to, or an offset.
    Context,
    /// A type or field of the kernel.
    Type,
    /// What a program attaches to.
    Target,
    /// Another part of what the kernel offers.
    Offer,
}

impl DeciderKind {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            DeciderKind::Behaviour => "behaviour",
            DeciderKind::Helper => "helper",
            DeciderKind::Kfunc => "kfunc",
            DeciderKind::Map => "map",
            DeciderKind::Feature => "feature",
            DeciderKind::Flag => "load flag",
            DeciderKind::MapFlag => "map flag",
            DeciderKind::ProgramType => "program type",
            DeciderKind::AttachType => "attach type",
            DeciderKind::Context => "context",
            DeciderKind::Field => "field",
            DeciderKind::Type => "type",
            DeciderKind::Target => "target",
            DeciderKind::Offer => "offer",
        }
    }
}

impl Decider {
    fn new(kind: DeciderKind, name: impl Into<String>) -> Decider {
        Decider {
            kind,
            name: name.into(),
            since: None,
            backports: Vec::new(),
            title: String::new(),
            is_theirs: true,
            is_there: false,
        }
    }

    fn since(self, since: Option<Release>) -> Decider {
        Decider { since, ..self }
    }

    fn of_behaviour(behaviour: Behaviour, is_theirs: bool) -> Decider {
        Decider {
            kind: DeciderKind::Behaviour,
            name: behaviour.name().to_owned(),
            since: Some(behaviour.since()),
            backports: behaviour.backports().to_vec(),
            title: behaviour.title().to_owned(),
            is_theirs,
            is_there: false,
        }
    }
}

/// True if a kernel's types do not let the program be linked.
pub(super) fn is_not_linked(row: &Row) -> bool {
    let loaded = row.loaded.as_deref();
    let error = loaded.and_then(|loaded| loaded.program.as_ref().err());
    error.is_some_and(|error| error.blame() == object::Blame::Target)
}

/// What decides that a kernel refuses the program of a row, beside the row of one that takes it.
pub(super) fn find(
    (row, kernel): (&Row, &Kernel),
    accepting: Option<(usize, &Row, &Kernel)>,
    known: &mut Found,
    budget: &Budget,
) -> Option<RefusalCause> {
    let loaded = row.loaded.as_deref()?;
    let program = match &loaded.program {
        Ok(program) => program,
        Err(error) => {
            let decider = Decider::new(DeciderKind::Type, error.to_string());
            return Some(RefusalCause {
                accepting: accepting.map(|(at, ..)| at),
                deciders: vec![decider],
                is_tried: accepting.is_some(),
                is_cut: false,
            });
        }
    };
    let refusal = row.refusal.as_ref()?;
    let other_kernel = accepting.map(|(.., kernel)| kernel);
    let offered = of_refusal(program, refusal, kernel, other_kernel);
    let Some((at, other, other_kernel)) = accepting else {
        // Without a kernel that takes it, what came later than this one is named, untried.
        let is_later = |since: Release| kernel.version().is_some_and(|own| since > own.into());
        let newer = offered.filter(|decider| decider.since.is_some_and(is_later));
        return newer.map(|decider| RefusalCause {
            accepting: None,
            deciders: vec![decider],
            is_tried: false,
            is_cut: false,
        });
    };
    let cause = |deciders, is_tried, is_cut| {
        Some(RefusalCause {
            accepting: Some(at),
            deciders,
            is_tried,
            is_cut,
        })
    };
    let (own, theirs) = (kernel.behaviours(), other_kernel.behaviours());
    let named = |set: Vec<Behaviour>| {
        let each = set.into_iter();
        each.map(|one| Decider::of_behaviour(one, theirs.has(one)))
    };
    let takes = |loaded, kernel, set| budget.takes(loaded, kernel, set);
    let other_loaded = other.loaded.as_deref()?;
    if let Some(absent) = offered.as_ref().filter(|decider| !decider.is_there) {
        match takes(other_loaded, other_kernel, own) {
            Ok(true) => return cause(vec![absent.clone()], true, false),
            Ok(false) => {}
            Err(Spent) => return cause(vec![absent.clone()], false, true),
        }
    }
    let guesses = known.guesses(refusal);
    match search(own, theirs, &guesses, |set| takes(loaded, kernel, set)) {
        Search::Found(set) => {
            known.keep(refusal, &set);
            return cause(named(set).collect(), true, false);
        }
        Search::Cut(set) if set.is_empty() => {
            return cause(offered.into_iter().collect(), false, true);
        }
        Search::Cut(set) => return cause(named(set).collect(), false, true),
        Search::NotTaken => {}
    }
    // With its own behaviours the other kernel takes it: that is its answer.
    let search = deciding(own, theirs, |set| takes(other_loaded, other_kernel, set));
    let (set, is_cut) = match search {
        Search::Found(set) => (set, false),
        Search::Cut(set) => (set, true),
        Search::NotTaken => (Vec::new(), false),
    };
    let offer = offered.unwrap_or_else(|| {
        let name = "what the kernel offers: its types, helpers or contexts";
        Decider::new(DeciderKind::Offer, name)
    });
    let is_tried = offer.kind != DeciderKind::Offer && !is_cut;
    let deciders = [offer].into_iter().chain(named(set));
    cause(deciders.collect(), is_tried, is_cut)
}

/// A smallest set of behaviours of `theirs` with which a program is taken: one of the guesses, or one
/// that is searched.
fn search(
    own: Behaviours,
    theirs: Behaviours,
    guesses: &[Vec<Behaviour>],
    takes: impl Fn(Behaviours) -> Result<bool, Spent>,
) -> Search {
    let differs = |one: &Behaviour| own.has(*one) != theirs.has(*one);
    let guessed = || {
        for guess in guesses.iter().filter(|guess| guess.iter().all(differs)) {
            if takes(switch(own, theirs, guess))? && is_smallest(own, theirs, guess, &takes)? {
                return Ok(Some(guess.clone()));
            }
        }
        Ok(None)
    };
    match guessed() {
        Ok(Some(guess)) => return Search::Found(guess),
        Ok(None) => {}
        Err(Spent) => return Search::Cut(Vec::new()),
    }
    match takes(theirs) {
        Ok(true) => deciding(own, theirs, takes),
        Ok(false) => Search::NotTaken,
        Err(Spent) => Search::Cut(Vec::new()),
    }
}

/// True if a program is taken by no set that lacks one of these.
fn is_smallest(
    own: Behaviours,
    theirs: Behaviours,
    set: &[Behaviour],
    takes: impl Fn(Behaviours) -> Result<bool, Spent>,
) -> Result<bool, Spent> {
    if set.len() < 2 {
        // Without any it is refused.
        return Ok(true);
    }
    for left_out in set {
        let rest: Vec<Behaviour> = set.iter().copied().filter(|one| one != left_out).collect();
        if takes(switch(own, theirs, &rest))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A set of behaviours with some of those of another.
fn switch(set: Behaviours, theirs: Behaviours, these: &[Behaviour]) -> Behaviours {
    let each = these.iter();
    each.fold(set, |set, one| set.with(*one, theirs.has(*one)))
}

/// The smallest set of behaviours of `theirs` with which a program is taken, by `takes`; it is taken with
/// all of them.
fn deciding(
    own: Behaviours,
    theirs: Behaviours,
    takes: impl Fn(Behaviours) -> Result<bool, Spent>,
) -> Search {
    let mut rest: Vec<Behaviour> = own.differing(theirs).collect();
    if rest.is_empty() {
        return Search::NotTaken;
    }
    let (mut set, mut found) = (own, Vec::new());
    let mut search = || -> Result<(), Spent> {
        while !takes(set)? {
            // It is taken with all of the rest; the last of the shortest beginning is needed.
            let (mut fewer, mut enough) = (0, rest.len());
            while enough - fewer > 1 {
                let middle = usize::midpoint(fewer, enough);
                match takes(switch(set, theirs, &rest[..middle]))? {
                    true => enough = middle,
                    false => fewer = middle,
                }
            }
            rest.truncate(enough);
            let Some(needed) = rest.pop() else {
                break;
            };
            found.push(needed);
            set = switch(set, theirs, &[needed]);
        }
        Ok(())
    };
    let ended = search();
    found.sort();
    match ended {
        Ok(()) => Search::Found(found),
        Err(Spent) => Search::Cut(found),
    }
}

/// The map that the kernel does not create: one of a kind that it lacks, if there is one.
fn of_map(program: &Program, refusal: &Refusal, kernel: &Kernel) -> Decider {
    let registry = kernel.registry();
    let lacks = |kind: MapKind| registry.is_some_and(|registry| registry.map(kind).is_none());
    let used = program.used_maps();
    let maps = used.iter().filter_map(|id| program.map(*id));
    let mut places = maps.flat_map(|map| {
        let own = (map.kind(), format!("map {}", map.name));
        let inner = map.inner.as_deref();
        let inner = inner.map(|inner| (inner.kind(), format!("inner map of {}", map.name)));
        [Some(own), inner].into_iter().flatten()
    });
    let lacking = places.find_map(|(kind, place)| Some((kind.filter(|kind| lacks(*kind))?, place)));
    match lacking {
        Some((kind, place)) => {
            let name = format!("{} ({place})", kind.name());
            Decider::new(DeciderKind::Map, name).since(Some(kind.since().release))
        }
        None => Decider::new(DeciderKind::Map, refusal.reason()),
    }
}

/// What the kernel lacks, by the instruction that it refuses; `other` is one that has it.
pub(super) fn of_refusal(
    program: &Program,
    refusal: &Refusal,
    kernel: &Kernel,
    other: Option<&Kernel>,
) -> Option<Decider> {
    use DeciderKind as Kind;
    if let Some((what, since)) = refusal.lacks() {
        let decider = match what {
            Requirement::Helper(helper) => Decider::new(Kind::Helper, helper.entry().name),
            Requirement::Kfunc(name) => Decider::new(Kind::Kfunc, name),
            Requirement::MapKind(kind) => Decider::new(Kind::Map, kind.name()),
            Requirement::MapFlag { .. } => Decider::new(Kind::MapFlag, what.to_string()),
            Requirement::ProgramType(kind) => Decider::new(Kind::ProgramType, kind.name()),
            Requirement::AttachType(attach) => Decider::new(Kind::AttachType, attach.name()),
            Requirement::LoadFlag(name) => Decider::new(Kind::Flag, *name),
            Requirement::Feature(feature) => Decider::new(Kind::Feature, feature.name()),
        };
        return Some(decider.since(Some(since)));
    }
    if refusal.kind == RefusalKind::MapCreation {
        return Some(of_map(program, refusal, kernel));
    }
    let own = kernel.version().map(Release::from);
    let is_newer = |since: &Release| own.is_some_and(|own| *since > own);
    if refusal.kind == RefusalKind::AttachTarget {
        let attach = program.attach_type();
        let attach = attach.filter(|attach| is_newer(&attach.since().release));
        return Some(match attach {
            Some(attach) => {
                Decider::new(Kind::AttachType, attach.name()).since(Some(attach.since().release))
            }
            None => Decider::new(Kind::Target, refusal.reason()),
        });
    }
    // Before it walks, the kernel looks at all instructions.
    if matches!(refusal.kind, RefusalKind::Btf | RefusalKind::Encoding) {
        let decoded = program.decode();
        let features = decoded.iter().filter_map(|insn| Feature::of(*insn));
        let newer = features.filter(|feature| is_newer(&feature.since().release));
        if let Some(feature) = newer.max_by_key(|feature| feature.since().release) {
            let since = Some(feature.since().release);
            return Some(Decider::new(Kind::Feature, feature.name()).since(since));
        }
    }
    let at = refusal.insn?;
    let insn = *program.decode().get(at as usize)?;
    match insn {
        Insn::Call(Callee::Helper(CORE_POISON)) => {
            let mut failed = program.failed_relocations().iter();
            let failed = failed.find(|failed| failed.insn == at)?;
            Some(Decider {
                title: failed.absence.clone(),
                ..Decider::new(Kind::Type, &failed.access)
            })
        }
        Insn::Call(Callee::Helper(number)) => {
            if let Some(symbol) = program.absent_extern(number) {
                let since = kfunc(&symbol.name).map(|since| since.release);
                return Some(Decider::new(Kind::Kfunc, &symbol.name).since(since));
            }
            let helper = helpers::helper(number)?;
            let decider = Decider::new(Kind::Helper, helper.name);
            Some(match refusal.kind {
                RefusalKind::Unavailable => {
                    let is_newer = |own: Release| helper.since.release > own;
                    let since = Some(helper.since.release);
                    let is_later = kernel.version().is_some_and(|own| is_newer(own.into()));
                    let of_type = program.kind().name();
                    Decider {
                        title: match is_later {
                            true => String::new(),
                            false => format!("later for programs of type {of_type}"),
                        },
                        is_there: !is_later,
                        ..decider.since(since.filter(|_| is_later))
                    }
                }
                _ => Decider {
                    title: "its prototype or rules differ".to_owned(),
                    is_there: true,
                    ..decider
                },
            })
        }
        Insn::Call(Callee::Kfunc { id, .. }) => {
            let is_called = |resolution| matches!(resolution, ExternResolution::Btf { id: found, .. } if found.0 == id as u32);
            let mut externs = program.externs().iter();
            let symbol = externs.find(|symbol| is_called(symbol.resolution))?;
            let since = kfunc(&symbol.name).map(|since| since.release);
            let is_later = |since: &Release| {
                let own = kernel.version();
                own.is_some_and(|own| *since > Release::from(own))
            };
            let since = since.filter(is_later);
            Some(Decider {
                title: "its program types or rules differ".to_owned(),
                is_there: since.is_none(),
                ..Decider::new(Kind::Kfunc, &symbol.name).since(since)
            })
        }
        Insn::Load { off, .. } | Insn::Store { off, .. }
            if refusal.kind == RefusalKind::Context =>
        {
            Some(context_part(program, off, kernel, other))
        }
        _ => None,
    }
}

/// The part of the context at an offset, by the types of the kernel that has it. Types of the refusing one
/// have it, too, where it is for programs of other types.
fn context_part(program: &Program, off: i16, kernel: &Kernel, other: Option<&Kernel>) -> Decider {
    let kind = program.kind();
    let part = |name| Decider::new(DeciderKind::Context, name);
    if let Some(target) = target_name(program, kernel) {
        return part(format!("argument {} of {target}", off / 8 + 1));
    }
    // Where the kernel converts accesses, the fields have offsets of their own.
    let structure = kind.context().filter(|_| !kind.has_plain_context());
    let Some(structure) = structure else {
        return part(format!("offset {off} of the context"));
    };
    let own = field_at(structure, off, kernel);
    let Some(name) = other.and_then(|other| field_at(structure, off, other)) else {
        return part(format!("offset {off} of struct {structure}"));
    };
    Decider {
        is_there: own.as_ref() == Some(&name),
        ..Decider::new(DeciderKind::Field, format!("struct {structure}.{name}"))
    }
}

/// Name of the function, hook or tracepoint whose arguments are the context.
fn target_name(program: &Program, kernel: &Kernel) -> Option<String> {
    let target = program.attach_target()?;
    let types = kernel.btf().filter(|_| target.module == 0)?;
    let name = types.get(target.btf_id)?.name().to_string();
    let prefix = HookKind::of(program.attach_type()).target_prefix();
    Some(
        name.strip_prefix(prefix)
            .map_or(name.clone(), str::to_owned),
    )
}

/// Name of the field of a structure at an offset.
fn field_at(structure: &str, off: i16, kernel: &Kernel) -> Option<String> {
    let btf = kernel.btf()?;
    let Shape::Struct(shape) = btf.find(Kind::Struct, structure)?.shape() else {
        return None;
    };
    let mut members = shape.members();
    let member = members.find(|member| i64::from(member.bit_offset) == 8 * i64::from(off))?;
    let name = btf.string(member.name).to_string();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_set_is_found_by_few_verifications() {
        let own = Behaviours::NONE;
        let theirs = Behaviours::LINUX_6_18;
        let all: Vec<Behaviour> = own.differing(theirs).collect();
        let count = std::cell::Cell::new(0);
        let within = |most: u32, needed: &[Behaviour]| {
            count.set(0);
            deciding(own, theirs, |set| {
                count.set(count.get() + 1);
                let takes = needed.iter().all(|one| set.has(*one));
                (count.get() <= most).then_some(takes).ok_or(Spent)
            })
        };
        let found = |needed: &[Behaviour]| within(u32::MAX, needed);
        for one in &all {
            assert_eq!(found(&[*one]), Search::Found(vec![*one]));
            assert!(count.get() <= 10, "{}", count.get());
        }
        let three = [all[1], all[7], all[all.len() - 1]];
        assert_eq!(found(&three), Search::Found(three.to_vec()));
        assert_eq!(found(&[]), Search::Found(Vec::new()));
        let always = |_| Ok(true);
        assert_eq!(deciding(theirs, theirs, always), Search::NotTaken);
        // What was found within the budget is told.
        assert_eq!(within(0, &three), Search::Cut(Vec::new()));
        assert_eq!(within(12, &three), Search::Cut(vec![three[2]]));
    }
}
