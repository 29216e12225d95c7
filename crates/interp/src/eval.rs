#![allow(missing_docs)]
use isa::ebpf::*;
#[inline(always)]
pub const fn alu(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => match op {
            AluOp::Add => a.wrapping_add(b),
            AluOp::Sub => a.wrapping_sub(b),
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => {
                if b == 0 {
                    0
                } else {
                    a / b
                }
            }
            AluOp::Mod => {
                if b == 0 {
                    a
                } else {
                    a % b
                }
            }
            AluOp::SDiv => {
                if b == 0 {
                    0
                } else {
                    (a as i64).wrapping_div(b as i64) as u64
                }
            }
            AluOp::SMod => {
                if b == 0 {
                    a
                } else {
                    (a as i64).wrapping_rem(b as i64) as u64
                }
            }
            AluOp::Or => a | b,
            AluOp::And => a & b,
            AluOp::Xor => a ^ b,
            AluOp::Lsh => a << (b & 63),
            AluOp::Rsh => a >> (b & 63),
            AluOp::Arsh => ((a as i64) >> (b & 63)) as u64,
            AluOp::Mov => b,
        },
        Width::W32 => {
            let (a, b) = (a as u32, b as u32);
            (match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div => {
                    if b == 0 {
                        0
                    } else {
                        a / b
                    }
                }
                AluOp::Mod => {
                    if b == 0 {
                        a
                    } else {
                        a % b
                    }
                }
                AluOp::SDiv => {
                    if b == 0 {
                        0
                    } else {
                        (a as i32).wrapping_div(b as i32) as u32
                    }
                }
                AluOp::SMod => {
                    if b == 0 {
                        a
                    } else {
                        (a as i32).wrapping_rem(b as i32) as u32
                    }
                }
                AluOp::Or => a | b,
                AluOp::And => a & b,
                AluOp::Xor => a ^ b,
                AluOp::Lsh => a << (b & 31),
                AluOp::Rsh => a >> (b & 31),
                AluOp::Arsh => ((a as i32) >> (b & 31)) as u32,
                AluOp::Mov => b,
            }) as u64
        }
    }
}
#[inline(always)]
pub const fn compare(c: Cond, width: Width, a: u64, b: u64) -> bool {
    let (a, b, sa, sb) = match width {
        Width::W64 => (a, b, a as i64, b as i64),
        Width::W32 => (
            a as u32 as u64,
            b as u32 as u64,
            a as i32 as i64,
            b as i32 as i64,
        ),
    };
    match c {
        Cond::Eq => a == b,
        Cond::Ne => a != b,
        Cond::Set => a & b != 0,
        Cond::Gt => a > b,
        Cond::Ge => a >= b,
        Cond::Lt => a < b,
        Cond::Le => a <= b,
        Cond::SGt => sa > sb,
        Cond::SGe => sa >= sb,
        Cond::SLt => sa < sb,
        Cond::SLe => sa <= sb,
    }
}
#[inline(always)]
pub const fn neg(w: Width, a: u64) -> u64 {
    match w {
        Width::W64 => a.wrapping_neg(),
        Width::W32 => (a as u32).wrapping_neg() as u64,
    }
}
#[inline(always)]
pub const fn mov_sx(w: Width, s: Size, a: u64) -> u64 {
    let v = match s {
        Size::B => a as i8 as i64,
        Size::H => a as i16 as i64,
        Size::W => a as i32 as i64,
        Size::DW => a as i64,
    } as u64;
    match w {
        Width::W64 => v,
        Width::W32 => v as u32 as u64,
    }
}
#[inline(always)]
pub const fn endian(o: ByteOrder, s: Size, a: u64) -> u64 {
    let sw = !matches!(o, ByteOrder::Little);
    match s {
        Size::B => a,
        Size::H => {
            let v = a as u16;
            (if sw { v.swap_bytes() } else { v }) as u64
        }
        Size::W => {
            let v = a as u32;
            (if sw { v.swap_bytes() } else { v }) as u64
        }
        Size::DW => {
            if sw {
                a.swap_bytes()
            } else {
                a
            }
        }
    }
}
