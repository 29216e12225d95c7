//! Control flow, encoding, return values and loops.

use isa::ebpf::{Insn, Operand, Reg};

use super::Finding;
use crate::attach::AttachedFunction;
use crate::reason::cause::{Cause, ReturnedBy};
use crate::reason::explanation::{KnownValue, NoteKind};
use crate::reason::scene::Scene;
use crate::reason::values::DefKind;
use crate::rejection::{Flow, Rejection};
use crate::verdict::RefusalKind;

/// Instructions that the kernel does not accept in any program.
pub(super) fn encoding(scene: &Scene<'_>) -> Option<Finding> {
    let cause = match scene.insn()? {
        Insn::Alu {
            op,
            src: Operand::Imm(0),
            ..
        } if op.is_division() => Cause::DivisionByZero,
        Insn::Alu {
            op,
            src: Operand::Imm(_),
            ..
        } if op.is_shift() => Cause::ShiftTooFar,
        _ => Cause::Encoding,
    };
    Some(Finding::new(cause))
}

/// Jumps, the layout of functions and unreachable instructions.
pub(super) fn control_flow(scene: &Scene<'_>) -> Option<Finding> {
    let at = scene.refusal.insn?;
    let cause = match (scene.refusal.kind, scene.insn()?) {
        (RefusalKind::Unreachable, _) => Cause::Unreachable,
        (RefusalKind::BackEdge, insn) => {
            let distance = match insn {
                Insn::Goto { off } | Insn::Jump { off, .. } => i32::from(off),
                Insn::GotoLong { off } => off,
                _ => -1,
            };
            Cause::BackEdge {
                to: scene.place(at.wrapping_add_signed(distance + 1)),
            }
        }
        (_, Insn::Goto { .. } | Insn::GotoLong { .. } | Insn::Jump { .. } | Insn::Call(_)) => {
            Cause::JumpOutOfRange
        }
        _ => Cause::FallsThrough {
            function: scene.function_at(at),
        },
    };
    Some(Finding::new(cause))
}

/// The return value of the program or of a callback.
pub(super) fn return_value(scene: &Scene<'_>) -> Option<Finding> {
    let reg = scene.named_register().unwrap_or(Reg::R0);
    let value = scene.value_of(reg);
    let (allowed, context) = match &*scene.refusal.rejection {
        Rejection::Flow(Flow::ReturnRange {
            min, max, context, ..
        }) => (Some((*min, *max)), &**context),
        Rejection::Flow(Flow::ReturnOfVoidHook) => (Some((1, 1)), ""),
        _ => (None, ""),
    };
    let by = match context {
        "At callback return" => ReturnedBy::Callback,
        "At async callback return" | "At async callback" => ReturnedBy::AsyncCallback,
        _ if matches!(scene.insn(), Some(Insn::Call(_))) => ReturnedBy::Throw,
        _ if { scene.refusal.insn }
            .is_some_and(|at| scene.analysis.subprog_containing(at) != 0) =>
        {
            ReturnedBy::ExceptionCallback
        }
        _ => ReturnedBy::Program,
    };
    let cause = match (&value, allowed) {
        (KnownValue::Number(_), Some((min, max))) => Cause::ReturnRange {
            min,
            max,
            by,
            target: AttachedFunction::of(scene.input).map(|function| function.name.into_owned()),
            value: value.clone(),
        },
        (KnownValue::Pointer { .. }, _) => Cause::ReturnPointer {
            value: value.clone(),
        },
        _ => return None,
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// A loop whose state repeats.
pub(super) fn infinite_loop(scene: &Scene<'_>) -> Option<Finding> {
    let last = scene.last()?;
    let steps = scene.trace.steps();
    let is_start = |&step: &usize| {
        steps[step].insn == steps[last].insn && steps[step].frame == steps[last].frame
    };
    let start = (0..last).rev().find(is_start)?;
    let mut registers = Vec::new();
    for branch in &scene.values.branches {
        if branch.step < start {
            continue;
        }
        let Some((dst, src)) = scene.compared(branch) else {
            continue;
        };
        for reg in [Some(dst), src].into_iter().flatten() {
            if !registers.contains(&reg) {
                registers.push(reg);
            }
        }
    }
    let reads_memory = registers.iter().any(|&reg| {
        let def = scene.values.defs[scene.values.base(scene.def(reg))];
        matches!(def.kind, DefKind::Loaded(_)) && def.step >= start
    });
    let mut finding = Finding::new(Cause::InfiniteLoop {
        registers: registers.iter().map(|reg| reg.number()).collect(),
        reads_memory,
        insns: last - start,
    });
    finding.subjects = registers;
    let jumps_back = |&step: &usize| steps[step + 1].insn <= steps[step].insn;
    if let Some(back) = (start..last).rev().find(jumps_back) {
        finding.notes.push(scene.note(back, NoteKind::LoopStart));
    }
    Some(finding)
}
