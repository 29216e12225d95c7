//! The helpers that a checked run can call: a table that the caller fills.
//!
//! A helper gets `r1` to `r5` and the memory, which it reads and writes as the
//! program would: by model addresses, with every access checked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use spec::calls::{
    GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, KTIME_GET_BOOT_NS, KTIME_GET_COARSE_NS, KTIME_GET_NS,
};
use spec::{Clock, Random};

use super::memory::{BadAccess, Memory};

/// Why a helper could not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// An argument led it to memory that it may not touch.
    Memory(BadAccess),
    /// Anything else, in words.
    Refused(Cow<'static, str>),
}

impl From<BadAccess> for CallFault {
    fn from(access: BadAccess) -> CallFault {
        CallFault::Memory(access)
    }
}

type Helper<'c> = dyn FnMut([u64; 5], &mut Memory<'_>) -> Result<u64, CallFault> + 'c;

/// Helpers by number.
#[derive(Default)]
pub struct Calls<'c>(BTreeMap<i32, Box<Helper<'c>>>);

impl<'c> Calls<'c> {
    /// No helpers.
    pub fn none() -> Calls<'c> {
        Calls::default()
    }

    /// Those that need nothing but a source of random numbers and a clock:
    /// `get_prandom_u32`, `get_smp_processor_id` (0), `ktime_get_ns`,
    /// `ktime_get_boot_ns`, `ktime_get_coarse_ns`.
    pub fn basic(mut random: impl Random + 'c, clock: impl Clock + Clone + 'c) -> Calls<'c> {
        let mut calls = Calls::none();
        calls.define(GET_PRANDOM_U32, move |_, _| Ok(random.next_u32().into()));
        calls.define(GET_SMP_PROCESSOR_ID, |_, _| Ok(0));
        for number in [KTIME_GET_NS, KTIME_GET_BOOT_NS, KTIME_GET_COARSE_NS] {
            let mut clock = clock.clone();
            calls.define(number, move |_, _| Ok(clock.nanoseconds()));
        }
        calls
    }

    /// Puts a helper into the table, in the place of the one with this number
    /// if there is one.
    pub fn define(
        &mut self,
        number: i32,
        helper: impl FnMut([u64; 5], &mut Memory<'_>) -> Result<u64, CallFault> + 'c,
    ) {
        self.0.insert(number, Box::new(helper));
    }

    /// Whether there is a helper with this number.
    pub fn has(&self, number: i32) -> bool {
        self.0.contains_key(&number)
    }

    /// Calls one; `None` if there is none.
    pub(super) fn call(
        &mut self,
        number: i32,
        arguments: [u64; 5],
        memory: &mut Memory<'_>,
    ) -> Option<Result<u64, CallFault>> {
        let helper = self.0.get_mut(&number)?;
        Some(helper(arguments, memory))
    }
}
