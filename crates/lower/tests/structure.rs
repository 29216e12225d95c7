//! Every structural error is reported at its slot, and valid programs are accepted.

use beebox_lower::{Function, Lowered, MAX_SLOTS, Malformed, Problem};
use isa::ebpf::{AddrSpaceCast, ByteOrder, Fault, Insn, RawInsn, Reg, Size, assemble, decode};
use vm::Unchecked;

fn lower(insns: Vec<Insn>) -> Result<Vec<Function>, Malformed> {
    // SAFETY: no program of this file is run.
    let trusted = unsafe { Unchecked::assume_safe(insns) };
    Lowered::from_unchecked(trusted).map(|program| program.functions().to_vec())
}

fn fault(insns: Vec<Insn>) -> (usize, Problem) {
    let shown = format!("{insns:?}");
    let Malformed { slot, problem } = lower(insns).expect_err(&shown);
    (slot, problem)
}

fn fault_of(text: &str) -> (usize, Problem) {
    fault(assemble(text).expect(text))
}

/// A chain of `count` functions, each calling the next.
fn nested(count: usize) -> Vec<Insn> {
    let text = "call pc+1\nexit\n".repeat(count - 1) + "r0 = 0\nexit";
    assemble(&text).expect("it is well-formed")
}

#[test]
fn functions_start_at_the_targets_of_calls() {
    let text = "call f\ncall g\nexit\nf:\nr0 = 1 ll\nexit\ng:\ncall f\ngoto -2";
    let functions = lower(assemble(text).expect(text)).expect(text);
    let cut: Vec<_> = functions.iter().map(|f| (f.start, f.end)).collect();
    assert_eq!(cut, [(0, 3), (3, 6), (6, 8)]);
}

#[test]
fn empty_and_long_programs_are_refused() {
    assert_eq!(fault(vec![]), (0, Problem::Empty));
    let mut insns = vec![Insn::Goto { off: 0 }; MAX_SLOTS];
    insns[MAX_SLOTS - 1] = Insn::Exit;
    assert!(lower(insns.clone()).is_ok());
    insns.push(Insn::Exit);
    assert_eq!(fault(insns), (MAX_SLOTS, Problem::TooLong));
}

#[test]
fn invalid_slots_are_refused() {
    let unknown = RawInsn {
        code: 0xff,
        ..RawInsn::default()
    };
    let insns = decode(&[unknown]);
    assert_eq!(fault(insns), (0, Problem::Invalid(Fault::UnknownOpcode)));
    let swap_of_a_byte = Insn::Endian {
        order: ByteOrder::Swap,
        size: Size::B,
        dst: Reg::R1,
    };
    let insns = vec![swap_of_a_byte, Insn::Exit];
    assert_eq!(fault(insns), (0, Problem::NoEncoding));
}

#[test]
fn both_slots_of_an_immediate_are_required() {
    let [first, second] = assemble("r1 = 1 ll").expect("it is")[..] else {
        panic!("two slots")
    };
    assert_eq!(fault(vec![first, Insn::Exit]), (0, Problem::BrokenImm64));
    assert_eq!(fault(vec![first]), (0, Problem::BrokenImm64));
    assert_eq!(fault(vec![second, Insn::Exit]), (0, Problem::BrokenImm64));
    assert_eq!(
        fault(vec![first, second, second, Insn::Exit]),
        (2, Problem::BrokenImm64)
    );
}

#[test]
fn targets_must_be_instructions_of_the_function() {
    for jump in [
        "goto +1",
        "goto -2",
        "gotol +1",
        "if r1 == 0 goto +1",
        "may_goto +1",
    ] {
        let text = format!("{jump}\nexit");
        assert_eq!(fault_of(&text), (0, Problem::TargetOutside), "{text}");
        let text = format!("{jump}\nr0 = 1 ll\nexit").replace("-2", "+1");
        assert_eq!(fault_of(&text), (0, Problem::TargetInsideImm64), "{text}");
        let text = format!("call f\n{jump}\nexit\nf:\nexit").replace("-2", "+1");
        assert_eq!(
            fault_of(&text),
            (1, Problem::TargetInOtherFunction),
            "{text}"
        );
    }
    for (distance, problem) in [
        ("+3", Problem::TargetOutside),
        ("-2", Problem::TargetOutside),
        ("+1", Problem::TargetInsideImm64),
    ] {
        let text = format!("call pc{distance}\nr0 = 1 ll\nexit");
        assert_eq!(fault_of(&text), (0, problem), "{text}");
    }
    assert_eq!(
        fault_of("call f\nexit\nf:\ngoto -3"),
        (2, Problem::TargetInOtherFunction)
    );
}

#[test]
fn functions_must_not_fall_through() {
    assert_eq!(fault_of("r0 = 0"), (0, Problem::FallsOffEnd));
    assert_eq!(fault_of("r0 = 0 ll"), (1, Problem::FallsOffEnd));
    assert_eq!(fault_of("if r1 == 0 goto -1"), (0, Problem::FallsOffEnd));
    assert_eq!(fault_of("may_goto -1"), (0, Problem::FallsOffEnd));
    assert_eq!(fault_of("call f\nf:\nexit"), (0, Problem::FallsOffEnd));
    assert!(lower(assemble("goto -1").expect("it is")).is_ok());
}

#[test]
fn writes_to_the_frame_pointer_are_refused() {
    for write in [
        "r10 = 1",
        "r10 += 8",
        "r10 = r1",
        "r10 = *(u64 *)(r1 + 0)",
        "r10 = atomic_fetch_add((u64 *)(r1 + 0), r10)",
        "r10 = be64 r10",
        "r10 = -r10",
    ] {
        let text = format!("{write}\nexit");
        assert_eq!(fault_of(&text), (0, Problem::WritesFramePointer), "{text}");
    }
    let insns = assemble("r10 = 1 ll\nexit").expect("it is");
    assert_eq!(fault(insns), (0, Problem::WritesFramePointer));
    let reads = "*(u64 *)(r10 - 8) = r10\nlock *(u64 *)(r10 - 8) += r10\nexit";
    assert!(lower(assemble(reads).expect(reads)).is_ok());
}

#[test]
fn unresolved_references_are_refused() {
    assert_eq!(
        fault_of("call 999999\nexit"),
        (0, Problem::UnknownHelper(999_999))
    );
    assert!(lower(assemble("call 7\nexit").expect("it is")).is_ok());
    assert_eq!(fault_of("callx r1\nexit"), (0, Problem::Indirect));
    assert_eq!(fault_of("gotox r1\nexit"), (0, Problem::Indirect));
    assert_eq!(fault_of("call kfunc(5)\nexit"), (0, Problem::Unlinked));
    for imm in [
        "map_fd(3)",
        "map_value(3, 4)",
        "btf_id(5)",
        "func(+1)",
        "map_idx(0)",
    ] {
        let text = format!("r1 = {imm} ll\nexit");
        assert_eq!(fault_of(&text), (0, Problem::Unlinked), "{text}");
    }
    let cast = AddrSpaceCast { to: 2, from: 0 };
    assert_eq!(
        fault_of("r1 = addr_space_cast(r1, 2, 0)\nexit"),
        (0, Problem::UnknownAddressSpace(cast))
    );
    for pair in ["1, 0", "0, 1"] {
        let text = format!("r1 = addr_space_cast(r1, {pair})\nexit");
        assert!(lower(assemble(&text).expect(&text)).is_ok(), "{text}");
    }
}

#[test]
fn call_depth_is_limited() {
    assert!(lower(nested(8)).is_ok());
    assert_eq!(fault(nested(9)), (0, Problem::TooDeep));
    // Two paths to the same function: the deeper one counts.
    let text = "call g\n".to_owned() + "call pc+1\nexit\n".repeat(7).as_str() + "g:\nexit";
    assert!(lower(assemble(&text).expect(&text)).is_ok());
}

#[test]
fn recursion_is_refused() {
    assert_eq!(fault_of("call pc-1\nexit"), (0, Problem::Recursion));
    assert_eq!(
        fault_of("call f\nexit\nf:\ncall g\nexit\ng:\ncall f\nexit"),
        (4, Problem::Recursion)
    );
    // Functions that only call each other.
    assert_eq!(
        fault_of("exit\nf:\ncall g\nexit\ng:\ncall f\nexit"),
        (3, Problem::Recursion)
    );
}

/// The check skips the encoding of the frequent kinds.
#[test]
fn every_value_of_the_frequent_kinds_has_an_encoding() {
    use isa::ebpf::{AluOp::*, Cond, Operand, Width};
    let (dst, base, off) = (Reg::R1, Reg::R2, -1);
    let mut insns = vec![Insn::Exit, Insn::Goto { off }, Insn::MayGoto { off }];
    insns.push(Insn::GotoLong { off: -1 });
    for src in [Operand::Reg(Reg::R3), Operand::Imm(-1)] {
        for width in [Width::W32, Width::W64] {
            let ops = [
                Add, Sub, Mul, Div, SDiv, Mod, SMod, Or, And, Xor, Lsh, Rsh, Arsh, Mov,
            ];
            insns.extend(ops.map(|op| Insn::Alu {
                op,
                width,
                dst,
                src,
            }));
            insns.extend(Cond::ALL.map(|cond| Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            }));
        }
        insns.extend(SIZES.map(|size| Insn::Store {
            size,
            base,
            off,
            src,
        }));
    }
    insns.extend(SIZES.map(|size| Insn::Load {
        size,
        signed: false,
        dst,
        base,
        off,
    }));
    for insn in insns {
        assert!(insn.row().is_some(), "{insn:?}");
    }
}

const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];
