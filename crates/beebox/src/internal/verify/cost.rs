//! Verification cost by source line, by function and by call chain.
//!
//! The counts of instructions are summed over the records of `line_info` that cover them,
//! and over subprograms. Linear in the number of instructions, then sorted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use program::Program;
use verifier::{Cost, InsnCost, SubprogCost};

/// Verification cost of a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCost {
    /// The function that holds it.
    pub function: String,
    /// Path of the file; empty without line info.
    pub file: String,
    /// Number of the line; 0 without line info.
    pub line: u32,
    /// Text of the line, without the space around it.
    pub text: String,
    /// Instructions processed.
    pub insns: u64,
    /// States made.
    pub states: u64,
}

/// Verification cost of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCost {
    /// Name.
    pub name: String,
    /// Instructions processed.
    pub insns: u64,
    /// States made.
    pub states: u64,
    /// Bytes of stack.
    pub stack_depth: u32,
}

/// Cost by function, worst first.
pub fn cost_by_function(cost: &Cost) -> Vec<FunctionCost> {
    let sum = |subprog: &SubprogCost| {
        let range = subprog.start as usize..subprog.end as usize;
        let insns = cost.insns.get(range).unwrap_or_default();
        FunctionCost {
            name: subprog.name.clone(),
            insns: insns.iter().map(|insn| u64::from(insn.processed)).sum(),
            states: insns.iter().map(|insn| u64::from(insn.states)).sum(),
            stack_depth: subprog.stack_depth,
        }
    };
    let mut functions: Vec<FunctionCost> = cost.subprogs.iter().map(sum).collect();
    functions.sort_by_key(|function| Reverse((function.insns, function.states)));
    functions
}

/// Cost by source line, worst first, of lines that the verifier reached. Instructions
/// without line info count for line 0 of their function.
pub fn cost_by_line(program: &Program, cost: &Cost) -> Vec<LineCost> {
    let records = program.line_info();
    let mut sums: BTreeMap<(usize, u32, u32), LineCost> = BTreeMap::new();
    for (number, subprog) in cost.subprogs.iter().enumerate() {
        for at in subprog.start..subprog.end {
            let Some(&InsnCost { processed, states }) = cost.insns.get(at as usize) else {
                break;
            };
            if processed == 0 && states == 0 {
                continue;
            }
            let count = records.partition_point(|record| record.insn <= at);
            let record = count.checked_sub(1).map(|index| &records[index]);
            let record = record.filter(|record| record.insn >= subprog.start);
            let key = record.map_or((0, 0), |record| (record.file.0, record.line));
            let line = sums.entry((number, key.0, key.1)).or_insert_with(|| {
                let string = |offset| {
                    let text = program.btf().map(|btf| btf.string(offset));
                    text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
                };
                LineCost {
                    function: subprog.name.clone(),
                    file: record.map_or_else(String::new, |record| string(record.file)),
                    line: key.1,
                    text: record
                        .map_or_else(String::new, |record| string(record.text).trim().to_owned()),
                    insns: 0,
                    states: 0,
                }
            });
            line.insns += u64::from(processed);
            line.states += u64::from(states);
        }
    }
    let mut lines: Vec<LineCost> = sums.into_values().collect();
    lines.sort_by_key(|line| Reverse((line.insns, line.states)));
    lines
}

/// Verification cost of a function on one call chain, without its callees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChainCost {
    /// Names of the functions, outermost first.
    pub functions: Vec<String>,
    /// Instructions processed in the last of them.
    pub insns: u64,
    /// States made in the last of them.
    pub states: u64,
    /// Bytes of stack along the chain, as the kernel counts them.
    pub stack: u32,
}

/// A function of a call chain with the stack that the kernel counts for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackUse {
    /// Name of the function.
    pub function: String,
    /// Bytes of stack.
    pub bytes: u32,
}

/// Cost by call chain, worst first. Functions that are verified on their own begin a chain.
pub fn cost_by_chain(cost: &Cost) -> Vec<CallChainCost> {
    let mut chains: Vec<CallChainCost> = Vec::new();
    for chain in &cost.chains {
        let index = subprog_at(cost, chain.start);
        let caller = chain.caller.and_then(|caller| chains.get(caller));
        let mut functions = caller.map_or_else(Vec::new, |caller| caller.functions.clone());
        functions.push(function_name(cost, index));
        let own = cost
            .subprogs
            .get(index)
            .map_or(0, SubprogCost::counted_stack);
        chains.push(CallChainCost {
            functions,
            insns: chain
                .insns
                .values()
                .map(|insn| u64::from(insn.processed))
                .sum(),
            states: chain
                .insns
                .values()
                .map(|insn| u64::from(insn.states))
                .sum(),
            stack: own + caller.map_or(0, |caller| caller.stack),
        });
    }
    // One function called from several lines is one chain to a reader.
    let mut merged: BTreeMap<Vec<String>, CallChainCost> = BTreeMap::new();
    for chain in chains {
        match merged.get_mut(&chain.functions) {
            Some(same) => {
                same.insns += chain.insns;
                same.states += chain.states;
            }
            None => {
                merged.insert(chain.functions.clone(), chain);
            }
        }
    }
    let mut chains: Vec<CallChainCost> = merged.into_values().collect();
    chains.sort_by_key(|chain| Reverse((chain.insns, chain.states)));
    chains
}

/// The call chain with the most stack, outermost function first. Programs of types that give
/// large functions a stack of their own (kprobe, tracepoint, raw_tracepoint, perf_event and
/// most tracing programs) may use more than 512 bytes along it.
pub fn deepest_stack(cost: &Cost) -> Vec<StackUse> {
    let chain = cost.deepest_chain().into_iter().map(|index| StackUse {
        function: function_name(cost, index),
        bytes: cost.subprogs[index].counted_stack(),
    });
    chain.collect()
}

/// Instructions processed as folded stacks, the form that flame graph tools read: one line
/// for each source line on each call chain, `PROGRAM;FUNCTION (FILE:LINE);… COUNT`. The line
/// of a function that calls is that of the call.
pub fn folded_stacks(program: &Program, name: &str, cost: &Cost) -> String {
    let mut prefixes: Vec<String> = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for chain in &cost.chains {
        let function = function_name(cost, subprog_at(cost, chain.start));
        let prefix = match (chain.caller, chain.call) {
            (Some(caller), Some(call)) => {
                let caller_start = cost.chains[caller].start;
                let caller_name = function_name(cost, subprog_at(cost, caller_start));
                let place = place(program, caller_start, call);
                format!("{};{caller_name}{place}", prefixes[caller])
            }
            _ => name.to_owned(),
        };
        for (&insn, insn_cost) in &chain.insns {
            let place = place(program, chain.start, insn);
            let stack = format!("{prefix};{function}{place}");
            *counts.entry(stack).or_default() += u64::from(insn_cost.processed);
        }
        prefixes.push(prefix);
    }
    let lines = counts.into_iter().filter(|(_, count)| *count > 0);
    lines
        .map(|(stack, count)| format!("{stack} {count}\n"))
        .collect()
}

/// File and line of an instruction of the function that starts at `start`, in parentheses
/// behind a space; empty without line info.
fn place(program: &Program, start: u32, insn: u32) -> String {
    let line = program
        .line_at(insn)
        .filter(|line| line.insn >= start && line.line != 0);
    let Some((line, btf)) = line.zip(program.btf()) else {
        return String::new();
    };
    let path = btf.string(line.file).to_string_lossy().into_owned();
    let file = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .replace(';', "_");
    format!(" ({file}:{})", line.line)
}

fn subprog_at(cost: &Cost, start: u32) -> usize {
    let count = cost
        .subprogs
        .partition_point(|subprog| subprog.start <= start);
    count.saturating_sub(1)
}

/// The name of a subprogram; one without a name is called by its number.
fn function_name(cost: &Cost, index: usize) -> String {
    match cost.subprogs.get(index) {
        Some(subprog) if !subprog.name.is_empty() => subprog.name.replace(';', "_"),
        _ if index == 0 => String::from("main"),
        _ => format!("func#{index}"),
    }
}
