//! Wording of causes: programs that cannot attach to their target.

use verifier::reason::{Explanation, TargetFault};

use super::Words;

/// What such a program cannot do, and what to do about it.
pub(super) fn words(explanation: &Explanation, fault: &TargetFault) -> Words {
    let of = |headline: String| Words::new("attach-target", headline);
    let plain = |headline: &str| Words::new("attach-target", headline);
    match fault {
        TargetFault::Sleeps(name) => of(format!(
            "the program may sleep, and programs at `{name}` must not"
        ))
        .needed("a function that may sleep: of the list for error injection, a kernel function that sleeps, or such an LSM hook")
        .help("leave `.s` out of the section name, or attach to an LSM hook where programs may sleep"),
        TargetFault::SleepingType => of(format!(
            "the program may sleep, and programs of type {} at this place never do",
            explanation.program_type.name()
        ))
        .needed("an fentry, fexit, fmod_ret, LSM, iterator, uprobe or struct_ops program")
        .help("leave `.s` out of the section name"),
        TargetFault::SleepsAlways => plain("a syscall program is loaded as one that does not sleep")
            .needed("the flag BPF_F_SLEEPABLE")
            .help("SEC(\"syscall\") sets it"),
        TargetFault::NotModifiable(name) => of(format!(
            "programs may not replace what `{name}` returns"
        ))
        .needed("a function whose name begins with `security_`, or one of the list for error injection")
        .help("attach by fexit to read the result, or replace that of a `security_` function"),
        TargetFault::NeverReturns(name) => of(format!("`{name}` never returns"))
            .needed("a function that returns")
            .help("attach by fentry"),
        TargetFault::Denied(name) => of(format!(
            "`{name}` is not for tracing: programs run inside of it"
        ))
        .needed("another function")
        .help("attach to a function that calls it, or to a tracepoint near it"),
        TargetFault::Hook(name) => of(format!("`{name}` is a hook that Linux closes to programs"))
            .needed("another hook")
            .help("attach to another hook of the same operation"),
        TargetFault::Operation { member, structure } => of(format!(
            "the kernel calls no program for member `{member}` of `struct {structure}`"
        ))
        .needed("a member that the structure's kernel code lets programs implement, and lets sleep if the program may")
        .help(format!("leave `{member}` out of the structure; if the program is sleepable, take `.s` from its section name")),
        TargetFault::Static(name) => of(format!("{} is static", function(name)))
            .needed("a global function, which is verified on its own")
            .help("leave out `static` in the program that is replaced, and keep the function by `__attribute__((noinline))`"),
        TargetFault::NoFunction(name) => {
            of(format!("the target program has no function `{name}`"))
                .needed("the name of one of its functions")
                .help("check the section name, and that the compiler keeps the function (`__attribute__((noinline))`)")
        }
        TargetFault::ReplacesKernel => plain("a replacement is for functions of programs, not of the kernel")
            .needed("a program with the function")
            .help("give the program that is replaced: `--target FILE.o:PROGRAM`"),
        TargetFault::ChangesPacket => {
            plain("the replacement changes packets, and the function that it replaces does not")
                .needed("a function whose callers read packet pointers again behind it")
                .help("let the replaced function call a helper that changes packets too, or change none")
        }
        TargetFault::ReplacementSleeps => {
            plain("the replacement may sleep, and the function that it replaces does not")
                .needed("a function whose callers expect that it sleeps")
                .help("let the replaced function call something that may sleep too, or call nothing that may")
        }
        TargetFault::ParameterCount(count, wanted) => of(format!(
            "the replacement has {}, and the function {}",
            parameters(*count),
            wanted
        ))
        .needed(format!("{}, of the same types", parameters(*wanted)))
        .help("give the replacement the prototype of the function"),
        TargetFault::Parameter {
            number,
            found,
            wanted,
        } => of(format!(
            "parameter {number} of the replacement is {}, and that of the function {}",
            kind(found),
            kind(wanted)
        ))
        .needed(kind(wanted))
        .help("give the replacement the prototype of the function"),
        TargetFault::Result { found, wanted } => of(format!(
            "the replacement returns {}, and the function {}",
            kind(found),
            kind(wanted)
        ))
        .needed(kind(wanted))
        .help("give the replacement the prototype of the function"),
        TargetFault::Nested => plain("the target is itself a program that traces or replaces another")
            .needed("a program that traces and replaces nothing")
            .help("attach to the first program of the chain"),
        TargetFault::Missing => plain("the program names no function to attach to")
            .needed("the name of a function or hook")
            .help("name it in the section (`SEC(\"fentry/NAME\")`), or give it: `--attach PROG=NAME`"),
        TargetFault::Release => plain("the kernel does not know the program's attach type")
            .needed("a newer kernel, or another attach type")
            .help("attach to one function (`SEC(\"fentry/NAME\")`), or choose the kernel with `--kernel`"),
        TargetFault::Other => of(explanation.refusal.message())
            .help("check the section name: the function or hook, and the attach type"),
    }
}

fn function(name: &str) -> String {
    match name {
        "the function" => String::from("the replaced function"),
        name => format!("`{name}`"),
    }
}

fn parameters(count: i64) -> String {
    match count {
        1 => String::from("1 parameter"),
        count => format!("{count} parameters"),
    }
}

/// The kernel's name of a kind of type in words.
fn kind(name: &str) -> String {
    match name {
        "INT" => String::from("a number"),
        "PTR" => String::from("a pointer"),
        "STRUCT" | "UNION" => String::from("a structure"),
        "ENUM" | "ENUM64" => String::from("an enumeration"),
        "VOID" | "UNKN" | "(anon)" => String::from("nothing"),
        name if name.ends_with('*') => format!("a `{name}`"),
        name => name.to_owned(),
    }
}
