//! Loops, calls, limits.

use std::time::{Duration, Instant};

use isa::ebpf::assemble;
use packet::{Metadata, Packet};
use spec::SplitMix;
use vm::{Deadline, MAY_GOTO_LOOPS, Machine, Outcome};

use super::{compile, run_text};

/// Enough for any stack to overflow if jumps grew it.
const BUDGET: u64 = if cfg!(miri) { 1000 } else { 10_000_000 };

#[test]
fn an_endless_loop_is_stopped() {
    for text in [
        "goto -1",
        "gotol -1",
        "r0 = 0\nif r0 == 0 goto -1\nexit",
        "may_goto +0\ngoto -2",
        "call f\nr0 = 7\nexit\nf:\ngoto -1",
    ] {
        // SAFETY: they access nothing, and end when the budget does.
        let code = unsafe { compile(&assemble(text).expect(text)) };
        let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
        let outcome = code.run_within(&mut machine, &mut [], &mut random, BUDGET);
        assert_eq!(outcome, Outcome::BudgetExhausted, "{text}");
    }
}

/// Iterations of a long run: without tail calls it would need gigabytes of stack.
const ROUNDS: u64 = if cfg!(miri) { 100 } else { 100_000_000 };

#[test]
fn a_long_run_needs_no_more_stack_than_a_short_one() {
    // Of every family: arithmetic, pairs, memory, branches of all forms, a table.
    let text = format!(
        "r1 = {ROUNDS}\nr0 = 0\nr2 = r10\nr2 += -8\n*(u64 *)(r10 - 8) = 0\n\
         again:\nr3 = *(u64 *)(r2 + 0)\nr3 += 1\n*(u64 *)(r10 - 8) = r3\n\
         w4 = w3\nw4 &= 7\nif w4 == 1 goto one\nif w4 == 2 goto one\n\
         if w4 == 3 goto one\nif w4 == 4 goto one\nif w4 == 5 goto one\ngoto two\n\
         one:\nr0 += 1\ntwo:\nr1 += -1\nif r1 != 0 goto again\nr0 += r3\nexit"
    );
    let run = move || {
        // SAFETY: it accesses its stack by constants, and ends after so many rounds.
        let code = unsafe { compile(&assemble(&text).expect("it is one")) };
        code.run(&mut Machine::new(), &mut [], &mut SplitMix::new(1))
    };
    let thread = std::thread::Builder::new().stack_size(1 << 18);
    let outcome = thread.spawn(run).expect("a thread").join();
    let rest = [1, 2, 3, 4, 5, 6, 7]
        .into_iter()
        .take((ROUNDS % 8) as usize);
    let ones = rest.filter(|round| *round <= 5).count() as u64;
    let expected = ROUNDS / 8 * 5 + ones + ROUNDS;
    assert_eq!(outcome.expect("no overflow"), Outcome::Returned(expected));
}

#[cfg(not(miri))]
#[test]
fn tests_run_the_threaded_form() {
    let has_registers = cfg!(any(
        all(target_arch = "x86_64", not(windows)),
        target_arch = "aarch64"
    ));
    let is_instrumented = ["sanitizer", "instrument-coverage", "sancov", "opt-level"]
        .iter()
        .any(|flag| env!("INTERP_RUSTFLAGS").contains(flag));
    assert_eq!(cfg!(threaded), has_registers && !is_instrumented);
}

#[test]
fn a_deadline_ends_loops_and_deep_calls() {
    // Seven functions, each of which calls the next one thirty times: only a deadline ends
    // them in time.
    let deep: String = (0..7)
        .map(|depth| {
            format!(
                "f{depth}:\n{}exit\n",
                format!("call f{}\n", depth + 1).repeat(30)
            )
        })
        .collect();
    let deep = format!("r0 = 0\n{deep}f7:\nexit");
    for text in ["goto -1", "r0 = 0\nif r0 == 0 goto -1\nexit", &deep] {
        // SAFETY: they access nothing, and end when the deadline does.
        let code = unsafe { compile(&assemble(text).expect(text)) };
        let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
        let start = Instant::now();
        let deadline = Deadline::at(start + Duration::from_millis(20));
        let outcome = code.run_until(&mut machine, &mut [], &mut random, deadline);
        assert_eq!(outcome, Outcome::DeadlinePassed, "{text}");
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
    // The machine serves the next run.
    // SAFETY: it accesses nothing.
    let code = unsafe { compile(&assemble("call f\nexit\nf:\nr0 = 4\nexit").expect("it is one")) };
    let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
    let far = Deadline::at(Instant::now() + Duration::from_secs(3600));
    for _ in 0..3 {
        let outcome = code.run_until(&mut machine, &mut [], &mut random, far);
        assert_eq!(outcome, Outcome::Returned(4));
    }
}

#[test]
fn time_helpers_use_the_clock_of_the_host() {
    let text = "call 5\nr6 = r0\ncall 125\nr6 += r0\ncall 160\nr0 += r6\nexit";
    // SAFETY: it accesses nothing.
    let code = unsafe { compile(&assemble(text).expect(text)) };
    let mut time = 0;
    let mut machine = Machine::new().with_clock(move || {
        time += 10;
        time
    });
    let mut random = SplitMix::new(1);
    for expected in [10 + 20 + 30, 40 + 50 + 60] {
        let outcome = code.run(&mut machine, &mut [], &mut random);
        assert_eq!(outcome, Outcome::Returned(expected));
    }
}

#[test]
fn an_unchecked_program_runs_on_memory() {
    let text = "
        r0 = 0
        r3 = r1
        r3 += r2
    next:
        if r1 >= r3 goto out
        r4 = *(u8 *)(r1 + 0)
        r0 += r4
        *(u8 *)(r1 + 0) = 7
        r1 += 1
        goto next
    out:
        exit
    ";
    let insns = assemble(text).expect(text);
    // SAFETY: it accesses the bytes from `r1` up to `r1 + r2` and ends there.
    let code = unsafe { compile(&insns) };
    let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
    let mut memory = [1, 2, 3, 250];
    let outcome = code.run(&mut machine, &mut memory, &mut random);
    assert_eq!((outcome, memory), (Outcome::Returned(256), [7; 4]));
    let outcome = code.run(&mut machine, &mut [], &mut random);
    assert_eq!(outcome, Outcome::Returned(0));
    for (budget, outcome) in [
        (4, Outcome::Returned(28)),
        (3, Outcome::BudgetExhausted),
        (0, Outcome::BudgetExhausted),
    ] {
        let found = code.run_within(&mut machine, &mut memory, &mut random, budget);
        assert_eq!(found, outcome, "{budget}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes tens of millions of steps")]
fn may_goto_falls_through_bpf_max_loops_times() {
    let loops = "
        r0 = 0
    next:
        may_goto out
        r0 += 1
        goto next
    out:
        exit
    ";
    assert_eq!(run_text(loops), MAY_GOTO_LOOPS);
    // Each activation has its own.
    let nested = format!(
        "
        r6 = 0
        call f
        r6 += r0
        call f
        r6 += r0
    next:
        may_goto out
        r6 += 1
        goto next
    out:
        r0 = r6
        exit
    f: {}",
        loops.replace("next", "again").replace("out", "end")
    );
    assert_eq!(run_text(&nested), 3 * MAY_GOTO_LOOPS);
}

#[test]
fn may_goto_may_jump_backward() {
    let text = "
        r0 = 0
        goto start
    again:
        r0 += 1
        exit
    start:
        may_goto again
        goto start
    ";
    assert_eq!(run_text(text), 1);
}

#[test]
fn a_call_preserves_callee_saved_registers() {
    let text = "
        r6 = 1
        r7 = 2
        r8 = 3
        r9 = 4
        r0 = 99
        *(u64 *)(r10 - 8) = r6
        *(u64 *)(r10 - 512) = r7
        r1 = r10
        r1 += -16
        r5 = 50
        call f
        r1 = *(u64 *)(r10 - 8)
        r0 += r1
        r1 = *(u64 *)(r10 - 512)
        r0 += r1
        r1 = *(u64 *)(r10 - 16)
        r0 += r1
        r0 += r6
        r0 += r7
        r0 += r8
        r0 += r9
        exit
    f:
        r6 = 1000
        r7 = 1000
        r8 = 1000
        r9 = 1000
        *(u64 *)(r10 - 8) = r6
        *(u64 *)(r10 - 512) = r7
        *(u64 *)(r1 + 0) = r5
        r0 = 5
        exit
    ";
    assert_eq!(run_text(text), 5 + 1 + 2 + 50 + 1 + 2 + 3 + 4);
}

#[test]
fn each_of_eight_frames_is_separate() {
    // Each function fills its frame, calls the next, and adds up its frame.
    let function = "
        r6 = r1
        *(u64 *)(r10 - 8) = r6
        *(u64 *)(r10 - 512) = r6
        r1 += 1
        call pc+5
        r1 = *(u64 *)(r10 - 8)
        r0 += r1
        r1 = *(u64 *)(r10 - 512)
        r0 += r1
        exit
    ";
    let text = "r1 = 1\n".to_owned() + &function.repeat(7) + "r0 = r1\nexit";
    assert_eq!(run_text(&text), 8 + 2 * (1..=7).sum::<u64>());
}

#[test]
fn calls_come_back_from_both_ways_and_many_times() {
    // Fibonacci numbers by a loop around calls of functions before and after it.
    let text = "
        goto main
    main:
        r6 = 0
        r7 = 1
        r8 = 20
    next:
        r1 = r6
        r2 = r7
        call add
        r6 = r7
        r7 = r0
        r8 += -1
        if r8 != 0 goto next
        r0 = r6
        exit
    add:
        call first
        r0 += r2
        exit
    first:
        r0 = r1
        exit
    ";
    assert_eq!(run_text(text), 6765);
}

#[test]
fn a_packet_load_outside_the_packet_ends_its_function() {
    let text = "
        r6 = r1
        r7 = 40
        call f
        r7 += r0
        r0 = *(u8 *)skb[1]
        r0 += r7
        exit
    f:
        r6 = r1
        r0 = 1000
        r0 = *(u32 *)skb[2]
        exit
    ";
    // SAFETY: it accesses nothing but the packet.
    let code = unsafe { compile(&assemble(text).expect(text)) };
    let meta = Metadata::UNKNOWN;
    for (bytes, expected) in [
        (&[1, 2][..], 42),
        (&[1, 2, 0, 0, 1, 0], 42 + 256),
        (&[1], 0),
    ] {
        let packet = Packet::whole(bytes, &meta);
        let mut random = SplitMix::new(1);
        let outcome = code.run_with_packet(&mut Machine::new(), &mut [], &packet, &mut random);
        assert_eq!(outcome, Outcome::Returned(expected), "{bytes:?}");
    }
}

#[test]
fn helpers_are_called_by_number() {
    let text = "
        r6 = 1
        call 8
        r7 = r0
        call 7
        r0 ^= r7
        r0 *= r6
        exit
    ";
    // SAFETY: it accesses nothing.
    let code = unsafe { compile(&assemble(text).expect(text)) };
    let meta = Metadata {
        cpu: 3,
        ..Metadata::UNKNOWN
    };
    let packet = Packet::whole(&[], &meta);
    let mut random = SplitMix::new(5);
    let outcome = code.run_with_packet(&mut Machine::new(), &mut [], &packet, &mut random);
    let next = spec::Random::next_u32(&mut SplitMix::new(5));
    assert_eq!(outcome, Outcome::Returned(u64::from(next ^ 3)));
}
