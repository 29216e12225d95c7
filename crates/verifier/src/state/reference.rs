//! References that a program acquired and must release, and held locks.

use super::reg::{BtfRef, MapRef};

/// Kind of an acquired reference (kernel: `enum ref_state_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A pointer that must be released.
    Pointer,
    /// Saved IRQ flags.
    Irq,
    /// A `bpf_spin_lock`.
    Lock,
    /// A `bpf_res_spin_lock`.
    ResLock,
    /// A `bpf_res_spin_lock` taken with interrupts disabled.
    ResLockIrq,
}

impl ReferenceKind {
    /// True for locks of every kind.
    pub const fn is_lock(self) -> bool {
        matches!(
            self,
            ReferenceKind::Lock | ReferenceKind::ResLock | ReferenceKind::ResLockIrq
        )
    }
}

/// The object that contains a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockOwner {
    /// No lock.
    #[default]
    None,
    /// Values of a map.
    Map(MapRef),
    /// An allocated object of a type of this BTF object.
    Object(BtfRef),
}

/// One acquired reference (kernel: `struct bpf_reference_state`) (`bpf_reference_state`).
#[doc(alias = "bpf_reference_state")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Kind of the acquired object.
    pub kind: ReferenceKind,
    /// Its identity.
    pub id: u32,
    /// The instruction that acquired it.
    pub insn_idx: u32,
    /// Of a lock, the object that contains it.
    pub owner: LockOwner,
    /// Where callbacks release what they acquire, the frame of the callback that acquired it; 0: none did
    /// (`callback_ref`).
    #[doc(alias = "callback_ref")]
    pub callback: Option<u8>,
}
