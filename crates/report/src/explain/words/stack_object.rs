//! Wording of causes: dynptrs, iterators and saved IRQ flags on the stack.

use verifier::reason::{Cause, DynptrKind, Explanation, OnStack, StackObjectFault as Fault};

use super::Words;
use crate::explain::value::bytes;

pub(super) fn words(explanation: &Explanation) -> Words {
    let Cause::StackObject {
        callee,
        number,
        object,
        fault,
    } = &explanation.cause
    else {
        return Words::new(
            "stack-object",
            "an object on the stack is used otherwise than it may be",
        );
    };
    let callee = match callee {
        Some(callee) => format!("`{callee}`"),
        None => String::from("the instruction"),
    };
    let argument = match number {
        Some(number) => format!("argument {number} of {callee}"),
        None => format!("an argument of {callee}"),
    };
    let headline = match fault {
        Fault::NotFree => format!(
            "{argument} is no place for {object}: there is one already, or it does not begin at a multiple of 8 bytes with a constant offset"
        ),
        Fault::NotMade => format!("{argument} is not {object}: this path made none there"),
        Fault::Ended(Some(by)) => format!("{argument} is {object} that `{by}` ended"),
        Fault::Ended(None) => format!("{argument} is {object} whose bytes a store changed"),
        Fault::IsOther(other) => format!("{argument} is {other}, not {object}"),
        Fault::Middle => format!("{argument} points into the middle of {object}"),
        Fault::WrittenByCall => format!("{callee} would write over {object} on the stack"),
        Fault::NotOfKind(kind) => format!("{argument} is {object} of another kind than {kind}"),
        Fault::Constant => {
            format!("{callee} changes {object} that belongs to the caller of the function")
        }
        Fault::ReleasesGiven => {
            format!("{callee} releases {object} that belongs to the caller of the function")
        }
        Fault::ReadInto { off, size } => {
            format!(
                "{callee} reads {} of stack at fp{off:+}, and {object} is among them",
                bytes(*size)
            )
        }
        Fault::Read => format!("{callee} reads the bytes of {object} on the stack"),
        Fault::NotOnStack => format!("{argument} does not point to {object} on the stack"),
        Fault::Overwritten => format!("{callee} overwrites {object} that holds a record"),
        Fault::NotHeld(Some(by)) => {
            format!("{argument} is {object} whose record `{by}` already released")
        }
        Fault::NotHeld(None) => {
            format!("{argument} is not {object} that holds a record, so it cannot be released")
        }
        Fault::Memory(kind) => format!(
            "{argument} is of type {kind}, and {object} can only be made of the value of a map"
        ),
        Fault::Order => format!(
            "{callee} restores {object} while those that were saved behind them are not restored"
        ),
        Fault::OtherCalls => format!("{callee} restores {object} that calls of another kind saved"),
        Fault::OutsideRcu => {
            format!("{callee} uses {object} behind the end of the section in which it was made")
        }
    };
    let words = Words::new("stack-object", headline);
    match fault {
        Fault::NotFree => words
            .needed("8-byte aligned bytes of the stack without such an object")
            .help("end the first one before another is made in its place, or use another variable"),
        Fault::NotMade => words
            .needed("the variable that the call which makes it was given, on every path")
            .help(format!("{} on every path that leads here", made_by(*object))),
        Fault::Ended(Some(by)) => words
            .needed(format!("{object} that still is one"))
            .help(format!("use it before `{by}`, and end it once; or make it anew")),
        Fault::Ended(None) => words
            .needed(format!("{object} whose bytes on the stack stay as they are"))
            .help("leave the variable alone: only calls change it; check the index of the store"),
        Fault::IsOther(_) => words
            .needed("the variable that the call which makes it was given, on every path")
            .help("check which variable is passed"),
        Fault::Middle => words
            .needed(format!("the address where {object} begins"))
            .help("pass the address of the variable, without an offset"),
        Fault::WrittenByCall => words
            .needed("memory that the call writes beside it")
            .help("pass another buffer, or the right size: they overlap on the stack"),
        Fault::NotOfKind(kind) => words
            .needed(format!("one of kind {kind}"))
            .help(format!("make it by the function for that kind: {}", maker(*kind))),
        Fault::Constant => words
            .needed("a call that only reads or writes its bytes")
            .help("clone it, and change the clone"),
        Fault::ReleasesGiven => words
            .needed("a call that only reads or writes its bytes")
            .help("leave the call out: who made it releases it"),
        Fault::ReadInto { .. } => words
            .needed("bytes beside it")
            .help("pass the size of the variable, if it is smaller than what is read")
            .help(format!("a structure that holds {object} is not passed as a whole")),
        Fault::Read => words
            .needed("a call that takes it: no instruction or other call reads its bytes")
            .help(match object {
                OnStack::Iterator => "use what bpf_iter_…_next returns",
                OnStack::IrqFlags => "only bpf_local_irq_restore and bpf_res_spin_unlock_irqrestore take them",
                OnStack::Dynptr => "read what it leads to: bpf_dynptr_read, bpf_dynptr_data or bpf_dynptr_slice",
            }),
        Fault::NotOnStack => words
            .needed("the address of a local variable")
            .help("make it a local variable of the function, and pass its address"),
        Fault::Overwritten => words
            .needed("bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr before")
            .help("release the record before the variable is used again"),
        Fault::NotHeld(_) => words
            .needed("the variable that bpf_ringbuf_reserve_dynptr was given, released once")
            .help("release each record once, through the first dynptr or one clone of it"),
        Fault::Memory(_) => words
            .needed("the value of a map")
            .help("use a map value or a global variable for the memory"),
        Fault::Order => words
            .needed("the flags that were saved last")
            .help("restore in the reverse order of saving"),
        Fault::OtherCalls => words
            .needed("bpf_local_irq_restore for bpf_local_irq_save, bpf_res_spin_unlock_irqrestore for bpf_res_spin_lock_irqsave")
            .help("restore by the call that belongs to the one which saved the flags"),
        Fault::OutsideRcu => words
            .needed("one section around all calls with the iterator")
            .help("call `bpf_rcu_read_unlock` behind the end of the iterator"),
    }
}

/// What makes an object, as a request.
fn made_by(object: OnStack) -> &'static str {
    match object {
        OnStack::Iterator => "begin it (bpf_iter_…_new)",
        OnStack::IrqFlags => "save them (bpf_local_irq_save, bpf_res_spin_lock_irqsave)",
        OnStack::Dynptr => "make it (bpf_dynptr_from_…, bpf_ringbuf_reserve_dynptr)",
    }
}

/// The function that makes a dynptr of a kind.
fn maker(kind: DynptrKind) -> &'static str {
    match kind {
        DynptrKind::Ringbuf => "bpf_ringbuf_reserve_dynptr",
        DynptrKind::Skb => "bpf_dynptr_from_skb",
        DynptrKind::Xdp => "bpf_dynptr_from_xdp",
        DynptrKind::Local => "bpf_dynptr_from_mem",
        DynptrKind::SkbMeta | DynptrKind::File => "see the function's description",
    }
}
