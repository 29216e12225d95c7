//! `--against`: the packets of a capture on which two objects differ.

use std::fmt::Write as _;
use std::path::Path;

use beebox::Kernel;
use beebox::internal::captures::Input;
use beebox::internal::run::{
    Comparison, Differing, LoadedObject, RunCaptureError, RunDifference, RunnableProgram, Sides,
};
use report::why::CodeLine;
use serde_json::{Value, json};

use super::RunFormat;
use crate::answer::{Answer, Failure};
use crate::answer_format::count;
use crate::capture_file;
use crate::stdout::{print_folded, write_json};

/// Packets of a group that are named.
const NAMED: usize = 8;

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
            RunFormat::Text => print_folded(&self.text(&comparison))?,
            RunFormat::Json => write_json(report::json::pretty(&record(&comparison)).as_bytes())?,
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

    fn text(&self, comparison: &Comparison) -> String {
        let mut text = String::new();
        let all = count(comparison.packets as usize, "packet");
        let (differing, told) = (comparison.differing_packets, comparison.told());
        let listed = match told as u64 == differing {
            true => String::new(),
            false => format!(", of which {told} are listed"),
        };
        let _ = writeln!(text, "{all}, {differing} differ{listed}");
        for group in &comparison.groups {
            let packets = count(group.differing.len(), "packet");
            let _ = match (
                &group.source,
                group.old_next.is_some() || group.new_next.is_some(),
            ) {
                (Some(source), _) => {
                    writeln!(text, "\n{packets}, whose paths part at {}", place(source))
                }
                (None, true) => writeln!(text, "\n{packets}, whose paths part at the start"),
                (None, false) => writeln!(text, "\n{packets}, on the same lines"),
            };
            for (which, next) in [("old", &group.old_next), ("new", &group.new_next)] {
                if let Some(next) = next {
                    let _ = writeln!(text, "  {which} goes on at {}", place(next));
                }
            }
            for differing in group.differing.iter().take(NAMED) {
                let _ = writeln!(text, "  packet {}: {}", differing.packet, what(differing));
            }
            if group.differing.len() > NAMED {
                let _ = writeln!(text, "  … and {} more", group.differing.len() - NAMED);
            }
            if let Some(first) = group.differing.first() {
                let _ = writeln!(text, "  why: {}", (self.why)(first.packet));
            }
        }
        if !comparison.map_names.is_empty() {
            let _ = writeln!(
                text,
                "\nmaps and variables that differ in the end: {}",
                comparison.map_names.join(", ")
            );
        }
        let [old, new] = [&comparison.old_only_names, &comparison.new_only_names];
        for (which, names) in [("old", old), ("new", new)] {
            if !names.is_empty() {
                let names = names.join(", ");
                let _ = writeln!(
                    text,
                    "\nmaps and variables of the {which} object alone: {names}"
                );
            }
        }
        text
    }
}

fn place(source: &CodeLine) -> String {
    let file = source.file.rsplit('/').next().unwrap_or(&source.file);
    format!("{file}:{}: {}", source.line, source.text)
}

/// What differs on a packet.
fn what(differing: &Differing) -> String {
    let parts = differing
        .differences
        .iter()
        .map(|difference| match difference {
            RunDifference::Verdict => {
                format!("{} → {}", differing.old_verdict, differing.new_verdict)
            }
            RunDifference::Bytes => "bytes".to_owned(),
            RunDifference::Records => "records".to_owned(),
            RunDifference::Printk => "printed text".to_owned(),
            RunDifference::Maps(names) => format!("map {}", names.join(", ")),
        });
    parts.collect::<Vec<_>>().join("; ")
}

fn record(comparison: &Comparison) -> Value {
    let groups = comparison.groups.iter().map(|group| {
        let differing = group.differing.iter().map(|differing| {
            let mut kinds = Vec::new();
            let mut maps = Vec::new();
            for difference in &differing.differences {
                match difference {
                    RunDifference::Verdict => kinds.push("verdict"),
                    RunDifference::Bytes => kinds.push("bytes"),
                    RunDifference::Records => kinds.push("records"),
                    RunDifference::Printk => kinds.push("printk"),
                    RunDifference::Maps(names) => {
                        kinds.push("maps");
                        maps.clone_from(names);
                    }
                }
            }
            json!({
                "packet": differing.packet,
                "old_verdict": differing.old_verdict,
                "new_verdict": differing.new_verdict,
                "difference_names": kinds,
                "map_names": maps,
            })
        });
        json!({
            "source": group.source,
            "old_next": group.old_next,
            "new_next": group.new_next,
            "differing": differing.collect::<Vec<_>>(),
        })
    });
    json!({
        "packets": comparison.packets,
        "differing_packets": comparison.differing_packets,
        "groups": groups.collect::<Vec<_>>(),
        "map_names": comparison.map_names,
        "old_only_names": comparison.old_only_names,
        "new_only_names": comparison.new_only_names,
    })
}
