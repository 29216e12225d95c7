//! Two objects on one capture: the packets on which they differ, and where their paths part.
//!
//! The runs are repeatable, so that two passes do: the first one finds the packets in the engines of
//! the objects, the second one records these alone.

use std::collections::{BTreeMap, BTreeSet};

use ::kernel::maps::RunGuard;
use ::kernel::programs::verdict;
use capture::Event;
use report::why::CodeLine;
use serde::Serialize;
use spec::Kernel;
use trace::Run;

use super::capture::frame_time;
use super::{LoadedObject, RunCaptureError, RunnableProgram, redirect_text};
use crate::internal::captures::Input;

/// Entries of a map that are compared after each packet; larger maps are compared in the end.
const COMPARED_ENTRIES: usize = 256;

/// Most packets whose paths are compared.
const MOST_PATHS: usize = 1000;

/// Most lines that differ before two paths join again, and lines that are the same where they do.
const MOST_CHANGED: usize = 8;
const JOINED: usize = 2;

/// What differs in the runs on a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// Number of the packet, from 1.
    pub packet: u64,
    /// What the old object answered: its verdict, with the target of a redirect, or the trap.
    pub old_verdict: String,
    /// What the new one answers.
    pub new_verdict: String,
    /// What differs.
    pub differences: Vec<RunDifference>,
}

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunDifference {
    /// The verdict, or where the packet is redirected.
    Verdict,
    /// The bytes that go on.
    Bytes,
    /// The records.
    Records,
    /// The printed texts.
    Printk,
    /// Maps of these names, for the first time.
    Maps(Vec<String>),
}

/// Packets whose paths part at one line.
#[derive(Clone, Debug, Serialize)]
pub struct PartingGroup {
    /// The last line that both took; `null` if they took the same lines to the end.
    pub source: Option<CodeLine>,
    /// The line that the old object goes on at.
    pub old_next: Option<CodeLine>,
    /// The line that the new one goes on at.
    pub new_next: Option<CodeLine>,
    /// The packets.
    pub differing: Vec<Differing>,
}

/// The comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Number of packets.
    pub packets: u64,
    /// The packets that differ, by the line where the paths part.
    pub groups: Vec<PartingGroup>,
    /// Names of the maps that differ in the end.
    pub map_names: Vec<String>,
}

/// The result of a run.
struct Outcome {
    verdict: String,
    /// The bytes that go on, if the packet does.
    bytes: Option<Vec<u8>>,
    records: Vec<(String, Vec<u8>)>,
    printk: Vec<String>,
}

impl Comparison {
    /// True if nothing differs.
    pub fn is_equal(&self) -> bool {
        self.groups.is_empty() && self.map_names.is_empty()
    }

    /// Finds the packets on which a program of two objects differs.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn find(
        (old_object, new_object): (&LoadedObject, &LoadedObject),
        (old, new): (&mut RunnableProgram<'_>, &mut RunnableProgram<'_>),
        mut input: Input,
    ) -> Result<(Comparison, Vec<Differing>), RunCaptureError> {
        let (mut packets, mut found) = (0, Vec::new());
        let mut known: BTreeSet<String> = BTreeSet::new();
        while let Some(event) = input.next_event()? {
            let Event::Packet(record) = event else {
                continue;
            };
            packets += 1;
            let at = frame_time(&record).map_err(|stop| stop.after(packets - 1))?;
            let before = old.outcome(record.data(), at, packets)?;
            let after = new.outcome(record.data(), at, packets)?;
            let mut differences = Vec::new();
            let mut note = |differs: bool, what| {
                if differs {
                    differences.push(what);
                }
            };
            note(before.verdict != after.verdict, RunDifference::Verdict);
            let bytes = before.bytes.as_ref().zip(after.bytes.as_ref());
            note(
                bytes.is_some_and(|(before, after)| before != after),
                RunDifference::Bytes,
            );
            note(before.records != after.records, RunDifference::Records);
            note(before.printk != after.printk, RunDifference::Printk);
            let maps: Vec<String> = differing_maps(old_object, new_object, COMPARED_ENTRIES)
                .into_iter()
                .filter(|map| known.insert(map.clone()))
                .collect();
            if !maps.is_empty() {
                differences.push(RunDifference::Maps(maps));
            }
            if !differences.is_empty() {
                found.push(Differing {
                    packet: packets,
                    old_verdict: before.verdict,
                    new_verdict: after.verdict,
                    differences,
                });
            }
        }
        let comparison = Comparison {
            packets,
            groups: Vec::new(),
            map_names: differing_maps(old_object, new_object, usize::MAX),
        };
        Ok((comparison, found))
    }

    /// Groups packets by the line where the paths part, on programs of objects that ran on nothing
    /// yet.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn group(
        &mut self,
        (old, new): (&mut RunnableProgram<'_>, &mut RunnableProgram<'_>),
        kernel: &Kernel,
        mut input: Input,
        found: Vec<Differing>,
    ) -> Result<(), RunCaptureError> {
        let mut left = found.into_iter().take(MOST_PATHS).peekable();
        let mut groups: BTreeMap<Key, PartingGroup> = BTreeMap::new();
        let mut packet = 0;
        while let (Some(next), Some(event)) = (left.peek(), input.next_event()?) {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let is_told = next.packet == packet;
            let at = frame_time(&record).map_err(|stop| stop.after(packet - 1))?;
            if !is_told {
                old.outcome(record.data(), at, packet)?;
                new.outcome(record.data(), at, packet)?;
                continue;
            }
            let before = old.recorded(record.data(), at, packet, kernel)?;
            let after = new.recorded(record.data(), at, packet, kernel)?;
            if let Some(differing) = left.next() {
                let [source, old_next, new_next] = parting((old, &before), (new, &after));
                let group = groups.entry(key(&[&source, &old_next, &new_next]));
                let group = group.or_insert_with(|| PartingGroup {
                    source,
                    old_next,
                    new_next,
                    differing: Vec::new(),
                });
                group.differing.push(differing);
            }
        }
        self.groups = groups.into_values().collect();
        self.groups
            .sort_by_key(|group| group.differing.first().map(|differing| differing.packet));
        Ok(())
    }
}

/// Lines by file and number.
type Key = Vec<Option<(String, u32)>>;

fn key(sources: &[&Option<CodeLine>]) -> Key {
    let places = sources.iter().map(|source| {
        let source = source.as_ref()?;
        Some((source.file.clone(), source.line))
    });
    places.collect()
}

/// The last line that two paths share, and the lines that they go on at.
fn parting(
    (old, before): (&RunnableProgram<'_>, &Run),
    (new, after): (&RunnableProgram<'_>, &Run),
) -> [Option<CodeLine>; 3] {
    let before = old.lines_of(before);
    let after = new.lines_of(after);
    let is_same = |old: &Option<CodeLine>, new: &Option<CodeLine>| match (old, new) {
        (Some(old), Some(new)) => old.text == new.text,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    // Lines that were changed, added or removed alone are no parting.
    let joins_again = |old: usize, new: usize| {
        let changes =
            (1..=MOST_CHANGED).flat_map(|both| (0..=both).map(move |old| (old, both - old)));
        let mut joined = changes.filter_map(|(skipped_old, skipped_new)| {
            let (old, new) = (old + skipped_old, new + skipped_new);
            let rest = before.get(old..)?.iter().zip(after.get(new..)?);
            let ends = (before.len() - old, after.len() - new);
            let is_end = ends.0 == ends.1 && ends.0 < JOINED;
            let same = rest
                .take(JOINED)
                .take_while(|(old, new)| is_same(old, new))
                .count();
            (same == JOINED || is_end && same == ends.0).then_some((old, new))
        });
        joined.next()
    };
    let (mut old, mut new) = (0, 0);
    let mut changed = None;
    let parted = loop {
        match (before.get(old), after.get(new)) {
            (None, None) => break None,
            (Some(one), Some(other)) if is_same(one, other) => (old, new) = (old + 1, new + 1),
            _ => match joins_again(old, new) {
                Some(next) => {
                    changed.get_or_insert((old, new));
                    (old, new) = next;
                }
                None => break Some((old, new)),
            },
        }
    };
    let Some((old, new)) = parted.or(changed) else {
        return [None, None, None];
    };
    let last = after[..new].iter().rev().flatten().next().cloned();
    [
        last,
        before.get(old).cloned().flatten(),
        after.get(new).cloned().flatten(),
    ]
}

impl RunnableProgram<'_> {
    /// Records the run on a captured packet.
    fn recorded(
        &mut self,
        frame: &[u8],
        at: u64,
        packet: u64,
        kernel: &Kernel,
    ) -> Result<Run, RunCaptureError> {
        self.record(kernel, None);
        self.outcome(frame, at, packet)?;
        Ok(self.take_record().unwrap_or_default())
    }

    /// Runs on a captured packet.
    fn outcome(&mut self, frame: &[u8], at: u64, packet: u64) -> Result<Outcome, RunCaptureError> {
        let result = self.run_captured(frame, at, &mut RunGuard::new());
        let records = self
            .records()
            .into_iter()
            .map(|record| (record.map, record.bytes))
            .collect();
        let captured = self.captured();
        let (verdict, bytes) = match (result, captured) {
            (Ok(retval), Some(input)) => {
                let verdict = verdict(self.kind(), retval);
                let bytes = verdict.kept.map(|most| input.kept_frame(most).into_owned());
                let name = match input.redirect(retval) {
                    Some(redirect) => format!("{} to {}", verdict.name, redirect_text(redirect)),
                    None => verdict.name.into_owned(),
                };
                (name, bytes)
            }
            (Ok(retval), None) => (retval.to_string(), None),
            (Err(error), _) if error.is_stop() => (format!("trap: {error}"), None),
            (Err(error), _) => return Err(RunCaptureError::Run { packet, error }),
        };
        let printk = self.printed().texts.clone();
        Ok(Outcome {
            verdict,
            bytes,
            records,
            printk,
        })
    }
}

/// Names of the maps that both objects have and that hold other entries; maps of more than so many
/// entries are left out.
fn differing_maps(old: &LoadedObject, new: &LoadedObject, most: usize) -> Vec<String> {
    let mut names = Vec::new();
    for map in old.maps() {
        let mut others = new.maps();
        let Some(other) = others.find(|other| other.def.name == map.def.name) else {
            continue;
        };
        let entries = |map: &super::ObjectMap| -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
            let mut entries = BTreeMap::new();
            for entry in map.iter_entries() {
                let (key, value) = entry.ok()?;
                entries.insert(key, value);
                if entries.len() > most {
                    return None;
                }
            }
            Some(entries)
        };
        let is_constant = map.map.is_constant() && other.map.is_constant();
        if let (false, Some(before), Some(after)) = (is_constant, entries(map), entries(other))
            && before != after
        {
            names.push(map.def.name.clone());
        }
    }
    names
}
