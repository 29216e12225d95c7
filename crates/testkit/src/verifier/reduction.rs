//! Reduction of a program by rounds of many candidates, for who answers about many at once: a kernel that
//! is booted for each round.
//!
//! Rounds alternate. One takes out every run of instructions of halving length, each alone; the next takes
//! out several of those that helped together. Of `n` instructions a round has at most `2n` candidates, and
//! mostly five of them are made.

use std::collections::BTreeSet;

use program::Program;

use super::edit::{instructions, splice};

/// Candidates of a round that takes out several runs.
const UNIONS: usize = 24;
/// Rounds at most.
const ROUNDS: u32 = 12;

/// A program that is reduced.
#[derive(Clone, Debug)]
pub struct Reduction {
    program: Program,
    /// Instructions of the program that are taken out.
    removed: BTreeSet<usize>,
    /// What the candidates of this round take out in addition, of each; the most first in a round of unions.
    tried: Vec<BTreeSet<usize>>,
    is_union: bool,
    rounds: u32,
    is_done: bool,
}

impl Reduction {
    /// Reduction of a program that shows what is looked for.
    pub fn new(program: Program) -> Reduction {
        Reduction {
            program,
            removed: BTreeSet::new(),
            tried: Vec::new(),
            is_union: false,
            rounds: 0,
            is_done: false,
        }
    }

    /// The least program so far.
    pub fn least(&self) -> Program {
        without(&self.program, &self.removed).unwrap_or_else(|| self.program.clone())
    }

    /// Candidates of the next round; none if the reduction is over.
    pub fn candidates(&mut self) -> Vec<Program> {
        if self.is_done || self.rounds == ROUNDS {
            return Vec::new();
        }
        self.rounds += 1;
        if !self.is_union {
            self.tried = self.runs();
        }
        let mut made = Vec::new();
        self.tried.retain(|more| {
            let all: BTreeSet<usize> = self.removed.union(more).copied().collect();
            let candidate = without(&self.program, &all);
            let is_made = candidate.is_some();
            made.extend(candidate);
            is_made
        });
        self.is_done = made.is_empty();
        made
    }

    /// Goes on from the candidates of the round that show what is looked for.
    pub fn learn(&mut self, shows: &[bool]) {
        let tried = std::mem::take(&mut self.tried).into_iter().zip(shows);
        let mut helped: Vec<BTreeSet<usize>> = tried
            .filter_map(|(more, shows)| shows.then_some(more))
            .collect();
        helped.sort_by_key(|more| std::cmp::Reverse(more.len()));
        let Some(most) = helped.first() else {
            // Of a round of unions there is always the first, which helped alone.
            self.is_done = true;
            return;
        };
        if self.is_union || helped.len() == 1 {
            self.removed.extend(most);
            self.is_union = false;
            return;
        }
        let mut disjoint: Vec<&BTreeSet<usize>> = Vec::new();
        for more in &helped {
            if disjoint.iter().all(|other| other.is_disjoint(more)) {
                disjoint.push(more);
            }
        }
        let step = disjoint.len().div_ceil(UNIONS);
        let counts = (1..=disjoint.len()).filter(|count| *count == 1 || count % step == 0);
        self.tried = counts
            .map(|count| {
                disjoint[..count]
                    .iter()
                    .copied()
                    .flatten()
                    .copied()
                    .collect()
            })
            .collect();
        self.is_union = true;
    }

    /// Runs of the instructions that are left, of halving length.
    fn runs(&self) -> Vec<BTreeSet<usize>> {
        let all = 0..instructions(&self.program).len();
        let left: Vec<usize> = all.filter(|at| !self.removed.contains(at)).collect();
        let mut runs = Vec::new();
        let mut len = left.len() / 2;
        while len > 0 {
            runs.extend(left.chunks(len).map(|run| run.iter().copied().collect()));
            len /= 2;
        }
        runs
    }
}

/// A program without some of its instructions, by number.
fn without(program: &Program, removed: &BTreeSet<usize>) -> Option<Program> {
    let all = instructions(program);
    let mut left = program.clone();
    for at in removed.iter().rev() {
        left = splice(&left, all.get(*at)?.clone(), &[])?;
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use isa::ebpf::{assemble, encode};
    use spec::programs::ProgramType;

    use super::*;

    #[test]
    fn what_shows_nothing_is_taken_out() {
        let text =
            "r1 = 5 ll\nr2 = 1\nr3 = 2\nif r2 == 0 goto out\nr4 = 3\nr5 = 4\nout:\nr0 = 0\nexit";
        let insns = encode(&assemble(text).unwrap()).unwrap();
        let program = Program::builder(ProgramType::Xdp, insns).build().unwrap();
        let needed = encode(&assemble("r3 = 2\nr5 = 4\nexit").unwrap()).unwrap();
        let shows = |program: &Program| needed.iter().all(|insn| program.insns().contains(insn));
        let mut reduction = Reduction::new(program);
        loop {
            let candidates = reduction.candidates();
            if candidates.is_empty() {
                break;
            }
            let shown: Vec<bool> = candidates.iter().map(shows).collect();
            reduction.learn(&shown);
        }
        assert_eq!(reduction.least().insns(), needed);
    }
}
