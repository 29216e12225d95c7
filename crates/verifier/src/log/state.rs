//! States: what an instruction changed, and everything at a branch.

use std::fmt::Write as _;

use spec::behaviour::Behaviour;

use super::Sink;
use super::reg::write_reg;
use crate::explore::Checkpoint;
use crate::input::Input;
use crate::state::{
    Frame, IterState, PreciseMask, RegKind, SlotKind, StackObject, StackObjectKind, State,
};

/// Writes registers, stack and references of a frame, with newline; only what was
/// written since the last time unless `print_all` (`print_verifier_state`).
pub(crate) fn print_verifier_state(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    state: &State,
    frameno: usize,
    print_all: bool,
) {
    print(
        input,
        sink,
        state,
        frameno,
        PreciseMask::default(),
        None,
        print_all,
    );
}

/// Writes a frame of a checkpoint, as [`print_verifier_state`], with its precise scalars marked.
pub(crate) fn print_checkpoint(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    checkpoint: &Checkpoint,
    frameno: usize,
) {
    let precise = checkpoint.precise().of(frameno);
    let reads = (checkpoint.reads().of(frameno), checkpoint.is_cleaned());
    let state = checkpoint.state();
    print(input, sink, state, frameno, precise, Some(reads), true);
}

fn print(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    state: &State,
    frameno: usize,
    precise: PreciseMask,
    reads: Option<(PreciseMask, bool)>,
    print_all: bool,
) {
    let shows_marks = !input.rules.has(Behaviour::StackLiveness);
    if !sink.is_on() {
        return;
    }
    let frame = state.frame(frameno);
    let (regs, slots) = match print_all {
        true => (!0, !0),
        false => (sink.scratched_regs, sink.scratched_slots),
    };
    let marks = |is_read: &dyn Fn(PreciseMask) -> bool, is_written: bool| {
        let is_read = reads.is_some_and(|(reads, _)| is_read(reads));
        let is_done = reads.is_some_and(|(_, is_done)| is_done);
        [(is_read, 'r'), (is_written, 'w'), (is_done, 'D')]
    };
    let out = &mut sink.text;
    if frame.frameno != 0 {
        let _ = write!(out, " frame{}:", frame.frameno);
    }
    for (number, reg) in frame.regs.iter().enumerate() {
        if regs >> number & 1 == 0 || reg.kind == RegKind::NotInit {
            continue;
        }
        let _ = write!(out, " R{number}");
        if shows_marks && number < 10 {
            let is_written = frame.marks.written_regs >> number & 1 != 0;
            let is_read = |reads: PreciseMask| reads.regs >> number & 1 != 0;
            write_marks(out, marks(&is_read, is_written));
        }
        out.push('=');
        let is_precise = !input.bpf_capable || precise.regs >> number & 1 != 0;
        write_reg(input, out, frame.frameno, reg, is_precise);
    }
    write_stack(input, out, frame, slots, precise, &|out, spi| {
        if shows_marks {
            let is_written = frame.marks.written_slots >> spi & 1 != 0;
            let is_read = |reads: PreciseMask| reads.slots >> spi & 1 != 0;
            write_marks(out, marks(&is_read, is_written));
        }
    });
    write_references(out, state);
    if frame.in_callback_fn {
        out.push_str(" cb");
    }
    if frame.in_async_callback_fn {
        out.push_str(" async_cb");
    }
    out.push('\n');
    if !print_all {
        sink.scratched_regs = 0;
        sink.scratched_slots = 0;
    }
}

/// Writes the marks of a register (`print_liveness`).
#[doc(alias = "print_liveness")]
fn write_marks(out: &mut String, marks: [(bool, char); 3]) {
    let set = marks.iter().filter(|(is_set, _)| *is_set);
    let letters: String = set.map(|(_, letter)| *letter).collect();
    if !letters.is_empty() {
        out.push('_');
        out.push_str(&letters);
    }
}

/// Writes what an instruction changed, behind the instruction if it was the last that was written
/// (`print_insn_state`) (`vlog_alignment`, `bpf_vlog_alignment`).
#[doc(alias = "vlog_alignment")]
#[doc(alias = "bpf_vlog_alignment")]
pub(crate) fn print_insn_state(
    input: &Input<'_>,
    sink: &mut Sink<'_>,
    state: &State,
    frameno: usize,
) {
    const COLUMN: usize = 40;
    const STEP: usize = 8;
    if !sink.is_on() {
        return;
    }
    if sink.insn_end != 0 && sink.insn_end == sink.position() {
        // The newline, which may be in the output already.
        sink.reset(sink.insn_end - 1);
        let width = sink.insn_width;
        let column = (width + STEP / 2).max(COLUMN).next_multiple_of(STEP);
        let gap = column - width - 1;
        let _ = write!(sink.text, "{:gap$};", ' ');
    } else {
        let _ = write!(sink.text, "{}:", state.insn_idx);
    }
    print_verifier_state(input, sink, state, frameno, false);
}

impl Sink<'_> {
    /// Writes the line of the instruction that the walk comes to, and the source line
    /// above it.
    pub fn print_insn(&mut self, input: &Input<'_>, insn_idx: u32) {
        super::verbose_linfo(input, self.at(insn_idx), "; ");
        let start = self.position();
        self.write(format_args!("{insn_idx}: "));
        super::verbose_insn(input, self, insn_idx);
        self.insn_width = self.position() - start;
        self.insn_end = self.position();
    }
}

/// Writes the place of a slot with its marks.
fn write_place(out: &mut String, spi: usize, marks: &dyn Fn(&mut String, usize)) {
    let _ = write!(out, " fp{}", -(spi as i64 + 1) * 8);
    marks(out, spi);
    out.push('=');
}

fn write_stack(
    input: &Input<'_>,
    out: &mut String,
    frame: &Frame,
    slots: u64,
    precise: PreciseMask,
    marks: &dyn Fn(&mut String, usize),
) {
    let mut spi = 0;
    while spi < frame.stack.len() {
        let slot = &frame.stack[spi];
        let place = |out: &mut String| write_place(out, spi, marks);
        let is_valid = slot.kinds.iter().any(|kind| !kind.is_empty());
        if slots >> (spi & 63) & 1 == 0 || !is_valid {
            spi += 1;
            continue;
        }
        match slot.kinds[7] {
            SlotKind::Spill => {
                place(out);
                // Bytes above a narrow spill stand before the register.
                let bytes = slot.kinds.iter();
                out.extend(
                    bytes
                        .take_while(|kind| **kind != SlotKind::Spill)
                        .map(letter),
                );
                let is_precise = precise.slots >> spi & 1 != 0;
                write_reg(input, out, frame.frameno, &slot.reg, is_precise);
            }
            SlotKind::Dynptr => {
                // It stands where it begins.
                spi += 1;
                write_object(input, out, frame, spi, marks);
            }
            SlotKind::Iter => write_object(input, out, frame, spi, marks),
            SlotKind::Invalid
            | SlotKind::Poison
            | SlotKind::Misc
            | SlotKind::Zero
            | SlotKind::IrqFlag => {
                place(out);
                out.extend(slot.kinds.iter().map(letter));
            }
        }
        spi += 1;
    }
}

/// The text of a slot without its place; empty where nothing is stored.
pub(crate) fn slot_text(input: &Input<'_>, frame: &Frame, spi: usize) -> String {
    let mut text = String::new();
    write_stack(
        input,
        &mut text,
        frame,
        1 << spi,
        PreciseMask::default(),
        &|_, _| {},
    );
    match text.split_once('=') {
        Some((_, value)) => value.to_owned(),
        None => text,
    }
}

fn letter(kind: &SlotKind) -> char {
    match kind {
        SlotKind::Invalid => '?',
        SlotKind::Poison => 'p',
        SlotKind::Spill => 'r',
        SlotKind::Misc => 'm',
        SlotKind::Zero => '0',
        SlotKind::Dynptr => 'd',
        SlotKind::Iter => 'i',
        SlotKind::IrqFlag => 'f',
    }
}

/// Writes the object that begins in a slot (`iter_type_str`, `iter_state_str`).
#[doc(alias = "iter_type_str")]
#[doc(alias = "iter_state_str")]
fn write_object(
    input: &Input<'_>,
    out: &mut String,
    frame: &Frame,
    spi: usize,
    marks: &dyn Fn(&mut String, usize),
) {
    let Some(object) = frame.stack.object_at(spi) else {
        return;
    };
    let &StackObject {
        kind,
        first_slot,
        id,
        ref_obj_id,
    } = object;
    if first_slot != spi {
        return;
    }
    let by_use = input.rules.has(Behaviour::ReferencesByUse);
    match kind {
        StackObjectKind::Dynptr(kind) => {
            write_place(out, spi, marks);
            let _ = write!(out, "dynptr_{kind}(");
            let mut comma = "";
            if id != 0 {
                let _ = write!(out, "id={id}");
                comma = ",";
            }
            match ref_obj_id {
                0 => {}
                _ if !by_use => {
                    let _ = write!(out, "{comma}ref_id={ref_obj_id}");
                    comma = ",";
                }
                _ if ref_obj_id != id => {
                    let _ = write!(out, "{comma}parent_id={ref_obj_id}");
                }
                _ => {}
            }
            // The kernel shows `dynptr.first_slot`, which has the same place in the union.
            if !by_use {
                let _ = write!(out, "{comma}dynptr_id=1");
            }
            out.push(')');
        }
        StackObjectKind::Iter {
            ty, state, depth, ..
        } => {
            let name = input.type_name(ty);
            let name = name.strip_prefix("bpf_iter_").unwrap_or(&name);
            let state = match state {
                IterState::Active => "active",
                IterState::Drained => "drained",
            };
            write_place(out, spi, marks);
            let id_name = if by_use { "id" } else { "ref_id" };
            let _ = write!(
                out,
                "iter_{name}({id_name}={ref_obj_id},state={state},depth={depth})"
            );
        }
        // Its bytes are written.
        StackObjectKind::IrqFlag(_) => {}
    }
}

/// Writes the references that are held, behind a space; nothing without any.
pub(crate) fn write_references(out: &mut String, state: &State) {
    if state.refs.first().is_none_or(|first| first.id == 0) {
        return;
    }
    out.push_str(" refs=");
    let mut comma = "";
    for reference in state.refs.iter().filter(|reference| reference.id != 0) {
        let _ = write!(out, "{comma}{}", reference.id);
        comma = ",";
    }
}
