//! `--against`: the packets of a capture on which two objects differ.

use std::fmt::Write as _;
use std::path::Path;

use beebox::Kernel;
use beebox::internal::run::{Comparison, Differing, LoadedObject, RunDifference, RunnableProgram};
use report::why::CodeLine;
use serde_json::{Value, json};

use super::RunFormat;
use crate::answer::{Answer, Failure};
use crate::answer_format::count;
use crate::capture_file;
use crate::stdout::{print, write_json};

/// Packets of a group that are named.
const NAMED: usize = 8;

/// Two objects that are compared.
pub(super) struct Against<'a> {
    /// Loads the old object and the new one anew.
    pub(super) load: &'a dyn Fn() -> Result<[LoadedObject; 2], Failure>,
    /// The program.
    pub(super) program: &'a str,
    /// The new object and the capture, as they were named.
    pub(super) file: &'a Path,
    pub(super) pcap: &'a Path,
    pub(super) kernel: &'a Kernel,
    pub(super) set_up: &'a dyn Fn(&mut RunnableProgram<'_>),
}

impl Against<'_> {
    /// Compares and prints; a difference is a no.
    pub(super) fn answer(&self, format: RunFormat) -> Result<Answer, Failure> {
        let open = || capture_file::open(self.pcap, true);
        let stopped = |stop| capture_file::stopped(self.pcap, None, stop);
        let (mut comparison, found) = {
            let [old, new] = (self.load)()?;
            let (mut before, mut after) = (self.program_of(&old)?, self.program_of(&new)?);
            let found = Comparison::find((&old, &new), (&mut before, &mut after), open()?);
            found.map_err(stopped)?
        };
        if !found.is_empty() {
            let [old, new] = (self.load)()?;
            let (mut before, mut after) = (self.program_of(&old)?, self.program_of(&new)?);
            let grouped = comparison.group((&mut before, &mut after), self.kernel, open()?, found);
            grouped.map_err(stopped)?;
        }
        match format {
            RunFormat::Text => print(&self.text(&comparison))?,
            RunFormat::Json => write_json(report::json::pretty(&record(&comparison)).as_bytes())?,
            RunFormat::Csv | RunFormat::Junit => {
                let failure = Failure::new("--against prints text or JSON");
                return Err(failure.hint("--format json"));
            }
        }
        Ok(match comparison.is_equal() {
            true => Answer::Yes,
            false => Answer::No,
        })
    }

    /// The program of an object, ready to run.
    fn program_of<'l>(&self, loaded: &'l LoadedObject) -> Result<RunnableProgram<'l>, Failure> {
        let mut program = loaded
            .program_of(self.program)
            .ok_or_else(|| Failure::new(format_args!("program {} is not loaded", self.program)))?;
        (self.set_up)(&mut program);
        Ok(program)
    }

    fn text(&self, comparison: &Comparison) -> String {
        let mut text = String::new();
        let all = count(comparison.packets as usize, "packet");
        let differing: usize = comparison
            .groups
            .iter()
            .map(|group| group.differing.len())
            .sum();
        let _ = writeln!(text, "{all}, {differing} differ");
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
                let (file, pcap) = (self.file.display(), self.pcap.display());
                let _ = writeln!(
                    text,
                    "  why: beebox run {file} --prog {} --pcap {pcap} --why {}",
                    self.program, first.packet
                );
            }
        }
        if !comparison.map_names.is_empty() {
            let _ = writeln!(
                text,
                "\nmaps that differ in the end: {}",
                comparison.map_names.join(", ")
            );
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
        "groups": groups.collect::<Vec<_>>(),
        "map_names": comparison.map_names,
    })
}
