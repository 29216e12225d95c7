//! Idioms: code that compilers emit for operations that the instruction set lacks
//! (rotations, byte orders, population counts, minima, combined loads, read-modify-write).
//!
//! A compiler of programs to native code recognises many of these and has one
//! instruction for each; it must not be fooled by what only looks like one. So
//! every idiom is written in its variants here, and [`near_miss`](super::near_miss) then
//! makes near misses of half of them.
//!
//! An idiom's recipe only writes registers that hold numbers before it too, and
//! only uses addresses that stand ready. So whatever part of it is executed, and
//! however it is changed, what registers hold is known.

mod arithmetic;
mod bits;
mod conditions;
mod memory;

use super::draft::{Item, Label};
use super::scope::Scope;
use isa::ebpf::{AluOp, ByteOrder, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};

/// An idiom by its name.
pub(super) struct Idiom {
    pub(super) name: &'static str,
    write: fn(&mut Scope<'_, '_>) -> Option<Recipe>,
}

impl Idiom {
    /// Its items, in one of the variants; `None` where something is missing for
    /// it.
    pub(super) fn write(&self, scope: &mut Scope<'_, '_>) -> Option<Vec<Item>> {
        Some((self.write)(scope)?.items)
    }
}

macro_rules! idioms {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every idiom.
        pub(super) static ALL: &[Idiom] = &[$($(Idiom {
            name: stringify!($name),
            write: $module::$name,
        },)*)*];
    };
}

idioms! {
    bits:
        rotate_by_constant rotate_by_register funnel_shift zero_extend sign_extend mask_field
        test_bit swap_by_shifts swap_and_shift swap_twice find_first_ladder find_last_ladder
        population_count population_count_32 trailing_zeros leading_zeros lowest_bit and_not
        low_bits_by_register extend_again shift_pair;
    arithmetic:
        address_sum scaled_sum multiply_small subtract_least divide_by_power divide_and_remainder
        signed_divide negate_by_hand carry_chain borrow_chain widening_multiply constant_in_parts
        fold_constants exclusive_swap copies shift_by_register identities;
    conditions:
        minimum_or_maximum select absolute_value truth_value flags_after_alu test_mask
        three_way clamp_range switch_of_constants switch_as_tree short_circuit;
    memory:
        composed_load composed_big_endian masked_load load_and_operate read_modify_write
        compare_loaded store_then_load split_store copy_run fill_run swap_in_memory load_twice
        extend_loaded update_and_test exchange_loop big_endian_field;
}

/// Item of an idiom.
pub(super) struct Recipe {
    items: Vec<Item>,
}

/// A second operand.
trait Source {
    fn operand(self) -> Operand;
}

impl Source for Reg {
    fn operand(self) -> Operand {
        Operand::Reg(self)
    }
}

impl Source for i32 {
    fn operand(self) -> Operand {
        Operand::Imm(self)
    }
}

impl Source for Operand {
    fn operand(self) -> Operand {
        self
    }
}

/// Address of an access.
#[derive(Clone, Copy)]
struct At(Reg, i16);

impl At {
    fn plus(self, bytes: i16) -> At {
        At(self.0, self.1 + bytes)
    }
}

impl Recipe {
    fn new() -> Recipe {
        Recipe {
            items: Vec::with_capacity(16),
        }
    }

    fn plain(&mut self, insn: Insn) -> &mut Recipe {
        self.items.push(Item::Plain(insn));
        self
    }

    fn op(&mut self, op: AluOp, width: Width, dst: Reg, src: impl Source) -> &mut Recipe {
        let src = src.operand();
        self.plain(Insn::Alu {
            op,
            width,
            dst,
            src,
        })
    }

    fn mov(&mut self, dst: Reg, src: Reg) -> &mut Recipe {
        self.op(AluOp::Mov, Width::W64, dst, src)
    }

    fn neg(&mut self, width: Width, dst: Reg) -> &mut Recipe {
        self.plain(Insn::Neg { width, dst })
    }

    fn value(&mut self, dst: Reg, value: u64) -> &mut Recipe {
        let imm = Imm64::Value(Value64::new(value));
        self.plain(Insn::LoadImm64 { dst, imm })
    }

    /// A constant of one width, in the shorter form where there is one.
    fn number(&mut self, width: Width, dst: Reg, value: u64) -> &mut Recipe {
        match width {
            Width::W32 => self.op(AluOp::Mov, width, dst, value as i32),
            Width::W64 => self.value(dst, value),
        }
    }

    fn mov_sx(&mut self, width: Width, from: Size, dst: Reg, src: Reg) -> &mut Recipe {
        self.plain(Insn::MovSx {
            width,
            from,
            dst,
            src,
        })
    }

    fn endian(&mut self, order: ByteOrder, size: Size, dst: Reg) -> &mut Recipe {
        self.plain(Insn::Endian { order, size, dst })
    }

    fn load(&mut self, size: Size, dst: Reg, At(base, off): At) -> &mut Recipe {
        self.load_signed(size, false, dst, At(base, off))
    }

    fn load_signed(&mut self, size: Size, signed: bool, dst: Reg, at: At) -> &mut Recipe {
        self.plain(Insn::Load {
            size,
            signed,
            dst,
            base: at.0,
            off: at.1,
        })
    }

    fn store(&mut self, size: Size, At(base, off): At, src: impl Source) -> &mut Recipe {
        let src = src.operand();
        self.plain(Insn::Store {
            size,
            base,
            off,
            src,
        })
    }

    fn jump(
        &mut self,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: impl Source,
        to: Label,
    ) -> &mut Recipe {
        let src = src.operand();
        let insn = Insn::Jump {
            cond,
            width,
            dst,
            src,
            off: 0,
        };
        self.items.push(Item::Jump(insn, to));
        self
    }

    fn goto(&mut self, to: Label) -> &mut Recipe {
        self.items.push(Item::Jump(Insn::Goto { off: 0 }, to));
        self
    }

    fn place(&mut self, label: Label) -> &mut Recipe {
        self.items.push(Item::Place(label));
        self
    }

    fn done(&mut self) -> Option<Recipe> {
        Some(Recipe {
            items: std::mem::take(&mut self.items),
        })
    }
}

/// Bits of a width.
fn bits(width: Width) -> i32 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}
