//! Consistency of the instruction table: derivations are inverses, and no two rows admit
//! the same slot.

use beebox_isa::ebpf::table::ROWS;
use beebox_isa::ebpf::{
    ByteOrder, Fault, Field, Group, Imm64, Insn, NoEncoding, PartialSlot, RawInsn, Reg, Row, Size,
    Value64, Width, decode, decode_bytes, encode, from_bytes, to_bytes,
};

const WIDE: u8 = 0x18;

/// Slots of this row with a sample of values in its operand fields.
fn samples(row: &Row) -> Vec<RawInsn> {
    let regs = |field| match field {
        Field::Is(only) => vec![only as u8],
        Field::Ignored => vec![0],
        Field::Any => (0..=10).collect(),
    };
    let numbers = |field, sample: &[i32]| match field {
        Field::Is(only) => vec![only],
        Field::Ignored => vec![0],
        Field::Any => sample.to_vec(),
    };
    let mut slots = Vec::new();
    for dst in regs(row.dst) {
        for src in regs(row.src) {
            for off in numbers(row.off, &[0, 1, -1, 8, i16::MAX.into(), i16::MIN.into()]) {
                for imm in numbers(row.imm, &[0, 1, -1, 16, 0x100, 0x10000, i32::MAX, i32::MIN]) {
                    slots.push(row.slot(dst, src, off as i16, imm));
                }
            }
        }
    }
    slots
}

/// The slot and, for a 64-bit immediate, a second one.
fn with_second(row: &Row, raw: RawInsn) -> Vec<RawInsn> {
    let imm = if row.high == Field::Any {
        0x7654_3210
    } else {
        0
    };
    let second = RawInsn {
        imm,
        ..RawInsn::default()
    };
    if raw.code == WIDE {
        vec![raw, second]
    } else {
        vec![raw]
    }
}

#[oracle::test]
fn rows_are_in_the_order_of_their_names() {
    for (index, row) in ROWS.iter().enumerate() {
        assert_eq!(row.op as usize, index);
    }
}

#[oracle::test]
fn every_slot_of_a_row_round_trips() {
    for row in ROWS {
        for raw in samples(row) {
            let slots = with_second(row, raw);
            let insns = decode(&slots);
            assert_eq!(insns[0].row().map(|r| r.op), Some(row.op), "{raw:x?}");
            assert_eq!(encode(&insns).as_deref(), Ok(&slots[..]), "{raw:x?}");
            let bytes = to_bytes(&slots);
            assert_eq!(decode_bytes(&bytes), Ok(insns));
            assert_eq!(from_bytes(&bytes), Ok(slots));
        }
    }
}

#[oracle::test]
fn no_two_rows_admit_the_same_slot() {
    let overlap = |a: Field, b: Field| match (a, b) {
        (Field::Is(a), Field::Is(b)) => a == b,
        _ => true,
    };
    for (index, a) in ROWS.iter().enumerate() {
        for b in &ROWS[..index] {
            let both = a.code == b.code
                && overlap(a.dst, b.dst)
                && overlap(a.src, b.src)
                && overlap(a.off, b.off)
                && overlap(a.imm, b.imm);
            assert!(!both, "{:?} and {:?}", a.op, b.op);
        }
    }
}

#[oracle::test]
fn every_opcode_without_a_row_is_unknown() {
    for code in 0..=255 {
        if code == WIDE || Row::with_code(code).next().is_some() {
            continue;
        }
        let raw = RawInsn {
            code,
            ..RawInsn::default()
        };
        assert_eq!(
            Insn::decode_one(raw, None),
            Insn::Invalid {
                raw,
                fault: Fault::UnknownOpcode
            }
        );
    }
}

#[oracle::test]
fn a_broken_64_bit_immediate_keeps_its_bits() {
    let first = RawInsn {
        code: WIDE,
        regs: 0x01,
        off: 0,
        imm: 7,
    };
    let second = RawInsn {
        imm: 9,
        ..RawInsn::default()
    };
    let exit = RawInsn {
        code: 0x95,
        ..RawInsn::default()
    };
    let broken = |raw| Insn::Invalid {
        raw,
        fault: Fault::BrokenImm64,
    };
    let whole = Insn::LoadImm64 {
        dst: Reg::R1,
        imm: Imm64::Value(Value64::new(9 << 32 | 7)),
    };

    let cases = [
        (vec![first, second], vec![whole, Insn::Imm64High]),
        (vec![first, exit], vec![broken(first), Insn::Exit]),
        (vec![first], vec![broken(first)]),
        // Its fields are invalid, so its second slot is invalid too.
        (
            vec![RawInsn { off: 1, ..first }, second],
            vec![
                Insn::Invalid {
                    raw: RawInsn { off: 1, ..first },
                    fault: Fault::ReservedField,
                },
                broken(second),
            ],
        ),
        // A map's descriptor has no upper half.
        (
            vec![
                RawInsn {
                    regs: 0x11,
                    ..first
                },
                second,
            ],
            vec![
                Insn::Invalid {
                    raw: RawInsn {
                        regs: 0x11,
                        ..first
                    },
                    fault: Fault::ReservedField,
                },
                broken(second),
            ],
        ),
    ];
    for (slots, insns) in cases {
        assert_eq!(decode(&slots), insns);
        assert_eq!(encode(&insns), Ok(slots));
    }
}

#[oracle::test]
fn values_without_a_slot_have_no_encoding() {
    let wide_source = Insn::MovSx {
        width: Width::W32,
        from: Size::W,
        dst: Reg::R1,
        src: Reg::R2,
    };
    let byte_swap = Insn::Endian {
        order: ByteOrder::Swap,
        size: Size::B,
        dst: Reg::R1,
    };
    for insn in [wide_source, byte_swap] {
        assert_eq!(insn.encode(), None);
        assert_eq!(encode(&[Insn::Exit, insn]), Err(NoEncoding { index: 1 }));
    }
    // The second slot of an immediate has no encoding by itself.
    assert_eq!(encode(&[Insn::Imm64High]), Ok(vec![RawInsn::default()]));
}

#[oracle::test]
fn partial_slots_are_refused() {
    assert_eq!(from_bytes(&[0x95; 12]), Err(PartialSlot { len: 12 }));
    assert_eq!(decode_bytes(&[0x95; 12]), Err(PartialSlot { len: 12 }));
    assert_eq!(from_bytes(&[]), Ok(vec![]));
}

#[oracle::test]
fn every_row_prints() {
    for row in ROWS {
        for raw in samples(row) {
            let insn = decode(&with_second(row, raw))[0];
            for text in [insn.to_string(), insn.kernel_form(&|_| None).to_string()] {
                assert!(!text.is_empty() && !text.contains(['{', '}']), "{text}");
            }
        }
    }
}

#[oracle::test]
fn the_llvm_form_of_common_instructions() {
    let text = |bytes: [u8; 8]| Insn::decode_one(RawInsn::from_le_bytes(bytes), None).to_string();
    assert_eq!(
        text([0x61, 0x10, 0x04, 0, 0, 0, 0, 0]),
        "r0 = *(u32 *)(r1 + 4)"
    );
    assert_eq!(
        text([0x6e, 0x31, 0x02, 0, 0, 0, 0, 0]),
        "if w1 s> w3 goto +2"
    );
    assert_eq!(
        text([0xdb, 0x21, 0, 0, 0, 0, 0, 0]),
        "lock *(u64 *)(r1 + 0) += r2"
    );
    assert_eq!(text([0xdc, 0, 0, 0, 16, 0, 0, 0]), "r0 = be16 r0");
    assert_eq!(text([0x85, 0, 0, 0, 7, 0, 0, 0]), "call 7");
    assert_eq!(text([0x06, 0, 0, 0, 0x70, 0x11, 1, 0]), "gotol +70000");
    assert_eq!(text([0x91, 0x10, 0, 0, 0, 0, 0, 0]), "r0 = *(s8 *)(r1 + 0)");
    assert_eq!(text([0x20, 0, 0, 0, 12, 0, 0, 0]), "r0 = *(u32 *)skb[12]");
    assert_eq!(
        text([0x48, 0x10, 0, 0, 14, 0, 0, 0]),
        "r0 = *(u16 *)skb[r1 + 14]"
    );
    assert_eq!(format!("[{:<8}]", Insn::Exit), "[exit    ]");
    assert_eq!(
        text([0xff, 1, 2, 0, 0, 0, 0, 0x80]),
        ".8byte 0x80000000000201ff"
    );
}

/// Sections 2.4, 4 and 5 of RFC 9669, as rules on the opcode.
fn group_by_the_rfc(row: &Row) -> Group {
    let (class, wide) = (row.code & 7, row.code & 0x18 == 0x18);
    let code = row.code >> 4;
    let by_width = |is_64, narrow, wide| if is_64 { wide } else { narrow };
    match class {
        0 if row.code == WIDE => Group::Base64,
        0 => Group::Packet,
        3 if row.code >> 5 == 6 => by_width(wide, Group::Atomic32, Group::Atomic64),
        1..=3 => by_width(wide, Group::Base32, Group::Base64),
        4 | 7 if matches!(code, 2 | 3 | 9) => {
            by_width(class == 7, Group::Divmul32, Group::Divmul64)
        }
        4 | 7 if code == 0xd => by_width(row.imm == Field::Is(64), Group::Base32, Group::Base64),
        4 | 7 => by_width(class == 7, Group::Base32, Group::Base64),
        // `exit` of the 64-bit class is not excepted in words, though no
        // program does without it.
        5 if matches!(code, 0 | 8 | 9) => Group::Base32,
        _ => by_width(class == 5, Group::Base32, Group::Base64),
    }
}

#[oracle::test]
fn groups_are_those_of_the_rfc() {
    for row in ROWS {
        if !matches!(row.group, Group::Linux | Group::Later) {
            assert_eq!(row.group, group_by_the_rfc(row), "{:?}", row.op);
        }
    }
    let beyond: Vec<u8> = ROWS
        .iter()
        .filter(|row| matches!(row.group, Group::Linux | Group::Later))
        .map(|row| row.code)
        .collect();
    assert_eq!(
        beyond,
        [
            0xbf, 0xd3, 0xcb, 0xc3, 0xdb, 0xd3, 0xcb, 0xc3, 0xdb, 0x0d, 0xe5, 0x8d
        ]
    );
}
