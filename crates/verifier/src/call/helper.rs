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
use crate::insn_facts::{self, Filling};
use crate::mem::{Access, MemAccess, check_mem_access, packet, registers};
use crate::rejection::Call;
use crate::walk::{MapUse, Outcome, Walk};
use crate::{Result, Stop, refuse, verbose};

/// The key of a tail call is not the same on all paths (`BPF_MAP_KEY_POISON`).
const KEY_POISON: u64 = 1 << 63;
/// The key of a tail call was seen (`BPF_MAP_KEY_SEEN`).
const KEY_SEEN: u64 = 1 << 62;

/// Checks a helper call.
pub(super) fn check_helper_call(walk: &mut Walk<'_>, id: i32) -> Result<Outcome> {
    let name = walk.env.registry.helper_name(id);
    let registry = walk.env.registry;
    let proto = match registry.helper(&walk.env.context, id as u32) {
        Ok(proto) => proto,
        Err(Unavailable::Hook) => {
            return Err(refuse!(walk => Call::NotInProbe));
        }
        Err(Unavailable::Unknown) if id != 0 => {
            return Err(refuse!(walk => Call::UnknownHelper { name, id }));
        }
        Err(_) => {
            return Err(refuse!(walk => Call::HelperOfOtherType { name, id }));
        }
    };
    if proto.gpl_only && !walk.env.program.is_gpl_compatible() {
        return Err(refuse!(walk => Call::HelperLicense));
    }
    check_sleep(walk, id, proto.might_sleep)?;
    let helper = HelperId::from_number(id);
    let mut changes_data = helper.is_some_and(HelperId::changes_packet);
    let mut meta = CallMeta {
        func: id,
        helper,
        pkt_access: proto.pkt_access,
        ..CallMeta::default()
    };
    for index in 0..proto.args.len() {
        check_arg(walk, proto, index, &mut meta)?;
    }
    record_map(walk, &meta)?;
    record_key(walk, &meta)?;
    if let Some((ptr, size)) = meta.raw.planned {
        insn_facts::note_filling(walk, ptr, size, Filling::of(helper));
        for off in 0..size {
            check_mem_access(walk, MemAccess::new(ptr, off, 1, Access::Write))?;
        }
    }
    release(walk, &meta)?;
    apply_rules(walk, &meta)?;
    clear_caller_saved(walk)?;
    returns::set_result(walk, proto, &meta)?;
    compat::check(walk, meta.map.map(|(map, _)| map), id)?;
    if helper == Some(HelperId::GetFuncIp) {
        check_get_func_ip(walk, id)?;
    }
    let mut outcome = Outcome::Next;
    if helper == Some(HelperId::TailCall) {
        if walk.state.curframe == 0 {
            changes_data = false;
        } else {
            // The tail call fails and the function goes on, or it ends the function.
            walk.mark_scratched(Reg::R0);
            let insn_idx = walk.insn_idx;
            walk.push_branch(insn_idx + 1, insn_idx)?;
            packet::clear_pointers(walk);
            registers::set_unknown(walk, Reg::R0);
            outcome = Outcome::Jump(crate::flow::prepare_func_exit(walk)?);
        }
    }
    if changes_data {
        packet::clear_pointers(walk);
    }
    walk.mark_scratched(Reg::R0);
    Ok(outcome)
}

/// Refuses helpers that may sleep where the program must not.
fn check_sleep(walk: &mut Walk<'_>, id: i32, might_sleep: bool) -> Result<()> {
    let state = &walk.state;
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
        return Err(refuse!(walk => Call::MightSleep));
    }
    if let Some(region) = where_it_is
        && might_sleep
    {
        let name = walk.env.registry.helper_name(id);
        return Err(refuse!(walk => Call::SleepableHelper { name, id, region }));
    }
    let gets_storage = HelperId::from_number(id).is_some_and(HelperId::gets_storage);
    if gets_storage && (where_it_is.is_some() || !walk.state.in_sleepable) {
        walk.aux[walk.insn_idx as usize].storage_get_atomic = true;
    }
    Ok(())
}

/// Notes the map of a call, and refuses changes of maps that programs may only read
/// (`record_func_map`).
#[doc(alias = "record_func_map")]
fn record_map(walk: &mut Walk<'_>, meta: &CallMeta) -> Result<()> {
    let Some(helper) = meta.helper.filter(|helper| helper.names_map()) else {
        return Ok(());
    };
    let Some((map, _)) = meta.map else {
        return Err(Stop::Bug("expected map for helper call".into()));
    };
    if helper.changes_map() && !walk.env.maps[map].can_write() {
        return Err(refuse!(walk => Call::MapReadOnly));
    }
    let used = &mut walk.aux[walk.insn_idx as usize].map;
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
fn record_key(walk: &mut Walk<'_>, meta: &CallMeta) -> Result<()> {
    if meta.helper != Some(HelperId::TailCall) {
        return Ok(());
    }
    let map = meta.map.map(|(map, _)| map);
    let Some(map) = map.filter(|map| walk.env.maps[*map].kind() == Some(MapKind::ProgArray)) else {
        // The kernel ends this line of the log with its statistics.
        let rejection = Call::NotProgArray;
        verbose!(walk, "{rejection}");
        return Err(Stop::refusal(rejection, Some(walk.insn_idx)));
    };
    let max = u64::from(walk.env.maps[map].max_entries());
    let reg = *walk.reg(Reg::R3);
    let key = reg.num.as_const().filter(|_| reg.is_scalar());
    let index = walk.insn_idx as usize;
    let Some(key) = key.filter(|key| *key < max) else {
        walk.aux[index].map_key |= KEY_POISON | KEY_SEEN;
        return Ok(());
    };
    walk.mark_precise(Reg::R3)?;
    let before = walk.aux[index].map_key;
    if before & KEY_SEEN == 0 {
        walk.aux[index].map_key = before & KEY_POISON | KEY_SEEN | key;
    } else if before & KEY_POISON == 0 && before & !KEY_SEEN != key {
        walk.aux[index].map_key = KEY_POISON | KEY_SEEN;
    }
    Ok(())
}

/// Releases the reference that an argument holds.
fn release(walk: &mut Walk<'_>, meta: &CallMeta) -> Result<()> {
    let Some(released) = meta.release else {
        return Ok(());
    };
    if meta.helper == Some(HelperId::KptrXchg) {
        return Err(Stop::unsupported("kernel pointer in a map value"));
    }
    let is_released = match meta.ref_obj_id {
        0 => walk.reg(released).is_null(),
        id => reference::release(walk, id),
    };
    if is_released {
        return Ok(());
    }
    let (id, name) = (meta.func, walk.env.registry.helper_name(meta.func));
    Err(refuse!(walk => Call::NotAcquired { name, id }))
}

/// Rules of single helpers, after the arguments are known to be good. Other helpers have the
/// effects of their prototypes only.
fn apply_rules(walk: &mut Walk<'_>, meta: &CallMeta) -> Result<()> {
    let Some(helper) = meta.helper else {
        return Ok(());
    };
    match helper {
        HelperId::TailCall => leak::check_resource_leak(walk, false, true, "tail_call"),
        HelperId::GetLocalStorage => {
            if walk.reg(Reg::R2).is_null() {
                return Ok(());
            }
            Err(refuse!(walk => Call::StorageFlags))
        }
        HelperId::ForEachMapElem => callback::push(walk, meta.subprog, Callback::MapElement),
        HelperId::TimerSetCallback => callback::push(walk, meta.subprog, Callback::Timer),
        HelperId::FindVma => callback::push(walk, meta.subprog, Callback::FindVma),
        HelperId::UserRingbufDrain => callback::push(walk, meta.subprog, Callback::UserRingbuf),
        HelperId::Loop => callback::push_loop(walk, meta.subprog),
        HelperId::Snprintf => constant::check_snprintf(walk),
        HelperId::SetRetval if walk.env.program.kind() == ProgramType::Lsm => {
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
fn check_get_func_ip(walk: &mut Walk<'_>, id: i32) -> Result<()> {
    let name = walk.env.registry.helper_name(id);
    match walk.env.program.kind() {
        ProgramType::Kprobe => Ok(()),
        ProgramType::Tracing if has_trampoline(walk.env.context.attach) => Ok(()),
        ProgramType::Tracing => Err(refuse!(walk => Call::TracingHelper { name, id })),
        kind => Err(refuse!(walk => Call::HelperForType { name, id, kind })),
    }
}

/// True for the attach types of programs that run at the entry or exit of a function.
const fn has_trampoline(attach: Option<AttachType>) -> bool {
    matches!(
        attach,
        Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn)
    )
}
