//! Other loaders as oracles: what cilium/ebpf, aya and libbpf 0.8 parse of objects beside what
//! Beebox makes of them by their conventions: programs with types and instructions, maps.
//!
//! `tools/loaders/build` builds a small program with each loader into the cache; nothing is loaded into a
//! kernel.
//!
//! # Modules
//!
//! [`parsed`] is what a loader parses, [`ours`] the same of Beebox, [`compare`] finds differences.

pub mod compare;
pub mod ours;
pub mod parsed;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, fs, io};

use spec::loader::LoaderKind;

use compare::Comparison;
use parsed::Parsed;

/// Loaders with such a program.
pub const ASKED: [LoaderKind; 3] = [
    LoaderKind::CiliumEbpf,
    LoaderKind::Aya,
    LoaderKind::Libbpf08,
];

/// Directories of the repository with objects.
const OWN: [&str; 8] = [
    "crates/beebox/tests",
    "crates/bench/objects",
    "crates/bench/workloads",
    "crates/cli/tests",
    "crates/gateway/bpf",
    "crates/object/tests",
    "crates/testkit/cases",
    "examples",
];

/// The objects of this repository, by path.
pub fn own_objects() -> io::Result<Vec<PathBuf>> {
    let root = root();
    objects(OWN.iter().map(|path| root.join(path)))
}

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Objects of this byte order at paths and below, by path.
pub fn objects(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending: Vec<PathBuf> = paths.into_iter().collect();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                pending.push(entry?.path());
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default();
        let is_named = extension == "o" || extension == "elf";
        if is_named && fs::read(&path)?.starts_with(b"\x7fELF\x02\x01") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Compares what a loader parses of objects with what Beebox makes of them.
pub fn compare_all(tool: &Tool, objects: &[PathBuf]) -> Result<Comparison, Unavailable> {
    let kernel = kernel_data::linux_6_18();
    let mut found = Comparison::default();
    for (path, theirs) in objects.iter().zip(tool.parse(objects)?) {
        let file = fs::read(path).map_err(Unavailable::Io)?;
        let short = path.strip_prefix(root()).unwrap_or(path).to_string_lossy();
        let ours = ours::parse(&file, &path.to_string_lossy(), tool.loader, &kernel);
        compare::compare(tool.loader, &short, &theirs, &ours, &mut found);
    }
    Ok(found)
}

/// Most objects of one run of a program.
const BATCH: usize = 200;

/// Why a loader cannot be asked.
#[derive(Debug)]
pub enum Unavailable {
    /// Its program is not built.
    NotBuilt(PathBuf),
    /// It does not run.
    Io(io::Error),
    /// It prints something else.
    Failed(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NotBuilt(path) => {
                write!(f, "{} is not built (tools/loaders/build)", path.display())
            }
            Unavailable::Io(error) => error.fmt(f),
            Unavailable::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Unavailable {}

/// Program that prints what a loader parses.
#[derive(Debug)]
pub struct Tool {
    loader: LoaderKind,
    path: PathBuf,
}

impl Tool {
    /// The program of a loader.
    pub fn find(loader: LoaderKind) -> Result<Tool, Unavailable> {
        let loaders = oracle::selftests().with_file_name("loaders");
        let path = loaders.join(loader.name());
        match path.exists() {
            true => Ok(Tool { loader, path }),
            false => Err(Unavailable::NotBuilt(path)),
        }
    }

    /// The loader.
    pub fn loader(&self) -> LoaderKind {
        self.loader
    }

    /// What the loader parses of objects, in their order.
    pub fn parse(&self, objects: &[PathBuf]) -> Result<Vec<Parsed>, Unavailable> {
        let mut parsed = Vec::with_capacity(objects.len());
        for batch in objects.chunks(BATCH) {
            let mut command = Command::new(&self.path);
            let output = command.args(batch).stdin(Stdio::null()).output();
            let output = output.map_err(Unavailable::Io)?;
            for line in output.stdout.split(|&byte| byte == b'\n') {
                if !line.is_empty() {
                    let read = serde_json::from_slice(line);
                    parsed.push(read.map_err(|error| Unavailable::Failed(error.to_string()))?);
                }
            }
        }
        match parsed.len() == objects.len() {
            true => Ok(parsed),
            false => Err(Unavailable::Failed(format!(
                "{}: {} answers for {} objects",
                self.path.display(),
                parsed.len(),
                objects.len()
            ))),
        }
    }
}
