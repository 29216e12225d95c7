//! Makes a find small: fewer runs, elements and bytes, and zeros, as long as the property does not hold.

use packet::set_checksums;

use super::executor::Violation;
use super::input::FuzzInput;
use super::layout::Layout;
use super::packets::{LEAST_BYTES, fix_lengths};

/// Most inputs that are tried.
const MOST_TRIES: usize = 50_000;

/// An input that shows a violation, and what tries smaller ones.
struct Smaller<F> {
    input: FuzzInput,
    violation: Violation,
    fails: F,
    tries: usize,
}

/// The smallest input that is found, and its violation. `fails` has the violation of an input, and whether no
/// more are to be tried.
pub(super) fn minimize(
    (input, violation): (FuzzInput, Violation),
    fails: impl FnMut(&FuzzInput) -> (Option<Violation>, bool),
) -> (FuzzInput, Violation) {
    let mut smaller = Smaller {
        input,
        violation,
        fails,
        tries: 0,
    };
    let behind = smaller.violation.step + 1;
    smaller.change(|input| input.steps.truncate(behind));
    loop {
        let before = smaller.input.clone();
        smaller.round();
        if smaller.input == before || smaller.tries >= MOST_TRIES {
            break;
        }
    }
    smaller.tidy();
    (smaller.input, smaller.violation)
}

impl<F: FnMut(&FuzzInput) -> (Option<Violation>, bool)> Smaller<F> {
    /// Keeps a change if the property still does not hold.
    fn change(&mut self, change: impl FnOnce(&mut FuzzInput)) -> bool {
        let mut input = self.input.clone();
        change(&mut input);
        if input == self.input || input.steps.is_empty() || self.tries >= MOST_TRIES {
            return false;
        }
        self.tries += 1;
        let (violation, is_spent) = (self.fails)(&input);
        if is_spent {
            self.tries = MOST_TRIES;
        }
        match violation {
            Some(violation) => {
                (self.input, self.violation) = (input, violation);
                true
            }
            None => false,
        }
    }

    fn round(&mut self) {
        for at in (0..self.input.steps.len()).rev() {
            self.change(|input| drop(input.steps.remove(at)));
        }
        for at in (0..self.input.elements.len()).rev() {
            self.change(|input| drop(input.elements.remove(at)));
        }
        self.change(|input| input.seed = 0);
        for step in 0..self.input.steps.len() {
            self.change(|input| input.steps[step].context = None);
            for time in [0, 1_000_000_000] {
                self.change(|input| input.steps[step].time = time);
            }
            self.cut(step);
            self.clear(step);
        }
        for at in 0..self.input.elements.len() {
            for byte in 0..self.input.elements[at].value.len() {
                self.change(|input| input.elements[at].value[byte] = 0);
            }
        }
    }

    /// Removes bytes of a packet, many at once first.
    fn cut(&mut self, step: usize) {
        let mut layout = Layout::default();
        let mut len = self.input.steps[step].packet.len() / 2;
        while len > 0 {
            let mut end = self.input.steps[step].packet.len();
            while end >= len && end > LEAST_BYTES {
                let start = end - len;
                let is_cut = self.change(|input| {
                    input.steps[step].packet.drain(start..end);
                }) || self.change(|input| {
                    let packet = &mut input.steps[step].packet;
                    packet.drain(start..end);
                    fix_lengths(&mut layout, packet);
                });
                end = match is_cut {
                    true => start.min(self.input.steps[step].packet.len()),
                    false => end - len.div_ceil(2).max(1),
                };
            }
            len /= 2;
        }
    }

    /// Sets bytes to zero.
    fn clear(&mut self, step: usize) {
        for len in [16, 4, 1] {
            let all = self.input.steps[step].packet.len();
            for start in (0..all).step_by(len) {
                let end = (start + len).min(all);
                self.change(|input| input.steps[step].packet[start..end].fill(0));
            }
            let all = self.input.steps[step].context.as_ref().map_or(0, Vec::len);
            for start in (0..all).step_by(len) {
                let end = (start + len).min(all);
                self.change(|input| {
                    if let Some(context) = &mut input.steps[step].context {
                        context[start..end].fill(0);
                    }
                });
            }
        }
    }

    /// Sets lengths and checksums right, if that makes no difference.
    fn tidy(&mut self) {
        let mut layout = Layout::default();
        for step in 0..self.input.steps.len() {
            self.change(|input| fix_lengths(&mut layout, &mut input.steps[step].packet));
            self.change(|input| set_checksums(&mut input.steps[step].packet));
        }
    }
}
