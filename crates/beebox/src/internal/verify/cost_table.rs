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
    functions: Vec<String>,
    insns: u64,
    states: u64,
    stack: u32,
}

#[derive(Clone, Debug, Serialize)]
struct StackUse {
    function: String,
    bytes: u32,
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
    pub fn new(program: &Program, name: &str, cost: &Cost) -> ProgramCost {
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
        let chains = cost_by_chain(cost).into_iter().map(|chain| Chain {
            functions: chain.functions,
            insns: chain.insns,
            states: chain.states,
            stack: chain.stack,
        });
        let deepest = deepest_stack(cost).into_iter().map(|link| StackUse {
            function: link.function,
            bytes: link.bytes,
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
            insns,
            states,
            stack_depth,
        } in &self.functions
        {
            let _ = writeln!(text, "{insns:>9} {states:>8} {stack_depth:>6}  {name}");
        }
        self.write_chains(text);
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

    /// Call chains of more than one function, and the chain with the most stack.
    fn write_chains(&self, text: &mut String) {
        if self.chains.iter().any(|chain| chain.functions.len() > 1) {
            let _ = writeln!(
                text,
                "\n{:>9} {:>8} {:>6}  call chain",
                "insns", "states", "stack"
            );
            for chain in self.chains.iter().take(SHOWN_CHAINS) {
                let names = chain.functions.join(" → ");
                let (insns, states, stack) = (chain.insns, chain.states, chain.stack);
                let _ = writeln!(text, "{insns:>9} {states:>8} {stack:>6}  {names}");
            }
            if let Some(more @ 1..) = self.chains.len().checked_sub(SHOWN_CHAINS) {
                let _ = writeln!(text, "… and {more} more chains (--format json lists them)");
            }
        }
        let sum: u32 = self.deepest_stack.iter().map(|link| link.bytes).sum();
        let links = self.deepest_stack.iter();
        let links: Vec<String> = links
            .map(|link| format!("{} {}", link.function, link.bytes))
            .collect();
        let _ = writeln!(text, "\ndeepest stack: {sum} bytes, {}", links.join(" → "));
    }
}
