//! The packets of a capture that a run is on, and where packets go by their verdict.

use std::path::{Path, PathBuf};

use beebox::internal::program::ProgramType;
use beebox::internal::run::{
    PacketChoice, PacketChoiceError, find_verdict, verdict_names, verdict_word,
};

use crate::answer::Failure;
use crate::output_path::OutputPath;
use crate::program_input::filter_failure;

/// The options.
#[derive(clap::Args)]
pub(super) struct SelectionArgs {
    /// Print, count and write these packets of the capture only: numbers as 17,20-30, or an expression
    /// of tcpdump. The program runs on those before them, too
    #[arg(long, value_name = "PACKETS")]
    #[arg(conflicts_with_all = ["jobs", "expect", "why"])]
    pub(super) only: Option<String>,

    /// End behind so many packets, of --only if it is given
    #[arg(short = 'c', long = "limit", value_name = "N")]
    #[arg(conflicts_with_all = ["jobs", "expect", "why"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,

    /// Write the packets that pass to OUT, or those of a verdict (as DROP=dropped.pcapng; may be given
    /// several times): captures that are complete or absent, pcap or pcapng by the name, else as the
    /// input
    #[arg(short, long, value_name = "[VERDICT=]OUT")]
    #[arg(visible_short_alias = 'w', visible_alias = "write")]
    output: Vec<PathBuf>,

    /// Add a comment to each packet that -o writes: the verdict and the line that returned it. Captures
    /// in pcapng have comments; the runs are in the checked engine
    #[arg(long, requires = "output", conflicts_with = "profile")]
    pub(super) comments: bool,
}

/// The outputs of a run on a capture.
pub(super) struct Outputs<'a> {
    /// That of the packets that pass.
    pub(super) passing: Option<OutputPath<'a>>,
    /// Verdicts and files of their packets.
    pub(super) by_verdict: Vec<(String, OutputPath<'a>)>,
}

impl SelectionArgs {
    /// The packets of `--only`.
    pub(super) fn only(&self) -> Result<Option<PacketChoice>, Failure> {
        let only = self.only.as_deref().map(PacketChoice::read).transpose();
        only.map_err(|error| match error {
            PacketChoiceError::Range { .. } => {
                Failure::new(format_args!("--only {error}")).hint("--only 17,20-30")
            }
            PacketChoiceError::Filter(error) => filter_failure(&error),
        })
    }

    /// Checks that no output is standard output, where the results go.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for given in &self.output {
            let path = verdict_and_path(given).map_or(given.as_path(), |(_, path)| path);
            OutputPath::new(path, [])?.of_packets()?;
        }
        Ok(())
    }

    /// True if `--output` names a file.
    pub(super) fn writes(&self, file: &Path) -> bool {
        let paths = self
            .output
            .iter()
            .map(|given| match verdict_and_path(given) {
                Some((_, path)) => path,
                None => given.as_path(),
            });
        paths.into_iter().any(|path| is_same(path, file))
    }

    /// The outputs of `--output`, for a program of a type.
    pub(super) fn outputs<'p>(
        &self,
        kind: ProgramType,
        inputs: impl Iterator<Item = &'p Path>,
    ) -> Result<Outputs<'_>, Failure> {
        let inputs: Vec<&Path> = inputs.collect();
        let mut outputs = Outputs {
            passing: None,
            by_verdict: Vec::new(),
        };
        for given in &self.output {
            let (verdict, path) = match verdict_and_path(given) {
                Some((verdict, path)) => (Some(verdict_of(kind, verdict, given)?), path),
                None => (None, given.as_path()),
            };
            let path = OutputPath::new(path, inputs.iter().copied())?;
            let others = outputs.by_verdict.iter().map(|(_, other)| other);
            let mut others = others.chain(&outputs.passing);
            if others.any(|other| is_same(other.path(), path.path())) {
                let file = path.path().display();
                let failure = Failure::new(format_args!("-o {file}: another -o writes this file"));
                return Err(failure.hint("a file for each -o"));
            }
            match verdict {
                Some(verdict) => outputs.by_verdict.push((verdict, path)),
                None if outputs.passing.is_some() => {
                    let what = format_args!(
                        "-o {}: another output has the packets that pass",
                        given.display()
                    );
                    return Err(Failure::new(what).hint("-o VERDICT=OUT"));
                }
                None => {
                    let is_verdict = given
                        .to_str()
                        .is_some_and(|name| find_verdict(kind, name).is_some());
                    if is_verdict {
                        let given = given.display();
                        let what = format_args!("-o {given}: this is a verdict, and has no file");
                        let hint =
                            format_args!("-o {given}=OUT; -o ./{given} for a file of that name");
                        return Err(Failure::new(what).hint(hint));
                    }
                    outputs.passing = Some(path);
                }
            }
        }
        Ok(outputs)
    }
}

/// True for two paths of one file, which need not be there yet.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        })
    };
    one == other
        || place(one)
            .zip(place(other))
            .is_some_and(|(one, other)| one == other)
}

/// Verdict and path of `VERDICT=OUT`; `None` for a path alone.
fn verdict_and_path(given: &Path) -> Option<(&str, &Path)> {
    let (verdict, path) = given.to_str()?.split_once('=')?;
    let is_word = verdict
        .chars()
        .all(|each| each.is_ascii_alphanumeric() || each == '_' || each == '-');
    (is_word && !verdict.is_empty()).then(|| (verdict, Path::new(path)))
}

/// The name of a verdict that has an output.
fn verdict_of(kind: ProgramType, given: &str, option: &Path) -> Result<String, Failure> {
    let names = verdict_names(kind);
    match find_verdict(kind, given) {
        Some(name) => Ok(name.to_owned()),
        None if names.is_empty() && given.parse::<i32>().is_ok() => Ok(given.to_owned()),
        None => {
            let (option, kind) = (option.display(), kind.name());
            let what = format_args!("-o {option}: programs of type {kind} have no verdict {given}");
            let failure = Failure::new(what);
            Err(match names.is_empty() {
                true => failure.hint("the number that the program returns"),
                false => failure.hint(format_args!(
                    "one of {}; ./{option} for a file of that name",
                    names
                        .iter()
                        .map(|name| verdict_word(name))
                        .collect::<Vec<_>>()
                        .join(", ")
                )),
            })
        }
    }
}
