//! The fusions of the interpreter: names, sets, and counts of their applications.
//!
//! A fusion compiles several instructions to one operation (superinstruction), or links an
//! operation with the next one without a dispatch. Every fusion is optional. `cargo xtask
//! optimizations` counts the dispatches that each saves (docs/performance.md).

macro_rules! fusions {
    ($($(#[$doc:meta])* $name:ident = $saved:literal $text:literal;)*) => {
        /// A fusion, which can be disabled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Fusion {
            $($(#[$doc])* $name,)*
        }

        impl Fusion {
            /// All fusions.
            pub const ALL: &[Fusion] = &[$(Fusion::$name,)*];

            /// Short description.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Fusion::$name => $text,)*
                }
            }

            /// Number of dispatches that it saves per execution.
            pub const fn saved(self) -> u32 {
                match self {
                    $(Fusion::$name => $saved,)*
                }
            }
        }
    };
}

fusions! {
    /// `w0 = imm; exit`.
    ConstantReturn = 1 "constant and exit";
    /// A copy and an operation on it.
    ThreeOperands = 1 "copy and operation";
    /// A branch over a jump.
    BranchInversion = 1 "branch over a jump";
    /// A chain of comparisons of one register as a table.
    Table = 3 "chain of comparisons";
    /// Two comparisons of one register with constants.
    TestPair = 1 "two comparisons of one register";
    /// A packet load and a comparison of its value.
    PacketTest = 1 "packet load and comparison";
    /// A packet load and the computation of the IPv4 header length.
    HeaderLength = 3 "IPv4 header length";
    /// A packet load with a comparison, and one or two more comparisons.
    PacketTests = 1 "packet load and several comparisons";
    /// The length of an IPv4 header, and one or two loads after the header with
    /// comparisons.
    PortTests = 1 "IPv4 header length and ports";
    /// A constant in `r0`, and a branch.
    ResultAndBranch = 1 "constant in r0 and branch";
    /// Two moves.
    MovePair = 1 "two moves";
    /// An operation, and one that uses its result as second operand.
    OperationOnResult = 1 "operation on a result";
    /// Two operations on one register.
    RepeatedOperation = 1 "two operations on one register";
    /// A sum and a load through it.
    AddressAndLoad = 1 "sum and load";
    /// An operation and a branch on its result.
    OperationAndBranch = 1 "operation and branch";
    /// A load and an operation on its value.
    LoadAndOperation = 1 "load and operation";
    /// A load and a branch on its value.
    LoadAndBranch = 1 "load and branch";
}

/// A set of fusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fusions(u32);

const _: () = assert!(Fusion::ALL.len() <= 32);

impl Fusions {
    /// All fusions.
    pub const ALL: Fusions = Fusions(u32::MAX >> (32 - Fusion::ALL.len()));
    /// The empty set: every instruction is an operation of its own.
    pub const NONE: Fusions = Fusions(0);

    /// The set without a fusion.
    #[must_use]
    pub const fn without(self, fusion: Fusion) -> Fusions {
        Fusions(self.0 & !(1 << fusion as u8))
    }

    /// True if the fusion is in the set.
    pub const fn contains(self, fusion: Fusion) -> bool {
        self.0 & 1 << fusion as u8 != 0
    }
}

impl Default for Fusions {
    fn default() -> Fusions {
        Fusions::ALL
    }
}

/// Number of times that each fusion was applied to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied([u32; Fusion::ALL.len()]);

impl Applied {
    pub(crate) const NONE: Applied = Applied([0; Fusion::ALL.len()]);

    /// Number of times that the fusion was applied.
    pub const fn count(&self, fusion: Fusion) -> u32 {
        self.0[fusion as usize]
    }

    pub(crate) fn add(&mut self, fusion: Fusion) {
        self.0[fusion as usize] += 1;
    }
}
