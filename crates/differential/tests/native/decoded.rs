//! Native code of whole programs, decoded by an independent disassembler: only instructions
//! of the assembler, jumps to instruction boundaries, and references to data after the
//! code.

#![cfg(target_arch = "x86_64")]

use std::collections::BTreeSet;
use std::ops::Range;

use classic::{Rules, Semantics, check, convert};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use isa::ebpf::Insn;
use jit::memory::Pool;
use jit::{Draft, EntryAbi, Features, Native, Options};
use lower::{ClassicFilter, Lowered};
use testkit::ebpf::{Choices, Dialect, Entry, Generator};
use testkit::generate;

/// Instructions that need a processor extension.
const EXTENSIONS: &[Mnemonic] = &[
    Mnemonic::Movbe,
    Mnemonic::Popcnt,
    Mnemonic::Tzcnt,
    Mnemonic::Lzcnt,
    Mnemonic::Andn,
    Mnemonic::Rorx,
    Mnemonic::Shlx,
    Mnemonic::Shrx,
    Mnemonic::Sarx,
];

/// Other instructions that code may contain: none traps, halts or enters the kernel.
const PLAIN: &[Mnemonic] = &[
    Mnemonic::Add,
    Mnemonic::And,
    Mnemonic::Bswap,
    Mnemonic::Bsf,
    Mnemonic::Bsr,
    Mnemonic::Call,
    Mnemonic::Cdq,
    Mnemonic::Cqo,
    Mnemonic::Cmovae,
    Mnemonic::Cmova,
    Mnemonic::Cmovb,
    Mnemonic::Cmovbe,
    Mnemonic::Cmove,
    Mnemonic::Cmovg,
    Mnemonic::Cmovge,
    Mnemonic::Cmovl,
    Mnemonic::Cmovle,
    Mnemonic::Cmovne,
    Mnemonic::Cmovns,
    Mnemonic::Cmovs,
    Mnemonic::Cmp,
    Mnemonic::Cmpxchg,
    Mnemonic::Dec,
    Mnemonic::Div,
    Mnemonic::Idiv,
    Mnemonic::Imul,
    Mnemonic::Inc,
    Mnemonic::Ja,
    Mnemonic::Jae,
    Mnemonic::Jb,
    Mnemonic::Jbe,
    Mnemonic::Je,
    Mnemonic::Jg,
    Mnemonic::Jge,
    Mnemonic::Jl,
    Mnemonic::Jle,
    Mnemonic::Jmp,
    Mnemonic::Jne,
    Mnemonic::Jns,
    Mnemonic::Js,
    Mnemonic::Lea,
    Mnemonic::Leave,
    Mnemonic::Mov,
    Mnemonic::Movsx,
    Mnemonic::Movsxd,
    Mnemonic::Movzx,
    Mnemonic::Mul,
    Mnemonic::Neg,
    Mnemonic::Nop,
    Mnemonic::Not,
    Mnemonic::Or,
    Mnemonic::Pop,
    Mnemonic::Push,
    Mnemonic::Ret,
    Mnemonic::Rol,
    Mnemonic::Ror,
    Mnemonic::Sar,
    Mnemonic::Setae,
    Mnemonic::Seta,
    Mnemonic::Setb,
    Mnemonic::Setbe,
    Mnemonic::Sete,
    Mnemonic::Setg,
    Mnemonic::Setge,
    Mnemonic::Setl,
    Mnemonic::Setle,
    Mnemonic::Setne,
    Mnemonic::Setns,
    Mnemonic::Sets,
    Mnemonic::Shl,
    Mnemonic::Shr,
    Mnemonic::Sub,
    Mnemonic::Test,
    Mnemonic::Xadd,
    Mnemonic::Xchg,
    Mnemonic::Xor,
];

/// Options with all processor extensions, with none, and with deadline checks.
fn all_options() -> [Options; 3] {
    let kinds = [
        (Features::detect(), false),
        (Features::PLAIN, false),
        (Features::detect(), true),
    ];
    kinds.map(|(features, deadline)| Options {
        features,
        deadline,
        ..Options::default()
    })
}

/// Checks a program's code; returns the offset at which data begins.
fn check_code(draft: &Draft, options: &Options) -> usize {
    let code = draft.bytes();
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut insns = Vec::new();
    // After the code are tables, and the addresses of host functions.
    let mut end = code.len();
    for insn in decoder {
        if insn.ip() as usize >= end {
            break;
        }
        assert!(!insn.is_invalid(), "at {:#x} of {code:02x?}", insn.ip());
        if insn.is_ip_rel_memory_operand() {
            let at = insn.ip_rel_memory_address() as usize;
            match insn.mnemonic() {
                Mnemonic::Call => assert!(at.is_multiple_of(8) && at + 8 <= code.len()),
                Mnemonic::Lea => assert!(at < code.len()),
                other => panic!("{other:?} at {:#x}", insn.ip()),
            }
            end = end.min(at);
        }
        insns.push(insn);
    }
    let last = insns.last().expect("a program has code");
    assert!(
        last.next_ip() as usize <= end,
        "code ends with an unconditional transfer of control"
    );
    let starts: BTreeSet<usize> = insns.iter().map(|insn| insn.ip() as usize).collect();
    for insn in &insns {
        check_insn(insn, &starts, options);
    }
    assert!(starts.contains(&draft.entry()));
    check_map(draft.map(), &starts, end..code.len());
    end
}

fn check_insn(insn: &Instruction, starts: &BTreeSet<usize>, options: &Options) {
    let at = insn.ip();
    let is_extension = EXTENSIONS.contains(&insn.mnemonic());
    let is_known = is_extension || PLAIN.contains(&insn.mnemonic());
    assert!(is_known, "{:?} at {at:#x}", insn.mnemonic());
    assert!(
        !is_extension || options.features != Features::PLAIN,
        "{:?} at {at:#x}",
        insn.mnemonic()
    );
    if insn.op_count() == 1 && insn.op0_kind() == OpKind::NearBranch64 {
        let target = insn.near_branch64() as usize;
        assert!(starts.contains(&target), "at {at:#x} to {target:#x}");
    }
    // The stack pointer only changes by constants, or is restored to that of the entry when
    // a deadline has passed.
    let moves_stack = insn.op_count() > 0
        && insn.op0_kind() == OpKind::Register
        && matches!(insn.op0_register(), Register::RSP | Register::ESP);
    let by_constant = matches!(
        insn.mnemonic(),
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And
    ) && !matches!(insn.op1_kind(), OpKind::Register | OpKind::Memory);
    let of_frame = matches!(
        insn.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Lea
    );
    let back = options.deadline
        && insn.mnemonic() == Mnemonic::Mov
        && insn.op1_kind() == OpKind::Memory
        && matches!(insn.memory_base(), Register::R8 | Register::R12);
    assert!(
        !moves_stack || by_constant || of_frame || back,
        "at {at:#x}"
    );
}

/// Checks that pieces are contiguous and begin at instruction boundaries or in the table.
fn check_map(
    pieces: impl Iterator<Item = (Option<usize>, Range<usize>)>,
    starts: &BTreeSet<usize>,
    table: Range<usize>,
) {
    let mut at = 0;
    for (slot, range) in pieces {
        assert_eq!(range.start, at, "a gap");
        assert!(range.end > range.start);
        let is_start = starts.contains(&range.start) || table.contains(&range.start);
        assert!(is_start, "slot {slot:?} begins inside of an instruction");
        at = range.end;
    }
    assert_eq!(at, table.end);
}

#[oracle::test]
fn generated_ebpf_programs() {
    let generator = Generator::new(Dialect::Engines);
    let mut compiled = 0;
    for seed in 0..1500 {
        let program = generator.program(&mut Choices::from_seed(seed));
        let insns: Vec<Insn> = program.code(Entry::Memory);
        for options in all_options() {
            // A function without callers is no function of its own.
            let Ok(draft) = Draft::from_insns(insns.clone(), &options) else {
                continue;
            };
            check_code(&draft, &options);
            compiled += 1;
        }
    }
    assert!(compiled > 3750, "{compiled}");
}

/// Checks the code of a filter with all options, and that it is what is installed; the number
/// of times that it was compiled.
fn check_installed<K: EntryAbi>(program: &Lowered<K>, pool: &Pool) -> u32 {
    let mut compiled = 0;
    for options in all_options() {
        let draft = Draft::of(program, &options);
        let end = check_code(&draft, &options);
        // Code is position-independent; tables of addresses are not.
        let native = Native::compile(program, &options, pool).unwrap();
        assert_eq!(native.image()[..end], draft.bytes()[..end]);
        assert_eq!(native.image().len(), draft.bytes().len());
        compiled += 1;
    }
    compiled
}

#[oracle::test]
fn generated_classic_programs() {
    let kinds = [
        (
            generate::Dialect::Socket,
            Rules::Capture,
            Semantics::Capture,
        ),
        (generate::Dialect::Socket, Rules::Socket, Semantics::Kernel),
        (
            generate::Dialect::Seccomp,
            Rules::Seccomp,
            Semantics::Kernel,
        ),
    ];
    let pool = Pool::new();
    for (dialect, rules, semantics) in kinds {
        let mut compiled = 0;
        for seed in 0..500 {
            let mut generator = generate::Generator::new(seed);
            let len = generator.program_len();
            let Ok(checked) = check(&generator.program(dialect, len), rules) else {
                continue;
            };
            compiled += match ClassicFilter::from_converted(convert(&checked, semantics)) {
                ClassicFilter::Packet(filter) => check_installed(&filter, &pool),
                ClassicFilter::Syscall(filter) => check_installed(&filter, &pool),
            };
        }
        assert!(compiled > 750, "{rules:?}: {compiled}");
    }
}
