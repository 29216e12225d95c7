//! `--profile`: what runs cost, by source line and chain of calls.

use std::path::PathBuf;

use report::profile::{Profile, pprof, speedscope};

use super::output::Ran;
use super::{Args, RunFormat};
use crate::answer::{Answer, Failure};
use crate::output_file::write_whole;
use crate::stdout::print_folded;

/// Where a profile goes.
#[derive(Clone, Debug)]
pub(super) enum ProfileOutput {
    /// To standard output, as tables.
    Table,
    /// The same with time.
    Time,
    Folded(PathBuf),
    Pprof(PathBuf),
    Speedscope(PathBuf),
}

impl ProfileOutput {
    pub(super) fn parse(text: &str) -> Result<ProfileOutput, String> {
        const FORMS: &str = "table, time, folded=FILE, pprof=FILE or speedscope=FILE is expected";
        match text.split_once('=') {
            None if text == "table" => Ok(ProfileOutput::Table),
            None if text == "time" => Ok(ProfileOutput::Time),
            Some((_, "-")) => Err(format!("standard output holds the results: {FORMS}")),
            Some((_, "")) => Err(format!("it has no path: {FORMS}")),
            Some(("folded", path)) => Ok(ProfileOutput::Folded(path.into())),
            Some(("pprof", path)) => Ok(ProfileOutput::Pprof(path.into())),
            Some(("speedscope", path)) => Ok(ProfileOutput::Speedscope(path.into())),
            Some((form, _)) => Err(format!("there is no form {form:?}: {FORMS}")),
            None => Err(format!("there is no form {text:?}: {FORMS}")),
        }
    }
}

/// Checks that tables are not asked for beside JSON.
pub(super) fn check(outputs: &[ProfileOutput], format: RunFormat) -> Result<(), Failure> {
    let is_table =
        |output: &ProfileOutput| matches!(output, ProfileOutput::Table | ProfileOutput::Time);
    match format {
        RunFormat::Json if outputs.iter().any(is_table) => {
            let failure = Failure::new("a profile to standard output is text, not JSON");
            Err(failure.hint("--profile speedscope=FILE is JSON; folded=FILE and pprof=FILE"))
        }
        _ => Ok(()),
    }
}

/// True if the time of runs is measured.
pub(super) fn has_times(outputs: &[ProfileOutput]) -> bool {
    let mut outputs = outputs.iter();
    outputs.any(|output| matches!(output, ProfileOutput::Time))
}

/// Writes a profile; the answer is that of the run.
pub(super) fn write(args: &Args, profile: &Profile, ran: &Ran) -> Result<Answer, Failure> {
    for output in &args.profile {
        match output {
            ProfileOutput::Table => print_folded(&profile.text()),
            ProfileOutput::Time => print_folded(&profile.times_text()),
            ProfileOutput::Folded(path) => write_whole(path, profile.folded().as_bytes()),
            ProfileOutput::Pprof(path) => write_whole(path, &pprof(profile)),
            ProfileOutput::Speedscope(path) => write_whole(path, speedscope(profile).as_bytes()),
        }?;
    }
    match ran {
        Ran::Packet { .. } | Ran::Capture { .. } => Ok(Answer::Yes),
        Ran::Stopped { packet, error } => {
            let place = packet.map_or_else(String::new, |packet| format!("packet {packet}: "));
            diagnostic!("beebox: {place}{error}");
            Ok(Answer::No)
        }
    }
}
