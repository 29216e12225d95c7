//! Loads, stores, atomics: on the stack, aligned and not.

use isa::ebpf::{AtomicOp, Insn, Operand, Reg, Size, eval};

use super::{REGS, VALUES, copy, run, run_on, set};

/// Stride through the values in Miri.
const STEP: usize = if cfg!(miri) { 5 } else { 1 };
const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];

#[test]
fn loads_return_what_was_stored() {
    for (index, value) in VALUES.into_iter().enumerate() {
        for size in [Size::B, Size::H, Size::W, Size::DW] {
            for signed in [false, size != Size::DW] {
                let (src, dst) = (REGS[index % 3], REGS[(index + 1) % 3]);
                let off = -8 - index as i16;
                let store = Insn::Store {
                    size,
                    base: Reg::R10,
                    off,
                    src: Operand::Reg(src),
                };
                let load = Insn::Load {
                    size,
                    signed,
                    dst,
                    base: Reg::R10,
                    off,
                };
                let mut program = Vec::from(set(src, value));
                program.extend([store, load]);
                program.extend([copy(Reg::R0, dst), Insn::Exit]);
                assert_eq!(
                    run(&program),
                    eval::loaded(size, signed, value),
                    "{load:?} {value:#x}"
                );
            }
        }
    }
}

/// Sets `r0`, `src` and the word at `base + off`, executes the instruction, and returns
/// `register` and the word.
fn after(insn: Insn, src: (Reg, u64), r0: u64, word: u64, register: Reg) -> (u64, u64) {
    let Insn::Atomic { base, off, .. } = insn else {
        panic!("{insn:?}")
    };
    let mut program = Vec::from(set(Reg::R3, word));
    if base != Reg::R10 {
        program.push(copy(base, Reg::R10));
    }
    program.push(Insn::Store {
        size: Size::DW,
        base,
        off,
        src: Operand::Reg(Reg::R3),
    });
    program.extend(set(Reg::R0, r0));
    program.extend(set(src.0, src.1));
    program.push(insn);
    let store = |off, src| Insn::Store {
        size: Size::DW,
        base: Reg::R10,
        off,
        src: Operand::Reg(src),
    };
    let load = |off| Insn::Load {
        size: Size::DW,
        signed: false,
        dst: Reg::R0,
        base: Reg::R10,
        off,
    };
    let mut word_wanted = program.clone();
    word_wanted.extend([load(off), Insn::Exit]);
    program.extend([store(-8, register), load(-8), Insn::Exit]);
    (run(&program), run(&word_wanted))
}

#[test]
fn atomics_match_eval_in_every_register() {
    use AtomicOp::*;
    let mut ops = vec![Xchg, CmpXchg];
    for fetch in [false, true] {
        ops.extend([Add { fetch }, Or { fetch }, And { fetch }, Xor { fetch }]);
    }
    let places = [
        (Reg::R10, Reg::R2, -24),
        (Reg::R10, Reg::R0, -27),
        (Reg::R7, Reg::R9, -24),
        (Reg::R7, Reg::R0, -30),
    ];
    for op in ops {
        for size in [Size::W, Size::DW] {
            for (base, src, off) in places {
                for (index, word) in VALUES.into_iter().enumerate().step_by(STEP) {
                    for value in [VALUES[(index + 3) % 9], word] {
                        let insn = Insn::Atomic {
                            op,
                            size,
                            base,
                            off,
                            src,
                        };
                        // The expected value of an exchange: equal, or not.
                        let r0 = if src == Reg::R0 {
                            value
                        } else {
                            word ^ (value & 1)
                        };
                        let old = eval::zero_extend(size, word);
                        let (into_src, into_r0) = (op.fetches_into_src(), op.fetches_into_r0());
                        let register = if into_r0 { Reg::R0 } else { src };
                        let kept = match size {
                            Size::DW => 0,
                            _ => word >> 32 << 32,
                        };
                        let changed = kept | eval::atomic(op, size, word, value, r0);
                        let found = after(insn, (src, value), r0, word, register);
                        let fetched = if into_src || into_r0 { old } else { value };
                        assert_eq!(
                            found,
                            (fetched, changed),
                            "{insn:?} {word:#x} {value:#x} {r0:#x}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_failed_exchange_leaves_the_source() {
    let text = "
        r1 = 5
        *(u64 *)(r10 - 8) = r1
        r0 = 6
        r2 = 7
        r0 = cmpxchg_64(r10 - 8, r0, r2)
        r0 <<= 8
        r0 |= r2
        exit
    ";
    assert_eq!(super::run_text(text), 0x507);
}

#[test]
fn atomics_through_r0_as_address() {
    let text = "
        r1 = 40
        *(u64 *)(r10 - 8) = r1
        r0 = r10
        r2 = 2
        lock *(u64 *)(r0 - 8) += r2
        r2 = atomic_fetch_or((u64 *)(r0 - 8), r2)
        r0 = *(u64 *)(r0 - 8)
        r0 <<= 8
        r0 |= r2
        exit
    ";
    assert_eq!(super::run_text(text), 42 << 8 | 42);
}

#[test]
fn load_acquire_and_store_release_access_memory() {
    for size in SIZES {
        for (index, value) in VALUES.into_iter().enumerate() {
            for (dst, src, off) in [
                (Reg::R0, Reg::R2, -16),
                (Reg::R9, Reg::R0, -16),
                (Reg::R2, Reg::R9, -15),
            ] {
                let before = VALUES[(index + 1) % 9];
                let mut program = Vec::from(set(Reg::R1, before));
                program.push(Insn::Store {
                    size: Size::DW,
                    base: Reg::R10,
                    off,
                    src: Operand::Reg(Reg::R1),
                });
                program.extend(set(src, value));
                program.extend([
                    Insn::StoreRelease {
                        size,
                        base: Reg::R10,
                        off,
                        src,
                    },
                    Insn::LoadAcquire {
                        size: Size::DW,
                        dst,
                        base: Reg::R10,
                        off,
                    },
                    copy(Reg::R0, dst),
                    Insn::Exit,
                ]);
                let mask = eval::zero_extend(size, u64::MAX);
                assert_eq!(
                    run(&program),
                    before & !mask | value & mask,
                    "{size:?} {value:#x}"
                );
                let load = program.len() - 3;
                program[load] = Insn::LoadAcquire {
                    size,
                    dst,
                    base: Reg::R10,
                    off,
                };
                assert_eq!(run(&program), value & mask, "{size:?} {value:#x}");
            }
        }
    }
}

#[test]
fn unaligned_loads_work() {
    let text = "
        r0 = *(u16 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 2)
        r0 += r3
        r3 = *(u64 *)(r1 + 6)
        r0 += r3
        lock *(u32 *)(r1 + 1) += r0
        exit
    ";
    let insns = isa::ebpf::assemble(text).expect(text);
    let bytes: [u8; 24] = std::array::from_fn(|index| index as u8 * 7);
    for start in 0..8 {
        let mut memory = bytes;
        let at = &mut memory[start..start + 14];
        let part = |from, to| {
            at[from..to]
                .iter()
                .rev()
                .fold(0, |sum, &b| sum << 8 | u64::from(b))
        };
        let expected = part(0, 2) + part(2, 6) + part(6, 14);
        let sum = (part(1, 5) as u32).wrapping_add(expected as u32);
        // SAFETY: it accesses the first 14 bytes of its memory, which has as many.
        assert_eq!(unsafe { run_on(&insns, at) }, expected);
        assert_eq!(at[1..5], sum.to_le_bytes());
    }
}
