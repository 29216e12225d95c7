//! Registers that are read and hold nothing.

use isa::ebpf::{Insn, Reg};

use super::Finding;
use crate::reason::cause::{Cause, Unwritten};
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::scene::Scene;
use crate::reason::values::DefKind;

pub(super) fn uninitialized(scene: &Scene<'_>) -> Option<Finding> {
    let reg = scene.named_register()?;
    let insn = scene.insn()?;
    scene.last()?;
    let own = scene.values.defs[scene.def(reg)];
    let def = scene.values.defs[scene.values.same(scene.def(reg))];
    let callee = scene.callee().filter(|_| reg != Reg::R0);
    let mut notes = Vec::new();
    let why = match def.kind {
        _ if matches!(own.kind, DefKind::Passed(_)) => {
            notes.push(scene.note(own.step, NoteKind::Passed));
            Unwritten::NotPassed
        }
        DefKind::Clobbered | DefKind::Returned => {
            let at = scene.trace.steps()[def.step].insn;
            let callee = scene.called(at).unwrap_or_default();
            notes.push(scene.note(def.step, NoteKind::Clobbered { callee }));
            Unwritten::Call
        }
        _ if insn == Insn::Exit => {
            notes.extend(written_elsewhere(scene, reg));
            Unwritten::NoResult
        }
        _ => {
            let note = written_elsewhere(scene, reg);
            // What is written behind the read was an argument before.
            let is_before = |note: &Note| Some(note.place.insn) < scene.refusal.insn;
            let is_argument = matches!(def.kind, DefKind::Argument) && callee.is_none();
            if is_argument && !note.as_ref().is_some_and(is_before) {
                Unwritten::NotArgument
            } else if let Some(note) = note {
                notes.push(note);
                Unwritten::OnOtherPaths
            } else {
                Unwritten::Never
            }
        }
    };
    Some(Finding {
        notes,
        subjects: vec![reg],
        ..Finding::new(Cause::Uninitialized {
            reg: reg.number(),
            why,
            callee,
            by_packet_load: matches!(insn, Insn::PacketAbs { .. } | Insn::PacketInd { .. }),
        })
    })
}

/// The nearest instruction of the function that writes the register: before the refused
/// one if there is one there, else behind it.
fn written_elsewhere(scene: &Scene<'_>, reg: Reg) -> Option<Note> {
    let at = scene.refusal.insn?;
    let function = { scene.analysis.subprogs.iter() }
        .find(|subprog| (subprog.start..subprog.end).contains(&at))?;
    let writes = |&insn: &u32| {
        let insn = scene.input.insns[insn as usize];
        insn.writes().contains(reg) && !matches!(insn, Insn::Call(_))
    };
    let found = (function.start..at).rev().find(writes);
    let found = found.or_else(|| (at..function.end).find(writes))?;
    Some(Note {
        place: scene.place(found),
        step: None,
        kind: NoteKind::WrittenElsewhere,
    })
}
