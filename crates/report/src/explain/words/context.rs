//! Wording of causes: accesses to the context, and pointers with an offset.

use verifier::reason::{
    ArgumentFault, Called, Cause, ContextFault, Explanation, InsnPlace, MergedMembers,
    PointerTarget,
};

use super::{Words, any_of, list};
use crate::explain::value::{bytes, signed, target};

/// An access to the context that the program type does not have.
pub(super) fn words(explanation: &Explanation) -> Words {
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
    if let ContextFault::Arguments {
        function,
        arguments,
        fault,
    } = fault
    {
        return arguments_of(function, arguments, *fault, *size);
    }
    let structure = match structure {
        Some(structure) => format!("`struct {structure}`"),
        None => String::from("the context"),
    };
    let field = match field {
        Some(field) => format!("`{field}` of {structure}"),
        None => format!("offset {} of {structure}", signed(*off)),
    };
    let verb = if *is_write { "written" } else { "read" };
    let kind = explanation.program_type.name();
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
        ContextFault::Never | ContextFault::Arguments { .. } => words
            .needed("a field that programs of this type and attach type may access so")
            .help(
                "the UAPI header says what the context holds; some fields exist for some attach \
                 types only",
            ),
    }
}

/// An access to a context that holds the arguments of a function.
fn arguments_of(function: &str, arguments: &[String], fault: ArgumentFault, size: u32) -> Words {
    let ordinal = |number: usize| match arguments.get(number - 1) {
        Some(argument) => format!("argument {number} of `{function}` (`{argument}`)"),
        None => format!("argument {number} of `{function}`"),
    };
    let all = match arguments {
        [] => format!("`{function}` has no arguments"),
        all => format!("`{function}` has {}", list(&quoted(all))),
    };
    let words = |headline: String| Words::new("context-argument", headline);
    match fault {
        ArgumentFault::Missing(number) => words(format!(
            "the program reads argument {number} of `{function}`, which has {}",
            arguments.len()
        ))
        .needed(format!("an argument that there is: {all}"))
        .help("give the program the parameters of the function, in their order; the result is there for fexit, fmod_ret and LSM programs only"),
        ArgumentFault::Misaligned(number) => words(format!(
            "the read begins in the middle of {}",
            ordinal(number)
        ))
        .needed("an offset that is a multiple of 8: each argument takes 8 bytes of the context")
        .help("read the whole argument (`ctx[N]`, BPF_PROG), and narrow the value afterwards"),
        ArgumentFault::Width(number) => words(format!(
            "{}, a pointer, is read as {}",
            ordinal(number),
            bytes(size)
        ))
        .needed("a read of 8 bytes")
        .help("declare the parameter as a pointer, or read the context as `u64`"),
        ArgumentFault::ReadOnly(number) => words(format!(
            "{} is written, and programs only read the arguments",
            ordinal(number)
        ))
        .needed("a context that is only read")
        .help("work on a copy of the argument; fmod_ret and LSM programs replace the result by what they return"),
        ArgumentFault::Kind(number) => words(format!(
            "{} is of a type that programs do not read from the context",
            ordinal(number)
        ))
        .needed(format!("a number or a pointer to a structure: {all}"))
        .help("attach to a function that passes it otherwise"),
    }
}

/// A pointer with an offset, where only the one that was got is taken.
pub(super) fn modified(
    reg: u8,
    kind: &PointerTarget,
    (is_variable, off): (bool, i64),
    callee: Option<&Called>,
    merged: Option<&MergedMembers>,
) -> Words {
    const NAME: &str = "modified-pointer";
    let what = target(kind);
    let offset = match is_variable {
        true => String::from("a variable offset"),
        false => format!("offset {}", signed(off)),
    };
    match merged {
        Some(merged) if is_variable => return indexed_members(NAME, &merged.members),
        Some(merged) => return merged_members(NAME, merged, &offset),
        None => {}
    }
    let headline = match callee {
        Some(callee) => format!("argument {reg} of `{callee}`, a pointer to {what}, has {offset}"),
        None => format!("{what} is accessed through a pointer with {offset}"),
    };
    let words = Words::new(NAME, headline).needed(format!(
        "r{reg} as it was got, without an offset added to it"
    ));
    match kind {
        PointerTarget::Context if callee.is_some() => {
            words.help("pass `ctx` itself; copy a member to a variable and pass that")
        }
        PointerTarget::Context => words.help(
            "access members of the context directly (`ctx->field`): loops and computed offsets \
             over the context, or a pointer to a member, are not allowed; pass the member's value",
        ),
        _ => words.help("pass the pointer itself, and keep computed copies apart"),
    }
}

/// The attribute of a structure that keeps the compiler from computing addresses of members.
const ATTRIBUTE: &str = "`__attribute__((preserve_static_offset))`";
/// The attribute for structures that others declare.
const HEADER: &str = "for the structures of a header: `#pragma clang attribute push \
                      (__attribute__((preserve_static_offset)), apply_to = record)` before its \
                      `#include`, and `#pragma clang attribute pop` behind";

fn quoted(members: &[String]) -> Vec<String> {
    let quoted = members.iter().map(|member| format!("`{member}`"));
    quoted.collect()
}

/// Members or elements of the context that an index chooses.
fn indexed_members(name: &'static str, members: &[String]) -> Words {
    Words::new(
        name,
        format!(
            "the context is accessed through a pointer with a variable offset, at {}",
            list(&quoted(members))
        ),
    )
    .needed("a constant offset in the instruction, for each member or element of its own")
    .help(format!(
        "choose by constants, one access in each branch (`i == 0 ? ctx->a[0] : ctx->a[1]`), and \
         declare the structure of the context with {ATTRIBUTE}, so that the compiler does not \
         make one access of them"
    ))
    .help(HEADER)
}

/// Members of the context whose address the program computes before the access.
fn merged_members(name: &'static str, merged: &MergedMembers, offset: &str) -> Words {
    let members = quoted(&merged.members);
    let line = |place: &InsnPlace| match &place.source {
        Some(source) => format!("line {}", source.line),
        None => format!("instruction {}", place.insn),
    };
    let [only] = &members[..] else {
        let between = match &merged.branch {
            Some(place) => format!(" between which {} chooses", line(place)),
            None => String::new(),
        };
        return Words::new(
            name,
            format!(
                "one instruction accesses {} of the context, through a pointer with {offset}",
                any_of(&members)
            ),
        )
        .needed("an instruction for each member, with its offset in the instruction")
        .help(format!(
            "the compiler made one access of those to {}{between}: declare the structure of the \
             context with {ATTRIBUTE}, so that they stay apart",
            list(&members)
        ))
        .help(HEADER);
    };
    Words::new(
        name,
        format!("{only} of the context is accessed through a pointer with {offset}"),
    )
    .needed("the offset in the instruction, and the context as it was got in the register")
    .help(format!(
        "if the source reads `ctx->{}`, the compiler computed the member's address before: \
         declare the structure of the context with {ATTRIBUTE}",
        merged.members[0]
    ))
    .help(HEADER)
    .help("a pointer to a member (`&ctx->field`) is not allowed: pass the member's value, or `ctx`")
}
