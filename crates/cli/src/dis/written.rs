//! Reads back two forms that `beebox dis` writes: JSON, and initialisers for C.

use beebox::internal::ebpf::{Insn, RawInsn, decode};
use beebox::internal::raw::{ProgramForm, read_program};
use serde::Deserialize;

use crate::answer::Failure;

/// The part of the JSON form that holds the program.
#[derive(Deserialize)]
struct Program {
    insns: Vec<Record>,
}

/// An instruction: its bytes in hexadecimal.
#[derive(Deserialize)]
struct Record {
    bytes: String,
}

/// Reads a program that starts with a brace.
pub(super) fn read(file: &[u8]) -> Result<Vec<Insn>, Failure> {
    let text = std::str::from_utf8(file).map_err(Failure::new)?;
    let inside = text.trim_start().trim_start_matches('{').trim_start();
    match inside.starts_with('"') {
        true => from_json(text),
        false => from_initializers(text),
    }
}

fn from_json(text: &str) -> Result<Vec<Insn>, Failure> {
    let program: Program = serde_json::from_str(text).map_err(|error| {
        Failure::new(format_args!("JSON without a program: {error}"))
            .hint("`beebox dis --ebpf --format json` writes {\"insns\": [{\"bytes\": …}]}")
    })?;
    let bytes: Vec<String> = program.insns.into_iter().map(|insn| insn.bytes).collect();
    let program = read_program(bytes.join(" ").as_bytes(), Some(ProgramForm::Hex));
    Ok(program.map_err(Failure::new)?.insns().to_vec())
}

/// Reads lines of the form `{ code, dst, src, off, imm },`.
fn from_initializers(text: &str) -> Result<Vec<Insn>, Failure> {
    let lines = text.lines().enumerate();
    let slots: Result<Vec<RawInsn>, Failure> = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            initializer(line).ok_or_else(|| {
                let number = index + 1;
                Failure::new(format_args!(
                    "line {number}: expected {{ code, dst, src, off, imm }}, found {:?}",
                    line.trim()
                ))
            })
        })
        .collect();
    Ok(decode(&slots?))
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
