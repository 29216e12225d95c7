//! Input of filters: files and running processes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beebox::Engine;
use beebox::internal::Refusal;
pub(crate) use beebox::internal::seccomp::NamedFilter;
use beebox::internal::seccomp::profile::{
    self, CompileError, Compiled, ContainerProfile, FilterFile, NEWEST_KERNEL, ProfileNote,
    ProgramShape, Runtime, TargetMachine,
};
use beebox::internal::seccomp::{ByteOrder, parse_arch};
use beebox::kernel::KernelVersion;
use beebox::seccomp::{Arch, FilterStack};

use super::value;
use crate::answer::Failure;
use crate::kernel_input::{KERNEL_HEADING, KernelNameArg};
use crate::program_input;

/// Source of the filters.
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

/// The filters of one process: those of a running one, then those of files.
pub(crate) struct Source<'a> {
    pub(crate) pid: Option<i32>,
    pub(crate) files: &'a [PathBuf],
}

impl Source<'_> {
    /// Name for messages.
    pub(crate) fn name(&self) -> String {
        let process = self.pid.map(|pid| format!("process {pid}"));
        let files = self.files.iter().map(|path| crate::input::name(path));
        process
            .into_iter()
            .chain(files)
            .collect::<Vec<_>>()
            .join(" + ")
    }

    /// The programs, unchecked.
    pub(crate) fn programs(&self, profiles: &ProfileOptions) -> Result<Vec<NamedFilter>, Failure> {
        let mut programs = match self.pid {
            Some(pid) => of_process(pid)?,
            None => Vec::new(),
        };
        for path in self.files {
            programs.push(read(path, profiles)?);
        }
        Ok(programs)
    }

    /// The stack of filters that the programs make.
    pub(crate) fn stack(&self, profiles: &ProfileOptions) -> Result<FilterStack, Failure> {
        let programs = self.programs(profiles)?;
        print_notes(&programs);
        install(&programs, Engine::Checked, profiles.byte_order()?)
    }
}

/// Heading of the options of a machine.
const MACHINE: &str = "Machine and container";

/// The machine that a container profile is compiled for.
#[derive(clap::Args)]
pub(crate) struct ProfileOptions {
    /// The machine's architecture, which profiles are compiled for; filters for s390x
    /// and mips64 find the halves of arguments in big-endian order [default: this
    /// machine's]
    #[arg(long, value_name = "ARCH", help_heading = MACHINE)]
    machine: Option<String>,
    /// Capabilities of the container: names with or without CAP_, separated by
    /// commas, or a set: all, none, docker, containerd, podman [default: none]
    #[arg(long = "cap", value_name = "CAPS", help_heading = MACHINE)]
    caps: Vec<String>,
    #[command(flatten)]
    kernel: KernelNameArg,
    /// The kernel's version, as 4.19, which decides rules with minKernel
    #[arg(long, value_name = "VERSION", conflicts_with = "kernel", help_heading = KERNEL_HEADING)]
    kernel_version: Option<KernelVersion>,
    /// The program that installs the filter: runc, whose filters give ENOSYS to calls with
    /// greater numbers than any that the profile names, unless the default action is ALLOW,
    /// LOG or TRACE; or libseccomp alone, as in crun [default: runc]
    #[arg(long, value_name = "RUNTIME", help_heading = MACHINE)]
    runtime: Option<ProfileRuntime>,
    /// True once a profile was compiled by these options.
    #[arg(skip)]
    has_compiled: Cell<bool>,
}

/// The runtimes of `--runtime`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfileRuntime {
    /// runc 1.2
    Runc,
    /// libseccomp's code alone
    Libseccomp,
}

impl ProfileOptions {
    /// Compiles a profile and tells its author what is unexpected about it.
    pub(crate) fn compile(
        &self,
        name: &str,
        text: &[u8],
        shape: ProgramShape,
    ) -> Result<Compiled, Failure> {
        let profile = ContainerProfile::read(text)
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        self.has_compiled.set(true);
        let compiled = profile::compile(&profile, &self.machine()?, shape).map_err(|error| match error {
            CompileError::TooLong(length) => {
                let length = length.map_or(String::new(), |length| format!(" ({length})"));
                Failure::new(format!(
                    "{name}: the filter would be longer than the 4096 instructions{length} that Linux takes"
                ))
            }
            refused => Failure::new(format!("{name}: {refused}"))
                .hint("--runtime libseccomp compiles it as crun does"),
        })?;
        let mut compiled = compiled;
        // Said on request, it is not assumed.
        let is_assumed = |note: &ProfileNote| {
            !matches!(note, ProfileNote::NoCapabilities(_)) || self.caps.is_empty()
        };
        compiled.notes.retain(is_assumed);
        Ok(compiled)
    }

    /// Refuses options that only profiles depend on, once all inputs are read and none of them
    /// is a profile.
    pub(crate) fn check_use(&self) -> Result<(), Failure> {
        let given = [
            (!self.caps.is_empty(), "--cap"),
            (self.kernel.is_given(), "--kernel"),
            (self.kernel_version.is_some(), "--kernel-version"),
            (self.runtime.is_some(), "--runtime"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) if !self.has_compiled.get() => {
                let what = format_args!(
                    "{option} does nothing with compiled filters: container profiles depend on it"
                );
                Err(Failure::new(what).hint(format_args!("no {option}, or a profile")))
            }
            _ => Ok(()),
        }
    }

    /// Byte order of the machine.
    pub(crate) fn byte_order(&self) -> Result<ByteOrder, Failure> {
        let (arch, _) = self.arch()?;
        Ok(arch.map_or(ByteOrder::Little, Arch::byte_order))
    }

    fn arch(&self) -> Result<(Option<Arch>, u32), Failure> {
        let parsed = parse_arch(self.machine.as_deref());
        parsed.map_err(|error| value::failure(error).within("--machine"))
    }

    fn machine(&self) -> Result<TargetMachine, Failure> {
        let (arch, _) = self.arch()?;
        let kernel = match self.kernel_version {
            Some(version) => version,
            None => self.kernel.version()?.unwrap_or(NEWEST_KERNEL),
        };
        let mut caps = BTreeSet::new();
        for list in &self.caps {
            caps.extend(profile::parse_capabilities(list).map_err(unknown_capability)?);
        }
        Ok(TargetMachine {
            arch: arch.ok_or_else(|| Failure::new("--machine needs an architecture's name"))?,
            caps,
            kernel,
            runtime: match self.runtime {
                None | Some(ProfileRuntime::Runc) => Runtime::Runc,
                Some(ProfileRuntime::Libseccomp) => Runtime::Libseccomp,
            },
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

/// A note to the author of a profile, in a sentence, with the option or command that goes with it.
pub(crate) fn note_text(note: &ProfileNote) -> String {
    match note {
        ProfileNote::NoCapabilities(skipped) => format!(
            "no capabilities are assumed (--cap names them); rules skipped that need some: {skipped}"
        ),
        ProfileNote::Conflict(_) => format!("{note} (see `beebox seccomp table`)"),
        note => note.to_string(),
    }
}

/// Prints the notes about programs on standard error.
pub(crate) fn print_notes(programs: &[NamedFilter]) {
    for program in programs {
        for note in &program.notes {
            diagnostic!("{}: note: {}", program.name, note_text(note));
        }
    }
}

impl Inputs {
    /// The machine that profiles are compiled for, as given.
    pub(crate) fn machine(&self) -> Option<&str> {
        self.profiles.machine.as_deref()
    }

    /// The files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// The programs, unchecked.
    pub(crate) fn programs(&self) -> Result<Vec<NamedFilter>, Failure> {
        let source = Source {
            pid: self.pid,
            files: &self.files,
        };
        let programs = source.programs(&self.profiles)?;
        self.profiles.check_use()?;
        Ok(programs)
    }

    /// The programs and the stack of filters that they make, for an engine.
    pub(crate) fn stack(
        &self,
        engine: Engine,
        order: ByteOrder,
    ) -> Result<(Vec<NamedFilter>, FilterStack), Failure> {
        let programs = self.programs()?;
        print_notes(&programs);
        let stack = install(&programs, engine, order)?;
        Ok((programs, stack))
    }

    /// Byte order of the machine that the filters are for.
    pub(crate) fn byte_order(&self) -> Result<ByteOrder, Failure> {
        self.profiles.byte_order()
    }
}

/// The filters of a running process.
pub(crate) fn of_process(pid: i32) -> Result<Vec<NamedFilter>, Failure> {
    let filters = sys::ptrace::seccomp_filters(pid).map_err(|errno| {
        let name = u16::try_from(errno.0)
            .ok()
            .and_then(beebox::internal::seccomp::errno::name);
        let failure = |what: &str| Failure::new(format!("process {pid}: {what}"));
        if errno == sys::Errno::ENOSYS {
            return failure("filters of processes are read on Linux only");
        }
        match name {
            Some("EINVAL") => {
                failure("it has no seccomp filter, or the kernel lacks CONFIG_CHECKPOINT_RESTORE")
            }
            Some("ESRCH") => failure("there is no such process"),
            Some("EPERM" | "EACCES") => {
                failure("its filters are shown to CAP_SYS_ADMIN with permission to trace it")
                    .hint("the same as root, outside any sandbox")
            }
            _ => failure(&format!("its filters can't be read: {errno}")),
        }
    })?;
    let named = filters
        .into_iter()
        .enumerate()
        .map(|(at, insns)| NamedFilter {
            name: format!("process {pid}, filter {at}"),
            insns,
            notes: Vec::new(),
        });
    Ok(named.collect())
}

/// Reads one file: a profile if it looks like JSON or YAML, else a program.
pub(crate) fn read(path: &Path, options: &ProfileOptions) -> Result<NamedFilter, Failure> {
    let (name, bytes) = read_bytes(path)?;
    match FilterFile::detect(path, &bytes) {
        FilterFile::Profile => {
            let compiled = options.compile(&name, &bytes, ProgramShape::Tree)?;
            Ok(NamedFilter {
                name,
                insns: compiled.program,
                notes: compiled.notes,
            })
        }
        FilterFile::JsonArray => Err(Failure::new(format!(
            "{name}: this is a JSON array, and a container profile is a JSON object"
        ))
        .hint("one of the profiles in it, as a file")),
        FilterFile::Program => Ok(NamedFilter {
            name,
            insns: program_input::parse_program(path, &bytes, None, false)?,
            notes: Vec::new(),
        }),
    }
}

/// The contents of a file and what to call it.
pub(crate) fn read_bytes(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let name = crate::input::name(path);
    Ok((name, program_input::read_bytes(path)?))
}

/// Installs programs one after the other, for an engine.
pub(crate) fn install(
    programs: &[NamedFilter],
    engine: Engine,
    order: ByteOrder,
) -> Result<FilterStack, Failure> {
    let mut stack = FilterStack::default();
    for program in programs {
        let installed = program.install(engine, order, &mut stack);
        installed.map_err(|refusal| refused(program, &refusal))?;
    }
    Ok(stack)
}

/// A filter that the kernel rejects cannot be analysed.
pub(crate) fn refused(program: &NamedFilter, refusal: &Refusal) -> Failure {
    let what = program.refusal_text(refusal);
    Failure::new(format!(
        "{}: the kernel refuses this filter: {what}",
        program.name
    ))
}
