//! Conversion of classic programs to the internal instruction set (eBPF).
//!
//! The result is an ordinary eBPF program: a socket filter whose context is
//! `struct __sk_buff`, or for seccomp one whose context is `struct seccomp_data`.
//!
//! | classic | internal |
//! |---|---|
//! | `A` | `r0`, so that a return needs no move |
//! | `X` | `r7`, which calls and packet loads keep |
//! | `M[i]` | four bytes of the stack at `r10 - 64 + 4 * i` |
//! | packet | `r6` holds the context, as legacy packet loads demand |
//! | `jt`/`jf` | one branch that falls through, inverted where that saves one |
//! | ancillary loads | context loads, or calls (`spec::calls`) |
//!
//! A backward pass finds which of `A`, `X` and `M[]` are read later, so that no
//! code is made for values that no one reads (`ldx 4*([14]&0xf)` needs no copy of
//! `A` when a load follows, as it nearly always does), and code that nothing
//! reaches is left out. Two passes, linear in the program's length; programs with
//! backward jumps (capture rules only) go on with the first where something
//! changed, at most once for each place at each instruction.

use isa::classic::{self as cbpf, AD_OFFSET, AluOp, Cond, Extension, Operand, Size, SockFilter};
use isa::ebpf::{self, ByteOrder, Callee, Insn, Reg, Width};
use spec::{calls, context};

use crate::{Checked, Rules, Semantics};

const A: Reg = Reg::R0;
const X: Reg = Reg::R7;
const CTX: Reg = Reg::R6;
/// Holds `A` while `r0` does other work.
const SAVED: Reg = Reg::R8;

/// A converted program.
#[derive(Clone, Debug)]
pub struct Converted {
    insns: Vec<Insn>,
    /// For each classic instruction the slot where its code starts.
    start: Vec<u32>,
    rules: Rules,
    semantics: Semantics,
}

impl Converted {
    /// The eBPF program, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// For each slot the classic instruction it comes from; `None` for the
    /// prologue.
    pub fn origin(&self) -> Vec<Option<usize>> {
        let mut origin = vec![None; self.insns.len()];
        let ends = self.start[1..]
            .iter()
            .copied()
            .chain([self.insns.len() as u32]);
        for (index, (&start, end)) in self.start.iter().zip(ends).enumerate() {
            origin[start as usize..end as usize].fill(Some(index));
        }
        origin
    }

    /// The program itself.
    pub fn into_insns(self) -> Vec<Insn> {
        self.insns
    }

    /// The rules that the classic program was checked by.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The semantics that it was converted for.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }
}

/// Converts a checked program. Seccomp filters know one semantics only, and
/// `semantics` does not matter for them.
pub fn convert(program: &Checked, semantics: Semantics) -> Converted {
    let insns = program.program();
    let live = Liveness::of(insns);
    let mut emitter = Emitter::new(program, semantics, live.reached);
    emitter.prologue(live.before[0]);
    for (index, &raw) in insns.iter().enumerate() {
        emitter.start.push(emitter.insns.len() as u32);
        if emitter.reached[index] {
            let next = index + 1;
            let after = live.before.get(next).copied().unwrap_or(Places::NONE);
            if emitter.convert(index, cbpf::Insn::decode(raw), after) {
                emitter.reached[next] = true;
            }
        }
    }
    emitter.patch_jumps();
    Converted {
        insns: emitter.insns,
        start: emitter.start,
        rules: program.rules(),
        semantics,
    }
}

/// A set of classic places: bit 0 `A`, bit 1 `X`, bits 2 to 17 `M[0]` to `M[15]`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Places(u32);

impl Places {
    const NONE: Places = Places(0);
    const ALL: Places = Places(u32::MAX);
    const A: Places = Places(1);
    const X: Places = Places(2);

    const fn memory(k: u32) -> Places {
        Places(4 << (k & 15))
    }

    const fn and(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    const fn without(self, other: Places) -> Places {
        Places(self.0 & !other.0)
    }

    const fn within(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    const fn has(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }
}

/// Which places are read from each instruction on before they are written.
/// After an instruction that does not jump, that is what holds before the next.
struct Liveness {
    before: Vec<Places>,
    /// What control can reach: the first instruction only, unless the program
    /// has backward jumps. Going through the program in order finds the rest.
    reached: Vec<bool>,
}

impl Liveness {
    fn of(program: &[SockFilter]) -> Liveness {
        let mut before = vec![Places::NONE; program.len()];
        let mut loops = false;
        for (index, &raw) in program.iter().enumerate().rev() {
            before[index] = live_before(raw, index, &before, &mut loops);
        }
        let mut reached = vec![false; program.len()];
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
    let after = match effect.flow {
        Flow::Next => before[next],
        Flow::Jump => before[next + raw.jt as usize].and(before[next + raw.jf as usize]),
        Flow::Goto => {
            let target = goto_target(index, raw.k);
            *loops |= target <= index;
            before[target]
        }
        Flow::End => Places::NONE,
    };
    if effect.loads_packet && raw.k >= AD_OFFSET {
        return ancillary_effect(raw.k, after);
    }
    let word = Places::memory(raw.k);
    let reads = effect.reads.and(word.within(effect.reads_word));
    let writes = effect.writes.and(word.within(effect.writes_word));
    after.without(writes).and(reads)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Jump,
    Goto,
    End,
}

/// What instructions of one opcode read and surely write, and where they lead.
/// In a table, because a `match` on each instruction of a program costs a
/// misprediction, several times the rest of this pass.
#[derive(Clone, Copy)]
struct Effect {
    reads: Places,
    writes: Places,
    /// All places where the word `M[k]` is read or written, else none.
    reads_word: Places,
    writes_word: Places,
    loads_packet: bool,
    flow: Flow,
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
            flow: match insn {
                Jump { .. } => Flow::Jump,
                Goto(_) => Flow::Goto,
                RetA | RetK(_) | Invalid(_) => Flow::End,
                _ => Flow::Next,
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
fn goto_target(index: usize, k: u32) -> usize {
    (index as i64 + 1 + i64::from(k as i32)) as usize
}

/// A jump whose offset is not known yet.
struct Patch {
    slot: u32,
    target: u32,
}

struct Emitter {
    insns: Vec<Insn>,
    start: Vec<u32>,
    patches: Vec<Patch>,
    reached: Vec<bool>,
    rules: Rules,
    semantics: Semantics,
}

impl Emitter {
    fn new(program: &Checked, semantics: Semantics, reached: Vec<bool>) -> Emitter {
        let len = program.program().len();
        Emitter {
            insns: Vec::with_capacity(len * 2 + 8),
            start: Vec::with_capacity(len),
            patches: Vec::with_capacity(len),
            reached,
            rules: program.rules(),
            semantics,
        }
    }

    #[inline(always)]
    fn emit(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    /// Zeroes what the program may read before it writes, and keeps the context.
    fn prologue(&mut self, live: Places) {
        self.emit(mov64(CTX, Reg::R1));
        if live.has(Places::A) {
            self.emit(mov_imm(A, 0));
        }
        if live.has(Places::X) {
            self.emit(mov_imm(X, 0));
        }
        for k in 0..cbpf::MEMORY_WORDS {
            if live.has(Places::memory(k)) {
                self.emit(Insn::Store {
                    size: ebpf::Size::W,
                    base: Reg::R10,
                    off: memory_offset(k),
                    src: ebpf::Operand::Imm(0),
                });
            }
        }
    }

    /// Converts one instruction, after which `live` is wanted; says whether control
    /// goes on to the next, and marks where else it goes.
    fn convert(&mut self, index: usize, insn: cbpf::Insn, live: Places) -> bool {
        use cbpf::Insn::*;
        match insn {
            LoadAbs { size, k } => self.load_absolute(size, k),
            LoadInd { size, k } => {
                self.emit(Insn::PacketInd {
                    size: memory_size(size),
                    src: X,
                    imm: k as i32,
                });
            }
            LoadXMsh(k) => self.load_header_length(k, live),
            LoadLen => self.load_length(A, live.has(Places::A)),
            LoadXLen => self.load_length(X, live.has(Places::X)),
            LoadImm(k) if live.has(Places::A) => self.emit(mov_imm(A, k as i32)),
            LoadXImm(k) if live.has(Places::X) => self.emit(mov_imm(X, k as i32)),
            LoadMem(k) if live.has(Places::A) => self.emit(load_memory(A, k)),
            LoadXMem(k) if live.has(Places::X) => self.emit(load_memory(X, k)),
            Store(k) if live.has(Places::memory(k)) => self.emit(store_memory(A, k)),
            StoreX(k) if live.has(Places::memory(k)) => self.emit(store_memory(X, k)),
            Tax if live.has(Places::X) => self.emit(mov32(X, A)),
            Txa if live.has(Places::A) => self.emit(mov32(A, X)),
            Neg if live.has(Places::A) => self.emit(Insn::Neg {
                width: Width::W32,
                dst: A,
            }),
            Alu { op, src } => self.arithmetic(op, src, live.has(Places::A)),
            Jump { cond, src, jt, jf } => {
                let next = index + 1;
                let (holds, fails) = (next + usize::from(jt), next + usize::from(jf));
                self.reached[holds] = true;
                self.reached[fails] = true;
                self.branch(cond, src, holds as u32, fails as u32, next as u32);
                return false;
            }
            Goto(k) => {
                let target = goto_target(index, k);
                self.reached[target] = true;
                self.goto(target as u32, index as u32 + 1);
                return false;
            }
            RetA => {
                self.emit(Insn::Exit);
                return false;
            }
            RetK(k) => {
                self.emit(mov_imm(A, k as i32));
                self.emit(Insn::Exit);
                return false;
            }
            // Their result is read by no one.
            LoadImm(_) | LoadXImm(_) | LoadMem(_) | LoadXMem(_) | Store(_) | StoreX(_) | Tax
            | Txa | Neg => {}
            Invalid(_) => unreachable!("the checker refuses unknown opcodes"),
        }
        true
    }

    fn load_absolute(&mut self, size: Size, k: u32) {
        if self.rules == Rules::Seccomp {
            self.emit(load_context(A, k as i16));
            return;
        }
        match self.semantics {
            // Such an offset lies beyond any packet.
            Semantics::Capture if k > i32::MAX as u32 => self.return_zero(),
            Semantics::Kernel if let Some(extension) = Extension::from_offset(k) => {
                self.load_extension(extension);
            }
            _ => self.emit(Insn::PacketAbs {
                size: memory_size(size),
                imm: k as i32,
            }),
        }
    }

    /// `X = 4 * (packet[k] & 15)`.
    fn load_header_length(&mut self, k: u32, live: Places) {
        if self.semantics == Semantics::Capture && k > i32::MAX as u32 {
            self.return_zero();
            return;
        }
        let keep = live.has(Places::A);
        if keep {
            self.emit(mov64(SAVED, A));
        }
        self.emit(Insn::PacketAbs {
            size: ebpf::Size::B,
            imm: k as i32,
        });
        if live.has(Places::X) {
            self.emit(alu_imm(ebpf::AluOp::And, A, 15));
            self.emit(alu_imm(ebpf::AluOp::Lsh, A, 2));
            self.emit(mov32(X, A));
        }
        if keep {
            self.emit(mov64(A, SAVED));
        }
    }

    fn load_length(&mut self, dst: Reg, live: bool) {
        if !live {
            return;
        }
        if self.rules == Rules::Seccomp {
            self.emit(mov_imm(dst, context::SECCOMP_DATA_SIZE as i32));
        } else {
            self.emit(load_context(dst, context::LEN.offset));
        }
    }

    fn load_extension(&mut self, extension: Extension) {
        let field = |emitter: &mut Emitter, field: context::Field| {
            emitter.emit(load_context(A, field.offset));
        };
        match extension {
            Extension::Protocol => {
                field(self, context::PROTOCOL);
                self.emit(from_network_order(A));
            }
            Extension::PktType => field(self, context::PKT_TYPE),
            Extension::Ifindex => self.load_from_device(context::IFINDEX),
            Extension::Hatype => self.load_from_device(context::HATYPE),
            Extension::Mark => field(self, context::MARK),
            Extension::Queue => field(self, context::QUEUE_MAPPING),
            Extension::Rxhash => field(self, context::HASH),
            Extension::VlanTci => field(self, context::VLAN_TCI),
            Extension::VlanPresent => field(self, context::VLAN_PRESENT),
            Extension::VlanTpid => {
                field(self, context::VLAN_PROTO);
                self.emit(from_network_order(A));
            }
            Extension::AluXorX => self.emit(alu_reg(ebpf::AluOp::Xor, A, X)),
            Extension::Cpu => self.emit(call(calls::GET_SMP_PROCESSOR_ID)),
            Extension::Random => self.emit(call(calls::GET_PRANDOM_U32)),
            Extension::PayOffset => {
                self.emit(mov64(Reg::R1, CTX));
                self.emit(call(calls::PAYLOAD_OFFSET));
            }
            Extension::Nlattr => self.call_with_a_and_x(calls::NETLINK_ATTRIBUTE),
            Extension::NlattrNest => self.call_with_a_and_x(calls::NETLINK_NESTED_ATTRIBUTE),
        }
    }

    /// Without a device the program ends with the accumulator.
    fn load_from_device(&mut self, field: context::Field) {
        self.emit(load_context(Reg::R1, context::HAS_DEVICE.offset));
        self.emit(jump_imm(ebpf::Cond::Ne, Reg::R1, 0, 1));
        self.emit(Insn::Exit);
        self.emit(load_context(A, field.offset));
    }

    fn call_with_a_and_x(&mut self, number: i32) {
        self.emit(mov64(Reg::R1, CTX));
        self.emit(mov64(Reg::R2, A));
        self.emit(mov64(Reg::R3, X));
        self.emit(call(number));
    }

    fn arithmetic(&mut self, op: AluOp, src: Operand, live: bool) {
        let by_x = src == Operand::X;
        match op {
            // Division by a zero X ends the program with 0.
            AluOp::Div | AluOp::Mod if by_x => {
                self.emit(jump_imm(ebpf::Cond::Ne, X, 0, 2));
                self.return_zero();
            }
            AluOp::Lsh | AluOp::Rsh if by_x && self.semantics == Semantics::Capture && live => {
                self.emit(jump_imm(ebpf::Cond::Lt, X, 32, 1));
                self.emit(mov_imm(A, 0));
                // The count is masked, and shifting 0 changes nothing.
            }
            _ => {}
        }
        if live {
            let op = match op {
                AluOp::Add => ebpf::AluOp::Add,
                AluOp::Sub => ebpf::AluOp::Sub,
                AluOp::Mul => ebpf::AluOp::Mul,
                AluOp::Div => ebpf::AluOp::Div,
                AluOp::Or => ebpf::AluOp::Or,
                AluOp::And => ebpf::AluOp::And,
                AluOp::Lsh => ebpf::AluOp::Lsh,
                AluOp::Rsh => ebpf::AluOp::Rsh,
                AluOp::Mod => ebpf::AluOp::Mod,
                AluOp::Xor => ebpf::AluOp::Xor,
            };
            self.emit(match src {
                Operand::X => alu_reg(op, A, X),
                Operand::K(k) => alu_imm(op, A, k as i32),
            });
        }
    }

    /// One branch where one of the ways falls through, inverted if need be.
    fn branch(&mut self, cond: Cond, src: Operand, holds: u32, fails: u32, next: u32) {
        let (cond, inverse) = match cond {
            Cond::Eq => (ebpf::Cond::Eq, Some(ebpf::Cond::Ne)),
            Cond::Gt => (ebpf::Cond::Gt, Some(ebpf::Cond::Le)),
            Cond::Ge => (ebpf::Cond::Ge, Some(ebpf::Cond::Lt)),
            Cond::Set => (ebpf::Cond::Set, None),
        };
        let src = match src {
            Operand::K(k) => ebpf::Operand::Imm(k as i32),
            Operand::X => ebpf::Operand::Reg(X),
        };
        match inverse {
            _ if holds == fails => self.goto(holds, next),
            Some(inverse) if holds == next => self.jump(inverse, src, fails),
            _ => {
                self.jump(cond, src, holds);
                self.goto(fails, next);
            }
        }
    }

    fn jump(&mut self, cond: ebpf::Cond, src: ebpf::Operand, target: u32) {
        self.patch_later(target);
        self.emit(Insn::Jump {
            cond,
            width: Width::W32,
            dst: A,
            src,
            off: 0,
        });
    }

    fn goto(&mut self, target: u32, next: u32) {
        if target != next {
            self.patch_later(target);
            self.emit(Insn::GotoLong { off: 0 });
        }
    }

    fn return_zero(&mut self) {
        self.emit(mov_imm(A, 0));
        self.emit(Insn::Exit);
    }

    fn patch_later(&mut self, target: u32) {
        self.patches.push(Patch {
            slot: self.insns.len() as u32,
            target,
        });
    }

    /// Conditional jumps reach at most 255 classic instructions, each at most
    /// nine slots long, so 16 bits always hold them; `ja` takes the long form
    /// where it must.
    fn patch_jumps(&mut self) {
        for patch in &self.patches {
            let distance = self.start[patch.target as usize] as i32 - (patch.slot as i32 + 1);
            match &mut self.insns[patch.slot as usize] {
                Insn::Jump { off, .. } => *off = distance as i16,
                goto => {
                    *goto = match i16::try_from(distance) {
                        Ok(off) => Insn::Goto { off },
                        Err(_) => Insn::GotoLong { off: distance },
                    }
                }
            }
        }
    }
}

fn memory_size(size: Size) -> ebpf::Size {
    match size {
        Size::B => ebpf::Size::B,
        Size::H => ebpf::Size::H,
        Size::W => ebpf::Size::W,
    }
}

fn memory_offset(k: u32) -> i16 {
    4 * k as i16 - 4 * cbpf::MEMORY_WORDS as i16
}

fn load_memory(dst: Reg, k: u32) -> Insn {
    Insn::Load {
        size: ebpf::Size::W,
        signed: false,
        dst,
        base: Reg::R10,
        off: memory_offset(k),
    }
}

fn store_memory(src: Reg, k: u32) -> Insn {
    let src = ebpf::Operand::Reg(src);
    Insn::Store {
        size: ebpf::Size::W,
        base: Reg::R10,
        off: memory_offset(k),
        src,
    }
}

fn load_context(dst: Reg, off: i16) -> Insn {
    Insn::Load {
        size: ebpf::Size::W,
        signed: false,
        dst,
        base: CTX,
        off,
    }
}

fn alu_imm(op: ebpf::AluOp, dst: Reg, imm: i32) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Imm(imm),
    }
}

fn alu_reg(op: ebpf::AluOp, dst: Reg, src: Reg) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Reg(src),
    }
}

fn mov_imm(dst: Reg, imm: i32) -> Insn {
    alu_imm(ebpf::AluOp::Mov, dst, imm)
}

fn mov32(dst: Reg, src: Reg) -> Insn {
    alu_reg(ebpf::AluOp::Mov, dst, src)
}

fn mov64(dst: Reg, src: Reg) -> Insn {
    let (op, src) = (ebpf::AluOp::Mov, ebpf::Operand::Reg(src));
    Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src,
    }
}

fn from_network_order(dst: Reg) -> Insn {
    Insn::Endian {
        order: ByteOrder::Big,
        size: ebpf::Size::H,
        dst,
    }
}

fn jump_imm(cond: ebpf::Cond, dst: Reg, imm: i32, off: i16) -> Insn {
    Insn::Jump {
        cond,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Imm(imm),
        off,
    }
}

fn call(number: i32) -> Insn {
    Insn::Call(Callee::Helper(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use std::time::{Duration, Instant};

    fn converted(program: &[SockFilter], rules: Rules, semantics: Semantics) -> Vec<Insn> {
        let checked = check(program, rules).expect("the test's program is valid");
        convert(&checked, semantics).into_insns()
    }

    #[test]
    fn values_that_no_one_reads_cost_no_code() {
        // ldx 4*([14]&0xf); ldh [x + 14]; jeq #22; ret #1; ret #0
        let program = [
            SockFilter::new(0xb1, 0, 0, 14),
            SockFilter::new(0x48, 0, 0, 14),
            SockFilter::new(0x15, 0, 1, 22),
            SockFilter::new(0x06, 0, 0, 1),
            SockFilter::new(0x06, 0, 0, 0),
        ];
        let insns = converted(&program, Rules::Socket, Semantics::Kernel);
        // The context, five for the header, the load, one branch, two returns:
        // A and X need no zero, A no copy.
        assert_eq!(insns.len(), 1 + 4 + 1 + 1 + 4);
    }

    #[test]
    fn hostile_loops_convert_in_linear_time() {
        // Each ja leads to the one before it; the first of them to the end.
        let n = 200_000u32;
        let mut program = vec![SockFilter::new(0x05, 0, 0, n - 1)];
        program.push(SockFilter::new(0x05, 0, 0, n - 1));
        program.extend((2..=n).map(|_| SockFilter::new(0x05, 0, 0, -2i32 as u32)));
        program.push(SockFilter::new(0x16, 0, 0, 0));
        let start = Instant::now();
        let insns = converted(&program, Rules::Capture, Semantics::Capture);
        assert!(!insns.is_empty());
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}
