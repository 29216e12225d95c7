//! Whole programs as cases: what one instruction between its operands can't show.
//!
//! A block begins with `== ` and the rows of the table that it is about, and a
//! title after a colon. Then come `memory HEX`, `packet HEX` and `gotox` as
//! needed, the program indented, and what is expected: `-> VALUE`, with
//! `memory HEX` after it if that changes, or `-> trap KIND` with the instruction.

use isa::ebpf::{Insn, Op, assemble, table::ROWS};

use super::case::{bytes, number};

/// One program.
pub(crate) struct Program {
    /// File, line and title, for messages.
    pub(crate) place: String,
    /// The rows of the table that it is about.
    pub(crate) ops: Vec<Op>,
    pub(crate) insns: Vec<Insn>,
    pub(crate) memory: Vec<u8>,
    pub(crate) packet: Option<Vec<u8>>,
    pub(crate) indirect_jumps: bool,
    pub(crate) expected: Expected,
}

/// What a program should do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Return this, and leave the memory so.
    Returned(u64, Vec<u8>),
    /// Trap for this reason at this instruction.
    Trapped(String, usize),
}

/// The programs of a file.
pub(crate) fn parse_file(name: &str, text: &str) -> Vec<Program> {
    let starts = text.match_indices("\n== ").map(|(at, _)| at + 1);
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let blocks = starts.iter().zip(ends);
    blocks
        .map(|(&start, end)| {
            let line = text[..start].lines().count() + 1;
            parse(&format!("{name}:{line}"), &text[start..end])
        })
        .collect()
}

fn parse(place: &str, block: &str) -> Program {
    let mut lines = block.lines();
    let head = lines.next().and_then(|line| line.strip_prefix("== "));
    let (ops, title) = head.and_then(|head| head.split_once(": ")).expect("a head");
    let place = format!("{place} ({title})");
    let mut program = Program {
        ops: ops.split(' ').map(|name| op(&place, name)).collect(),
        place,
        insns: Vec::new(),
        memory: Vec::new(),
        packet: None,
        indirect_jumps: false,
        expected: Expected::Returned(0, Vec::new()),
    };
    let mut source = String::new();
    for line in lines {
        if line.starts_with(' ') {
            source += line;
            source.push('\n');
        } else if let Some(hex) = line.strip_prefix("memory ") {
            program.memory = bytes(hex);
        } else if let Some(hex) = line.strip_prefix("packet ") {
            program.packet = Some(bytes(hex));
        } else if line == "gotox" {
            program.indirect_jumps = true;
        } else if let Some(expected) = line.strip_prefix("-> ") {
            program.expected = expectation(expected, &program.memory);
        } else {
            assert_eq!(line, "", "{}", program.place);
        }
    }
    let assembled = assemble(&source);
    program.insns = assembled.unwrap_or_else(|error| panic!("{}: {error}", program.place));
    program
}

fn op(place: &str, name: &str) -> Op {
    let row = ROWS.iter().find(|row| format!("{:?}", row.op) == name);
    row.unwrap_or_else(|| panic!("{place}: no row {name}")).op
}

fn expectation(text: &str, memory: &[u8]) -> Expected {
    let words: Vec<&str> = text.split(' ').collect();
    match words[..] {
        ["trap", reason, "at", at] => {
            Expected::Trapped(reason.to_owned(), at.parse().expect("an index"))
        }
        [value] => Expected::Returned(number(value), memory.to_vec()),
        [value, "memory", hex] => Expected::Returned(number(value), bytes(hex)),
        _ => panic!("{text}"),
    }
}
