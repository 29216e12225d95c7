//! Models of tail calls whose targets change while they run, checked in all interleavings of
//! a reader with writers: explicit-state search over whole state spaces.
//!
//! Three designs are modelled, one step of the reader for each instruction that matters. The
//! design of native code here is the data slot ([`vm::TailTable`]): the others patch code,
//! and are here for the comparison in docs/tail-calls.md and to show that the search finds
//! the forbidden state, which is a frame that is unwound with no target behind it.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What a search found.
#[derive(Debug, PartialEq, Eq)]
enum Search<S> {
    /// No state is forbidden, among so many.
    Safe(usize),
    /// The shortest way to a forbidden state.
    Reached(Vec<S>),
}

/// Visits all states, breadth first.
fn search<S: Clone + Eq + Hash>(
    start: S,
    successors: impl Fn(&S) -> Vec<S>,
    is_forbidden: impl Fn(&S) -> bool,
) -> Search<S> {
    let mut before: HashMap<S, Option<S>> = HashMap::from([(start.clone(), None)]);
    let mut waiting = VecDeque::from([start]);
    while let Some(state) = waiting.pop_front() {
        if is_forbidden(&state) {
            let mut way = vec![state];
            while let Some(Some(earlier)) = before.get(&way[way.len() - 1]) {
                way.push(earlier.clone());
            }
            way.reverse();
            return Search::Reached(way);
        }
        for next in successors(&state) {
            if !before.contains_key(&next) {
                before.insert(next.clone(), Some(state.clone()));
                waiting.push_back(next);
            }
        }
    }
    Search::Safe(before.len())
}

/// Installations of one search: each is a target of its own, by number from 1 on; 0 is none.
const TARGETS: u8 = 3;

/// Where a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    /// Outside of runs.
    Idle,
    /// In a run, before the slot is loaded.
    Begins,
    /// It has loaded the slot.
    Loaded(u8),
    /// Its frame is unwound.
    Unwound(u8),
    /// It runs a target.
    In(u8),
}

/// The data slot with its targets. Two readers run again and again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DataSlot {
    slot: u8,
    readers: [Reader; 2],
    installed: u8,
    /// By target: replaced, and the readers whose runs had begun then.
    retired: [Option<[bool; 2]>; TARGETS as usize],
    freed: [bool; TARGETS as usize],
}

impl DataSlot {
    const START: DataSlot = DataSlot {
        slot: 0,
        readers: [Reader::Idle; 2],
        installed: 0,
        retired: [None; TARGETS as usize],
        freed: [false; TARGETS as usize],
    };

    /// All next states. `waits` tells that a target is freed only when the runs have ended
    /// that had begun when it was replaced.
    fn successors(&self, waits: bool) -> Vec<DataSlot> {
        let mut next = Vec::new();
        for number in 0..2 {
            let steps: &[Reader] = match self.readers[number] {
                Reader::Idle => &[Reader::Begins],
                Reader::Begins => &[Reader::Loaded(self.slot)],
                // It falls through.
                Reader::Loaded(0) => &[Reader::Idle],
                Reader::Loaded(target) => &[Reader::Unwound(target)],
                Reader::Unwound(target) => &[Reader::In(target)],
                // It ends, or makes another tail call.
                Reader::In(_) => &[Reader::Idle, Reader::Begins],
            };
            next.extend(steps.iter().map(|step| {
                let mut state = self.clone();
                state.readers[number] = *step;
                if *step == Reader::Idle {
                    for waited in state.retired.iter_mut().flatten() {
                        waited[number] = false;
                    }
                }
                state
            }));
        }
        // Writers install, replace or remove by one store.
        let targets = (self.installed < TARGETS).then_some(self.installed + 1);
        for target in targets.into_iter().chain([0]) {
            let mut state = self.clone();
            state.installed = state.installed.max(target);
            if state.slot > 0 {
                let running = state.readers.map(|reader| reader != Reader::Idle);
                state.retired[usize::from(state.slot) - 1] = Some(running);
            }
            state.slot = target;
            next.push(state);
        }
        for (index, retired) in self.retired.iter().enumerate() {
            if retired.is_some_and(|waited| !waits || waited == [false; 2]) {
                let mut state = self.clone();
                state.freed[index] = true;
                next.push(state);
            }
        }
        next
    }

    /// A frame is unwound without a target, or a reader is in code that is freed.
    fn is_forbidden(&self) -> bool {
        self.readers.iter().any(|reader| match *reader {
            Reader::Unwound(target) | Reader::In(target) => {
                target == 0 || self.freed[usize::from(target) - 1]
            }
            Reader::Idle | Reader::Begins | Reader::Loaded(_) => false,
        })
    }
}

#[oracle::test]
fn a_data_slot_never_unwinds_without_a_target() {
    let found = search(
        DataSlot::START,
        |state| state.successors(true),
        DataSlot::is_forbidden,
    );
    let Search::Safe(states) = found else {
        panic!("{found:?}");
    };
    assert!(states > 2_000, "{states}");
}

#[oracle::test]
fn targets_that_are_freed_at_once_are_run_after() {
    let found = search(
        DataSlot::START,
        |state| state.successors(false),
        DataSlot::is_forbidden,
    );
    let Search::Reached(way) = found else {
        panic!("{found:?}");
    };
    assert!(way[way.len() - 1].freed.contains(&true));
}

/// Three parts of code that are patched one by one: a jump over the others or nothing, the
/// code that unwinds, and a jump to the target or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Patched {
    skips: bool,
    has_target: bool,
    /// The part that the reader comes to; `None` outside.
    reader: Option<u8>,
    has_fallen_out: bool,
    /// Writes that the writer, who holds a lock, has still to do.
    writes: &'static [Write],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Write {
    Skip(bool),
    Target(bool),
}

impl Patched {
    const START: Patched = Patched {
        skips: true,
        has_target: false,
        reader: None,
        has_fallen_out: false,
        writes: &[],
    };

    fn successors(&self, install: &'static [Write], remove: &'static [Write]) -> Vec<Patched> {
        let mut next = Vec::new();
        let at = |reader| Patched {
            reader,
            ..self.clone()
        };
        match self.reader {
            None => next.push(at(Some(0))),
            Some(0) if self.skips => next.push(at(None)),
            Some(0) => next.push(at(Some(1))),
            // It unwinds.
            Some(1) => next.push(at(Some(2))),
            Some(_) => next.push(Patched {
                has_fallen_out: !self.has_target,
                ..at(None)
            }),
        }
        match self.writes {
            [] => next.extend([install, remove].map(|writes| Patched {
                writes,
                ..self.clone()
            })),
            [write, rest @ ..] => {
                let mut state = Patched {
                    writes: rest,
                    ..self.clone()
                };
                match *write {
                    Write::Skip(skips) => state.skips = skips,
                    Write::Target(has_target) => state.has_target = has_target,
                }
                next.push(state);
            }
        }
        next
    }
}

#[oracle::test]
fn patched_code_is_safe_in_one_order_only() {
    use Write::{Skip, Target};
    let run = |install, remove| {
        let successors = |state: &Patched| state.successors(install, remove);
        search(Patched::START, successors, |state| state.has_fallen_out)
    };
    // The target comes first and stays when the skip is restored.
    let safe = run(&[Target(true), Skip(false)], &[Skip(true)]);
    assert!(
        matches!(safe, Search::Safe(states) if states >= 10),
        "{safe:?}"
    );
    for (install, remove) in [
        (&[Skip(false), Target(true)][..], &[Skip(true)][..]),
        (&[Target(true), Skip(false)], &[Skip(true), Target(false)]),
        (&[Target(true), Skip(false)], &[Target(false), Skip(true)]),
    ] {
        let found = run(install, remove);
        assert!(
            matches!(found, Search::Reached(_)),
            "{install:?} {remove:?}"
        );
    }
}
