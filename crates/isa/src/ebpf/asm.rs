//! Assembler: text in the LLVM form to instructions.
//!
//! A program consists of statements, separated by newlines or semicolons, with optional
//! labels (`name:`) and comments from `#` or `//`. A statement is an instruction in the
//! form that [`Insn`]'s `Display` prints, or `.8byte N`, the bits of a slot. Jumps and
//! calls name a label or a signed distance in slots. Listings can be read back: an index
//! before an instruction (`12:`) and a name after it (`goto +3 <LBB0_4>`) are ignored, and
//! behind an opcode (`12: (b7)`) the form of the verifier's log is read. So is what
//! `clang -S` writes: directives that describe symbols, lines and alignment are ignored, and
//! so are sections without instructions; instructions of a second section are an error.
//!
//! The grammar consists of the templates of the instruction table, so printed instructions
//! assemble to themselves, and a new row needs no change here. Cost: linear in the text.

mod error;
mod grammar;
mod lexer;

pub use error::{AsmError, AsmProblem};

use super::codec::decode;
use super::insn::{Insn, RawInsn};
use grammar::{LabelUse, Matched};
use lexer::{Kind, Token, tokens};
use std::collections::HashMap;

/// Assembles a program, one instruction for each slot.
pub fn assemble(source: &str) -> Result<Vec<Insn>, AsmError> {
    let mut program = AsmReader {
        source,
        slots: Vec::new(),
        labels: HashMap::new(),
        uses: Vec::new(),
        section: Section::default(),
        first_section: None,
    };
    let mut statement = Vec::new();
    for token in tokens(source) {
        if token.kind == Kind::End {
            program.read_statement(&statement, token.at)?;
            statement.clear();
        } else {
            statement.push(token);
        }
    }
    program.read_statement(&statement, source.len())?;
    program.resolve_labels()?;
    Ok(decode(&program.slots))
}

struct AsmReader<'a> {
    source: &'a str,
    slots: Vec<RawInsn>,
    /// Slot and byte offset of each label.
    labels: HashMap<&'a str, (usize, usize)>,
    /// Labels in instructions, with the slot they are in.
    uses: Vec<(usize, LabelUse<'a>)>,
    section: Section<'a>,
    /// Name of the section that has the instructions, once there are any.
    first_section: Option<&'a str>,
}

/// A section of a text with directives.
#[derive(Clone, Copy)]
struct Section<'a> {
    name: &'a str,
    /// True if it holds instructions.
    is_code: bool,
}

impl Default for Section<'_> {
    fn default() -> Self {
        Section {
            name: ".text",
            is_code: true,
        }
    }
}

/// Directives that describe symbols, lines and alignment, which a program does not need.
const IGNORED_DIRECTIVES: &[&str] = &[
    ".addrsig",
    ".addrsig_sym",
    ".align",
    ".balign",
    ".file",
    ".global",
    ".globl",
    ".hidden",
    ".ident",
    ".loc",
    ".local",
    ".p2align",
    ".size",
    ".type",
    ".weak",
];

impl<'a> AsmReader<'a> {
    /// Reads labels and the instruction after them; the statement ends at byte `end`.
    fn read_statement(&mut self, mut statement: &[Token<'a>], end: usize) -> Result<(), AsmError> {
        if self.read_section(statement) || !self.section.is_code {
            return Ok(());
        }
        while let [label, colon, rest @ ..] = statement
            && matches!(label.kind, Kind::Word | Kind::Number(_))
            && colon.text == ":"
        {
            statement = rest;
            if label.kind != Kind::Word {
                continue;
            }
            let (_, first) = *self
                .labels
                .entry(label.text)
                .or_insert((self.slots.len(), label.at));
            if first != label.at {
                let first_line = place(self.source, first).0;
                let name = label.text.to_owned();
                return Err(self.error(label.at, AsmProblem::DuplicateLabel { name, first_line }));
            }
        }
        statement = without_annotation(statement);
        let [first, rest @ ..] = statement else {
            return Ok(());
        };
        if IGNORED_DIRECTIVES.contains(&first.text) || first.text.starts_with(".cfi_") {
            return Ok(());
        }
        let earlier = *self.first_section.get_or_insert(self.section.name);
        if earlier != self.section.name {
            let (first, second) = (earlier.to_owned(), self.section.name.to_owned());
            return Err(self.error(statement[0].at, AsmProblem::SecondSection { first, second }));
        }
        if matches!(first.text, ".8byte" | ".quad") {
            return self.read_data(rest, end);
        }
        let (parsed, statement) = match opcode(statement) {
            Some((code, rest)) => (grammar::parse_log(code, rest), rest),
            None => (grammar::parse(statement), statement),
        };
        let Matched { raw, high, label } = parsed.map_err(|(index, problem)| {
            self.error(statement.get(index).map_or(end, |token| token.at), problem)
        })?;
        self.uses
            .extend(label.map(|label| (self.slots.len(), label)));
        self.slots.push(raw);
        self.slots.extend(high.map(|imm| RawInsn {
            imm,
            ..RawInsn::default()
        }));
        Ok(())
    }

    /// Changes the section; true if the statement is a directive that does.
    fn read_section(&mut self, statement: &[Token<'a>]) -> bool {
        self.section = match statement {
            [Token { text: ".text", .. }] => Section::default(),
            [
                Token {
                    text: ".section", ..
                },
                name,
                rest @ ..,
            ] => {
                let (name, rest) = match (name.text, rest) {
                    ("\"", [name, rest @ ..]) => (name, rest),
                    _ => (name, rest),
                };
                let flags = rest.iter().find(|token| token.kind == Kind::Word);
                Section {
                    name: name.text,
                    is_code: flags.is_some_and(|flags| flags.text.contains('x')),
                }
            }
            _ => return false,
        };
        true
    }

    fn read_data(&mut self, operands: &[Token<'a>], end: usize) -> Result<(), AsmError> {
        if let [
            Token {
                kind: Kind::Number(Some(bits)),
                ..
            },
        ] = operands
        {
            self.slots.push(RawInsn::from_le_bytes(bits.to_le_bytes()));
            return Ok(());
        }
        let (what, wrong) = match operands {
            [
                Token {
                    kind: Kind::Number(Some(_)),
                    ..
                },
                extra,
                ..,
            ] => ("the end of the statement", Some(extra)),
            _ => ("a number of 64 bits", operands.first()),
        };
        let found = wrong.map(|token| token.text.to_owned());
        let problem = AsmProblem::Expected {
            what: vec![what.to_owned()],
            found,
        };
        Err(self.error(wrong.map_or(end, |token| token.at), problem))
    }

    fn resolve_labels(&mut self) -> Result<(), AsmError> {
        for (slot, LabelUse { token, long }) in std::mem::take(&mut self.uses) {
            let name = token.text.to_owned();
            let Some((target, _)) = self.labels.get(token.text) else {
                return Err(self.error(token.at, AsmProblem::UnknownLabel { name }));
            };
            let distance = *target as i64 - slot as i64 - 1;
            let reach: i64 = if long {
                i32::MAX.into()
            } else {
                i16::MAX.into()
            };
            if distance > reach || distance < -reach - 1 {
                return Err(self.error(
                    token.at,
                    AsmProblem::TooFar {
                        name,
                        distance,
                        reach,
                    },
                ));
            }
            if long {
                self.slots[slot].imm = distance as i32;
            } else {
                self.slots[slot].off = distance as i16;
            }
        }
        Ok(())
    }

    fn error(&self, at: usize, problem: AsmProblem) -> AsmError {
        let (line, column) = place(self.source, at);
        AsmError {
            line,
            column,
            problem,
        }
    }
}

/// The opcode in parentheses at the start of a statement, as in the verifier's log, and the
/// statement behind it.
fn opcode<'s, 'a>(statement: &'s [Token<'a>]) -> Option<(u8, &'s [Token<'a>])> {
    let [open, code, close, rest @ ..] = statement else {
        return None;
    };
    let is_code = open.text == "(" && close.text == ")" && code.text.len() == 2;
    let code = is_code.then(|| u8::from_str_radix(code.text, 16).ok())??;
    Some((code, rest))
}

/// The statement without the symbol in angle brackets that a listing adds; no instruction
/// ends with a bracket.
fn without_annotation<'s, 'a>(statement: &'s [Token<'a>]) -> &'s [Token<'a>] {
    let closed = statement.last().is_some_and(|token| token.text == ">");
    let opening = statement.iter().rposition(|token| token.text == "<");
    match opening {
        Some(at) if closed => &statement[..at],
        _ => statement,
    }
}

/// Line and column of a byte offset.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = &source[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}
