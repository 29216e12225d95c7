//! Registers, memory accesses and control flow of instructions.

use beebox_isa::ebpf::table::ROWS;
use beebox_isa::ebpf::{
    Access, Callee, Effect, Flow, Insn, RawInsn, Reg, RegSet, Size, assemble, decode,
};

const ANSWERS: &str = include_str!("linux-6.18/operands.txt");

fn set(digits: &str) -> RegSet {
    let regs = digits
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|digit| digit - b'0');
    regs.filter_map(Reg::new)
        .fold(RegSet::EMPTY, |set, reg| set.union(RegSet::of(reg)))
}

fn only(text: &str) -> Insn {
    let insns = assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    insns[0]
}

#[oracle::test]
fn registers_match_linux() {
    let frame_pointer = RegSet::of(Reg::R10);
    let mut compared = 0;
    for line in ANSWERS.lines().filter(|line| !line.starts_with('#')) {
        let [hex, reads, writes] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let bits = u64::from_str_radix(hex, 16).expect("a slot");
        let insn = Insn::decode_one(RawInsn::from_le_bytes(bits.to_be_bytes()), None);
        assert_eq!(
            insn.reads().without(frame_pointer),
            set(reads),
            "{insn}: {line}"
        );
        assert_eq!(
            insn.writes().without(insn.reads()),
            set(writes),
            "{insn}: {line}"
        );
        compared += 1;
    }
    assert!(compared > 250, "{compared}");
}

#[oracle::test]
fn accesses_match_the_text() {
    let access = |text: &str| only(text).access();
    let at = |base, off, size, reads, writes| {
        Some(Access {
            base,
            off,
            size,
            reads,
            writes,
        })
    };
    assert_eq!(
        access("r1 = *(u16 *)(r2 - 4)"),
        at(Reg::R2, -4, Size::H, true, false)
    );
    assert_eq!(
        access("r1 = *(s32 *)(r2 + 4)"),
        at(Reg::R2, 4, Size::W, true, false)
    );
    assert_eq!(
        access("*(u64 *)(r10 - 8) = 1"),
        at(Reg::R10, -8, Size::DW, false, true)
    );
    assert_eq!(
        access("*(u8 *)(r3 + 0) = r4"),
        at(Reg::R3, 0, Size::B, false, true)
    );
    assert_eq!(
        access("lock *(u32 *)(r3 + 0) += r4"),
        at(Reg::R3, 0, Size::W, true, true)
    );
    assert_eq!(
        access("w1 = load_acquire((u8 *)(r2 + 1))"),
        at(Reg::R2, 1, Size::B, true, false)
    );
    assert_eq!(
        access("store_release((u64 *)(r2 + 8), r1)"),
        at(Reg::R2, 8, Size::DW, false, true)
    );
    assert_eq!(access("r0 = *(u8 *)skb[14]"), None);
    assert_eq!(access("r1 = 5 ll"), None);
}

#[oracle::test]
fn the_text_shows_an_access_exactly_where_there_is_one() {
    for row in ROWS {
        let insn = decode(&[row.slot(1, 2, 8, 0), RawInsn::default()])[0];
        let derefs = row.llvm.contains(" *)(") || row.llvm.contains("xchg");
        assert_eq!(insn.access().is_some(), derefs, "{insn}");
        if let Some(access) = insn.access() {
            let bits = access.size.bytes() * 8;
            assert!(row.llvm.contains(&bits.to_string()), "{insn}: {access:?}");
        }
    }
}

#[oracle::test]
fn control_flow_matches_the_text() {
    let flow = |text: &str| only(text).flow();
    assert_eq!(flow("r1 += 1"), Flow::Next);
    assert_eq!(flow("r0 = *(u8 *)skb[14]"), Flow::Next);
    assert_eq!(flow("r1 = 1 ll"), Flow::SkipOne);
    assert_eq!(flow("if r1 > r2 goto -7"), Flow::Branch(-7));
    assert_eq!(flow("may_goto +3"), Flow::Branch(3));
    assert_eq!(flow("goto +9"), Flow::Goto(9));
    assert_eq!(flow("gotol -70000"), Flow::Goto(-70_000));
    assert_eq!(flow("gotox r3"), Flow::GotoReg(Reg::R3));
    assert_eq!(flow("call 7"), Flow::Call(None));
    assert_eq!(Insn::Call(Callee::Local(7)).flow(), Flow::Call(Some(7)));
    assert_eq!(flow("callx r3"), Flow::Call(None));
    assert_eq!(flow("exit"), Flow::Exit);
    assert_eq!(flow(".8byte 0xff"), Flow::Nowhere);
    assert_eq!(Insn::Imm64High.flow(), Flow::Nowhere);
}

#[oracle::test]
fn instructions_match_their_rows() {
    for row in ROWS {
        for (dst, src) in (0..=10).flat_map(|dst| (0..=10).map(move |src| (dst, src))) {
            let raw = row.slot(dst, src, -9, 70_000);
            let insn = decode(&[raw, RawInsn::default()])[0];
            let is_row = insn.row().map(|row| row.op);
            assert_eq!(is_row, Some(row.op), "{insn}");
            assert_eq!(insn.reads(), row.reads.resolve(dst, src), "{insn}");
            assert_eq!(insn.writes(), row.writes.resolve(dst, src), "{insn}");
            assert_eq!(insn.effect(), Some(row.effect), "{insn}");
            let writes_memory = matches!(row.effect, Effect::Store | Effect::Atomic);
            assert_eq!(insn.stored().is_some(), writes_memory, "{insn}");
            let reg = |number| Reg::new(number).expect("a register");
            let (base, reads, writes) = match row.effect {
                Effect::Load => (Some(reg(src)), true, false),
                Effect::Store => (Some(reg(dst)), false, true),
                Effect::Atomic => (Some(reg(dst)), true, true),
                _ => (None, false, false),
            };
            let access = base.map(|base| Access {
                base,
                off: -9,
                size: row.slot(0, 0, 0, 0).size(),
                reads,
                writes,
            });
            assert_eq!(insn.access(), access, "{insn}");
            let flow = match row.effect {
                Effect::Compute
                | Effect::Load
                | Effect::Store
                | Effect::Atomic
                | Effect::Packet => Flow::Next,
                Effect::Wide => Flow::SkipOne,
                Effect::Branch => Flow::Branch(-9),
                Effect::Goto => Flow::Goto(-9),
                Effect::GotoLong => Flow::Goto(70_000),
                Effect::GotoReg => Flow::GotoReg(reg(dst)),
                Effect::Call => match insn {
                    Insn::Call(Callee::Local(distance)) => Flow::Call(Some(distance)),
                    _ => Flow::Call(None),
                },
                Effect::Exit => Flow::Exit,
            };
            assert_eq!(insn.flow(), flow, "{insn}");
        }
    }
}

#[oracle::test]
fn calls_read_and_clobber_the_argument_registers() {
    for row in ROWS.iter().filter(|row| row.effect == Effect::Call) {
        let insn = Insn::decode_one(row.slot(7, 0, 0, 1), None);
        let callee = if row.op.row().llvm.starts_with("callx") {
            set("7")
        } else {
            RegSet::EMPTY
        };
        assert_eq!(insn.reads(), set("12345").union(callee));
        assert_eq!(insn.writes(), set("012345"));
    }
}
