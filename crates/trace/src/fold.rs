//! Loops of a path: sequences of lines that repeat, folded to their first and last iterations.
//!
//! Greedy: at each place the sequence that covers most repetitions is folded, inner loops before the
//! ones around them. O(n · [`LONGEST`]) for each of [`PASSES`] passes.

use crate::run::Visit;

/// Most lines of an iteration that are recognised as one.
const LONGEST: usize = 48;
/// Fewest iterations that are folded.
const FEWEST: usize = 3;
/// Most loops in loops.
const PASSES: usize = 4;

/// A line, or a loop of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folded {
    /// The line of an index.
    Line(usize),
    /// Iterations of the same lines.
    Loop {
        /// Their number.
        times: usize,
        /// The first one.
        first: Vec<Folded>,
        /// The last one.
        last: Vec<Folded>,
    },
}

/// Folds the loops of a path. Lines are the same if `key` is.
pub fn fold<K: PartialEq>(visits: &[Visit], key: impl Fn(&Visit) -> K) -> Vec<Folded> {
    let mut items: Vec<Item> = Vec::with_capacity(visits.len());
    let mut keys: Vec<K> = Vec::new();
    for (index, visit) in visits.iter().enumerate() {
        let of_visit = key(visit);
        let found = keys.iter().position(|known| *known == of_visit);
        let number = found.unwrap_or_else(|| {
            keys.push(of_visit);
            keys.len() - 1
        });
        let folded = Folded::Line(index);
        items.push(Item {
            key: vec![number],
            folded,
        });
    }
    for _ in 0..PASSES {
        match fold_once(items) {
            (folded, true) => items = folded,
            (folded, false) => {
                items = folded;
                break;
            }
        }
    }
    items.into_iter().map(|item| item.folded).collect()
}

#[derive(Clone)]
struct Item {
    /// What makes it the same as another one: its line, or those of an iteration.
    key: Vec<usize>,
    folded: Folded,
}

/// Folds the innermost loops; true if there were some.
fn fold_once(items: Vec<Item>) -> (Vec<Item>, bool) {
    let mut folded = Vec::with_capacity(items.len());
    let (mut at, mut has_some) = (0, false);
    while at < items.len() {
        let Some((len, times)) = repeated(&items[at..]) else {
            folded.push(items[at].clone());
            at += 1;
            continue;
        };
        let end = at + len * times;
        let mut key = vec![usize::MAX];
        items[at..at + len]
            .iter()
            .for_each(|item| key.extend(&item.key));
        folded.push(Item {
            key,
            folded: Folded::Loop {
                times,
                first: folded_of(&items[at..at + len]),
                last: folded_of(&items[end - len..end]),
            },
        });
        has_some = true;
        at = end;
    }
    (folded, has_some)
}

fn folded_of(items: &[Item]) -> Vec<Folded> {
    items.iter().map(|item| item.folded.clone()).collect()
}

/// Length of the iteration that begins here, and how often it follows itself.
fn repeated(items: &[Item]) -> Option<(usize, usize)> {
    for len in 1..=LONGEST.min(items.len() / FEWEST) {
        let first = &items[..len];
        let is_same = |next: &&[Item]| {
            next.iter()
                .zip(first)
                .all(|(item, first)| item.key == first.key)
        };
        let times = items.chunks_exact(len).take_while(is_same).count();
        if times >= FEWEST {
            return Some((len, times));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(slot: u32) -> Visit {
        Visit {
            program: 0,
            function: 0,
            depth: 0,
            inlined: Vec::new(),
            spans: vec![(slot, slot)],
            events: Vec::new(),
        }
    }

    fn text(folded: &[Folded], visits: &[Visit]) -> String {
        let item = |folded: &Folded| match folded {
            Folded::Line(index) => visits[*index].first().to_string(),
            Folded::Loop { times, first, .. } => format!("({} ×{times})", text(first, visits)),
        };
        let items: Vec<String> = folded.iter().map(item).collect();
        items.join(" ")
    }

    #[test]
    fn loops_fold_with_those_in_them() {
        let mut slots = vec![1];
        for round in 0..3 {
            slots.push(2);
            (0..4 + round).for_each(|_| slots.extend([3, 4]));
        }
        slots.extend([5, 5, 6]);
        let visits: Vec<Visit> = slots.into_iter().map(line).collect();
        assert_eq!(
            text(&fold(&visits, Visit::first), &visits),
            "1 (2 (3 4 ×4) ×3) 5 5 6"
        );
    }
}
