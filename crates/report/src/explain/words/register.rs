//! Wording of causes: registers that hold nothing, null or a number where a pointer is used.

use verifier::reason::{
    AccessKind, Called, Explanation, LostObject, NoteKind, NullCheck, NumberSource, PointerTarget,
    Unwritten,
};

use super::Words;
use crate::explain::value::{signed, target};

pub(super) fn uninitialized(
    reg: u8,
    why: Unwritten,
    callee: Option<&Called>,
    is_packet_load: bool,
) -> Words {
    let what = match callee {
        Some(callee) if (1..=5).contains(&reg) => {
            format!("argument {reg} of `{callee}` (r{reg})")
        }
        _ => format!("r{reg}"),
    };
    const NAME: &str = "uninitialized";
    let words = match why {
        Unwritten::NoResult => Words::new(NAME, "the program ends and r0, its result, is not set")
            .needed("a write of r0 on every path to `exit`")
            .help("return a value on every path; a function that falls off its end returns none"),
        Unwritten::Never => Words::new(NAME, format!("{what} is read and never written"))
            .needed(format!("a write of r{reg} on every path that leads here"))
            .help("initialise the variable where it is declared"),
        Unwritten::OnOtherPaths => Words::new(
            NAME,
            format!("{what} is read on a path that does not write it"),
        )
        .needed(format!("a write of r{reg} on every path that leads here"))
        .help("initialise the variable where it is declared, or in every branch"),
        Unwritten::Call if reg == 0 => Words::new(
            NAME,
            format!("{what} is read behind a call that returns nothing"),
        )
        .needed("a value in r0")
        .help("a function that returns `void` leaves nothing in r0"),
        Unwritten::Call => Words::new(
            NAME,
            format!("{what} is read behind a call, which clears r1 to r5"),
        )
        .needed("the value in r6 to r9 or on the stack, which calls keep")
        .help(
            "in assembly, copy the value to r6 to r9 before the call; in C, check that the \
               function is called with all the arguments that it has",
        ),
        Unwritten::NotPassed => Words::new(
            NAME,
            format!("{what} is an argument that the call does not set"),
        )
        .needed("a call that sets every argument that the function reads")
        .help(
            "call the function with all its arguments, and declare its prototype before the call",
        ),
        Unwritten::NotArgument => Words::new(
            NAME,
            format!("{what} is read, and the program has only one argument, in r1"),
        )
        .needed("a value that was read from the context, which is in r1")
        .help(
            "a program takes one argument; its parameters are read from the context \
               (macros such as BPF_PROG and BPF_KPROBE do that)",
        ),
    };
    match is_packet_load {
        true => Words {
            help: vec![String::from(
                "packet loads (`*(u8 *)skb[…]`) read the packet of the context in r6: `r6 = r1` first",
            )],
            ..words
        },
        false => words,
    }
}

pub(super) fn maybe_null(
    explanation: &Explanation,
    reg: u8,
    kind: &PointerTarget,
    callee: Option<&Called>,
    (access, check): (&AccessKind, NullCheck),
) -> Words {
    let pointer = match callee {
        Some(callee) => format!("the result of `{callee}`, which may be null"),
        None => format!("r{reg}, which may be null"),
    };
    let headline = match access {
        AccessKind::Read => format!("memory is read through {pointer}"),
        AccessKind::Write => format!("memory is written through {pointer}"),
        AccessKind::Arithmetic => format!("arithmetic on {pointer}"),
        AccessKind::Argument { callee, number } => {
            format!("argument {number} of `{callee}` is {pointer}")
        }
    };
    let words = Words::new("maybe-null", headline)
        .needed(format!("a comparison of r{reg} with null on this path"));
    let words = match check {
        NullCheck::OtherResult => words.help(
            "the comparison on this path is of another result: keep the result of one call in a \
             variable, check it and use it",
        ),
        NullCheck::Reread => {
            return words.help(
                "the comparison is of an earlier read of the same memory, which may have changed \
                 since: read the pointer once into a variable, then check and use the variable",
            );
        }
        NullCheck::Missing => words,
    };
    let unit = match kind {
        PointerTarget::MapValue { .. } => "value",
        PointerTarget::Memory { record: true, .. } => "record",
        PointerTarget::Socket => "sk",
        _ => "ptr",
    };
    let is_argument =
        |note: &verifier::reason::Note| matches!(note.kind, NoteKind::Argument { .. });
    if explanation.notes.iter().any(is_argument) {
        return words.help(
            "a global function is verified by its types alone, whatever its callers pass: check \
             for null in it, tag the parameter `__arg_nonnull`, or make the function static",
        );
    }
    match access {
        AccessKind::Arithmetic => words.help(format!(
            "check before the arithmetic: `if (!{unit}) return 0;`"
        )),
        _ if callee.is_some() => words.help(format!(
            "check it right behind the call: `if (!{unit}) return 0;`"
        )),
        _ => words.help(format!("check it before its use: `if (!{unit}) return 0;`")),
    }
}

pub(super) fn not_pointer(reg: u8, source: &NumberSource, access: &AccessKind) -> Words {
    let (verb, used) = match access {
        AccessKind::Argument { .. } => ("passed", "passed as a pointer"),
        _ => ("used", "used as a pointer"),
    };
    const NAME: &str = "not-a-pointer";
    let words = match source {
        NumberSource::ShownNull => {
            return Words::new("null", format!("r{reg} is null on this path and {used}"))
                .needed("a path on which the pointer is not null")
                .help(
                    "the branches of the check may be the wrong way round, or the branch for \
                     null does not return",
                );
        }
        NumberSource::PacketMoved { callee } => {
            return Words::new(
                "packet-moved",
                format!("a packet pointer is {verb} behind `{callee}`, which may move the packet"),
            )
            .needed("a pointer that was read from the context after the call")
            .help(
                "read `data` and `data_end` from the context again behind the call, and compare \
                 them again",
            );
        }
        NumberSource::Released { callee, object } => {
            let words = Words::new(
                "released",
                format!("r{reg} is {verb} behind `{callee}`, which made it invalid"),
            );
            return match object {
                LostObject::Node => words
                    .needed("the lock around every use of a node that a list or tree owns")
                    .help(format!(
                        "use it before `{callee}`; to keep it, take it out of the list or tree, or \
                         take a reference by bpf_refcount_acquire under the lock"
                    )),
                LostObject::Slice => words
                    .needed("a slice that was taken behind the call")
                    .help(format!(
                        "take the slice (bpf_dynptr_data, bpf_dynptr_slice) again behind `{callee}`, \
                         and compare it with null again"
                    )),
                LostObject::Acquired => words.needed("a pointer that is still valid").help(format!(
                    "use the object before `{callee}`, and copy what is needed later"
                )),
            };
        }
        NumberSource::Overwritten => {
            return Words::new(
                "overwritten",
                format!("r{reg}, {used}, was read from the stack where a store changed it"),
            )
            .needed("all 8 bytes of the pointer as they were stored")
            .help("leave the variable that holds the pointer alone: check the index of the store");
        }
        NumberSource::DynptrOverwritten => {
            return Words::new(
                "overwritten",
                format!("r{reg} is {verb} behind a store into the dynptr that it was taken from"),
            )
            .needed("a dynptr whose bytes on the stack stay as they are")
            .help("leave the variable of the dynptr alone; only calls change it");
        }
        NumberSource::Constant(0) => match access {
            AccessKind::Argument { callee, number } => Words::new(
                NAME,
                format!("argument {number} of `{callee}` is the constant null"),
            )
            .help("the function takes no null here: pass an object, or leave out the call"),
            _ => Words::new(NAME, format!("null (r{reg} is 0) is {used}")).help(
                "the pointer is null on this path: give it a value on every path, or compare it with \
                 null first",
            ),
        },
        NumberSource::NullPlus(value) => {
            Words::new(NAME, format!("null plus {} is {used}", signed(*value))).help(
                "the pointer is null on this path: compare it with null before anything is added \
                 to it, since null plus an offset is null no more",
            )
        }
        NumberSource::Constant(value) => {
            Words::new(NAME, format!("the number {} is {used}", signed(*value))).help(
                "addresses cannot be made of numbers: take the pointer from the context, a map \
                 or a helper",
            )
        }
        NumberSource::Memory(kind) => {
            let from = target(kind);
            let words = Words::new(NAME, format!("a number read from {from} is {used}"));
            match kind {
                PointerTarget::Packet { .. } => {
                    words.help("the packet holds data: read it through `data` and `data_end`")
                }
                PointerTarget::MapValue { .. } => words
                    .help(
                        "a pointer stored in a map is a number when it is read back: store what \
                         it points to, or look it up again",
                    )
                    .help("kernel memory behind a number is read by bpf_probe_read_kernel"),
                PointerTarget::Object { .. } => words.help(
                    "the member is a number or an address the verifier does not follow: read \
                     through it by bpf_probe_read_kernel (BPF_CORE_READ)",
                ),
                _ => words.help(
                    "kernel memory behind an address is read by bpf_probe_read_kernel, user \
                     memory by bpf_probe_read_user",
                ),
            }
        }
        NumberSource::ContextField(field) => {
            let field = match field {
                Some(field) => format!("`{field}` of the context"),
                None => String::from("a field of the context"),
            };
            Words::new(NAME, format!("{field} is a number and is {used}")).help(
                "an address in the context is a number to the verifier: read what it points to \
                 by bpf_probe_read_kernel (BPF_CORE_READ) or bpf_probe_read_user",
            )
        }
        NumberSource::Result { callee } => Words::new(
            NAME,
            format!("the number that `{callee}` returns is {used}"),
        )
        .help(
            "check the declaration of the function: what it returns is no pointer to the \
                 verifier; kernel memory behind it is read by bpf_probe_read_kernel",
        ),
        NumberSource::Arithmetic => Words::new(NAME, format!("a computed number is {used}")).help(
            "arithmetic on two numbers gives a number: add the offset to the pointer, not the \
             pointer's parts",
        ),
        NumberSource::Narrowed => Words::new(NAME, format!("part of a pointer is {used}"))
            .help("a pointer is 64 bits wide: keep it in a pointer or `__u64`, not in an `int`"),
        NumberSource::StackBytes => Words::new(NAME, format!("bytes of the stack are {used}"))
            .help(
                "a pointer read from the stack must have been stored there by one 8-byte store, \
                 and not be written since by a helper, a loop or another store",
            ),
        NumberSource::WrittenByCall { callee } => Words::new(
            NAME,
            format!("a number that `{callee}` wrote is {used}"),
        )
        .help(
            "an address that a call wrote is a number: read what it points to by \
             bpf_probe_read_kernel (BPF_CORE_READ follows several), user memory by \
             bpf_probe_read_user",
        ),
        NumberSource::Argument { number } => Words::new(
            NAME,
            format!("argument {number} of the function is a number and is {used}"),
        )
        .help(
            "a global function is verified by its types alone: declare the parameter as a pointer \
             to a structure of known size, or make the function static",
        ),
        NumberSource::Unknown => Words::new(NAME, format!("a number is {used}"))
            .help("take the pointer from the context, a map or a helper"),
    };
    words.needed(format!("a pointer in r{reg}"))
}
