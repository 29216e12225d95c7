//! Operations that know what follows them.
//!
//! Packet filters are loads and comparisons in a few fixed orders. Where the next
//! operation in the array is one of these, an operation need not look up what to
//! do there: its function is replaced by one that goes straight on. The next
//! operation stays as it is, with its operands, so jumps to it need no care.

use std::marker::PhantomData;

use isa::ebpf::{Cond, Size};
use vm::{Machine, Surroundings};

use super::branch::{jump, jump_pair};
use super::choose;
use super::operand::{Condition, Eq, Imm, Ne, R0, Stored, W32};
use super::packet::{Absolute, HeaderLength, Indirect, Jump, ThenLoad, packet};
use crate::op::{Dispatch, Flow, Next, Op, Step};

/// What an operation is, as far as linking cares. Conditions are `Eq` or `Ne`,
/// and comparisons are of `w0` with constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A packet load at a constant, and one comparison.
    LoadTest(Size, Cond),
    /// A packet load at a stored register, and one comparison.
    IndirectLoadTest(Size, Cond),
    /// One comparison.
    Test(Cond),
    /// Two comparisons.
    TestPair(Cond, Cond),
    /// A load of an IPv4 header's length.
    HeaderLength,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind for these conditions, if they are all `Eq` or `Ne`.
    pub(crate) fn with_conditions(self, conditions: &[Cond]) -> Kind {
        if conditions
            .iter()
            .all(|cond| matches!(cond, Cond::Eq | Cond::Ne))
        {
            self
        } else {
            Kind::Other
        }
    }
}

/// The next operation, known to be one comparison.
struct ThenTest<C>(PhantomData<C>);
/// The next operation, known to be two comparisons.
struct ThenPair<C1, C2>(PhantomData<(C1, C2)>);

impl<C: Condition> Next for ThenTest<C> {
    #[inline(always)]
    unsafe fn go_on(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        r0: u64,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        // SAFETY: passed on to the caller.
        unsafe { jump::<C, W32, R0, Imm>(op, m, data, len, r0, world) }
    }
}

impl<C1: Condition, C2: Condition> Next for ThenPair<C1, C2> {
    #[inline(always)]
    unsafe fn go_on(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        r0: u64,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        // SAFETY: passed on to the caller.
        unsafe { jump_pair::<C1, C2, R0>(op, m, data, len, r0, world) }
    }
}

/// As `choose!` for the two conditions that are linked.
macro_rules! choose_equality {
    ($value:expr, $name:ident, $body:expr) => {
        choose!($value, $name in [Cond::Eq => Eq, _ => Ne], $body)
    };
}

/// The function for a load at a constant with a comparison and what follows.
fn load_test<K: Next>(size: Size, cond: Cond) -> Step {
    choose_equality!(
        cond,
        C,
        match size {
            Size::B => packet::<Absolute, 1, Jump<C, K>> as Step,
            Size::H => packet::<Absolute, 2, Jump<C, K>> as Step,
            Size::W | Size::DW => packet::<Absolute, 4, Jump<C, K>> as Step,
        }
    )
}

/// A load of two bytes behind the header: a port.
type PortTest<C, K> = ThenLoad<Indirect<Stored>, 2, Jump<C, K>>;

/// The function for the first of these operations, given what follows it; `None`
/// where the one it has is right.
pub(crate) fn link(kinds: &[Kind]) -> Option<Step> {
    Some(match *kinds {
        [Kind::LoadTest(size, first), Kind::Test(second), ..] => {
            choose_equality!(second, C, load_test::<ThenTest<C>>(size, first))
        }
        [
            Kind::LoadTest(size, first),
            Kind::TestPair(second, third),
            ..,
        ] => {
            choose_equality!(
                second,
                C,
                choose_equality!(third, D, load_test::<ThenPair<C, D>>(size, first))
            )
        }
        [
            Kind::HeaderLength,
            Kind::IndirectLoadTest(Size::H, first),
            Kind::IndirectLoadTest(Size::H, second),
            ..,
        ] => choose_equality!(
            first,
            C,
            choose_equality!(
                second,
                D,
                packet::<Absolute, 1, HeaderLength<PortTest<C, PortTest<D, Dispatch>>>> as Step
            )
        ),
        [
            Kind::HeaderLength,
            Kind::IndirectLoadTest(Size::H, cond),
            ..,
        ] => {
            choose_equality!(
                cond,
                C,
                packet::<Absolute, 1, HeaderLength<PortTest<C, Dispatch>>> as Step
            )
        }
        _ => return None,
    })
}
