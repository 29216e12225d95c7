//! A pointer plus or minus a scalar (`adjust_ptr_min_max_vals`).
//!
//! A constant goes to the fixed offset, anything else to the variable one. Both stay
//! below 2^29 in size. Packet pointers that get a variable part become a new base with a
//! new identity, of which nothing is proven readable.

use isa::ebpf::{AluOp, Operand, Reg, Width};
use spec::behaviour::{Behaviour, Behaviours};

use crate::domain::Scalar;
use crate::env::{Check, Env};
use crate::log::Sink;
use crate::mem::MAX_VAR_OFF;
use crate::speculation::PointerMove;
use crate::state::{Offsets, RegKind, RegRules, RegState, TypeFlags};
use crate::{Result, refuse, refuse_if};

/// Checks `dst op= src` of a pointer and a scalar; `reversed` if the scalar is in the
/// destination (`adjust_ptr_min_max_vals`).
pub(super) fn adjust_ptr_min_max_vals(
    env: &mut Env<'_>,
    op: AluOp,
    width: Width,
    (dst, src): (Reg, Operand),
    (pointer, scalar): (&RegState, &RegState),
    reversed: bool,
) -> Result<()> {
    let num = &scalar.num;
    let known = num.is_const();
    if known && (num.smin != num.smax || num.umin != num.umax)
        || num.smin > num.smax
        || num.umin > num.umax
    {
        *env.reg_mut(dst) = RegState::UNKNOWN;
        return Ok(());
    }
    if width == Width::W32 {
        if op == AluOp::Sub && env.input.allow_ptr_leaks {
            *env.reg_mut(dst) = RegState::UNKNOWN;
            return Ok(());
        }
        return Err(refuse!(env => Alu::Pointer32Bit { reg: dst }));
    }
    if pointer.may_be_null() {
        return Err(refuse!(env => Alu::PointerMaybeNull { reg: dst, kind: pointer.reg_type() }));
    }
    let is_memory = matches!(pointer.kind, RegKind::Mem { .. });
    let is_united = env.input.rules.has(Behaviour::UnitedOffsets);
    if is_memory && pointer.flags.has(TypeFlags::PTR_UNTRUSTED) {
        if is_united {
            *env.reg_mut(dst) = *pointer;
        }
        return Ok(());
    }
    let is_free = matches!(pointer.kind, RegKind::FlowKeys)
        && !env.input.rules.has(Behaviour::VariableFlowKeys);
    if !is_free && !is_offset_allowed(op, pointer.kind, num) {
        return Err(refuse!(env => Alu::PointerKind { reg: dst, kind: pointer.reg_type() }));
    }
    check_sane_offset(&mut env.sink, scalar, pointer)?;
    check_sane_pointer(env.input.rules, &mut env.sink, pointer)?;
    let movement = PointerMove {
        op,
        dst,
        src,
        reversed,
    };
    let before = movement.check_before(env, pointer, scalar)?;
    let mut result = match op {
        AluOp::Add | AluOp::Sub if is_united => {
            let result = move_whole(env, op, dst, (pointer, scalar), reversed)?;
            movement.check_after(env, &result, scalar, before)?;
            *env.reg_mut(dst) = result;
            return Ok(());
        }
        AluOp::Add => move_varying(env, op, pointer, scalar),
        AluOp::Sub => {
            check_subtraction(&mut env.sink, dst, pointer, reversed)?;
            move_varying(env, op, pointer, scalar)
        }
        AluOp::And | AluOp::Or | AluOp::Xor => {
            return Err(refuse!(env => Alu::BitwiseOperator { reg: dst, op }));
        }
        AluOp::Mul
        | AluOp::Div
        | AluOp::SDiv
        | AluOp::Mod
        | AluOp::SMod
        | AluOp::Lsh
        | AluOp::Rsh
        | AluOp::Arsh
        | AluOp::Mov => {
            return Err(refuse!(env => Alu::PointerOperator { reg: dst, op }));
        }
    };
    result.num.unbound32();
    if reversed && !env.input.rules.has(Behaviour::SumsKeepPointers) {
        // What Linux 6.18 does not copy from the pointer stays as it was in the scalar.
        result.ref_obj_id = scalar.ref_obj_id;
        if let RegKind::Stack { frame } = &mut result.kind {
            *frame = 0;
        }
    }
    check_sane_offset(&mut env.sink, &result, pointer)?;
    result.num.sync(env.input.rules);
    movement.check_after(env, &result, scalar, before)?;
    *env.reg_mut(dst) = result;
    Ok(())
}

/// A pointer moved by a scalar, whose offset is one number.
fn move_whole(
    env: &mut Check<'_>,
    op: AluOp,
    dst: Reg,
    (pointer, scalar): (&RegState, &RegState),
    reversed: bool,
) -> Result<RegState> {
    if op == AluOp::Sub {
        check_subtraction(&mut env.sink, dst, pointer, reversed)?;
    }
    let rules = env.input.rules;
    let is_known = scalar.num.is_const();
    let mut result = *pointer;
    let mut offset = pointer.whole_offset(rules);
    match op {
        AluOp::Sub => offset.sub(&scalar.num, rules),
        _ => offset.add(&scalar.num, rules),
    }
    offset.unbound32();
    if let Some(range) = result.kind.packet_range() {
        let may_rise = op == AluOp::Add || scalar.num.smin < 0;
        if !is_known {
            result.id = env.new_id();
        }
        if !is_known && may_rise || range < 0 {
            forget_range(&mut result);
        }
    }
    result.set_whole_offset(offset);
    check_sane_pointer(env.input.rules, &mut env.sink, &result)?;
    // The end of a range that is proven of a packet does not become lower.
    let keeps_end = is_known || result.kind.packet_range().is_some_and(|range| range > 0);
    match result.kind.is_packet() && keeps_end {
        true => offset.meet_bits32(),
        false => offset.sync(rules),
    }
    result.set_whole_offset(offset);
    Ok(result)
}

/// True if pointers of the kind take offsets, some only constant ones or none but 0.
fn is_offset_allowed(op: AluOp, kind: RegKind, num: &Scalar) -> bool {
    match RegRules::of(kind.base()).offsets {
        Offsets::None => false,
        Offsets::Zero => num.is_const() && num.smin == 0 && op == AluOp::Add,
        Offsets::Constant => num.is_const(),
        Offsets::Any => true,
    }
}

/// A pointer moved by a scalar, whose fixed offset is apart from what varies.
fn move_varying(env: &mut Check<'_>, op: AluOp, pointer: &RegState, scalar: &RegState) -> RegState {
    let (is_sum, num) = (op == AluOp::Add, &scalar.num);
    let mut result = *pointer;
    let off = i64::from(pointer.off);
    let off = match is_sum {
        true => off.wrapping_add(num.smin),
        false => off.wrapping_sub(num.smin),
    };
    if num.is_const()
        && let Ok(off) = i32::try_from(off)
    {
        result.off = off;
        return result;
    }
    let var_off = pointer.num.var_off;
    if is_sum {
        result.num.add_ranges(num, false);
        result.num.var_off = var_off.add(num.var_off);
    } else {
        result.num.sub_ranges(num, false);
        result.num.var_off = var_off.sub(num.var_off);
    }
    if result.kind.is_packet() {
        result.id = env.new_id();
        if is_sum || num.smin < 0 {
            forget_range(&mut result);
        }
    }
    result
}

/// Refuses to subtract a pointer from a scalar, and from a pointer to the stack.
fn check_subtraction(
    log: &mut Sink<'_>,
    dst: Reg,
    pointer: &RegState,
    reversed: bool,
) -> Result<()> {
    refuse_if!(reversed, log => Alu::PointerFromScalar { reg: dst });
    if matches!(pointer.kind, RegKind::Stack { .. }) && pointer.flags.is_empty() {
        return Err(refuse!(log => Alu::StackSubtraction { reg: dst }));
    }
    Ok(())
}

/// Nothing is proven readable behind a new base.
fn forget_range(reg: &mut RegState) {
    if let RegKind::Packet { range } | RegKind::PacketMeta { range } = &mut reg.kind {
        *range = 0;
    }
}

/// Refuses a pointer whose offset is beyond the bound (`check_reg_sane_offset_ptr`).
#[doc(alias = "check_reg_sane_offset_ptr")]
fn check_sane_pointer(rules: Behaviours, log: &mut Sink<'_>, pointer: &RegState) -> Result<()> {
    if !rules.has(Behaviour::UnitedOffsets) {
        return check_sane_offset(log, pointer, pointer);
    }
    let offset = pointer.whole_offset(rules);
    let value = offset.as_const().map_or(offset.smin, |value| value as i64);
    let off = match -MAX_VAR_OFF < value && value < MAX_VAR_OFF {
        true if -MAX_VAR_OFF < offset.smin && offset.smin < MAX_VAR_OFF => return Ok(()),
        true => offset.smin,
        false => value,
    };
    Err(refuse!(log => Alu::PointerOffset { kind: pointer.reg_type(), off }))
}

/// Offsets beyond the bound are refused (`check_reg_sane_offset`, `check_reg_sane_offset_scalar`);
/// `named` is the pointer that the message names.
#[doc(alias = "check_reg_sane_offset")]
#[doc(alias = "check_reg_sane_offset_scalar")]
pub(super) fn check_sane_offset(
    log: &mut Sink<'_>,
    reg: &RegState,
    named: &RegState,
) -> Result<()> {
    let num = &reg.num;
    let value = num.var_off.value as i64;
    let is_sane = |offset: i64| -MAX_VAR_OFF < offset && offset < MAX_VAR_OFF;
    let kind = named.reg_type();
    Err(if num.is_const() && !is_sane(value) {
        refuse!(log => Alu::PointerPlusConstant { kind, value })
    } else if !is_sane(reg.off.into()) {
        refuse!(log => Alu::PointerOffset { kind, off: reg.off })
    } else if num.smin == i64::MIN {
        refuse!(log => Alu::PointerPlusUnbounded { kind })
    } else if !is_sane(num.smin) {
        refuse!(log => Alu::PointerOutOfBounds { value: num.smin, kind })
    } else {
        return Ok(());
    })
}
