//! The grammar of the assembler: a statement is an instruction if it matches the LLVM
//! template of a row, or behind an opcode the template of the verifier's log.
//!
//! Every row is tried on every statement. If none matches, the error lists the tokens that
//! the rows with the longest match expected; a row that matches but for a value out of
//! range is reported instead. Cost: linear in the number of rows for each statement.

use super::super::insn::RawInsn;
use super::super::row::Row;
use super::super::table::{ROWS, SPELLINGS};
use super::super::template::{Piece, RegName, Slot, pieces};
use super::error::AsmProblem;
use super::lexer::{Kind, Token, tokens};
use std::fmt;
use std::sync::LazyLock;

/// A statement that a row matched.
pub(super) struct Matched<'a> {
    /// First slot of the instruction.
    pub(super) raw: RawInsn,
    /// Immediate of the second slot, if there is one.
    pub(super) high: Option<i32>,
    /// Label operand, which is resolved later.
    pub(super) label: Option<LabelUse<'a>>,
}

/// A label as a jump distance.
#[derive(Clone, Copy)]
pub(super) struct LabelUse<'a> {
    pub(super) token: Token<'a>,
    /// True if the distance goes to the immediate rather than the offset.
    pub(super) long: bool,
}

/// An error in a statement: index of the token (or one past the last) and the error.
pub(super) type Failure = (usize, AsmProblem);

/// The template of a row, as tokens.
struct Pattern {
    row: &'static Row,
    items: Vec<Item>,
}

enum Item {
    Token(&'static str),
    Slot(Slot),
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let canonical = ROWS.iter().map(|row| (row, row.llvm));
    let others = SPELLINGS.iter().map(|(op, template)| (op.row(), *template));
    canonical
        .chain(others)
        .map(|(row, template)| Pattern::new(row, template))
        .collect()
});

impl Pattern {
    fn new(row: &'static Row, template: &'static str) -> Pattern {
        let mut items = Vec::new();
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => items.extend(tokens(text).map(|t| Item::Token(t.text))),
                Piece::Slot(slot) => items.push(Item::Slot(slot)),
            }
        }
        Pattern { row, items }
    }
}

static LOG_PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    ROWS.iter()
        .map(|row| Pattern::new(row, row.kernel))
        .collect()
});

/// Parses a statement in the LLVM form.
pub(super) fn parse<'a>(statement: &[Token<'a>]) -> Result<Matched<'a>, Failure> {
    parse_by(PATTERNS.iter(), statement)
}

/// Parses a statement in the form of the verifier's log, behind its opcode. Of instructions
/// with equal text the first one in the table is meant.
pub(super) fn parse_log<'a>(code: u8, statement: &[Token<'a>]) -> Result<Matched<'a>, Failure> {
    let patterns = LOG_PATTERNS.iter();
    parse_by(
        patterns.filter(|pattern| pattern.row.code == code),
        statement,
    )
}

fn parse_by<'a>(
    patterns: impl Iterator<Item = &'static Pattern>,
    statement: &[Token<'a>],
) -> Result<Matched<'a>, Failure> {
    let mut expected = Vec::new();
    let mut furthest = 0;
    let mut misfit = None;
    for pattern in patterns {
        match Attempt::new(pattern.row, statement).run(&pattern.items) {
            Ok(matched) => return Ok(matched),
            Err(Miss::Value(failure)) => misfit = misfit.or(Some(failure)),
            Err(Miss::Syntax { at, .. }) if at < furthest => {}
            Err(Miss::Syntax { at, what }) => {
                if at > furthest {
                    expected.clear();
                    furthest = at;
                }
                if !expected.contains(&what) {
                    expected.push(what);
                }
            }
        }
    }
    Err(misfit.unwrap_or_else(|| {
        let found = statement.get(furthest).map(|token| token.text.to_owned());
        (
            furthest,
            AsmProblem::Expected {
                what: expected.iter().map(Expected::to_string).collect(),
                found,
            },
        )
    }))
}

/// Mismatch of a row.
enum Miss {
    /// Another token was expected.
    Syntax { at: usize, what: Expected },
    /// The tokens match, but a value is out of range.
    Value(Failure),
}

/// An expected token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// This token.
    Token(&'static str),
    /// A token of this kind.
    Some(&'static str),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Token(text) => write!(f, "`{text}`"),
            Expected::Some(what) => f.write_str(what),
        }
    }
}

/// A match of one row against one statement.
struct Attempt<'s, 'a> {
    row: &'static Row,
    statement: &'s [Token<'a>],
    /// The next token.
    at: usize,
    dst: Option<u8>,
    src: Option<u8>,
    raw: RawInsn,
    high: i32,
    label: Option<LabelUse<'a>>,
    /// The first value out of range; reported only if the tokens match.
    misfit: Option<Failure>,
}

impl<'s, 'a> Attempt<'s, 'a> {
    fn new(row: &'static Row, statement: &'s [Token<'a>]) -> Self {
        let raw = row.slot(0, 0, 0, 0);
        let (dst, src, label, misfit) = (None, None, None, None);
        Attempt {
            row,
            statement,
            at: 0,
            dst,
            src,
            raw,
            high: 0,
            label,
            misfit,
        }
    }

    fn run(mut self, items: &[Item]) -> Result<Matched<'a>, Miss> {
        for item in items {
            match item {
                Item::Token(text) => self.token(text)?,
                Item::Slot(slot) => self.slot(*slot)?,
            }
        }
        if self.at < self.statement.len() {
            return Err(self.expected("the end of the statement"));
        }
        if let Some(failure) = self.misfit {
            return Err(Miss::Value(failure));
        }
        self.raw.regs |= self.dst.unwrap_or(0) | self.src.unwrap_or(0) << 4;
        if !self.row.admits(self.raw, self.high) {
            return Err(Miss::Value((0, AsmProblem::NoInstruction)));
        }
        let high = self.row.is_wide().then_some(self.high);
        Ok(Matched {
            raw: self.raw,
            high,
            label: self.label,
        })
    }

    fn expected(&self, what: &'static str) -> Miss {
        Miss::Syntax {
            at: self.at,
            what: Expected::Some(what),
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.statement.get(self.at).copied()
    }

    /// Consumes the next token if it is this one; true if it was.
    fn take(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(is);
        is
    }

    fn token(&mut self, text: &'static str) -> Result<(), Miss> {
        if self.take(text) {
            return Ok(());
        }
        Err(Miss::Syntax {
            at: self.at,
            what: Expected::Token(text),
        })
    }

    fn slot(&mut self, slot: Slot) -> Result<(), Miss> {
        match slot {
            Slot::Reg { src, name } => self.register(src, name)?,
            Slot::Imm { unsigned } => {
                let most = if unsigned {
                    u32::MAX as u64
                } else {
                    i32::MAX as u64
                };
                self.raw.imm = self.number(i32::MIN.into(), most)? as i32;
            }
            Slot::Displacement => {
                self.raw.off = self.term(i16::MIN.into(), i16::MAX as u64)? as i16
            }
            Slot::ImmDisplacement => {
                self.raw.imm = self.term(i32::MIN.into(), u32::MAX.into())? as i32;
            }
            Slot::Distance { long, marked } => self.distance(long, marked)?,
            Slot::OffArgument => {
                self.raw.off = self.argument(i16::MIN.into(), i16::MAX as u64)? as i16;
            }
            Slot::HighArgument => {
                self.high = self.argument(i32::MIN.into(), i32::MAX as u64)? as i32
            }
            Slot::Value => {
                let value = self.number(i64::MIN, u64::MAX)?;
                (self.raw.imm, self.high) = (value as i32, (value >> 32) as i32);
            }
            Slot::Cast => {
                let to = self.unsigned(u16::MAX.into())?;
                self.token(",")?;
                let from = self.unsigned(u16::MAX.into())?;
                self.raw.imm = (to << 16 | from) as i32;
            }
            Slot::HexImm => {
                self.raw.imm = self.number(i32::MIN.into(), u32::MAX.into())? as i32;
            }
            Slot::Callee => {
                if self.peek().is_none_or(|token| token.kind != Kind::Word) {
                    return Err(self.expected("the name of a function"));
                }
                self.at += 1;
                self.token("#")?;
                self.raw.imm = self.number(i32::MIN.into(), u32::MAX.into())? as i32;
            }
        }
        Ok(())
    }

    fn register(&mut self, src: bool, name: RegName) -> Result<(), Miss> {
        let token = self.peek().filter(|token| token.kind == Kind::Word);
        let number = token.and_then(|token| {
            let digits = match name {
                RegName::Whole => token.text.strip_prefix('r'),
                RegName::Half => token.text.strip_prefix('w'),
                RegName::WholeOrHalf | RegName::HalfOrWhole => token.text.strip_prefix(['r', 'w']),
            }?;
            let number = digits.parse::<u8>().ok()?;
            // `r01` and `r+1` are not register names.
            (number <= 10 && digits.len() == 1 + usize::from(number == 10)).then_some(number)
        });
        let (Some(token), Some(number)) = (token, number) else {
            return Err(self.expected(match name {
                RegName::Half | RegName::HalfOrWhole => "a register (w0 to w10)",
                RegName::Whole | RegName::WholeOrHalf => "a register (r0 to r10)",
            }));
        };
        let field = if src { &mut self.src } else { &mut self.dst };
        let first = *field.get_or_insert(number);
        if first != number {
            let expected = format!("{}{first}", &token.text[..1]);
            let found = token.text.to_owned();
            let failure = (self.at, AsmProblem::NotTheSame { expected, found });
            self.misfit.get_or_insert(failure);
        }
        self.at += 1;
        Ok(())
    }

    /// A number with an optional sign, as 64 bits of two's complement.
    fn number(&mut self, least: i64, most: u64) -> Result<u64, Miss> {
        let negative = self.take("-");
        self.magnitude(negative, least, most)
    }

    fn unsigned(&mut self, most: u64) -> Result<u64, Miss> {
        self.magnitude(false, 0, most)
    }

    /// `+ 4`, `- 4`, or nothing for 0.
    fn term(&mut self, least: i64, most: u64) -> Result<u64, Miss> {
        if self.take("+") {
            self.magnitude(false, least, most)
        } else if self.take("-") {
            self.magnitude(true, least, most)
        } else {
            Ok(0)
        }
    }

    /// `, 4`, or nothing for 0.
    fn argument(&mut self, least: i64, most: u64) -> Result<u64, Miss> {
        if self.take(",") {
            self.number(least, most)
        } else {
            Ok(0)
        }
    }

    fn magnitude(&mut self, negative: bool, least: i64, most: u64) -> Result<u64, Miss> {
        let Some(Token {
            kind: Kind::Number(value),
            text,
            ..
        }) = self.peek()
        else {
            return Err(self.expected("a number"));
        };
        let fits = value.filter(|value| match negative {
            false => *value <= most,
            true => *value <= least.unsigned_abs(),
        });
        if fits.is_none() {
            let number = format!("{}{text}", if negative { "-" } else { "" });
            let failure = (
                self.at,
                AsmProblem::OutOfRange {
                    number,
                    least,
                    most,
                },
            );
            self.misfit.get_or_insert(failure);
        }
        self.at += 1;
        let value = fits.unwrap_or(0);
        Ok(if negative {
            value.wrapping_neg()
        } else {
            value
        })
    }

    /// A signed distance, after `pc` if it must be marked, or a label.
    fn distance(&mut self, long: bool, marked: bool) -> Result<(), Miss> {
        let mark = self.take("pc");
        let signed = self
            .peek()
            .is_some_and(|token| matches!(token.text, "+" | "-"));
        if signed && mark >= marked {
            if long {
                self.raw.imm = self.term(i32::MIN.into(), i32::MAX as u64)? as i32;
            } else {
                self.raw.off = self.term(i16::MIN.into(), i16::MAX as u64)? as i16;
            }
            return Ok(());
        }
        let Some(token) = self
            .peek()
            .filter(|token| token.kind == Kind::Word && !mark)
        else {
            return Err(self.expected(match marked {
                true => "a label or a signed distance such as `pc+2`",
                false => "a label or a signed distance such as `+2`",
            }));
        };
        self.label = Some(LabelUse { token, long });
        self.at += 1;
        Ok(())
    }
}
