//! Builds the registry of the running kernel from its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

use btf::{Btf, Kind, TypeId};
use spec::helpers;
use spec::programs::ProgramType;
use spec::registry::{
    ArgBase, ArgDetail, ArgType, HelperEntry, HelperProto, KernelType, Kfunc, KfuncFlags, Layout,
    Limits, Lists, ProgramRules, ProgramTypes, Registry, Restriction, RetType, SafeList, TypeFlags,
};

use super::ask::{Asker, Subject, subjects};
use super::layout;
use super::maps;
use super::memory::{KernelMemory, RawProto};
use super::source;

/// Number of helpers that Linux has.
pub const HELPERS: u32 = 211;

/// A registry with what it took to build it.
pub struct Built {
    /// The registry.
    pub registry: Registry,
    /// Programs that were given to the kernel.
    pub questions: u64,
    /// What the kernel could not be asked, in words.
    pub not_asked: Vec<String>,
}

/// Asks the running kernel.
pub fn build() -> io::Result<Built> {
    let btf = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?).map_err(io::Error::other)?;
    let memory = KernelMemory::read()?;
    let mut asker = Asker::new();
    let mut not_asked = Vec::new();

    let protos = protos(&memory, &btf);
    let mut registry = Registry {
        protos,
        helper_sets: Vec::new(),
        layouts: Vec::new(),
        programs: BTreeMap::new(),
        maps: maps::traits(),
        kfuncs: BTreeMap::new(),
        kfunc_ids: BTreeMap::new(),
        limits: Limits::LINUX_6_18,
        lists: lists(&btf, &memory),
    };
    let subjects = subjects(&btf);
    for subject in &subjects {
        if !asker.can_ask(subject) {
            not_asked.push(format!(
                "{} {}: not verified by the kernel",
                subject.kind, subject.attach
            ));
            continue;
        }
        let set = helper_set(
            &mut asker,
            subject,
            &registry.protos,
            &memory,
            &mut not_asked,
        );
        let layout = match subject.kind {
            ProgramType::Tracing => Layout::Btf,
            _ => layout::ask(&mut asker, subject),
        };
        let rules = ProgramRules {
            helpers: index_of(&mut registry.helper_sets, set),
            layout: Some(index_of(&mut registry.layouts, layout)),
            returns: asker.return_range(subject),
            is_asked: true,
        };
        let key = (subject.kind, Some(subject.attach));
        if let Some(other) = registry.programs.insert(key, rules)
            && other != rules
        {
            not_asked.push(format!(
                "{} {}: sleepable programs have other rules",
                subject.kind, subject.attach
            ));
        }
    }
    merge_attach_types(&mut registry, &subjects);
    source::add_unasked(&mut registry, &mut not_asked);
    kfuncs(&mut registry, &mut asker, &memory, &btf, &subjects);
    Ok(Built {
        registry,
        questions: asker.questions,
        not_asked,
    })
}

fn index_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> u32 {
    let at = all.iter().position(|other| *other == one);
    let at = at.unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    });
    at as u32
}

/// Makes the rules of the first attach type those of every attach type, and keeps
/// only the others that differ, where the kernel takes any attach type.
fn merge_attach_types(registry: &mut Registry, subjects: &[Subject]) {
    let kinds: BTreeSet<ProgramType> = subjects.iter().map(|subject| subject.kind).collect();
    for kind in kinds {
        let Some(rules) = registry.programs.get(&(kind, Some(0))).copied() else {
            continue;
        };
        registry.programs.retain(|&(other, attach), theirs| {
            other != kind || *theirs != rules || attach.is_none()
        });
        registry.programs.insert((kind, None), rules);
    }
}

/// Prototypes of helpers that differ in what the verifier sees, ordered by number.
pub fn protos(memory: &KernelMemory, btf: &Btf<'_>) -> Vec<HelperProto> {
    let mut protos: Vec<HelperProto> = Vec::new();
    for raw in memory.protos() {
        let Some(proto) = proto(&raw, memory, btf) else {
            continue;
        };
        let is_same = |other: &HelperProto| {
            *other
                == HelperProto {
                    function: other.function.clone(),
                    ..proto.clone()
                }
        };
        if !protos.iter().any(is_same) {
            protos.push(proto);
        }
    }
    protos.push(source::tail_call());
    protos.sort_by(|one, other| (one.id, &one.function).cmp(&(other.id, &other.function)));
    protos
}

fn proto(raw: &RawProto, memory: &KernelMemory, btf: &Btf<'_>) -> Option<HelperProto> {
    let args: Option<Vec<ArgType>> = raw.args.iter().map(|&arg| ArgType::from_raw(arg)).collect();
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
    for ((arg, &detail), to) in args.iter().zip(&raw.details).zip(&mut arg_details) {
        *to = if arg.flags.has(TypeFlags::MEM_FIXED_SIZE) {
            ArgDetail::Size(u32::try_from(detail).ok()?)
        } else {
            structure(detail).map_or(ArgDetail::None, ArgDetail::Btf)
        };
    }
    let restriction = match raw.allowed.as_str() {
        "" => None,
        "bpf_d_path_allowed" => Some(Restriction::DPath),
        "bpf_sk_storage_tracing_allowed" => Some(Restriction::SkStorageTracing),
        _ => return None,
    };
    let [gpl_only, pkt_access, might_sleep, allow_fastcall] = raw.flags;
    Some(HelperProto {
        id: id as u32,
        name: helpers::helper(id)?.name,
        function: raw.function.as_str().into(),
        args,
        arg_details,
        ret: RetType::from_raw(raw.ret)?,
        ret_btf: structure(raw.ret_btf),
        gpl_only,
        pkt_access,
        might_sleep,
        allow_fastcall,
        restriction,
    })
}

/// The helpers of a kind of program, each with its prototype.
fn helper_set(
    asker: &mut Asker,
    subject: &Subject,
    protos: &[HelperProto],
    memory: &KernelMemory,
    not_asked: &mut Vec<String>,
) -> Vec<HelperEntry> {
    let mut set = Vec::new();
    for id in 1..=HELPERS {
        if !asker.has_helper(subject, id) {
            continue;
        }
        let candidates: Vec<usize> = (0..protos.len())
            .filter(|&at| protos[at].id == id)
            .collect();
        let Some(proto) = choose(asker, subject, protos, &candidates, memory) else {
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
            capability: source::capability(id),
        });
    }
    set
}

/// The one prototype of several that the kernel's answers fit.
fn choose(
    asker: &mut Asker,
    subject: &Subject,
    protos: &[HelperProto],
    candidates: &[usize],
    memory: &KernelMemory,
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
        let is_gpl = asker.is_gpl_only(subject, id);
        left.retain(|&at| protos[at].gpl_only == is_gpl);
    }
    if asker.is_refused_by_target(subject, id) {
        left.retain(|&at| protos[at].restriction.is_some());
        return left.first().copied();
    }
    let expected = asker.first_argument(subject, id);
    left.retain(|&at| match (&expected, protos[at].args[0].base) {
        (None, base) => base == ArgBase::DontCare || base == ArgBase::Anything,
        (Some(words), base) => {
            source::expected_words(base).is_none_or(|start| words.starts_with(start))
        }
    });
    if left.len() > 1 {
        match asker.callee(subject, id) {
            // The verifier replaces only calls of the fastcall kind by instructions.
            Some(None) => left.retain(|&at| protos[at].allow_fastcall),
            Some(Some(imm)) => {
                let name = memory.callee(imm);
                left.retain(|&at| name.is_none_or(|name| &*protos[at].function == name));
            }
            None => left.retain(|&at| source::is_for(&protos[at], subject.kind)),
        }
    }
    match left[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Functions of the kernel that programs may call: found in memory, confirmed by
/// loads.
fn kfuncs(
    registry: &mut Registry,
    asker: &mut Asker,
    memory: &KernelMemory,
    btf: &Btf<'_>,
    subjects: &[Subject],
) {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for set in memory.sets(btf).iter().filter(|set| set.is_kfuncs) {
        for &(id, flags) in &set.entries {
            *found.entry(id).or_default() |= flags;
        }
    }
    let mut by_kind: BTreeMap<ProgramType, Subject> = BTreeMap::new();
    for subject in subjects {
        by_kind.entry(subject.kind).or_insert(*subject);
    }
    for (id, flags) in found {
        let mut program_types = ProgramTypes::default();
        for (&kind, subject) in &by_kind {
            if asker.has_kfunc(subject, id) {
                program_types = program_types.with(kind);
            }
        }
        let Some(name) = btf.at(TypeId(id)).name().to_str() else {
            continue;
        };
        if program_types != ProgramTypes::default() || source::is_unasked_kfunc(name) {
            let kfunc = Kfunc {
                name: name.into(),
                btf_id: 0,
                flags: KfuncFlags(flags),
                program_types: source::with_unasked_types(name, program_types),
            };
            registry.kfuncs.insert(name.into(), kfunc);
        }
    }
}

/// Lists out of BTF and memory.
fn lists(btf: &Btf<'_>, memory: &KernelMemory) -> Lists {
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
    for set in memory.sets(btf).iter().filter(|set| !set.is_kfuncs) {
        let names = || {
            let names = set.entries.iter();
            let names = names.filter_map(|&(id, _)| btf.at(TypeId(id)).name().to_str());
            names.map(Box::<str>::from)
        };
        let has = |name: &str| names().any(|other| &*other == name);
        let is_lsm = names().all(|name| name.starts_with("bpf_lsm_"));
        if has("dentry_open") && has("vfs_truncate") {
            lists.d_path.extend(names());
        } else if has("do_exit") && has("__x64_sys_exit") {
            lists.attach_denied.extend(names());
        } else if is_lsm && set.entries.len() > 150 {
            lists.lsm_hooks.extend(names());
        } else if is_lsm && has("bpf_lsm_getprocattr") && has("bpf_lsm_inode_getsecurity") {
            lists.lsm_disabled.extend(names());
        } else if is_lsm && has("bpf_lsm_task_free") && set.entries.len() < 12 {
            lists.lsm_untrusted.extend(names());
        } else if is_lsm && has("bpf_lsm_inode_xattr_skipcap") && set.entries.len() < 6 {
            lists.lsm_bool.extend(names());
        } else if is_lsm && has("bpf_lsm_bpf_token_cmd") && set.entries.len() > 50 {
            lists.lsm_sleepable.extend(names());
        }
    }
    lists
}
