//! Which places are read later, and what control can reach.
//!
//! One backward pass, table-driven: a `match` on each instruction of a program
//! costs a misprediction, several times the rest of the work. Programs with
//! backward jumps (capture rules only) go on with it where something changed, at
//! most once for each place at each instruction.

use isa::classic::{self as cbpf, AD_OFFSET, Extension, Operand, SockFilter};

/// A set of classic places: bit 0 `A`, bit 1 `X`, bits 2 to 17 `M[0]` to `M[15]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places(u32);

impl Places {
    pub(super) const NONE: Places = Places(0);
    pub(super) const ALL: Places = Places(u32::MAX);
    pub(super) const A: Places = Places(1);
    pub(super) const X: Places = Places(2);

    pub(super) const fn memory(k: u32) -> Places {
        Places(4 << (k & 15))
    }

    pub(super) const fn and(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    const fn without(self, other: Places) -> Places {
        Places(self.0 & !other.0)
    }

    pub(super) const fn within(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    pub(super) const fn has(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }
}

/// Which places are read from each instruction on before they are written.
/// After an instruction that does not jump, that is what holds before the next.
pub(super) struct Liveness {
    /// One for each instruction, and nothing after the last.
    pub(super) before: Vec<Places>,
    /// What control can reach: the first instruction only, unless the program
    /// has backward jumps. Going through the program in order finds the rest.
    pub(super) reached: Vec<bool>,
}

impl Liveness {
    pub(super) fn of(program: &[SockFilter]) -> Liveness {
        let mut before = vec![Places::NONE; program.len() + 1];
        let mut loops = false;
        for (index, &raw) in program.iter().enumerate().rev() {
            before[index] = live_before(raw, index, &before, &mut loops);
        }
        let mut reached = vec![false; program.len() + 1];
        reached[0] = true;
        let mut live = Liveness { before, reached };
        if loops {
            let edges = Edges::of(program);
            live.settle(program, &edges);
            live.reach_all(program);
        }
        live
    }

    /// Carries what is live around loops until nothing changes.
    fn settle(&mut self, program: &[SockFilter], edges: &Edges) {
        let mut pending: Vec<u32> = (0..program.len() as u32).collect();
        while let Some(index) = pending.pop() {
            let index = index as usize;
            let new = live_before(program[index], index, &self.before, &mut false);
            if self.before[index] != new {
                self.before[index] = new;
                pending.extend(edges.into(index));
            }
        }
    }

    /// Marks all that control can reach, in whatever order.
    fn reach_all(&mut self, program: &[SockFilter]) {
        let mut pending = vec![0];
        while let Some(index) = pending.pop() {
            for next in successors(cbpf::Insn::decode(program[index]), index)
                .into_iter()
                .flatten()
            {
                if !self.reached[next] {
                    self.reached[next] = true;
                    pending.push(next);
                }
            }
        }
    }
}

/// Which instructions lead to which: for each the range of its predecessors.
struct Edges {
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Edges {
    fn of(program: &[SockFilter]) -> Edges {
        let edges = || {
            program.iter().enumerate().flat_map(|(index, &raw)| {
                let next = successors(cbpf::Insn::decode(raw), index);
                next.into_iter()
                    .flatten()
                    .map(move |next| (index as u32, next))
            })
        };
        let mut first = vec![0; program.len() + 1];
        edges().for_each(|(_, to)| first[to + 1] += 1);
        for index in 0..program.len() {
            first[index + 1] += first[index];
        }
        let mut free = first.clone();
        let mut from = vec![0; first[program.len()] as usize];
        for (index, to) in edges() {
            from[free[to] as usize] = index;
            free[to] += 1;
        }
        Edges { first, from }
    }

    fn into(&self, to: usize) -> impl Iterator<Item = u32> {
        self.from[self.first[to] as usize..self.first[to + 1] as usize]
            .iter()
            .copied()
    }
}

/// What is live before an instruction, where `before` says so for those it leads
/// to; `loops` is set if it leads backwards.
#[inline(always)]
fn live_before(raw: SockFilter, index: usize, before: &[Places], loops: &mut bool) -> Places {
    let effect = &EFFECTS[usize::from(raw.code as u8)];
    let next = index + 1;
    let after = if effect.goto {
        let target = goto_target(index, raw.k);
        *loops |= target <= index;
        before[target]
    } else {
        let [holds, fails] = [raw.jt, raw.jf].map(|skip| next + (usize::from(skip) & effect.jump));
        before[holds].and(before[fails]).within(effect.continues)
    };
    if effect.loads_packet && raw.k >= AD_OFFSET {
        return ancillary_effect(raw.k, after);
    }
    let word = Places::memory(raw.k);
    let reads = effect.reads.and(word.within(effect.reads_word));
    let writes = effect.writes.and(word.within(effect.writes_word));
    after.without(writes).and(reads)
}

/// What instructions of one opcode read and surely write, and where they lead.
#[derive(Clone, Copy)]
struct Effect {
    reads: Places,
    writes: Places,
    /// All places where the word `M[k]` is read or written, else none.
    reads_word: Places,
    writes_word: Places,
    loads_packet: bool,
    /// All ones where `jt` and `jf` are jumps, else zero.
    jump: usize,
    goto: bool,
    /// None where the program ends, else all places.
    continues: Places,
}

const EFFECTS: [Effect; 256] = {
    let mut effects = [Effect::of(cbpf::Insn::RetA); 256];
    let mut code = 0;
    while code < effects.len() {
        let raw = SockFilter::new(code as u16, 0, 0, 0);
        effects[code] = Effect::of(cbpf::Insn::decode(raw));
        code += 1;
    }
    effects
};

impl Effect {
    const fn of(insn: cbpf::Insn) -> Effect {
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
            Alu { src, .. } => (A.and(operand(src)), A),
            Jump { src, .. } => (A.and(operand(src)), NONE),
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
            jump: match insn {
                Jump { .. } => usize::MAX,
                _ => 0,
            },
            goto: matches!(insn, Goto(_)),
            continues: match insn {
                RetA | RetK(_) | Invalid(_) => NONE,
                _ => Places::ALL,
            },
        }
    }
}

/// The place that an operand reads.
const fn operand(src: Operand) -> Places {
    match src {
        Operand::X => Places::X,
        Operand::K(_) => Places::NONE,
    }
}

/// What is live before a load in the ancillary area.
#[cold]
fn ancillary_effect(k: u32, after: Places) -> Places {
    match Extension::from_offset(k) {
        // These can end the program with A.
        Some(Extension::Ifindex | Extension::Hatype) => after.and(Places::A),
        Some(Extension::Nlattr | Extension::NlattrNest | Extension::AluXorX) => {
            after.and(Places::A).and(Places::X)
        }
        _ => after.without(Places::A),
    }
}

/// Where control can go from the instruction at `index`.
fn successors(insn: cbpf::Insn, index: usize) -> [Option<usize>; 2] {
    match insn {
        cbpf::Insn::RetA | cbpf::Insn::RetK(_) => [None, None],
        cbpf::Insn::Goto(k) => [Some(goto_target(index, k)), None],
        cbpf::Insn::Jump { jt, jf, .. } => {
            [Some(index + 1 + jt as usize), Some(index + 1 + jf as usize)]
        }
        _ => [Some(index + 1), None],
    }
}

/// The target of `ja`; capture rules read its operand as signed, and the others
/// have checked that it is small.
pub(super) fn goto_target(index: usize, k: u32) -> usize {
    (index as i64 + 1 + i64::from(k as i32)) as usize
}
