//! Rules of the programs that a trampoline runs: functions of the kernel, hooks and operations.
//! The kernel that the other rules are asked of may verify none of these; another kernel of the
//! release is asked then, and its answers are added.

use std::collections::BTreeSet;
use std::{fs, io};

use btf::{Btf, Kind, TypeId};
use spec::programs::{AttachType, ProgramType};
use spec::registry::{
    HelperProto, Kfunc, Layout, ProgramRules, ProgramTypes, RegistryData, ReturnRange,
};

use super::build::{drop_aliases, helper_set, index_of, kfuncs, lists, protos, with_sleepable};
use super::maps::MapQuery;
use super::memory::KernelMemory;
use super::query::{KernelQuery, Subject, subjects};

/// Attach types of such programs, each with the function that one is attached to.
const TARGETS: [(ProgramType, AttachType, &str); 6] = [
    (
        ProgramType::Tracing,
        AttachType::TraceFentry,
        "bpf_fentry_test1",
    ),
    (
        ProgramType::Tracing,
        AttachType::TraceFexit,
        "bpf_fentry_test1",
    ),
    (
        ProgramType::Tracing,
        AttachType::ModifyReturn,
        "bpf_modify_return_test",
    ),
    (
        ProgramType::Tracing,
        AttachType::TraceFsession,
        "bpf_fentry_test1",
    ),
    (ProgramType::Lsm, AttachType::LsmMac, "bpf_lsm_file_open"),
    (
        ProgramType::Lsm,
        AttachType::LsmCgroup,
        "bpf_lsm_socket_bind",
    ),
];

/// Structures of operations, with ones that have kfuncs of their own.
const OPERATIONS: [(&str, &str); 8] = [
    ("sched_ext_ops", "enqueue"),
    ("sched_ext_ops", "dispatch"),
    ("sched_ext_ops", "init"),
    ("Qdisc_ops", "enqueue"),
    ("Qdisc_ops", "dequeue"),
    ("Qdisc_ops", "init"),
    ("tcp_congestion_ops", "ssthresh"),
    ("bpf_dummy_ops", "test_1"),
];

/// True for programs that a trampoline runs.
pub(super) fn runs(kind: ProgramType, attach: Option<AttachType>) -> bool {
    match kind {
        ProgramType::Lsm | ProgramType::StructOps => true,
        _ => TARGETS
            .iter()
            .any(|(other, one, _)| *other == kind && attach == Some(*one)),
    }
}

/// True if such programs alone have a kfunc.
pub(super) fn have_alone(kfunc: &Kfunc) -> bool {
    let mut kinds = ProgramType::ALL.iter();
    kfunc.exceptions.is_empty()
        && kinds.all(|kind| !kfunc.program_types.has(*kind) || runs(*kind, None))
}

/// Asks the running kernel, which must verify such programs.
///
/// # Errors
/// Those of the system; the kernel verifies none of them.
pub fn ask() -> io::Result<RegistryData> {
    let btf = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?).map_err(io::Error::other)?;
    let memory = KernelMemory::read()?;
    let mut query = KernelQuery::new();
    let mut not_asked = Vec::new();
    let mut registry = RegistryData {
        protos: protos(&memory, &btf),
        layouts: vec![Layout::Btf],
        lists: lists(&btf, &memory),
        ..RegistryData::default()
    };
    let maps = MapQuery::new(&btf);
    let mut all = subjects(&btf);
    let new = targets(&btf);
    let mut asked = 0;
    for subject in &new {
        if !query.can_ask(subject) {
            continue;
        }
        asked += 1;
        let set = helper_set(
            &mut query,
            subject,
            &registry.protos,
            &memory,
            &maps,
            &mut not_asked,
        );
        let helpers = index_of(&mut registry.helper_sets, set);
        let rules = rules_with(helpers, returns(subject));
        let key = (subject.kind, subject.attach_type());
        let rules = with_sleepable(&mut registry, key, rules);
        registry.programs.insert(key, rules);
    }
    if asked == 0 {
        return Err(io::Error::other(
            "the running kernel verifies no program of a trampoline",
        ));
    }
    let operation = OPERATIONS.iter().rev().find_map(|operation| {
        let subject = operation_of(&btf, operation)?;
        query.can_ask(&subject).then_some(subject)
    });
    if let Some(subject) = operation {
        let protos = &registry.protos;
        let set = helper_set(&mut query, &subject, protos, &memory, &maps, &mut not_asked);
        let rules = rules_with(index_of(&mut registry.helper_sets, set), None);
        registry.programs.insert((subject.kind, None), rules);
    }
    functions(&mut registry, &mut query, &memory, &btf);
    all.retain(|subject| query.can_ask(subject));
    all.extend(
        new.into_iter()
            .chain(operations(&btf))
            .filter(|subject| query.can_ask(subject)),
    );
    kfuncs(&mut registry, &mut query, &memory, &btf, &all);
    drop_aliases(&mut registry.protos);
    Ok(registry)
}

/// Rules of programs that a trampoline runs.
fn rules_with(helpers: u32, returns: Option<ReturnRange>) -> ProgramRules {
    ProgramRules {
        helpers,
        layout: Some(0),
        returns,
        refused_fields: 0,
        updates_sockmap: false,
        deletes_sockmap: false,
        prologue: 0,
        is_confirmed: true,
    }
}

/// Begin of the names of the functions that system calls enter on this processor.
const SYSCALL: &str = "__x64_sys_";

/// Asks of the functions in sets of the kernel, and of those of system calls, whose results programs may
/// replace, and where programs may sleep.
fn functions(
    registry: &mut RegistryData,
    query: &mut KernelQuery,
    memory: &KernelMemory,
    btf: &Btf<'_>,
) {
    let mut can_sleep = |kind: ProgramType, attach: AttachType, id: u32| {
        query.can_ask(&Subject {
            kind,
            attach: attach.number(),
            sleepable: true,
            attach_btf_id: id,
        })
    };
    let hooks = registry.lists.lsm_hooks.iter();
    let hooks = hooks.filter(|name| {
        let id = btf.find(Kind::Func, name).map(|hook| hook.id().0);
        id.is_some_and(|id| can_sleep(ProgramType::Lsm, AttachType::LsmMac, id))
    });
    let hooks: Vec<Box<str>> = hooks.cloned().collect();
    registry.lists.lsm_sleepable.extend(hooks);
    let sets = memory.sets(btf, Kind::Func);
    let ids = sets.iter().flat_map(|set| &set.entries).map(|(id, _)| *id);
    let mut ids: BTreeSet<u32> = ids.collect();
    let functions = btf.types().filter(|ty| ty.kind() == Kind::Func);
    let of_syscalls = functions.filter(|ty| ty.name().to_string_lossy().starts_with(SYSCALL));
    ids.extend(of_syscalls.map(|ty| ty.id().0));
    for id in ids {
        let Some(name) = btf.at(TypeId(id)).name().to_str() else {
            continue;
        };
        let lists = &mut registry.lists;
        for (attach, sleepable, list) in [
            (AttachType::ModifyReturn, false, &mut lists.modify_return),
            (AttachType::TraceFentry, true, &mut lists.traced_sleepable),
        ] {
            let subject = Subject {
                kind: ProgramType::Tracing,
                attach: attach.number(),
                sleepable,
                attach_btf_id: id,
            };
            if !name.starts_with("security_") && query.can_ask(&subject) {
                list.insert(name.into());
            }
        }
    }
}

/// What the attach type, and no hook, lets programs return (in `check_return_code`).
fn returns(subject: &Subject) -> Option<ReturnRange> {
    let is_fmod_ret = subject.attach_type() == Some(AttachType::ModifyReturn);
    let is_zero = subject.kind == ProgramType::Tracing && !is_fmod_ret;
    is_zero.then_some(ReturnRange { min: 0, max: 0 })
}

fn targets(btf: &Btf<'_>) -> Vec<Subject> {
    let found = TARGETS.iter().flat_map(|&(kind, attach, name)| {
        let target = btf.find(Kind::Func, name).map(|target| target.id().0);
        let subjects = [false, true].map(|sleepable| {
            Some(Subject {
                kind,
                attach: attach.number(),
                sleepable,
                attach_btf_id: target?,
            })
        });
        subjects.into_iter().flatten()
    });
    found.collect()
}

fn operations(btf: &Btf<'_>) -> Vec<Subject> {
    let found = OPERATIONS.iter();
    found
        .filter_map(|operation| operation_of(btf, operation))
        .collect()
}

fn operation_of(btf: &Btf<'_>, &(structure, member): &(&str, &str)) -> Option<Subject> {
    let ty = btf.find(Kind::Struct, structure)?;
    let mut members = ty.as_composite()?.members();
    let index = members.position(|one| btf.string(one.name) == member)?;
    Some(Subject {
        kind: ProgramType::StructOps,
        attach: index as u32,
        sleepable: false,
        attach_btf_id: ty.id().0,
    })
}

/// Adds what another kernel of the release answered about such programs to a registry.
pub fn add(registry: &mut RegistryData, other: &RegistryData) {
    let of_trampolines = other.programs.iter();
    let of_trampolines = of_trampolines.filter(|((kind, attach), _)| runs(*kind, *attach));
    for (&key, rules) in of_trampolines {
        let set = &other.helper_sets[rules.helpers as usize];
        let entries = set.iter().map(|entry| {
            let proto = add_proto(registry, &other.protos[entry.proto as usize]);
            spec::registry::HelperEntry { proto, ..*entry }
        });
        let set = entries.collect();
        let helpers = index_of(&mut registry.helper_sets, set);
        let layout = Some(index_of(&mut registry.layouts, Layout::Btf));
        registry.programs.insert(
            key,
            ProgramRules {
                helpers,
                layout,
                ..*rules
            },
        );
    }
    let (lists, theirs) = (&mut registry.lists, &other.lists);
    lists
        .lsm_sleepable
        .extend(theirs.lsm_sleepable.iter().cloned());
    lists
        .modify_return
        .extend(theirs.modify_return.iter().cloned());
    lists
        .traced_sleepable
        .extend(theirs.traced_sleepable.iter().cloned());
    for (name, theirs) in &other.kfuncs {
        match registry.kfuncs.get_mut(name) {
            None => _ = registry.kfuncs.insert(name.clone(), theirs.clone()),
            Some(ours) => add_types(ours, theirs),
        }
    }
}

/// Index of a prototype; one that is not there is added behind the others.
pub(super) fn add_proto(registry: &mut RegistryData, proto: &HelperProto) -> u32 {
    let is_same = |other: &HelperProto| {
        *other
            == HelperProto {
                function: other.function.clone(),
                ..proto.clone()
            }
    };
    let found = registry.protos.iter().position(is_same);
    found.unwrap_or_else(|| {
        registry.protos.push(proto.clone());
        registry.protos.len() - 1
    }) as u32
}

/// Takes over for which of such programs a kfunc is.
fn add_types(ours: &mut Kfunc, theirs: &Kfunc) {
    let mut types = ProgramTypes::default();
    for kind in ProgramType::ALL {
        let asked = match runs(*kind, None) {
            true => theirs.program_types,
            false => ours.program_types,
        };
        if asked.has(*kind) {
            types = types.with(*kind);
        }
    }
    ours.program_types = types;
    ours.exceptions
        .retain(|&(kind, attach)| !runs(kind, Some(attach)));
    for (kind, attach, _) in TARGETS {
        if theirs.is_for(kind, Some(attach)) != types.has(kind) {
            ours.exceptions.push((kind, attach));
        }
    }
}
