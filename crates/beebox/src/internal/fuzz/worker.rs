//! A job: makes inputs, runs them, and keeps what is new.

use std::time::Instant;

use super::executor::{Executor, Violation};
use super::input::{FuzzInput, InputElement};
use super::packets::{MOST_BYTES, Packets, put};
use super::random::Chooser;
use crate::internal::run::{Compared, LoadedObject};

/// An input that is kept.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) input: FuzzInput,
    /// Numbers that its runs compared.
    pub(super) compared: Vec<Compared>,
}

/// An input that did what none before did: counters and the classes of their counts.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) input: FuzzInput,
    pub(super) classes: Vec<(usize, u8)>,
}

/// What a job did in a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) runs: u64,
    pub(super) kept: Vec<Kept>,
    pub(super) found: Vec<(FuzzInput, Violation)>,
    /// The time was over.
    pub(super) is_over: bool,
}

/// What inputs of a program consist of.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) has_packets: bool,
    /// Bytes of contexts; 0 for programs that get none.
    pub(super) context: usize,
    /// Bytes of contexts that may be set.
    pub(super) settable: Vec<usize>,
    pub(super) has_time: bool,
    pub(super) has_random: bool,
    /// Maps whose contents are inputs: names, bytes of keys and of values.
    pub(super) maps: Vec<(String, usize, usize)>,
    pub(super) most_steps: usize,
}

/// The class of a count, a bit: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
#[inline]
pub(super) fn class_of(count: u64) -> u8 {
    match count {
        0..=3 => 1 << count >> 1,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        _ => 128,
    }
}

/// Inputs between two looks at the clock.
const UNCHECKED: u64 = 256;

/// Makes inputs of others.
#[derive(Debug)]
pub(super) struct Mutator {
    packets: Packets,
    shape: Shape,
}

impl Mutator {
    pub(super) fn new(shape: Shape, loaded: &LoadedObject) -> Mutator {
        let mut packets = Packets::default();
        packets.numbers = loaded.compared_numbers();
        Mutator { packets, shape }
    }

    /// Makes an input from nothing.
    pub(super) fn generate(&mut self, chooser: &mut Chooser, input: &mut FuzzInput) {
        input.copy(&FuzzInput::of_packet(Vec::new()));
        let step = &mut input.steps[0];
        if self.shape.has_packets {
            self.packets.generate(chooser, &mut step.packet);
        } else {
            let len = self.shape.context;
            step.context = Some((0..len).map(|_| 0).collect());
            self.change_context(chooser, input, 0);
        }
    }

    /// Changes an input.
    fn mutate(&mut self, chooser: &mut Chooser, input: &mut FuzzInput, entries: &[Entry]) {
        let other = &entries[chooser.below(entries.len())].input;
        if self.shape.most_steps > 1 && chooser.one_in(8) {
            change_steps(chooser, input, other, self.shape.most_steps);
        }
        let place = chooser.below(input.steps.len());
        if self.shape.has_time && chooser.one_in(4) {
            change_time(chooser, input);
        }
        if self.shape.has_random && chooser.one_in(4) {
            input.seed = chooser.bits();
        }
        if !self.shape.maps.is_empty() && chooser.one_in(3) {
            self.change_elements(chooser, input);
        }
        let has_context = !self.shape.settable.is_empty();
        if !self.shape.has_packets || has_context && chooser.one_in(8) {
            self.change_context(chooser, input, place);
            if !self.shape.has_packets {
                return;
            }
        }
        let other = &other.steps[chooser.below(other.steps.len())].packet;
        let frame = &mut input.steps[place].packet;
        self.packets.mutate(chooser, frame, other);
    }

    /// Puts a number in place of one that it was compared with.
    fn match_number(&mut self, chooser: &mut Chooser, input: &mut FuzzInput, entry: &Entry) {
        let Compared { left, right } = chooser.of(&entry.compared);
        let (from, to) = match chooser.one_in(2) {
            true => (left, right),
            false => (right, left),
        };
        let to = match chooser.below(4) {
            0 => to.wrapping_add(1),
            1 => to.wrapping_sub(1),
            _ => to,
        };
        let step = &mut input.steps[chooser.below(entry.input.steps.len())];
        let bytes = match (&mut step.context, self.shape.has_packets) {
            (Some(context), false) => context,
            _ => &mut step.packet,
        };
        let Some((at, len, is_swapped)) = place_of(chooser, bytes, from) else {
            if !bytes.is_empty() {
                let at = chooser.below(bytes.len());
                put(chooser, to, bytes, at);
            }
            return;
        };
        let mut number = to.to_le_bytes();
        if is_swapped {
            number[..len].reverse();
        }
        bytes[at..at + len].copy_from_slice(&number[..len]);
    }

    fn change_context(&self, chooser: &mut Chooser, input: &mut FuzzInput, place: usize) {
        if self.shape.settable.is_empty() {
            return;
        }
        let step = &mut input.steps[place];
        let len = self.shape.context;
        let context = step.context.get_or_insert_default();
        context.resize(len, 0);
        for _ in 0..1 + chooser.small(3) {
            let at = chooser.of(&self.shape.settable);
            match chooser.below(4) {
                0 if !self.packets.numbers.is_empty() => {
                    let number = chooser.of(&self.packets.numbers).to_le_bytes();
                    let len = 4.min(context.len() - at);
                    let is_free = (at..at + len).all(|at| self.shape.settable.contains(&at));
                    if is_free {
                        context[at..at + len].copy_from_slice(&number[..len]);
                    }
                }
                1 => context[at] = context[at].wrapping_add(1),
                2 => context[at] = chooser.of(&[0, 1, 0x7f, 0x80, 0xff]),
                _ => context[at] = chooser.bits() as u8,
            }
        }
    }

    /// Adds, changes or removes an element of a map.
    fn change_elements(&self, chooser: &mut Chooser, input: &mut FuzzInput) {
        const MOST: usize = 8;
        let count = input.elements.len();
        if count > 0 && (count == MOST || chooser.one_in(3)) {
            let at = chooser.below(count);
            match chooser.one_in(2) {
                true => {
                    input.elements.swap_remove(at);
                }
                false => fill(chooser, &mut input.elements[at].value),
            }
            return;
        }
        let at = chooser.below(self.shape.maps.len());
        let (map, key_size, value_size) = &self.shape.maps[at];
        let mut element = InputElement {
            map: map.clone(),
            key: vec![0; *key_size],
            value: vec![0; *value_size],
        };
        // Keys are often what packets have.
        let packet = &input.steps[chooser.below(input.steps.len())].packet;
        let key = &mut element.key;
        if packet.len() > key.len() && !chooser.one_in(4) {
            let from = chooser.below((packet.len() - key.len()).min(80));
            let len = key.len();
            key.copy_from_slice(&packet[from..from + len]);
            if chooser.one_in(2) {
                key.reverse();
            }
        } else {
            fill(chooser, key);
        }
        fill(chooser, &mut element.value);
        input.elements.push(element);
    }
}

/// Where a number is among bytes, its length there, and whether its first byte is the highest.
fn place_of(chooser: &mut Chooser, bytes: &[u8], number: u64) -> Option<(usize, usize, bool)> {
    let least = match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    let len = (least << chooser.below(2)).min(8);
    let is_swapped = chooser.one_in(2);
    let mut wanted = number.to_le_bytes();
    if is_swapped {
        wanted[..len].reverse();
    }
    let wanted = &wanted[..len];
    if bytes.len() < len {
        return None;
    }
    // From a random place on, so that each has its turn.
    let start = chooser.below(bytes.len());
    let places = bytes.windows(len).enumerate();
    let mut behind = places.clone().skip(start).chain(places.take(start));
    let (at, _) = behind.find(|(_, window)| *window == wanted)?;
    Some((at, len, is_swapped))
}

/// Fills a key or value.
fn fill(chooser: &mut Chooser, bytes: &mut [u8]) {
    match chooser.below(3) {
        0 => bytes.fill(0),
        1 => {
            bytes.fill(0);
            if let Some(first) = bytes.first_mut() {
                *first = chooser.small(64) as u8;
            }
        }
        _ => {
            for byte in bytes {
                *byte = chooser.bits() as u8;
            }
        }
    }
}

/// Adds, removes, repeats or swaps runs.
fn change_steps(chooser: &mut Chooser, input: &mut FuzzInput, other: &FuzzInput, most: usize) {
    let count = input.steps.len();
    match chooser.below(4) {
        0 if count > 1 => {
            input.steps.remove(chooser.below(count));
        }
        1 if count > 1 => input.steps.swap(chooser.below(count), chooser.below(count)),
        2 if count < most => {
            let step = other.steps[chooser.below(other.steps.len())].clone();
            input.steps.push(step);
        }
        _ if count < most => {
            let step = input.steps[chooser.below(count)].clone();
            input.steps.push(step);
        }
        _ => {}
    }
    order(input);
}

fn change_time(chooser: &mut Chooser, input: &mut FuzzInput) {
    const SPANS: [u64; 9] = [
        0,
        1,
        1_000,
        1_000_000,
        100_000_000,
        1_000_000_000,
        10_000_000_000,
        60_000_000_000,
        3_600_000_000_000,
    ];
    let at = chooser.below(input.steps.len());
    let span = match chooser.one_in(6) {
        true => chooser.bits() >> chooser.below(64),
        false => chooser.of(&SPANS),
    };
    for step in &mut input.steps[at..] {
        step.time = step.time.saturating_add(span).min(i64::MAX as u64);
    }
    if chooser.one_in(8) {
        input.steps[at].time = 0;
    }
    order(input);
}

/// Has time never go back.
fn order(input: &mut FuzzInput) {
    let mut last = 0;
    for step in &mut input.steps {
        last = step.time.max(last);
        step.time = last;
    }
}

/// Which runs a job makes in a round.
pub(super) struct Share<'r> {
    pub(super) entries: &'r [Entry],
    pub(super) chooser: Chooser,
    /// Most runs.
    pub(super) runs: u64,
    pub(super) end: Option<Instant>,
}

/// Makes the runs of a job in a round. `seen` are the classes of counts by counter that were seen.
pub(super) fn work(
    executor: &mut Executor<'_, '_>,
    mutator: &mut Mutator,
    seen: &mut [u8],
    mut share: Share<'_>,
) -> Round {
    let mut round = Round::default();
    let mut input = FuzzInput::default();
    let mut classes: Vec<(usize, u8)> = Vec::new();
    let chooser = &mut share.chooser;
    let entries = share.entries;
    let mut inputs = 0_u64;
    while round.runs < share.runs {
        inputs += 1;
        if inputs.is_multiple_of(UNCHECKED) && share.end.is_some_and(|end| Instant::now() >= end) {
            round.is_over = true;
            break;
        }
        if entries.is_empty() || chooser.one_in(64) {
            mutator.generate(chooser, &mut input);
        } else {
            let newest = entries.len() - 1;
            let place = match chooser.one_in(2) {
                true => newest - chooser.small(newest.min(24)),
                false => chooser.below(entries.len()),
            };
            let entry = &entries[place];
            input.copy(&entry.input);
            if !entry.compared.is_empty() && chooser.one_in(4) {
                mutator.match_number(chooser, &mut input, entry);
                if chooser.one_in(2) {
                    mutator.mutate(chooser, &mut input, entries);
                }
            } else {
                mutator.mutate(chooser, &mut input, entries);
            }
        }
        classes.clear();
        let violation = executor.run(&input, &mut round.runs, |counter, count| {
            let class = class_of(count);
            if seen[counter] & class == 0 {
                seen[counter] |= class;
                classes.push((counter, class));
            }
        });
        if !classes.is_empty() {
            let is_short = input
                .steps
                .iter()
                .all(|step| step.packet.len() <= MOST_BYTES);
            if is_short {
                round.kept.push(Kept {
                    input: input.clone(),
                    classes: classes.clone(),
                });
            }
        }
        if let Some(violation) = violation {
            executor.skipped[violation.property] = true;
            round.found.push((input.clone(), violation));
        }
    }
    round
}
