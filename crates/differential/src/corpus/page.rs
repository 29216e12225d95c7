//! Effect of each optimization on the corpus, as a table.
//!
//! An optimization is counted where the compiler applies it; what it saves is the
//! difference in bytes between the code without it and the code with all of them.

use std::fmt::Write;

use interp::{Fusion, Fusions, ThreadedCode};
use jit::{Draft, Optimization, Optimizations, Options};
use lower::LoweredCode;

use super::Part;

/// Number of applications of an optimization to the programs of a part, and the bytes that
/// it saves.
#[derive(Clone, Copy, Default)]
struct Gain {
    applied: u64,
    bytes: i64,
}

/// Length of the code, without the data after it.
fn compile(program: &LoweredCode, optimizations: Optimizations) -> Draft {
    let options = Options {
        optimizations,
        ..Options::default()
    };
    Draft::of(program, &options)
}

fn gains(part: &Part) -> Vec<Gain> {
    let mut gains = vec![Gain::default(); Optimization::ALL.len()];
    for program in &part.programs {
        let best = compile(program, Optimizations::ALL);
        for (gain, &optimization) in gains.iter_mut().zip(Optimization::ALL) {
            let without = compile(program, Optimizations::ALL.without(optimization));
            gain.applied += u64::from(best.applied().count(optimization));
            gain.bytes += without.bytes().len() as i64 - best.bytes().len() as i64;
        }
    }
    gains
}

/// The table, in Markdown.
pub fn table(parts: &[Part]) -> String {
    let mut text = String::new();
    let there: Vec<&Part> = parts.iter().filter(|part| part.absent.is_none()).collect();
    for part in parts {
        match &part.absent {
            Some(why) => {
                let _ = writeln!(text, "- {}: not counted ({why})", part.title);
            }
            None => {
                let (programs, insns) = (part.programs.len(), part.insns());
                let bytes: usize = part
                    .programs
                    .iter()
                    .map(|program| compile(program, Optimizations::ALL).bytes().len())
                    .sum();
                let plain: usize = part
                    .programs
                    .iter()
                    .map(|program| compile(program, Optimizations::NONE).bytes().len())
                    .sum();
                let _ = writeln!(
                    text,
                    "- {}: {} programs, {} instructions, {} bytes of native code ({} without \
                     optimizations); {} programs are refused.",
                    part.title,
                    grouped(programs as i64),
                    grouped(insns as i64),
                    grouped(bytes as i64),
                    grouped(plain as i64),
                    part.refused,
                );
            }
        }
    }
    text.push_str("\n| optimization |");
    for part in &there {
        let _ = write!(text, " {} | bytes |", part.title);
    }
    text.push_str("\n|---|");
    text.push_str(&"--:|--:|".repeat(there.len()));
    text.push('\n');
    let all: Vec<Vec<Gain>> = there.iter().map(|part| gains(part)).collect();
    for (index, optimization) in Optimization::ALL.iter().enumerate() {
        let _ = write!(text, "| {} |", optimization.title());
        for gains in &all {
            let Gain { applied, bytes } = gains[index];
            let _ = match (applied, bytes) {
                (0, 0) => write!(text, " | |"),
                _ => write!(text, " {} | {} |", grouped(applied as i64), grouped(bytes)),
            };
        }
        text.push('\n');
    }
    text
}

/// Number of applications of each fusion of the interpreter, in Markdown.
pub fn fusion_table(parts: &[Part]) -> String {
    let there: Vec<&Part> = parts.iter().filter(|part| part.absent.is_none()).collect();
    let mut text = String::from("| fusion | dispatches saved |");
    for part in &there {
        let _ = write!(text, " {} |", part.title);
    }
    text.push_str("\n|---|--:|");
    text.push_str(&"--:|".repeat(there.len()));
    text.push('\n');
    let codes: Vec<Vec<ThreadedCode>> = there
        .iter()
        .map(|part| {
            part.programs
                .iter()
                .filter_map(|it| ThreadedCode::compile(it, Fusions::ALL).ok())
        })
        .map(Iterator::collect)
        .collect();
    for &fusion in Fusion::ALL {
        let _ = write!(text, "| {} | {} |", fusion.title(), fusion.saved());
        for codes in &codes {
            let applied = codes.iter().map(|code| code.applied().count(fusion));
            let applied: i64 = applied.map(i64::from).sum();
            let _ = match applied {
                0 => write!(text, " |"),
                _ => write!(text, " {} |", grouped(applied)),
            };
        }
        text.push('\n');
    }
    let _ = write!(text, "| operations, and instructions | |");
    for (codes, part) in codes.iter().zip(&there) {
        let ops: usize = codes.iter().map(ThreadedCode::len).sum();
        let _ = write!(
            text,
            " {} of {} |",
            grouped(ops as i64),
            grouped(part.insns() as i64)
        );
    }
    text.push('\n');
    text
}

/// A number with commas between groups of three digits.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    if number < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
