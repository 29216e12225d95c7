//! The libbpf harness: libbpf with a stand-in for the kernel.
//!
//! The harness (`libbpf/harness.c`) is compiled against the static libbpf of the
//! selftests when it is first needed, and kept in their cache under a name that holds
//! a digest of the sources. A run prints all that libbpf would hand to a kernel as lines of
//! JSON, which become [`SyscallRecord`].

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::selftests;
use super::syscall_record::{Line, SyscallRecord};

/// The sources, by name.
const SOURCES: [(&str, &str); 5] = [
    ("harness.c", include_str!("../../libbpf/harness.c")),
    ("kernel.c", include_str!("../../libbpf/kernel.c")),
    ("print.c", include_str!("../../libbpf/print.c")),
    ("kernel.h", include_str!("../../libbpf/kernel.h")),
    ("print.h", include_str!("../../libbpf/print.h")),
];

/// Reason why libbpf cannot be used.
#[derive(Debug)]
pub enum Unavailable {
    /// The selftests were not built: this is missing.
    NoSelftests(PathBuf),
    /// The harness does not compile, in the compiler's words.
    NotCompiled(String),
    /// The harness failed, or printed what can't be read.
    Failed(String),
    /// The system refused something.
    System(io::Error),
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unavailable::NoSelftests(missing) => {
                write!(f, "the selftests are not built: no {}", missing.display())
            }
            Unavailable::NotCompiled(said) => write!(f, "compiling the harness: {said}"),
            Unavailable::Failed(said) => write!(f, "running the harness: {said}"),
            Unavailable::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unavailable {}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Unavailable {
        Unavailable::System(error)
    }
}

/// Load request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Every program alone, after the whole object.
    pub each: bool,
    /// Make undefined global symbols weak first.
    pub weak: bool,
    /// The BTF for CO-RE, instead of the kernel's.
    pub btf: Option<PathBuf>,
    /// The text of the kernel's configuration, in place of the running one's.
    pub config: Option<PathBuf>,
}

/// The compiled harness.
#[derive(Clone, Debug)]
pub struct Harness {
    program: PathBuf,
}

impl Harness {
    /// The harness, compiled now if it is not there yet.
    pub fn open() -> Result<Harness, Unavailable> {
        let tools = selftests::tools();
        let library = tools.join("libbpf.a");
        if !library.exists() {
            return Err(Unavailable::NoSelftests(library));
        }
        let mut digest = DefaultHasher::new();
        SOURCES.hash(&mut digest);
        let program = tools.join(format!("beebox-harness-{:016x}", digest.finish()));
        if !program.exists() {
            compile(&library, &program)?;
        }
        Ok(Harness { program })
    }

    /// Loads one object: the whole, then each program on request.
    pub fn ask(&self, object: &Path, request: &Request) -> Result<Vec<SyscallRecord>, Unavailable> {
        let mut command = Command::new(&self.program);
        for (wanted, option) in [(request.each, "--each"), (request.weak, "--weak")] {
            if wanted {
                command.arg(option);
            }
        }
        for (file, option) in [(&request.btf, "--btf"), (&request.config, "--kconfig")] {
            if let Some(file) = file {
                command.arg(option).arg(file);
            }
        }
        let output = command.arg(object).stdin(Stdio::null()).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(Unavailable::Failed(format!("{} {}", output.status, said())));
        }
        let broken = |error: serde_json::Error| {
            Unavailable::Failed(format!("{}: {error}", object.display()))
        };
        let mut segments = Vec::new();
        for line in output.stdout.split(|&byte| byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let line: Line = serde_json::from_slice(line).map_err(broken)?;
            match line {
                Line::Object(scope) => segments.push(SyscallRecord::new(scope)),
                line => {
                    let segment = segments.last_mut();
                    let segment = segment
                        .ok_or_else(|| Unavailable::Failed("a line before any object".into()))?;
                    segment.add(line);
                }
            }
        }
        Ok(segments)
    }
}

/// Compiles the harness; it gets its name when it is whole, so that two who need
/// it at once do not meet.
fn compile(library: &Path, program: &Path) -> Result<(), Unavailable> {
    let directory = program.with_extension(std::process::id().to_string());
    fs::create_dir_all(&directory)?;
    let compiled = compile_in(&directory, library, program);
    fs::remove_dir_all(&directory)?;
    compiled
}

fn compile_in(directory: &Path, library: &Path, program: &Path) -> Result<(), Unavailable> {
    let sources = selftests::sources();
    let partial = directory.join("harness");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-Wall", "-Werror", "-Wl,--wrap=syscall"])
        .arg(format!("-DLIBBPF_FEATURES={}", features(&sources)?))
        .arg("-I")
        .arg(selftests::tools().join("include"))
        .arg("-I")
        .arg(sources.join("include/uapi"));
    for (name, text) in SOURCES {
        let file = directory.join(name);
        fs::write(&file, text)?;
        if name.ends_with(".c") {
            compiler.arg(file);
        }
    }
    let output = compiler
        .arg(library)
        .args(["-lelf", "-lz", "-o"])
        .arg(&partial)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Unavailable::NotCompiled(said));
    }
    fs::rename(&partial, program)?;
    Ok(())
}

/// Number of kernel features that this libbpf probes.
fn features(sources: &Path) -> Result<usize, Unavailable> {
    let header = sources.join("lib/bpf/libbpf_internal.h");
    let text = fs::read_to_string(&header)?;
    let list = text
        .split_once("enum kern_feature_id {")
        .and_then(|(_, after)| after.split_once("__FEAT_CNT"));
    match list {
        Some((list, _)) => Ok(list.lines().filter(|l| l.starts_with("\tFEAT_")).count()),
        None => Err(Unavailable::Failed(format!(
            "{} lists no features",
            header.display()
        ))),
    }
}
