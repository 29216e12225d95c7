//! Wording of causes: dynptrs, iterators and saved IRQ flags on the stack.

use verifier::reason::{Cause, Explanation, StackObjectFault as Fault};

use super::Words;

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
        Fault::NotMade => format!(
            "{argument} is not {object} that a call made: none was made there, it was ended, or a store wrote into it"
        ),
        Fault::NotOfKind(kind) => format!("{argument} is {object} of another kind than {kind}"),
        Fault::Constant => {
            format!("{callee} changes {object} that belongs to the caller of the function")
        }
        Fault::NotOnStack => format!("{argument} does not point to {object} on the stack"),
        Fault::Overwritten => format!("{callee} overwrites {object} that holds a record"),
        Fault::NotHeld => {
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
            .help("make it on every path that leads here, end it once, and leave its bytes alone"),
        Fault::NotOfKind(kind) => words.needed(format!("one of kind {kind}")),
        Fault::Constant => words
            .needed("a call that only reads or writes its bytes")
            .help("clone it, and change the clone"),
        Fault::NotOnStack => words
            .needed("the address of a local variable")
            .help("make it a local variable of the function, and pass its address"),
        Fault::Overwritten => words
            .needed("bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr before")
            .help("release the record before the variable is used again"),
        Fault::NotHeld => words
            .needed("the variable that bpf_ringbuf_reserve_dynptr was given, released once")
            .help("release each record once, through the first dynptr or one clone of it"),
        Fault::Memory(_) => words
            .needed("the value of a map")
            .help("use a map value or a global variable for the memory"),
        Fault::Order => words
            .needed("the flags that were saved last")
            .help("restore in the reverse order of saving"),
        Fault::OtherCalls => words
            .needed("bpf_local_irq_restore for bpf_local_irq_save, bpf_res_spin_unlock_irqrestore for bpf_res_spin_lock_irqsave"),
        Fault::OutsideRcu => words
            .needed("one section around all calls with the iterator")
            .help("call `bpf_rcu_read_unlock` behind the end of the iterator"),
    }
}
