//! Which values are still wanted, carried backward from their uses.
//!
//! Cost: linear. Two or three passes settle what compilers make; a function that
//! takes more than [`MOST_PASSES`] gets the safe answer that everything is wanted
//! where its loops begin.

use lower::Function;

use super::transfer::Halves;
use super::{Fact, Way};

/// Passes after which a function gets the safe answer.
const MOST_PASSES: usize = 8;

/// Notes for every slot of a function what is wanted after it.
pub(super) fn settle(function: Function, loops: bool, facts: &mut [Fact]) {
    let facts = &mut facts[function.start..function.end];
    for pass in 0..=MOST_PASSES {
        let safe = pass == MOST_PASSES;
        if safe {
            for fact in facts.iter_mut().filter(|fact| fact.is_loop) {
                fact.before = Halves::ALL;
            }
        }
        let changed = go_back(function.start, facts, safe);
        if !changed || !loops {
            return;
        }
    }
}

/// One pass backward over a function that begins at a slot; says whether a loop
/// wants more at its beginning than the pass assumed.
fn go_back(start: usize, facts: &mut [Fact], safe: bool) -> bool {
    let mut changed = false;
    let mut wanted = Halves::NONE;
    for at in (0..facts.len()).rev() {
        let target = |facts: &[Fact], link: u32| facts[link as usize - start].before;
        match facts[at].way {
            Way::Next => {}
            Way::Branch => wanted = wanted.and(target(facts, facts[at].link)),
            Way::Goto => wanted = target(facts, facts[at].link),
            Way::Exit => wanted = Halves::NONE,
        }
        let fact = &mut facts[at];
        fact.after = wanted;
        fact.is_dead = !fact.transfer.is_wanted(wanted);
        if !fact.is_dead {
            wanted = fact.transfer.before(wanted);
        }
        if fact.is_loop {
            changed |= wanted != fact.before;
            if safe {
                wanted = Halves::ALL;
            }
        }
        fact.before = wanted;
    }
    changed
}
