//! Speculative execution, which is verified for callers without CAP_PERFMON.
//!
//! A processor may go on where a decided branch does not lead (Spectre variant 1), and
//! with a pointer that a masked offset left where it was. Such paths are walked like any
//! other, marked as speculative. A refusal on one does not refuse the program: a barrier in
//! front of the instruction ends the path. Pointer arithmetic with an offset in a register
//! is masked to a limit, which must be the same on every path. Writes to the stack that
//! replace what is no data are followed by a barrier (Spectre variant 4).

use isa::ebpf::{AluOp, Operand, Reg};

use crate::env::{Check, Env};
use crate::mem::STACK_END;
use crate::mem::map_value::{self, Source};
use crate::state::{RegKind, RegState};
use crate::verdict::Stop;
use crate::{Errno, Result};
use spec::limits;

/// Speculation barriers and masks of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barriers {
    /// A barrier in front of it: it is never executed speculatively (`nospec`).
    pub before: bool,
    /// A barrier behind it (`nospec_result`).
    pub behind: bool,
    /// The offset of its pointer arithmetic is masked (`alu_state`, `alu_limit`).
    pub mask: Option<OffsetMask>,
}

/// Mask of the offset of pointer arithmetic. All paths must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetMask {
    /// The instruction computes with two scalars.
    Scalar,
    /// The offset is masked to a limit.
    Pointer {
        /// The pointer is in the destination register.
        pointer_in_dst: bool,
        /// The offset is negative.
        negative: bool,
        /// The offset is a constant.
        constant: bool,
        /// Bytes that the offset may have at most.
        limit: u32,
    },
}

/// True if a barrier takes the place of this refusal on a speculative path
/// (`error_recoverable_with_nospec`).
#[doc(alias = "error_recoverable_with_nospec")]
pub(crate) fn is_recoverable(stop: &Stop) -> bool {
    match stop {
        Stop::Refused(refusal) => {
            matches!(refusal.errno, Errno::EPERM | Errno::EACCES | Errno::EINVAL)
        }
        Stop::Unsupported(_) | Stop::Bug(_) => false,
    }
}

/// Adds the path that a processor may take where a decided branch does not lead
/// (`sanitize_speculative_path`). What the comparison would say of its operands does not hold
/// there.
#[doc(alias = "sanitize_speculative_path")]
pub(crate) fn push_untaken(env: &mut Env<'_>, target: u32, dst: Reg, src: Operand) -> Result<()> {
    if env.input.bypass_spec_v1 {
        return Ok(());
    }
    let branch = env.fork(target)?;
    branch.speculative = true;
    *branch.reg_mut(dst) = RegState::UNKNOWN;
    if let Operand::Reg(src) = src {
        *branch.reg_mut(src) = RegState::UNKNOWN;
    }
    Ok(())
}

/// Notes that an addition or subtraction has two scalars (`sanitize_val_alu`).
#[doc(alias = "sanitize_val_alu")]
pub(crate) fn note_scalars(env: &mut Check<'_>, op: AluOp, dst: Reg, src: Operand) -> Result<()> {
    if !is_masked(op) || can_skip(env, src) {
        return Ok(());
    }
    let noted = note_mask(env, OffsetMask::Scalar);
    noted.map_err(|why| refuse_alu(env, why, op, dst, src, false))
}

/// A pointer plus or minus a scalar, while it is checked (`struct bpf_sanitize_info`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerMove {
    pub(crate) op: AluOp,
    pub(crate) dst: Reg,
    pub(crate) src: Operand,
    /// The scalar is in the destination.
    pub(crate) reversed: bool,
}

/// The limit of the pointer before it moved, if its offset is masked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitBefore {
    to_left: bool,
    limit: u32,
}

/// Reason why arithmetic cannot be masked.
enum Unmasked {
    Bounds,
    Type,
    Paths,
    Limit,
    Stack,
}

impl PointerMove {
    /// Checks the pointer and its offset before the operation, and adds the path on which
    /// the masked offset is 0 (`sanitize_ptr_alu` without `commit_window`).
    #[doc(alias = "sanitize_ptr_alu")]
    #[doc(alias = "commit_window")]
    pub(crate) fn check_before(
        self,
        env: &mut Env<'_>,
        pointer: &RegState,
        scalar: &RegState,
    ) -> Result<Option<LimitBefore>> {
        if !is_masked(self.op) || can_skip(env, self.src) {
            return Ok(None);
        }
        let is_const = scalar.num.is_const();
        let mut before = None;
        if !env.state.speculative {
            let checked = self.limit_before(env, pointer, scalar);
            before = Some(checked.map_err(|why| self.refuse(env, why))?);
            // A masked offset may differ from path to path.
            env.explore_alu_limits |= !is_const;
        }
        if !is_const {
            let idx = env.sink.insn_idx;
            let mut moved = *pointer;
            if !self.reversed {
                moved.num.unbound32();
            }
            match env.fork(idx + 1) {
                Ok(branch) => {
                    branch.speculative = true;
                    *branch.reg_mut(self.dst) = moved;
                }
                Err(_) => return Err(self.refuse(env, Unmasked::Stack)),
            }
        }
        Ok(before)
    }

    fn limit_before(
        self,
        env: &Check<'_>,
        pointer: &RegState,
        scalar: &RegState,
    ) -> std::result::Result<LimitBefore, Unmasked> {
        let num = &scalar.num;
        if !num.is_const() && (num.smin < 0) != (num.smax < 0) {
            return Err(Unmasked::Bounds);
        }
        let to_left = (num.smin < 0) == (self.op == AluOp::Add);
        let limit = pointer_limit(env, pointer, to_left)?;
        Ok(LimitBefore { to_left, limit })
    }

    /// Checks where the operation put the pointer, and notes by how much it may move
    /// (`sanitize_check_bounds`, `sanitize_ptr_alu` with `commit_window`).
    #[doc(alias = "sanitize_check_bounds")]
    #[doc(alias = "sanitize_ptr_alu")]
    #[doc(alias = "commit_window")]
    pub(crate) fn check_after(
        self,
        env: &mut Check<'_>,
        moved: &RegState,
        scalar: &RegState,
        before: Option<LimitBefore>,
    ) -> Result<()> {
        self.check_bounds(env, moved)?;
        let Some(before) = before else {
            return Ok(());
        };
        let noted = pointer_limit(env, moved, before.to_left).and_then(|limit| {
            let distance = before.limit.wrapping_sub(limit) as i32;
            let mask = OffsetMask::Pointer {
                pointer_in_dst: !self.reversed,
                negative: scalar.num.smin < 0,
                constant: scalar.num.is_const(),
                limit: distance.unsigned_abs(),
            };
            note_mask(env, mask)
        });
        noted.map_err(|why| self.refuse(env, why))
    }

    /// The pointer must stay inside its object, as an access through it may be masked only there
    /// (`check_stack_access_for_ptr_arithmetic`).
    #[doc(alias = "check_stack_access_for_ptr_arithmetic")]
    fn check_bounds(self, env: &mut Check<'_>, moved: &RegState) -> Result<()> {
        if env.input.bypass_spec_v1 {
            return Ok(());
        }
        let dst = self.dst.number();
        if !moved.flags.is_empty() {
            return Ok(());
        }
        if let RegKind::Stack { .. } = moved.kind {
            let var_off = moved.num.var_off;
            let off = moved.off.wrapping_add(var_off.value as i32);
            refuse_if!(!var_off.is_const(), env => Alu::StackVariable { reg: dst, var_off, off });
            if !(STACK_END..0).contains(&off) {
                return Err(refuse!(env => Alu::StackRange { reg: dst, off }));
            }
        }
        if let RegKind::MapValue { map, .. } = moved.kind {
            *env.reg_mut(self.dst) = *moved;
            let off = moved.off;
            let source = Source::Helper;
            if map_value::check_bounds(env, self.dst, map, off, 1, false, source).is_err() {
                return Err(refuse!(env => Alu::MapValueRange { reg: dst }));
            }
        }
        Ok(())
    }

    fn refuse(self, env: &mut Check<'_>, why: Unmasked) -> Stop {
        refuse_alu(env, why, self.op, self.dst, self.src, self.reversed)
    }
}

/// True for operations whose offset is masked (`sanitize_needed`).
#[doc(alias = "sanitize_needed")]
const fn is_masked(op: AluOp) -> bool {
    matches!(op, AluOp::Add | AluOp::Sub)
}

/// True if nothing is masked at the instruction (`can_skip_alu_sanitation`).
#[doc(alias = "can_skip_alu_sanitation")]
fn can_skip(env: &Check<'_>, src: Operand) -> bool {
    env.input.bypass_spec_v1
        || matches!(src, Operand::Imm(_))
        || env.aux[env.sink.insn_idx as usize].barriers.before
}

/// Bytes from a pointer to the end of its object in the direction of the offset
/// (`retrieve_ptr_limit`).
#[doc(alias = "retrieve_ptr_limit")]
fn pointer_limit(
    env: &Check<'_>,
    pointer: &RegState,
    to_left: bool,
) -> std::result::Result<u32, Unmasked> {
    let num = &pointer.num;
    if !pointer.flags.is_empty() {
        return Err(Unmasked::Type);
    }
    let (most, limit) = if let RegKind::Stack { .. } = pointer.kind {
        let off = (num.var_off.value as u32).wrapping_add(pointer.off as u32);
        (limits::STACK + u32::from(to_left), off.wrapping_neg())
    } else if let RegKind::MapValue { map, .. } = pointer.kind {
        let off = match to_left {
            true => num.smin as u32,
            false => num.umax as u32,
        };
        let limit = off.wrapping_add(pointer.off as u32);
        (env.input.maps[map].value_size(), limit)
    } else {
        return Err(Unmasked::Type);
    };
    match limit < most {
        true => Ok(limit),
        false => Err(Unmasked::Limit),
    }
}

/// Notes a mask; paths must agree (`update_alu_sanitation_state`).
#[doc(alias = "update_alu_sanitation_state")]
fn note_mask(env: &mut Check<'_>, mask: OffsetMask) -> std::result::Result<(), Unmasked> {
    let noted = &mut env.insn_aux().barriers.mask;
    match noted.replace(mask) {
        Some(before) if before != mask => Err(Unmasked::Paths),
        _ => Ok(()),
    }
}

/// The refusal of arithmetic that cannot be masked (`sanitize_err`).
#[doc(alias = "sanitize_err")]
fn refuse_alu(
    env: &mut Check<'_>,
    why: Unmasked,
    op: AluOp,
    dst: Reg,
    src: Operand,
    reversed: bool,
) -> Stop {
    let dst = dst.number();
    let src = match src {
        Operand::Reg(src) => src.number(),
        Operand::Imm(_) => 0,
    };
    let (pointer, scalar) = match reversed {
        true => (src, dst),
        false => (dst, src),
    };
    let verb = match op {
        AluOp::Add => "add",
        _ => "sub",
    };
    match why {
        Unmasked::Bounds => refuse!(env => Alu::MixedBounds { reg: scalar }),
        Unmasked::Type => refuse!(env => Alu::UnsupportedOperation { reg: pointer }),
        Unmasked::Paths => refuse!(env => Alu::OtherPaths { reg: dst, verb }),
        Unmasked::Limit => refuse!(env => Alu::BeyondBounds { reg: dst, verb }),
        Unmasked::Stack => refuse!(env => Alu::NotPushed { reg: dst }),
    }
}
