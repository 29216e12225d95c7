//! `--against`: the packets of a capture on which two objects differ.

use std::path::Path;

use beebox::Kernel;
use beebox::internal::captures::Input;
use beebox::internal::run::{Comparison, LoadedObject, RunCaptureError, RunnableProgram, Sides};

use super::RunFormat;
use crate::answer::{Answer, Failure};
use crate::capture_file;
use crate::stdout::{print_folded, write_json};

/// Two objects that are compared.
pub(super) struct Against<'a> {
    /// Loads the old object and the new one anew.
    pub(super) load: &'a dyn Fn() -> Result<[LoadedObject; 2], Failure>,
    /// The program.
    pub(super) program: &'a str,
    /// The objects and the capture, as they were named.
    pub(super) old_file: &'a Path,
    pub(super) file: &'a Path,
    pub(super) pcap: &'a Path,
    /// The kernels that they are loaded for.
    pub(super) kernels: [&'a Kernel; 2],
    pub(super) set_up: &'a dyn Fn(&mut RunnableProgram<'_>),
    /// The command that tells the run of the new object on a packet.
    pub(super) why: &'a dyn Fn(u64) -> String,
}

impl Against<'_> {
    /// Compares and prints; a difference is a no.
    pub(super) fn answer(&self, format: RunFormat) -> Result<Answer, Failure> {
        if self.pcap == Path::new("-") {
            let failure = Failure::new("--against reads the capture several times");
            return Err(failure.hint("--pcap with a file"));
        }
        let mut comparison = self.with_both(Comparison::find)?;
        while comparison.has_unplaced() {
            self.with_both(|sides, input| comparison.place(sides, input))?;
        }
        if comparison.has_paths() {
            let kernels = self.kernels;
            self.with_both(|sides, input| comparison.group(sides, kernels, input))?;
        }
        match format {
            RunFormat::Text => print_folded(&comparison.text(self.why))?,
            RunFormat::Json => write_json(report::json::pretty(&comparison.json()).as_bytes())?,
            RunFormat::Csv | RunFormat::Html | RunFormat::Junit => {
                let failure = Failure::new("--against prints text or JSON");
                return Err(failure.hint("--format json"));
            }
        }
        Ok(match comparison.is_equal() {
            true => Answer::Yes,
            false => Answer::No,
        })
    }

    /// Loads both objects anew and reads the capture from its start.
    fn with_both<T>(
        &self,
        pass: impl FnOnce(Sides<'_, '_>, Input) -> Result<T, RunCaptureError>,
    ) -> Result<T, Failure> {
        let [old, new] = (self.load)()?;
        let mut before = self.program_of(&old, self.old_file)?;
        let mut after = self.program_of(&new, self.file)?;
        let sides = Sides {
            objects: [&old, &new],
            programs: [&mut before, &mut after],
        };
        let input = capture_file::open(self.pcap, true)?;
        pass(sides, input).map_err(|stop| capture_file::stopped(self.pcap, None, stop))
    }

    /// The program of an object, ready to run.
    fn program_of<'l>(
        &self,
        loaded: &'l LoadedObject,
        file: &Path,
    ) -> Result<RunnableProgram<'l>, Failure> {
        let mut program = loaded.program_of(self.program).ok_or_else(|| {
            let file = file.display();
            Failure::new(format_args!(
                "{file}: program {} is not loaded",
                self.program
            ))
        })?;
        (self.set_up)(&mut program);
        Ok(program)
    }
}
