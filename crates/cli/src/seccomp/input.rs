//! Where filters come from: files and running processes.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use classic::Refusal;
use isa::classic::SockFilter;
use seccomp::{Filter, Stack};

use crate::answer::Failure;

/// Where to take the filters from.
#[derive(clap::Args)]
pub(crate) struct Inputs {
    /// Filters in the order of their installation (`-` is standard input)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// A program and what to call it.
pub(crate) struct Program {
    /// The file's name.
    pub(crate) name: String,
    /// Its instructions, unchecked.
    pub(crate) insns: Vec<SockFilter>,
}

impl Inputs {
    /// The programs, unchecked.
    pub(crate) fn programs(&self) -> Result<Vec<Program>, Failure> {
        self.files.iter().map(|path| read(path)).collect()
    }

    /// The programs and the stack of filters that they make.
    pub(crate) fn stack(&self) -> Result<(Vec<Program>, Stack), Failure> {
        let programs = self.programs()?;
        let stack = install(&programs)?;
        Ok((programs, stack))
    }
}

/// Reads one file.
pub(crate) fn read(path: &Path) -> Result<Program, Failure> {
    let name = if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let mut bytes = Vec::new();
    let limit = classic::text::MAX_BYTES as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::new(format!("{name}: {error}")))?;
    let insns = classic::text::read(&bytes, None)
        .map_err(|error| Failure::new(format!("{name}: {error}")))?;
    Ok(Program { name, insns })
}

/// Installs programs one after the other.
pub(crate) fn install(programs: &[Program]) -> Result<Stack, Failure> {
    let mut stack = Stack::default();
    for program in programs {
        Filter::new(&program.insns)
            .and_then(|filter| stack.install(filter))
            .map_err(|refusal| refused(program, &refusal))?;
    }
    Ok(stack)
}

/// A filter that the kernel refuses cannot be asked anything.
pub(crate) fn refused(program: &Program, refusal: &Refusal) -> Failure {
    let what = refusal_text(program, refusal);
    Failure::new(format!(
        "{}: the kernel refuses this filter: {what}",
        program.name
    ))
}

/// A refusal in words: the instruction, the rule, the error number.
pub(crate) fn refusal_text(program: &Program, refusal: &Refusal) -> String {
    let errno = u16::try_from(refusal.errno)
        .ok()
        .and_then(seccomp::errno::name);
    let errno = errno.map_or_else(|| refusal.errno.to_string(), str::to_owned);
    let sentence = refusal.rule.sentence();
    match refusal.at {
        Some(at) => {
            let line = classic::text::dump_line(at, program.insns[at]);
            format!(
                "{errno} at instruction {at}: {sentence}\n  {}",
                line.trim_end()
            )
        }
        None => format!("{errno}: {sentence}"),
    }
}

/// Prints an answer; a reader that went away is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
