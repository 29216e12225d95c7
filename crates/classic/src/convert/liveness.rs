//! Liveness and reachability of classic programs.
//!
//! With forward jumps only, the pass that emits the code (`code.rs`) computes liveness from
//! the effect of each opcode. For programs with backward jumps (capture rules only) a
//! work-list algorithm iterates to the fixpoint; each place is added at most once at each
//! instruction.

use isa::classic::{self as cbpf, AD_OFFSET, Extension, Operand, SockFilter};

use super::code::Mark;
use super::forms::{Step, form};

/// A set of classic places: bit 0 `A`, bit 1 `X`, bits 2 to 17 `M[0]` to `M[15]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places(u32);

impl Places {
    pub(super) const NONE: Places = Places(0);
    const ALL: Places = Places(u32::MAX);
    pub(super) const A: Places = Places(1);
    pub(super) const X: Places = Places(2);

    pub(super) const fn memory(k: u32) -> Places {
        Places(4 << (k & 15))
    }

    pub(super) const fn union(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Places) -> Places {
        Places(self.0 & !other.0)
    }

    const fn within(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    pub(super) const fn has(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }
}

/// Reachability of each instruction.
pub(super) fn reached(program: &[SockFilter]) -> Vec<bool> {
    let mut reached = vec![false; program.len()];
    reached[0] = true;
    let mut pending = vec![0];
    while let Some(index) = pending.pop() {
        let raw = program[index];
        for target in successors(raw, index) {
            if !reached[target] {
                reached[target] = true;
                pending.push(target);
            }
        }
    }
    reached
}

/// Computes the live-in sets of a program with loops by iteration to the fixpoint.
pub(super) fn iterate_to_fixpoint(program: &[SockFilter], marks: &mut [Mark]) {
    let edges = Edges::of(program);
    let mut pending: Vec<u32> = (0..program.len() as u32).collect();
    while let Some(index) = pending.pop() {
        let index = index as usize;
        let raw = program[index];
        let after =
            successors(raw, index).fold(Places::NONE, |live, next| live.union(marks[next].live));
        let new = form(raw).effect.before(raw, after);
        if marks[index].live != new {
            marks[index].live = new;
            pending.extend(edges.predecessors(index));
        }
    }
}

/// True if the program has backward jumps.
pub(super) fn has_loops(program: &[SockFilter]) -> bool {
    program
        .iter()
        .any(|&raw| matches!(form(raw).step, Step::Goto) & ((raw.k as i32) < 0))
}

/// Predecessors of each instruction.
struct Edges {
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Edges {
    fn of(program: &[SockFilter]) -> Edges {
        let len = program.len();
        let edges = || {
            program.iter().enumerate().flat_map(|(index, &raw)| {
                let targets = successors(raw, index);
                targets.map(move |target| (index as u32, target))
            })
        };
        let mut first = vec![0; len + 1];
        edges().for_each(|(_, to)| first[to + 1] += 1);
        for index in 0..len {
            first[index + 1] += first[index];
        }
        let mut free = first.clone();
        let mut from = vec![0; first[len] as usize];
        for (index, to) in edges() {
            from[free[to] as usize] = index;
            free[to] += 1;
        }
        Edges { first, from }
    }

    fn predecessors(&self, to: usize) -> impl Iterator<Item = u32> {
        self.from[self.first[to] as usize..self.first[to + 1] as usize]
            .iter()
            .copied()
    }
}

/// Effect of an opcode on liveness: places that it reads and always writes.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    reads: Places,
    writes: Places,
    /// All places if the word `M[k]` is read or written, otherwise none.
    reads_word: Places,
    writes_word: Places,
    loads_packet: bool,
}

impl Effect {
    pub(super) const fn of(insn: cbpf::Insn) -> Effect {
        use cbpf::Insn::*;
        const NONE: Places = Places::NONE;
        const A: Places = Places::A;
        const X: Places = Places::X;
        let (reads, writes) = match insn {
            LoadAbs { .. } | LoadLen | LoadImm(_) | LoadMem(_) => (NONE, A),
            LoadInd { .. } | Txa => (X, A),
            LoadXImm(_) | LoadXLen | LoadXMsh(_) | LoadXMem(_) => (NONE, X),
            Store(_) | RetA => (A, NONE),
            StoreX(_) => (X, NONE),
            Alu { src, .. } => (A.union(operand(src)), A),
            Jump { src, .. } => (A.union(operand(src)), NONE),
            Neg => (A, A),
            Tax => (A, X),
            Goto(_) | RetK(_) | Invalid(_) => (NONE, NONE),
        };
        let reads_word = matches!(insn, LoadMem(_) | LoadXMem(_));
        let writes_word = matches!(insn, Store(_) | StoreX(_));
        Effect {
            reads,
            writes,
            reads_word: if reads_word { Places::ALL } else { NONE },
            writes_word: if writes_word { Places::ALL } else { NONE },
            loads_packet: matches!(insn, LoadAbs { .. }),
        }
    }

    /// Live-in set for a live-out set, for instructions without scratch memory.
    #[inline(always)]
    pub(super) fn before_plain(&self, after: Places) -> Places {
        after.without(self.writes).union(self.reads)
    }

    /// Live-in set for a live-out set.
    #[inline(always)]
    pub(super) fn before(&self, raw: SockFilter, after: Places) -> Places {
        if self.loads_packet && raw.k >= AD_OFFSET {
            return before_ancillary(raw.k, after);
        }
        let word = Places::memory(raw.k);
        let after = after.without(word.within(self.writes_word));
        self.before_plain(after).union(word.within(self.reads_word))
    }
}

/// The place that an operand reads.
const fn operand(src: Operand) -> Places {
    match src {
        Operand::X => Places::X,
        Operand::K(_) => Places::NONE,
    }
}

/// Live-in set of an ancillary load.
fn before_ancillary(k: u32, after: Places) -> Places {
    match Extension::from_offset(k) {
        // These may end the program with A.
        Some(Extension::Ifindex | Extension::Hatype) => after.union(Places::A),
        Some(Extension::Nlattr | Extension::NlattrNest | Extension::AluXorX) => {
            after.union(Places::A).union(Places::X)
        }
        _ => after.without(Places::A),
    }
}

/// Successors of the instruction at `index`.
fn successors(raw: SockFilter, index: usize) -> impl Iterator<Item = usize> {
    let next = index + 1;
    let targets = match cbpf::Insn::decode(raw) {
        cbpf::Insn::RetA | cbpf::Insn::RetK(_) => [None, None],
        cbpf::Insn::Goto(k) => [Some(goto_target(index, k)), None],
        cbpf::Insn::Jump { jt, jf, .. } => [jt, jf].map(|skip| Some(next + usize::from(skip))),
        _ => [Some(next), None],
    };
    targets.into_iter().flatten()
}

/// The target of `ja`. Its operand is signed under capture rules; under other rules it is
/// checked to be small.
#[inline(always)]
pub(super) fn goto_target(index: usize, k: u32) -> usize {
    (index as i64 + 1 + i64::from(k as i32)) as usize
}
