//! Features that instructions require.

use std::sync::LazyLock;

use isa::ebpf::{AluOp, AtomicOp, ByteOrder, Callee, Cond, Imm64, Insn, RawInsn, Row, Size, Width};

use super::Feature;

/// By opcode, the feature that all instructions with it require.
static OF_OPCODE: LazyLock<Vec<Option<Feature>>> = LazyLock::new(|| {
    let of_row = |row: &Row| {
        let slot = row.slot(0, 0, 0, 0);
        Feature::of(Insn::decode_one(slot, Some(RawInsn::default())))
    };
    let of_code = |code| {
        let mut features = Row::with_code(code).map(of_row);
        let first = features.next()?;
        first.filter(|_| features.all(|feature| feature == first))
    };
    (0..=u8::MAX).map(of_code).collect()
});

impl Feature {
    /// The feature that every instruction with the opcode requires, whatever the other fields hold.
    pub fn of_opcode(insn: RawInsn) -> Option<Feature> {
        OF_OPCODE[usize::from(insn.code)]
    }

    /// True if a kernel without the feature refuses the instruction even where no path reaches
    /// it: Linux checks each opcode, the mode of each load, the immediate of each atomic
    /// operation (until 5.12), the kind of each 64-bit immediate and each function reference
    /// before it removes dead code (`resolve_pseudo_ldimm64`, `add_subprog_and_kfunc`). Other
    /// fields, and the called helpers and kfuncs, are checked on paths only (`do_check`).
    pub const fn is_checked_in_dead_code(self, insn: Insn) -> bool {
        match self {
            Feature::Jump32
            | Feature::JumpLess
            | Feature::LocalCalls
            | Feature::GlobalData
            | Feature::TypedKsyms
            | Feature::ModuleKsyms
            | Feature::AtomicFetch
            | Feature::AtomicBits
            | Feature::AtomicExchange
            | Feature::Callbacks
            | Feature::MapIndex
            | Feature::SignedLoads
            | Feature::ByteSwap
            | Feature::LongJumps
            | Feature::MayGoto
            | Feature::IndirectJumps => true,
            // Opcodes of atomic operations have 4 or 8 bytes; the immediate is checked on paths.
            Feature::OrderedAccess => matches!(
                insn,
                Insn::LoadAcquire {
                    size: Size::B | Size::H,
                    ..
                } | Insn::StoreRelease {
                    size: Size::B | Size::H,
                    ..
                }
            ),
            _ => false,
        }
    }

    /// Feature that an instruction requires; `None` if no kernel executes it. Called
    /// kfuncs and helpers and used maps have first releases of their own.
    pub const fn of(insn: Insn) -> Option<Feature> {
        Some(match insn {
            Insn::Alu { op, .. } => match op {
                AluOp::SDiv | AluOp::SMod => Feature::SignedDivision,
                AluOp::Add
                | AluOp::Sub
                | AluOp::Mul
                | AluOp::Div
                | AluOp::Mod
                | AluOp::Or
                | AluOp::And
                | AluOp::Xor
                | AluOp::Lsh
                | AluOp::Rsh
                | AluOp::Arsh
                | AluOp::Mov => Feature::Programs,
            },
            Insn::MovSx { .. } => Feature::SignedMoves,
            Insn::Endian { order, .. } => match order {
                ByteOrder::Swap => Feature::ByteSwap,
                ByteOrder::Little | ByteOrder::Big => Feature::Programs,
            },
            Insn::Cast { .. } => Feature::AddressSpaces,
            Insn::LoadImm64 { imm, .. } => match imm {
                Imm64::Value(_) | Imm64::MapFd { .. } => Feature::Programs,
                Imm64::MapValue { .. } => Feature::GlobalData,
                Imm64::BtfId { module_fd: 0, .. } => Feature::TypedKsyms,
                Imm64::BtfId { .. } => Feature::ModuleKsyms,
                Imm64::Func { .. } => Feature::Callbacks,
                Imm64::MapIndex { .. } | Imm64::MapIndexValue { .. } => Feature::MapIndex,
            },
            Insn::Load { signed: true, .. } => Feature::SignedLoads,
            Insn::Atomic { op, .. } => match op {
                AtomicOp::Add { fetch: false } => Feature::Programs,
                AtomicOp::Add { fetch: true } => Feature::AtomicFetch,
                AtomicOp::And { .. } | AtomicOp::Or { .. } | AtomicOp::Xor { .. } => {
                    Feature::AtomicBits
                }
                AtomicOp::Xchg | AtomicOp::CmpXchg => Feature::AtomicExchange,
            },
            Insn::LoadAcquire { .. } | Insn::StoreRelease { .. } => Feature::OrderedAccess,
            Insn::Jump { cond, width, .. } => match (width, cond) {
                (Width::W32, _) => Feature::Jump32,
                (Width::W64, Cond::Lt | Cond::Le | Cond::SLt | Cond::SLe) => Feature::JumpLess,
                (
                    Width::W64,
                    Cond::Eq | Cond::Ne | Cond::Set | Cond::Gt | Cond::Ge | Cond::SGt | Cond::SGe,
                ) => Feature::Programs,
            },
            Insn::GotoLong { .. } => Feature::LongJumps,
            Insn::GotoReg { .. } => Feature::IndirectJumps,
            Insn::MayGoto { .. } => Feature::MayGoto,
            Insn::Call(callee) => match callee {
                Callee::Helper(_) => Feature::Programs,
                Callee::Local(_) => Feature::LocalCalls,
                Callee::Kfunc { module: 0, .. } => Feature::Kfuncs,
                Callee::Kfunc { .. } => Feature::ModuleKfuncs,
            },
            Insn::Neg { .. }
            | Insn::Imm64High
            | Insn::Load { signed: false, .. }
            | Insn::Store { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Goto { .. }
            | Insn::Exit => Feature::Programs,
            Insn::CallReg { .. } | Insn::Invalid { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    #[test]
    fn instructions_require_the_release_that_introduced_them() {
        let cases = [
            ("w0 = w1", "3.18"),
            ("lock *(u32 *)(r1 + 0) += w2", "3.18"),
            ("if r0 < 5 goto +0", "4.14"),
            ("call pc+0", "4.16"),
            ("if w0 == 5 goto +0", "5.1"),
            ("lock *(u64 *)(r1 + 0) |= r2", "5.12"),
            ("r2 = atomic_fetch_add((u64 *)(r1 + 0), r2)", "5.12"),
            ("r0 = cmpxchg_64(r1 + 0, r0, r2)", "5.12"),
            ("call kfunc(5)", "5.13"),
            ("call kfunc(5, 1)", "5.16"),
            ("r0 s/= r1", "6.6"),
            ("r0 = (s8)r1", "6.6"),
            ("r0 = *(s32 *)(r1 + 0)", "6.6"),
            ("r0 = bswap32 r0", "6.6"),
            ("gotol +0", "6.6"),
            ("may_goto +0", "6.9"),
            ("r0 = addr_space_cast(r1, 0, 1)", "6.9"),
            ("r0 = load_acquire((u64 *)(r1 + 0))", "6.15"),
            ("gotox r1", "6.19"),
        ];
        for (text, release) in cases {
            let insn = assemble(text).expect(text)[0];
            let feature = Feature::of(insn).expect(text);
            assert_eq!(feature.since().release.to_string(), release, "{text}");
        }
        assert_eq!(Feature::of(assemble("callx r1").expect("callx")[0]), None);
    }

    #[test]
    fn opcodes_require_what_all_their_instructions_do() {
        let cases = [
            (0xd7, Some(Feature::ByteSwap)),
            (0x06, Some(Feature::LongJumps)),
            (0xe5, Some(Feature::MayGoto)),
            (0x91, Some(Feature::SignedLoads)),
            (0x0d, Some(Feature::IndirectJumps)),
            (0xbf, None),
            (0xdb, None),
            (0x8d, None),
            (0xff, None),
        ];
        for (code, feature) in cases {
            let insn = RawInsn {
                code,
                ..RawInsn::default()
            };
            assert_eq!(Feature::of_opcode(insn), feature, "{code:#x}");
        }
    }

    #[test]
    fn dead_code_is_checked_for_opcodes_and_not_for_offsets() {
        let cases = [
            ("if w0 == 5 goto +0", true),
            ("lock *(u64 *)(r1 + 0) |= r2", true),
            ("r0 = cmpxchg_64(r1 + 0, r0, r2)", true),
            ("r0 = *(s32 *)(r1 + 0)", true),
            ("r0 = bswap32 r0", true),
            ("gotol +0", true),
            ("may_goto +0", true),
            ("gotox r1", true),
            ("w0 = load_acquire((u8 *)(r1 + 0))", true),
            ("r0 = load_acquire((u64 *)(r1 + 0))", false),
            ("r0 s/= r1", false),
            ("r0 = (s8)r1", false),
            ("r0 = addr_space_cast(r1, 0, 1)", false),
            ("call kfunc(5)", false),
            ("call 5", false),
        ];
        for (text, expected) in cases {
            let insn = assemble(text).expect(text)[0];
            let feature = Feature::of(insn).expect(text);
            assert_eq!(feature.is_checked_in_dead_code(insn), expected, "{text}");
        }
    }
}
