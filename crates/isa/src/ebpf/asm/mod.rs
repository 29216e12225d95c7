//! Text in the LLVM form to instructions.
//!
//! A program is statements, ended by a line's end or a semicolon, with labels
//! (`name:`) before any of them and comments from `#` or `//`. Each statement
//! is an instruction in the form that [`Insn`]'s `Display` prints, or
//! `.8byte N`, the bits of a slot as they stand. Jumps and calls name a label
//! or a signed distance in slots. Listings can be read back: an index before an
//! instruction (`12:`) and a name after it (`goto +3 <LBB0_4>`) are passed over.
//!
//! The grammar is the table's templates, so assembling what was printed gives
//! the same instructions, and a new row is understood as soon as it is there.
//! Cost: linear in the text.

mod error;
mod grammar;
mod lexer;

pub use error::{AsmError, AsmProblem};

use super::codec::decode;
use super::insn::{Insn, RawInsn};
use grammar::{LabelUse, Matched};
use lexer::{Kind, Token, tokens};
use std::collections::HashMap;

/// The program that a text says, one instruction for each slot.
pub fn assemble(source: &str) -> Result<Vec<Insn>, AsmError> {
    let mut program = Program {
        source,
        slots: Vec::new(),
        labels: HashMap::new(),
        uses: Vec::new(),
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

struct Program<'a> {
    source: &'a str,
    slots: Vec<RawInsn>,
    /// Each label's slot, and the byte where it stands.
    labels: HashMap<&'a str, (usize, usize)>,
    /// Labels in instructions, with the slot they are in.
    uses: Vec<(usize, LabelUse<'a>)>,
}

impl<'a> Program<'a> {
    /// Takes labels, and the instruction after them; the statement ends at
    /// byte `end`.
    fn read_statement(&mut self, mut statement: &[Token<'a>], end: usize) -> Result<(), AsmError> {
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
        if matches!(first.text, ".8byte" | ".quad") {
            return self.read_data(rest, end);
        }
        let Matched { raw, high, label } =
            grammar::parse(statement).map_err(|(index, problem)| {
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

/// The statement without the name in angle brackets that a listing adds; no
/// instruction ends with a bracket.
fn without_annotation<'s, 'a>(statement: &'s [Token<'a>]) -> &'s [Token<'a>] {
    let closed = statement.last().is_some_and(|token| token.text == ">");
    let opening = statement.iter().rposition(|token| token.text == "<");
    match opening {
        Some(at) if closed => &statement[..at],
        _ => statement,
    }
}

/// Line and column of a byte of the text.
fn place(source: &str, at: usize) -> (usize, usize) {
    let before = &source[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}
