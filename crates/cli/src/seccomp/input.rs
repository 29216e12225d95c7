//! Where filters come from: files and running processes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beebox::seccomp::profile::{self, Compiled, Machine, Note, Profile, Shape, Version};
use beebox::seccomp::{FilterStack, SeccompFilter};
use beebox::{Engine, FilterError, Refusal, SockFilter};

use super::value::parse_arch;

use crate::answer::Failure;
use crate::program_input;

/// Where to take the filters from.
#[derive(clap::Args)]
pub(crate) struct Inputs {
    /// Filters in the order of their installation (`-` is standard input)
    #[arg(value_name = "FILE", required_unless_present = "pid")]
    files: Vec<PathBuf>,
    /// Take the filters of a running process, in front of those of files (as
    /// root)
    #[arg(long, value_name = "N")]
    pid: Option<i32>,
    #[command(flatten)]
    profiles: ProfileOptions,
}

/// The machine that a container profile is compiled for.
#[derive(clap::Args)]
#[command(next_help_heading = "For container profiles")]
pub(crate) struct ProfileOptions {
    /// The machine's architecture [default: this machine's]
    #[arg(long, value_name = "ARCH")]
    machine: Option<String>,
    /// Capabilities of the container: names with or without CAP_, separated by
    /// commas, or a set: all, none, docker, containerd, podman [default: none]
    #[arg(long = "cap", value_name = "CAPS")]
    caps: Vec<String>,
    /// The kernel's version [default: 6.18, the newest known here]
    #[arg(long, value_name = "VERSION")]
    kernel_version: Option<String>,
}

impl ProfileOptions {
    /// The same for another machine, if one is given.
    pub(crate) fn on_machine(self, machine: Option<String>) -> ProfileOptions {
        ProfileOptions {
            machine: machine.or(self.machine),
            ..self
        }
    }

    /// Compiles a profile and tells its author what is unexpected about it.
    pub(crate) fn compile(
        &self,
        name: &str,
        text: &[u8],
        shape: Shape,
    ) -> Result<Compiled, Failure> {
        let profile =
            Profile::read(text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
        let compiled = profile::compile(&profile, &self.machine()?, shape).map_err(|long| {
            let length = long.0.map_or(String::new(), |length| format!(" ({length})"));
            Failure::new(format!(
                "{name}: the filter would be longer than the 4096 instructions{length} that Linux takes"
            ))
        })?;
        for note in &compiled.notes {
            // Said on request, it is not assumed.
            if matches!(note, Note::NoCapabilities(_)) && !self.caps.is_empty() {
                continue;
            }
            eprintln!("{name}: note: {}", note_text(note));
        }
        Ok(compiled)
    }

    fn machine(&self) -> Result<Machine, Failure> {
        let (arch, _) = parse_arch(self.machine.as_deref())?;
        let kernel = match &self.kernel_version {
            None => Version::NEWEST,
            Some(text) => Version::parse(text)
                .ok_or_else(|| Failure::new(format!("{text:?} is no kernel version like 6.1")))?,
        };
        let mut caps = BTreeSet::new();
        for list in &self.caps {
            caps.extend(profile::parse_capabilities(list).map_err(unknown_capability)?);
        }
        Ok(Machine {
            arch: arch.ok_or_else(|| Failure::new("--machine needs an architecture's name"))?,
            caps,
            kernel,
        })
    }
}

fn unknown_capability(unknown: profile::UnknownCapability) -> Failure {
    let failure = Failure::new(format!("--cap: {unknown}"));
    let sets = profile::CAPABILITY_SETS.iter().map(|(name, _)| *name);
    match unknown.closest {
        Some(name) => failure.hint(format!("--cap {name}")),
        None => failure.hint(format!(
            "a name of capabilities(7), or a set: {}",
            sets.collect::<Vec<_>>().join(", ")
        )),
    }
}

fn note_text(note: &Note) -> String {
    match note {
        Note::NoCapabilities(skipped) => format!(
            "no capabilities are assumed (--cap names them); rules skipped that need some: {skipped}"
        ),
        Note::UnknownCall(name) => {
            format!("no architecture known here has a call {name}; its rules have no effect")
        }
        Note::UnknownArch(name) => format!("{name} is passed over: its calls have no names here"),
        Note::Conflict(name) => format!(
            "rules for {name} have different actions; where the conditions of several hold, \
             libseccomp's order decides (see `beebox seccomp table`)"
        ),
    }
}

/// A program and what to call it.
pub(crate) struct Program {
    /// The file's name.
    pub(crate) name: String,
    /// Its instructions, unchecked.
    pub(crate) insns: Vec<SockFilter>,
}

impl Inputs {
    /// The machine that profiles are compiled for, as given.
    pub(crate) fn machine(&self) -> Option<&str> {
        self.profiles.machine.as_deref()
    }

    /// The programs, unchecked.
    pub(crate) fn programs(&self) -> Result<Vec<Program>, Failure> {
        let mut programs = match self.pid {
            Some(pid) => of_process(pid)?,
            None => Vec::new(),
        };
        for path in &self.files {
            programs.push(read(path, &self.profiles)?);
        }
        Ok(programs)
    }

    /// The programs and the stack of filters that they make, for an engine.
    pub(crate) fn stack(&self, engine: Engine) -> Result<(Vec<Program>, FilterStack), Failure> {
        let programs = self.programs()?;
        let stack = install(&programs, engine)?;
        Ok((programs, stack))
    }
}

/// The filters of a running process.
fn of_process(pid: i32) -> Result<Vec<Program>, Failure> {
    let filters = sys::ptrace::seccomp_filters(pid).map_err(|errno| {
        let name = u16::try_from(errno.0)
            .ok()
            .and_then(beebox::seccomp::errno::name);
        let (what, hint) = match name {
            Some("EINVAL") => ("no seccomp filter (or the kernel can't show it)", None),
            Some("ESRCH") => ("no such process", None),
            Some("EPERM" | "EACCES") => (
                "reading its filters needs CAP_SYS_ADMIN and permission to trace it",
                Some("the same as root, outside any sandbox"),
            ),
            _ => ("reading its filters failed", None),
        };
        let failure = Failure::new(format!("process {pid}: {what}: {errno}"));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let named = filters.into_iter().enumerate().map(|(at, insns)| Program {
        name: format!("process {pid}, filter {at}"),
        insns,
    });
    Ok(named.collect())
}

/// Reads one file: a profile if it looks like JSON, else a program.
pub(crate) fn read(path: &Path, options: &ProfileOptions) -> Result<Program, Failure> {
    let (name, bytes) = read_bytes(path)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = first == Some(&b'{') && !bytes.contains(&0) && !looks_like_c(&bytes);
    let insns = if is_json {
        options.compile(&name, &bytes, Shape::Tree)?.program
    } else {
        program_input::parse_program(path, &bytes, None, false)?
    };
    Ok(Program { name, insns })
}

/// A C array also begins with a brace, but goes on with a number.
fn looks_like_c(bytes: &[u8]) -> bool {
    let mut rest = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.nth(1)
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'{')
}

/// The contents of a file and what to call it.
pub(crate) fn read_bytes(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let name = program_input::name(path);
    let bytes = program_input::read_bytes(path)?;
    if bytes.len() > beebox::text::MAX_BYTES {
        return Err(Failure::new(format!(
            "{name}: too large to be a filter or a profile"
        )));
    }
    Ok((name, bytes))
}

/// Installs programs one after the other, for an engine.
pub(crate) fn install(programs: &[Program], engine: Engine) -> Result<FilterStack, Failure> {
    let mut stack = FilterStack::default();
    for program in programs {
        let installed = install_one(program, engine, &mut stack);
        installed.map_err(|refusal| refused(program, &refusal))?;
    }
    Ok(stack)
}

/// Installs one more program.
pub(crate) fn install_one(
    program: &Program,
    engine: Engine,
    stack: &mut FilterStack,
) -> Result<(), Refusal> {
    let settings = SeccompFilter::builder().engine(engine);
    match settings.build(&program.insns) {
        Ok(filter) => stack.install(filter),
        Err(FilterError::Rule { refusal, .. }) => Err(refusal),
        Err(error) => unreachable!("instructions are checked only: {error}"),
    }
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
        .and_then(beebox::seccomp::errno::name);
    let errno = errno.map_or_else(|| refusal.errno.to_string(), str::to_owned);
    let sentence = refusal.rule.sentence();
    match refusal.at {
        Some(at) => {
            let line = beebox::text::dump_line(at, program.insns[at]);
            format!(
                "{errno} at instruction {at}: {sentence}\n  {}",
                line.trim_end()
            )
        }
        None => format!("{errno}: {sentence}"),
    }
}
