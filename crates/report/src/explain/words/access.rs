//! Wording of causes: loads and stores, and their base registers.

use btf::AccessFault;
use btf::fields::FieldKind;
use spec::registry::{RegBase, SpecialKfunc};
use verifier::reason::{Called, Cause, Explanation, KnownValue, Note, NoteKind, PointerTarget};

use super::register::{maybe_null, not_pointer, uninitialized};
use super::{Words, context};
use crate::explain::value::{bytes, known, signed, target};

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::Uninitialized {
            reg,
            why,
            callee,
            by_packet_load,
        } => uninitialized(*reg, *why, callee.as_ref(), *by_packet_load),
        Cause::MaybeNull {
            reg,
            kind,
            callee,
            access,
            check,
        } => maybe_null(explanation, *reg, kind, callee.as_ref(), (access, *check)),
        Cause::NotPointer {
            reg,
            source,
            access,
        } => not_pointer(*reg, source, access),
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
            KnownValue::Pointer {
                kind: PointerTarget::Other(ty),
                ..
            } if ty.named().base == RegBase::ConstPtrToDynptr => {
                "its bytes are read and written by bpf_dynptr_read, bpf_dynptr_write or bpf_dynptr_data"
            }
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
        Cause::StackPoisoned {
            off,
            callee,
            by_prototype,
        } => {
            let place = off.map_or_else(String::new, |off| format!(" at fp{off:+}"));
            let reader = match callee {
                Some(callee) => format!("`{callee}` reads stack{place}"),
                None => format!("stack{place} is read"),
            };
            let why = match by_prototype {
                true => "the prototype of the callee says that it writes them",
                false => "its analysis before the walk lost the pointer",
            };
            Words::new(
                "stack-poisoned",
                format!("{reader}, whose contents this kernel dropped at a jump before"),
            )
            .needed("a store to these bytes between the last jump and this instruction")
            .help(format!(
                "the kernel takes the bytes for ones that nothing reads, as {why}; store to them right before"
            ))
        }
        Cause::StackUnwritten { off, size, callee } => {
            let what = match size {
                0 => String::from("stack"),
                size => format!("{} of stack", bytes(*size)),
            };
            let headline = match callee {
                Some(callee) => format!("`{callee}` reads {what} at fp{off:+}, not all written"),
                None => format!("{what} at fp{off:+} are read, and not all were written"),
            };
            let words = Words::new("stack-unwritten", headline);
            let words = match callee {
                Some(_) if *size > 0 => {
                    words.help("pass the size of the variable, if it is smaller than what is read")
                }
                _ => words,
            };
            words
                .needed("a store to each of these bytes on every path that leads here")
                .help(
                    "initialise the variable where it is declared; padding between members of a \
                     structure counts: `struct key key = {};`, or `__builtin_memset`",
                )
        }
        Cause::ReadOnly { kind, callee } => read_only(explanation, kind, callee.as_ref()),
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
            .needed(match (field, by_helper) {
                (FieldKind::KptrRef | FieldKind::KptrUnref, false) => String::from(
                    "8 bytes at the field's offset, by a plain load; stores of untyped pointers only",
                ),
                _ => format!("bytes of the value beside the `{field}`"),
            })
            .help(match field {
                FieldKind::SpinLock => "locks are only passed to bpf_spin_lock and bpf_spin_unlock",
                FieldKind::Timer => "timers are only passed to bpf_timer_init, _set_callback, _start",
                FieldKind::KptrRef | FieldKind::KptrUnref => {
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
        .needed(match (expected, found) {
            (None, _) => String::from("a value of the field's type"),
            (
                _,
                KnownValue::Pointer {
                    offset: 1..,
                    kind: PointerTarget::Object { .. },
                    ..
                },
            ) => String::from("a pointer to the start of such a structure, or null"),
            (Some(name), _) => format!("a pointer to `struct {name}`, or null"),
        })
        .help(match found {
            KnownValue::Pointer { offset: 1.., .. } => {
                "store the pointer as it was got, without an offset added to it"
            }
            _ => "store a pointer of the structure that the member is declared with, or null",
        }),
        Cause::Misaligned {
            reg,
            kind,
            off,
            size,
        } => misaligned(explanation, *reg, kind, *off, *size),
        Cause::Context { .. } => context::words(explanation),
        Cause::Modified {
            reg,
            kind,
            is_variable,
            off,
            callee,
            merged,
        } => context::modified(
            *reg,
            kind,
            (*is_variable, *off),
            callee.as_ref(),
            merged.as_ref(),
        ),
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
        Cause::Object {
            name,
            module,
            is_write,
            fault,
        } => object(name, module.as_deref(), *is_write, fault.as_ref()),
        _ => Words::new("other", "the instruction is not allowed here"),
    }
}

fn read_only(explanation: &Explanation, kind: &PointerTarget, callee: Option<&Called>) -> Words {
    let what = target(kind);
    let kfunc = callee.and_then(|callee| callee.kfunc);
    let words = Words::new("read-only", format!("{what} may only be read here"));
    match kind {
        PointerTarget::Packet { .. } | PointerTarget::PacketMeta { .. } => words
            .needed(format!(
                "a program type that may write packets directly; {} may not",
                explanation.program_type.name()
            ))
            .help(match kfunc {
                Some(SpecialKfunc::DynptrSliceRdwr) => {
                    "read by bpf_dynptr_slice; bpf_dynptr_write writes where the program type may"
                }
                _ => "bpf_skb_store_bytes writes packets where the program type has it",
            }),
        PointerTarget::Memory { .. } if explanation.notes.iter().any(is_plain_slice) => words
            .needed("a slice that may be written")
            .help("take it by bpf_dynptr_slice_rdwr, where the program type may write packets"),
        PointerTarget::Object { .. } => words
            .needed("memory of the program, which the call may write")
            .help("pass the address of a variable on the stack or of a map value")
            .help("kernel structures are changed by helpers and kernel functions"),
        PointerTarget::Map(_) => words
            .needed("the value of the map, from a lookup")
            .help("look up in it first: `bpf_map_lookup_elem(map, &key)`"),
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

/// True if the value comes from `bpf_dynptr_slice`, which gives memory for reading.
fn is_plain_slice(note: &Note) -> bool {
    matches!(&note.kind, NoteKind::Returned { callee, .. }
        if callee.kfunc == Some(SpecialKfunc::DynptrSlice))
}

fn object(name: &str, module: Option<&str>, is_write: bool, fault: Option<&AccessFault>) -> Words {
    if let Some(fault) = fault {
        let words = Words::new(
            "kernel-object",
            format!("the access ends outside of the members of `struct {name}`: {fault}"),
        )
        .needed("an access within one member, of the member's width");
        return words
            .help("check the type that the pointer is declared with, and the size of the access")
            .help("bpf_probe_read_kernel (BPF_CORE_READ) reads any kernel memory");
    }
    match (is_write, module) {
        (true, Some(module)) => Words::new(
            "kernel-object",
            format!(
                "this program may not write to the `struct {name}` of module {module}, which is \
                 another type than the kernel's"
            ),
        )
        .needed("the kernel's own type, the only one of the name that programs may write to")
        .help("a kernel that has the module built in; kernel functions of the module change it"),
        (true, None) => Words::new(
            "kernel-object",
            format!("this program may not write to `struct {name}`"),
        )
        .needed("a member that the program type may write")
        .help("kernel structures are changed by helpers and kernel functions"),
        (false, _) => Words::new(
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
