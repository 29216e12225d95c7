//! Reads two forms in which listings are written: JSON, and initialisers for C.

use std::{error, fmt};

use isa::ebpf::{Insn, RawInsn, decode};
use serde::Deserialize;

use super::{ProgramForm, ProgramReadError, read_program};

/// Why a listing cannot be read.
#[derive(Debug)]
pub enum ListingReadError {
    /// It is not text.
    NotText(std::str::Utf8Error),
    /// The JSON has no program.
    Json(serde_json::Error),
    /// The bytes of an instruction in JSON are none.
    Program(ProgramReadError),
    /// A line is no initialiser.
    Initializer {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        found: String,
    },
}

impl fmt::Display for ListingReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListingReadError::NotText(error) => error.fmt(f),
            ListingReadError::Json(error) => write!(f, "JSON without a program: {error}"),
            ListingReadError::Program(error) => error.fmt(f),
            ListingReadError::Initializer { line, found } => {
                let form = "{ code, dst, src, off, imm }";
                write!(f, "line {line}: expected {form}, found {found:?}")
            }
        }
    }
}

impl error::Error for ListingReadError {}

/// The part of the JSON form that holds the program.
#[derive(Deserialize)]
struct Program {
    insns: Vec<Record>,
}

/// An instruction: its bytes in hexadecimal.
#[derive(Deserialize)]
struct Record {
    hex: String,
}

/// Reads a program that starts with a brace.
///
/// # Errors
/// If it is neither JSON with a program nor initialisers.
pub fn read_listing(file: &[u8]) -> Result<Vec<Insn>, ListingReadError> {
    let text = std::str::from_utf8(file).map_err(ListingReadError::NotText)?;
    let inside = text.trim_start().trim_start_matches('{').trim_start();
    match inside.starts_with('"') {
        true => from_json(text),
        false => from_initializers(text),
    }
}

fn from_json(text: &str) -> Result<Vec<Insn>, ListingReadError> {
    let program: Program = serde_json::from_str(text).map_err(ListingReadError::Json)?;
    let bytes: Vec<String> = program.insns.into_iter().map(|insn| insn.hex).collect();
    let program = read_program(bytes.join(" ").as_bytes(), Some(ProgramForm::Hex));
    Ok(program.map_err(ListingReadError::Program)?.insns().to_vec())
}

/// Reads lines of the form `{ code, dst, src, off, imm },`.
fn from_initializers(text: &str) -> Result<Vec<Insn>, ListingReadError> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let slots = lines.map(|(index, line)| {
        initializer(line).ok_or_else(|| ListingReadError::Initializer {
            line: index + 1,
            found: line.trim().to_owned(),
        })
    });
    Ok(decode(&slots.collect::<Result<Vec<_>, _>>()?))
}

fn initializer(line: &str) -> Option<RawInsn> {
    let inside = line
        .trim()
        .trim_end_matches(',')
        .strip_prefix('{')?
        .strip_suffix('}')?;
    let mut numbers = inside.split(',').map(|word| number(word.trim()));
    let mut next = || numbers.next()?;
    let code = u8::try_from(next()?).ok()?;
    let (dst, src) = (u8::try_from(next()?).ok()?, u8::try_from(next()?).ok()?);
    let (off, imm) = (i16::try_from(next()?).ok()?, i32::try_from(next()?).ok()?);
    let is_whole = dst < 16 && src < 16 && numbers.next().is_none();
    is_whole.then_some(RawInsn {
        code,
        regs: dst | src << 4,
        off,
        imm,
    })
}

/// A decimal or hexadecimal number with an optional sign.
fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
