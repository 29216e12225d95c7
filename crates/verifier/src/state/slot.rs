//! Eight bytes of stack.

use super::reg::RegState;

/// Contents of one byte of stack (kernel: `enum bpf_stack_slot_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum SlotKind {
    /// Nothing was stored.
    #[default]
    Invalid = 0,
    /// Part of a spilled register.
    Spill = 1,
    /// The program stored some data.
    Misc = 2,
    /// The program stored zero.
    Zero = 3,
    /// Part of a dynptr.
    Dynptr = 4,
    /// Part of an open-coded iterator.
    Iter = 5,
    /// Part of saved IRQ flags.
    IrqFlag = 6,
    /// No instruction reads it, and what was stored is forgotten (`STACK_POISON`).
    #[doc(alias = "STACK_POISON")]
    Poison = 7,
}

impl SlotKind {
    /// True if no value is there: nothing was stored, or it is forgotten.
    #[inline]
    pub const fn is_empty(self) -> bool {
        matches!(self, SlotKind::Invalid | SlotKind::Poison)
    }
}

/// Eight bytes of stack (kernel: `struct bpf_stack_state`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackSlot {
    /// The spilled register; [`RegState::NOT_INIT`] where nothing is spilled.
    pub reg: RegState,
    /// Kind of each byte, from the highest address down: the byte at `fp+off` is at index
    /// `(-off-1) % 8`.
    pub kinds: [SlotKind; 8],
}

impl StackSlot {
    /// Eight bytes that nothing was stored in.
    pub const INVALID: StackSlot = StackSlot {
        reg: RegState::NOT_INIT,
        kinds: [SlotKind::Invalid; 8],
    };

    /// True if nothing was stored in any byte.
    pub fn is_unwritten(&self) -> bool {
        self.has_kinds_of(&StackSlot::INVALID)
    }

    /// True if each byte has the kind of that of the other slot.
    #[inline]
    pub fn has_kinds_of(&self, other: &StackSlot) -> bool {
        // As bytes, which are compared at once.
        let bytes = |slot: &StackSlot| slot.kinds.map(|kind| kind as u8);
        bytes(self) == bytes(other)
    }

    /// True if a register was spilled here, whole or narrow (`is_spilled_reg`).
    #[doc(alias = "is_spilled_reg")]
    pub fn is_spilled(&self) -> bool {
        self.kinds[7] == SlotKind::Spill
    }

    /// True if a scalar was spilled here, whole or narrow (`is_spilled_scalar_reg`).
    #[doc(alias = "is_spilled_scalar_reg")]
    pub fn is_spilled_scalar(&self) -> bool {
        self.is_spilled() && self.reg.is_scalar()
    }

    /// True if a scalar was spilled with all eight bytes (`is_spilled_scalar_reg64`).
    #[doc(alias = "is_spilled_scalar_reg64")]
    pub fn is_spilled_scalar_whole(&self) -> bool {
        self.kinds[0] == SlotKind::Spill && self.reg.is_scalar()
    }

    /// True if a dynptr, an iterator or IRQ flags occupy the slot (`is_stack_slot_special`).
    #[doc(alias = "is_stack_slot_special")]
    pub fn is_special(&self) -> bool {
        matches!(
            self.kinds[7],
            SlotKind::Dynptr | SlotKind::Iter | SlotKind::IrqFlag
        )
    }
}
