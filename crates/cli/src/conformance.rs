//! `beebox conformance-plugin`: plugin of the public bpf_conformance suite.

use std::io::{self, Read};

use beebox::internal::raw::{
    self, Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, ProgramReadError, SplitMix,
};

use crate::answer::{Answer, Failure};
use crate::run::trusted::{self, Engine};

/// The longest line of hexadecimal that is read: a million instructions in bytes
/// with two spaces each.
const LONGEST_LINE: u64 = 1 << 26;

/// Run one program of the public BPF conformance suite
///
/// Speaks the protocol of bpf_conformance: the program in hexadecimal on standard
/// input, the memory in hexadecimal as argument, r0 in hexadecimal on standard
/// output. The suite starts a plugin by its path alone, so give it a script:
///
///   #!/bin/sh
///   exec beebox conformance-plugin "$@"
#[derive(clap::Args)]
#[command(
    hide = true,
    verbatim_doc_comment,
    after_help = "\
Example:
  bpf_conformance_runner --test_file_directory tests --plugin_path ./plugin.sh \\
    --cpu_version v4 --plugin_options '--engine interp --trust'

Exit codes: 0 the program returned, 1 it was stopped by a trap, 2 could not answer."
)]
pub(crate) struct Args {
    /// The memory: its address is in r1, its length in r2
    #[arg(value_name = "HEX")]
    memory: Option<String>,

    /// The program, instead of on standard input
    #[arg(long, value_name = "HEX")]
    program: Option<String>,

    /// The program is an ELF object (in hexadecimal too), of which the first
    /// section with code is run
    #[arg(long)]
    elf: bool,

    /// Say on standard error what is run
    #[arg(long)]
    debug: bool,

    /// Engine
    #[arg(long, value_enum, default_value = "checked")]
    engine: Engine,

    /// Assume that the programs are safe, which every engine but checked needs
    #[arg(long)]
    trust: bool,
}

/// Time of the clock helpers; the suite only requires that they succeed.
const TIME: u64 = 1;

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let wrong = |what: &str, error: ProgramReadError| Failure::new(format_args!("{what}: {error}"));
    let bytes = match &args.program {
        Some(hex) => raw::parse_hex(hex),
        None => raw::parse_hex(&read_line()?),
    };
    let bytes = bytes.map_err(|error| wrong("program", error))?;
    let program = match args.elf {
        true => raw::elf_program(&bytes, None),
        false => CheckedProgram::from_bytes(&bytes).map_err(ProgramReadError::from),
    };
    let place = match args.elf {
        true => "program of --elf",
        false => "program",
    };
    let program = program.map_err(|error| wrong(place, error))?;
    if program.insns().is_empty() {
        let failure = Failure::new("program: no instructions");
        return Err(failure.hint("--program HEX, or hexadecimal on standard input"));
    }
    let memory = raw::parse_hex(args.memory.as_deref().unwrap_or_default());
    let mut memory = memory.map_err(|error| wrong("the memory", error))?;
    if args.debug {
        for (index, insn) in program.insns().iter().enumerate() {
            diagnostic!("{index:4}: {insn}");
        }
    }
    if args.engine.is_unchecked() {
        trusted::check_trust(args.trust)?;
        let (random, clock) = (SplitMix::new(0), || TIME);
        let value = trusted::run(args.engine, &program, &mut memory, random, clock, None)?;
        let value = value.ok_or_else(|| Failure::new(trusted::TIMED_OUT))?;
        println!("{value:x}");
        return Ok(Answer::Yes);
    }
    if args.trust {
        return Err(Failure::new(trusted::NEEDLESS_TRUST).hint(trusted::OTHER_ENGINES));
    }
    match run_checked(&program, &mut memory)? {
        Ok(value) => {
            println!("{value:x}");
            Ok(Answer::Yes)
        }
        Err(trap) => {
            diagnostic!("{trap}");
            Ok(Answer::No)
        }
    }
}

fn run_checked(
    program: &CheckedProgram,
    bytes: &mut [u8],
) -> Result<Result<u64, raw::Trap>, Failure> {
    let mut entry = Entry::default();
    let mut memory = Memory::new();
    if !bytes.is_empty() {
        entry.arguments[1] = bytes.len() as u64;
        let region = memory.add("memory", bytes).map_err(Failure::new)?;
        entry.arguments[0] = memory.address(region);
    }
    let mut calls = Calls::basic(SplitMix::new(0), || TIME);
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    Ok(program.run(cx, entry, &Limits::default()).outcome)
}

fn read_line() -> Result<String, Failure> {
    let fail = |error| Failure::new(format_args!("standard input: {error}"));
    let mut text = String::new();
    let mut input = io::stdin().lock().take(LONGEST_LINE);
    input.read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}
