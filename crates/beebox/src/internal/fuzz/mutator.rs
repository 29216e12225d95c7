//! Makes inputs of others: by packets, contexts, elements of maps, and the order and time of runs.

use vm::network::{AF_INET, AF_INET6};

use super::input::{FuzzInput, InputElement};
use super::packets::{Packets, put};
use super::random::Chooser;
use super::steps::{Flows, change_steps, change_time};
use super::worker::Entry;
use crate::internal::run::{Compared, LoadedObject};

/// What inputs of a program consist of.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) has_packets: bool,
    /// Bytes of contexts; 0 for programs that get none.
    pub(super) context: usize,
    /// Bytes of contexts that may be set.
    pub(super) settable: Vec<usize>,
    /// Where contexts have an address family, which Linux takes two of.
    pub(super) family: Option<usize>,
    pub(super) has_time: bool,
    pub(super) has_random: bool,
    /// Maps whose contents are inputs: names, bytes of keys and of values.
    pub(super) maps: Vec<(String, usize, usize)>,
    /// Most runs of an input: 1 if runs leave nothing for later ones.
    pub(super) most_steps: usize,
}

/// Makes inputs of others.
#[derive(Debug)]
pub(super) struct Mutator {
    packets: Packets,
    flows: Flows,
    shape: Shape,
}

impl Mutator {
    pub(super) fn new(shape: Shape, loaded: &LoadedObject) -> Mutator {
        let mut packets = Packets::default();
        packets.numbers = loaded.compared_numbers();
        Mutator {
            packets,
            flows: Flows::default(),
            shape,
        }
    }

    /// Makes an input from nothing.
    pub(super) fn generate(&mut self, chooser: &mut Chooser, input: &mut FuzzInput) {
        input.copy(&FuzzInput::from_packet(Vec::new()));
        let step = &mut input.steps[0];
        if self.shape.has_packets {
            self.packets.generate(chooser, &mut step.packet);
        } else {
            let len = self.shape.context;
            step.context = Some((0..len).map(|_| 0).collect());
            self.change_context(chooser, input, 0);
        }
    }

    /// Changes an input. What one left in maps (`goes_on`) is more often followed by other runs.
    pub(super) fn mutate(
        &mut self,
        chooser: &mut Chooser,
        input: &mut FuzzInput,
        entries: &[Entry],
        goes_on: bool,
    ) {
        let other = &entries[chooser.below(entries.len())].input;
        let most = self.shape.most_steps;
        if most > 1 && chooser.one_in(if goes_on { 2 } else { 6 }) {
            change_steps(chooser, input, other, most, &mut self.flows);
            if chooser.one_in(3) {
                return;
            }
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

    /// Puts a number in place of one that it was compared with, wherever inputs have it: in a packet, a
    /// context, or an element of a map.
    pub(super) fn match_number(
        &mut self,
        chooser: &mut Chooser,
        input: &mut FuzzInput,
        compared: &[Compared],
    ) {
        let Compared { left, right } = chooser.of(compared);
        let (from, to) = match chooser.one_in(2) {
            true => (left, right),
            false => (right, left),
        };
        let to = match chooser.below(4) {
            0 => to.wrapping_add(1),
            1 => to.wrapping_sub(1),
            _ => to,
        };
        let elements = input.elements.len();
        if elements > 0 && chooser.one_in(3) {
            let element = &mut input.elements[chooser.below(elements)];
            let bytes = match chooser.one_in(4) {
                true => &mut element.key,
                false => &mut element.value,
            };
            return replace(chooser, bytes, from, to);
        }
        let place = chooser.below(input.steps.len());
        let step = &mut input.steps[place];
        let settable = &self.shape.settable[..];
        if !settable.is_empty() && (!self.shape.has_packets || chooser.one_in(2)) {
            let context = step.context.get_or_insert_default();
            context.resize(self.shape.context, 0);
            // Linux takes no context in which other bytes are set.
            let before = context.clone();
            replace(chooser, context, from, to);
            let is_changed = |at: &usize| context[*at] != before[*at];
            let mut changed = (0..before.len()).filter(is_changed);
            if changed.any(|at| !settable.contains(&at)) {
                *context = before;
            }
            return;
        }
        replace(chooser, &mut step.packet, from, to);
    }

    fn change_context(&self, chooser: &mut Chooser, input: &mut FuzzInput, place: usize) {
        if self.shape.settable.is_empty() {
            return;
        }
        let step = &mut input.steps[place];
        let len = self.shape.context;
        let context = step.context.get_or_insert_default();
        context.resize(len, 0);
        if let Some(at) = self.shape.family
            && (context[at..at + 4] == [0; 4] || chooser.one_in(8))
        {
            let family: u32 = chooser.of(&[AF_INET, AF_INET6]);
            context[at..at + 4].copy_from_slice(&family.to_le_bytes());
        }
        for _ in 0..1 + chooser.small(3) {
            let at = chooser.of(&self.shape.settable);
            match chooser.below(4) {
                0 if !self.packets.numbers.is_empty() => {
                    let number = chooser.of(&self.packets.numbers);
                    let len = least_len(number).max(4).min(context.len() - at);
                    let number = number.to_le_bytes();
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
                false => self.fill(chooser, &mut input.elements[at].value),
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
            self.fill(chooser, key);
        }
        self.fill(chooser, &mut element.value);
        input.elements.push(element);
    }

    /// Fills a key or value.
    fn fill(&self, chooser: &mut Chooser, bytes: &mut [u8]) {
        match chooser.below(4) {
            0 => bytes.fill(0),
            1 => {
                bytes.fill(0);
                if let Some(first) = bytes.first_mut() {
                    *first = chooser.small(64) as u8;
                }
            }
            2 if !self.packets.numbers.is_empty() && !bytes.is_empty() => {
                let (number, at) = (
                    chooser.of(&self.packets.numbers),
                    chooser.below(bytes.len().div_ceil(4)) * 4,
                );
                put(chooser, number, bytes, at);
            }
            _ => {
                for byte in bytes {
                    *byte = chooser.bits() as u8;
                }
            }
        }
    }
}

/// Bytes that a number needs: 1, 2, 4 or 8.
pub(super) fn least_len(number: u64) -> usize {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Puts a number where another one is; anywhere, if it is nowhere.
fn replace(chooser: &mut Chooser, bytes: &mut [u8], from: u64, to: u64) {
    if bytes.is_empty() {
        return;
    }
    // A wide number does not fit in place of a narrow one: that has zeros beside it.
    let len = least_len(from).max(least_len(to));
    let len = (len << chooser.below(2)).min(8);
    let is_swapped = chooser.one_in(2);
    let form = |number: u64| {
        let mut form = number.to_le_bytes();
        if is_swapped {
            form[..len].reverse();
        }
        form
    };
    let (from, form) = (form(from), form(to));
    match place_of(chooser, bytes, &from[..len]) {
        Some(at) => bytes[at..at + len].copy_from_slice(&form[..len]),
        None => {
            let at = chooser.below(bytes.len());
            put(chooser, to, bytes, at);
        }
    }
}

/// Where bytes are among others: from a random place on, so that each place has its turn.
fn place_of(chooser: &mut Chooser, bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    if bytes.len() < wanted.len() {
        return None;
    }
    let start = chooser.below(bytes.len());
    let places = bytes.windows(wanted.len()).enumerate();
    let mut behind = places.clone().skip(start).chain(places.take(start));
    let (at, _) = behind.find(|(_, window)| *window == wanted)?;
    Some(at)
}
