//! A helper call: availability, arguments, effects, result, in the kernel's order
//! (`check_helper_call`).

use btf::core::essential_name;
use btf::{Btf, Kind, TypeId};
use isa::ebpf::{PseudoCall, Reg};
use program::{CORE_POISON, ExternSymbol};
use spec::behaviour::Behaviour;
use spec::helpers::{self, Filling, HelperId, HelperRule};
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::registry::{HelperProto, Unavailable};

use super::args::check_arg;
use super::dynptr::{self, Dynptr};
use super::meta::CallMeta;
use super::subprog::enter;
use super::{callback, clear_caller_saved, compat, constant, kptr, leak, returns};
use crate::attach::{self, Returned};
use crate::env::{Check, Env, MapUse, Outcome};
use crate::input::Input;
use crate::insn_facts;
use crate::mem::{packet, registers, stack};
use crate::rejection::Call;
use crate::state::{Frame, RegBase, Section, State};
use crate::type_rules::HookRules;
use crate::{Result, Stop, refuse, refuse_if, verbose};

/// The key of a tail call is not the same on all paths (`BPF_MAP_KEY_POISON`,
/// `bpf_map_key_poisoned`).
#[doc(alias = "bpf_map_key_poisoned")]
const KEY_POISON: u64 = 1 << 63;
/// The key of a tail call was seen (`BPF_MAP_KEY_SEEN`, `bpf_map_key_unseen`).
#[doc(alias = "bpf_map_key_unseen")]
const KEY_SEEN: u64 = 1 << 62;

/// Checks a helper call (`check_helper_call`).
pub(super) fn check_helper_call(env: &mut Env<'_>, id: i32) -> Result<Outcome> {
    let name = env.input.registry.helper_name(id);
    let registry = env.input.registry;
    if helpers::helper(id).is_some_and(|helper| env.input.is_newer(helper.since)) {
        return Err(refuse!(env => Call::UnknownHelper { name: "unknown", id }));
    }
    let proto = match registry.helper(&env.input.context, id as u32) {
        Ok(proto) => proto,
        Err(Unavailable::Hook) => {
            return Err(refuse!(env => Call::NotInProbe));
        }
        Err(Unavailable::Unknown) if id != 0 => {
            check_is_of_no_module(env, id)?;
            return Err(refuse!(env => Call::UnknownHelper { name, id }));
        }
        Err(_) => {
            return Err(refuse!(env => Call::HelperOfOtherType { name, id }));
        }
    };
    if proto.gpl_only && !env.input.program.is_gpl_compatible() {
        return Err(refuse!(env => Call::HelperLicense));
    }
    let helper = proto.helper();
    let mut callback = None;
    check_sleep(env, proto)?;
    let mut changes_data = helper.is_some_and(HelperId::changes_packet);
    let mut meta = CallMeta::default();
    for index in 0..proto.args.len() {
        check_arg(env, proto, index, &mut meta)?;
    }
    if let Some(helper) = helper {
        record_map(env, helper, &meta)?;
        record_key(env, helper, &meta)?;
    }
    if let Some((ptr, size)) = meta.raw.planned {
        let filling = helper.map_or(Filling::Whole, HelperId::filling);
        insn_facts::note_filling(env, ptr, size, filling);
        stack::write_unknown(env, ptr, size)?;
    }
    let checks_release = env.input.rules.has(Behaviour::ReleasesReferenced);
    let releases = matches!(
        helper,
        Some(HelperId::SkRelease | HelperId::RingbufSubmit | HelperId::RingbufDiscard)
    );
    if releases && !checks_release {
        meta.release = Some(Reg::R1);
    }
    let is_released = match (meta.released_dynptr, helper) {
        (Some(ptr), _) => {
            dynptr::release(env, ptr)?;
            true
        }
        (None, Some(HelperId::KptrXchg)) if meta.ref_obj_id != 0 => {
            kptr::release_source(env, meta.ref_obj_id)
        }
        _ => {
            let is_held = checks_release || !releases || meta.ref_obj_id != 0;
            is_held && meta.release_reference(env)
        }
    };
    refuse_if!(!is_released, env => Call::NotAcquired { name, id });
    if let Some(helper) = helper {
        callback = apply_rules(env, helper, &mut meta)?;
        changes_data |= helper == HelperId::DynptrWrite && meta.dynptr.is_some_and(Dynptr::moves);
    }
    clear_caller_saved(env)?;
    returns::set_result(env, proto, &meta)?;
    compat::check_map_func_compatibility(env, proto, meta.map.map(|(map, _)| map))?;
    if helper == Some(HelperId::GetFuncIp) {
        check_get_func_ip(env, proto)?;
    }
    let mut outcome = Outcome::Next;
    if helper == Some(HelperId::TailCall) {
        let returns = env.input.rules.has(Behaviour::TailCallsReturn);
        if !returns {
            changes_data = env.input.rules.has(Behaviour::TailCallsChangePackets);
        } else if env.state.curframe == 0 {
            changes_data = false;
        } else {
            // The tail call fails and the function goes on, or it ends the function.
            env.mark_scratched(Reg::R0);
            env.fork(env.sink.insn_idx + 1)?;
            packet::clear_pointers(env);
            registers::set_unknown(env, Reg::R0);
            outcome = Outcome::Jump(crate::flow::prepare_func_exit(env)?);
        }
    }
    if changes_data {
        packet::clear_pointers(env);
    }
    env.mark_scratched(Reg::R0);
    if let Some(frame) = callback {
        return Ok(enter(env, frame));
    }
    Ok(outcome)
}

/// Refuses to answer to a call in place of what a module has whose BTF is not given, a kfunc or a
/// type of a CO-RE relocation, or of a kfunc that a given module has with another prototype.
fn check_is_of_no_module(env: &Check<'_>, id: i32) -> Result<()> {
    let program = env.input.program;
    let what = match program.absent_extern(id) {
        Some(symbol) => {
            other_prototype(env.input, symbol).or_else(|| missing_module(env.input, symbol))
        }
        None if id == CORE_POISON => {
            let calls = program.insns().iter();
            let calls = calls.filter(|insn| insn.pseudo_call() == Some(PseudoCall::Helper));
            let mut absent = calls.filter_map(|insn| program.absent_extern(insn.imm));
            let mut relocations = program.failed_relocations().iter();
            let failed = relocations.find(|failed| failed.insn == env.sink.insn_idx);
            let missing = absent.find_map(|symbol| missing_module(env.input, symbol));
            missing.map(|module| match failed {
                Some(failed) => format!("{}: {}; {module}", failed.access, failed.absence),
                None => module,
            })
        }
        None => None,
    };
    match what {
        Some(what) => Err(Stop::unsupported(what)),
        None => Ok(()),
    }
}

/// The module that has a kfunc and whose BTF is not given or lacks it, with what to give.
fn missing_module(input: &Input<'_>, symbol: &ExternSymbol) -> Option<String> {
    let name = String::from_utf8_lossy(essential_name(symbol.name.as_bytes()));
    let module = input.registry.kfunc_named(&name)?.module()?;
    let is_given = input.modules.iter().any(|given| given.name == module);
    Some(match is_given {
        true => format!("kfunc {name} of module {module}, whose given BTF has no such function"),
        false => format!(
            "kfunc {name} of module {module}, whose BTF is not given: --module-btf \
             /sys/kernel/btf/{module}"
        ),
    })
}

/// The given module that has a kfunc of the name, with another prototype.
fn other_prototype(input: &Input<'_>, symbol: &ExternSymbol) -> Option<String> {
    let name = essential_name(symbol.name.as_bytes());
    let has_it = |btf: &Btf<'_>| btf.find_all(Kind::Func, name).next().is_some();
    // The kernel's own comes first.
    if input.vmlinux.is_some_and(has_it) {
        return None;
    }
    let module = input.modules.iter().find(|module| has_it(&module.btf))?;
    Some(format!(
        "kfunc {}: the given BTF of module {} has it with another prototype",
        String::from_utf8_lossy(name),
        module.name
    ))
}

/// The section that a path is in and must not sleep in (`non_sleepable_context_description`).
#[doc(alias = "non_sleepable_context_description")]
pub(super) fn section(state: &State) -> Option<Section> {
    state.first_of(&[Section::Rcu, Section::Preempt, Section::Irq])
}

/// Refuses helpers that may sleep where the program must not (`in_sleepable_context`).
#[doc(alias = "in_sleepable_context")]
fn check_sleep(env: &mut Check<'_>, proto: &HelperProto) -> Result<()> {
    let state = &env.state;
    let section = section(state);
    if proto.might_sleep && !state.in_sleepable {
        return Err(refuse!(env => Call::MightSleep { name: &proto.name, id: proto.id, section }));
    }
    if let Some(section) = section
        && proto.might_sleep
    {
        return Err(
            refuse!(env => Call::SleepableHelper { name: &proto.name, id: proto.id, section }),
        );
    }
    let gets_storage = proto.helper().is_some_and(HelperId::gets_storage);
    if gets_storage && (section.is_some() || !env.state.in_sleepable) {
        env.insn_aux().storage_get_atomic = true;
    }
    Ok(())
}

/// Notes the map of a call, and refuses changes of maps that programs may only read
/// (`record_func_map`).
#[doc(alias = "record_func_map")]
fn record_map(env: &mut Check<'_>, helper: HelperId, meta: &CallMeta) -> Result<()> {
    if !helper.names_map() {
        return Ok(());
    }
    let Some((map, _)) = meta.map else {
        return Err(Stop::Bug("expected map for helper call".into()));
    };
    refuse_if!(helper.changes_map() && !env.input.maps[map].can_write(), env => Call::MapReadOnly);
    let used = &mut env.insn_aux().map;
    *used = match *used {
        MapUse::None => MapUse::One(map),
        MapUse::One(before) if before == map => MapUse::One(map),
        MapUse::One(_) | MapUse::Several => MapUse::Several,
    };
    Ok(())
}

/// Notes the key of a tail call, so that it can become a direct jump (`record_func_key`,
/// `bpf_map_key_store`, `bpf_map_key_immediate`).
#[doc(alias = "record_func_key")]
#[doc(alias = "bpf_map_key_store")]
#[doc(alias = "bpf_map_key_immediate")]
fn record_key(env: &mut Env<'_>, helper: HelperId, meta: &CallMeta) -> Result<()> {
    if helper != HelperId::TailCall {
        return Ok(());
    }
    let map = meta.map.map(|(map, _)| map);
    let Some(map) = map.filter(|map| env.input.maps[*map].kind() == Some(MapKind::ProgArray))
    else {
        // The kernel ends this line of the log with its statistics.
        let rejection = Call::NotProgArray;
        verbose!(env.sink, "{rejection}");
        return Err(Stop::refusal(rejection, Some(env.sink.insn_idx)));
    };
    let max = u64::from(env.input.maps[map].max_entries());
    let reg = *env.reg(Reg::R3);
    let key = reg.num.as_const().filter(|_| reg.is_scalar());
    let index = env.sink.insn_idx as usize;
    let Some(key) = key.filter(|key| *key < max) else {
        env.aux[index].map_key |= KEY_POISON | KEY_SEEN;
        return Ok(());
    };
    env.mark_precise(Reg::R3)?;
    let before = env.aux[index].map_key;
    if before & KEY_SEEN == 0 {
        env.aux[index].map_key = before & KEY_POISON | KEY_SEEN | key;
    } else if before & KEY_POISON == 0 && before & !KEY_SEEN != key {
        env.aux[index].map_key = KEY_POISON | KEY_SEEN;
    }
    Ok(())
}

/// Rules of single helpers, after the arguments are known to be good; the frame of a callback that is to be
/// entered.
fn apply_rules(env: &mut Env<'_>, helper: HelperId, meta: &mut CallMeta) -> Result<Option<Frame>> {
    if let Some(kind) = helper.callback() {
        return callback::push(env, meta.subprog, kind);
    }
    check_rules(env, helper, meta).map(|()| None)
}

fn check_rules(env: &mut Env<'_>, helper: HelperId, meta: &mut CallMeta) -> Result<()> {
    match helper.rule() {
        HelperRule::Prototype | HelperRule::Lock => Ok(()),
        HelperRule::TailCall => {
            leak::check_resource_leak(env, false, true, leak::LeakCheck::TailCall)
        }
        HelperRule::LocalStorage => {
            if env.reg(Reg::R2).is_null() {
                return Ok(());
            }
            Err(refuse!(env => Call::StorageFlags))
        }
        HelperRule::PercpuObject => check_percpu_object(env, meta),
        HelperRule::Format => constant::check_snprintf(env),
        HelperRule::DynptrFromMem => match *env.reg(Reg::R1) {
            reg if reg.is_plain(RegBase::PtrToMapValue) => Ok(()),
            reg => Err(refuse!(env => Call::DynptrMemory { kind: reg.reg_type() })),
        },
        HelperRule::Dynptr => {
            meta.dynptr = dynptr::initialized(env, Reg::R1);
            Ok(())
        }
        HelperRule::SetsReturn => check_set_result(env),
    }
}

/// Checks the result that a program of a cgroup sets (in `check_helper_call`).
fn check_set_result(env: &mut Env<'_>) -> Result<()> {
    if attach::returned(env.input) == (Returned::OfCgroup { is_void: true }) {
        return Err(refuse!(env => Call::SetsVoid));
    }
    let reg = Reg::R1;
    let is_number = env.reg(reg).is_scalar() || !env.input.rules.has(Behaviour::SetsNumbers);
    match returns::range_of_result(env) {
        Some(_) if !is_number => Err(refuse!(env => Call::NotScalar { reg })),
        Some(range) => crate::flow::check_result(env, Reg::R1, range, "At bpf_set_retval"),
        None => Ok(()),
    }
}

/// Checks that what an allocated object has for each CPU is a structure.
fn check_percpu_object(env: &mut Check<'_>, meta: &CallMeta) -> Result<()> {
    env.insn_aux().is_percpu_allocated |= meta.is_percpu_allocated;
    let object = meta.object.filter(|_| meta.is_percpu_allocated);
    let is_struct = object.is_none_or(|ty| {
        let found = env.input.btf(ty).and_then(|btf| btf.get(TypeId(ty.id)));
        found.is_some_and(|ty| ty.kind().is_composite())
    });
    match is_struct {
        true => Ok(()),
        false => Err(refuse!(env => Call::PercpuNotStruct)),
    }
}

/// Checks that the program runs at the entry or exit of a function
/// (`check_get_func_ip`).
fn check_get_func_ip(env: &mut Check<'_>, proto: &HelperProto) -> Result<()> {
    let (name, id) = (&proto.name, proto.id);
    match env.input.program.kind() {
        ProgramType::Kprobe => Ok(()),
        ProgramType::Tracing if HookRules::of(env.input.context.hook()).has_trampoline => Ok(()),
        ProgramType::Tracing => Err(refuse!(env => Call::TracingHelper { name, id })),
        kind => Err(refuse!(env => Call::HelperForType { name, id, kind })),
    }
}
