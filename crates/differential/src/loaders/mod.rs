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

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use spec::loader::LoaderKind;

use parsed::Parsed;

/// Loaders with such a program.
pub const ASKED: [LoaderKind; 3] = [
    LoaderKind::CiliumEbpf,
    LoaderKind::Aya,
    LoaderKind::Libbpf08,
];

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
