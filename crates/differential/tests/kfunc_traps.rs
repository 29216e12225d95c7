//! Programs that Linux refuses because of what their calls of kfuncs open, hold or leave: the
//! checked engine ends their runs.

use beebox_differential::helpers::compare_text;
use spec::kfuncs::KernelFunction;

/// The program with numbers in place of `call NAME` for kfuncs.
fn numbered(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("call bpf_") {
        Some(name) => {
            let function = KernelFunction::of_linux(&format!("bpf_{name}")).expect("a kfunc");
            format!("call {}\n", function.number())
        }
        None => format!("{line}\n"),
    };
    text.lines().map(|it| line(it.trim())).collect()
}

/// Checks that the kernel refuses a program, and what the trap says of its run here.
fn refused(text: &str, trap: &str) {
    let text = numbered(text);
    let compared = compare_text(&text);
    let Some([ours, theirs]) = oracle::found("programs that the kernel refuses", compared) else {
        return;
    };
    let theirs = theirs.expect_err(&text);
    assert!(theirs.starts_with("refused"), "{theirs}\n{text}");
    let ours = ours.expect_err(&text);
    assert!(ours.contains(trap), "{ours}\n{text}\nthe kernel: {theirs}");
}

const NEW: &str = "r1 = r10\nr1 += -8\nr2 = 0\nr3 = 5\ncall bpf_iter_num_new\n";
const NEXT: &str = "r1 = r10\nr1 += -8\ncall bpf_iter_num_next\n";
const DESTROY: &str = "r1 = r10\nr1 += -8\ncall bpf_iter_num_destroy\n";
const END: &str = "r0 = 0\nexit\n";

#[oracle::test]
fn iterators_are_made_once_and_destroyed() {
    let refused = |parts: &[&str], trap| refused(&parts.concat(), trap);
    refused(&[NEXT, END], "no bpf_iter_num is open");
    refused(&[DESTROY, END], "no bpf_iter_num is open");
    refused(
        &[NEW, NEW, DESTROY, END],
        "open at 0xffffc90013847c00 already",
    );
    refused(&[NEW, END], "returns with a bpf_iter_num open");
    refused(&[NEW, DESTROY, NEXT, END], "no bpf_iter_num is open");
    let bits = "r1 = r10\nr1 += -8\ncall bpf_iter_bits_next\n";
    refused(&[NEW, bits, DESTROY, END], "no bpf_iter_bits is open");
    let in_function = format!("call f\n{END}f:\n{NEW}{END}");
    refused(&[&in_function], "returns with a bpf_iter_num open");
}

#[oracle::test]
fn nothing_is_open_when_an_exception_is_thrown() {
    let throw = "r1 = 7\ncall bpf_throw\nr0 = 0\nexit\n";
    refused(&format!("{NEW}{throw}"), "a bpf_iter_num is open");
    let in_callback =
        format!("r1 = 2\nr2 = func(round) ll\nr3 = 0\nr4 = 0\ncall 181\n{END}round:\n{throw}");
    refused(&in_callback, "a helper called the function");
}

/// An object in `r7`, the value of the map in `r6`.
fn object(rest: &str) -> String {
    const MAP: u64 = 0x6d61_7000_0000_0000;
    let item = beebox_differential::helpers::item_type();
    format!(
        "*(u64 *)(r10 - 8) = 0\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto out\n\
         r6 = r0\nr1 = {item} ll\nr2 = 0\ncall bpf_obj_new_impl\nif r0 == 0 goto out\nr7 = r0\n\
         {rest}out:\n{END}"
    )
}

const DROP: &str = "r1 = r7\nr2 = 0\ncall bpf_obj_drop_impl\n";
const PUSH: &str = "r1 = r6\nr1 += 8\nr2 = r7\nr2 += 48\nr3 = 0\nr4 = 0\n\
                    call bpf_list_push_front_impl\n";
const LOCK: &str = "r1 = r6\ncall 93\n";
const UNLOCK: &str = "r1 = r6\ncall 94\n";

#[oracle::test]
fn references_are_passed_on_or_dropped_once() {
    let refused = |parts: &[&str], trap| refused(&object(&parts.concat()), trap);
    refused(&[""], "while it holds the object");
    refused(&[DROP, DROP], "the run holds no object");
    refused(&[DROP, "r0 = *(u64 *)(r7 + 0)\n"], "it reads 8 bytes at");
    refused(&[LOCK, PUSH, PUSH, UNLOCK], "the run holds no object");
    refused(&[LOCK, PUSH, UNLOCK, DROP], "the run holds no object");
    refused(&[PUSH], "the lock of the root");
    let pop = "r1 = r6\nr1 += 8\ncall bpf_list_pop_front\n";
    refused(&[DROP, pop], "the lock of the root");
    refused(&[DROP, LOCK], "while it holds the lock");
    let exchange = "r1 = r6\nr1 += 40\nr2 = r7\ncall 194\n";
    refused(&[exchange, exchange], "the run holds no object");
    let acquire = "r1 = r7\nr2 = 0\ncall bpf_refcount_acquire_impl\n";
    refused(&[acquire, DROP], "while it holds the object");
}

#[oracle::test]
fn states_of_interrupts_are_restored_in_order() {
    let save = |at: u32| format!("r1 = r10\nr1 += -{at}\ncall bpf_local_irq_save\n");
    let restore = |at: u32| format!("r1 = r10\nr1 += -{at}\ncall bpf_local_irq_restore\n");
    refused(
        &format!("{}{END}", restore(8)),
        "no state of interrupts is open",
    );
    refused(
        &format!("{}{END}", save(8)),
        "with a state of interrupts open",
    );
    refused(&[save(8), save(8), END.into()].concat(), "already");
    let crossed = [save(8), save(16), restore(8), restore(16), END.into()];
    refused(&crossed.concat(), "is not the last state");
}

#[oracle::test]
fn resilient_locks_are_freed_in_order() {
    const MAP: u64 = 0x6d61_7000_0000_0001;
    let program = |rest: &str| {
        format!(
            "*(u64 *)(r10 - 8) = 0\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\n\
             if r0 == 0 goto out\nr6 = r0\nr6 += 8\n*(u64 *)(r10 - 8) = 1\nr1 = {MAP:#x} ll\n\
             r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto out\nr7 = r0\nr7 += 8\n{rest}out:\n{END}"
        )
    };
    let take = |reg: &str| format!("r1 = {reg}\ncall bpf_res_spin_lock\nif r0 != 0 goto out\n");
    let free = |reg: &str| format!("r1 = {reg}\ncall bpf_res_spin_unlock\n");
    refused(&program(&take("r6")), "while it holds the lock");
    refused(&program(&free("r6")), "is not the last one");
    let crossed = [take("r6"), take("r7"), free("r6"), free("r7")].concat();
    refused(&program(&crossed), "is not the last one");
}
