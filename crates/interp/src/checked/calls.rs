//! The table of helpers that a checked run can call.
//!
//! A helper receives `r1` to `r5` and the memory, which it accesses as the program does: by
//! virtual addresses, with every access checked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use spec::calls::{
    GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, KTIME_GET_BOOT_NS, KTIME_GET_COARSE_NS, KTIME_GET_NS,
};
use spec::{Clock, Random};

use super::memory::{BadAccess, Memory};
use super::tail::TailTargets;

/// Errors of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// It made an invalid access.
    Memory(BadAccess),
    /// Another error, as text.
    Refused(Cow<'static, str>),
}

impl From<BadAccess> for CallFault {
    fn from(access: BadAccess) -> CallFault {
        CallFault::Memory(access)
    }
}

type Helper<'c> = dyn FnMut([u64; 5], &mut Memory<'_>) -> Result<u64, CallFault> + 'c;

type Resolver<'c> =
    dyn FnMut(i32, [u64; 5], &mut Memory<'_>) -> Option<Result<u64, CallFault>> + 'c;

/// Helpers by number.
#[derive(Default)]
pub struct Calls<'c> {
    table: BTreeMap<i32, Box<Helper<'c>>>,
    resolver: Option<Box<Resolver<'c>>>,
    pub(super) tail_targets: Option<Box<dyn TailTargets + 'c>>,
}

impl<'c> Calls<'c> {
    /// No helpers.
    pub fn none() -> Calls<'c> {
        Calls::default()
    }

    /// The helpers that only need a source of random numbers and a clock:
    /// `get_prandom_u32`, `get_smp_processor_id` (0), `ktime_get_ns`, `ktime_get_boot_ns`,
    /// `ktime_get_coarse_ns`.
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

    /// Helpers that are written for any engine, as [`vm::MemoryPort`] lets them be: the
    /// function calls the one of a number, and returns `None` if there is none.
    pub fn resolved(
        resolver: impl FnMut(i32, [u64; 5], &mut Memory<'_>) -> Option<Result<u64, CallFault>> + 'c,
    ) -> Calls<'c> {
        Calls {
            resolver: Some(Box::new(resolver)),
            ..Calls::none()
        }
    }

    /// Adds a helper, or replaces the one with this number.
    pub fn define(
        &mut self,
        number: i32,
        helper: impl FnMut([u64; 5], &mut Memory<'_>) -> Result<u64, CallFault> + 'c,
    ) {
        self.table.insert(number, Box::new(helper));
    }

    /// Lets programs make tail calls; without targets their helper is unknown.
    pub fn set_tail_targets(&mut self, targets: impl TailTargets + 'c) {
        self.tail_targets = Some(Box::new(targets));
    }

    /// True if there is a helper with this number.
    pub fn has(&self, number: i32) -> bool {
        self.table.contains_key(&number)
    }

    /// Calls a helper; `None` if there is none with this number.
    pub(super) fn call(
        &mut self,
        number: i32,
        arguments: [u64; 5],
        memory: &mut Memory<'_>,
    ) -> Option<Result<u64, CallFault>> {
        match self.table.get_mut(&number) {
            Some(helper) => Some(helper(arguments, memory)),
            None => self.resolver.as_mut()?(number, arguments, memory),
        }
    }
}
