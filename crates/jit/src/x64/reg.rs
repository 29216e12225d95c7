//! Machine registers, operands in memory, condition codes.

use isa::ebpf::Cond;

/// A general-purpose register by its number in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gpr(pub(crate) u8);

#[allow(missing_docs)]
impl Gpr {
    pub(crate) const RAX: Gpr = Gpr(0);
    pub(crate) const RCX: Gpr = Gpr(1);
    pub(crate) const RDX: Gpr = Gpr(2);
    pub(crate) const RBX: Gpr = Gpr(3);
    pub(crate) const RSP: Gpr = Gpr(4);
    pub(crate) const RBP: Gpr = Gpr(5);
    pub(crate) const RSI: Gpr = Gpr(6);
    pub(crate) const RDI: Gpr = Gpr(7);
    pub(crate) const R8: Gpr = Gpr(8);
    pub(crate) const R9: Gpr = Gpr(9);
    pub(crate) const R10: Gpr = Gpr(10);
    pub(crate) const R11: Gpr = Gpr(11);
    pub(crate) const R12: Gpr = Gpr(12);
    pub(crate) const R13: Gpr = Gpr(13);
    pub(crate) const R14: Gpr = Gpr(14);
    pub(crate) const R15: Gpr = Gpr(15);

    /// Whether the register's low byte can only be named with a REX prefix
    /// (without one, the numbers stand for `ah` to `bh`).
    pub(super) const fn byte_needs_rex(self) -> bool {
        self.0 >= 4 && self.0 < 8
    }
}

/// A set of machine registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct GprSet(u16);

impl GprSet {
    pub(crate) const fn of(regs: &[Gpr]) -> GprSet {
        let mut bits = 0;
        let mut index = 0;
        while index < regs.len() {
            bits |= 1 << regs[index].0;
            index += 1;
        }
        GprSet(bits)
    }

    pub(crate) const fn contains(self, reg: Gpr) -> bool {
        self.0 & 1 << reg.0 != 0
    }

    pub(crate) fn insert(&mut self, reg: Gpr) {
        self.0 |= 1 << reg.0;
    }

    /// In ascending order of number.
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = Gpr> {
        (0..16).map(Gpr).filter(move |&reg| self.contains(reg))
    }
}

/// `[base + index * scale + disp]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mem {
    pub(crate) base: Gpr,
    /// A register (not `rsp`) and the logarithm of its factor, 0 to 3.
    pub(crate) index: Option<(Gpr, u8)>,
    pub(crate) disp: i32,
}

impl Mem {
    /// `[base + disp]`.
    pub(crate) const fn at(base: Gpr, disp: i32) -> Mem {
        Mem {
            base,
            index: None,
            disp,
        }
    }

    /// `[base + index + disp]`.
    pub(crate) const fn indexed(base: Gpr, index: Gpr, disp: i32) -> Mem {
        Mem {
            base,
            index: Some((index, 0)),
            disp,
        }
    }

    /// Whether the address changes when the register does.
    pub(crate) fn uses(self, reg: Gpr) -> bool {
        self.base == reg || self.index.is_some_and(|(index, _)| index == reg)
    }
}

/// A condition code, as the low nibble of the opcodes that take one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(crate) enum Cc {
    B = 2,
    Ae = 3,
    E = 4,
    Ne = 5,
    Be = 6,
    A = 7,
    S = 8,
    Ns = 9,
    L = 12,
    Ge = 13,
    Le = 14,
    G = 15,
}

impl Cc {
    /// The code under which the condition holds, after a comparison (for `Set`,
    /// after a test).
    pub(crate) const fn of(cond: Cond) -> Cc {
        match cond {
            Cond::Eq => Cc::E,
            Cond::Ne | Cond::Set => Cc::Ne,
            Cond::Gt => Cc::A,
            Cond::Ge => Cc::Ae,
            Cond::Lt => Cc::B,
            Cond::Le => Cc::Be,
            Cond::SGt => Cc::G,
            Cond::SGe => Cc::Ge,
            Cond::SLt => Cc::L,
            Cond::SLe => Cc::Le,
        }
    }

    /// The opposite code.
    pub(crate) const fn not(self) -> Cc {
        match self {
            Cc::B => Cc::Ae,
            Cc::Ae => Cc::B,
            Cc::E => Cc::Ne,
            Cc::Ne => Cc::E,
            Cc::Be => Cc::A,
            Cc::A => Cc::Be,
            Cc::S => Cc::Ns,
            Cc::Ns => Cc::S,
            Cc::L => Cc::Ge,
            Cc::Ge => Cc::L,
            Cc::Le => Cc::G,
            Cc::G => Cc::Le,
        }
    }
}
