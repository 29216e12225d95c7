//! The programs that both verifiers check: every program of the kernel's selftests and of
//! our own objects, loaded as libbpf loads it alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use beebox::internal::verify::ProgramLoader;
use program::Program;
use verifier::{Options, Verification};

use super::target::Target;
use crate::Failure;

/// Selftests whose programs are measured apart: one program takes longer than all
/// others together.
const APART: &str = "verifier_liveness_exp.bpf.o";

/// A program with the name of its file.
pub(super) struct Named {
    /// File and program, as veristat names them.
    pub(super) name: (String, String),
    /// The program.
    pub(super) program: Program,
}

/// Objects of the selftests, in order of their names, without the one measured apart.
pub(super) fn selftests() -> Result<Vec<PathBuf>, String> {
    let directory = oracle::selftest_path("7.2/obj-v3")?;
    let entries = fs::read_dir(&directory).map_err(|error| error.to_string())?;
    let mut objects: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".bpf.o") && !path.ends_with(APART))
        .collect();
    objects.sort();
    Ok(objects)
}

/// Our own objects, by path from the repository.
pub(super) fn own() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["examples/traffic/traffic.bpf.o", STRESS]
        .map(|path| repository.join(path))
        .to_vec()
}

/// The object with the program whose precision requests repeat on a long history.
pub(super) fn stress() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(STRESS)
}

/// The same, by path from the repository.
pub(super) const STRESS: &str = "crates/bench/objects/verify/backtracking.bpf.o";

/// The programs of an object that link for the kernel; an object that does not open
/// has none.
pub(super) fn of_object(path: &Path, target: &Target) -> Result<Vec<Named>, Failure> {
    let bytes =
        fs::read(path).map_err(|error| Failure::System("reading an object to verify", error))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let mut programs = Vec::new();
    // veristat changes no flags, so none of the tests' own are added.
    let loader = ProgramLoader::new(&target.kernel);
    let _ = loader.load_each(&bytes, &file, &mut |loaded| {
        if let Ok(program) = loaded.program {
            let name = (file.clone().into_owned(), loaded.name);
            programs.push(Named { name, program });
        }
    });
    Ok(programs)
}

/// Verifies a program several times: the answer and the least time in microseconds.
pub(super) fn time(
    program: &Program,
    kernel: &Target,
    options: &Options,
    rounds: u32,
) -> (Verification, f64) {
    let mut least = f64::INFINITY;
    let mut answer = None;
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        answer = Some(kernel.verify(program, options));
        least = least.min(start.elapsed().as_secs_f64() * 1e6);
    }
    (answer.expect("at least one round"), least)
}
