//! The optimizations of the compiler: names, sets, and counts of their applications.
//!
//! Every optimization is optional: code generated without it computes the same. Tests
//! compile programs with each one disabled in turn; `cargo xtask optimizations` counts what
//! each saves on third-party programs (docs/performance.md).

macro_rules! optimizations {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// An optimization, which can be disabled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Optimization {
            $($(#[$doc])* $name,)*
        }

        impl Optimization {
            /// All optimizations.
            pub const ALL: &[Optimization] = &[$(Optimization::$name,)*];

            /// Short description.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Optimization::$name => $text,)*
                }
            }
        }
    };
}

optimizations! {
    /// Instructions whose result is dead are removed.
    DeadCode = "dead code elimination";
    /// 64-bit operations whose upper half is not live are done on 32 bits.
    Narrowing = "64-bit operations on 32 bits";
    /// Zero-extensions and masks of bits that are known to be zero are removed.
    KnownBits = "redundant zero-extensions and masks";
    /// Two shifts and an `or` become one rotation.
    Rotation = "rotation";
    /// A branch over a move becomes a conditional move.
    ConditionalMove = "conditional moves";
    /// A selection between 0 and 1 becomes `setcc`.
    SetCondition = "setcc";
    /// Comparisons of one register with constants become a table or a binary search.
    ComparisonTree = "comparison trees";
    /// A comparison tree becomes a table.
    JumpTable = "jump tables";
    /// A sum that is only used as an address is folded into the accesses.
    AddressSum = "sums as addresses";
    /// A load is folded into the next operation.
    MemoryOperand = "memory operands";
    /// A load and a comparison become a comparison with memory.
    MemoryComparison = "comparisons with memory";
    /// A load, an operation and a store become an operation in memory.
    MemoryUpdate = "operations in memory";
    /// A constant that is only stored becomes the immediate of the store.
    ConstantStore = "stores of constants";
    /// A copy and an operation on it become an instruction with a separate destination.
    ThreeOperands = "three-operand forms";
    /// A left shift and a right shift by the same constant become an extension.
    Extension = "shifts that extend";
    /// A comparison with 0 uses the flags of the operation before it.
    FlagReuse = "flags of the operation before";
    /// A branch over a jump becomes an inverted branch.
    BranchInversion = "branch inversion";
    /// A packet load and a comparison become a comparison with memory.
    PacketComparison = "comparisons with the packet";
}

/// A set of optimizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimizations(u64);

const _: () = assert!(Optimization::ALL.len() <= 64);

impl Optimizations {
    /// All optimizations.
    pub const ALL: Optimizations = Optimizations(u64::MAX >> (64 - Optimization::ALL.len()));
    /// The empty set: every instruction is translated by itself.
    pub const NONE: Optimizations = Optimizations(0);

    /// The set without an optimization.
    #[must_use]
    pub const fn without(self, optimization: Optimization) -> Optimizations {
        Optimizations(self.0 & !(1 << optimization as u8))
    }

    /// The set with an optimization added.
    #[must_use]
    pub const fn with(self, optimization: Optimization) -> Optimizations {
        Optimizations(self.0 | 1 << optimization as u8)
    }

    /// True if the optimization is in the set.
    pub const fn contains(self, optimization: Optimization) -> bool {
        self.0 & 1 << optimization as u8 != 0
    }
}

impl Default for Optimizations {
    fn default() -> Optimizations {
        Optimizations::ALL
    }
}

/// Number of times that each optimization was applied to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied([u32; Optimization::ALL.len()]);

impl Applied {
    pub(crate) const NONE: Applied = Applied([0; Optimization::ALL.len()]);

    /// Number of times that the optimization was applied.
    pub const fn count(&self, optimization: Optimization) -> u32 {
        self.0[optimization as usize]
    }

    pub(crate) fn add(&mut self, optimization: Optimization) {
        self.0[optimization as usize] += 1;
    }
}
