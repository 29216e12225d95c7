//! Chains of comparisons: one 32-bit register against constants, one after the
//! other, as rule lists and `switch` compile to.
//!
//! A chain is followed through the program (`if w0 == 1 goto a; if w0 != 2 goto
//! b; …; b: if w0 == 3 …`), because it may be laid out either way. It only leads
//! forward, so it cannot loop. Every slot belongs to at most one chain, so the
//! work is linear. Whoever makes code of a chain may look the value up instead of
//! comparing again and again.

use isa::ebpf::{Cond, Insn, Operand, Reg, Width};

use crate::jumps::{Arrivals, falls_through, jump_target};

/// Chains from this length on are worth a look-up.
pub const SHORTEST: usize = 4;

/// A forward branch of a 32-bit register on a constant.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The condition.
    pub cond: Cond,
    /// The register.
    pub dst: Reg,
    /// The constant.
    pub imm: i32,
    /// The slot where it leads when the condition holds.
    pub target: usize,
}

impl Test {
    /// The branch at `slot`, if it is such.
    pub fn at(insns: &[Insn], slot: usize) -> Option<Test> {
        match *insns.get(slot)? {
            Insn::Jump {
                cond,
                width: Width::W32,
                dst,
                src: Operand::Imm(imm),
                off,
            } if off >= 0 => Some(Test {
                cond,
                dst,
                imm,
                target: slot + 1 + off as usize,
            }),
            _ => None,
        }
    }
}

/// One comparison of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it stands.
    pub slot: u32,
    /// The constant.
    pub key: u32,
    /// The slot where control goes when the register equals it.
    pub target: u32,
}

/// A chain of comparisons of one register for equality.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// The register, of which the low half is compared.
    pub dst: Reg,
    /// The comparisons in the order of testing; the first of equal keys wins.
    pub links: &'a [Link],
    /// The slot where a value goes that is no key.
    pub default: usize,
}

/// What a slot has to do with chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    None,
    /// A chain begins here.
    Start,
    /// A comparison that is also reached by other ways than its chain, and so
    /// needs code of its own.
    Shared,
    /// A comparison that is only reached through its chain, from the start.
    Absorbed,
}

/// Whether a chain could begin at this slot: most programs have none, and whoever
/// asks this of their jumps need not look for them in earnest.
pub fn begins(insns: &[Insn], slot: usize) -> bool {
    Chains::default().begins(insns, slot)
}

/// All chains of a program.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    /// In ascending order of the first slot.
    chains: Vec<Found>,
    links: Vec<Link>,
    /// What each slot is; empty when there is no chain.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    dst: Reg,
    default: u32,
    links: (u32, u32),
}

impl Chains {
    /// Finds the chains of a program: linear in its length.
    pub fn find(insns: &[Insn], arrivals: &Arrivals) -> Chains {
        let mut chains = Chains {
            chains: Vec::new(),
            links: Vec::new(),
            parts: Vec::new(),
        };
        for slot in arrivals.jumps() {
            if chains.begins(insns, slot) {
                chains.follow(insns, arrivals, slot);
            }
        }
        chains
    }

    /// All of them, in ascending order of the first slot.
    pub fn iter(&self) -> impl Iterator<Item = Chain<'_>> {
        self.chains.iter().map(|found| self.chain(*found))
    }

    /// The chain that begins at this slot.
    pub fn starting_at(&self, slot: usize) -> Option<Chain<'_>> {
        if !self.starts(slot) {
            return None;
        }
        let index = self
            .chains
            .partition_point(|found| (self.links[found.links.0 as usize].slot as usize) < slot);
        Some(self.chain(self.chains[index]))
    }

    fn chain(&self, found: Found) -> Chain<'_> {
        let (from, to) = found.links;
        Chain {
            dst: found.dst,
            links: &self.links[from as usize..to as usize],
            default: found.default as usize,
        }
    }

    /// Whether a chain begins at this slot.
    pub fn starts(&self, slot: usize) -> bool {
        self.part(slot) == Part::Start
    }

    /// Whether the slot's comparison is done by its chain whenever control gets
    /// there, so that it needs no code of its own.
    pub fn absorb(&self, slot: usize) -> bool {
        self.part(slot) == Part::Absorbed
    }

    /// Whether the slot is a comparison of a chain that has code of its own too.
    /// A look-up goes straight to what follows it, so that code must not be made
    /// one with the next slot's.
    pub fn shares(&self, slot: usize) -> bool {
        self.part(slot) == Part::Shared
    }

    fn part(&self, slot: usize) -> Part {
        self.parts.get(slot).copied().unwrap_or(Part::None)
    }

    fn begins(&self, insns: &[Insn], slot: usize) -> bool {
        let Some(test) = Test::at(insns, slot) else {
            return false;
        };
        let mut at = slot;
        (0..SHORTEST).all(|_| match self.link(insns, at, test.dst) {
            Some((_, next)) => {
                at = next;
                true
            }
            None => false,
        })
    }

    /// The comparison at `slot`, if it can be part of a new chain on `dst`, and
    /// where the next one would stand.
    fn link(&self, insns: &[Insn], slot: usize, dst: Reg) -> Option<(Link, usize)> {
        let test = Test::at(insns, slot)?;
        if test.dst != dst || self.part(slot) != Part::None {
            return None;
        }
        let (equal, next) = match test.cond {
            Cond::Eq => (test.target, slot + 1),
            Cond::Ne => (slot + 1, test.target),
            _ => return None,
        };
        // A branch to the next slot decides nothing, and its target would be a
        // comparison that the chain absorbs.
        if equal == next {
            return None;
        }
        let link = Link {
            slot: slot as u32,
            key: test.imm as u32,
            target: equal as u32,
        };
        Some((link, next))
    }

    fn follow(&mut self, insns: &[Insn], arrivals: &Arrivals, start: usize) {
        let Some(Test { dst, .. }) = Test::at(insns, start) else {
            return;
        };
        if self.parts.is_empty() {
            self.parts = vec![Part::None; insns.len()];
        }
        let from = self.links.len() as u32;
        let (mut slot, mut previous) = (start, start);
        while let Some((link, next)) = self.link(insns, slot, dst) {
            self.links.push(link);
            self.parts[slot] = if slot == start {
                Part::Start
            } else if self.parts[previous] != Part::Shared
                && only_from(insns, arrivals, slot, previous)
            {
                Part::Absorbed
            } else {
                // Its own code falls through to the next, which is thus shared too.
                Part::Shared
            };
            (slot, previous) = (next, slot);
        }
        self.chains.push(Found {
            dst,
            default: slot as u32,
            links: (from, self.links.len() as u32),
        });
    }
}

/// Whether the test at `slot` is reached from the test at `previous` alone.
fn only_from(insns: &[Insn], arrivals: &Arrivals, slot: usize, previous: usize) -> bool {
    let fallen_into = slot - 1 != previous && falls_through(insns[slot - 1]);
    let by_chain = u32::from(jump_target(insns[previous], previous) == Some(slot));
    !fallen_into && arrivals.count(slot) == by_chain
}
