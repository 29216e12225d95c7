//! Stack accesses: spills and fills of every width, data at fixed and variable
//! offsets, and the buffers that helpers read and write.
//!
//! A slot of eight bytes holds a spilled register, or bytes of one kind each
//! ([`SlotKind`]). A write at a fixed offset spills the register where it can; any
//! other write destroys what the bytes belonged to.
//!
//! Invariant: [`check_bounds`] comes first, and grows the frame's slots to cover the
//! access. Complexity: linear in the bytes accessed.

use isa::ebpf::{Insn, Operand, Reg};
use spec::behaviour::Behaviour;

use super::helper_mem::RawMem;
use super::registers::{assign_scalar_id, set_constant, set_unknown, with_scalar_id};
use super::{Access, MAX_STACK, MAX_VAR_OFF};
use crate::call::dynptr;
use crate::domain::Scalar;
use crate::env::{Check, Env};
use crate::state::{
    HistoryFlags, LinkedRegs, RegKind, RegRules, RegState, SlotKind, StackSlot, State,
};
use crate::{Result, Stop, insn_facts, log};

/// Number of the frame that the stack pointer in `ptr` points into (`func`).
#[doc(alias = "func")]
pub(super) fn frame_of(state: &State, ptr: Reg) -> usize {
    if let RegKind::Stack { frame } = state.reg(ptr).kind {
        return frame as usize;
    }
    state.curframe
}

/// Checks that `[ptr + off, ptr + off + size)` lies on the stack, and grows the slots to cover it
/// (`check_stack_access_within_bounds`, `check_stack_slot_within_bounds`).
#[doc(alias = "check_stack_access_within_bounds")]
#[doc(alias = "check_stack_slot_within_bounds")]
pub(super) fn check_bounds(
    env: &mut Check<'_>,
    ptr: Reg,
    off: i32,
    size: i32,
    access: Access,
    by_helper: bool,
) -> Result<()> {
    let num = env.reg(ptr).num;
    let var_off = num.var_off;
    let frame = frame_of(&env.state, ptr);
    let what = match access {
        _ if by_helper && !env.input.rules.has(Behaviour::StackAccessNamed) => {
            " indirect access to"
        }
        Access::Read | Access::MayRead => " read from",
        Access::Write => " write to",
    };
    let (min, max) = if var_off.is_const() {
        let min = (var_off.value as i64).wrapping_add(off.into());
        (min, min.wrapping_add(size.into()))
    } else {
        if num.smax >= MAX_VAR_OFF || num.smin <= -MAX_VAR_OFF {
            return Err(refuse!(env => Mem::StackUnbounded { what, reg: ptr }));
        }
        let min = num.smin + i64::from(off);
        (min, num.smax + i64::from(off) + i64::from(size))
    };
    let reads_below =
        env.input.allow_uninit_stack && env.input.rules.has(Behaviour::UninitializedReads);
    let lowest = match access == Access::Write || reads_below {
        true => -MAX_STACK,
        false => -(env.state.frame(frame).allocated_stack() as i64),
    };
    let begins_on_stack = (lowest..=-1).contains(&min);
    if begins_on_stack && max <= 0 && size >= 0 {
        if by_helper && !env.input.rules.has(Behaviour::UninitializedReads) {
            return Ok(());
        }
        grow(env, frame, -min as usize);
        return Ok(());
    }
    let mut refusal = match var_off.is_const() {
        false => refuse!(env => Mem::StackVariable { what, reg: ptr, var_off, off, size }),
        true => refuse!(env => Mem::OutsideStack { what, reg: ptr, off, size }),
    };
    // An access that starts on the stack and ends above it has another error number.
    if let crate::Stop::Refused(refusal) = &mut refusal
        && begins_on_stack
        && max > 0
    {
        refusal.errno = crate::Errno::EINVAL;
    }
    Err(refusal)
}

/// Extends the slots of a frame and the known stack depth of its subprogram.
fn grow(env: &mut Check<'_>, frame: usize, bytes: usize) {
    let bytes = bytes.next_multiple_of(8);
    let state = env.state.frame(frame);
    if state.allocated_stack() >= bytes {
        return;
    }
    let subprog = state.subprogno as usize;
    env.state.frame_mut(frame).grow_stack(bytes);
    let depth = &mut env.subprogs[subprog].stack_depth;
    *depth = (*depth).max(bytes as u32);
}

/// Gives up the removal of fastcall spills in a subprogram that touches them otherwise
/// (`check_fastcall_stack_contract`).
#[doc(alias = "check_fastcall_stack_contract")]
fn check_fastcall_contract(env: &mut Check<'_>, frame: usize, off: i32) {
    let subprog = env.state.frame(frame).subprogno as usize;
    let is_pattern = env.analysis.insns[env.sink.insn_idx as usize].fastcall_pattern;
    let limit = &mut env.subprogs[subprog].fastcall_stack_off;
    if *limit > off && !is_pattern {
        *limit = i16::MIN.into();
    }
}

/// Reads `size` bytes at `ptr + off` into `dst` (`check_stack_read`, `check_stack_read_var_off`).
#[doc(alias = "check_stack_read")]
#[doc(alias = "check_stack_read_var_off")]
pub(super) fn check_read(
    env: &mut Env<'_>,
    ptr: Reg,
    off: i32,
    size: u32,
    dst: Option<Reg>,
) -> Result<()> {
    let num = env.reg(ptr).num;
    let var_off = num.var_off;
    let frame = frame_of(&env.state, ptr);
    if var_off.is_const() {
        let off = off.wrapping_add(var_off.value as i32);
        return read_fixed(env, frame, off, size, dst);
    }
    let Some(dst) = dst else {
        return Err(refuse!(env => Mem::StackHelperVariable { var_off, off, size }));
    };
    check_range(env, ptr, off, size as i32, false, Access::Read, None)?;
    let min = (num.smin as i32).wrapping_add(off);
    let max = (num.smax as i32).wrapping_add(off) + size as i32;
    read_bytes(env, frame, min, max, dst);
    check_fastcall_contract(env, frame, min);
    Ok(())
}

/// Reads at a fixed offset; restores a spilled register where the slot has one
/// (`check_stack_read_fixed_off`).
#[doc(alias = "check_stack_read_fixed_off")]
fn read_fixed(
    env: &mut Env<'_>,
    frame: usize,
    off: i32,
    size: u32,
    dst: Option<Reg>,
) -> Result<()> {
    let slot = (-off - 1) as usize;
    let spi = slot / 8;
    env.mark_slot_scratched(spi);
    let executing = env.state.curframe;
    check_fastcall_contract(env, executing, off);
    env.mark_slots_read(frame, 1 << spi);
    insn_facts::note_stack_read(env, frame, off, off + size as i32);
    let StackSlot { reg, kinds } = env.state.frame(frame).stack[spi];
    let byte = |index: u32| kinds[(slot - index as usize) % 8];
    let is_uninit_ok = env.input.allow_uninit_stack;
    let mut is_fill = false;
    if kinds[7] == SlotKind::Spill {
        let spilled = spill_size(&kinds);
        if size != 8 || spilled != 8 {
            if !reg.is_scalar() {
                log::verbose_linfo(env.input, &mut env.sink, "; ");
                return Err(refuse!(env => Mem::FillSize));
            }
            let Some(dst) = dst else { return Ok(()) };
            let narrows = env.input.rules.has(Behaviour::NarrowFills);
            if (size == spilled || size < spilled && narrows) && off % 8 == 0 {
                let mut filled = match size == 4 && spilled == 4 && reg.num.width() <= 32 {
                    true => linked_with_slot(env, frame, spi),
                    false => reg,
                };
                if reg.num.width() > size * 8 && narrows {
                    filled = filled.without_link(env.input.rules);
                }
                *env.reg_mut(dst) = filled;
                is_fill = true;
            } else {
                let (mut spills, mut zeros) = (0, 0);
                for index in 0..size {
                    match byte(index) {
                        SlotKind::Spill => spills += 1,
                        SlotKind::Misc => {}
                        SlotKind::Zero => zeros += 1,
                        SlotKind::Invalid if is_uninit_ok => {}
                        kind @ (SlotKind::Invalid
                        | SlotKind::Poison
                        | SlotKind::Dynptr
                        | SlotKind::Iter
                        | SlotKind::IrqFlag) => {
                            return Err(refuse_read(env, kind, off, index, size));
                        }
                    }
                }
                if spills == size && reg.num.as_const() == Some(0) && narrows {
                    set_zero(env, dst);
                    is_fill = true;
                } else if zeros == size && narrows {
                    set_zero(env, dst);
                } else {
                    set_unknown(env, dst);
                }
            }
        } else if let Some(dst) = dst {
            *env.reg_mut(dst) = linked_with_slot(env, frame, spi);
            is_fill = true;
        } else {
            if !env.input.allow_ptr_leaks && !reg.is_scalar() {
                return Err(refuse!(env => Mem::LeaksSpilled { off }));
            }
            is_fill = true;
        }
    } else {
        for index in 0..size {
            match byte(index) {
                SlotKind::Misc | SlotKind::Zero => {}
                SlotKind::Invalid if is_uninit_ok => {}
                kind @ (SlotKind::Invalid
                | SlotKind::Poison
                | SlotKind::Spill
                | SlotKind::Dynptr
                | SlotKind::Iter
                | SlotKind::IrqFlag) => return Err(refuse_read(env, kind, off, index, size)),
            }
        }
        if let Some(dst) = dst {
            read_bytes(env, frame, off, off + size as i32, dst);
        }
    }
    if is_fill {
        push_access(env, frame, spi)?;
    }
    Ok(())
}

/// What is spilled in a slot, linked with the slot where fills are.
fn linked_with_slot(env: &mut Check<'_>, frame: usize, spi: usize) -> RegState {
    let old = env.state.frame(frame).stack[spi].reg;
    if !env.input.rules.has(Behaviour::FillsLinked) || !env.input.bpf_capable {
        return old;
    }
    let new = with_scalar_id(env, old);
    if new != old {
        env.state.frame_mut(frame).stack.slot_mut(spi).reg = new;
    }
    new
}

fn refuse_read(env: &mut Check<'_>, kind: SlotKind, off: i32, index: u32, size: u32) -> Stop {
    match kind {
        SlotKind::Poison => refuse!(env => Mem::StackPoisoned { off, index, size }),
        _ => refuse!(env => Mem::StackUnread { off, index, size }),
    }
}

/// Sets `dst` to what `[min, max)` of the stack may hold (`mark_reg_stack_read`).
#[doc(alias = "mark_reg_stack_read")]
fn read_bytes(env: &mut Check<'_>, frame: usize, min: i32, max: i32, dst: Reg) {
    for at in min..max {
        let slot = (-at - 1) as usize;
        env.mark_slot_scratched(slot / 8);
        if env.state.frame(frame).stack[slot / 8].kinds[slot % 8] != SlotKind::Zero {
            set_unknown(env, dst);
            return;
        }
    }
    set_zero(env, dst);
    if !env.input.rules.has(Behaviour::StackByAnyRegister) {
        env.state.stack_zeros |= 1 << dst.number();
    }
}

/// Writes `size` bytes at `ptr + off` from `value` (`check_stack_write`).
#[doc(alias = "check_stack_write")]
pub(super) fn check_write(
    env: &mut Env<'_>,
    ptr: Reg,
    off: i32,
    size: u32,
    value: Option<Reg>,
) -> Result<()> {
    let num = env.reg(ptr).num;
    let frame = frame_of(&env.state, ptr);
    if num.var_off.is_const() {
        let off = off.wrapping_add(num.var_off.value as i32);
        write_fixed(env, frame, off, size, value)
    } else {
        let min = (num.smin as i32).wrapping_add(off);
        let max = (num.smax as i32).wrapping_add(off) + size as i32;
        write_var(env, frame, min, max, value)
    }
}

/// The immediate of the executing instruction, if it stores one (`is_bpf_st_mem`).
#[doc(alias = "is_bpf_st_mem")]
fn stored_imm(env: &Check<'_>) -> Option<i32> {
    match env.input.insns[env.sink.insn_idx as usize] {
        Insn::Store {
            src: Operand::Imm(imm),
            ..
        } => Some(imm),
        _ => None,
    }
}

/// Writes at a fixed offset; spills where it can (`check_stack_write_fixed_off`).
#[doc(alias = "check_stack_write_fixed_off")]
fn write_fixed(
    env: &mut Env<'_>,
    frame: usize,
    off: i32,
    size: u32,
    value: Option<Reg>,
) -> Result<()> {
    let spi = (-off - 1) as usize / 8;
    begin_write(env, frame, off, size, value, size == 8)?;
    let is_aligned = off % 8 == 0;
    if is_aligned && size == 8 {
        env.mark_slots_written(frame, 1 << spi);
    }
    let imm = stored_imm(env);
    let is_capable = env.input.bpf_capable;
    let spilled = match (value, imm) {
        (Some(value), _) => {
            let reg = *env.reg(value);
            let any = env.input.rules.has(Behaviour::NumbersSpilled);
            let is_kept = any || !is_unbounded(&reg.num) && !reg.is_null();
            if is_aligned && reg.is_scalar() && is_capable && is_kept {
                let fits = reg.num.width() <= size * 8;
                if !any && !is_by_frame_pointer(env) {
                    env.mark_precise(value)?;
                }
                if fits && any {
                    assign_scalar_id(env, value);
                }
                let mut reg = *env.reg(value);
                if !fits {
                    reg = reg.without_link(env.input.rules);
                }
                Some(reg)
            } else if is_spillable(&reg) {
                if size != 8 {
                    log::verbose_linfo(env.input, &mut env.sink, "; ");
                    return Err(refuse!(env => Mem::SpillSize));
                }
                if frame != env.state.curframe && matches!(reg.kind, RegKind::Stack { .. }) {
                    return Err(refuse!(env => Mem::SpillToCaller));
                }
                Some(reg)
            } else {
                None
            }
        }
        (None, Some(imm))
            if is_aligned
                && is_capable
                && (imm != 0 || env.input.rules.has(Behaviour::NumbersSpilled)) =>
        {
            Some(RegState::constant(i64::from(imm) as u64))
        }
        (None, _) => None,
    };
    if let Some(reg) = spilled {
        let keeps_zeros = env.input.rules.has(Behaviour::NumbersSpilled);
        let slot = env.state.frame_mut(frame).stack.slot_mut(spi);
        spill(slot, reg, size as usize, keeps_zeros);
        return push_access(env, frame, spi);
    }
    let is_zero = match value {
        Some(value) => env.reg(value).is_null(),
        None => imm == Some(0),
    };
    if is_zero && let Some(value) = value {
        env.mark_precise(value)?;
    }
    let kind = if is_zero {
        SlotKind::Zero
    } else {
        SlotKind::Misc
    };
    put_data(&mut env.state, frame, off, size, kind);
    Ok(())
}

/// Writes `size` bytes behind a pointer to the stack that the call has checked, of which nothing is
/// known and which do not belong together.
pub(crate) fn write_unknown(env: &mut Env<'_>, ptr: Reg, size: i32) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let reg = env.reg(ptr);
    let (fixed, var_off) = (reg.off, reg.num.var_off);
    check_bounds(env, ptr, fixed, size, Access::Write, false)?;
    let frame = frame_of(&env.state, ptr);
    let mut off = fixed.wrapping_add(var_off.value as i32);
    let end = off + size;
    while off < end {
        let next = end.min((off & !7) + 8);
        let bytes = (next - off) as u32;
        begin_write(env, frame, off, bytes, None, false)?;
        put_data(&mut env.state, frame, off, bytes, SlotKind::Misc);
        off = next;
    }
    Ok(())
}

/// Checks that `size` bytes of a slot may be written, with the register `value` if there is one, at
/// once as a whole slot if `is_whole`; notes the write.
fn begin_write(
    env: &mut Env<'_>,
    frame: usize,
    off: i32,
    size: u32,
    value: Option<Reg>,
    is_whole: bool,
) -> Result<()> {
    let slot = (-off - 1) as usize;
    let spi = slot / 8;
    let old = &env.state.frame(frame).stack[spi];
    let has_pointer = old.is_spilled() && !old.is_spilled_scalar();
    refuse_if!(!env.input.allow_ptr_leaks && has_pointer && !is_whole, env => Mem::CorruptsSpill);
    if !env.input.bypass_spec_v4 {
        let is_data = |index: u32| {
            let kind = old.kinds[(slot - index as usize) % 8];
            matches!(kind, SlotKind::Misc | SlotKind::Zero)
        };
        let is_pointer = value.is_some_and(|value| is_spillable(env.reg(value)));
        let needs_barrier = is_pointer || !(0..size).all(is_data);
        env.insn_aux().barriers.behind |= needs_barrier;
    }
    dynptr::overwrite(env, frame, spi)?;
    insn_facts::note_stack_write(env, frame, off, off + size as i32);
    check_fastcall_contract(env, frame, off);
    env.mark_slot_scratched(spi);
    Ok(())
}

/// Makes bytes of a slot data of a kind.
fn put_data(state: &mut State, frame: usize, off: i32, size: u32, kind: SlotKind) {
    let slot = (-off - 1) as usize;
    let slot_mut = state.frame_mut(frame).stack.slot_mut(slot / 8);
    scrub(slot_mut);
    for index in 0..size as usize {
        slot_mut.kinds[(slot - index) % 8] = kind;
    }
}

/// Writes somewhere in `[min, max)` (`check_stack_write_var_off`).
#[doc(alias = "check_stack_write_var_off")]
fn write_var(
    env: &mut Env<'_>,
    frame: usize,
    min: i32,
    max: i32,
    value: Option<Reg>,
) -> Result<()> {
    let is_zero = match value {
        Some(value) => env.reg(value).is_null(),
        None => stored_imm(env) == Some(0),
    };
    for at in min..max {
        let spi = (-at - 1) as usize / 8;
        dynptr::overwrite(env, frame, spi)?;
    }
    check_fastcall_contract(env, frame, min);
    insn_facts::note_possible_stack_write(env, frame, min, max);
    let mut is_zero_kept = false;
    for at in min..max {
        let slot = (-at - 1) as usize;
        let spi = slot / 8;
        env.mark_slot_scratched(spi);
        let old = env.state.frame(frame).stack[spi];
        let kind = old.kinds[slot % 8];
        if !env.input.allow_ptr_leaks && !matches!(kind, SlotKind::Misc | SlotKind::Zero) {
            return Err(refuse!(env => Mem::SpilledInWrite { insn: env.sink.insn_idx, at }));
        }
        let is_spilled_zero =
            kind == SlotKind::Spill && old.is_spilled_scalar() && old.reg.num.as_const() == Some(0);
        if is_zero && is_spilled_zero {
            is_zero_kept = true;
            continue;
        }
        if kind.is_empty() && !env.input.allow_uninit_stack {
            return Err(refuse!(env => Mem::UninitInWrite { insn: env.sink.insn_idx, at }));
        }
        let scrubs = env.input.rules.has(Behaviour::WritesScrubSpills);
        let slot_mut = env.state.frame_mut(frame).stack.slot_mut(spi);
        match scrubs {
            true => scrub(slot_mut),
            false => slot_mut.reg.kind = RegKind::NotInit,
        }
        let byte = &mut slot_mut.kinds[slot % 8];
        if is_zero && *byte == SlotKind::Zero {
            is_zero_kept = true;
        } else {
            *byte = SlotKind::Misc;
        }
    }
    match value {
        Some(value) if is_zero_kept => env.mark_precise(value),
        _ => Ok(()),
    }
}

/// Checks that a helper, or a read at a variable offset, may use
/// `[ptr + off, ptr + off + size)` (`check_stack_range_initialized`). With `raw` the bytes
/// need not be initialised, and the call writes them.
#[doc(alias = "check_stack_range_initialized")]
pub(super) fn check_range(
    env: &mut Env<'_>,
    ptr: Reg,
    off: i32,
    size: i32,
    is_zero_ok: bool,
    access: Access,
    raw: Option<&mut RawMem>,
) -> Result<()> {
    refuse_if!(size == 0 && !is_zero_ok, env => Mem::ZeroRead);
    check_bounds(env, ptr, off, size, access, true)?;
    let num = env.reg(ptr).num;
    let var_off = num.var_off;
    let frame = frame_of(&env.state, ptr);
    let is_filled = raw.is_some();
    let (min, max) = if let Some(value) = num.as_const() {
        let at = (value as i32).wrapping_add(off);
        if let Some(raw) = raw.filter(|raw| !raw.has_variable_size) {
            return plan_raw(env, raw, frame, ptr, at, size);
        }
        (at, at)
    } else {
        if !env.input.bypass_spec_v1 {
            return Err(refuse!(env => Mem::StackVariablePrivilege { reg: ptr, var_off }));
        }
        (
            (num.smin as i32).wrapping_add(off),
            (num.smax as i32).wrapping_add(off),
        )
    };
    let is_clobber = access == Access::Write;
    if !is_filled {
        insn_facts::note_range_read(env, frame, min, max + size);
    }
    if is_clobber {
        insn_facts::note_possible_stack_write(env, frame, min, max + size);
    }
    let refuse_argument = |env: &mut Check<'_>, index| match var_off.is_const() {
        true => refuse!(env => Mem::StackArgument { reg: ptr, min, index, size }),
        false => refuse!(env => Mem::StackArgumentVariable { reg: ptr, var_off, index, size }),
    };
    for at in min..max + size {
        let slot = (-at - 1) as usize;
        let spi = slot / 8;
        if env.state.frame(frame).allocated_stack() <= slot
            && !env.input.rules.has(Behaviour::UninitializedReads)
        {
            return Err(refuse_argument(env, at - min));
        }
        refuse_if!(env.state.frame(frame).allocated_stack() <= slot, env => Mem::AllocatedStack);
        let old = &env.state.frame(frame).stack[spi];
        match old.kinds[slot % 8] {
            SlotKind::Misc => {}
            SlotKind::Zero => clobber_byte(&mut env.state, frame, slot, is_clobber),
            SlotKind::Invalid if env.input.allow_uninit_stack => {
                clobber_byte(&mut env.state, frame, slot, is_clobber);
            }
            kind @ (SlotKind::Invalid
            | SlotKind::Spill
            | SlotKind::Dynptr
            | SlotKind::Iter
            | SlotKind::IrqFlag
            | SlotKind::Poison) => {
                let is_readable = old.reg.is_scalar() || env.input.allow_ptr_leaks;
                let is_spilled = old.is_spilled() && is_readable;
                if is_spilled && is_clobber {
                    let slot = env.state.frame_mut(frame).stack.slot_mut(spi);
                    slot.reg = RegState::UNKNOWN;
                    scrub_kinds(slot);
                }
                // Poison is what no instruction reads, as far as the analysis before the walk knows.
                match kind {
                    _ if is_spilled => {}
                    SlotKind::Poison if access != Access::Read => {}
                    SlotKind::Poison => {
                        let (reg, index) = (ptr, at - min);
                        return Err(
                            refuse!(env => Mem::ArgumentPoisoned { reg, min, index, size }),
                        );
                    }
                    _ => return Err(refuse_argument(env, at - min)),
                }
            }
        }
        if at == min || slot % 8 == 7 {
            env.mark_slots_read(frame, 1 << spi);
        }
    }
    Ok(())
}

/// Notes that the call writes `size` bytes at `at`, initialised or not.
fn plan_raw(
    env: &mut Check<'_>,
    raw: &mut RawMem,
    frame: usize,
    ptr: Reg,
    at: i32,
    size: i32,
) -> Result<()> {
    let stack = &env.state.frame(frame).stack;
    let is_dynptr = |at: &i32| {
        let slot = (-at - 1) as usize;
        stack
            .get(slot / 8)
            .is_some_and(|found| found.kinds[slot % 8] == SlotKind::Dynptr)
    };
    let is_kept = env.input.rules.has(Behaviour::DynptrsTracked);
    if let Some(at) = (at..at + size).find(is_dynptr).filter(|_| is_kept) {
        return Err(refuse!(env => Mem::DynptrWrite { at }));
    }
    raw.planned = Some((ptr, size));
    Ok(())
}

fn clobber_byte(state: &mut State, frame: usize, slot: usize, is_clobber: bool) {
    if is_clobber {
        state.frame_mut(frame).stack.slot_mut(slot / 8).kinds[slot % 8] = SlotKind::Misc;
    }
}

fn push_access(env: &mut Env<'_>, frame: usize, spi: usize) -> Result<()> {
    if !env.input.rules.has(Behaviour::StackByAnyRegister) {
        return Ok(());
    }
    let flags = HistoryFlags::stack_access(spi, frame as u32);
    env.push_history(flags, LinkedRegs::default())
}

/// True if the instruction accesses memory through the frame pointer.
fn is_by_frame_pointer(env: &Check<'_>) -> bool {
    match env.input.insns[env.sink.insn_idx as usize] {
        Insn::Load { base, .. } | Insn::Store { base, .. } => base == Reg::R10,
        _ => false,
    }
}

/// True if the 64-bit and 32-bit ranges of a number are unknown (`__is_scalar_unbounded`).
#[doc(alias = "__is_scalar_unbounded")]
fn is_unbounded(num: &Scalar) -> bool {
    num.var_off.is_unknown() && num.is_unbounded()
}

/// Makes a register the scalar 0 (`__mark_reg_const_zero`).
#[doc(alias = "__mark_reg_const_zero")]
fn set_zero(env: &mut Check<'_>, dst: Reg) {
    set_constant(env, dst, 0);
}

/// True if a register of this kind can be spilled (`is_spillable_regtype`).
#[doc(alias = "is_spillable_regtype")]
pub(crate) fn is_spillable(reg: &RegState) -> bool {
    RegRules::of(reg.kind.base()).is_spillable
}

/// Bytes of the register spilled in a slot.
fn spill_size(kinds: &[SlotKind; 8]) -> u32 {
    let spilled = kinds
        .iter()
        .rev()
        .take_while(|kind| **kind == SlotKind::Spill);
    spilled.count() as u32
}

/// Puts a register into the upper `size` bytes of a slot; initialised bytes below become data, unless zeros
/// stay (`save_register_state`, `mark_stack_slot_misc`).
#[doc(alias = "save_register_state")]
#[doc(alias = "mark_stack_slot_misc")]
fn spill(slot: &mut StackSlot, reg: RegState, size: usize, keeps_zeros: bool) {
    slot.reg = reg;
    let (low, high) = slot.kinds.split_at_mut(8 - size);
    high.fill(SlotKind::Spill);
    for kind in low {
        let stays = kind.is_empty() || *kind == SlotKind::Zero && keeps_zeros;
        if !stays {
            *kind = SlotKind::Misc;
        }
    }
}

/// Forgets what a slot held, before data is written into some of its bytes (`scrub_special_slot`).
#[doc(alias = "scrub_special_slot")]
fn scrub(slot: &mut StackSlot) {
    slot.reg.kind = RegKind::NotInit;
    if slot.is_spilled() || slot.is_special() {
        scrub_kinds(slot);
    }
}

/// Makes data of every byte that is initialised (`scrub_spilled_slot`).
#[doc(alias = "scrub_spilled_slot")]
fn scrub_kinds(slot: &mut StackSlot) {
    for kind in &mut slot.kinds {
        if !kind.is_empty() {
            *kind = SlotKind::Misc;
        }
    }
}
