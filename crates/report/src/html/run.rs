//! The page of a run: packets with their verdicts, source with coverage and cost, and the paths of packets
//! step by step.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::page::{self, page};
use super::source::SourceFinder;
use super::strings::Strings;
use crate::coverage::Coverage;
use crate::why::{CodeLine, FieldChange, Why, WhyLine, WhyStep};

/// Most packets that are listed; the others are counted.
const MOST_PACKETS: usize = 200_000;

/// Most steps of all paths together; packets behind them are listed without a path.
const MOST_STEPS: usize = 100_000;

/// What a run is, and how it ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunSummary {
    /// The object.
    pub object: String,
    /// The program.
    pub prog: String,
    /// Its type.
    pub prog_type: String,
    /// The engine.
    pub engine: String,
    /// The capture, if there is one.
    pub capture: Option<String>,
    /// What stopped the run.
    pub stopped: Option<String>,
}

/// A packet that the program ran on.
#[derive(Clone, Debug, Default)]
pub struct PacketLine {
    /// Its number, from 1; 0 without a capture.
    pub packet: u64,
    /// The time of its capture.
    pub time: String,
    /// Captured bytes.
    pub captured: usize,
    /// Bytes on the wire.
    pub wire: u32,
    /// The verdict, or what stopped the program.
    pub verdict: String,
    /// The returned value.
    pub retval: Option<u32>,
    /// Where it was redirected.
    pub redirect: String,
    /// Protocol, addresses and ports.
    pub text: String,
    /// Executed instructions, if they are known.
    pub executed: Option<u64>,
}

/// The page, while packets are added.
#[derive(Debug, Default)]
pub struct RunPage {
    strings: Strings,
    packets: Vec<Value>,
    left_out: u64,
    /// Numbers of places, and the places as JSON.
    places: HashMap<String, u32>,
    place_list: Vec<String>,
    events: HashMap<String, u32>,
    event_list: Vec<String>,
    paths: Vec<Path>,
    steps: usize,
    /// Texts of the lines that paths took, by file and number.
    lines: BTreeMap<String, BTreeMap<u32, String>>,
}

/// The path of a packet.
#[derive(Debug, Serialize)]
struct Path {
    packet: u64,
    verdict: Option<String>,
    stopped: Option<String>,
    executed: u64,
    source: Option<CodeLine>,
    /// The place of each step, and the numbers of its events.
    steps: Vec<Vec<u32>>,
    /// The step in front of which steps are left out, and their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<(usize, u64)>,
    changes: Vec<FieldChange>,
    unseen: Vec<crate::why::Unseen>,
    lacks_debug_info: bool,
}

impl RunPage {
    /// True if there is room for the path of another packet.
    pub fn has_room(&self) -> bool {
        self.steps < MOST_STEPS && self.packets.len() < MOST_PACKETS
    }

    /// Adds a packet, and its path if it was recorded: with every line that was executed.
    pub fn add(&mut self, line: &PacketLine, path: Option<&Why>) {
        if self.packets.len() >= MOST_PACKETS {
            self.left_out += 1;
            return;
        }
        let number = path.map(|why| {
            let path = self.path(line.packet, why);
            self.steps += path.steps.len();
            self.paths.push(path);
            self.paths.len() - 1
        });
        let executed = line.executed.or(path.map(|why| why.executed));
        self.packets.push(json!([
            line.packet,
            line.time,
            line.captured,
            line.wire,
            self.strings.number(&line.verdict),
            line.retval.map(|retval| retval as i32),
            self.strings.number(&line.redirect),
            self.strings.number(&line.text),
            executed,
            number,
        ]));
    }

    fn path(&mut self, packet: u64, why: &Why) -> Path {
        let mut path = Path {
            packet,
            verdict: why.verdict.clone(),
            stopped: why.stopped.clone(),
            executed: why.executed,
            source: why.source.clone(),
            steps: Vec::new(),
            gap: None,
            changes: why.packet_changes.clone(),
            unseen: why.unseen_variables.clone(),
            lacks_debug_info: why.lacks_debug_info,
        };
        self.add_steps(&why.steps, &mut path);
        path
    }

    fn add_steps(&mut self, steps: &[WhyStep], path: &mut Path) {
        for step in steps {
            match step {
                WhyStep::Line(line) => path.steps.push(self.step(line)),
                WhyStep::Loop {
                    times,
                    first_steps,
                    last_steps,
                } => {
                    self.add_steps(first_steps, path);
                    path.gap = Some((path.steps.len(), times.saturating_sub(2) as u64));
                    self.add_steps(last_steps, path);
                }
                WhyStep::Omitted { omitted } => path.gap = Some((path.steps.len(), *omitted)),
            }
        }
    }

    fn step(&mut self, line: &WhyLine) -> Vec<u32> {
        if let Some(source) = &line.source {
            let file = self.lines.entry(source.file.clone()).or_default();
            let known = file.entry(source.line);
            known.or_insert_with(|| source.text.clone());
        }
        let strings = &mut self.strings;
        let source = line.source.as_ref();
        let inlined = line.inlined_names.iter();
        let inlined: Vec<u32> = inlined.map(|name| strings.number(name)).collect();
        let place = page::json(&json!([
            strings.number(source.map_or("", |source| &source.file)),
            source.map_or(0, |source| source.line),
            strings.number(&line.prog),
            strings.number(&line.function),
            inlined,
            line.depth,
            line.insn_ranges,
            strings.number(&line.insn_text),
        ]));
        let mut step = vec![numbered(&mut self.places, &mut self.place_list, place)];
        for event in &line.events {
            let event = page::json(event);
            step.push(numbered(&mut self.events, &mut self.event_list, event));
        }
        step
    }

    /// The page, with what all runs executed: counts of lines and branches, and the instructions of each
    /// line.
    pub fn finish(
        mut self,
        summary: &RunSummary,
        coverage: &Coverage,
        costs: &BTreeMap<(String, u32), u64>,
        sources: &SourceFinder,
    ) -> String {
        for (name, file) in &coverage.files {
            // Coverage drops what stands in front of relative names.
            let dotted = format!("./{name}");
            let name = if self.lines.contains_key(&dotted) {
                &dotted
            } else {
                name
            };
            let known = self.lines.entry(name.clone()).or_default();
            for (number, text) in &file.texts {
                known.entry(*number).or_insert_with(|| text.clone());
            }
        }
        let files = self.lines.iter().map(|(name, known)| {
            let plain = name.trim_start_matches("./");
            let covered = coverage.files.get(plain);
            let counts = covered.map_or_else(Vec::new, |file| {
                let lines = file.lines.iter().map(|(number, line)| {
                    let branches = file.branches_of(*number);
                    let ways: Vec<_> = branches.map(|(_, it)| (it.jumped, it.fell)).collect();
                    let cost = costs.get(&(plain.to_owned(), *number)).copied();
                    let count = line.is_reachable.then_some(line.count);
                    (*number, count, cost.unwrap_or(0), ways)
                });
                lines.collect::<Vec<_>>()
            });
            json!({ "source": sources.find(name, known), "counts": counts })
        });
        let files: Vec<Value> = files.collect();
        let place = match &summary.capture {
            Some(capture) => format!("{} on {capture}", summary.prog),
            None => summary.prog.clone(),
        };
        let data = format!(
            "{{\"summary\":{},\"strings\":{},\"files\":{},\"packets\":{},\"left_out\":{},\
             \"places\":[{}],\"events\":[{}],\"paths\":{}}}",
            page::json(summary),
            page::json(&self.strings.texts()),
            page::json(&files),
            page::json(&self.packets),
            self.left_out,
            self.place_list.join(","),
            self.event_list.join(","),
            page::json(&self.paths),
        );
        let script = concat!(include_str!("run_state.js"), include_str!("run.js"));
        page(&format!("{place} – Beebox"), script, &data)
    }
}

/// The number of a text in a list of distinct ones.
fn numbered(known: &mut HashMap<String, u32>, list: &mut Vec<String>, text: String) -> u32 {
    let next = list.len() as u32;
    *known.entry(text).or_insert_with_key(|text| {
        list.push(text.clone());
        next
    })
}
