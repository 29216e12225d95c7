//! Objects on the stack: dynptrs, open-coded iterators and saved IRQ flags.
//!
//! The kernel spreads an object over the slots that it occupies (`struct bpf_stack_state`). Here
//! it is one [`StackObject`] in the list of its [`Stack`], with the slots that it was given and
//! that no later object took. A write into a slot changes the kind of its bytes, and so takes
//! that slot from the object ([`Stack::whole_object`](super::Stack::whole_object)), as in the kernel.

use std::rc::Rc;

use super::reg::{DynptrKind, RegState, TypeRef};
use super::slot::{SlotKind, StackSlot};
use super::stack::Stack;

/// State of an open-coded iterator (`enum bpf_iter_state`).
#[doc(alias = "bpf_iter_state")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IterState {
    Active,
    Drained,
}

/// What RCU says of the objects that an iterator returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterTrust {
    /// RCU does not protect them.
    Trusted,
    /// They are valid while RCU protects them (`MEM_RCU`).
    Rcu,
    /// RCU protects them no longer (`PTR_UNTRUSTED`).
    Untrusted,
}

/// Functions that must restore saved IRQ flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IrqClass {
    /// `bpf_local_irq_restore` (`IRQ_NATIVE_KFUNC`).
    Native,
    /// `bpf_res_spin_unlock_irqrestore` (`IRQ_LOCK_KFUNC`).
    Lock,
}

/// Kind of an object, with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackObjectKind {
    /// A dynptr (`mark_stack_slots_dynptr`).
    #[doc(alias = "mark_stack_slots_dynptr")]
    Dynptr(DynptrKind),
    /// An iterator (`mark_stack_slots_iter`).
    #[doc(alias = "mark_stack_slots_iter")]
    Iter {
        /// Its structure.
        ty: TypeRef,
        /// Slots that the structure takes.
        slots: u8,
        /// Its state.
        state: IterState,
        /// Number of the iteration; states of different ones may be equal.
        depth: u32,
        /// What RCU says of what it returns; states do not differ by it.
        trust: IterTrust,
    },
    /// Saved IRQ flags (`mark_stack_slot_irq_flag`).
    #[doc(alias = "mark_stack_slot_irq_flag")]
    IrqFlag(IrqClass),
}

impl StackObjectKind {
    /// Kind of the bytes of its slots.
    pub const fn slot_kind(self) -> SlotKind {
        match self {
            StackObjectKind::Dynptr(_) => SlotKind::Dynptr,
            StackObjectKind::Iter { .. } => SlotKind::Iter,
            StackObjectKind::IrqFlag(_) => SlotKind::IrqFlag,
        }
    }

    /// Number of its slots.
    pub const fn slots(self) -> usize {
        match self {
            // `BPF_DYNPTR_NR_SLOTS`.
            StackObjectKind::Dynptr(_) => 2,
            StackObjectKind::Iter { slots, .. } => slots as usize,
            StackObjectKind::IrqFlag(_) => 1,
        }
    }
}

/// An object on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackObject {
    /// Kind and state.
    pub kind: StackObjectKind,
    /// Number of the slot in which it begins. The others have lower numbers, as slots are
    /// counted from the frame pointer downwards.
    pub first_slot: usize,
    /// Identity, which the slices of a dynptr share; 0: none.
    pub id: u32,
    /// Identity of the acquired reference that it holds; 0: none.
    pub ref_obj_id: u32,
}

impl StackObject {
    /// Numbers of its slots.
    pub fn slots(&self) -> std::ops::RangeInclusive<usize> {
        self.first_slot + 1 - self.kind.slots()..=self.first_slot
    }

    /// Its slots, one bit each.
    pub fn mask(&self) -> u64 {
        self.slots().fold(0, |mask, spi| mask | 1 << spi)
    }
}

/// An object with the slots that are its own, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    object: StackObject,
    slots: u64,
}

impl Stack {
    /// The objects that still have a slot.
    pub fn objects(&self) -> impl Iterator<Item = &StackObject> {
        let placed = self.table.objects.iter();
        let has_slot = |placed: &&Placed| placed.object.slots().any(|spi| self.owns(placed, spi));
        placed.filter(has_slot).map(|placed| &placed.object)
    }

    /// The object that a slot belongs to.
    pub fn object_at(&self, spi: usize) -> Option<&StackObject> {
        let mut placed = self.table.objects.iter();
        let found = placed.find(|placed| self.owns(placed, spi));
        found.map(|placed| &placed.object)
    }

    /// The object that begins in a slot, if the program wrote into none of its slots
    /// (`is_dynptr_reg_valid_init`, `is_iter_reg_valid_init`, `is_irq_flag_reg_valid_init`).
    #[doc(alias = "is_dynptr_reg_valid_init")]
    #[doc(alias = "is_iter_reg_valid_init")]
    #[doc(alias = "is_irq_flag_reg_valid_init")]
    pub fn whole_object(&self, spi: usize) -> Option<&StackObject> {
        let object = self.object_at(spi)?;
        let is_its = |spi: usize| self.object_at(spi) == Some(object);
        (object.first_slot == spi && object.slots().all(is_its)).then_some(object)
    }

    /// Puts an object into its slots, which it takes from the objects that had them.
    ///
    /// # Panics
    ///
    /// If the stack was not used so deep.
    pub fn create_object(&mut self, object: StackObject) {
        let slots = object.mask();
        for placed in &mut Rc::make_mut(&mut self.table).objects {
            placed.slots &= !slots;
        }
        self.forget_lost();
        for spi in object.slots() {
            *self.slot_mut(spi) = StackSlot {
                reg: RegState::NOT_INIT,
                kinds: [object.kind.slot_kind(); 8],
            };
        }
        let objects = &mut Rc::make_mut(&mut self.table).objects;
        objects.push(Placed { object, slots });
    }

    /// Destroys the object that a slot belongs to: what is left of it is not initialised
    /// (`unmark_stack_slots_dynptr`, `unmark_stack_slots_iter`, `unmark_stack_slot_irq_flag`).
    #[doc(alias = "unmark_stack_slots_dynptr")]
    #[doc(alias = "unmark_stack_slots_iter")]
    #[doc(alias = "unmark_stack_slot_irq_flag")]
    pub fn destroy_object(&mut self, spi: usize) -> Option<StackObject> {
        let object = *self.object_at(spi)?;
        for spi in object.slots() {
            if self.object_at(spi) == Some(&object) {
                *self.slot_mut(spi) = StackSlot::INVALID;
            }
        }
        self.forget_lost();
        Some(object)
    }

    /// Calls `change` for every object.
    pub fn change_objects(&mut self, mut change: impl FnMut(&mut StackObject)) {
        for placed in &mut Rc::make_mut(&mut self.table).objects {
            change(&mut placed.object);
        }
    }

    /// Drops objects that have no slots left.
    fn forget_lost(&mut self) {
        let owning = self.table.objects.iter().copied();
        let owning =
            owning.filter(|placed| placed.object.slots().any(|spi| self.owns(placed, spi)));
        let objects = owning.collect();
        Rc::make_mut(&mut self.table).objects = objects;
    }

    fn owns(&self, placed: &Placed, spi: usize) -> bool {
        let is_kept = |slot: &StackSlot| slot.kinds[7] == placed.object.kind.slot_kind();
        placed.slots >> (spi & 63) & 1 != 0 && self.get(spi).is_some_and(is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack() -> Stack {
        let mut stack = Stack::default();
        stack.grow(8);
        stack
    }

    fn object(kind: StackObjectKind, first_slot: usize) -> StackObject {
        StackObject {
            kind,
            first_slot,
            id: 1,
            ref_obj_id: 2,
        }
    }

    fn iterator(state: IterState, depth: u32) -> StackObjectKind {
        StackObjectKind::Iter {
            ty: TypeRef::vmlinux(7),
            slots: 3,
            state,
            depth,
            trust: IterTrust::Trusted,
        }
    }

    const DYNPTR: StackObjectKind = StackObjectKind::Dynptr(DynptrKind::Ringbuf);
    const FLAGS: StackObjectKind = StackObjectKind::IrqFlag(IrqClass::Lock);

    #[test]
    fn objects_have_their_slots() {
        for (kind, slots) in [
            (DYNPTR, 3..=4),
            (iterator(IterState::Active, 0), 2..=4),
            (FLAGS, 4..=4),
        ] {
            let mut stack = stack();
            let created = object(kind, 4);
            stack.create_object(created);
            assert_eq!(created.slots(), slots);
            assert_eq!(stack.whole_object(4), Some(&created));
            assert_eq!(stack.whole_object(3), None);
            for spi in 0..8 {
                let found = slots.contains(&spi).then_some(&created);
                assert_eq!(stack.object_at(spi), found, "{kind:?} at {spi}");
                let is_marked = stack[spi].kinds == [kind.slot_kind(); 8];
                assert_eq!(is_marked, found.is_some());
            }
        }
    }

    #[test]
    fn a_destroyed_object_leaves_nothing() {
        let mut stack = stack();
        stack.create_object(object(DYNPTR, 4));
        stack.create_object(object(FLAGS, 6));
        assert_eq!(stack.destroy_object(3), Some(object(DYNPTR, 4)));
        assert_eq!(stack.destroy_object(3), None);
        assert!(stack.iter().take(6).all(|slot| *slot == StackSlot::INVALID));
        assert_eq!(stack.objects().count(), 1);
    }

    #[test]
    fn an_object_takes_the_slots_of_those_that_it_overlaps() {
        let mut stack = stack();
        let (old, new) = (
            object(iterator(IterState::Active, 0), 4),
            object(iterator(IterState::Active, 0), 6),
        );
        stack.create_object(old);
        stack.create_object(new);
        assert_eq!(stack.objects().count(), 2);
        assert_eq!(stack.object_at(4), Some(&new));
        assert_eq!(stack.object_at(3), Some(&old));
        assert_eq!(
            (stack.whole_object(4), stack.whole_object(6)),
            (None, Some(&new))
        );
        assert_eq!(stack.destroy_object(5), Some(new));
        assert_eq!(stack[4], StackSlot::INVALID);
        assert_eq!(stack.object_at(3), Some(&old));
        stack.create_object(object(DYNPTR, 3));
        assert_eq!(stack.objects().count(), 1);
    }

    #[test]
    fn a_write_takes_a_slot() {
        let mut stack = stack();
        let created = object(iterator(IterState::Active, 0), 4);
        stack.create_object(created);
        let other = stack.clone();
        stack.slot_mut(4).kinds = [SlotKind::Misc; 8];
        assert_eq!(stack.whole_object(4), None);
        assert_eq!(other.whole_object(4), Some(&created));
        assert_eq!(stack.object_at(4), None);
        assert_eq!(stack.object_at(3), Some(&created));
        for spi in 2..4 {
            stack.slot_mut(spi).kinds[7] = SlotKind::Misc;
        }
        assert_eq!(stack.objects().count(), 0);
    }
}
