//! Two objects on one capture: the packets on which they differ, and where their paths part.
//!
//! The runs are repeatable: a pass finds the packets in the engines of the objects, passes behind it
//! find the packets from which maps differ, and the last one records the runs on packets that differ.

mod contents;
mod text;

use std::collections::BTreeMap;

use ::kernel::maps::RunGuard;
use ::kernel::programs::verdict;
use capture::Event;
use report::why::CodeLine;
use serde::Serialize;
use spec::Kernel;
use trace::Run;

use super::capture::frame_time;
use super::{LoadedObject, RunCaptureError, RunError, RunnableProgram, redirect_text};
use crate::internal::captures::Input;
use contents::Contents;

/// Most packets whose paths are compared.
const MOST_PATHS: usize = 1000;

/// Most lines that differ before two paths join again, and lines that are the same where they do.
const MOST_CHANGED: usize = 8;
const JOINED: usize = 2;

/// Parts of a range of packets that are compared to find the first packet from which maps differ.
const PARTS: u64 = 64;

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
    /// Number of packets that differ.
    pub differing_packets: u64,
    /// Packets that differ, by the line where the paths part: the first ones, and those from which
    /// maps differ.
    pub groups: Vec<PartingGroup>,
    /// Names of the maps and global variables that differ in the end.
    pub map_names: Vec<String>,
    /// Names of the maps and global variables that the old object alone has.
    pub old_only_names: Vec<String>,
    /// Those that the new object alone has.
    pub new_only_names: Vec<String>,
    /// The packets that differ, a bit for each.
    #[serde(skip)]
    differs: Vec<u64>,
    /// Those whose paths are compared.
    #[serde(skip)]
    found: BTreeMap<u64, Differing>,
    /// Maps that are equal behind a packet and differ behind a later one.
    #[serde(skip)]
    unplaced: Vec<Unplaced>,
}

/// A map that differs from some packet on.
#[derive(Clone, Copy, Debug)]
struct Unplaced {
    /// Its number in the contents.
    number: usize,
    /// The packet behind which it is equal, and one behind which it differs.
    equal: u64,
    differs: u64,
}

/// The two objects, and a program of each.
pub struct Sides<'s, 'o> {
    /// The objects, the old one first.
    pub objects: [&'o LoadedObject; 2],
    /// The programs.
    pub programs: [&'s mut RunnableProgram<'o>; 2],
}

impl Comparison {
    /// True if nothing differs.
    pub fn is_equal(&self) -> bool {
        self.differing_packets == 0
            && self.map_names.is_empty()
            && self.old_only_names.is_empty()
            && self.new_only_names.is_empty()
    }

    /// True while there are maps of which it is not known from which packet on they differ:
    /// [`Comparison::place`] finds out more.
    pub fn has_unplaced(&self) -> bool {
        !self.unplaced.is_empty()
    }

    /// True if there are paths to compare by [`Comparison::group`].
    pub fn has_paths(&self) -> bool {
        !self.found.is_empty()
    }

    /// Number of packets whose paths are compared.
    pub fn told(&self) -> usize {
        self.groups.iter().map(|group| group.differing.len()).sum()
    }

    /// Finds the packets on which a program of two objects differs.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn find(sides: Sides<'_, '_>, mut input: Input) -> Result<Comparison, RunCaptureError> {
        let contents = Contents::new(sides.objects);
        let [old, new] = sides.programs;
        let mut comparison = Comparison::default();
        let mut known = vec![false; contents.len()];
        // Behind which packet maps were compared, and will be.
        let (mut compared, mut next) = (0, 1);
        let mut packet = 0;
        let compare = |comparison: &mut Comparison, known: &mut [bool], equal, packet| {
            let mut entries = 0;
            for (number, is_known) in known.iter_mut().enumerate() {
                if *is_known {
                    continue;
                }
                let (is_equal, compared) = contents.are_equal(number);
                entries += compared;
                if !is_equal {
                    *is_known = true;
                    comparison.note_map(
                        &contents,
                        Unplaced {
                            number,
                            equal,
                            differs: packet,
                        },
                    );
                }
            }
            entries
        };
        while let Some(event) = input.next_event()? {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let at = frame_time(&record).map_err(|stop| stop.after(packet - 1))?;
            if let Some(differing) = difference(old, new, record.data(), at, packet)? {
                comparison.note(differing);
            }
            if packet == next {
                let entries = compare(&mut comparison, &mut known, compared, packet);
                compared = packet;
                // So that all comparisons take about as long as the runs.
                next = packet + (packet / 256).max(1) * (1 + entries as u64 / 1024);
            }
        }
        if compared < packet {
            compare(&mut comparison, &mut known, compared, packet);
        }
        comparison.packets = packet;
        for number in 0..contents.len() {
            if !contents.are_equal(number).0 {
                comparison.map_names.push(contents.name(number).to_owned());
            }
        }
        let [old_only, new_only] = contents.alone();
        (comparison.old_only_names, comparison.new_only_names) = (old_only, new_only);
        Ok(comparison)
    }

    /// Notes a packet that differs.
    fn note(&mut self, differing: Differing) {
        let packet = differing.packet;
        let (word, bit) = ((packet / 64) as usize, 1 << (packet % 64));
        if self.differs.len() <= word {
            self.differs.resize(word + 1, 0);
        }
        if self.differs[word] & bit == 0 {
            self.differs[word] |= bit;
            self.differing_packets += 1;
        }
        let is_of_map = matches!(differing.differences[..], [RunDifference::Maps(_)]);
        if is_of_map || self.found.len() < MOST_PATHS {
            let known = self.found.entry(packet);
            match known {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(differing);
                }
                std::collections::btree_map::Entry::Occupied(mut known) => {
                    known.get_mut().add(differing.differences);
                }
            }
        }
    }

    /// Notes that a map differs from some packet on.
    fn note_map(&mut self, contents: &Contents<'_>, unplaced: Unplaced) {
        if unplaced.differs - unplaced.equal > 1 {
            self.unplaced.push(unplaced);
            return;
        }
        self.note(Differing {
            packet: unplaced.differs,
            old_verdict: String::new(),
            new_verdict: String::new(),
            differences: vec![RunDifference::Maps(vec![
                contents.name(unplaced.number).to_owned(),
            ])],
        });
    }

    /// Narrows the packets from which maps differ, on programs of objects that ran on nothing yet.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn place(&mut self, sides: Sides<'_, '_>, mut input: Input) -> Result<(), RunCaptureError> {
        let contents = Contents::new(sides.objects);
        let [old, new] = sides.programs;
        let mut open = std::mem::take(&mut self.unplaced);
        let steps: BTreeMap<usize, u64> = open
            .iter()
            .map(|range| (range.number, (range.differs - range.equal).div_ceil(PARTS)))
            .collect();
        let mut packet = 0;
        while !open.is_empty()
            && let Some(event) = input.next_event()?
        {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let at = frame_time(&record).map_err(|stop| stop.after(packet - 1))?;
            for program in [&mut *old, &mut *new] {
                program.run_plainly(record.data(), at, packet)?.ok();
            }
            open.retain_mut(|range| {
                let is_inside = range.equal < packet;
                let step = steps[&range.number];
                let is_due = packet >= range.equal + step || packet == range.differs;
                if !is_inside || !is_due {
                    return true;
                }
                if packet < range.differs && contents.are_equal(range.number).0 {
                    range.equal = packet;
                    return true;
                }
                range.differs = packet;
                self.note_map(&contents, *range);
                false
            });
        }
        Ok(())
    }

    /// Groups packets by the line where the paths part, on programs of objects that ran on nothing
    /// yet.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn group(
        &mut self,
        sides: Sides<'_, '_>,
        kernels: [&Kernel; 2],
        mut input: Input,
    ) -> Result<(), RunCaptureError> {
        let [old, new] = sides.programs;
        let mut left = std::mem::take(&mut self.found).into_values().peekable();
        let mut groups: BTreeMap<Key, PartingGroup> = BTreeMap::new();
        let mut packet = 0;
        while let (Some(next), Some(event)) = (left.peek(), input.next_event()?) {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let is_told = next.packet == packet;
            let (data, at) = (record.data(), frame_time(&record));
            let at = at.map_err(|stop| stop.after(packet - 1))?;
            if !is_told {
                old.run_plainly(data, at, packet)?.ok();
                new.run_plainly(data, at, packet)?.ok();
                continue;
            }
            let (before, old_verdict) = old.recorded(data, at, packet, kernels[0])?;
            let (after, new_verdict) = new.recorded(data, at, packet, kernels[1])?;
            if let Some(mut differing) = left.next() {
                if differing.old_verdict.is_empty() {
                    (differing.old_verdict, differing.new_verdict) = (old_verdict, new_verdict);
                }
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

impl Differing {
    /// Adds differences; maps are in one.
    fn add(&mut self, differences: Vec<RunDifference>) {
        for difference in differences {
            let own = self.differences.iter_mut();
            let mut own = own.filter_map(|own| match own {
                RunDifference::Maps(names) => Some(names),
                _ => None,
            });
            match (difference, own.next()) {
                (RunDifference::Maps(names), Some(own)) => own.extend(names),
                (difference, _) => self.differences.push(difference),
            }
        }
    }
}

/// Runs both programs on a packet; what differs.
fn difference(
    old: &mut RunnableProgram<'_>,
    new: &mut RunnableProgram<'_>,
    frame: &[u8],
    at: u64,
    packet: u64,
) -> Result<Option<Differing>, RunCaptureError> {
    let before = old.run_plainly(frame, at, packet)?;
    let old_records = old.records();
    let after = new.run_plainly(frame, at, packet)?;
    let new_records = new.records();
    let mut differences = Vec::new();
    let mut note = |differs: bool, what| {
        if differs {
            differences.push(what);
        }
    };
    let redirect = |program: &RunnableProgram<'_>, result: &Result<u32, RunError>| {
        let retval = result.as_ref().ok()?;
        program.captured()?.redirect(*retval)
    };
    let is_same = match (&before, &after) {
        (Ok(before), Ok(after)) => before == after,
        (Err(before), Err(after)) => before.to_string() == after.to_string(),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    };
    let is_same = is_same && redirect(old, &before) == redirect(new, &after);
    note(!is_same, RunDifference::Verdict);
    let kept = |program: &RunnableProgram<'_>, result: &Result<u32, RunError>| {
        verdict(program.kind(), *result.as_ref().ok()?).kept
    };
    if let (Some(most), Some(other_most)) = (kept(old, &before), kept(new, &after))
        && let (Some(one), Some(other)) = (old.captured(), new.captured())
    {
        let differs = one.kept_frame(most) != other.kept_frame(other_most);
        note(differs, RunDifference::Bytes);
    }
    note(old_records != new_records, RunDifference::Records);
    note(old.printed() != new.printed(), RunDifference::Printk);
    if differences.is_empty() {
        return Ok(None);
    }
    let (mut old_verdict, mut new_verdict) = (old.answer(&before), new.answer(&after));
    if let (true, Ok(one), Ok(other)) = (!is_same && old_verdict == new_verdict, &before, &after) {
        old_verdict = format!("{old_verdict} ({one})");
        new_verdict = format!("{new_verdict} ({other})");
    }
    Ok(Some(Differing {
        packet,
        old_verdict,
        new_verdict,
        differences,
    }))
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
    /// Records the run on a captured packet; the record and the answer.
    fn recorded(
        &mut self,
        frame: &[u8],
        at: u64,
        packet: u64,
        kernel: &Kernel,
    ) -> Result<(Run, String), RunCaptureError> {
        self.record(kernel, None);
        let result = self.run_plainly(frame, at, packet)?;
        Ok((self.take_record().unwrap_or_default(), self.answer(&result)))
    }

    /// Runs on a captured packet; a trap is a result. Records of the run before are gone.
    fn run_plainly(
        &mut self,
        frame: &[u8],
        at: u64,
        packet: u64,
    ) -> Result<Result<u32, RunError>, RunCaptureError> {
        self.records();
        match self.run_captured(frame, at, &mut RunGuard::new()) {
            Err(error) if !error.is_stop() => Err(RunCaptureError::Run { packet, error }),
            result => Ok(result),
        }
    }

    /// What the last run answered, in words.
    fn answer(&self, result: &Result<u32, RunError>) -> String {
        match (result, self.captured()) {
            (Ok(retval), Some(input)) => {
                let name = verdict(self.kind(), *retval).name;
                match input.redirect(*retval) {
                    Some(redirect) => format!("{name} to {}", redirect_text(redirect)),
                    None => name.into_owned(),
                }
            }
            (Ok(retval), None) => retval.to_string(),
            (Err(error), _) => format!("trap: {error}"),
        }
    }
}
