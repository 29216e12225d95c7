//! Objects on the stack: dynptrs, open-coded iterators and saved IRQ flags.
//!
//! The kernel spreads an object over the slots that it occupies (`struct bpf_stack_state`). Here
//! it is one [`StackObject`] in the list of its [`Stack`], and the slots have the
//! kind of their bytes only. A write into a slot takes that slot from the object
//! ([`Stack::is_whole`](super::Stack::is_whole)), as in the kernel.

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

    /// True if states with these objects may be equal up to identities; the depth of an
    /// iterator does not count (in `stacksafe`).
    #[doc(alias = "stacksafe")]
    pub fn is_like(&self, other: &StackObject) -> bool {
        let kind = match (self.kind, other.kind) {
            (
                StackObjectKind::Iter {
                    ty, slots, state, ..
                },
                StackObjectKind::Iter { depth, .. },
            ) => StackObjectKind::Iter {
                ty,
                slots,
                state,
                depth,
            },
            (kind, _) => kind,
        };
        kind == other.kind && self.first_slot == other.first_slot
    }
}

impl Stack {
    /// The objects that still have a slot.
    pub fn objects(&self) -> impl Iterator<Item = &StackObject> {
        let objects = self.table.objects.iter();
        objects.filter(|object| object.slots().any(|spi| self.is_slot_of(object, spi)))
    }

    /// The object that a slot belongs to.
    pub fn object_at(&self, spi: usize) -> Option<&StackObject> {
        let mut objects = self.table.objects.iter();
        objects.find(|object| object.slots().contains(&spi) && self.is_slot_of(object, spi))
    }

    /// True if the program wrote into none of the slots of an object
    /// (`is_dynptr_reg_valid_init`, `is_iter_reg_valid_init`, `is_irq_flag_reg_valid_init`).
    #[doc(alias = "is_dynptr_reg_valid_init")]
    #[doc(alias = "is_iter_reg_valid_init")]
    #[doc(alias = "is_irq_flag_reg_valid_init")]
    pub fn is_whole(&self, object: &StackObject) -> bool {
        object.slots().all(|spi| self.is_slot_of(object, spi))
    }

    /// Puts an object into its slots, and destroys the objects that had some of them.
    ///
    /// # Panics
    ///
    /// If the stack was not used so deep.
    pub fn create_object(&mut self, object: StackObject) {
        let is_overlapped =
            |other: &&StackObject| other.slots().any(|spi| object.slots().contains(&spi));
        let overlapped: Vec<StackObject> = self
            .table
            .objects
            .iter()
            .filter(is_overlapped)
            .copied()
            .collect();
        for other in overlapped {
            self.clear(&other);
        }
        for spi in object.slots() {
            *self.slot_mut(spi) = StackSlot {
                reg: RegState::NOT_INIT,
                kinds: [object.kind.slot_kind(); 8],
            };
        }
        Rc::make_mut(&mut self.table).objects.push(object);
    }

    /// Destroys the object that a slot belongs to: what is left of it is not initialised
    /// (`unmark_stack_slots_dynptr`, `unmark_stack_slots_iter`, `unmark_stack_slot_irq_flag`).
    #[doc(alias = "unmark_stack_slots_dynptr")]
    #[doc(alias = "unmark_stack_slots_iter")]
    #[doc(alias = "unmark_stack_slot_irq_flag")]
    pub fn destroy_object(&mut self, spi: usize) -> Option<StackObject> {
        let object = *self.object_at(spi)?;
        self.clear(&object);
        Some(object)
    }

    fn clear(&mut self, object: &StackObject) {
        for spi in object.slots() {
            if self.is_slot_of(object, spi) {
                *self.slot_mut(spi) = StackSlot::INVALID;
            }
        }
        let objects = &mut Rc::make_mut(&mut self.table).objects;
        objects.retain(|other| other != object);
    }

    fn is_slot_of(&self, object: &StackObject, spi: usize) -> bool {
        let slot = self.get(spi);
        slot.is_some_and(|slot| slot.kinds[7] == object.kind.slot_kind())
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
            assert!(stack.is_whole(&created));
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
    fn an_object_replaces_those_that_it_overlaps() {
        let mut stack = stack();
        stack.create_object(object(DYNPTR, 4));
        stack.create_object(object(iterator(IterState::Active, 0), 3));
        assert_eq!(stack.objects().count(), 1);
        assert_eq!(stack[4], StackSlot::INVALID);
        assert_eq!(stack.object_at(3).map(|object| object.first_slot), Some(3));
    }

    #[test]
    fn a_write_takes_a_slot() {
        let mut stack = stack();
        let created = object(iterator(IterState::Active, 0), 4);
        stack.create_object(created);
        let other = stack.clone();
        stack.slot_mut(4).kinds = [SlotKind::Misc; 8];
        assert!(!stack.is_whole(&created) && other.is_whole(&created));
        assert_eq!(stack.object_at(4), None);
        assert_eq!(stack.object_at(3), Some(&created));
        for spi in 2..4 {
            stack.slot_mut(spi).kinds[7] = SlotKind::Misc;
        }
        assert_eq!(stack.objects().count(), 0);
    }

    #[test]
    fn iterations_of_an_iterator_may_be_equal() {
        let active = object(iterator(IterState::Active, 1), 4);
        assert!(active.is_like(&object(iterator(IterState::Active, 2), 4)));
        assert!(!active.is_like(&object(iterator(IterState::Drained, 1), 4)));
        assert!(!active.is_like(&object(iterator(IterState::Active, 1), 5)));
        assert!(!active.is_like(&object(DYNPTR, 4)));
    }
}
