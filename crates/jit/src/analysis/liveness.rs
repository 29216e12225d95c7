//! Which values are still wanted, carried backward from their uses.
//!
//! Cost: linear. Two or three passes settle what compilers make; a function that
//! takes more than [`MOST_PASSES`] gets the safe answer that everything is wanted
//! where its loops begin.

use lower::Function;

use super::transfer::Halves;
use super::{Fact, Marks, Way};

/// Passes after which a function gets the safe answer.
const MOST_PASSES: usize = 8;

/// Notes for every slot of a function what is wanted after it. Nothing is noted
/// before, or less than is wanted.
pub(super) fn settle(function: Function, loops: bool, facts: &mut [Fact]) {
    let facts = &mut facts[function.start..function.end];
    for _ in 0..MOST_PASSES {
        let changed = go_back(function.start, facts, false);
        if !changed || !loops {
            return;
        }
    }
    go_back(function.start, facts, true);
}

/// One pass backward over a function that begins at a slot; says whether a loop
/// wants more at its beginning than the pass assumed. A pass is `safe` that assumes
/// everything there.
fn go_back(start: usize, facts: &mut [Fact], safe: bool) -> bool {
    /// Few slots have one of these, which are looked at apart.
    const RARE: Marks = Marks::LOOP.and(Marks::DEAD);
    let mut changed = false;
    let mut wanted = Halves::EFFECT;
    for at in (0..facts.len()).rev() {
        let marks = facts[at].marks;
        if marks.overlap(Marks::LEAVES) {
            wanted = at_targets(start, facts, at, wanted, safe);
        }
        let fact = &mut facts[at];
        let assumed = fact.after;
        fact.after = wanted;
        match fact.transfer.carry(wanted) {
            Some(before) => wanted = before,
            None => fact.marks = marks.and(Marks::DEAD),
        }
        if marks.overlap(RARE) {
            fact.marks
                .set(Marks::DEAD, fact.transfer.carry(fact.after).is_none());
            if marks.overlap(Marks::LOOP) {
                changed |= wanted != fact.transfer.carry(assumed).unwrap_or(assumed);
                if safe {
                    wanted = Halves::ALL;
                }
            }
        }
    }
    changed
}

/// What is wanted where control goes from a slot that jumps or ends the function,
/// given what the next slot wants.
fn at_targets(start: usize, facts: &[Fact], at: usize, next: Halves, safe: bool) -> Halves {
    let target = || {
        let target = &facts[facts[at].link as usize - start];
        if safe && target.is_loop() {
            Halves::ALL
        } else {
            target.before()
        }
    };
    match facts[at].way {
        Way::Next => next,
        Way::Branch => next.and(target()),
        Way::Goto => target(),
        Way::Exit => Halves::EFFECT,
    }
}
