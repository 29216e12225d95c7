//! Machine registers, operands in memory, condition codes.

use isa::ebpf::Cond;

/// A general-purpose register, numbered as in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, clippy::upper_case_acronyms)]
pub(crate) enum Gpr {
    RAX = 0,
    RCX = 1,
    RDX = 2,
    RBX = 3,
    RSP = 4,
    RBP = 5,
    RSI = 6,
    RDI = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

impl Gpr {
    /// All registers in ascending order.
    pub(super) const ALL: [Gpr; 16] = [
        Gpr::RAX,
        Gpr::RCX,
        Gpr::RDX,
        Gpr::RBX,
        Gpr::RSP,
        Gpr::RBP,
        Gpr::RSI,
        Gpr::RDI,
        Gpr::R8,
        Gpr::R9,
        Gpr::R10,
        Gpr::R11,
        Gpr::R12,
        Gpr::R13,
        Gpr::R14,
        Gpr::R15,
    ];
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    /// True if the low byte of the register needs a REX prefix (without one, the numbers
    /// encode `ah` to `bh`).
    pub(super) const fn byte_needs_rex(self) -> bool {
        self.number() >= 4 && self.number() < 8
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
            bits |= 1 << regs[index].number();
            index += 1;
        }
        GprSet(bits)
    }

    pub(crate) const fn contains(self, reg: Gpr) -> bool {
        self.0 & 1 << reg.number() != 0
    }

    pub(crate) fn insert(&mut self, reg: Gpr) {
        self.0 |= 1 << reg.number();
    }

    /// The registers of the set in ascending order.
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = Gpr> {
        Gpr::ALL.into_iter().filter(move |&reg| self.contains(reg))
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

    /// True if the address depends on the register.
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
    /// The code of a condition after `cmp` (for `Set`, after `test`).
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
