//! Wording of causes: arguments of helpers and kfuncs, maps.

use object::{CORE_POISON, KFUNC_POISON, MAP_POISON};
use spec::helpers::HelperId;
use spec::registry::{RegBase, RegType, TypeFlags};
use verifier::domain::Scalar;
use verifier::reason::{
    BoundsFault, Called, Cause, Check, Expected, Explanation, KfuncRule, KnownValue, Note,
    NoteKind, PointerTarget, SizeFault, TypeText,
};

use super::bounds::edits;
use super::{Words, any_of, global, map, trust};
use crate::explain::value::{known, range};

/// Numbers that libbpf's placeholders of one kind take: one for each extern or map.
const MOST_NUMBERS: i32 = 1_000_000;

pub(super) fn words(explanation: &Explanation) -> Words {
    let kind = explanation.program_type.name();
    match &explanation.cause {
        Cause::HelperUnavailable {
            helper,
            types,
            other_attach,
        } => unavailable(kind, helper, types, *other_attach),
        Cause::HelperUnknown { number } => unknown(*number),
        Cause::Relocation { access, absence } => Words::new(
            "core-relocation",
            format!("this instruction depends on `{access}`: {absence}"),
        )
        .needed("a kernel with the type and field, or a path that does not reach it there")
        .help("bpf_core_field_exists, bpf_core_type_exists or bpf_core_enum_value_exists around it"),
        Cause::PacketLoad => Words::new(
            "packet-load",
            format!("{kind} programs have no packet loads (`*(u8 *)skb[…]`)"),
        )
        .needed("a program of type socket_filter, sched_cls or sched_act")
        .help("read the packet through `data` and `data_end`"),
        Cause::KfuncMissing {
            kfunc,
            has_other: true,
        } => Words::new(
            "kfunc-missing",
            format!("the kernel function `{kfunc}` has another prototype in this kernel"),
        )
        .needed("a declaration with the kernel's prototype: structures defined, not only declared")
        .help("take the declaration from the kernel's vmlinux.h: `beebox btf vmlinux --format c`"),
        Cause::KfuncMissing { kfunc, .. } => Words::new(
            "kfunc-missing",
            format!("the kernel has no kernel function `{kfunc}`"),
        )
        .needed("a kernel with the function, the BTF of the module that has it, or a path that does not reach the call")
        .help("if a module has it, give the module's BTF: `--module-btf FILE` (/sys/kernel/btf/MODULE)")
        .help(format!("for kernels without it, declare it `__weak` and call it behind `if (bpf_ksym_exists({kfunc}))`")),
        Cause::KfuncUnavailable { kfunc, rule } => kfunc_unavailable(kind, kfunc, rule),
        Cause::Trap => Words::new(
            "undefined-behaviour",
            "the compiler found undefined behaviour on this path and ends the program here",
        )
        .needed("source without undefined behaviour on this path")
        .help(
            "usually an uninitialised variable, an index beyond an array, or a shift by too \
             much; clang's -Wall names it",
        ),
        Cause::License { what, license } => Words::new(
            "license",
            format!("`{what}` needs a GPL-compatible licence; the program's is \"{license}\""),
        )
        .needed("\"GPL\", \"GPL v2\", \"GPL and additional rights\", \"Dual BSD/GPL\", \"Dual MIT/GPL\" or \"Dual MPL/GPL\"")
        .help("`char LICENSE[] SEC(\"license\") = \"Dual BSD/GPL\";`"),
        Cause::ModuleType {
            callee,
            number,
            structure,
            module,
        } => Words::new(
            "argument-type",
            format!(
                "argument {number} of `{callee}` must be the `{structure}` of module {module}, which is \
                 another type than the kernel's"
            ),
        )
        .needed(format!("a pointer to the module's own `{structure}`"))
        .help("a kernel that has the module built in, where both have one type"),
        Cause::ArgumentType {
            callee,
            number,
            found,
            expected,
        } => {
            let words = argument_type(callee, *number, found, expected);
            let is_task = |note: &Note| {
                matches!(&note.kind, NoteKind::Returned { callee, .. }
                    if callee.helper == Some(HelperId::GetCurrentTask))
            };
            match explanation.notes.iter().any(is_task) {
                true => words.help(
                    "bpf_get_current_task returns an address as a number: bpf_get_current_task_btf \
                     returns the pointer",
                ),
                false => words,
            }
        }
        Cause::ArgumentSize {
            callee,
            number,
            fault,
            value,
            check,
        } => argument_size(callee, *number, *fault, value, *check),
        Cause::ArgumentConstant { callee, number } => Words::new(
            "argument-constant",
            format!("argument {number} of `{callee}` is not a constant"),
        )
        .needed("a number that is known when the program is verified")
        .help("pass `sizeof(struct …)`; for variable sizes reserve the largest, or use a dynptr"),
        Cause::Untrusted { .. } => trust::words(explanation),
        Cause::ArgumentNotZero { callee, number } => Words::new(
            "argument-not-zero",
            format!("argument {number} of `{callee}` is reserved"),
        )
        .needed("the constant 0")
        .help("pass 0"),
        Cause::ConstantString {
            callee,
            number,
            unterminated: true,
        } => Words::new(
            "argument-string",
            format!("the string of argument {number} of `{callee}` has no 0 at its end"),
        )
        .needed("a string whose last byte is 0, within the map's value")
        .help("let the compiler count its bytes: `static const char text[] = \"…\";`, or make the array longer by one"),
        Cause::ConstantString { callee, number, .. } => {
            let words = Words::new(
                "argument-string",
                format!("argument {number} of `{callee}` is not a constant string"),
            )
            .needed("a string that ends with 0 in a map that is read-only and frozen")
            .help("declare it `static const char fmt[] = \"…\";`, so that it lies in .rodata");
            match callee.helper {
                Some(HelperId::Strncmp) => words.help(
                    "the string to compare it with comes first, in memory of the program: read \
                     it there by bpf_probe_read_user_str or bpf_probe_read_kernel_str",
                ),
                _ => words,
            }
        }
        Cause::PacketArgument { callee, number } => Words::new(
            "packet-argument",
            format!("argument {number} of `{callee}` points into the packet, which it does not take"),
        )
        .needed("memory of the program")
        .help("copy the bytes to the stack first, by assignment or bpf_skb_load_bytes"),
        Cause::GlobalArguments {
            function,
            misfit,
            read_only,
        } => global::arguments(function, misfit.as_ref(), *read_only),
        Cause::GlobalSignature { function, fault } => global::signature(function, fault),
        Cause::Map { map, kind: of, fault } => map::misuse(explanation, map, of, fault),
        _ => Words::new("other", "the call is not allowed here"),
    }
}

/// A call of a number that no helper has. libbpf writes such numbers where an object refers
/// to what the kernel lacks, so that the program is refused only if the call is reachable.
fn unknown(number: i32) -> Words {
    if number == CORE_POISON {
        return Words::new(
            "core-relocation",
            "this instruction depends on a type or field that the kernel lacks",
        )
        .needed("a kernel with the type and field, or a path that does not reach it there")
        .help(
            "bpf_core_field_exists, bpf_core_type_exists or bpf_core_enum_value_exists around it",
        );
    }
    if (KFUNC_POISON..KFUNC_POISON + MOST_NUMBERS).contains(&number) {
        return Words::new(
            "kfunc-missing",
            "the kernel has no kernel function of this name and prototype",
        )
        .needed("a kernel with the function, or a path that does not reach the call without it")
        .help("`if (bpf_ksym_exists(FUNCTION))` around it, or the BTF of the module that has it");
    }
    if (MAP_POISON..MAP_POISON + MOST_NUMBERS).contains(&number) {
        return Words::new(
            "map-missing",
            "this instruction uses a map that is not created",
        )
        .needed("the map, or a path that does not reach its use without it")
        .help("let the map be created: the kernel needs its kind, and autocreate must be on");
    }
    Words::new(
        "helper-unknown",
        format!("no helper has the number {number}"),
    )
    .needed("the number of a helper that this kernel has")
    .help("the program may be made for a newer kernel, or call a function that was not linked")
}

fn unavailable(kind: &str, helper: &Called, types: &[&str], other_attach: bool) -> Words {
    let words = Words::new(
        "helper-unavailable",
        format!(
            "{kind} programs cannot call `{helper}`{}",
            match other_attach {
                true => " with this attach type",
                false => "",
            }
        ),
    );
    let words = match types {
        [] => {
            words.needed("a kernel that is configured with it: in this one no program type has it")
        }
        types if other_attach && types.iter().all(|of| *of == kind) => {
            words.needed("another attach type, or another function or hook to attach to")
        }
        types => words.needed(format!("a program of type {}", any_of(types))),
    };
    words.help("use another helper for it, or attach the program elsewhere (another SEC)")
}

fn kfunc_unavailable(kind: &str, kfunc: &Called, rule: &KfuncRule) -> Words {
    let words = Words::new(
        "kfunc-unavailable",
        format!("{kind} programs cannot call the kernel function `{kfunc}`"),
    );
    match rule {
        KfuncRule::Types(types) if types.is_empty() => words
            .needed("a kernel function that the kernel registers for programs")
            .help("the kernel has the function, but not as a kfunc (`__bpf_kfunc`): use another one"),
        KfuncRule::Types(types) if types.contains(&kind) => words
            .needed("another attach type: the function is not registered for this one")
            .help("another kernel function or helper, or attach the program elsewhere (another SEC)"),
        KfuncRule::Types(types) => words
            .needed(format!("a program of type {}", any_of(types)))
            .help("another kernel function or helper, or another program type"),
        KfuncRule::Sleepable => words
            .needed("an LSM program, an iterator (SEC(\"iter/…\")), or a program that sleeps (`.s`)")
            .help("walk by bpf_iter_task_new, or in a program of such a type"),
        KfuncRule::DeviceBound => words
            .needed("a program that is bound to a network device")
            .help("load it for the device: bpf_program__set_ifindex, and the flag BPF_F_XDP_DEV_BOUND_ONLY"),
    }
}

/// What a call takes, in words.
fn expected_words(expected: &Expected) -> String {
    let types = match expected {
        Expected::Types(types) => types,
        Expected::Structure(name) => return format!("struct {name}"),
        Expected::Pointer { to, of_kernel } => {
            let of = if *of_kernel { " of the kernel" } else { "" };
            return format!("a pointer to a `{to}`{of}");
        }
        Expected::Object => return String::from("a pointer to an object of the kernel"),
        Expected::TypeId => return String::from("the id of a structure of the kernel's types"),
    };
    if types.len() > 5 && takes(expected, RegBase::PtrToMapValue) {
        return String::from(
            "memory: the stack, a map value, the packet, or other memory of the program",
        );
    }
    if takes_percpu(expected) {
        return String::from("a variable or member that each CPU has (`__percpu`)");
    }
    let name = |ty: &TypeText| {
        let RegType { base, flags } = ty.named();
        let words = match base {
            RegBase::PtrToMem if flags == TypeFlags::MEM_RINGBUF => {
                "a ring buffer record, as reserved"
            }
            RegBase::PtrToBtfId if flags == TypeFlags::PTR_TRUSTED => "a trusted kernel object",
            RegBase::PtrToBtfId if flags == TypeFlags::MEM_RCU => "a kernel object under RCU",
            _ if !flags.is_empty() => return ty.to_string(),
            RegBase::PtrToStack if types.len() == 1 => {
                "memory of the program: the stack, a map value, the packet, or a record"
            }
            RegBase::PtrToStack => "the stack",
            RegBase::ConstPtrToDynptr => "a dynptr that the function was given",
            RegBase::PtrToCtx => "the context (r1 at the entry, unmodified)",
            RegBase::ConstPtrToMap => "a map",
            RegBase::PtrToMapKey => "a map key",
            RegBase::PtrToMapValue => "a map value",
            RegBase::Scalar => "a number",
            RegBase::PtrToMem => "memory of known size",
            RegBase::PtrToBuf => "the buffer of the context",
            RegBase::PtrToPacket => "the packet",
            RegBase::PtrToPacketMeta => "the metadata before the packet",
            RegBase::PtrToSocket => "a socket",
            RegBase::PtrToSockCommon => "a socket (common part)",
            RegBase::PtrToTcpSock => "a TCP socket",
            RegBase::PtrToXdpSock => "an XDP socket",
            RegBase::PtrToBtfId => "a kernel object",
            RegBase::PtrToFunc => "a function",
            _ => return ty.to_string(),
        };
        words.to_owned()
    };
    let names: Vec<String> = types.iter().map(name).collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// True if a call takes this type.
fn takes(expected: &Expected, ty: impl Into<RegType>) -> bool {
    let ty = ty.into();
    matches!(expected, Expected::Types(types) if types.iter().any(|one| one.named() == ty))
}

/// True if a call takes what each CPU has.
fn takes_percpu(expected: &Expected) -> bool {
    let is_percpu = |ty: &TypeText| ty.named().flags.has(TypeFlags::MEM_PERCPU);
    matches!(expected, Expected::Types(types) if types.iter().any(is_percpu))
}

fn argument_type(callee: &Called, number: u8, found: &KnownValue, expected: &Expected) -> Words {
    let words = Words::new(
        "argument-type",
        format!("argument {number} of `{callee}` is {}", known(found)),
    )
    .needed(expected_words(expected));
    let has = |base: RegBase| takes(expected, base);
    let (has_value, has_object) = (has(RegBase::PtrToMapValue), has(RegBase::PtrToBtfId));
    let count = match expected {
        Expected::Types(types) => types.len(),
        _ => 0,
    };
    let of_kernel = match expected {
        Expected::Types(_) => has_object && !has_value,
        Expected::Structure(_) | Expected::Pointer { .. } | Expected::Object => true,
        Expected::TypeId => false,
    };
    let is_field = count == 2 && has_value && has_object;
    match found {
        KnownValue::Pointer {
            maybe_null: true, ..
        } => words.help("compare the pointer with null before the call"),
        KnownValue::Pointer { .. } if has(RegBase::PtrToCtx) => {
            words.help("pass the program's own `ctx`; in a function, pass it on as a parameter")
        }
        KnownValue::Pointer { .. } if count == 1 && has(RegBase::ConstPtrToMap) => {
            words.help("pass the map by address, `&map`; check the order of the arguments")
        }
        KnownValue::Pointer { .. } if has(RegBase::PtrToSocket) => words.help(
            "pass a socket: what a lookup returned, or the member of the context that is one",
        ),
        KnownValue::Pointer { .. }
            if count == 1 && takes(expected, RegBase::PtrToMem.with(TypeFlags::MEM_RINGBUF)) =>
        {
            words.help(
                "pass the pointer that bpf_ringbuf_reserve returned; the record of a dynptr is for \
                 bpf_ringbuf_submit_dynptr and bpf_ringbuf_discard_dynptr",
            )
        }
        KnownValue::Pointer { .. } if has(RegBase::ConstPtrToDynptr) => {
            words.help("make it a local variable of the function, and pass its address")
        }
        KnownValue::Pointer { ty, .. }
            if ty.named().flags.has(TypeFlags::MEM_RDONLY) && has(RegBase::PtrToMem) => words.help(
            "the memory may only be read: pass a variable on the stack or a map value to a call \
             that writes",
        ),
        KnownValue::Pointer { kind, .. } => match kind {
            PointerTarget::PacketEnd => {
                words.help("the end of the packet bounds accesses; pass `data`, or a copy of bytes")
            }
            PointerTarget::Context => words.help(
                "the context is no plain memory here: copy the fields to a variable on the stack \
                 and pass its address",
            ),
            PointerTarget::Map(_) => {
                words.help("pass the key or value, not the map; check the order of the arguments")
            }
            PointerTarget::Stack { .. } if is_field => words.help(
                "the field must lie in the value of a map, or in an allocated object: use the \
                 pointer that the lookup returned, not a copy on the stack",
            ),
            PointerTarget::Stack { .. } if of_kernel => words.help(
                "a copy on the stack is no object of the kernel: pass the pointer that a hook, a \
                 kernel function or a kptr gave",
            ),
            PointerTarget::MapValue { .. } | PointerTarget::Memory { .. } if of_kernel => words.help(
                "memory of the program is no object of the kernel: pass the pointer that a hook, a \
                 kernel function or a kptr gave",
            ),
            _ if takes_percpu(expected) => words.help(
                "pass a variable of the kernel that each CPU has (`extern … __ksym`), or a \
                 `__percpu_kptr` that was read from a map",
            ),
            PointerTarget::Object { .. } if of_kernel => words.help(
                "pass an object of that type, or the member that is one; a cast in C changes \
                 nothing for the verifier",
            ),
            _ => words.help("check the order of the arguments"),
        },
        KnownValue::Number(_) if has(RegBase::PtrToCtx) => {
            words.help("pass the program's own `ctx`; in a function, pass it on as a parameter")
        }
        KnownValue::Number(_) if has(RegBase::ConstPtrToMap) => words.help("pass the map by address, `&map`"),
        KnownValue::Number(_) if *expected == Expected::TypeId => {
            words.help("pass `bpf_core_type_id_kernel` of a structure, as bpf_core_cast does; 0 for plain memory")
        }
        KnownValue::Number(num) if num.as_const() == Some(0) && takes_percpu(expected) => words.help(
            "a variable (`__ksym __weak`) that the kernel lacks is null: compare its address first",
        ),
        KnownValue::Number(num) if num.as_const() == Some(0) => {
            words.help("the argument must not be null")
        }
        KnownValue::Number(_) if of_kernel => words.help(
            "a number is no pointer to an object: pass the pointer that a hook, a kernel function \
             or a kptr gave, as it was got",
        ),
        KnownValue::Number(_) if has_value || has(RegBase::PtrToStack) => words.help(
            "the value must be passed by address: `&key`, not `key`; a pointer that was read from \
             memory or computed from numbers is a number",
        ),
        KnownValue::Number(_) => {
            words.help("the value is a number to the verifier: see where it comes from")
        }
        KnownValue::Unwritten => words,
    }
}

fn argument_size(
    callee: &Called,
    number: u8,
    fault: SizeFault,
    value: &Scalar,
    check: Check,
) -> Words {
    let what = format!("argument {number} of `{callee}`, a size,");
    let (words, bounds) = match fault {
        SizeFault::Negative => (
            Words::new("size-negative", format!("{what} may be negative")),
            BoundsFault::Below,
        ),
        SizeFault::Unbounded => (
            match value.as_const() {
                Some(_) => {
                    return Words::new("size-unbounded", format!("{what} is {}", range(value)))
                        .needed("a size from 0 to that of the buffer")
                        .help("pass the size of the buffer");
                }
                None => Words::new("size-unbounded", format!("{what} has no upper bound")),
            },
            BoundsFault::Unbounded,
        ),
        SizeFault::Zero => {
            let words =
                Words::new("size-zero", format!("{what} may be 0")).needed("a size of at least 1");
            return match value.as_const() {
                Some(_) => words.help("pass the size of the buffer"),
                // Few buffers are larger, so that the upper bound is what is refused next.
                None if value.umax > 512 => words.help(
                    "check both bounds: `if (size == 0 || size > sizeof(buf)) return …;`, or \
                     `size = (size & MASK) + 1`",
                ),
                None => words.help(
                    "check it first: `if (size == 0) return …;`, or `size = (size & MASK) + 1`",
                ),
            };
        }
    };
    let words = words.needed(format!(
        "a size from 0 to that of the buffer; known is {}",
        range(value)
    ));
    edits(words, bounds, check, None)
}
