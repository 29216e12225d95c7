//! Wording of causes: signatures and arguments of global functions.

use spec::registry::RegBase;
use verifier::reason::{KnownValue, Parameter, ParameterFault, PointerTarget, SignatureFault};

use super::Words;
use crate::explain::value::{bytes, known};

const STATIC: &str = "declare the function `static`, so that it is verified with each caller";

/// A signature that global functions cannot have.
pub(super) fn signature(function: &str, fault: &SignatureFault) -> Words {
    const NAME: &str = "global-signature";
    match fault {
        SignatureFault::NotFunction => Words::new(
            NAME,
            format!("the BTF of the global function `{function}` is not that of a function"),
        )
        .needed("BTF of the function with its prototype")
        .help("compile with -g, and let no tool change the BTF"),
        SignatureFault::TooManyArguments(count) => Words::new(
            NAME,
            format!("the global function `{function}` has {count} arguments"),
        )
        .needed("at most 5 arguments, which registers pass")
        .help("pass several values in one structure, by pointer"),
        SignatureFault::Result(ty) => Words::new(
            NAME,
            format!("the global function `{function}` has the result type `{ty}`, no number"),
        )
        .needed("a number as the result: an integer or enumeration")
        .help(STATIC)
        .help(match ty.as_str() {
            "void" => "return an `int`, such as 0",
            _ => "return a number, and write the result where a pointer argument points to",
        }),
        SignatureFault::Argument { number, ty, fault } => {
            let what = format!("argument {number} of the global function `{function}`, `{ty}`,");
            argument(NAME, &what, fault)
        }
    }
}

fn argument(name: &'static str, what: &str, fault: &ParameterFault) -> Words {
    match fault {
        ParameterFault::Kind => {
            Words::new(name, format!("{what} is neither a number nor a pointer"))
                .needed("a number, the context, or a pointer to a type of known size")
                .help("pass a pointer to it instead of the value")
                .help(STATIC)
        }
        ParameterFault::Unsized => Words::new(
            name,
            format!("{what} points to something of unknown size"),
        )
        .needed("a pointer to a type of known size, which is what the function may access")
        .help("declare it as a pointer to the structure that is passed")
        .help(STATIC),
        ParameterFault::Tags => Words::new(
            name,
            format!("{what} has tags (`__arg_…`) that are unknown or do not go together"),
        )
        .needed("one of __arg_ctx, __arg_nonnull, __arg_trusted (with __arg_nullable), __arg_untrusted, __arg_arena, on a pointer of a global function")
        .help("keep the tag that says what is passed"),
        ParameterFault::Context(expected) => Words::new(
            name,
            format!("{what} is tagged as the context, and is of another type"),
        )
        .needed(match expected {
            Some(expected) => format!("`struct {expected} *`, or `void *`"),
            None => String::from("`void *`"),
        })
        .help("declare the parameter with the type of the program's context"),
        ParameterFault::NoKernelType => Words::new(
            name,
            format!("{what} points to a structure that the kernel does not have"),
        )
        .needed("the name of a structure of the kernel")
        .help("check the name; for memory of the program, leave the tag out"),
        ParameterFault::AmbiguousKernelType => Words::new(
            name,
            format!("{what} points to a structure of which the kernel has several"),
        )
        .needed("a name that one structure of the kernel has")
        .help(STATIC),
    }
}

/// Arguments that do not fit a global function.
pub(super) fn arguments(
    function: &str,
    misfit: Option<&(u8, KnownValue, Parameter)>,
    read_only: bool,
) -> Words {
    const NAME: &str = "global-arguments";
    let words = match misfit {
        None => Words::new(
            NAME,
            format!("the arguments do not fit the prototype of the global function `{function}`"),
        )
        .needed("arguments of the types that the function's BTF states"),
        Some((number, found, expected)) => Words::new(
            NAME,
            format!(
                "argument {number} of the global function `{function}` is {}",
                known(found)
            ),
        )
        .needed(parameter(expected)),
    };
    let edit = match read_only {
        true => {
            Some("it may only be read: copy it to a variable on the stack, and pass its address")
        }
        false => misfit.and_then(|(_, found, expected)| edit(found, expected)),
    };
    let words = match edit {
        Some(edit) => words.help(edit),
        None => words,
    };
    words.help(format!(
        "a global function is verified on its own by its types: pass what they say, or {STATIC}"
    ))
}

/// The edit of an argument, where the value and what is taken tell it.
fn edit(found: &KnownValue, expected: &Parameter) -> Option<&'static str> {
    Some(match (found, expected) {
        (
            KnownValue::Pointer {
                maybe_null: true, ..
            },
            _,
        ) => "compare it with null before the call",
        (
            KnownValue::Pointer {
                kind:
                    PointerTarget::Object {
                        untrusted: true, ..
                    },
                ..
            },
            Parameter::Object { .. },
        ) => {
            "pass the object itself, or one that a kernel function acquired, such as \
             bpf_task_from_pid"
        }
        (KnownValue::Number(_), Parameter::Memory { .. }) => {
            "pass the address of a variable, `&variable`; for an address in an arena, tag the \
             parameter `__arg_arena`"
        }
        (
            KnownValue::Pointer {
                kind: PointerTarget::Other(ty),
                ..
            },
            _,
        ) if ty.named().base == RegBase::PtrToArena => "tag the parameter `__arg_arena`",
        (
            KnownValue::Pointer {
                kind: PointerTarget::Stack { .. },
                ..
            },
            Parameter::Dynptr,
        ) => "make the dynptr before the call, and pass the address of its variable",
        _ => return None,
    })
}

fn parameter(parameter: &Parameter) -> String {
    let or_null = |nullable: bool| match nullable {
        true => ", or null",
        false => "",
    };
    match parameter {
        Parameter::Number => String::from("a number"),
        Parameter::Context => String::from("the context (r1 at the entry, unmodified)"),
        Parameter::Memory { size, nullable } => format!(
            "a pointer to memory of {} that may be written, all of it initialised{}",
            bytes(*size),
            or_null(*nullable)
        ),
        Parameter::Untrusted => String::from("an address"),
        Parameter::Object { name, nullable } => {
            format!("a trusted pointer to `struct {name}`{}", or_null(*nullable))
        }
        Parameter::Arena => String::from("an address in the arena, or a number"),
        Parameter::Dynptr => String::from("a dynptr on the stack"),
    }
}
