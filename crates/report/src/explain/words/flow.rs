//! Wording of causes: control flow, return values, limits, and all other causes.

use verifier::reason::{Cause, ExceptionFault, Explanation, KnownValue, PointerTarget};

use super::{Words, attach, returns};
use crate::explain::value::known;

/// Instructions on a path from which on it is the path that is too long.
const ONE_PATH: usize = 100_000;

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::ReturnRange { .. } => returns::words(explanation),
        Cause::Exception(fault) => exception(fault),
        Cause::ReturnPointer { value } => Words::new(
            "return-pointer",
            format!("the result is {}", known(value)),
        )
        .needed("a number in r0 at the end")
        .help(match value {
            KnownValue::Pointer {
                kind: PointerTarget::Stack { .. },
                ..
            } => "the stack of a function ends with it: let the caller pass a buffer",
            _ => "return a number; r0 may still hold the result of the last call",
        }),
        Cause::InfiniteLoop {
            registers,
            reads_memory,
            insns,
        } => infinite_loop(registers, *reads_memory, *insns),
        Cause::TooComplex { .. } if explanation.path.steps > ONE_PATH => Words::new(
            "too-complex",
            "the verifier gave up after 1 million instructions, nearly all on one path",
        )
        .needed("a loop with fewer iterations, or one whose state the verifier sees repeat")
        .help("bound the loop by a small constant; of a loop with a large bound or none, use bpf_loop, bpf_for or may_goto, whose body is verified once"),
        Cause::TooComplex { .. } => Words::new(
            "too-complex",
            "the verifier gave up after 1 million instructions on all paths together",
        )
        .needed("fewer paths, or paths that the verifier finds equal")
        .help("bound loops by a small constant, or use bpf_loop, bpf_for or may_goto, whose body is verified once")
        .help("move code to global functions (not static), which are verified once each")
        .help("fewer branches on values that differ on every path"),
        Cause::TooManyBranches { .. } => Words::new(
            "too-many-branches",
            "more than 8192 branches wait to be verified",
        )
        .needed("fewer branches on one path")
        .help("each iteration of a loop with a branch in it keeps one waiting: bound the iterations by a smaller constant")
        .help("use loops (bpf_loop, bpf_for) in place of unrolled code, and global functions"),
        Cause::StackDepth { chain } => stack_depth(chain),
        Cause::CallDepth { chain, recurses } => {
            const SHOWN: usize = 10;
            let names = chain.iter().take(SHOWN).map(|name| format!("`{name}`"));
            let mut names: Vec<String> = names.collect();
            if chain.len() > SHOWN {
                names.push(String::from("…"));
            }
            if *recurses {
                return Words::new("call-depth", "a function calls itself, directly or through others")
                    .needed(format!("a chain without a function twice: {}", names.join(" → ")))
                    .help("use a loop (bpf_loop, bpf_for), and keep what is left to do in an array of fixed size");
            }
            Words::new("call-depth", "more than 8 functions call each other in a chain")
                .needed(format!("a chain of at most 8: {}", names.join(" → ")))
                .help("inline some of the functions (`static __always_inline`)")
        }
        Cause::TooMany => Words::new("limit", "the program exceeds a limit of the kernel")
            .help("split the program: tail calls, or several programs"),
        Cause::Unreachable => Words::new("unreachable", "no path reaches this instruction")
            .needed("a path to every instruction")
            .help("remove it; compilers leave such code behind calls that do not return"),
        Cause::BackEdge { to } => Words::new(
            "back-edge",
            format!("a jump back to instruction {} makes a loop", to.insn),
        )
        .needed("jumps forward only")
        .help("unroll the loop, or use bpf_loop"),
        Cause::JumpOutOfRange => Words::new(
            "jump-out-of-range",
            "the target is not an instruction of this function",
        )
        .needed("a jump within the function; functions are entered by calls only")
        .help("the object may be damaged, or the assembly counts instructions wrongly (64-bit immediates take two)"),
        Cause::FallsThrough { function } => {
            let function = match function.as_str() {
                "" => String::from("the function"),
                name => format!("`{name}`"),
            };
            Words::new("falls-through", format!("{function} does not end with exit or a jump"))
                .needed("`exit` or a jump as last instruction")
                .help("return from every path; code behind a call that does not return needs it too")
        }
        Cause::DivisionByZero => Words::new("division-by-zero", "a division by the constant 0")
            .needed("another divisor")
            .help("the divisor is a constant in the source, or became one by optimisation"),
        Cause::ShiftTooFar => Words::new("shift-too-far", "a shift by as many bits as there are, or more")
            .needed("a shift below the width (32 or 64)"),
        Cause::Encoding => Words::new("encoding", "this instruction is invalid in this kernel")
            .needed("an instruction of this kernel with its reserved fields 0")
            .help("the compiler's -mcpu may be too new for the kernel, or the bytes are damaged"),
        Cause::AttachTarget(fault) => attach::words(explanation, fault),
        Cause::Btf => Words::new("btf", "the program's BTF does not fit its instructions")
            .help("compile with -g, and let no tool change instructions without BTF.ext"),
        Cause::Privilege => Words::new("privilege", "the loader lacks a capability")
            .help("load with CAP_BPF and CAP_PERFMON"),
        Cause::Release => Words::new("release", explanation.refusal.message())
            .needed("a kernel of that release, or a path that does not reach it on this one")
            .help("a check of what the kernel has around it, as bpf_core_enum_value_exists or bpf_ksym_exists"),
        Cause::KernelBug => Words::new("kernel-bug", "the kernel's verifier finds itself at fault")
            .help("report the program to bpf@vger.kernel.org; a small change of the source may avoid it"),
        _ => Words::new("other", explanation.refusal.message()),
    }
}

fn infinite_loop(registers: &[u8], reads_memory: bool, insns: usize) -> Words {
    let words = Words::new(
        "infinite-loop",
        match insns {
            0 | 1 => String::from("the loop comes back in the same state: it may not end"),
            insns => format!(
                "after {insns} instructions the loop comes back in the same state: it may not end"
            ),
        },
    );
    match registers {
        [] => words
            .needed("a condition that ends the loop")
            .help("add a bound: `for (int i = 0; i < N; i++)`, or use may_goto (`can_loop`)"),
        _ if reads_memory => words
            .needed("a bound on the iterations that does not depend on memory")
            .help("the condition reads memory in each iteration, and the verifier does not expect it to change: a program cannot wait for another one")
            .help("bound the iterations by a local counter as well: `for (i = 0; i < N && …; i++)`, or use bpf_loop, bpf_for or may_goto (`can_loop`)"),
        registers => {
            let names: Vec<String> = registers.iter().map(|reg| format!("r{reg}")).collect();
            words
                .needed(format!(
                    "progress that the verifier sees in {}, which the conditions read",
                    names.join(", ")
                ))
                .help("count iterations in a local variable against a constant: `for (i = 0; i < N; i++)`")
                .help("a counter that is not known at the start, or kept in a map, is no progress: use bpf_loop, bpf_for or may_goto (`can_loop`)")
        }
    }
}

fn stack_depth(chain: &[verifier::reason::Chain]) -> Words {
    let sum: u32 = chain.iter().map(|link| link.stack).sum();
    let links: Vec<String> = chain
        .iter()
        .map(|link| {
            let name = match link.function.as_str() {
                "" => "main",
                name => name,
            };
            format!("`{name}` {}", link.stack)
        })
        .collect();
    Words::new(
        "stack-depth",
        match chain {
            [only] => format!("a function uses {} bytes of stack", only.stack),
            _ => format!("a chain of calls uses {sum} bytes of stack"),
        },
    )
    .needed(format!("at most 512 bytes along {}", links.join(" → ")))
    .help("move large variables to a per-CPU array map of one entry")
    .help("call functions one after another instead of nested, or inline them so that they share stack")
}

/// Exceptions and the callback that catches them.
fn exception(fault: &ExceptionFault) -> Words {
    const NAME: &str = "exception";
    match fault {
        ExceptionFault::InCallback => Words::new(
            NAME,
            "`bpf_throw` is called in a function that the kernel calls back, or from one",
        )
        .needed("`bpf_throw` in the program, or in functions that only the program calls")
        .help("return a value from the callback, and throw behind the call of the helper"),
        ExceptionFault::CallbackCalled => Words::new(
            NAME,
            "the program calls its exception callback like another function",
        )
        .needed("a call by `bpf_throw` only")
        .help("move what both need to another function, and call that"),
        ExceptionFault::Signature => Words::new(
            NAME,
            "the exception callback does not take one number",
        )
        .needed("`int callback(u64 cookie)`: the argument of `bpf_throw`, and the program's result")
        .help("give the callback exactly one parameter, an integer"),
        ExceptionFault::Several => {
            Words::new(NAME, "the program names more than one exception callback")
                .needed("one `__exception_cb(NAME)` for a program")
                .help("leave the other declaration tags out")
        }
        ExceptionFault::Missing(name) => Words::new(
            NAME,
            format!("the program has no function `{name}` for its exception callback"),
        )
        .needed(format!("a global function `{name}` in the program"))
        .help("check the name in `__exception_cb(NAME)`, and that the compiler keeps the function"),
        ExceptionFault::Static(name) => {
            Words::new(NAME, format!("the exception callback `{name}` is static"))
                .needed("a global function")
                .help("leave out `static`, and keep it by `__attribute__((noinline))`")
        }
    }
}
