//! Costs of verification by function, call chain and source line.

use std::fmt::Write as _;

use super::{Cost, cost_by_chain, cost_by_function, cost_by_line, deepest_stack, folded_stacks};
use program::Program;
use serde::Serialize;

/// Lines that the table shows of each program.
const SHOWN_LINES: usize = 20;

/// Call chains that the table shows of each program.
const SHOWN_CHAINS: usize = 10;

/// Characters of a source line that the table shows.
const SHOWN_TEXT: usize = 60;

/// Cost of a program, worst first.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramCost {
    functions: Vec<Function>,
    chains: Vec<Chain>,
    deepest_stack: Vec<StackUse>,
    lines: Vec<Line>,
    /// Folded stacks.
    #[serde(skip)]
    pub folded: String,
}

#[derive(Clone, Debug, Serialize)]
struct Chain {
    call_chain: Vec<String>,
    total_insns: u64,
    total_states: u64,
    stack_bytes: u32,
}

#[derive(Clone, Debug, Serialize)]
struct StackUse {
    function: String,
    stack_bytes: u32,
}

#[derive(Clone, Debug, Serialize)]
struct Function {
    name: String,
    total_insns: u64,
    total_states: u64,
    stack_bytes: u32,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    function: String,
    file: String,
    line: u32,
    text: String,
    total_insns: u64,
    total_states: u64,
}

impl ProgramCost {
    pub fn new(program: &Program, name: &str, cost: &Cost) -> ProgramCost {
        let functions = cost_by_function(cost).into_iter().map(|cost| Function {
            name: cost.name,
            total_insns: cost.insns,
            total_states: cost.states,
            stack_bytes: cost.stack_depth,
        });
        let lines = cost_by_line(program, cost).into_iter().map(|cost| Line {
            function: cost.function,
            file: cost.file,
            line: cost.line,
            text: cost.text,
            total_insns: cost.insns,
            total_states: cost.states,
        });
        let chains = cost_by_chain(cost).into_iter().map(|chain| Chain {
            call_chain: chain.functions,
            total_insns: chain.insns,
            total_states: chain.states,
            stack_bytes: chain.stack,
        });
        let deepest = deepest_stack(cost).into_iter().map(|link| StackUse {
            function: link.function,
            stack_bytes: link.bytes,
        });
        ProgramCost {
            functions: functions.collect(),
            chains: chains.collect(),
            deepest_stack: deepest.collect(),
            folded: folded_stacks(program, name, cost),
            lines: lines.collect(),
        }
    }

    /// Functions with their stack, call chains, the deepest stack, and the worst lines.
    pub fn write(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>9} {:>8} {:>6}  function",
            "insns", "states", "stack"
        );
        for Function {
            name,
            total_insns,
            total_states,
            stack_bytes,
        } in &self.functions
        {
            let _ = writeln!(
                text,
                "{total_insns:>9} {total_states:>8} {stack_bytes:>6}  {name}"
            );
        }
        self.write_chains(text);
        let _ = writeln!(text, "\n{:>9} {:>8}  source line", "insns", "states");
        for line in self.lines.iter().take(SHOWN_LINES) {
            let place = match line.file.rsplit('/').next() {
                Some(file) if line.line != 0 => format!("{file}:{}", line.line),
                _ => format!("{} (no line info)", line.function),
            };
            let source: String = line.text.chars().take(SHOWN_TEXT).collect();
            let (insns, states) = (line.total_insns, line.total_states);
            let row = format!("{insns:>9} {states:>8}  {place}  {source}");
            let _ = writeln!(text, "{}", row.trim_end());
        }
        if let Some(more @ 1..) = self.lines.len().checked_sub(SHOWN_LINES) {
            let _ = writeln!(text, "… and {more} more lines (JSON has all)");
        }
        text.push('\n');
    }

    /// Call chains of more than one function, and the chain with the most stack.
    fn write_chains(&self, text: &mut String) {
        if self.chains.iter().any(|chain| chain.call_chain.len() > 1) {
            let _ = writeln!(
                text,
                "\n{:>9} {:>8} {:>6}  call chain",
                "insns", "states", "stack"
            );
            for chain in self.chains.iter().take(SHOWN_CHAINS) {
                let names = chain.call_chain.join(" → ");
                let (insns, states, stack) =
                    (chain.total_insns, chain.total_states, chain.stack_bytes);
                let _ = writeln!(text, "{insns:>9} {states:>8} {stack:>6}  {names}");
            }
            if let Some(more @ 1..) = self.chains.len().checked_sub(SHOWN_CHAINS) {
                let _ = writeln!(text, "… and {more} more chains (JSON has all)");
            }
        }
        let sum: u32 = self.deepest_stack.iter().map(|link| link.stack_bytes).sum();
        let links = self.deepest_stack.iter();
        let links: Vec<String> = links
            .map(|link| format!("{} {}", link.function, link.stack_bytes))
            .collect();
        let _ = writeln!(text, "\ndeepest stack: {sum} bytes, {}", links.join(" → "));
    }
}
