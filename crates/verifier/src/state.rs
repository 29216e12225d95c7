//! The abstract machine state: what is known of registers, stack, references and
//! locks at one point of one path.
//!
//! A [`State`] is cheap to fork: frames, and the chunks of their registers and stacks, are
//! shared by reference count and copied when one of the owners writes (`Rc::make_mut`). A
//! checkpoint or a pushed branch therefore copies pointers, and what is not written
//! afterwards is never copied.
//!
//! Invariants: a register whose [`RegState::kind`] is [`RegKind::Scalar`] has
//! `off == 0` unless its id carries [`ADD_CONST`]; stack slot 0 covers
//! `[fp-8, fp)`, slot n covers `[fp-8(n+1), fp-8n)`; `frames` is never empty.

mod frame;
mod history;
mod reference;
mod reg;
mod reg_rules;
mod registers;
mod slot;
mod stack;
mod stack_object;
mod verifier_state;

pub use frame::{Frame, FrameMarks, MAIN_CALLSITE, RegPlace};
pub use history::{History, HistoryEntry, HistoryFlags, LinkedReg, LinkedRegs};
pub use reference::{LockOwner, Reference, ReferenceKind};
pub use reg::{
    ADD_CONST, ADD_CONST32, ADD_CONST64, BtfRef, DynptrKind, MapRef, PKT_AT_END, PKT_BEYOND_END,
    RegBase, RegKind, RegState, RegType, TypeFlags, TypeRef,
};
pub(crate) use reg_rules::{Alignment, Offsets, RegRules};
pub use registers::Registers;
pub use slot::{SlotKind, StackSlot};
pub use stack::Stack;
pub use stack_object::{IrqClass, IterState, IterTrust, StackObject, StackObjectKind};
pub use verifier_state::{
    ARGS, MAX_CALL_FRAMES, MORE_FRAMES, PreciseMask, PreciseMasks, Section, State, StateId,
};
