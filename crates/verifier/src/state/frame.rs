//! One stack frame: registers and stack of a function that is being verified.

use super::reg::{RegKind, RegState, TypeFlags};
use super::registers::Registers;
use super::stack::Stack;

/// [`Frame::callsite`] of the function that verification entered with.
pub const MAIN_CALLSITE: i32 = -1;

/// Place of a register: number of the frame and of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegPlace(u8);

impl RegPlace {
    /// A register of a frame.
    pub const fn new(frame: usize, reg: usize) -> RegPlace {
        RegPlace((frame << 4 | reg) as u8)
    }

    /// Number of the frame.
    pub const fn frame(self) -> usize {
        (self.0 >> 4) as usize
    }

    /// Number of the register.
    pub const fn reg(self) -> usize {
        (self.0 & 15) as usize
    }
}

/// What the path did to a frame since the last checkpoint, where liveness goes by marks.
#[derive(Clone, Copy, Debug)]
pub struct FrameMarks {
    /// Registers that were written, one bit each.
    pub written_regs: u16,
    /// Slots that were written, one bit each.
    pub written_slots: u64,
    /// The frame was entered since then.
    pub is_fresh: bool,
    /// The places of the checkpoint that registers came from.
    origins: [Option<RegPlace>; 10],
}

impl FrameMarks {
    /// Those of a frame that was entered.
    pub const FRESH: FrameMarks = FrameMarks {
        written_regs: 0,
        written_slots: 0,
        is_fresh: true,
        origins: [None; 10],
    };

    /// Those of a frame right behind a checkpoint.
    pub fn connected(number: usize) -> FrameMarks {
        let mut origins = [None; 10];
        for (reg, origin) in origins.iter_mut().enumerate() {
            *origin = Some(RegPlace::new(number, reg));
        }
        FrameMarks {
            origins,
            is_fresh: false,
            ..FrameMarks::FRESH
        }
    }

    /// Where a register came from, unless it was written.
    pub fn origin(&self, reg: usize) -> Option<RegPlace> {
        match self.written_regs & 1 << reg {
            0 => *self.origins.get(reg)?,
            _ => None,
        }
    }

    /// Takes a register with its marks from another frame.
    pub fn take_reg(&mut self, reg: usize, from: &FrameMarks, other: usize) {
        let is_written = from.written_regs >> other & 1;
        self.written_regs = self.written_regs & !(1 << reg) | is_written << reg;
        self.origins[reg] = from.origins[other];
    }
}

/// Registers and stack of one function on the call chain (kernel:
/// `struct bpf_func_state`) (`bpf_func_state`).
#[doc(alias = "bpf_func_state")]
#[derive(Clone, Debug)]
pub struct Frame {
    /// `r0` to `r10`.
    pub regs: Registers,
    /// Its stack.
    pub stack: Stack,
    /// Index of the call instruction, or [`MAIN_CALLSITE`].
    pub callsite: i32,
    /// Number of the frame on the call chain, 0 for the entry function.
    pub frameno: u32,
    /// Subprogram that executes.
    pub subprogno: u32,
    /// Counts the asynchronous callbacks started, to tell their states apart.
    pub async_entry_cnt: u32,
    /// Allowed return values of a callback.
    pub callback_ret_range: (i32, i32),
    /// The function runs as a callback of a helper or kfunc.
    pub in_callback_fn: bool,
    /// The function runs as an asynchronous callback.
    pub in_async_callback_fn: bool,
    /// The function is the exception callback.
    pub in_exception_callback_fn: bool,
    /// Simulated iterations of the callback that frame N+1 executes.
    pub callback_depth: u32,
    /// What was done to it since the last checkpoint.
    pub marks: FrameMarks,
}

impl Frame {
    /// A fresh frame: only the frame pointer is initialised (`init_func_state`, `init_reg_state`).
    #[doc(alias = "init_func_state")]
    #[doc(alias = "init_reg_state")]
    pub fn new(callsite: i32, frameno: u32, subprogno: u32) -> Frame {
        let mut regs = Registers::not_init();
        regs[10] = RegState::pointer(RegKind::Stack { frame: frameno }, TypeFlags::NONE);
        Frame {
            regs,
            stack: Stack::default(),
            callsite,
            frameno,
            subprogno,
            async_entry_cnt: 0,
            callback_ret_range: (0, 0),
            in_callback_fn: false,
            in_async_callback_fn: false,
            in_exception_callback_fn: false,
            callback_depth: 0,
            marks: FrameMarks::FRESH,
        }
    }

    /// Bytes of stack that the slots cover.
    pub fn allocated_stack(&self) -> usize {
        self.stack.len() * 8
    }

    /// Extends the stack to cover at least `bytes` below the frame pointer (`grow_stack_state`).
    #[doc(alias = "grow_stack_state")]
    pub fn grow_stack(&mut self, bytes: usize) {
        self.stack.grow(bytes.div_ceil(8));
    }

    /// The register spilled in slot `spi`, if one is.
    pub fn spilled(&self, spi: usize) -> Option<&RegState> {
        self.stack
            .get(spi)
            .filter(|slot| slot.is_spilled())
            .map(|slot| &slot.reg)
    }
}
