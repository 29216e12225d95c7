//! Changes of the runs of an input: which packets come one after the other, and when.

use super::input::FuzzInput;
use super::layout::Layout;
use super::random::Chooser;

/// Adds, removes, repeats or swaps runs. Runs that are added are often of the flow of one that is there, or
/// its answer.
pub(super) fn change_steps(
    chooser: &mut Chooser,
    input: &mut FuzzInput,
    other: &FuzzInput,
    most: usize,
    flows: &mut Flows,
) {
    let count = input.steps.len();
    match chooser.below(8) {
        0 if count > 1 => {
            input.steps.remove(chooser.below(count));
        }
        1 if count > 1 => input.steps.swap(chooser.below(count), chooser.below(count)),
        2 if count < most => {
            // A run several times: what counts runs.
            let step = input.steps[chooser.below(count)].clone();
            let times = 1 + chooser.below(most - count);
            input.steps.extend(std::iter::repeat_n(step, times));
        }
        choice if count < most => {
            let at = match chooser.one_in(4) {
                true => chooser.below(count + 1),
                false => count,
            };
            let known = chooser.below(count);
            let mut step = match choice {
                3..=5 => other.steps[chooser.below(other.steps.len())].clone(),
                _ => input.steps[known].clone(),
            };
            if choice != 3 {
                let is_answer = chooser.one_in(2);
                flows.join(&mut step.packet, &input.steps[known].packet, is_answer);
            }
            input.steps.insert(at, step);
        }
        _ => {}
    }
    order(input);
}

/// Puts packets into flows of others.
#[derive(Debug, Default)]
pub(super) struct Flows {
    layout: Layout,
    other: Layout,
}

impl Flows {
    /// Gives a packet the addresses and ports of the outer headers of another one, as they are or swapped.
    fn join(&mut self, packet: &mut [u8], other: &[u8], is_answer: bool) {
        self.layout.find(packet);
        self.other.find(other);
        let transport = |layout: &Layout| {
            let mut starts = [layout.tcp.first(), layout.udp.first()].into_iter();
            let first = starts.by_ref().flatten().min();
            first.copied()
        };
        let pairs = [
            (Some(0), Some(0), 0, 6),
            (
                self.layout.ipv4.first().copied(),
                self.other.ipv4.first().copied(),
                12,
                4,
            ),
            (
                self.layout.ipv6.first().copied(),
                self.other.ipv6.first().copied(),
                8,
                16,
            ),
            (transport(&self.layout), transport(&self.other), 0, 2),
        ];
        for (to, from, at, len) in pairs {
            let (Some(to), Some(from)) = (to, from) else {
                continue;
            };
            let (to, from) = (to + at, from + at);
            let (Some(to), Some(from)) = (
                packet.get_mut(to..to + 2 * len),
                other.get(from..from + 2 * len),
            ) else {
                continue;
            };
            let mut ends = [0; 32];
            let ends = &mut ends[..2 * len];
            ends.copy_from_slice(from);
            if is_answer {
                ends.rotate_left(len);
            }
            to.copy_from_slice(ends);
        }
    }
}

pub(super) fn change_time(chooser: &mut Chooser, input: &mut FuzzInput) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::internal::fuzz::frames::ethernet;

    #[test]
    fn an_answer_has_the_ends_swapped() {
        let mut chooser = Chooser::new(3, &[]);
        let (mut flows, mut joined) = (Flows::default(), 0);
        for _ in 0..200 {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            ethernet(&mut chooser, &mut one, 1);
            ethernet(&mut chooser, &mut other, 1);
            let before = other.clone();
            flows.join(&mut other, &one, true);
            assert_eq!(other.len(), before.len());
            let (mut left, mut right) = (Layout::default(), Layout::default());
            left.find(&one);
            right.find(&other);
            if let ([left, ..], [right, ..]) = (&left.ipv4[..], &right.ipv4[..])
                && one.len() >= left + 20
                && other.len() >= right + 20
            {
                assert_eq!(one[left + 12..left + 16], other[right + 16..right + 20]);
                assert_eq!(one[left + 16..left + 20], other[right + 12..right + 16]);
                joined += 1;
            }
        }
        assert!(joined > 20, "{joined}");
    }
}
