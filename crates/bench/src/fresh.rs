//! Repetition of a measurement in several new processes.
//!
//! Where the loader and the allocator put code, stack and data changes the speed
//! of a loop by some per cent, and stays the same for the life of a process. So
//! one process, however long it measures, can't say what an engine costs: each
//! measurement is made anew in several, and the median counts.

use std::process::{Command, Stdio};

use sys::process::{self, Usage};

use crate::failure::Failure;
use crate::report::Report;

/// Runs a command that must succeed; says what it used. A failure names the purpose.
pub(crate) fn succeed(mut command: Command, purpose: &'static str) -> Result<Usage, Failure> {
    let usage = process::measure(&mut command).map_err(|error| Failure::System(purpose, error))?;
    if usage.status.success() {
        return Ok(usage);
    }
    let said = format!("{command:?} ended with {}", usage.status);
    Err(Failure::Process { purpose, said })
}

/// Starts the command `times` times, one after the other, and merges the reports
/// that the processes print as JSON.
pub(crate) fn measure(
    command: impl Fn() -> Command,
    times: u32,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, Failure> {
    const PURPOSE: &str = "measuring in a new process";
    let failed = |said: String| Failure::Process {
        purpose: PURPOSE,
        said,
    };
    let mut reports = Vec::new();
    for turn in 1..=times {
        progress(&format!("process {turn} of {times}"));
        let output = command()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Failure::System(PURPOSE, error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}\n{}", output.status, said.trim_end())));
        }
        let report: Report = serde_json::from_slice(&output.stdout)
            .map_err(|error| failed(format!("its report is broken: {error}")))?;
        reports.push(report);
    }
    Report::merge(&reports).ok_or_else(|| failed("no process was to run".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;

    #[test]
    fn a_process_that_fails_is_reported_with_its_words() {
        let broken = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo no luck >&2; exit 2"]);
            shell
        };
        let failure = measure(broken, 2, &mut |_| {}).expect_err("it fails");
        assert!(failure.to_string().ends_with("no luck"), "{failure}");
    }

    #[test]
    fn reports_pass_through_a_pipe_unchanged() {
        let mut report = Report::default();
        report.add_row("w", "interp", Unit::MicrosPerThousandInsns, 1.25);
        let json = serde_json::to_string(&report).expect("a report is JSON");
        let echo = || {
            let mut echo = Command::new("echo");
            echo.arg(&json);
            echo
        };
        let merged = measure(echo, 3, &mut |_| {}).expect("three equal reports");
        assert_eq!(merged, report);
    }
}
