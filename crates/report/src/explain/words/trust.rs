//! Wording of causes: pointers to objects that a call needs trusted, and that are not.

use spec::programs::ProgramType;
use verifier::reason::{Cause, Explanation, LostTrust};

use super::Words;

pub(super) fn words(explanation: &Explanation) -> Words {
    const NAME: &str = "argument-untrusted";
    let Cause::Untrusted {
        callee,
        number,
        structure,
        takes_rcu,
        lost,
    } = &explanation.cause
    else {
        return Words::new(NAME, "the pointer is not trusted");
    };
    let what = match structure.as_str() {
        "" => String::from("a pointer"),
        name => format!("a pointer to `struct {name}`"),
    };
    let why = match lost {
        LostTrust::Member(owner) => {
            format!("that was read from `struct {owner}`, and may be gone by now")
        }
        LostTrust::Rcu { .. } => {
            String::from("that RCU protects, and of which the program holds no reference")
        }
        LostTrust::Kptr => String::from("that was read from a map outside of an RCU section"),
        LostTrust::SectionEnd(callee) => format!("that is valid only until `{callee}`"),
        LostTrust::Traced if explanation.program_type == ProgramType::Lsm => {
            String::from("that is freed by now, or may be: this hook's arguments are not trusted")
        }
        LostTrust::Traced => {
            String::from("that a traced function got as its argument, without the kernel's trust")
        }
        LostTrust::Cast => String::from("that a cast made"),
        LostTrust::Number => String::from("to something that is no object of the kernel"),
        LostTrust::Unknown => String::from("that the verifier does not trust"),
    };
    let words = Words::new(
        NAME,
        format!("argument {number} of `{callee}` is {what} {why}"),
    )
    .needed(match takes_rcu {
        true => "a trusted pointer, or one that RCU protects and that was compared with null",
        false => {
            "a trusted pointer: one that the program acquired, or an argument of a tracepoint \
                 (`tp_btf`), an LSM hook or an operation"
        }
    });
    match lost {
        LostTrust::Member(_) if *takes_rcu => words
            .help("read the member between bpf_rcu_read_lock and bpf_rcu_read_unlock, if it is `__rcu`, and compare it with null")
            .help("or pass the object itself, or one that a kernel function acquired, such as bpf_task_from_pid"),
        LostTrust::Member(_) => words
            .help("pass the object itself, or acquire the member: bpf_task_acquire, bpf_cgroup_acquire and others take members that RCU protects")
            .help("reading through it is allowed: copy the numbers that are needed"),
        LostTrust::Rcu { from_map: true } => words.help(
            "take it out of the map by bpf_kptr_xchg, which gives the reference, or acquire one of \
             your own (bpf_task_acquire, bpf_cgroup_acquire)",
        ),
        LostTrust::Rcu { from_map: false } => words.help(
            "acquire a reference of it first (bpf_task_acquire, bpf_cgroup_acquire)",
        ),
        LostTrust::Kptr if *takes_rcu => words
            .help("call bpf_rcu_read_lock before the pointer is read from the map, and bpf_rcu_read_unlock behind its last use")
            .help("or take it out of the map by bpf_kptr_xchg, which gives the reference"),
        LostTrust::Kptr => words.help(
            "take it out of the map by bpf_kptr_xchg, which gives the reference, or acquire it \
             inside an RCU section",
        ),
        LostTrust::SectionEnd(end) => words.help(format!(
            "call `{callee}` before `{end}`, or acquire a reference before it"
        )),
        LostTrust::Traced if explanation.program_type == ProgramType::Lsm => words.help(
            "attach to another LSM hook of the operation, or read what is needed through the pointer",
        ),
        LostTrust::Traced => words.help(
            "attach to a tracepoint (`tp_btf`) or an LSM hook, whose arguments are trusted, or get \
             the object by a function that acquires it, such as bpf_task_from_pid",
        ),
        LostTrust::Cast => words.help(
            "bpf_core_cast and bpf_rdonly_cast are for reading only: pass the pointer before the cast",
        ),
        LostTrust::Number | LostTrust::Unknown => words.help(
            "get the object from a hook (`tp_btf`, LSM) or by a function that acquires it, such as \
             bpf_task_from_pid",
        ),
    }
}
