//! Builds the registry of the running kernel from its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

use btf::{Btf, Kind, TypeId};
use spec::helpers;
use spec::kernel::KernelVersion;
use spec::programs::{AttachType, ProgramType};
use spec::registry::{
    ArgBase, ArgDetail, ArgType, HelperEntry, HelperProto, IteratorTarget, KernelType, Kfunc,
    KfuncFlags, Layout, Lists, ProgramRules, ProgramTypes, RegistryData, Restriction, SafeList,
    SpecialKfunc, TypeFlags,
};

use super::layout;
use super::maps::{self, MapQuery};
use super::memory::{KernelMemory, RawProto};
use super::numbering::Numbering;
use super::privilege::Privilege;
use super::query::{KernelQuery, Subject, subjects};
use super::rewriting::{self, SocketQuery};
use super::source;
use super::targets;
use super::trampolines;
use kernel_client::unprivileged::Unprivileged;

/// Number of helpers that Linux has.
pub const HELPERS: u32 = 211;

/// A registry with what it took to build it.
pub struct Built {
    /// The registry.
    pub registry: RegistryData,
    /// Programs that were given to the kernel.
    pub questions: u64,
    /// Entries that could not be queried, with reasons.
    pub not_asked: Vec<String>,
}

/// Builds the registry from the running kernel.
pub fn build() -> io::Result<Built> {
    let btf = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?).map_err(io::Error::other)?;
    let memory = KernelMemory::read()?;
    let mut kernel_query = KernelQuery::new();
    let mut not_asked = Vec::new();
    let unprivileged = Unprivileged::allow();
    if unprivileged.is_none() {
        not_asked.push("helpers without CAP_BPF: kernel.unprivileged_bpf_disabled is 1".into());
    }

    let protos = protos(&memory, &btf);
    let mut registry = RegistryData {
        protos,
        lists: lists(&btf, &memory),
        ..RegistryData::default()
    };
    nullable_args(
        &mut registry.lists,
        &mut kernel_query,
        &btf,
        &memory,
        &mut not_asked,
    );
    let subjects = subjects(&btf);
    let map_query = MapQuery::new(&btf);
    for subject in &subjects {
        if !kernel_query.can_ask(subject) {
            not_asked.push(format!(
                "{} {}: not verified by the kernel",
                subject.kind, subject.attach
            ));
            continue;
        }
        let set = helper_set(
            &mut kernel_query,
            subject,
            &registry.protos,
            &memory,
            &map_query,
            &mut not_asked,
        );
        let key = (subject.kind, subject.attach_type());
        let of_others = registry.programs.get(&key).and_then(|rules| rules.layout);
        let layout = match (subject.kind, of_others) {
            (ProgramType::Tracing, _) => Layout::Btf,
            // What sleeps has the context of what does not.
            (_, Some(layout)) => registry.layouts[layout as usize].clone(),
            (_, None) => layout::ask(&mut kernel_query, subject),
        };
        let returns = kernel_query.return_range(subject);
        let least = returns.map_or(0, |range| range.min);
        let prologue = rewriting::prologue(&mut kernel_query, subject, &layout, least);
        let rules = ProgramRules {
            helpers: index_of(&mut registry.helper_sets, set),
            layout: Some(index_of(&mut registry.layouts, layout)),
            returns,
            refused_fields: map_query.refused_fields(&mut kernel_query, subject),
            updates_sockmap: false,
            deletes_sockmap: false,
            prologue,
            is_confirmed: true,
        };
        let merged = with_sleepable(&mut registry, key, rules);
        let helpers = merged.helpers;
        if (ProgramRules { helpers, ..rules }) != merged {
            not_asked.push(format!(
                "{} {}: sleepable programs have other rules",
                subject.kind, subject.attach
            ));
        }
        registry.programs.insert(key, merged);
    }
    let answers = map_query.ask(&mut kernel_query, &registry, &subjects);
    registry.maps = answers.traits;
    not_asked.extend(answers.by_source);
    registry.sockets = SocketQuery::new().ask(&mut kernel_query);
    registry.rewriting = rewriting::ask(&mut kernel_query, &map_query, &registry, &subjects);
    rewriting::add_unasked(&mut registry.rewriting, &mut not_asked);
    sockmap_changes(
        &mut registry,
        &mut kernel_query,
        &map_query,
        &subjects,
        &mut not_asked,
    );
    merge_attach_types(&mut registry, &subjects);
    source::add_unasked(&mut registry, &mut not_asked);
    iterators(
        &mut registry,
        &mut kernel_query,
        &memory,
        &map_query,
        &btf,
        &mut not_asked,
    );
    kfuncs(&mut registry, &mut kernel_query, &memory, &btf, &subjects);
    if fs::exists("/proc/modules")? {
        let release = sys::kernel::release()?;
        let version: KernelVersion = release.parse().map_err(io::Error::other)?;
        source::add_module_kfuncs(&mut registry, version.into());
    }
    // A kernel without trampolines verifies none of their programs.
    match trampolines::ask() {
        Ok(rules) => trampolines::add(&mut registry, &rules),
        Err(error) => not_asked.push(error.to_string()),
    }
    drop_aliases(&mut registry.protos);
    Ok(Built {
        registry,
        questions: kernel_query.questions,
        not_asked,
    })
}

/// Program types that change maps of sockets.
fn sockmap_changes(
    registry: &mut RegistryData,
    kernel_query: &mut KernelQuery,
    maps: &MapQuery<'_>,
    subjects: &[Subject],
    not_asked: &mut Vec<String>,
) {
    for subject in subjects.iter().filter(|subject| subject.has_own_rules()) {
        let mut ask = |helper| maps.may_change_sockmap(kernel_query, registry, subject, helper);
        let (update, delete) = (ask(maps::MAP_UPDATE), ask(maps::MAP_DELETE));
        if update.is_none() {
            not_asked.push(format!(
                "{} {}: update of a sockmap",
                subject.kind, subject.attach
            ));
        }
        let key = (subject.kind, subject.attach_type());
        if let Some(rules) = registry.programs.get_mut(&key) {
            rules.updates_sockmap =
                update.unwrap_or_else(|| source::may_update_sockmap(subject.kind, subject.attach));
            rules.deletes_sockmap = delete.unwrap_or(false);
        }
    }
}

/// The rules of a kind of program, where those of programs that sleep follow others: helpers that both
/// have by different prototypes have both.
pub(super) fn with_sleepable(
    registry: &mut RegistryData,
    key: (ProgramType, Option<AttachType>),
    rules: ProgramRules,
) -> ProgramRules {
    let Some(&others) = registry.programs.get(&key) else {
        return rules;
    };
    let [first, second] = [&others, &rules].map(|of| &registry.helper_sets[of.helpers as usize]);
    let set = both(first, second);
    ProgramRules {
        helpers: index_of(&mut registry.helper_sets, set),
        ..others
    }
}

/// The helpers of programs that do not sleep and of those that do.
fn both(first: &[HelperEntry], sleepable: &[HelperEntry]) -> Vec<HelperEntry> {
    let others = sleepable.iter().filter(|entry| !first.contains(entry));
    let mut set: Vec<HelperEntry> = first.iter().chain(others).copied().collect();
    set.sort_by_key(|entry| entry.id);
    set
}

pub(super) fn index_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> u32 {
    let at = all.iter().position(|other| *other == one);
    let at = at.unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    });
    at as u32
}

/// Makes the rules of the first attach type those of every attach type, and keeps
/// only the others that differ, where the kernel takes any attach type.
fn merge_attach_types(registry: &mut RegistryData, subjects: &[Subject]) {
    let kinds: BTreeSet<ProgramType> = subjects.iter().map(|subject| subject.kind).collect();
    for kind in kinds {
        let Some(rules) = registry
            .programs
            .get(&(kind, AttachType::from_number(0)))
            .copied()
        else {
            continue;
        };
        registry.programs.retain(|&(other, attach), theirs| {
            other != kind || *theirs != rules || attach.is_none()
        });
        registry.programs.insert((kind, None), rules);
    }
}

/// Between the names of functions with the same prototype.
const ALIAS: char = '|';

/// The first of the functions with a prototype.
pub(super) fn first_function(proto: &HelperProto) -> &str {
    proto.function.split(ALIAS).next().unwrap_or_default()
}

/// Leaves the first of the functions with each prototype.
pub fn drop_aliases(protos: &mut [HelperProto]) {
    for proto in protos {
        proto.function = first_function(proto).into();
    }
}

/// Prototypes of helpers that differ in what the verifier sees, ordered by number; each with all
/// functions that have it.
pub fn protos(memory: &KernelMemory, btf: &Btf<'_>) -> Vec<HelperProto> {
    let mut protos: Vec<HelperProto> = Vec::new();
    let Some(numbering) = Numbering::of(btf) else {
        return protos;
    };
    for raw in memory.protos(&numbering) {
        let Some(proto) = proto(&raw, &numbering, memory, btf) else {
            continue;
        };
        let is_same = |other: &&mut HelperProto| {
            let other = &**other;
            *other
                == HelperProto {
                    function: other.function.clone(),
                    ..proto.clone()
                }
        };
        match protos.iter_mut().find(|other| is_same(other)) {
            Some(other) => {
                other.function = format!("{}{ALIAS}{}", other.function, proto.function).into();
            }
            None => protos.push(proto),
        }
    }
    protos.push(source::tail_call());
    protos.sort_by(|one, other| (one.id, &one.function).cmp(&(other.id, &other.function)));
    protos
}

fn proto(
    raw: &RawProto,
    numbering: &Numbering,
    memory: &KernelMemory,
    btf: &Btf<'_>,
) -> Option<HelperProto> {
    let args: Option<Vec<ArgType>> = raw.args.iter().map(|&arg| numbering.arg(arg)).collect();
    let args: [ArgType; 5] = args?.try_into().ok()?;
    let helper = source::helper_of(&raw.function, args[0].base)?;
    let id = helpers::number(helper)?;
    let structure = |address: u64| {
        let id = memory.u32_at(address)?;
        let ty = btf.get(TypeId(id)).filter(|ty| ty.kind() == Kind::Struct)?;
        Some(KernelType {
            name: ty.name().to_str()?.into(),
            btf_id: 0,
        })
    };
    let mut arg_details: [ArgDetail; 5] = Default::default();
    let raw_args = raw.args.iter().zip(&raw.details);
    for ((arg, (&raw_arg, &detail)), to) in args.iter().zip(raw_args).zip(&mut arg_details) {
        *to = if let Some(size) = numbering.size(raw_arg) {
            ArgDetail::Size(size)
        } else if arg.flags.has(TypeFlags::MEM_FIXED_SIZE) {
            ArgDetail::Size(u32::try_from(detail).ok()?)
        } else {
            structure(detail).map_or(ArgDetail::None, ArgDetail::Btf)
        };
    }
    if let Some(name) = source::object_of(&raw.function) {
        let name = name.into();
        arg_details[0] = ArgDetail::Btf(KernelType { name, btf_id: 0 });
    }
    let restriction = match raw.allowed.as_str() {
        "" => None,
        "bpf_d_path_allowed" => Some(Restriction::DPath),
        "bpf_ima_inode_hash_allowed" => Some(Restriction::SleepableHook),
        "bpf_sk_storage_tracing_allowed" => Some(Restriction::SkStorageTracing),
        _ => return None,
    };
    let [gpl_only, pkt_access, might_sleep, allow_fastcall] = raw.flags;
    Some(HelperProto {
        id: id as u32,
        name: helpers::helper(id)?.name.into(),
        function: raw.function.as_str().into(),
        args,
        arg_details,
        ret: numbering.ret(raw.ret)?,
        ret_btf: structure(raw.ret_btf),
        gpl_only,
        pkt_access,
        might_sleep,
        allow_fastcall,
        restriction,
    })
}

/// The helpers of a kind of program, each with its prototype.
pub(super) fn helper_set(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    protos: &[HelperProto],
    memory: &KernelMemory,
    maps: &MapQuery<'_>,
    not_asked: &mut Vec<String>,
) -> Vec<HelperEntry> {
    let mut set = Vec::new();
    let privilege = Privilege::of(kernel_query, subject);
    for id in 1..=HELPERS {
        if !kernel_query.has_helper(subject, id) {
            continue;
        }
        let candidates: Vec<usize> = (0..protos.len())
            .filter(|&at| protos[at].id == id)
            .collect();
        let Some(proto) = choose(kernel_query, subject, protos, &candidates, memory, maps) else {
            let functions: Vec<&str> = candidates.iter().map(|&at| &*protos[at].function).collect();
            not_asked.push(format!(
                "{} {}: prototype of {} among {functions:?}",
                subject.kind,
                subject.attach,
                helpers::helper(id as i32).map_or("?", |helper| helper.name),
            ));
            continue;
        };
        set.push(HelperEntry {
            id,
            proto: proto as u32,
            capability: privilege.for_helper(kernel_query, id),
        });
    }
    set
}

/// The one prototype of several that the kernel's answers fit.
fn choose(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    protos: &[HelperProto],
    candidates: &[usize],
    memory: &KernelMemory,
    maps: &MapQuery<'_>,
) -> Option<usize> {
    let &[first, ref others @ ..] = candidates else {
        return None;
    };
    if others.is_empty() {
        return Some(first);
    }
    let id = protos[first].id;
    let mut left = candidates.to_vec();
    let differ = |left: &[usize], of: &dyn Fn(&HelperProto) -> bool| {
        left.iter().any(|&at| of(&protos[at])) && !left.iter().all(|&at| of(&protos[at]))
    };
    if differ(&left, &|proto| proto.gpl_only) {
        let is_gpl = kernel_query.is_gpl_only(subject, id);
        left.retain(|&at| protos[at].gpl_only == is_gpl);
    }
    if kernel_query.is_refused_by_target(subject, id) {
        left.retain(|&at| protos[at].restriction.is_some());
        return left.first().copied();
    }
    let expected = kernel_query.first_argument(subject, id);
    left.retain(|&at| match (&expected, protos[at].args[0].base) {
        (None, base) => base == ArgBase::DontCare || base == ArgBase::Anything,
        (Some(words), base) => {
            source::expected_words(base).is_none_or(|start| words.starts_with(start))
        }
    });
    if left.len() > 1 {
        let ask = |at: usize| Some((at, maps.callees(kernel_query, subject, &protos[at])?));
        let accepted: Vec<(usize, Vec<i32>)> = left.iter().copied().filter_map(ask).collect();
        let is_called = |(at, calls): &(usize, Vec<i32>)| {
            let names = calls.iter().filter_map(|&imm| memory.callee(imm));
            let names: Vec<&str> = names.collect();
            let mut functions = protos[*at].function.split(ALIAS);
            functions.any(|function| names.contains(&function))
        };
        if accepted.iter().any(is_called) {
            let called = accepted.iter().filter(|one| is_called(one));
            left = called.map(|(at, _)| *at).collect();
        } else if !accepted.is_empty() {
            // The verifier replaces only calls of the fastcall kind by instructions.
            left.retain(|&at| protos[at].allow_fastcall);
        }
    }
    if left.len() > 1 {
        left.retain(|&at| source::is_for(&protos[at], subject.kind));
    }
    match left[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Arguments of tracepoints that may be null: the kernel's table, corrected by what
/// programs are given for every tracepoint that this kernel has.
fn nullable_args(
    lists: &mut Lists,
    kernel_query: &mut KernelQuery,
    btf: &Btf<'_>,
    memory: &KernelMemory,
    not_asked: &mut Vec<String>,
) {
    for (name, mask) in memory.nullable_tracepoint_args(btf) {
        lists.nullable_tracepoint_args.insert(name.into(), mask);
    }
    let all = targets::tracepoints(btf);
    for target in &all {
        let asleep = Subject {
            sleepable: true,
            ..target.subject
        };
        if kernel_query.can_ask(&asleep) {
            let name = target.name.as_str().into();
            lists.faultable_tracepoints.insert(name);
        }
        for index in 0..target.args.len() {
            let Some(offset) = target.offset(btf, index) else {
                continue;
            };
            if target.structure(btf, index).is_none() {
                continue;
            }
            let answer = target.ask(kernel_query, offset);
            let Some(theirs) = targets::nullness(answer.as_ref()) else {
                continue;
            };
            if theirs != lists.tracepoint_arg(&target.name, index) {
                let bits = u64::from(theirs.may_be_null) | u64::from(theirs.may_be_error) << 1;
                let mask = lists
                    .nullable_tracepoint_args
                    .entry(target.name.as_str().into());
                let mask = mask.or_default();
                *mask = *mask & !(3 << (4 * index)) | bits << (4 * index);
                not_asked.push(format!(
                    "tracepoint {}, argument {index}: by a load, not in the table",
                    target.name
                ));
            }
        }
    }
    let known: BTreeSet<&str> = all.iter().map(|target| target.name.as_str()).collect();
    let names = lists.nullable_tracepoint_args.keys();
    let others = names.filter(|name| !known.contains(&***name)).count();
    not_asked.push(format!(
        "{others} tracepoints of the table of nullable arguments: not in this kernel"
    ));
}

/// Arguments of every iterator target.
fn iterators(
    registry: &mut RegistryData,
    kernel_query: &mut KernelQuery,
    memory: &KernelMemory,
    maps: &MapQuery<'_>,
    btf: &Btf<'_>,
    not_asked: &mut Vec<String>,
) {
    let rules = registry
        .programs
        .get(&(ProgramType::Tracing, Some(AttachType::TraceIter)))
        .copied();
    for target in targets::iterators(btf) {
        if !kernel_query.can_ask(&target.subject) {
            continue;
        }
        let args = targets::iterator_args(kernel_query, btf, &target);
        let set = helper_set(
            kernel_query,
            &target.subject,
            &registry.protos,
            memory,
            maps,
            not_asked,
        );
        let sleepable = Subject {
            sleepable: true,
            ..target.subject
        };
        let set = match kernel_query.can_ask(&sleepable) {
            true => {
                let protos = &registry.protos;
                let other = helper_set(kernel_query, &sleepable, protos, memory, maps, not_asked);
                both(&set, &other)
            }
            false => set,
        };
        let set = index_of(&mut registry.helper_sets, set);
        let iterator = IteratorTarget {
            args,
            helpers: Some(set).filter(|&set| rules.is_none_or(|rules| rules.helpers != set)),
        };
        registry.iterators.insert(target.name.into(), iterator);
    }
}

/// Functions of the kernel that programs may call: found in memory, confirmed by
/// loads.
pub(super) fn kfuncs(
    registry: &mut RegistryData,
    kernel_query: &mut KernelQuery,
    memory: &KernelMemory,
    btf: &Btf<'_>,
    subjects: &[Subject],
) {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for set in memory
        .sets(btf, Kind::Func)
        .iter()
        .filter(|set| set.is_kfuncs)
    {
        for &(id, flags) in &set.entries {
            *found.entry(id).or_default() |= flags;
        }
    }
    for (id, flags) in found {
        let mut program_types = ProgramTypes::default();
        let mut exceptions = Vec::new();
        let mut first: BTreeMap<ProgramType, bool> = BTreeMap::new();
        for subject in subjects.iter().filter(|subject| subject.has_own_rules()) {
            let is_for = kernel_query.has_kfunc(subject, id);
            // Which operation has a kfunc is in the row of its structure.
            let is_operation = subject.kind == ProgramType::StructOps;
            let of_kind = *first.entry(subject.kind).or_insert(is_for) || is_operation && is_for;
            if of_kind {
                program_types = program_types.with(subject.kind);
            }
            if is_for != of_kind && !is_operation {
                let attach = subject.attach_type();
                exceptions.extend(attach.map(|attach| (subject.kind, attach)));
            }
        }
        let Some(name) = btf.at(TypeId(id)).name().to_str() else {
            continue;
        };
        let is_called = program_types != ProgramTypes::default() || !exceptions.is_empty();
        if is_called || source::is_unasked_kfunc(name) {
            let kfunc = Kfunc {
                name: name.into(),
                btf_id: 0,
                flags: KfuncFlags(flags),
                special: SpecialKfunc::named(name),
                program_types: source::with_unasked_types(name, program_types),
                exceptions,
            };
            registry.kfuncs.insert(name.into(), kfunc);
        }
    }
}

/// Lists out of BTF and memory.
pub(super) fn lists(btf: &Btf<'_>, memory: &KernelMemory) -> Lists {
    let mut lists = Lists::default();
    for ty in btf.types() {
        let Some(name) = ty.name().to_str() else {
            continue;
        };
        let Some(composite) = ty.as_composite() else {
            continue;
        };
        for list in SafeList::ALL {
            if let Some(structure) = name.strip_suffix(list.suffix()) {
                for member in composite.members() {
                    if let Some(field) = btf.string(member.name).to_str() {
                        let entry = (list, structure.into(), field.into());
                        lists.safe_fields.insert(entry);
                    }
                }
            }
        }
    }
    lists.destructors = memory
        .destructors(btf)
        .into_iter()
        .map(|(structure, function)| (structure.into(), function.into()))
        .collect();
    let to_names = |names: &[&str]| -> Vec<Box<str>> {
        let names = names.iter();
        names.map(|&name| name.into()).collect()
    };
    for set in memory.sets(btf, Kind::Struct) {
        let names = set.names(btf);
        if names.contains(&"task_struct") && names.contains(&"cgroup") {
            lists.rcu_protected.extend(to_names(&names));
        }
    }
    for set in memory.sets(btf, Kind::Func) {
        if set.is_kfuncs {
            continue;
        }
        let names = set.names(btf);
        let has = |name: &str| names.contains(&name);
        let is_lsm = names.iter().all(|name| name.starts_with("bpf_lsm_"));
        let is_short = names.len() < 6;
        let list = if has("dentry_open") && has("vfs_truncate") {
            &mut lists.d_path
        } else if has("do_exit") && has("__x64_sys_exit") {
            &mut lists.noreturn
        } else if has("rcu_read_unlock_strict") || has("__rcu_read_unlock") {
            &mut lists.attach_denied
        } else if is_lsm && names.len() > 150 {
            &mut lists.lsm_hooks
        } else if is_lsm && has("bpf_lsm_getprocattr") && has("bpf_lsm_inode_getsecurity") {
            &mut lists.lsm_disabled
        } else if is_lsm && has("bpf_lsm_task_free") && names.len() < 12 {
            &mut lists.lsm_untrusted
        } else if is_lsm
            && is_short
            && (has("bpf_lsm_inet_conn_established") || has("bpf_lsm_socket_post_create"))
        {
            &mut lists.lsm_sockopt
        } else if is_lsm && has("bpf_lsm_inode_xattr_skipcap") && is_short {
            &mut lists.lsm_bool
        } else if is_lsm && has("bpf_lsm_bpf_token_cmd") && names.len() > 50 {
            &mut lists.lsm_sleepable
        } else {
            continue;
        };
        list.extend(to_names(&names));
    }
    lists
}
