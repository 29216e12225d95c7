//! Outcomes of a filter, as leaves of a decision diagram.

use std::collections::HashMap;

use super::diagram::Ref;
use super::value::ValueId;
use crate::action::{Action, MAX_ERRNO};

/// An outcome in canonical form: data only where the kernel uses them, error numbers
/// capped, and one representative for unknown actions with the same precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// A constant.
    Return(u32),
    /// An action whose data are the low half of a computed value. The `class` is a return
    /// value with data 0.
    Computed { class: u32, data: ValueId },
}

impl Outcome {
    /// The outcome of a return value.
    pub(crate) fn of(value: u32) -> Outcome {
        let action = match Action::from_return(value) {
            Action::Unknown(value) => {
                let (low, _) = class_of(value >> 16);
                Action::Unknown(low << 16)
            }
            known => known,
        };
        Outcome::Return(action.to_return())
    }

    /// The action, with data 0 where they are computed.
    pub(crate) fn action(self) -> Action {
        match self {
            Outcome::Return(value) => Action::from_return(value),
            Outcome::Computed { class, .. } => Action::from_return(class),
        }
    }

    /// The outcome with its action reduced to its effect.
    pub(crate) fn effect(self) -> Outcome {
        match self {
            Outcome::Return(value) => {
                Outcome::Return(Action::from_return(value).effect().to_return())
            }
            computed => computed,
        }
    }
}

/// Ranges of the upper half of return values that are equivalent for the kernel: the known
/// actions, and the gaps between them.
pub(crate) const CLASSES: &[(u32, u32)] = &[
    (0x0000, 0x0000),
    (0x0001, 0x0002),
    (0x0003, 0x0003),
    (0x0004, 0x0004),
    (0x0005, 0x0005),
    (0x0006, 0x7fbf),
    (0x7fc0, 0x7fc0),
    (0x7fc1, 0x7fef),
    (0x7ff0, 0x7ff0),
    (0x7ff1, 0x7ffb),
    (0x7ffc, 0x7ffc),
    (0x7ffd, 0x7ffe),
    (0x7fff, 0x7fff),
    (0x8000, 0x8000),
    (0x8001, 0xffff),
];

fn class_of(upper: u32) -> (u32, u32) {
    let at = CLASSES.partition_point(|&(_, last)| last < upper);
    CLASSES[at]
}

/// The largest data value of an action; `None` if its data are ignored.
pub(crate) fn data_limit(class: u32) -> Option<u16> {
    match Action::from_return(class) {
        Action::Errno(_) => Some(MAX_ERRNO),
        Action::Trap(_) | Action::Trace(_) => Some(u16::MAX),
        _ => None,
    }
}

/// Table of outcomes and their leaves. Leaves 0 and 1 are truth values.
#[derive(Default)]
pub(crate) struct Outcomes {
    list: Vec<Outcome>,
    leaves: HashMap<Outcome, u32>,
}

const FIRST: u32 = 2;

impl Outcomes {
    pub(crate) fn leaf(&mut self, outcome: Outcome) -> Ref {
        let next = FIRST + self.list.len() as u32;
        let leaf = *self.leaves.entry(outcome).or_insert(next);
        if leaf == next {
            self.list.push(outcome);
        }
        Ref::leaf(leaf)
    }

    /// The outcome of a leaf.
    pub(crate) fn at(&self, leaf: u32) -> Outcome {
        self.list[(leaf - FIRST) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_every_upper_half_once() {
        let mut next = 0;
        for &(first, last) in CLASSES {
            assert_eq!(first, next);
            assert!(first <= last);
            next = last + 1;
        }
        assert_eq!(next, 0x1_0000);
    }

    #[test]
    fn classes_match_the_kernel() {
        for upper in 0..=0xffffu32 {
            let (first, last) = class_of(upper);
            assert!((first..=last).contains(&upper));
            let known = !matches!(Action::from_return(upper << 16), Action::Unknown(_));
            assert_eq!(known, first == last && upper != 4, "{upper:#x}");
        }
    }

    #[test]
    fn outcomes_are_canonical() {
        assert_eq!(Outcome::of(0x7fff_0001), Outcome::Return(0x7fff_0000));
        assert_eq!(Outcome::of(0x5_ffff), Outcome::Return(0x5_0fff));
        assert_eq!(Outcome::of(0x1234_5678), Outcome::Return(0x6_0000));
        assert_eq!(
            Outcome::of(0x1234_5678).effect(),
            Outcome::Return(0x8000_0000)
        );
    }
}
