//! The whole log of a program, the kernel's and ours.

use program::Program;
use spec::Kernel;
use spec::programs::ProgramType;
use sys::bpf::{LogLevel, ProgLoad};

use super::program::generate;

/// Result of a comparison of whole logs.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Programs loaded.
    pub programs: u64,
    /// Lines that were compared.
    pub lines: u64,
    /// Logs that differ: seed and the first line that does, the kernel's and ours.
    pub differences: Vec<(u64, String, String)>,
}

/// Compares the logs at level 2 of programs of these seeds; an error if the kernel cannot
/// be asked or is not described well enough.
pub fn compare_logs(kernel: &Kernel, seeds: impl Iterator<Item = u64>) -> Result<Logs, String> {
    let registry = kernel.registry().ok_or("no registry")?;
    let options = verifier::Options {
        log_level: 2,
        ..verifier::Options::default()
    };
    let mut logs = Logs::default();
    for seed in seeds {
        let insns = generate(seed);
        let request = ProgLoad {
            log_level: LogLevel::LEVEL2,
            log_size: 1 << 22,
            ..ProgLoad::new(ProgramType::SocketFilter.number(), &insns)
        };
        let (_program, theirs) = request.load().map_err(|error| error.to_string())?;
        let program = Program::builder(ProgramType::SocketFilter, insns)
            .license("GPL")
            .build()
            .map_err(|error| error.to_string())?;
        let ours = verifier::verify(&program, kernel, registry, &options).log;
        logs.programs += 1;
        logs.lines += theirs.lines().count() as u64;
        if theirs != ours {
            let ends = [None];
            let line = |text: &str| {
                text.lines()
                    .map(|line| Some(line.to_owned()))
                    .chain(ends.clone())
                    .collect::<Vec<_>>()
            };
            let (theirs, ours) = (line(&theirs), line(&ours));
            let (a, b) = theirs
                .into_iter()
                .zip(ours)
                .find(|(a, b)| a != b)
                .unwrap_or_default();
            let text = |line: Option<String>| line.unwrap_or_else(|| "(end)".to_owned());
            logs.differences.push((seed, text(a), text(b)));
        }
    }
    Ok(logs)
}
