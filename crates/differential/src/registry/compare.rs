//! Compares a registry with the running kernel: every entry that can be asked about,
//! or one of so many.
//!
//! A prototype is compared with kernel memory; a helper of a program type, an access
//! to a context, a range of return values, a kfunc of a program type by one load.

use std::collections::BTreeSet;
use std::{fs, io};

use btf::{Btf, Kind};
use spec::registry::{
    Capability, CtxQuery, HelperProto, Layout, ProgramContext, RegBase, RegistryData,
};

use super::build::{HELPERS, drop_aliases, protos};
use super::layout::value;
use super::maps::{self, MapQuery};
use super::memory::KernelMemory;
use super::privilege::Privilege;
use super::query::{KernelQuery, Subject, subjects};
use super::rewriting::{self, FieldAccess, SOCKETS, SocketQuery};
use super::targets;
use super::trampolines;
use kernel_client::unprivileged::Unprivileged;

/// Number of compared context offsets.
const OFFSETS: i16 = 320;

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryComparison {
    /// Entries compared, by kind.
    pub compared: Vec<(&'static str, u64)>,
    /// Programs that were given to the kernel.
    pub questions: u64,
    /// Differences.
    pub differences: Vec<String>,
    /// Untested entries of the registry, with reasons.
    pub unasked: Vec<String>,
}

impl RegistryComparison {
    fn count(&mut self, kind: &'static str, differs: Option<String>) {
        match self.compared.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => self.compared.push((kind, 1)),
        }
        self.differences.extend(differs);
    }
}

/// Selects entries by a fixed stride.
struct Stride {
    every: u64,
    at: u64,
}

impl Stride {
    fn takes(&mut self) -> bool {
        self.at += 1;
        self.at.is_multiple_of(self.every)
    }
}

/// Compares one entry of each `every`, all for 1.
pub fn compare(registry: &RegistryData, every: u64) -> io::Result<RegistryComparison> {
    let btf = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?).map_err(io::Error::other)?;
    let memory = KernelMemory::read()?;
    let mut kernel_query = KernelQuery::new();
    // Only a whole comparison changes a setting of the machine, and sets it back.
    let _unprivileged = (every <= 1).then(Unprivileged::allow);
    let mut comparison = RegistryComparison::default();
    let mut stride = Stride {
        every: every.max(1),
        at: 0,
    };
    let mut asked = protos(&memory, &btf);
    drop_aliases(&mut asked);
    compare_protos(registry, &asked, &mut comparison);
    let subjects = subjects(&btf);
    for subject in &subjects {
        let program = context(subject);
        compare_helpers(
            registry,
            &mut kernel_query,
            subject,
            &program,
            &mut stride,
            &mut comparison,
        );
        compare_context(
            registry,
            &mut kernel_query,
            subject,
            &program,
            &mut stride,
            &mut comparison,
        );
        let (theirs, ours) = (
            kernel_query.return_range(subject),
            registry.return_range(&program),
        );
        let differs = theirs != ours;
        let words = || {
            format!(
                "{} {}: returns {theirs:?}, registry {ours:?}",
                subject.kind, subject.attach
            )
        };
        comparison.count("return ranges", differs.then(words));
    }
    compare_targets(
        registry,
        &mut kernel_query,
        &btf,
        &mut stride,
        &mut comparison,
    );
    compare_sockets(registry, &mut kernel_query, &mut stride, &mut comparison);
    if every <= 1 {
        compare_rewriting(
            registry,
            &mut kernel_query,
            &btf,
            &subjects,
            &mut comparison,
        );
    }
    compare_maps(
        registry,
        &mut kernel_query,
        &btf,
        &subjects,
        every,
        &mut comparison,
    );
    compare_kfuncs(
        registry,
        &mut kernel_query,
        &btf,
        &subjects,
        &mut stride,
        &mut comparison,
    );
    let rules = registry
        .programs
        .iter()
        .filter(|(_, rules)| !rules.is_confirmed);
    comparison.unasked = rules
        .map(|((kind, attach), _)| match attach {
            Some(attach) => format!("{kind}, attach type {}", attach.number()),
            None => kind.to_string(),
        })
        .collect();
    comparison.questions = kernel_query.questions;
    Ok(comparison)
}

fn context(subject: &Subject) -> ProgramContext<'static> {
    ProgramContext {
        kind: subject.kind,
        attach: subject.attach_type(),
        sleepable: subject.sleepable,
        has_cap_bpf: true,
        has_cap_perfmon: true,
        attach_target: None,
        operation: None,
        of_program: false,
    }
}

/// Prototypes without the ids of their types, which the registry has by name.
fn plain(protos: &[HelperProto]) -> Vec<String> {
    let mut lines: Vec<String> = protos
        .iter()
        .map(|proto| {
            let mut proto = proto.clone();
            if let Some(ty) = &mut proto.ret_btf {
                ty.btf_id = 0;
            }
            for detail in &mut proto.arg_details {
                if let spec::registry::ArgDetail::Btf(ty) = detail {
                    ty.btf_id = 0;
                }
            }
            format!("{proto:?}")
        })
        .collect();
    lines.sort();
    lines
}

/// Prototypes but for those that only programs of trampolines have: another kernel answered for
/// these.
fn of_asked(registry: &RegistryData) -> Vec<HelperProto> {
    let used_by = |of_trampoline: bool| {
        let programs = registry.programs.iter();
        let programs = programs
            .filter(move |((kind, attach), _)| trampolines::runs(*kind, *attach) == of_trampoline);
        let sets =
            programs.filter_map(|(_, rules)| registry.helper_sets.get(rules.helpers as usize));
        sets.flatten()
            .map(|entry| entry.proto)
            .collect::<BTreeSet<u32>>()
    };
    let (asked, others) = (used_by(false), used_by(true));
    let protos = (0..).zip(&registry.protos);
    let protos = protos.filter(|(at, _)| asked.contains(at) || !others.contains(at));
    protos.map(|(_, proto)| proto.clone()).collect()
}

fn compare_protos(
    registry: &RegistryData,
    theirs: &[HelperProto],
    comparison: &mut RegistryComparison,
) {
    let (ours, theirs) = (plain(&registry.protos), plain(theirs));
    for line in &theirs {
        let is_missing = ours.binary_search(line).is_err();
        let words = || format!("the kernel has the prototype {line}");
        comparison.count("prototypes", is_missing.then(words));
    }
    let asked = plain(&of_asked(registry));
    let extra = asked
        .iter()
        .filter(|line| theirs.binary_search(line).is_err());
    let words = extra.map(|line| format!("the registry has the prototype {line}"));
    comparison.differences.extend(words);
}

fn compare_helpers(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    program: &ProgramContext<'_>,
    stride: &mut Stride,
    comparison: &mut RegistryComparison,
) {
    let set = registry.helper_set(program).map(|set| set as usize);
    let set = set.and_then(|set| registry.helper_sets.get(set));
    let privilege = Privilege::of(kernel_query, subject);
    for id in 1..=HELPERS {
        if !stride.takes() {
            continue;
        }
        let theirs = kernel_query.has_helper(subject, id);
        let entry = set.and_then(|set| set.iter().find(|entry| entry.id == id));
        let ours = entry.is_some();
        if let Some(entry) = entry.filter(|_| theirs && privilege.is_askable()) {
            let needed = privilege.for_helper(kernel_query, id);
            let words = || {
                format!(
                    "{} {}: helper {id}: kernel wants {needed:?}, registry {:?}",
                    subject.kind, subject.attach, entry.capability
                )
            };
            let differs = match privilege.tells_bpf() {
                true => needed != entry.capability,
                false => {
                    (needed == Capability::Perfmon) != (entry.capability == Capability::Perfmon)
                }
            };
            comparison.count("capabilities of helpers", differs.then(words));
        }
        let words = || {
            format!(
                "{} {}: helper {id}: kernel {theirs}, registry {ours}",
                subject.kind, subject.attach
            )
        };
        comparison.count("helpers of program types", (theirs != ours).then(words));
    }
}

fn compare_context(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    program: &ProgramContext<'_>,
    stride: &mut Stride,
    comparison: &mut RegistryComparison,
) {
    let Some(layout @ Layout::Fields(_)) = registry.layout(program) else {
        return;
    };
    let returns = registry.return_range(program).map_or(0, |range| range.min);
    for offset in 0..OFFSETS {
        for size in [1, 2, 4, 8] {
            for (write, signed) in [(false, false), (false, true), (true, false)] {
                if signed && size == 8 || !stride.takes() {
                    continue;
                }
                let query = CtxQuery {
                    offset: offset.into(),
                    size,
                    write,
                    signed,
                };
                let ours = registry.ctx_access(program, query).ok();
                let is_same = if write {
                    kernel_query.ctx_write(subject, offset, size) == ours.is_some()
                } else {
                    let theirs = kernel_query.ctx_read(subject, offset, size, signed);
                    match (theirs.as_deref().and_then(value), ours) {
                        (None, None) => theirs.is_none(),
                        (Some((value, btf)), Some(ours)) => {
                            let name = btf.as_ref().map(|ty| &ty.name);
                            let is_scalar = signed && value.base == RegBase::Scalar;
                            is_scalar || value == ours.value && name == ours.btf.map(|ty| &ty.name)
                        }
                        _ => false,
                    }
                };
                let words = || {
                    format!(
                        "{} {}: context, {query:?}: registry {ours:?}",
                        subject.kind, subject.attach
                    )
                };
                comparison.count("context accesses", (!is_same).then(words));
            }
        }
        for access in FieldAccess::at(subject, offset) {
            let ours = insns_of(layout, access);
            if ours.is_none() || !stride.takes() {
                continue;
            }
            let theirs = rewriting::access_insns(kernel_query, subject, access, returns);
            let differs = theirs.is_some_and(|theirs| Some(theirs) != ours);
            let words = || {
                format!(
                    "{} {}: {access:?}: kernel makes {theirs:?} instructions, registry {ours:?}",
                    subject.kind, subject.attach
                )
            };
            comparison.count("instructions of context accesses", differs.then(words));
        }
    }
    let theirs = rewriting::prologue(kernel_query, subject, layout, returns);
    let ours = registry.rules(program).map_or(0, |rules| rules.prologue);
    let words = || {
        format!(
            "{} {}: kernel puts {theirs} instructions before writes to packets, registry {ours}",
            subject.kind, subject.attach
        )
    };
    comparison.count("prologues", (theirs != ours).then(words));
}

/// Instructions that the registry says an access becomes.
fn insns_of(layout: &Layout, access: FieldAccess) -> Option<u32> {
    let FieldAccess {
        offset,
        bytes,
        form,
        beside_tstamp_type,
    } = access;
    layout.insns(offset.into(), bytes, form, beside_tstamp_type)
}

/// Fields of sockets, and the instructions that loads of them become.
fn compare_sockets(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    stride: &mut Stride,
    comparison: &mut RegistryComparison,
) {
    let sockets = SocketQuery::new();
    for base in SOCKETS {
        for access in rewriting::socket_offsets().flat_map(rewriting::socket_accesses) {
            if !stride.takes() {
                continue;
            }
            let FieldAccess {
                offset,
                bytes,
                form,
                ..
            } = access;
            let theirs = sockets.insns(kernel_query, base, access);
            let ours = registry.socket_insns(base, offset.into(), bytes, form);
            let words = || {
                format!(
                    "{}: {access:?}: kernel makes {theirs:?} instructions, registry {ours:?}",
                    base.name()
                )
            };
            comparison.count("accesses to sockets", (theirs != ours).then(words));
        }
    }
}

/// Instructions that calls and legacy packet loads become.
fn compare_rewriting(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    subjects: &[Subject],
    comparison: &mut RegistryComparison,
) {
    let theirs = rewriting::ask(kernel_query, &MapQuery::new(btf), registry, subjects);
    for (&(helper, kind), &theirs) in &theirs.calls {
        let ours = registry.rewriting.call(helper, kind);
        let words = || {
            let kind = kind.map_or("no map", |kind| kind.name());
            format!("helper {helper}, {kind}: kernel makes {theirs} instructions, registry {ours}")
        };
        comparison.count(
            "instructions of calls",
            (u32::from(theirs) != ours).then(words),
        );
    }
    let (theirs, ours) = (theirs.packet_loads, registry.rewriting.packet_loads);
    let words = || format!("packet loads: kernel {theirs:?}, registry {ours:?}");
    comparison.count("instructions of packet loads", (theirs != ours).then(words));
}

/// Arguments of tracepoints and iterators, and the helpers of iterators.
fn compare_targets(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    stride: &mut Stride,
    comparison: &mut RegistryComparison,
) {
    for target in targets::tracepoints(btf) {
        for index in 0..target.args.len() {
            let offset = target.offset(btf, index);
            let (Some(offset), Some(_)) = (offset, target.structure(btf, index)) else {
                continue;
            };
            if !stride.takes() {
                continue;
            }
            let answer = target.ask(kernel_query, offset);
            let theirs = targets::nullness(answer.as_ref());
            let ours = registry.lists.tracepoint_arg(&target.name, index);
            let differs = theirs.is_some_and(|theirs| theirs != ours);
            let words = || {
                format!(
                    "tracepoint {}, argument {index}: kernel {theirs:?}, registry {ours:?}",
                    target.name
                )
            };
            comparison.count("arguments of tracepoints", differs.then(words));
        }
    }
    for target in targets::iterators(btf) {
        let theirs = kernel_query.can_ask(&target.subject);
        let ours = registry.iterators.contains_key(target.name.as_str());
        let words = || format!("iterator {}: kernel {theirs}, registry {ours}", target.name);
        comparison.count("targets of iterators", (theirs != ours).then(words));
        if !theirs {
            continue;
        }
        for index in 0..target.args.len() {
            let Some(offset) = target.offset(btf, index).filter(|_| stride.takes()) else {
                continue;
            };
            let Some(theirs) = target.ask(kernel_query, offset) else {
                continue;
            };
            let ours = targets::expected_argument(registry, btf, &target, index);
            let words = || {
                format!(
                    "iterator {}, argument {index}: kernel {theirs:?}, registry {ours:?}",
                    target.name
                )
            };
            comparison.count("arguments of iterators", (theirs != ours).then(words));
        }
        let name = format!("{}{}", targets::ITERATOR, target.name);
        let program = ProgramContext {
            attach_target: Some(&name),
            operation: None,
            of_program: false,
            ..context(&target.subject)
        };
        compare_helpers(
            registry,
            kernel_query,
            &target.subject,
            &program,
            stride,
            comparison,
        );
    }
}

/// Map kinds; all are asked about where all is compared, and none otherwise but what
/// programs that sleep, and programs of each type, may use.
fn compare_maps(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    subjects: &[Subject],
    every: u64,
    comparison: &mut RegistryComparison,
) {
    let maps = MapQuery::new(btf);
    if every == 1 {
        let answers = maps.ask(kernel_query, registry, subjects);
        for (kind, theirs) in &answers.traits {
            let ours = registry.map(*kind);
            let words = || format!("{}: kernel {theirs:?}, registry {ours:?}", kind.name());
            comparison.count("map kinds", (ours != Some(theirs)).then(words));
        }
        let mut asked = |kind, count| comparison.compared.push((kind, count));
        asked("helpers of map kinds", answers.helper_kinds);
        asked("special fields of map kinds", answers.field_kinds);
        comparison.unasked.extend(answers.by_source);
    }
    for subject in subjects.iter().filter(|subject| subject.has_own_rules()) {
        let Some(rules) = registry.rules(&context(subject)) else {
            continue;
        };
        let (theirs, ours) = (
            maps.refused_fields(kernel_query, subject),
            rules.refused_fields,
        );
        let words = || {
            format!(
                "{} {}: refuses maps with fields {theirs:#x}, registry {ours:#x}",
                subject.kind, subject.attach
            )
        };
        comparison.count(
            "fields refused by program type",
            (theirs != ours).then(words),
        );
        for (helper, ours) in [
            (maps::MAP_UPDATE, rules.updates_sockmap),
            (maps::MAP_DELETE, rules.deletes_sockmap),
        ] {
            let theirs = maps.may_change_sockmap(kernel_query, registry, subject, helper);
            let Some(theirs) = theirs else { continue };
            let words = || {
                format!(
                    "{} {}: helper {helper} with a sockmap: kernel {theirs}, registry {ours}",
                    subject.kind, subject.attach
                )
            };
            comparison.count("changes of sockmaps", (theirs != ours).then(words));
        }
    }
}

fn compare_kfuncs(
    registry: &RegistryData,
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    subjects: &[Subject],
    stride: &mut Stride,
    comparison: &mut RegistryComparison,
) {
    for subject in subjects.iter().filter(|subject| subject.has_own_rules()) {
        for kfunc in registry.kfuncs.values() {
            if !stride.takes() {
                continue;
            }
            let id = btf.find(Kind::Func, &kfunc.name).map(|ty| ty.id().0);
            let theirs = id.is_some_and(|id| kernel_query.has_kfunc(subject, id));
            let ours = kfunc.is_for(subject.kind, subject.attach_type());
            let words = || {
                format!(
                    "{} {}: kfunc {}: kernel {theirs}, registry {ours}",
                    subject.kind, subject.attach, kfunc.name
                )
            };
            comparison.count("kfuncs of program types", (theirs != ours).then(words));
        }
    }
}
