//! Bit operations: kernel functions beyond those of Linux, which native code has as
//! instructions.
//!
//! A kernel has them if [`Kernel::with_bit_operations`] gave it the module [`MODULE`], whose
//! BTF has their prototypes. Programs declare them as kfuncs ([`header`]); where a kernel
//! lacks them, a weak declaration resolves to none, as that of any other kfunc.

use std::fmt::Write as _;
use std::sync::Arc;

use btf::{Btf, Encoding, Func, Int, Kind, Linkage, Param, TypeId};

use crate::Kernel;
use crate::calls;
use crate::kernel::{KernelField, Module};
use crate::registry::{Kfunc, KfuncFlags, ProgramTypes};

/// Name of the module whose BTF has the prototypes.
pub const MODULE: &str = "beebox";

/// Name of the header that declares them.
pub const HEADER: &str = "bpf_bits.h";

/// An operation on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BitOp {
    Ffs,
    Ctz,
    Clz,
    Fls,
    Popcnt,
    Bitrev,
    Rol,
    Ror,
}

impl BitOp {
    /// Every operation.
    pub const ALL: [BitOp; 8] = [
        BitOp::Ffs,
        BitOp::Ctz,
        BitOp::Clz,
        BitOp::Fls,
        BitOp::Popcnt,
        BitOp::Bitrev,
        BitOp::Rol,
        BitOp::Ror,
    ];

    /// Name of the kfunc.
    pub const fn name(self) -> &'static str {
        match self {
            BitOp::Ffs => "bpf_ffs64",
            BitOp::Ctz => "bpf_ctz64",
            BitOp::Clz => "bpf_clz64",
            BitOp::Fls => "bpf_fls64",
            BitOp::Popcnt => "bpf_popcnt64",
            BitOp::Bitrev => "bpf_bitrev64",
            BitOp::Rol => "bpf_rol64",
            BitOp::Ror => "bpf_ror64",
        }
    }

    /// Its result, in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            BitOp::Ffs => "index of the lowest set bit, counted from 0; 64 if none is set",
            BitOp::Ctz => "number of zero bits below the lowest set bit; 64 if none is set",
            BitOp::Clz => "number of zero bits above the highest set bit; 64 if none is set",
            BitOp::Fls => "index of the highest set bit, counted from 1; 0 if none is set",
            BitOp::Popcnt => "number of set bits",
            BitOp::Bitrev => "the bits in reverse order",
            BitOp::Rol => "the value rotated left by the low six bits of the count",
            BitOp::Ror => "the value rotated right by the low six bits of the count",
        }
    }

    /// The prototype in C, without the attributes of the declaration.
    pub fn prototype(self) -> String {
        let result = match self.most() {
            Some(_) => "unsigned int",
            None => "unsigned long long",
        };
        let count = match self.is_rotation() {
            true => ", unsigned int count",
            false => "",
        };
        format!("{result} {}(unsigned long long value{count})", self.name())
    }

    /// Its signature ([`kfunc_signature`](crate::registry::kfunc_signature)).
    pub const fn signature(self) -> &'static str {
        match self {
            BitOp::Ffs | BitOp::Ctz | BitOp::Clz | BitOp::Fls | BitOp::Popcnt => "int:8 -> int:4",
            BitOp::Bitrev => "int:8 -> int:8",
            BitOp::Rol | BitOp::Ror => "int:8 int:4 -> int:8",
        }
    }

    /// True for those with a count as second argument.
    pub const fn is_rotation(self) -> bool {
        matches!(self, BitOp::Rol | BitOp::Ror)
    }

    /// Largest result; `None` for any of 64 bits.
    pub const fn most(self) -> Option<u64> {
        match self {
            BitOp::Ffs | BitOp::Ctz | BitOp::Clz | BitOp::Fls | BitOp::Popcnt => Some(64),
            BitOp::Bitrev | BitOp::Rol | BitOp::Ror => None,
        }
    }

    /// The result.
    pub const fn eval(self, value: u64, count: u64) -> u64 {
        match self {
            BitOp::Ffs | BitOp::Ctz => value.trailing_zeros() as u64,
            BitOp::Clz => value.leading_zeros() as u64,
            BitOp::Fls => 64 - value.leading_zeros() as u64,
            BitOp::Popcnt => value.count_ones() as u64,
            BitOp::Bitrev => value.reverse_bits(),
            BitOp::Rol => value.rotate_left(count as u32 & 63),
            BitOp::Ror => value.rotate_right(count as u32 & 63),
        }
    }

    /// Helper number that a call has in resolved code; no program can name it.
    pub const fn number(self) -> i32 {
        calls::FIRST_BIT_OPERATION + self as i32
    }

    /// The operation with a number of resolved code.
    pub const fn from_number(number: i32) -> Option<BitOp> {
        match number.wrapping_sub(calls::FIRST_BIT_OPERATION) {
            index @ 0..8 => Some(BitOp::ALL[index as usize]),
            _ => None,
        }
    }

    /// The operation that a function of a module is, by its BTF id.
    pub fn from_func(module: &Module, id: i32) -> Option<BitOp> {
        if module.name != MODULE {
            return None;
        }
        let func = module.btf.get(TypeId(id as u32))?;
        let is_func = func.kind() == Kind::Func;
        let found = BitOp::ALL.into_iter().find(|op| func.name() == *op.name());
        found.filter(|_| is_func)
    }
}

/// The C header with the declarations; it needs no other.
pub fn header() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n\
         /*\n \
         * Bit operations of Beebox as kernel functions; `beebox kfuncs --header` writes this file.\n \
         *\n \
         * They are weak: where a kernel lacks them, bpf_ksym_exists(bpf_ffs64) is 0, and the\n \
         * verifier removes the calls behind it as dead code.\n \
         */\n\
         #ifndef BPF_BITS_H\n\
         #define BPF_BITS_H\n\
         \n\
         #ifndef __ksym\n\
         #define __ksym __attribute__((section(\".ksyms\")))\n\
         #endif\n\
         #ifndef __weak\n\
         #define __weak __attribute__((weak))\n\
         #endif\n\
         #ifndef bpf_ksym_exists\n\
         #define bpf_ksym_exists(symbol) (!!symbol)\n\
         #endif\n",
    );
    for op in BitOp::ALL {
        let _ = write!(
            text,
            "\n/* {} */\nextern {} __weak __ksym;\n",
            op.summary(),
            op.prototype()
        );
    }
    text.push_str("\n#endif\n");
    text
}

impl Kernel {
    /// Adds the bit operations as functions of a module behind the others, once. A kernel
    /// without BTF gets none.
    #[must_use]
    pub fn with_bit_operations(self) -> Kernel {
        let Some(base) = self.btf().cloned() else {
            return self;
        };
        if self.modules().iter().any(|module| module.name == MODULE) {
            return self;
        }
        let (blob, ids) = blob(&base);
        let Ok(btf) = Btf::parse_module(blob, base) else {
            return self;
        };
        let kfuncs = BitOp::ALL.into_iter().zip(ids).map(|(op, id)| Kfunc {
            name: op.name().into(),
            btf_id: id.0,
            special: None,
            flags: KfuncFlags::default(),
            program_types: ProgramTypes(u64::MAX),
            exceptions: Vec::new(),
        });
        let mut modules = self.modules().to_vec();
        modules.push(Module {
            name: MODULE.to_owned(),
            btf: Arc::new(btf),
            kfuncs: Some(kfuncs.collect()),
        });
        let source = self.source(KernelField::Modules).clone();
        self.with_modules(modules, source)
    }
}

/// BTF of the module, prototypes over types of its own, and the ids of the functions.
fn blob(base: &Btf<'_>) -> (Vec<u8>, Vec<TypeId>) {
    let mut builder = btf::Builder::module_of(base);
    let mut int = |name: &str, size: u32| {
        let name = builder.string(name);
        builder.int(
            name,
            Int {
                size,
                encoding: Encoding::default(),
                offset: 0,
                bits: 8 * size,
            },
        )
    };
    let (long, word) = (int("unsigned long long", 8), int("unsigned int", 4));
    let mut ids = Vec::new();
    for op in BitOp::ALL {
        let value = builder.string("value");
        let count = builder.string("count");
        let params = [
            Param {
                name: value,
                ty: long,
            },
            Param {
                name: count,
                ty: word,
            },
        ];
        let returns = match op.most() {
            Some(_) => word,
            None => long,
        };
        let taken = 1 + usize::from(op.is_rotation());
        let proto = builder.proto(returns, &params[..taken]);
        let name = builder.string(op.name());
        let func = Func {
            proto,
            linkage: Linkage::STATIC,
        };
        ids.push(builder.func(name, func));
    }
    (builder.finish(), ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_operations() {
        for op in BitOp::ALL {
            assert_eq!(BitOp::from_number(op.number()), Some(op));
        }
        assert_eq!(BitOp::from_number(1), None);
    }

    #[test]
    fn zero_has_no_set_bit() {
        let of_zero = BitOp::ALL.map(|op| op.eval(0, 7));
        assert_eq!(of_zero, [64, 64, 64, 0, 0, 0, 0, 0]);
        assert_eq!(BitOp::Ffs.eval(1 << 63, 0), 63);
        assert_eq!(BitOp::Fls.eval(1 << 63, 0), 64);
        assert_eq!(BitOp::Rol.eval(1 << 63, 65), 1);
        assert_eq!(BitOp::Ror.eval(1, 65), 1 << 63);
    }
}
