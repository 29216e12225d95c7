//! A helper call: availability, arguments, effects, result, in the kernel's order
//! (`check_helper_call`).

use isa::ebpf::Reg;
use spec::helpers::HelperId;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::registry::Unavailable;

use super::args::{CallMeta, check_arg};
use super::callback::{self, Callback};
use super::{clear_caller_saved, compat, constant, leak, reference, returns};
use crate::env::{MapUse, Outcome, VerifierEnv};
use crate::insn_facts::{self, Filling};
use crate::mem::{Access, MemAccess, check_mem_access, packet, registers};
use crate::rejection::Call;
use crate::{Result, Stop, refuse, verbose};

/// The key of a tail call is not the same on all paths (`BPF_MAP_KEY_POISON`).
const KEY_POISON: u64 = 1 << 63;
/// The key of a tail call was seen (`BPF_MAP_KEY_SEEN`).
const KEY_SEEN: u64 = 1 << 62;

/// Checks a helper call.
pub(super) fn check_helper_call(env: &mut VerifierEnv<'_>, id: i32) -> Result<Outcome> {
    let name = env.input.registry.helper_name(id);
    let registry = env.input.registry;
    let proto = match registry.helper(&env.input.context, id as u32) {
        Ok(proto) => proto,
        Err(Unavailable::Hook) => {
            return Err(refuse!(env => Call::NotInProbe));
        }
        Err(Unavailable::Unknown) if id != 0 => {
            return Err(refuse!(env => Call::UnknownHelper { name, id }));
        }
        Err(_) => {
            return Err(refuse!(env => Call::HelperOfOtherType { name, id }));
        }
    };
    if proto.gpl_only && !env.input.program.is_gpl_compatible() {
        return Err(refuse!(env => Call::HelperLicense));
    }
    check_sleep(env, id, proto.might_sleep)?;
    let helper = HelperId::from_number(id);
    let mut changes_data = helper.is_some_and(HelperId::changes_packet);
    let mut meta = CallMeta {
        func: id,
        helper,
        pkt_access: proto.pkt_access,
        ..CallMeta::default()
    };
    for index in 0..proto.args.len() {
        check_arg(env, proto, index, &mut meta)?;
    }
    record_map(env, &meta)?;
    record_key(env, &meta)?;
    if let Some((ptr, size)) = meta.raw.planned {
        insn_facts::note_filling(env, ptr, size, Filling::of(helper));
        for off in 0..size {
            check_mem_access(env, MemAccess::new(ptr, off, 1, Access::Write))?;
        }
    }
    release(env, &meta)?;
    apply_rules(env, &meta)?;
    clear_caller_saved(env)?;
    returns::set_result(env, proto, &meta)?;
    compat::check_map_func_compatibility(env, meta.map.map(|(map, _)| map), id)?;
    if helper == Some(HelperId::GetFuncIp) {
        check_get_func_ip(env, id)?;
    }
    let mut outcome = Outcome::Next;
    if helper == Some(HelperId::TailCall) {
        if env.state.curframe == 0 {
            changes_data = false;
        } else {
            // The tail call fails and the function goes on, or it ends the function.
            env.mark_scratched(Reg::R0);
            env.fork(env.insn_idx + 1)?;
            packet::clear_pointers(env);
            registers::set_unknown(env, Reg::R0);
            outcome = Outcome::Jump(crate::flow::prepare_func_exit(env)?);
        }
    }
    if changes_data {
        packet::clear_pointers(env);
    }
    env.mark_scratched(Reg::R0);
    Ok(outcome)
}

/// Refuses helpers that may sleep where the program must not.
fn check_sleep(env: &mut VerifierEnv<'_>, id: i32, might_sleep: bool) -> Result<()> {
    let state = &env.state;
    let where_it_is = if state.active_rcu_lock {
        Some("rcu_read_lock")
    } else if state.active_preempt_locks != 0 {
        Some("non-preemptible")
    } else if state.active_irq_id != 0 {
        Some("IRQ-disabled")
    } else {
        None
    };
    if might_sleep && !state.in_sleepable {
        return Err(refuse!(env => Call::MightSleep));
    }
    if let Some(region) = where_it_is
        && might_sleep
    {
        let name = env.input.registry.helper_name(id);
        return Err(refuse!(env => Call::SleepableHelper { name, id, region }));
    }
    let gets_storage = HelperId::from_number(id).is_some_and(HelperId::gets_storage);
    if gets_storage && (where_it_is.is_some() || !env.state.in_sleepable) {
        env.aux[env.insn_idx as usize].storage_get_atomic = true;
    }
    Ok(())
}

/// Notes the map of a call, and refuses changes of maps that programs may only read
/// (`record_func_map`).
#[doc(alias = "record_func_map")]
fn record_map(env: &mut VerifierEnv<'_>, meta: &CallMeta) -> Result<()> {
    let Some(helper) = meta.helper.filter(|helper| helper.names_map()) else {
        return Ok(());
    };
    let Some((map, _)) = meta.map else {
        return Err(Stop::Bug("expected map for helper call".into()));
    };
    if helper.changes_map() && !env.input.maps[map].can_write() {
        return Err(refuse!(env => Call::MapReadOnly));
    }
    let used = &mut env.aux[env.insn_idx as usize].map;
    *used = match *used {
        MapUse::None => MapUse::One(map),
        MapUse::One(before) if before == map => MapUse::One(map),
        MapUse::One(_) | MapUse::Several => MapUse::Several,
    };
    Ok(())
}

/// Notes the key of a tail call, so that it can become a direct jump
/// (`record_func_key`).
#[doc(alias = "record_func_key")]
fn record_key(env: &mut VerifierEnv<'_>, meta: &CallMeta) -> Result<()> {
    if meta.helper != Some(HelperId::TailCall) {
        return Ok(());
    }
    let map = meta.map.map(|(map, _)| map);
    let Some(map) = map.filter(|map| env.input.maps[*map].kind() == Some(MapKind::ProgArray))
    else {
        // The kernel ends this line of the log with its statistics.
        let rejection = Call::NotProgArray;
        verbose!(env, "{rejection}");
        return Err(Stop::refusal(rejection, Some(env.insn_idx)));
    };
    let max = u64::from(env.input.maps[map].max_entries());
    let reg = *env.reg(Reg::R3);
    let key = reg.num.as_const().filter(|_| reg.is_scalar());
    let index = env.insn_idx as usize;
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

/// Releases the reference that an argument holds.
fn release(env: &mut VerifierEnv<'_>, meta: &CallMeta) -> Result<()> {
    let Some(released) = meta.release else {
        return Ok(());
    };
    if meta.helper == Some(HelperId::KptrXchg) {
        return Err(Stop::unsupported("kernel pointer in a map value"));
    }
    let is_released = match meta.ref_obj_id {
        0 => env.reg(released).is_null(),
        id => reference::release(env, id),
    };
    if is_released {
        return Ok(());
    }
    let (id, name) = (meta.func, env.input.registry.helper_name(meta.func));
    Err(refuse!(env => Call::NotAcquired { name, id }))
}

/// Rules of single helpers, after the arguments are known to be good. Other helpers have the
/// effects of their prototypes only.
fn apply_rules(env: &mut VerifierEnv<'_>, meta: &CallMeta) -> Result<()> {
    let Some(helper) = meta.helper else {
        return Ok(());
    };
    match helper {
        HelperId::TailCall => leak::check_resource_leak(env, false, true, "tail_call"),
        HelperId::GetLocalStorage => {
            if env.reg(Reg::R2).is_null() {
                return Ok(());
            }
            Err(refuse!(env => Call::StorageFlags))
        }
        HelperId::ForEachMapElem => callback::push(env, meta.subprog, Callback::MapElement),
        HelperId::TimerSetCallback => callback::push(env, meta.subprog, Callback::Timer),
        HelperId::FindVma => callback::push(env, meta.subprog, Callback::FindVma),
        HelperId::UserRingbufDrain => callback::push(env, meta.subprog, Callback::UserRingbuf),
        HelperId::Loop => callback::push_loop(env, meta.subprog),
        HelperId::Snprintf => constant::check_snprintf(env),
        HelperId::SetRetval if env.input.program.kind() == ProgramType::Lsm => {
            Err(Stop::unsupported("bpf_set_retval in LSM programs"))
        }
        HelperId::DynptrFromMem | HelperId::DynptrData | HelperId::DynptrWrite => {
            Err(Stop::unsupported("dynptr"))
        }
        _ => Ok(()),
    }
}

/// Checks that the program runs at the entry or exit of a function
/// (`check_get_func_ip`).
fn check_get_func_ip(env: &mut VerifierEnv<'_>, id: i32) -> Result<()> {
    let name = env.input.registry.helper_name(id);
    match env.input.program.kind() {
        ProgramType::Kprobe => Ok(()),
        ProgramType::Tracing if has_trampoline(env.input.context.attach) => Ok(()),
        ProgramType::Tracing => Err(refuse!(env => Call::TracingHelper { name, id })),
        kind => Err(refuse!(env => Call::HelperForType { name, id, kind })),
    }
}

/// True for the attach types of programs that run at the entry or exit of a function.
const fn has_trampoline(attach: Option<AttachType>) -> bool {
    matches!(
        attach,
        Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn)
    )
}
