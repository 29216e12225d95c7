//! Prologues, epilogues and entries of functions: indirect branches with and without
//! retpolines, the slots at entries, the registers that are saved, the stack.

#![cfg(target_arch = "x86_64")]

use std::collections::BTreeSet;
use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use isa::ebpf::{Insn, assemble};
use jit::memory::Pool;
use jit::{Draft, ENTRY_SLOT, Features, Native, Options};
use lower::Lowered;
use spec::SplitMix;
use testkit::ebpf::{Choices, Dialect, Entry, Generator};
use vm::{Machine, Outcome, Unchecked};

/// The instructions before the tables and addresses that follow the code.
fn decode(code: &[u8]) -> Vec<Instruction> {
    let (mut insns, mut end) = (Vec::new(), code.len());
    for insn in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        if insn.ip() as usize >= end {
            break;
        }
        if insn.is_ip_rel_memory_operand() {
            end = end.min(insn.ip_rel_memory_address() as usize);
        }
        insns.push(insn);
    }
    insns
}

/// Generated programs, compiled with these options.
fn generated(options: &Options) -> Vec<(Vec<Insn>, Draft)> {
    let generator = Generator::new(Dialect::Engines);
    let programs = (0..400).filter_map(|seed| {
        let program = generator.program(&mut Choices::from_seed(seed));
        let insns: Vec<Insn> = program.code(Entry::Memory);
        let draft = Draft::from_insns(insns.clone(), options).ok()?;
        Some((insns, draft))
    });
    programs.collect()
}

/// A switch that becomes a table.
fn switch() -> Vec<Insn> {
    let mut text = String::from("r0 = 0\nr1 = *(u64 *)(r1 + 0)\n");
    for key in 0..32 {
        writeln!(text, "if w1 == {key} goto key{key}").unwrap();
    }
    text += "exit\n";
    for key in 0..32 {
        writeln!(text, "key{key}: r0 = {}\nexit", key * 3 + 1).unwrap();
    }
    assemble(&text).expect("a program")
}

fn indirect(draft: &Draft) -> usize {
    let insns = decode(draft.bytes());
    let is_indirect = |insn: &&Instruction| {
        matches!(insn.mnemonic(), Mnemonic::Call | Mnemonic::Jmp)
            && insn.op0_kind() != OpKind::NearBranch64
    };
    insns.iter().filter(is_indirect).count()
}

#[oracle::test]
fn with_retpolines_no_branch_is_indirect() {
    for deadline in [false, true] {
        let plain = Options {
            features: Features::detect(),
            deadline,
            ..Options::default()
        };
        let options = Options {
            retpoline: true,
            ..plain
        };
        let (mut without, mut with) = (0, 0);
        for ((_, plain), (insns, draft)) in generated(&plain).iter().zip(generated(&options)) {
            let found = indirect(plain);
            without += found;
            with += usize::from(found > 0);
            assert_eq!(indirect(&draft), 0, "{insns:?}");
            if found == 0 {
                assert_eq!(
                    draft.bytes(),
                    plain.bytes(),
                    "nothing to replace: {insns:?}"
                );
            }
        }
        assert!(without > 50 && with > 20, "{without} {with}");
        let table = Draft::from_insns(switch(), &plain).unwrap();
        assert_eq!(indirect(&table), 1);
        assert_eq!(indirect(&Draft::from_insns(switch(), &options).unwrap()), 0);
    }
}

/// The value of a program without helpers on memory.
fn result(insns: &[Insn], options: &Options, memory: u64) -> u64 {
    // SAFETY: the programs here read the eight bytes that they are given and compute.
    let trusted = unsafe { Unchecked::assume_safe(insns.to_vec()) };
    let lowered = Lowered::from_unchecked(trusted).expect("well formed");
    let native = Native::compile(&lowered, options, &Pool::new()).expect("it compiles");
    let random = &mut SplitMix::new(1);
    match native.run(&mut Machine::new(), &mut memory.to_le_bytes(), random) {
        Outcome::Returned(value) => value,
        other => panic!("{other:?}"),
    }
}

#[oracle::test]
fn switches_and_helpers_run_behind_retpolines() {
    let cpu = "call 8\nr0 += 5\nexit";
    let time = "r6 = *(u64 *)(r1 + 0)\ncall 7\nr0 = r6\ncall sub\nexit\nsub: r6 = 4\ncall 7\nr0 = r6\nexit";
    for (retpoline, entry_slots) in [(false, false), (true, false), (true, true)] {
        let options = Options {
            features: Features::detect(),
            retpoline,
            entry_slots,
            ..Options::default()
        };
        for key in 0..40 {
            let expected = if key < 32 { key * 3 + 1 } else { 0 };
            assert_eq!(result(&switch(), &options, key), expected);
        }
        assert_eq!(result(&assemble(time).unwrap(), &options, 77), 4);
        assert!(result(&assemble(cpu).unwrap(), &options, 0) >= 5);
    }
}

#[oracle::test]
fn entries_begin_with_a_slot_that_one_store_replaces() {
    let options = Options {
        features: Features::detect(),
        entry_slots: true,
        ..Options::default()
    };
    let plain = Options {
        entry_slots: false,
        ..options
    };
    let (mut functions, mut reached) = (0, 0);
    for (insns, draft) in generated(&options) {
        let slots: BTreeSet<u32> = draft.entry_slots().iter().copied().collect();
        assert_eq!(slots.len(), draft.entry_slots().len());
        assert_eq!(draft.entry_slots()[0] as usize, draft.entry());
        functions += slots.len();
        let insns_of = decode(draft.bytes());
        let is_direct = |insn: &&Instruction| {
            insn.mnemonic() == Mnemonic::Call && insn.op0_kind() == OpKind::NearBranch64
        };
        let calls = insns_of.iter().filter(is_direct);
        let mut called: BTreeSet<u32> =
            calls.map(|call| call.near_branch_target() as u32).collect();
        // Stubs for packet loads outside of the packet have no slot; calls in dead code are
        // left out.
        called.retain(|at| slots.contains(at));
        assert!(called.len() < slots.len(), "{insns:?}");
        reached += called.len();
        for &at in &slots {
            let slot = insns_of.iter().find(|insn| insn.ip() == u64::from(at));
            let slot = slot.unwrap_or_else(|| panic!("no instruction at {at}"));
            assert_eq!((slot.mnemonic(), slot.len()), (Mnemonic::Nop, ENTRY_SLOT));
            assert!(at as usize % 8 + ENTRY_SLOT <= 8, "{at}");
        }
        let plain = Draft::from_insns(insns, &plain).unwrap();
        assert!(plain.entry_slots().is_empty());
        assert!(plain.bytes().len() <= draft.bytes().len());
    }
    assert!(functions > 420 && reached > 30, "{functions} {reached}");
}

#[oracle::test]
fn programs_without_tail_calls_are_the_same_as_targets_of_them() {
    let plain = Options {
        features: Features::detect(),
        ..Options::default()
    };
    let target = Options {
        tail_target: true,
        ..plain
    };
    for ((insns, plain), (_, target)) in generated(&plain).iter().zip(generated(&target)) {
        assert_eq!(plain.bytes(), target.bytes(), "{insns:?}");
    }
}

/// Registers that a function saves, in order, and the bytes that it reserves.
fn frame(text: &str, options: &Options) -> Vec<(Vec<Register>, u64)> {
    let insns = assemble(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let draft = Draft::from_insns(insns, options).expect(text);
    let starts = draft.entry_slots().iter();
    let frames = starts.map(|start| {
        let (mut saved, mut reserved) = (Vec::new(), 0);
        let code = &draft.bytes()[*start as usize..];
        for insn in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
            match insn.mnemonic() {
                Mnemonic::Nop => {}
                Mnemonic::Push => saved.push(insn.op0_register()),
                Mnemonic::Mov if insn.op0_register() == Register::RBP => {}
                Mnemonic::Sub | Mnemonic::Add if insn.op0_register() == Register::RSP => {
                    assert_ne!(insn.op1_kind(), OpKind::Register);
                    let by = insn.immediate(1) as i64;
                    reserved += if insn.mnemonic() == Mnemonic::Sub {
                        by
                    } else {
                        -by
                    };
                }
                _ => break,
            }
        }
        (saved, reserved as u64)
    });
    frames.collect()
}

/// A function that makes a call and needs some registers behind it, and some stack.
fn function(registers: &[u8], stack: usize, call: &str) -> String {
    let mut text = String::new();
    for register in registers {
        writeln!(text, "r{register} = {register}").unwrap();
    }
    for at in (8..=stack).step_by(8) {
        writeln!(text, "*(u64 *)(r10 - {at}) = {at}").unwrap();
    }
    writeln!(text, "{call}\nr0 = 0").unwrap();
    for register in registers {
        writeln!(text, "r0 += r{register}").unwrap();
    }
    for at in (8..=stack).step_by(8) {
        writeln!(text, "r1 = *(u64 *)(r10 - {at})\nr0 += r1").unwrap();
    }
    text + "exit\n"
}

#[oracle::test]
fn functions_save_the_registers_in_use_and_reserve_the_stack_that_they_need() {
    let options = Options {
        features: Features::detect(),
        entry_slots: true,
        ..Options::default()
    };
    for count in 0..=4u8 {
        for stack in (0..=512).step_by(8) {
            let registers: Vec<u8> = (6..6 + count).collect();
            let sub = function(
                &registers[..usize::from(count) / 2],
                stack / 2 / 8 * 8,
                "call 7",
            );
            let text = function(&registers, stack, "call sub") + "sub: " + &sub;
            let frames = frame(&text, &options);
            let needs = [(count, stack, 1), (count / 2, stack / 2 / 8 * 8, 0)];
            for ((saved, reserved), (count, stack, context)) in frames.iter().zip(needs) {
                // The entry keeps the native context for the callee's helper in a register.
                let frame_pointer = saved.first() == Some(&Register::RBP) && stack > 0;
                let least = usize::from(count) + context;
                let has = saved.len();
                let is_least = has == least || frame_pointer && has == least + 1;
                assert!(
                    is_least,
                    "{saved:?} for {count} registers, {stack} bytes\n{text}"
                );
                let pushed = 8 + 8 * has;
                let total = pushed + *reserved as usize;
                assert!(total.is_multiple_of(16), "{total}\n{text}");
                assert!(
                    total < pushed + stack + 16,
                    "{reserved} for {stack}\n{text}"
                );
                assert!(total >= pushed + stack, "{reserved} for {stack}\n{text}");
            }
            let leaf = function(&registers, stack, "");
            let [(saved, reserved)] = &frame(&leaf, &options)[..] else {
                panic!("{leaf}");
            };
            // Registers that calls would change are free, and 128 bytes below the stack
            // pointer.
            assert!(saved.len() <= usize::from(stack > 0), "{saved:?}\n{leaf}");
            let expected = if stack > 128 { stack as u64 } else { 0 };
            assert_eq!(*reserved, expected, "{leaf}");
        }
    }
}
