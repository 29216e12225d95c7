//! What verification costs by function and source line, for `--cost`.

use std::fmt::Write as _;

use beebox::program::Program;
use beebox::verify::{Cost, cost_by_function, cost_by_line};
use serde::Serialize;

/// Lines that the table shows of each program.
const SHOWN_LINES: usize = 20;

/// Characters of a source line that the table shows.
const SHOWN_TEXT: usize = 60;

/// Cost of a program, worst first.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramCost {
    functions: Vec<Function>,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, Serialize)]
struct Function {
    name: String,
    insns: u64,
    states: u64,
    stack_depth: u32,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    function: String,
    file: String,
    line: u32,
    text: String,
    insns: u64,
    states: u64,
}

impl ProgramCost {
    pub(super) fn new(program: &Program, cost: &Cost) -> ProgramCost {
        let functions = cost_by_function(cost).into_iter().map(|cost| Function {
            name: cost.name,
            insns: cost.insns,
            states: cost.states,
            stack_depth: cost.stack_depth,
        });
        let lines = cost_by_line(program, cost).into_iter().map(|cost| Line {
            function: cost.function,
            file: cost.file,
            line: cost.line,
            text: cost.text,
            insns: cost.insns,
            states: cost.states,
        });
        ProgramCost {
            functions: functions.collect(),
            lines: lines.collect(),
        }
    }

    /// Two tables: functions with their stack, and the worst lines.
    pub(super) fn write(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>9} {:>8} {:>6}  function",
            "insns", "states", "stack"
        );
        for Function {
            name,
            insns,
            states,
            stack_depth,
        } in &self.functions
        {
            let _ = writeln!(text, "{insns:>9} {states:>8} {stack_depth:>6}  {name}");
        }
        let _ = writeln!(text, "\n{:>9} {:>8}  source line", "insns", "states");
        for line in self.lines.iter().take(SHOWN_LINES) {
            let place = match line.file.rsplit('/').next() {
                Some(file) if line.line != 0 => format!("{file}:{}", line.line),
                _ => format!("{} (no line info)", line.function),
            };
            let source: String = line.text.chars().take(SHOWN_TEXT).collect();
            let row = format!("{:>9} {:>8}  {place}  {source}", line.insns, line.states);
            let _ = writeln!(text, "{}", row.trim_end());
        }
        if let Some(more @ 1..) = self.lines.len().checked_sub(SHOWN_LINES) {
            let _ = writeln!(text, "… and {more} more lines (--format json lists them)");
        }
        text.push('\n');
    }
}
