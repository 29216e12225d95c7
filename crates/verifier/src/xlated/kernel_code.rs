//! The kernel's form of a program, which does not run here: what Linux compiles after it has
//! removed dead code and rewritten the rest (`convert_ctx_accesses`, `do_misc_fixups`).
//!
//! Divisions by a register are guarded against 0, signed ones against -1, `may_goto` counts
//! in two slots of the function's stack. What depends on addresses and structures of one
//! kernel is left open: accesses to the context and to objects of the kernel, packet loads of
//! classic BPF, calls that the kernel may inline. Linear in the instructions.

use isa::ebpf::{
    AluOp, AtomicOp, ByteOrder, Callee, Effect, Flow, Imm64, Insn, Op, Operand, PseudoCall,
    PseudoLoad, RawInsn, Reg, Size, Width, encode,
};
use spec::registry::RegBase;

use crate::{LiveCode, PointerKind, ProgramFacts, Value};
use AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};

/// A program as the kernel compiles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    /// Its slots.
    pub slots: Vec<FormSlot>,
    /// By slot of the whole program, the first slot of what the instruction became; `None` if
    /// it was removed.
    pub new_slots: Vec<Option<u32>>,
    /// Slot of the program's first instruction. In front of it the kernel may put
    /// instructions of its own, which make the packet writable.
    pub begin: u32,
    /// Number of instructions that the kernel puts in front of the first one.
    pub prologue: u32,
}

impl KernelCode {
    /// The kernel's number of each slot, and behind them the number of all instructions. A slot
    /// of which the kernel makes an unknown number of instructions counts as one.
    pub fn places(&self) -> Vec<u32> {
        let mut places = Vec::with_capacity(self.slots.len() + 1);
        let mut place = 0;
        for (number, slot) in (0u32..).zip(&self.slots) {
            if number == self.begin {
                place += self.prologue;
            }
            places.push(place);
            place += slot.insns.unwrap_or(1);
        }
        places.push(place);
        places
    }

    /// The instruction in a slot, with the distance that it has in the kernel; `places` are
    /// [`KernelCode::places`].
    pub fn placed(&self, slot: usize, places: &[u32]) -> RawInsn {
        let mut insn = self.slots[slot].insn;
        let (distance, is_short) = match led(&insn) {
            Some(distance) => distance,
            None => return insn,
        };
        let target = (slot as i64 + 1 + distance) as usize;
        let (Some(target), Some(place)) = (places.get(target), places.get(slot)) else {
            return insn;
        };
        let distance = i64::from(*target) - i64::from(*place) - 1;
        match is_short {
            true => insn.off = distance as i16,
            false => insn.imm = distance as i32,
        }
        insn
    }

    /// Number of instructions that the kernel has of the program; `None` if that of one of them
    /// is not known.
    pub fn insns(&self) -> Option<u32> {
        let slots = self.slots.iter().map(|slot| slot.insns);
        Some(slots.sum::<Option<u32>>()? + self.prologue)
    }
}

/// The distance in an instruction, and true if it is in `off`.
fn led(insn: &RawInsn) -> Option<(i64, bool)> {
    let is_call = insn.pseudo_call() == Some(PseudoCall::Local);
    if is_call || insn.pseudo_load() == Some(PseudoLoad::Func) {
        return Some((insn.imm.into(), false));
    }
    match insn.opcode_flow() {
        Flow::Goto(distance) => Some((distance.into(), !is_long(insn))),
        Flow::Branch(distance) => Some((distance.into(), true)),
        Flow::Next
        | Flow::SkipOne
        | Flow::GotoReg(_)
        | Flow::Call(_)
        | Flow::Exit
        | Flow::Nowhere => None,
    }
}

/// True for `gotol`, whose distance is in `imm`.
fn is_long(insn: &RawInsn) -> bool {
    insn.row().is_some_and(|row| row.effect == Effect::GotoLong)
}

/// A slot of the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormSlot {
    /// The instruction. Register 11 is the kernel's own (`BPF_REG_AX`).
    pub insn: RawInsn,
    /// True if the kernel puts one or several instructions of its own in its place.
    pub is_open: bool,
    /// Number of the kernel's instructions in its place, if it is known.
    pub insns: Option<u32>,
}

/// The kernel's own register.
const AX: u8 = 11;
const FRAME: u8 = Reg::R10.number();
/// Iterations of `may_goto` until the clock is read (`BPF_MAX_TIMED_LOOPS`).
const ITERATIONS: i32 = 0xffff;
/// Bytes of stack that hold the remaining iterations and the time of the first one.
const LOOP_STATE: u32 = 16;

/// A slot of an operation; registers may be [`AX`].
fn raw(op: Op, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
    op.row().slot(dst, src, off, imm)
}

/// The kernel's form of what is left of a program (`do_misc_fixups`, `bpf_do_misc_fixups`).
#[doc(alias = "do_misc_fixups")]
#[doc(alias = "bpf_do_misc_fixups")]
pub(super) fn kernel_code(live: &LiveCode, facts: &ProgramFacts) -> KernelCode {
    let insns = encode(&live.insns).unwrap_or_default();
    let old_slots = (0u32..).zip(&live.new_slots);
    let old_slots = old_slots.filter_map(|(old, new)| new.is_some().then_some(old));
    let old_slots: Vec<u32> = old_slots.collect();
    let mut form = Form {
        live,
        facts,
        slots: Vec::with_capacity(insns.len()),
        begins: Vec::with_capacity(insns.len() + 1),
        entries: Vec::with_capacity(insns.len() + 1),
        jumps: Vec::new(),
    };
    for (slot, (insn, old)) in insns.iter().zip(&old_slots).enumerate() {
        form.add(slot, *insn, *old);
    }
    form.begins.push(form.slots.len());
    form.entries.push(form.slots.len());
    form.set_distances();
    let place = |new: &Option<u32>| new.map(|new| form.entries[new as usize] as u32);
    KernelCode {
        new_slots: live.new_slots.iter().map(place).collect(),
        begin: form.begins[0] as u32,
        prologue: facts.prologue,
        slots: form.slots,
    }
}

struct Form<'f> {
    live: &'f LiveCode,
    facts: &'f ProgramFacts,
    slots: Vec<FormSlot>,
    /// By live slot, where what it became begins: jumps lead here.
    begins: Vec<usize>,
    /// The same with what is put before the first instruction of a function: calls lead here.
    entries: Vec<usize>,
    /// Slots with a distance, and the live slots that they lead to.
    jumps: Vec<(usize, usize)>,
}

impl Form<'_> {
    /// Adds what an instruction becomes, which was at `old` in the whole program.
    fn add(&mut self, slot: usize, insn: RawInsn, old: u32) {
        self.entries.push(self.slots.len());
        if let Some(depth) = self.loop_stack_from(old) {
            let place = -(depth as i16);
            self.push(raw(Op::StoreImm64, FRAME, 0, place, ITERATIONS));
            self.push(raw(Op::StoreImm64, FRAME, 0, place + 8, 0));
        }
        self.begins.push(self.slots.len());
        let decoded = self.live.insns[slot];
        if let Some(guarded) = guarded_division(decoded) {
            guarded.into_iter().for_each(|insn| self.push(insn));
        } else if let Insn::MayGoto { off } = decoded {
            self.add_may_goto(slot, off, old);
        } else {
            let target = target(slot, decoded);
            self.jumps
                .extend(target.map(|target| (self.slots.len(), target)));
            let is_open = self.is_open(decoded, old);
            let insns = match is_open {
                true => self
                    .facts
                    .insns
                    .get(old as usize)
                    .and_then(|it| it.rewritten_insns),
                false => Some(1),
            };
            self.slots.push(FormSlot {
                insn: self.narrowed(insn, decoded, old),
                is_open,
                insns,
            });
            if self.extends(decoded, slot) {
                // `imm` 1 marks the kernel's own zero-extensions.
                self.push(RawInsn {
                    imm: 1,
                    ..raw(Op::MovReg32, 0, 0, 0, 0)
                });
            }
        }
    }

    /// The instruction, computed in 32 bits if an operand is a pointer into an arena.
    fn narrowed(&self, insn: RawInsn, decoded: Insn, old: u32) -> RawInsn {
        let Insn::Alu { op, dst, src, .. } = decoded else {
            return insn;
        };
        let fact = self.facts.insns.get(old as usize);
        let mut operands = fact.iter().flat_map(|fact| &fact.operands);
        let is_pointer = operands.any(|(_, value)| {
            let kind = value.pointer().map(|pointer| pointer.kind);
            kind == Some(PointerKind::Other {
                base: RegBase::PtrToArena,
            })
        });
        let width = Width::W32;
        let narrow = Insn::Alu {
            op,
            width,
            dst,
            src,
        }
        .encode();
        match narrow.filter(|_| op != Mov && is_pointer) {
            Some((narrow, _)) => narrow,
            None => insn,
        }
    }

    fn push(&mut self, insn: RawInsn) {
        self.slots.push(FormSlot {
            insn,
            is_open: false,
            insns: Some(1),
        });
    }

    /// Counts the iterations, and calls the kernel for more when they are used up.
    fn add_may_goto(&mut self, slot: usize, off: i16, old: u32) {
        let place = -(self.stack_of(old) as i16);
        self.push(raw(Op::Load64, AX, FRAME, place, 0));
        let target = (slot + 1).saturating_add_signed(off.into());
        self.jumps.push((self.slots.len(), target));
        self.push(raw(Op::IfEqImm64, AX, 0, 0, 0));
        self.push(raw(Op::SubImm64, AX, 0, 0, 1));
        self.push(raw(Op::IfNeImm64, AX, 0, 2, 0));
        self.push(raw(Op::MovImm64, AX, 0, 0, place.into()));
        // The address of the kernel's function is not known.
        self.push(raw(Op::CallHelper, 0, 0, 0, 0));
        self.push(raw(Op::StoreReg64, FRAME, AX, place, 0));
    }

    /// The bytes of stack of the function whose first live instruction this is, which was at
    /// `old` in the whole program, if it counts iterations of `may_goto`.
    fn loop_stack_from(&self, old: u32) -> Option<u32> {
        let functions = &self.facts.compiled_stack;
        let after = functions.partition_point(|function| function.start <= old);
        let function = functions[..after].last()?;
        let end = functions.get(after).map_or(u32::MAX, |next| next.start);
        let slots = (0u32..).zip(&self.live.new_slots);
        let own = slots.filter(|(slot, _)| (function.start..end).contains(slot));
        let mut live = own.filter_map(|(slot, new)| Some((slot, (*new)?)));
        let (first, new) = live.next()?;
        let is_loop = |new: u32| {
            matches!(
                self.live.insns.get(new as usize),
                Some(Insn::MayGoto { .. })
            )
        };
        let counts = first == old && (is_loop(new) || live.any(|(_, new)| is_loop(new)));
        counts.then_some(function.bytes)
    }

    /// The bytes of stack of the function that an instruction of the whole program is in.
    fn stack_of(&self, old: u32) -> u32 {
        let functions = &self.facts.compiled_stack;
        let after = functions.partition_point(|function| function.start <= old);
        functions[..after].last().map_or(LOOP_STATE, |it| it.bytes)
    }

    /// True if the kernel rewrites the instruction in a way of its own.
    fn is_open(&self, insn: Insn, old: u32) -> bool {
        let fact = self.facts.insns.get(old as usize);
        match insn {
            Insn::Call(Callee::Local(_)) => false,
            Insn::Call(_) | Insn::PacketAbs { .. } | Insn::PacketInd { .. } => true,
            Insn::Cast { .. } => true,
            _ => fact.is_some_and(|fact| {
                let of_kernel = match &fact.access {
                    None => false,
                    Some(Value::Pointer(pointer)) => is_of_kernel(pointer.kind),
                    Some(Value::Mixed | Value::Scalar(_)) => true,
                };
                of_kernel || fact.accesses_object
            }),
        }
    }

    /// True if the kernel clears the upper half of `r0` behind the instruction: a 32-bit
    /// compare-and-exchange leaves it as it was where the exchange fails
    /// (`opt_subreg_zext_lo32_rnd_hi32`, `bpf_opt_subreg_zext_lo32_rnd_hi32`). It does so where all
    /// 64 bits are read later, whether the upper half matters or not.
    #[doc(alias = "opt_subreg_zext_lo32_rnd_hi32")]
    #[doc(alias = "bpf_opt_subreg_zext_lo32_rnd_hi32")]
    fn extends(&self, insn: Insn, slot: usize) -> bool {
        let is_exchange = matches!(
            insn,
            Insn::Atomic {
                op: AtomicOp::CmpXchg,
                size: Size::W,
                ..
            }
        );
        is_exchange && self.result_is_read_whole(slot)
    }

    /// True if all of `r0` is read on a path from an instruction before it is written again
    /// (`mark_insn_zext`).
    #[doc(alias = "mark_insn_zext")]
    fn result_is_read_whole(&self, slot: usize) -> bool {
        let mut open = vec![slot + 1];
        let mut is_seen = vec![false; self.live.insns.len()];
        while let Some(slot) = open.pop() {
            let Some(&insn) = self.live.insns.get(slot).filter(|_| !is_seen[slot]) else {
                continue;
            };
            is_seen[slot] = true;
            if reads_whole_result(insn) {
                return true;
            }
            if insn.writes().contains(Reg::R0) || matches!(insn, Insn::Exit) {
                continue;
            }
            if !matches!(insn, Insn::Goto { .. } | Insn::GotoLong { .. }) {
                open.push(slot + 1);
            }
            let is_jump = !matches!(insn, Insn::Call(_) | Insn::LoadImm64 { .. });
            open.extend(target(slot, insn).filter(|_| is_jump));
        }
        false
    }

    /// Sets distances to what their targets became.
    fn set_distances(&mut self) {
        for &(at, target) in &self.jumps {
            let insn = &mut self.slots[at].insn;
            let is_call = insn.is_call() || insn.is_wide_load();
            let places = match is_call {
                true => &self.entries,
                false => &self.begins,
            };
            let distance = places[target] as i64 - at as i64 - 1;
            match is_call || is_long(insn) {
                true => insn.imm = distance as i32,
                false => insn.off = distance as i16,
            }
        }
    }
}

/// True if the instruction reads all 64 bits of `r0` (`is_reg64`, `bpf_is_reg64`).
#[doc(alias = "is_reg64")]
#[doc(alias = "bpf_is_reg64")]
fn reads_whole_result(insn: Insn) -> bool {
    let is_whole = match insn {
        Insn::Alu { width, .. }
        | Insn::Neg { width, .. }
        | Insn::MovSx { width, .. }
        | Insn::Jump { width, .. } => width == Width::W64,
        Insn::Endian { order, size, .. } => size == Size::DW || order == ByteOrder::Swap,
        Insn::Store { size, .. } | Insn::StoreRelease { size, .. } | Insn::Atomic { size, .. } => {
            size == Size::DW
        }
        // Addresses, arguments and results.
        Insn::Cast { .. }
        | Insn::LoadImm64 { .. }
        | Insn::Imm64High
        | Insn::Load { .. }
        | Insn::LoadAcquire { .. }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::Call(_)
        | Insn::CallReg { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => true,
    };
    is_whole && insn.reads().contains(Reg::R0)
}

/// True for what only one kernel knows the layout of (`convert_ctx_accesses`).
#[doc(alias = "convert_ctx_accesses")]
fn is_of_kernel(kind: PointerKind) -> bool {
    match kind {
        PointerKind::MapValue(_)
        | PointerKind::MapKey(_)
        | PointerKind::Stack { .. }
        | PointerKind::Packet
        | PointerKind::PacketMeta
        | PointerKind::PacketEnd
        | PointerKind::FlowKeys
        | PointerKind::Memory { .. } => false,
        PointerKind::Context
        | PointerKind::Map(_)
        | PointerKind::Function { .. }
        | PointerKind::Other { .. } => true,
    }
}

/// The slot that an instruction leads to by a distance.
fn target(slot: usize, insn: Insn) -> Option<usize> {
    let distance = match insn {
        Insn::Goto { off } | Insn::Jump { off, .. } | Insn::MayGoto { off } => off.into(),
        Insn::GotoLong { off } | Insn::Call(Callee::Local(off)) => off,
        Insn::LoadImm64 {
            imm: Imm64::Func { off, .. },
            ..
        } => off,
        _ => return None,
    };
    (slot + 1).checked_add_signed(distance as isize)
}

/// A division or remainder with what keeps it from failing: by a register that may be 0, and
/// signed ones by -1, whose result may not fit.
pub(super) fn guarded_division(insn: Insn) -> Option<Vec<RawInsn>> {
    let Insn::Alu {
        op,
        width,
        dst,
        src,
    } = insn
    else {
        return None;
    };
    let (is_division, is_signed) = match op {
        Div => (true, false),
        SDiv => (true, true),
        Mod => (false, false),
        SMod => (false, true),
        Add | Sub | Mul | Or | And | Xor | Lsh | Rsh | Arsh | Mov => return None,
    };
    let is_64 = width == Width::W64;
    let of_width = |wide, narrow| if is_64 { wide } else { narrow };
    let (insn, dst) = (insn.encode()?.0, dst.number());
    let skip = |slots| raw(Op::Goto, 0, 0, slots, 0);
    let negated = raw(of_width(Op::Neg64, Op::Neg32), dst, 0, 0, 0);
    let zero = raw(Op::MovImm32, dst, 0, 0, 0);
    let src = match src {
        Operand::Reg(src) => src.number(),
        Operand::Imm(imm) => {
            let by_minus_one = is_signed && imm == -1;
            let result = if is_division { negated } else { zero };
            return by_minus_one.then(|| vec![result]);
        }
    };
    // The upper half of a 32-bit remainder is cleared where the division is left out.
    let cleared = [skip(1), raw(Op::MovReg32, dst, dst, 0, 0)];
    let cleared: &[RawInsn] = if is_64 || is_division { &[] } else { &cleared };
    // 0 or -1: one more is at most 1.
    let shifted = [
        raw(Op::MovReg64, AX, src, 0, 0),
        raw(of_width(Op::AddImm64, Op::AddImm32), AX, 0, 0, 1),
    ];
    let if_equal = of_width(Op::IfEqImm64, Op::IfEqImm32);
    let if_differs = of_width(Op::IfNeImm64, Op::IfNeImm32);
    let if_greater = of_width(Op::IfGtImm64, Op::IfGtImm32);
    let guards = match (is_division, is_signed) {
        (true, true) => vec![
            shifted[0],
            shifted[1],
            raw(if_greater, AX, 0, 4, 1),
            raw(if_equal, AX, 0, 1, 0),
            raw(of_width(Op::MovImm64, Op::MovImm32), dst, 0, 0, 0),
            negated,
            skip(1),
            insn,
        ],
        (false, true) => vec![
            shifted[0],
            shifted[1],
            raw(if_greater, AX, 0, 3, 1),
            raw(if_equal, AX, 0, 3 + i16::from(!is_64), 1),
            zero,
            skip(1),
            insn,
        ],
        (true, false) => vec![
            raw(if_differs, src, 0, 2, 0),
            raw(Op::XorReg32, dst, dst, 0, 0),
            skip(1),
            insn,
        ],
        (false, false) => vec![raw(if_equal, src, 0, 1 + i16::from(!is_64), 0), insn],
    };
    Some([&guards, cleared].concat())
}
