//! What verification costs by source line and by function.
//!
//! The counts of instructions are summed over the records of `line_info` that cover them,
//! and over subprograms. Linear in the number of instructions, then sorted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use program::Program;
use verifier::{Cost, InsnCost};

/// What a source line costs.
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

/// What a function costs.
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
    let sum = |subprog: &verifier::SubprogCost| {
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
