//! Wording of causes: control flow, return values, limits, and all other causes.

use verifier::reason::{Cause, Explanation, KnownValue, PointerTarget, TargetFault};

use super::Words;
use crate::explain::value::{known, range, signed};

/// Instructions on a path from which on it is the path that is too long.
const ONE_PATH: usize = 100_000;

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::ReturnRange {
            value,
            min,
            max,
            is_callback,
        } => {
            let who = match is_callback {
                true => String::from("the callback"),
                false => format!("this {} program", explanation.program_type),
            };
            let what = match value {
                KnownValue::Number(num) => match num.as_const() {
                    Some(value) => format!("returns {}", signed(value as i64)),
                    None => format!("may return {}", range(num)),
                },
                value => format!("returns {}", known(value)),
            };
            let allowed = match min == max {
                true => signed(*min),
                false => format!("a value from {} to {}", signed(*min), signed(*max)),
            };
            Words::new("return-range", format!("{who} {what}"))
                .needed(format!("{allowed} on every path"))
                .help("return a constant of these on every path; bound or mask a computed result")
        }
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
        Cause::CallDepth { chain } => {
            const SHOWN: usize = 10;
            let names = chain.iter().take(SHOWN).map(|name| format!("`{name}`"));
            let mut names: Vec<String> = names.collect();
            if chain.len() > SHOWN {
                names.push(String::from("…"));
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
        Cause::AttachTarget(fault) => {
            Words::new("attach-target", "the program cannot attach to its target").help(target(*fault))
        }
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

/// What to do about a program that cannot attach to its target.
fn target(fault: TargetFault) -> &'static str {
    match fault {
        TargetFault::Sleeps => {
            "programs may not sleep there: leave `.s` out of the section name, or attach to an LSM hook \
             where they may"
        }
        TargetFault::NotModifiable => {
            "only functions of `security_` and few others take another result: attach by fexit to read it"
        }
        TargetFault::NeverReturns => "the function does not return: attach by fentry",
        TargetFault::Hook => "Linux leaves this hook out for programs: attach to another one",
        TargetFault::Operation => {
            "the kernel does not call a program there, or not one that sleeps: leave the member out"
        }
        TargetFault::Static => {
            "only global functions are replaced: leave out `static`, and keep it by \
             `__attribute__((noinline))`"
        }
        TargetFault::ChangesPacket => {
            "the program around the function keeps its packet pointers: let the replaced function call a \
             helper that changes packets too, or change none"
        }
        TargetFault::ReplacementSleeps => {
            "let the replaced function call something that may sleep too, or call nothing that may"
        }
        TargetFault::Prototype => {
            "give the replacement the parameters and the result of the function"
        }
        TargetFault::Other => "check the section name: the function or hook, and the attach type",
    }
}
