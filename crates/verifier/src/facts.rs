//! The passes before the walk: control flow, subprograms, prune points, strongly
//! connected components, live registers, fastcall patterns.

use crate::Result;
use crate::env::Env;
use crate::log::Sink;
use crate::state::State;

/// What the passes find out about an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsnFacts {
    /// States are compared here.
    pub prune_point: bool,
    /// The history records the way here.
    pub jmp_point: bool,
    /// A state is always kept here.
    pub force_checkpoint: bool,
    /// The call takes a callback.
    pub calls_callback: bool,
    /// Part of a spill or fill of a fastcall pattern.
    pub fastcall_pattern: bool,
    /// Of a call, the number of spill and fill pairs of its fastcall pattern.
    pub fastcall_spills: u8,
    /// Strongly connected component; 0: none.
    pub scc: u32,
    /// Registers live before the instruction, one bit each.
    pub live_regs: u16,
}

/// What the passes find out about a subprogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubprogFacts {
    /// First instruction.
    pub start: u32,
    /// Instruction behind the last.
    pub end: u32,
    /// Index of one of its `exit` instructions.
    pub exit_idx: u32,
    /// Name, for the log.
    pub name: String,
    /// Verified on its own by its BTF.
    pub is_global: bool,
    /// Makes tail calls.
    pub has_tail_call: bool,
    /// Has legacy packet loads.
    pub has_ld_abs: bool,
    /// Changes packet data, itself or by what it calls.
    pub changes_pkt_data: bool,
    /// May sleep, itself or by what it calls.
    pub might_sleep: bool,
    /// Initial offset of the fastcall spills.
    pub fastcall_stack_off: i32,
    /// Fastcall spills must be kept.
    pub keep_fastcall_stack: bool,
}

/// What the passes find out.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By instruction.
    pub insns: Vec<InsnFacts>,
    /// By subprogram.
    pub subprogs: Vec<SubprogFacts>,
    /// Number of strongly connected components, counted from 1.
    pub scc_count: u32,
}

/// Runs the passes in the kernel's order.
pub fn compute(_env: &Env<'_>, _sink: &mut Sink) -> Result<Facts> {
    Err(crate::Stop::unsupported("control flow"))
}

/// Live stack slots (6.18's `kernel/bpf/liveness.c`).
#[derive(Debug, Default)]
pub struct LiveStack {}

impl LiveStack {
    /// Begins the instruction that `state` stands at (`bpf_reset_stack_write_marks`).
    pub fn reset_write_marks(&mut self, _state: &State, _insn_idx: u32) -> Result<()> {
        Ok(())
    }

    /// Notes reads of slots of a frame (`bpf_mark_stack_read`).
    pub fn mark_read(
        &mut self,
        _state: &State,
        _frameno: usize,
        _insn_idx: u32,
        _mask: u64,
    ) -> Result<()> {
        Ok(())
    }

    /// Notes writes of slots of a frame (`bpf_mark_stack_write`).
    pub fn mark_write(&mut self, _state: &State, _frameno: usize, _mask: u64) -> Result<()> {
        Ok(())
    }

    /// Ends the instruction (`bpf_commit_stack_write_marks`).
    pub fn commit_write_marks(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }

    /// Propagates what is live (`bpf_update_live_stack`).
    pub fn update(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }

    /// Prepares questions about a state (`bpf_live_stack_query_init`).
    pub fn query_init(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }

    /// True if the slot may be read from here on (`bpf_stack_slot_alive`).
    pub fn is_slot_alive(&self, _frameno: usize, _spi: usize) -> bool {
        true
    }
}
