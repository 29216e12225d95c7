//! Deadlines of native code.

use std::arch::asm;
use std::time::{Duration, Instant};

use isa::ebpf::assemble;
use spec::SplitMix;
use sys::process::thread_time;

use lower::MemoryProgram;
use vm::{Machine, Outcome};

use super::context::fuel;
use super::*;

/// Compiles a program that accesses no memory but its stack.
fn compile(text: &str) -> Native<MemoryProgram> {
    let insns = assemble(text).expect(text);
    // SAFETY: every program of these tests accesses its stack only. They need not
    // terminate, since every run has a deadline.
    let trusted = unsafe { vm::Unchecked::assume_safe(insns) };
    let lowered = Lowered::from_unchecked(trusted).expect(text);
    let options = Options {
        features: crate::Features::detect(),
        deadline: true,
        ..Options::default()
    };
    Native::compile(&lowered, &options, &Pool::new()).unwrap()
}

fn run_for(native: &Native<MemoryProgram>, time: Duration) -> Outcome {
    let deadline = Deadline::at(Instant::now() + time);
    let random = &mut SplitMix::new(1);
    native.run_until(&mut Machine::new(), &mut [], random, deadline)
}

/// The text of a function that uses all callee-saved registers and some stack before
/// `then`.
fn busy(name: &str, slots: usize, then: &str) -> String {
    let mut text = format!("{name}: r6 = 6\nr7 = 7\nr8 = 8\nr9 = 9\n");
    for slot in 1..=slots {
        text += &format!("*(u64 *)(r10 - {}) = r6\n", 8 * slot);
    }
    text + then
}

/// A loop whose back edges are in a switch that becomes a table.
fn endless_switch() -> String {
    let mut text = String::from("r1 = 0\nr0 = 0\ngoto first\nlow: ");
    for key in 0..16 {
        let label = if key == 8 { "high: " } else { "" };
        text += &format!("{label}if w1 == {key} goto key{key}\n");
        if key % 8 == 7 {
            text += "goto last\n";
        }
    }
    for key in 0..16 {
        text += &format!("key{key}: r0 += {key}\ngoto last\n");
    }
    text + "last: w1 += 1\nw1 &= 15\nfirst: if w1 s> 7 goto high\ngoto low"
}

/// Programs that do not terminate.
fn endless() -> Vec<String> {
    let loops = [
        "again: goto again",
        "gotol -1",
        "again: r0 += 1\ngoto again",
        // Every kind of back edge: a branch, a branch over a jump, a branch that is always
        // taken, and may_goto.
        "r3 = 0\nagain: r3 |= 1\nif r3 != 0 goto again\nr0 = 0\nexit",
        "r3 = 0\nagain: r3 |= 1\nif r3 == 0 goto out\ngoto again\nout: r0 = 0\nexit",
        "r3 = 1\nif r3 == 2 goto +1\nif w3 s> 0 goto -2\nr0 = 0\nexit",
        "r0 = 0\nagain: may_goto again\ngoto again",
        // A loop with a division, which needs rax and rdx.
        "r3 = 3\nr4 = 0\nagain: r4 += 1\nr5 = r4\nr5 /= r3\nif r5 & 1 goto again\nr3 += 2\ngoto again",
    ];
    let mut programs: Vec<String> = loops.map(String::from).to_vec();
    programs.push(endless_switch());
    for end in loops {
        for (outer, inner) in [(0, 0), (1, 6), (6, 1), (6, 60), (60, 0)] {
            // The entry uses no callee-saved register.
            let store = "*(u64 *)(r10 - 8) = r1\n".repeat(outer);
            let mut text = format!("{store}call a\nr0 = 1\nexit\n");
            text += &busy("a", inner, "call b\nr0 = r6\nexit\n");
            text += &busy("b", outer, "call c\nr0 += r7\nexit\n");
            text += &busy("c", 0, end);
            programs.push(text);
            programs.push(format!(
                "{}{}",
                busy("a", outer, "call c\nexit\n"),
                busy("c", inner, end)
            ));
        }
    }
    programs
}

#[test]
fn a_deadline_ends_endless_programs() {
    let correct =
        compile("r0 = 0\nr3 = 100000\nagain: r0 += 1\nr3 += -1\nif r3 != 0 goto again\nexit");
    let mut late = Vec::new();
    for text in endless() {
        let native = compile(&text);
        for micros in [0, 10, 300] {
            let time = Duration::from_micros(micros);
            let (start, began) = (Instant::now(), thread_time());
            assert_eq!(run_for(&native, time), Outcome::DeadlinePassed, "{text}");
            let took = start.elapsed();
            assert!(took >= time, "{took:?}: {text}");
            // A run that waits for a processor is not late.
            late.push((thread_time() - began).saturating_sub(time));
            let far = Duration::from_secs(600);
            assert_eq!(run_for(&correct, far), Outcome::Returned(100_000));
        }
    }
    late.sort();
    let middle = late[late.len() / 2];
    assert!(middle < Duration::from_millis(1), "{middle:?}");
}

/// Seven levels of 15 calls each, without loops.
#[test]
fn a_deadline_ends_calls_without_loops() {
    let calls = |name: &str| format!("call {name}\n").repeat(15);
    let mut text = calls("f1") + "r0 = 0\nexit\n";
    for level in 1..7 {
        text += &busy(
            &format!("f{level}"),
            level,
            &calls(&format!("f{}", level + 1)),
        );
        text += "r0 = 0\nexit\n";
    }
    text += &busy("f7", 3, "r0 = 0\nexit\n");
    let native = compile(&text);
    let time = Duration::from_millis(5);
    let start = Instant::now();
    assert_eq!(run_for(&native, time), Outcome::DeadlinePassed);
    assert!(start.elapsed() >= time);
}

#[test]
fn a_run_before_its_deadline_completes() {
    let native =
        compile("r0 = 0\nr3 = 1000\nagain: r0 += 2\nr3 += -1\nif r3 != 0 goto again\nexit");
    let random = &mut SplitMix::new(1);
    let machine = &mut Machine::new();
    assert_eq!(
        native.run(machine, &mut [], random),
        Outcome::Returned(2000)
    );
    let far = Deadline::at(Instant::now() + Duration::from_secs(600));
    for rounds in [0, 1, 7, 999, 1000, 1001] {
        let deadline = far.checking_every(rounds);
        let outcome = native.run_until(machine, &mut [], random, deadline);
        assert_eq!(outcome, Outcome::Returned(2000));
    }
    // A deadline that has passed ends the run at the first check.
    let passed = Deadline::at(Instant::now());
    for (rounds, outcome) in [
        (999, Outcome::DeadlinePassed),
        (1000, Outcome::Returned(2000)),
    ] {
        let deadline = passed.checking_every(rounds);
        assert_eq!(
            native.run_until(machine, &mut [], random, deadline),
            outcome
        );
    }
}

/// Loop iterations and calls of functions that are not short consume fuel, in whichever
/// function.
#[test]
fn fuel_is_counted_across_functions() {
    let text = "r6 = 100\nagain: call f\ncall g\nr6 += -1\nif r6 != 0 goto again\nr0 = 5\nexit\n\
        f: r3 = 10\nround: r3 += -1\nif r3 != 0 goto round\nr0 = 0\nexit\n\
        g: r0 = 0\nexit";
    let native = compile(text);
    let passed = Deadline::at(Instant::now());
    for (rounds, outcome) in [
        (1199, Outcome::DeadlinePassed),
        (1200, Outcome::Returned(5)),
    ] {
        let deadline = passed.checking_every(rounds);
        let (machine, random) = (&mut Machine::new(), &mut SplitMix::new(1));
        let found = native.run_until(machine, &mut [], random, deadline);
        assert_eq!(found, outcome);
    }
}

#[test]
#[should_panic(expected = "without deadline")]
fn code_without_deadline_checks_is_not_run_until_a_deadline() {
    let mut native = compile("r0 = 0\nexit");
    native.code.checks_deadline = false;
    run_for(&native, Duration::ZERO);
}

/// Callee-saved registers are restored wherever the run ends.
#[test]
#[cfg(target_arch = "x86_64")]
fn callee_saved_registers_are_restored() {
    for text in endless() {
        let native = compile(&text);
        for rounds in [1, 2, 50] {
            let Entry::WithContext(entry) = native.entry else {
                panic!("code with deadline checks takes a native context");
            };
            let deadline = Deadline::at(Instant::now()).checking_every(rounds);
            let mut context = NativeContext {
                run_context: std::ptr::null_mut(),
                data: std::ptr::null(),
                len: 0,
                budget: 0,
                fuel: fuel(Some(deadline)),
                stack: 0,
                processor: 0,
                tail_calls: 0,
                deadline: Some(deadline),
            };
            let changed: u64;
            // SAFETY: the program accesses nothing but its stack and the environment.
            // Clobbered registers are declared, and callee-saved registers are saved by the
            // block.
            unsafe {
                asm!(
                    "push rbx",
                    "push rbp",
                    "mov ebx, 1",
                    "mov ebp, 2",
                    "mov r12d, 3",
                    "mov r13d, 4",
                    "mov r14d, 5",
                    "mov r15d, 6",
                    "call rax",
                    "xor rbx, 1",
                    "xor rbp, 2",
                    "xor r12, 3",
                    "xor r13, 4",
                    "xor r14, 5",
                    "xor r15, 6",
                    "or r15, rbx",
                    "or r15, rbp",
                    "or r15, r12",
                    "or r15, r13",
                    "or r15, r14",
                    "pop rbp",
                    "pop rbx",
                    in("rdi") 0,
                    in("rsi") 0,
                    in("rdx") 0,
                    in("rcx") 0,
                    in("r8") &raw mut context,
                    in("rax") entry,
                    out("r12") _,
                    out("r13") _,
                    out("r14") _,
                    out("r15") changed,
                    clobber_abi("C"),
                );
            }
            assert_eq!(changed, 0, "{text}");
            assert!(context.fuel < 0, "{text}");
        }
    }
}
