//! Plugin of the public bpf_conformance suite, which starts it for each of its files.
//!
//! The protocol: the program in hexadecimal on standard input, the memory in hexadecimal as
//! argument (its address is in r1, its length in r2), r0 in hexadecimal on standard output. With
//! `--elf` the program is an ELF object, of which the first section with code runs. The programs of
//! the suite are safe, which `--engine native` and `--engine interp` rest on.
#![deny(unsafe_code)]

use std::error::Error;
use std::io::{self, Read};
use std::process::ExitCode;

use beebox::Engine;
use beebox::internal::raw::{
    self, Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, Outcome, SplitMix,
    Unchecked, UncheckedProgram,
};

const USAGE: &str = "\
usage: conformance-plugin [MEMORY] [--program HEX] [--elf] [--debug] [--engine checked|interp|native]
exit codes: 0 the program returned, 1 a trap stopped it, 2 could not answer";

/// The longest line of hexadecimal that is read: a million instructions in bytes with two spaces
/// each.
const LONGEST_LINE: u64 = 1 << 26;

/// Time of the clock helpers; the suite only requires that they succeed.
const TIME: u64 = 1;

/// What the arguments say.
#[derive(Default)]
struct Arguments {
    memory: String,
    program: Option<String>,
    is_elf: bool,
    is_debug: bool,
    /// `None` for the checked interpreter.
    engine: Option<Engine>,
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
    let mut words = words;
    let mut parsed = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--program" => parsed.program = Some(value()?),
            "--elf" => parsed.is_elf = true,
            "--debug" => parsed.is_debug = true,
            "--engine" => {
                parsed.engine = match value()?.as_str() {
                    "checked" => None,
                    "interp" => Some(Engine::Interp),
                    "native" => Some(Engine::Native),
                    other => return Err(format!("no engine {other:?}\n{USAGE}").into()),
                }
            }
            option if option.starts_with('-') => return Err(format!("{option}\n{USAGE}").into()),
            memory => parsed.memory = memory.to_owned(),
        }
    }
    Ok(parsed)
}

fn main() -> ExitCode {
    match run() {
        Ok(Ok(value)) => {
            println!("{value:x}");
            ExitCode::SUCCESS
        }
        Ok(Err(trap)) => {
            eprintln!("{trap}");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("conformance-plugin: {error}");
            ExitCode::from(2)
        }
    }
}

/// `r0`, or why the run stopped.
fn run() -> Result<Result<u64, String>, Box<dyn Error>> {
    let arguments = parse(std::env::args().skip(1))?;
    let hex = match &arguments.program {
        Some(hex) => hex.clone(),
        None => {
            let mut text = String::new();
            let mut input = io::stdin().lock().take(LONGEST_LINE);
            input.read_to_string(&mut text)?;
            text
        }
    };
    let bytes = raw::parse_hex(&hex).map_err(|error| format!("program: {error}"))?;
    let program = match arguments.is_elf {
        true => raw::elf_program(&bytes, None)?,
        false => CheckedProgram::from_bytes(&bytes)?,
    };
    if program.insns().is_empty() {
        return Err("program: no instructions".into());
    }
    if arguments.is_debug {
        for (index, insn) in program.insns().iter().enumerate() {
            eprintln!("{index:4}: {insn}");
        }
    }
    let memory = raw::parse_hex(&arguments.memory);
    let mut memory = memory.map_err(|error| format!("the memory: {error}"))?;
    match arguments.engine {
        None => run_checked(&program, &mut memory),
        Some(engine) => {
            let program = UncheckedProgram::compile(assume_safe(&program), engine, None)?;
            match program.run(&mut memory, &mut SplitMix::new(0), || TIME) {
                Outcome::Returned(value) => Ok(Ok(value)),
                other => Ok(Err(format!("{other:?}"))),
            }
        }
    }
}

fn run_checked(
    program: &CheckedProgram,
    bytes: &mut [u8],
) -> Result<Result<u64, String>, Box<dyn Error>> {
    let mut entry = Entry::default();
    let mut memory = Memory::new();
    if !bytes.is_empty() {
        entry.arguments[1] = bytes.len() as u64;
        let region = memory.add("memory", bytes)?;
        entry.arguments[0] = memory.address(region);
    }
    let mut calls = Calls::basic(SplitMix::new(0), || TIME);
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let outcome = program.run(cx, entry, &Limits::default()).outcome;
    Ok(outcome.map_err(|trap| trap.to_string()))
}

/// Asserts that a program of the suite is safe.
#[allow(unsafe_code)]
fn assume_safe(program: &CheckedProgram) -> Unchecked {
    // SAFETY: who starts the plugin with an engine that does not check asserts it; the programs of
    // the suite access the memory that they get, and end.
    unsafe { Unchecked::assume_safe(program.insns().to_vec()) }
}
