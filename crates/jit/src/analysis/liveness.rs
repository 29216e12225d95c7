//! Which values are still wanted, carried backward from their uses.
//!
//! A first pass over every slot takes it that nothing is wanted where jumps lead
//! backward ([`carry`]; the scan does the same as it goes). Then each jump is asked
//! again, the last one first: where it wants more than it did, that alone is carried
//! on from there for as long as it makes a difference ([`settle`]). So what follows the
//! first pass only costs what a loop carries from one round to the next.
//!
//! Cost: linear. One or two rounds of jumps settle what compilers make; a function
//! that takes more than [`MOST_PASSES`] gets the safe answer that everything is
//! wanted where jumps lead backward.

use lower::Function;

use super::fact::{Fact, Marks};
use super::transfer::Halves;
use super::usage::Usage;

/// Passes after which a function gets the safe answer.
const MOST_PASSES: usize = 8;

/// Notes for every slot of a function what is wanted after it, if this is wanted
/// wherever a jump leads backward.
pub(super) fn carry(function: Function, behind: Halves, facts: &mut [Fact]) {
    let mut wanted = Halves::EFFECT;
    for at in (function.start..function.end).rev() {
        let fact = &facts[at];
        if fact.leaves() {
            if fact.stops() {
                wanted = Halves::EFFECT;
            }
            wanted = wanted.and(match fact.jump() {
                Some(target) if target > at => facts[target].before(),
                Some(_) => behind,
                None => Halves::NONE,
            });
        }
        wanted = facts[at].want(wanted);
    }
}

/// Carries back what is wanted once slots from `first` to `last` read and write
/// otherwise, for as long as it makes a difference, as after [`carry`] with nothing
/// wanted behind; says whether it came to an end before another way into the code.
pub(super) fn carry_change(first: usize, last: usize, facts: &mut [Fact]) -> bool {
    let mut wanted = facts[last].after;
    let mut at = last;
    loop {
        wanted = facts[at].want(wanted);
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let fact = &facts[before];
        if facts[at].is_target() {
            // Who jumps here saw what the slot before it did.
            return at <= first && !fact.leaves() && fact.after == wanted;
        }
        if fact.stops() {
            return true;
        }
        wanted = wanted.and(match fact.jump() {
            Some(target) if target > before => facts[target].before(),
            _ => Halves::EFFECT,
        });
        // What a selection leads over may have made up for the difference.
        let chosen = before > 0 && facts[before - 1].is_selection();
        if at <= first && wanted == fact.after && !chosen {
            return true;
        }
        at = before;
    }
}

/// Makes up for what [`carry`] left out where it took it that nothing is wanted,
/// given all jumps, the last one first.
pub(super) fn settle(functions: &[Function], usage: &[Usage], jumps: &[u32], facts: &mut [Fact]) {
    let mut before = jumps;
    for (&function, usage) in functions.iter().zip(usage).rev() {
        let own = before.partition_point(|&slot| slot as usize >= function.start);
        let (jumps, rest) = before.split_at(own);
        before = rest;
        if usage.loops {
            settle_loops(function, jumps, facts);
        }
    }
}

/// The same for the jumps of one function.
fn settle_loops(function: Function, jumps: &[u32], facts: &mut [Fact]) {
    let leads_back = |slot: &u32| facts[*slot as usize].jump() <= Some(*slot as usize);
    // What comes behind is as it was.
    let first = jumps.iter().position(leads_back).unwrap_or(jumps.len());
    for _ in 1..MOST_PASSES {
        if !ask_again(&jumps[first..], facts) {
            return;
        }
    }
    carry(function, Halves::ALL, facts);
}

/// Has each jump carry what is wanted where it leads; says whether that made a
/// difference to where a jump backward leads.
fn ask_again(jumps: &[u32], facts: &mut [Fact]) -> bool {
    let mut changed = false;
    for &jump in jumps {
        let at = jump as usize;
        if let Some(target) = facts[at].jump() {
            let wanted = facts[target].before();
            changed |= spread(&mut facts[..=at], wanted);
        }
    }
    changed
}

/// Has more wanted after the last of some slots, which jumps, and wherever control
/// comes to it from slot to slot; says whether that made a difference to where a jump
/// backward leads. Slots are looked at one by one: blocks are short, so that to know
/// what each writes, and to add the rest everywhere in it, takes longer. So does asking
/// the jumps on the way for what they want more, so that one walk does for both.
fn spread(facts: &mut [Fact], more: Halves) -> bool {
    /// Few slots have one of these, which are looked at apart.
    const RARE: Marks = Marks::LOOP.and(Marks::STOPS);
    let Some((jump, before)) = facts.split_last_mut() else {
        return false;
    };
    let mut more = more.without(jump.after);
    if more == Halves::NONE {
        return false;
    }
    let mut changed = jump.is_loop();
    more = jump.want_more(more);
    for fact in before.iter_mut().rev() {
        more = more.without(fact.after);
        if more == Halves::NONE {
            break;
        }
        if fact.marks.overlap(RARE) {
            if fact.stops() {
                break;
            }
            changed |= fact.is_loop();
        }
        more = fact.want_more(more);
    }
    changed
}
