//! The optimizations of the compiler: their names, sets of them, and counts of how
//! often each was applied.
//!
//! Every optimization is optional: code that is generated without it computes the
//! same. Tests compile programs with each one left out in turn; `cargo xtask
//! optimizations` counts what each one saves on programs of others
//! (docs/performance.md).

macro_rules! optimizations {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// An optimization that can be left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Optimization {
            $($(#[$doc])* $name,)*
        }

        impl Optimization {
            /// All optimizations.
            pub const ALL: &[Optimization] = &[$(Optimization::$name,)*];

            /// What it does, in a few words.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Optimization::$name => $text,)*
                }
            }
        }
    };
}

optimizations! {
    /// Instructions whose result is not live are left out.
    DeadCode = "dead code elimination";
    /// 64-bit operations whose upper half is not live are done on 32 bits.
    Narrowing = "64-bit operations on 32 bits";
    /// Zero-extensions and masks of bits that are known to be zero are left out.
    KnownBits = "redundant zero-extensions and masks";
    /// Two shifts and an `or` become one rotation.
    Rotation = "rotation";
    /// The length of an IPv4 header that a register holds already is not computed again.
    HeaderLength = "common IPv4 header length";
    /// A branch over a move becomes a conditional move.
    ConditionalMove = "conditional moves";
    /// 0 or 1 chosen by a condition becomes `setcc`.
    SetCondition = "setcc";
    /// Comparisons of one register with constants become a table or a binary search.
    ComparisonTree = "comparison trees";
    /// A comparison tree becomes a table.
    JumpTable = "jump tables";
    /// A sum that only serves as an address is folded into the accesses.
    AddressSum = "sums as addresses";
    /// A load is folded into the next operation.
    MemoryOperand = "memory operands";
    /// A load is folded into an operation that is a few instructions away.
    DeferredLoad = "deferred memory operands";
    /// A load and a comparison become a comparison with memory.
    MemoryComparison = "comparisons with memory";
    /// A load, an operation and a store become an operation in memory.
    MemoryUpdate = "operations in memory";
    /// A constant that is only stored becomes an immediate of the store.
    ConstantStore = "stores of constants";
    /// A copy and an operation on it become an instruction with three operands.
    ThreeOperands = "three-operand forms";
    /// A shift and an addition become a scaled index.
    ScaledIndex = "scaled indices";
    /// A shift to the left and one back become an extension.
    Extension = "shifts that extend";
    /// A multiplication by a small constant becomes `lea` or a shift.
    Multiplication = "multiplication by shift or lea";
    /// A comparison with 0 uses the flags of the operation before it.
    FlagReuse = "flags of the operation before";
    /// A branch over a jump becomes the inverted branch.
    BranchInversion = "branch inversion";
    /// Unsigned division of 32 bits by a constant becomes a multiplication.
    ReciprocalDivision = "unsigned 32-bit division by constants";
    /// The code of a packet filter is written twice, once without bounds checks.
    UncheckedVersion = "a version without bounds checks";
    /// Branches of a packet filter that lead to one place are merged.
    MergedBranches = "merged branches";
    /// The result of a packet filter is chosen without a branch.
    ConditionalReturn = "conditional returns";
    /// A packet load and a comparison become a comparison with memory.
    PacketComparison = "comparisons with the packet";
    /// A 16-bit field that is only compared is not byte-swapped.
    NetworkOrder = "comparisons in network order";
}

/// A set of optimizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimizations(u64);

const _: () = assert!(Optimization::ALL.len() <= 64);

impl Optimizations {
    /// All of them.
    pub const ALL: Optimizations = Optimizations(u64::MAX >> (64 - Optimization::ALL.len()));
    /// None: every instruction is translated as it stands.
    pub const NONE: Optimizations = Optimizations(0);

    /// This set without one of them.
    #[must_use]
    pub const fn without(self, optimization: Optimization) -> Optimizations {
        Optimizations(self.0 & !(1 << optimization as u8))
    }

    /// This set with one more.
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

/// How often each optimization was applied to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied([u32; Optimization::ALL.len()]);

impl Applied {
    pub(crate) const NONE: Applied = Applied([0; Optimization::ALL.len()]);

    /// How often the optimization was applied.
    pub const fn count(&self, optimization: Optimization) -> u32 {
        self.0[optimization as usize]
    }

    pub(crate) fn add(&mut self, optimization: Optimization) {
        self.0[optimization as usize] += 1;
    }
}
