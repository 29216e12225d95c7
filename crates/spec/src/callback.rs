//! Functions of the program that helpers and kfuncs call.

use isa::ebpf::Reg;

/// A function of the program, by who calls it (`set_callee_state_fn`).
#[doc(alias = "set_callee_state_fn")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    /// `bpf_for_each_map_elem` calls it for each element.
    MapElement,
    /// `bpf_loop` calls it for each iteration.
    Loop,
    /// A timer calls it.
    Timer,
    /// `bpf_find_vma` calls it for the area that it finds.
    FindVma,
    /// `bpf_user_ringbuf_drain` calls it for each sample.
    UserRingbuf,
    /// `bpf_rbtree_add` calls it to compare.
    RbtreeAdd,
    /// A work queue calls it.
    Workqueue,
    /// A task calls it.
    TaskWork,
}

impl CallbackKind {
    /// True if it is called after the call returned (`is_async_callback_calling_insn`).
    #[doc(alias = "is_async_callback_calling_insn")]
    pub const fn is_async(self) -> bool {
        match self {
            CallbackKind::Timer | CallbackKind::Workqueue | CallbackKind::TaskWork => true,
            CallbackKind::MapElement
            | CallbackKind::Loop
            | CallbackKind::FindVma
            | CallbackKind::UserRingbuf
            | CallbackKind::RbtreeAdd => false,
        }
    }

    /// The register in which the call gets it.
    pub const fn register(self) -> Reg {
        match self {
            CallbackKind::MapElement
            | CallbackKind::Loop
            | CallbackKind::Timer
            | CallbackKind::UserRingbuf
            | CallbackKind::Workqueue => Reg::R2,
            CallbackKind::FindVma | CallbackKind::RbtreeAdd => Reg::R3,
            CallbackKind::TaskWork => Reg::R4,
        }
    }
}
