//! Wording of the events that led to a value.

use spec::registry::KfuncFlags;
use verifier::reason::{KnownValue, NoteKind};

use super::value::{brief, bytes, target};

/// Text of a value's change.
pub(super) fn words(kind: &NoteKind) -> String {
    match kind {
        NoteKind::Argument { number, value } => {
            format!("argument {number} of the function: {}", brief(value))
        }
        NoteKind::Set { value } => format!("sets it: {}", brief(value)),
        NoteKind::Loaded {
            from: KnownValue::Pointer { kind, .. },
            field,
            value,
        } => {
            let from = match field {
                Some(field) => format!("field `{field}` of the context"),
                None => target(kind),
            };
            format!("reads it from {from}: {}", brief(value))
        }
        NoteKind::Loaded { value, .. } => format!("reads it from memory: {}", brief(value)),
        NoteKind::Computed { value } => format!("computes it: {}", brief(value)),
        NoteKind::Returned { callee, value } => {
            format!("`{callee}` returns it: {}", brief(value))
        }
        NoteKind::Passed => String::from("passes it on"),
        NoteKind::Spilled { .. } => String::from("stores it on the stack"),
        NoteKind::Filled { value } => format!("reads it back from the stack: {}", brief(value)),
        NoteKind::WrittenByCall { callee } => format!("`{callee}` writes it"),
        NoteKind::PartStored => String::from("writes only some of these bytes"),
        NoteKind::Narrowed { value } => {
            format!("keeps only its low bits: {}", brief(value))
        }
        NoteKind::Clobbered { callee } if callee.name.is_empty() => {
            String::from("the packet load leaves nothing in the register")
        }
        NoteKind::Clobbered { callee } => {
            format!("the call of `{callee}` leaves nothing in the register")
        }
        NoteKind::Invalidated { callee } => {
            format!("`{callee}` makes the pointer unusable, and every copy of it")
        }
        NoteKind::Compared { value } => {
            format!(
                "compares it, or a copy of it, which is then {}",
                brief(value)
            )
        }
        NoteKind::ShownNull => String::from("on this path the comparison shows that it is null"),
        NoteKind::OtherNullCheck => {
            String::from("compares the result of another call with null, not this one")
        }
        NoteKind::EarlierNullCheck => {
            String::from("compares an earlier read of the same memory with null, not this one")
        }
        NoteKind::ChoosesMember => String::from("decides which member the instruction accesses"),
        NoteKind::OtherPacketCheck { value } => {
            format!("compares another pointer with the end: {}", brief(value))
        }
        NoteKind::PacketCheck { range: 0 } => {
            String::from("on this path the comparison shows that it is beyond the end")
        }
        NoteKind::PacketCheck { range } => {
            format!(
                "compares with the end of the packet, which proves {}",
                bytes(*range)
            )
        }
        NoteKind::Acquired { callee } if callee.flags.has(KfuncFlags::ITER_NEW) => {
            format!("`{callee}` begins the iterator")
        }
        NoteKind::Acquired { callee } => format!("`{callee}` acquires the reference"),
        NoteKind::Given => String::from("the kernel calls the program with the reference"),
        NoteKind::SectionBegun { callee } => format!("`{callee}` begins the section"),
        NoteKind::Made { callee } => format!("`{callee}` makes it"),
        NoteKind::Ended {
            callee: Some(callee),
        } => format!("`{callee}` ends it"),
        NoteKind::Ended { callee: None } => String::from("a store changes some of its bytes"),
        NoteKind::Distrusted { callee } => {
            format!("`{callee}` ends the section in which the pointer was valid")
        }
        NoteKind::GivenAway { callee } => {
            format!("`{callee}` gives the object to the list or tree, which owns it from here on")
        }
        NoteKind::Locked { callee } => format!("`{callee}` takes the lock that is held"),
        NoteKind::WrittenElsewhere => String::from("writes it, and the path does not pass here"),
        NoteKind::LoopStart => String::from("jumps back to the start of the loop"),
    }
}
