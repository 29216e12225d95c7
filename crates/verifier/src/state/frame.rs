//! One stack frame: registers and stack of a function that is being verified.

use super::reg::{RegKind, RegState, TypeFlags};
use super::registers::Registers;
use super::stack::Stack;

/// [`Frame::callsite`] of the function that verification entered with.
pub const MAIN_CALLSITE: i32 = -1;

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
}

impl Frame {
    /// A fresh frame: only the frame pointer is initialised (`init_func_state`).
    #[doc(alias = "init_func_state")]
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
