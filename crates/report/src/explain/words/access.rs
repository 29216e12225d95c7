//! Wording of causes: loads and stores, and their base registers.

use verifier::reason::{
    AccessKind, Cause, ContextFault, Explanation, KnownValue, NoteKind, NumberSource,
    PointerTarget, Unwritten,
};

use super::{Words, any_of};
use crate::explain::value::{bytes, known, signed, target};

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::Uninitialized { reg, why, callee } => {
            let text = explanation.place.as_ref().map(|place| &place.text[..]);
            let is_packet_load = text.is_some_and(|text| text.contains("skb["));
            uninitialized(*reg, *why, callee.as_deref(), is_packet_load)
        }
        Cause::MaybeNull {
            reg,
            kind,
            callee,
            access,
        } => maybe_null(explanation, *reg, kind, callee.as_deref(), access),
        Cause::NotPointer { reg, source } => not_pointer(explanation, *reg, source),
        Cause::NotAccessible { reg, value } => Words::new(
            "not-accessible",
            format!("memory is accessed through r{reg}, {}", known(value)),
        )
        .needed("a pointer to memory that the program may access")
        .help(match value {
            KnownValue::Pointer {
                kind: PointerTarget::PacketEnd,
                ..
            } => "the end of the packet bounds accesses; read through `data` instead",
            _ => "pointers of this type are passed to helpers, or their fields read by them",
        }),
        Cause::SpillPart { is_read: true } => Words::new(
            "spill-part",
            "part of a pointer that is stored on the stack is read",
        )
        .needed("a read of all 8 bytes, which gives the pointer back")
        .help("read the slot with the width and offset that it was written with"),
        Cause::SpillPart { is_read: false } => Words::new(
            "spill-part",
            "a store to the stack would damage a pointer, or keep only part of one",
        )
        .needed("pointers stored whole, 8 bytes at an offset that is a multiple of 8"),
        Cause::StackUnwritten { off, size, callee } => {
            let what = match size {
                0 => String::from("stack"),
                size => format!("{} of stack", bytes(*size)),
            };
            let headline = match callee {
                Some(callee) => format!("`{callee}` reads {what} at fp{off:+}, not all written"),
                None => format!("{what} at fp{off:+} are read, and not all were written"),
            };
            Words::new("stack-unwritten", headline)
                .needed("a store to each of these bytes on every path that leads here")
                .help(
                    "initialise the variable where it is declared; padding between members of a \
                     structure counts: `struct key key = {};`, or `__builtin_memset`",
                )
        }
        Cause::ReadOnly { kind } => read_only(explanation, kind),
        Cause::FramePointer => Words::new("frame-pointer", "r10, the frame pointer, is written")
            .needed("another register as destination")
            .help("copy it first: `r2 = r10`, then `r2 += -8`"),
        Cause::SpecialField { field, by_helper } => {
            let who = if *by_helper {
                "a helper"
            } else {
                "an instruction"
            };
            Words::new(
                "special-field",
                format!("{who} accesses the map value where its `{field}` is"),
            )
            .needed(match (field.as_str(), by_helper) {
                ("kptr", false) => String::from(
                    "8 bytes at the field's offset, by a plain load; stores of untyped pointers only",
                ),
                _ => format!("bytes of the value beside the `{field}`"),
            })
            .help(match field.as_str() {
                "bpf_spin_lock" => "locks are only passed to bpf_spin_lock and bpf_spin_unlock",
                "bpf_timer" => "timers are only passed to bpf_timer_init, _set_callback, _start",
                "kptr" => {
                    "kernel pointers in map values are read as 8 bytes at their offset, and \
                     exchanged by bpf_kptr_xchg"
                }
                _ => "such fields are only passed to the functions made for them",
            })
            .help("copy the members one by one instead of the whole structure")
        }
        Cause::FieldType {
            field,
            found,
            expected,
        } => Words::new(
            "field-type",
            format!("{} is stored into a `{field}` of a map value", known(found)),
        )
        .needed(match expected.as_str() {
            "" => String::from("a value of the field's type"),
            expected => expected.to_owned(),
        })
        .help("store a pointer of the structure that the member is declared with, or null"),
        Cause::Misaligned {
            reg,
            kind,
            off,
            size,
        } => misaligned(explanation, *reg, kind, *off, *size),
        Cause::Context { .. } => context(explanation),
        Cause::Modified {
            reg,
            kind,
            is_variable,
            off,
            callee,
        } => modified(*reg, kind, *is_variable, *off, callee.as_deref()),
        Cause::MixedPointers => Words::new(
            "mixed-pointers",
            "this instruction accesses another kind of pointer than on an earlier path",
        )
        .needed("one kind of pointer here on all paths, as the kernel rewrites such accesses")
        .help(
            "read the field in each branch of the source, before the branches join; compilers \
             merge equal code of two branches (`asm volatile(\"\")` in one keeps them apart)",
        ),
        Cause::Atomic { kind } => Words::new(
            "atomic-target",
            format!("an atomic instruction accesses {}", target(kind)),
        )
        .needed("the stack, a map value or other memory of the program")
        .help("read the value with a plain load and change a copy in a map"),
        Cause::Object { name, is_write } => object(name, *is_write),
        _ => Words::new("other", "the instruction is not allowed here"),
    }
}

fn uninitialized(reg: u8, why: Unwritten, callee: Option<&str>, is_packet_load: bool) -> Words {
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

fn maybe_null(
    explanation: &Explanation,
    reg: u8,
    kind: &PointerTarget,
    callee: Option<&str>,
    access: &AccessKind,
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
    let is_other = |note: &verifier::reason::Note| note.kind == NoteKind::OtherNullCheck;
    let words = match explanation.notes.iter().any(is_other) {
        true => words.help(
            "the comparison on this path is of another result: keep the result of one call in a \
             variable, check it and use it",
        ),
        false => words,
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

fn not_pointer(explanation: &Explanation, reg: u8, source: &NumberSource) -> Words {
    let is_argument = explanation
        .place
        .as_ref()
        .is_some_and(|place| place.text.starts_with("call "));
    let (verb, used) = match is_argument {
        true => ("passed", "passed as a pointer"),
        false => ("used", "used as a pointer"),
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
        NumberSource::Released { callee } => {
            return Words::new(
                "released",
                format!("r{reg} is {verb} behind `{callee}`, which made it invalid"),
            )
            .needed("a pointer that is still valid")
            .help(format!(
                "use the object before `{callee}`, and copy what is needed later"
            ));
        }
        NumberSource::Constant(0) => Words::new(NAME, format!("null (r{reg} is 0) is {used}"))
            .help("no path to here gives the pointer a value: check where it is set"),
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

fn read_only(explanation: &Explanation, kind: &PointerTarget) -> Words {
    let what = target(kind);
    let words = Words::new("read-only", format!("{what} may only be read here"));
    match kind {
        PointerTarget::Packet { .. } | PointerTarget::PacketMeta { .. } => words
            .needed(format!(
                "a program type that may write packets directly; {} may not",
                explanation.program_type
            ))
            .help("bpf_skb_store_bytes writes packets where the program type has it"),
        PointerTarget::MapKey { .. } => words
            .needed("a key that stays as it is")
            .help("copy the key to the stack; delete and insert to change it"),
        PointerTarget::Socket => words
            .needed("sockets are changed by helpers")
            .help("use a helper such as bpf_setsockopt"),
        _ => words
            .needed("memory that the program may write")
            .help("copy it to the stack or a map value and change the copy"),
    }
}

fn object(name: &str, is_write: bool) -> Words {
    match is_write {
        true => Words::new(
            "kernel-object",
            format!("this program may not write to `struct {name}`"),
        )
        .needed("a member that the program type may write")
        .help("kernel structures are changed by helpers and kernel functions"),
        false => Words::new(
            "kernel-object",
            format!("this access to `struct {name}` is not allowed"),
        )
        .help("bpf_probe_read_kernel (BPF_CORE_READ) reads any kernel memory"),
    }
}

fn misaligned(
    explanation: &Explanation,
    reg: u8,
    kind: &PointerTarget,
    off: i64,
    size: u32,
) -> Words {
    let what = target(kind);
    let size = match size {
        0 => String::from("the access"),
        size => format!("an access of {}", bytes(size)),
    };
    let words = Words::new(
        "misaligned",
        format!("{size} to {what} at offset {} is misaligned", signed(off)),
    )
    .needed(format!(
        "an offset in r{reg} that is a multiple of the width"
    ));
    match kind {
        PointerTarget::Stack { .. } => words.help(
            "stack accesses are aligned on every machine: keep variables at multiples of their \
             size",
        ),
        PointerTarget::Packet { .. } => words
            .help("headers are 2 bytes off in packets: read such members byte by byte")
            .help(strict(explanation)),
        _ => words.help(strict(explanation)),
    }
}

fn strict(_: &Explanation) -> &'static str {
    "BPF_F_STRICT_ALIGNMENT is set or the field demands it; without the flag, 6.18 on x86 allows \
     misaligned accesses to maps and packets"
}

fn context(explanation: &Explanation) -> Words {
    let Cause::Context {
        off,
        size,
        is_write,
        structure,
        field,
        fault,
    } = &explanation.cause
    else {
        return Words::new("context", "this access to the context is not allowed");
    };
    let structure = match structure {
        Some(structure) => format!("`struct {structure}`"),
        None => String::from("the context"),
    };
    let field = match field {
        Some(field) => format!("`{field}` of {structure}"),
        None => format!("offset {} of {structure}", signed(*off)),
    };
    let verb = if *is_write { "written" } else { "read" };
    let kind = explanation.program_type;
    let words = Words::new(
        "context",
        format!(
            "{field} may not be {verb} as {} by {kind} programs",
            bytes(*size)
        ),
    );
    match fault {
        ContextFault::ReadOnly => words
            .needed("a field that programs of this type may write; this one may only be read")
            .help("a helper may change what the field stands for"),
        ContextFault::Width(widths) => {
            let widths: Vec<String> = widths.iter().map(u32::to_string).collect();
            words
                .needed(format!("an access of {} bytes", widths.join(" or ")))
                .help("read the member with its own type, and narrow the value afterwards")
        }
        ContextFault::Outside => words.needed(format!("an offset within {structure}")).help(
            "check the type of the program's argument: it is the context of this program type",
        ),
        ContextFault::OtherTypes(types) => words
            .needed(format!("a program of type {}", any_of(types)))
            .help("use another field, or attach where this one is known"),
        ContextFault::Never => words
            .needed("a field that programs of this type and attach type may access so")
            .help(
                "`beebox show --kernel` and the UAPI header say what the context holds; some \
                 fields exist for some attach types only",
            ),
    }
}

fn modified(
    reg: u8,
    kind: &PointerTarget,
    is_variable: bool,
    off: i64,
    callee: Option<&str>,
) -> Words {
    let what = target(kind);
    let offset = match is_variable {
        true => String::from("a variable offset"),
        false => format!("offset {}", signed(off)),
    };
    let headline = match callee {
        Some(callee) => format!("argument {reg} of `{callee}`, a pointer to {what}, has {offset}"),
        None => format!("{what} is accessed through a pointer with {offset}"),
    };
    let words = Words::new("modified-pointer", headline).needed(format!(
        "r{reg} as it was got, without an offset added to it"
    ));
    match kind {
        PointerTarget::Context => words.help(
            "access members of the context directly (`ctx->field`): loops and computed offsets \
             over the context, or a pointer to a member, are not allowed",
        ),
        _ => words.help("pass the pointer itself, and keep computed copies apart"),
    }
}
