//! The trace of a run: every instruction, and the registers that it changed.

use std::fmt::Write;
use std::ops::ControlFlow;

use isa::ebpf::Reg;

use super::{CheckedContext, CheckedProgram, Entry, Finish, Limits, Moment};

/// The width of a column of instructions.
const WIDTH: usize = 44;

/// Runs a program and returns its trace.
pub fn run_traced(
    program: &CheckedProgram,
    cx: CheckedContext<'_, '_, '_>,
    entry: Entry,
    limits: &Limits,
) -> (Finish, String) {
    let mut text = String::new();
    let mut before: Option<[u64; Reg::COUNT]> = None;
    let mut observer = |moment: &Moment<'_, '_>| {
        if let Some(before) = &before {
            write_changes(&mut text, before, moment.registers);
        }
        let indent = 2 * moment.depth;
        let insn = moment.insn().to_string();
        let _ = write!(
            text,
            "{:indent$}{:5}: {insn:<width$}",
            "",
            moment.at,
            width = WIDTH.saturating_sub(indent)
        );
        before = Some(*moment.registers);
        ControlFlow::Continue(())
    };
    let finish = program.run_observed(cx, entry, limits, &mut observer);
    if let Some(before) = &before {
        write_changes(&mut text, before, &finish.registers);
    }
    (finish, text)
}

/// Ends the line of an instruction.
fn write_changes(text: &mut String, before: &[u64], after: &[u64]) {
    for (number, (before, after)) in before.iter().zip(after).enumerate() {
        if before != after {
            let _ = write!(text, "  r{number} = {after:#x}");
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
}
