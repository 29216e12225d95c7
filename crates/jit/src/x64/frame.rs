//! Register assignment and the stack frame of a function.
//!
//! Arguments are in the registers of the platform's calling convention, so calls move
//! nothing:
//!
//! | program | machine | |
//! |---|---|---|
//! | `r0` | `rax` | the result |
//! | `r1` to `r5` | `rdi`, `rsi`, `rdx`, `rcx`, `r8` | arguments, caller-saved |
//! | `r6` to `r9` | `rbx`, `rbp`, `r13`, `r14`, `r15` | callee-saved, saved where used |
//! | | `r11` | scratch register of the generator |
//! | | `r12` | the [`NativeContext`](crate::native::NativeContext), where it is used |
//!
//! In a leaf function, `r6` to `r9` are assigned to caller-saved registers while there are
//! any, a stack of up to 128 bytes lies in the red zone, and the packet's address and length
//! stay in the registers in which the entry receives them.

use isa::ebpf::Reg;
use std::ops::Deref;

use vm::FRAME_BYTES;

use super::reg::{Gpr, GprSet, Mem};
use crate::analysis::Usage;

/// Scratch of the generator, never assigned.
pub(super) const SCRATCH: Gpr = Gpr::R11;
/// The native context in functions that use it and may call.
pub(super) const CONTEXT: Gpr = Gpr::R12;
/// Where the entry receives the packet's address, its length and the native context.
pub(super) const ENTRY_DATA: Gpr = Gpr::RDX;
pub(super) const ENTRY_LEN: Gpr = Gpr::RCX;
pub(super) const ENTRY_CONTEXT: Gpr = Gpr::R8;

const ARGUMENTS: [(Reg, Gpr); 5] = [
    (Reg::R1, Gpr::RDI),
    (Reg::R2, Gpr::RSI),
    (Reg::R3, Gpr::RDX),
    (Reg::R4, Gpr::RCX),
    (Reg::R5, Gpr::R8),
];
/// Callee-saved registers in the order of assignment: the first two need no prefix byte.
const CALLEE_SAVED: [Gpr; 6] = [Gpr::RBX, Gpr::RBP, Gpr::R14, Gpr::R15, Gpr::R13, Gpr::R12];
/// Bytes below the stack pointer that nothing else touches.
const RED_ZONE: i32 = 128;

/// What the code generator requires of a frame beside the function's usage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// The host calls the function; in others the native context is in [`CONTEXT`].
    pub(super) is_entry: bool,
    /// The native context is used, in an entry also by a function that it calls.
    pub(super) env: bool,
    /// There are calls that no instruction shows (packet loads beyond the data).
    pub(super) hidden_calls: bool,
    /// The run may end in a function that it calls, which then restores nothing.
    pub(super) saves_all: bool,
    /// It counts the rounds of its loops.
    pub(super) counts: bool,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// By the register's number, with more places than numbers.
    map: [Gpr; 16],
    /// Machine registers that stand for something.
    used: GprSet,
    /// Pushed in this order, `rbp` as the frame's register not among them.
    pub(super) saved: Saved,
    /// `r10` is this far above the register that stands for it.
    top: i32,
    /// `rbp` holds the frame.
    by_rbp: bool,
    /// Subtracted from `rsp`: after the pushes, or before them where `rbp` holds
    /// the frame.
    pub(super) reserved: i32,
    /// Offset from `r10` of the counter of `may_goto`.
    pub(super) may_goto: Option<i32>,
    /// The packet's address and length, where they are in registers.
    pub(super) packet: Option<(Gpr, Gpr)>,
    /// The register of the native context, if it is used.
    pub(super) env: Option<Gpr>,
    /// The register in which the function counts rounds; others count in memory.
    pub(super) fuel: Option<Gpr>,
}

/// The registers that a function saves, in order.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    gprs: [Gpr; 8],
    len: u8,
}

impl Saved {
    const NONE: Saved = Saved {
        gprs: [Gpr::RAX; 8],
        len: 0,
    };

    fn push(&mut self, gpr: Gpr) {
        self.gprs[usize::from(self.len)] = gpr;
        self.len += 1;
    }
}

impl Deref for Saved {
    type Target = [Gpr];

    fn deref(&self) -> &[Gpr] {
        &self.gprs[..usize::from(self.len)]
    }
}

impl Frame {
    /// Of no function.
    pub(super) const NONE: Frame = Frame {
        map: [Gpr::RAX; 16],
        used: GprSet::of(&[Gpr::RAX, Gpr::RSP, SCRATCH]),
        saved: Saved::NONE,
        top: 0,
        by_rbp: false,
        reserved: 0,
        may_goto: None,
        packet: None,
        env: None,
        fuel: None,
    };

    /// Lays out the frame of a function, in its place.
    pub(super) fn lay_out(&mut self, usage: &Usage, demand: Demand) {
        let calls = usage.calls_helpers || usage.calls_functions;
        *self = Frame::NONE;
        for (reg, gpr) in ARGUMENTS {
            self.map[reg.index()] = gpr;
            if usage.has(reg) || calls {
                self.used.insert(gpr);
            }
        }
        let below = if usage.may_goto { 8 } else { 0 };
        let bytes = stack_depth(usage) + below;
        // Code that pushes while it works wants offsets that do not move.
        let by_rbp = bytes > 0 && (usage.complex || usage.stack_accesses > 4 || bytes > RED_ZONE);
        if by_rbp {
            self.used.insert(Gpr::RBP);
        }
        self.place_packet(usage, calls, demand);
        self.place_environment(usage, calls, demand);
        self.place_callee_saved(usage, calls);
        if demand.counts && !calls {
            self.place_ticks();
        }
        if demand.saves_all {
            self.save_all(by_rbp);
        }
        let undisturbed = !calls && !demand.hidden_calls && !usage.complex;
        self.place_stack(bytes, by_rbp, undisturbed);
        if usage.may_goto {
            self.may_goto = Some(-bytes);
        }
    }

    fn place_packet(&mut self, usage: &Usage, calls: bool, demand: Demand) {
        let free = !self.used.contains(ENTRY_DATA) && !self.used.contains(ENTRY_LEN);
        if usage.packet && !calls && demand.is_entry && free {
            self.used.insert(ENTRY_DATA);
            self.used.insert(ENTRY_LEN);
            self.packet = Some((ENTRY_DATA, ENTRY_LEN));
        }
    }

    fn place_environment(&mut self, usage: &Usage, calls: bool, demand: Demand) {
        let in_memory = usage.packet && self.packet.is_none();
        if !demand.is_entry {
            self.env = Some(CONTEXT);
        } else if demand.env || usage.calls_helpers || in_memory {
            let stays = !calls && !self.used.contains(ENTRY_CONTEXT);
            self.env = Some(if stays { ENTRY_CONTEXT } else { CONTEXT });
            if !stays {
                self.saved.push(CONTEXT);
            }
        }
        self.used.insert(self.env.unwrap_or(SCRATCH));
    }

    fn place_callee_saved(&mut self, usage: &Usage, calls: bool) {
        let kept = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        for reg in kept.into_iter().filter(|&reg| usage.has(reg)) {
            let lost = if calls { None } else { self.spare() };
            let gpr = lost.unwrap_or_else(|| {
                let kept = CALLEE_SAVED
                    .into_iter()
                    .find(|&gpr| !self.used.contains(gpr));
                let gpr =
                    kept.expect("r6 to r9, r10 and the environment are no more than CALLEE_SAVED");
                self.saved.push(gpr);
                gpr
            });
            self.used.insert(gpr);
            self.map[reg.index()] = gpr;
        }
    }

    /// Takes a register that no instruction of the machine has a use of its own for.
    fn place_ticks(&mut self) {
        let mut unbound = [Gpr::R10, Gpr::R9].into_iter();
        self.fuel = unbound.find(|&gpr| !self.used.contains(gpr));
        self.used.insert(self.fuel.unwrap_or(SCRATCH));
    }

    /// Saves what functions that it calls save, too.
    fn save_all(&mut self, by_rbp: bool) {
        for gpr in CALLEE_SAVED {
            let by_itself = by_rbp && gpr == Gpr::RBP;
            if !by_itself && !self.saved.contains(&gpr) {
                self.saved.push(gpr);
            }
        }
    }

    /// `undisturbed` tells whether nothing is pushed while the function works.
    fn place_stack(&mut self, bytes: i32, by_rbp: bool, undisturbed: bool) {
        // The call of this function left rsp 8 below a multiple of 16.
        let pushed = 8 + 8 * (self.saved.len() as i32 + i32::from(by_rbp));
        let in_red_zone = bytes <= RED_ZONE && (!by_rbp || self.saved.is_empty());
        self.reserved = if !undisturbed {
            ((pushed + bytes) as u32).next_multiple_of(16) as i32 - pushed
        } else if in_red_zone {
            0
        } else {
            bytes
        };
        self.by_rbp = by_rbp;
        (self.map[Reg::R10.index()], self.top) = if by_rbp {
            (Gpr::RBP, 0)
        } else {
            (Gpr::RSP, self.reserved)
        };
    }

    /// The machine register that stands for a register; for `r10`, the one that it
    /// is a constant away from.
    #[inline(always)]
    pub(super) fn gpr(&self, reg: Reg) -> Gpr {
        self.map[reg.index() & 15]
    }

    /// Whether the machine register stands for this register.
    pub(super) fn holds(&self, reg: Reg, gpr: Gpr) -> bool {
        self.map[reg.index()] == gpr
    }

    /// Whether the machine register holds the packet or the environment.
    pub(super) fn is_special(&self, gpr: Gpr) -> bool {
        self.env == Some(gpr)
            || self
                .packet
                .is_some_and(|(data, len)| data == gpr || len == gpr)
    }

    /// Where `r10` points.
    pub(super) fn stack_top(&self) -> Mem {
        Mem::at(self.gpr(Reg::R10), self.top)
    }

    /// The address `base + off`.
    #[inline(always)]
    pub(super) fn address(&self, base: Reg, off: i16) -> Mem {
        let top = if base == Reg::R10 { self.top } else { 0 };
        Mem::at(self.gpr(base), top + i32::from(off))
    }

    /// Bytes between `rsp` and where `rbp` points, if `rbp` holds the frame.
    pub(super) fn below_rbp(&self) -> i32 {
        self.reserved + 8 * self.saved.len() as i32
    }

    /// Whether `rbp` holds the frame, so that `leave` ends it.
    pub(super) fn has_rbp(&self) -> bool {
        self.by_rbp
    }

    /// A register that calls lose and that stands for nothing here.
    pub(super) fn spare(&self) -> Option<Gpr> {
        const CALLER_SAVED: [Gpr; 7] = [
            Gpr::RCX,
            Gpr::RDX,
            Gpr::RSI,
            Gpr::RDI,
            Gpr::R8,
            Gpr::R9,
            Gpr::R10,
        ];
        CALLER_SAVED
            .into_iter()
            .find(|&gpr| !self.used.contains(gpr))
    }

    /// The registers in use that a call of the host's functions would lose.
    pub(super) fn live_caller_saved(&self) -> impl DoubleEndedIterator<Item = Gpr> {
        const OTHERS: [Gpr; 3] = [Gpr::RAX, Gpr::RSP, SCRATCH];
        let kept = GprSet::of(&CALLEE_SAVED);
        self.used
            .iter()
            .filter(move |gpr| !kept.contains(*gpr) && !OTHERS.contains(gpr))
    }
}

/// Bytes below `r10` that a function may access.
fn stack_depth(usage: &Usage) -> i32 {
    if usage.stack_escapes {
        FRAME_BYTES as i32
    } else {
        -i32::from(usage.lowest_stack)
    }
}
