//! Linking of an operation with the next one (superinstructions).
//!
//! If the next operation in the array is of a certain kind, the handler of an operation is
//! replaced by one that performs both without a dispatch. The next operation stays in the
//! array with its operands, so jumps to it remain valid.

use isa::ebpf::{Cond, Size};

use super::branch::{If, IfPair};
use super::choose;
use super::operand::{Eq, Imm, Ne, R0, Stored, W32};
use super::packet::{Absolute, HeaderLength, Indirect, Load, ThenIf};
use super::pairs::{Half, pair};
use crate::Fusion;
use crate::op::{Operation, Step, step};

/// A condition of packet tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Equality {
    /// Equal.
    Eq,
    /// Different.
    Ne,
}

impl Equality {
    /// The condition, if it is one of packet tests.
    pub(crate) const fn of(cond: Cond) -> Option<Equality> {
        match cond {
            Cond::Eq => Some(Equality::Eq),
            Cond::Ne => Some(Equality::Ne),
            Cond::Set
            | Cond::Gt
            | Cond::Ge
            | Cond::Lt
            | Cond::Le
            | Cond::SGt
            | Cond::SGe
            | Cond::SLt
            | Cond::SLe => None,
        }
    }
}

/// The kind of an operation, as far as linking depends on it. Comparisons are of `w0` with
/// constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A packet load at a constant offset, and one comparison.
    LoadTest(Size, Equality),
    /// A packet load at a register other than `r0`, and one comparison.
    IndirectLoadTest(Size, Equality),
    /// One comparison.
    Test(Equality),
    /// Two comparisons.
    TestPair(Equality, Equality),
    /// A load of an IPv4 header length.
    HeaderLength,
    /// An operation that may be part of a pair.
    Half(Half),
    /// Anything else.
    Other,
}

impl Kind {
    /// True if such an operation may be linked with the next one.
    #[inline(always)]
    pub(crate) fn may_lead(self) -> bool {
        match self {
            Kind::LoadTest(..) | Kind::HeaderLength => true,
            Kind::Half(half) => half.may_lead(),
            Kind::IndirectLoadTest(..) | Kind::Test(_) | Kind::TestPair(..) | Kind::Other => false,
        }
    }
}

/// One comparison of `w0` with a constant.
type Test<C> = If<C, W32, R0, Imm>;
/// Two of them.
type TestPair<C1, C2> = IfPair<C1, C2, R0>;

/// As `choose!` for the two conditions that are linked.
macro_rules! choose_equality {
    ($value:expr, $name:ident, $body:expr) => {
        choose!($value, $name in [Equality::Eq => Eq, Equality::Ne => Ne], $body)
    };
}

/// The handler of a load at a constant offset with a comparison and `K`.
fn load_test<K: Operation>(size: Size, cond: Equality) -> Step {
    choose_equality!(
        cond,
        C,
        match size {
            Size::B => step::<Load<Absolute, 1, ThenIf<C, K>>> as Step,
            Size::H => step::<Load<Absolute, 2, ThenIf<C, K>>> as Step,
            Size::W | Size::DW => step::<Load<Absolute, 4, ThenIf<C, K>>> as Step,
        }
    )
}

/// A load of an IPv4 header length, followed by `K`.
type Length<K> = Load<Absolute, 1, HeaderLength<K>>;
/// A load of two bytes after the header, a port, with a comparison.
type PortTest<C> = Load<Indirect<Stored>, 2, ThenIf<C>>;
/// Two of them.
type PortTests<C, D> = Load<Indirect<Stored>, 2, ThenIf<C, PortTest<D>>>;

/// The handler that links the first of these operations with the following ones; `None` if
/// no fusion applies.
pub(crate) fn link(kinds: &[Kind]) -> Option<(Fusion, Step)> {
    Some(match *kinds {
        [Kind::LoadTest(size, first), Kind::Test(second), ..] => {
            let step = choose_equality!(second, C, load_test::<Test<C>>(size, first));
            (Fusion::PacketTests, step)
        }
        [
            Kind::LoadTest(size, first),
            Kind::TestPair(second, third),
            ..,
        ] => {
            let step = choose_equality!(
                second,
                C,
                choose_equality!(third, D, load_test::<TestPair<C, D>>(size, first))
            );
            (Fusion::PacketTests, step)
        }
        [
            Kind::HeaderLength,
            Kind::IndirectLoadTest(Size::H, first),
            Kind::IndirectLoadTest(Size::H, second),
            ..,
        ] => {
            let step = choose_equality!(
                first,
                C,
                choose_equality!(second, D, step::<Length<PortTests<C, D>>> as Step)
            );
            (Fusion::PortTests, step)
        }
        [
            Kind::HeaderLength,
            Kind::IndirectLoadTest(Size::H, cond),
            ..,
        ] => {
            let step = choose_equality!(cond, C, step::<Length<PortTest<C>>> as Step);
            (Fusion::PortTests, step)
        }
        [Kind::Half(first), Kind::Half(second), ..] => return pair(first, second),
        _ => return None,
    })
}
