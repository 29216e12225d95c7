//! Entries of native code, by what the code takes and by the kind of program.

use lower::{
    ContextKind, ContextProgram, EntryFunction, EntrySizes, FilterContext, Kind, MemoryProgram,
    PacketFilter, PacketProgram, SyscallFilter,
};
use vm::{Deadline, Outcome, RunContext};

use super::context::{NativeContext, fuel};

/// Code that uses no native context: it takes `r1`, `r2`, address and length of the packet,
/// and returns `r0`.
pub(super) type Alone = unsafe extern "C" fn(u64, u64, *const u8, usize) -> u64;

/// Code that uses a native context: it takes what [`Alone`] takes, and the context.
pub(super) type WithContext =
    unsafe extern "C" fn(u64, u64, *const u8, usize, *mut NativeContext) -> u64;

/// The entry of code, with the arguments that the generator made it for.
#[derive(Clone, Copy)]
pub enum Entry {
    /// Without a native context.
    Alone(Alone),
    /// With a native context.
    WithContext(WithContext),
}

/// Budget of backward jumps and deadline of a run.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) budget: u64,
    pub(super) deadline: Option<Deadline>,
}

impl Limits {
    /// No budget: the program is known to end, or a deadline ends it.
    pub(super) fn until(deadline: Option<Deadline>) -> Limits {
        Limits {
            budget: u64::MAX,
            deadline,
        }
    }
}

impl Entry {
    /// Runs the code; the run context is made if the code uses it.
    ///
    /// # Safety
    /// `r1`, `r2` and the packet's bytes are as the program's evidence requires, and the code
    /// is kept.
    #[inline]
    pub(super) unsafe fn run<'r>(
        self,
        [r1, r2]: [u64; 2],
        data: &[u8],
        cx: impl FnOnce() -> RunContext<'r>,
        limits: Limits,
    ) -> Outcome {
        match self {
            Entry::Alone(entry) => {
                // SAFETY: the code was compiled from a lowered program, whose evidence covers
                // its accesses; the rest is upheld by the caller.
                Outcome::Returned(unsafe { entry(r1, r2, data.as_ptr(), data.len()) })
            }
            Entry::WithContext(entry) => {
                let mut cx = cx();
                // SAFETY: passed on to the caller.
                unsafe { run_with_context(entry, [r1, r2], data, &mut cx, limits) }
            }
        }
    }

    /// As [`Entry::run`], in a run context that the caller reads afterwards.
    ///
    /// # Safety
    /// As for [`Entry::run`].
    #[inline]
    pub(super) unsafe fn run_in(self, r1: u64, cx: &mut RunContext<'_>, limits: Limits) -> Outcome {
        match self {
            // SAFETY: as in `run`.
            Entry::Alone(entry) => Outcome::Returned(unsafe { entry(r1, 0, [].as_ptr(), 0) }),
            // SAFETY: passed on to the caller.
            Entry::WithContext(entry) => unsafe {
                run_with_context(entry, [r1, 0], &[], cx, limits)
            },
        }
    }
}

/// Runs code that uses the native context.
///
/// # Safety
/// As for [`Entry::run`].
unsafe fn run_with_context(
    entry: WithContext,
    [r1, r2]: [u64; 2],
    data: &[u8],
    cx: &mut RunContext<'_>,
    limits: Limits,
) -> Outcome {
    let processor = cx.cpu();
    let run_context: *mut RunContext<'_> = cx;
    let mut context = NativeContext {
        run_context: run_context.cast(),
        data: data.as_ptr(),
        len: data.len(),
        budget: i64::try_from(limits.budget).unwrap_or(i64::MAX),
        fuel: fuel(limits.deadline),
        stack: 0,
        processor,
        tail_calls: 0,
        deadline: limits.deadline,
    };
    // SAFETY: the code was compiled from a lowered program, whose evidence covers its
    // accesses; the native context outlives the call; the rest is upheld by the caller.
    let r0 = unsafe { entry(r1, r2, data.as_ptr(), data.len(), &raw mut context) };
    if context.budget < 0 {
        Outcome::BudgetExhausted
    } else if context.fuel < 0 {
        Outcome::DeadlinePassed
    } else {
        Outcome::Returned(r0)
    }
}

/// Kinds of programs that native code is entered as: all of them.
pub trait EntryAbi: Kind {
    /// Entry function of programs.
    type Entry: Copy + Send + Sync;

    /// The entry of a program.
    fn entry(entry_info: Self::EntryInfo, entry: Entry) -> Self::Entry;
}

/// Entry point of a packet filter.
#[derive(Clone, Copy)]
pub enum FilterEntry {
    /// It uses the packet's bytes only: `r1` is not live at its entry.
    Bytes(Alone),
    /// With a context of which it reads the length at most.
    WithLength(Entry),
    /// With a context in which all fields are set.
    WithFields(Entry),
}

impl EntryAbi for PacketFilter {
    type Entry = FilterEntry;

    fn entry(context: FilterContext, entry: Entry) -> FilterEntry {
        match (context, entry) {
            (FilterContext::Nothing, Entry::Alone(entry)) => FilterEntry::Bytes(entry),
            (FilterContext::Nothing | FilterContext::Length, entry) => {
                FilterEntry::WithLength(entry)
            }
            (FilterContext::Fields, entry) => FilterEntry::WithFields(entry),
        }
    }
}

impl EntryAbi for SyscallFilter {
    type Entry = Entry;

    fn entry((): (), entry: Entry) -> Entry {
        entry
    }
}

impl EntryAbi for MemoryProgram {
    type Entry = Entry;

    fn entry((): (), entry: Entry) -> Entry {
        entry
    }
}

/// Entry point of a verified program.
#[derive(Clone, Copy)]
pub struct VerifiedEntry {
    pub(super) entry: Entry,
    /// Context kind that it was verified for.
    pub(super) context: ContextKind,
}

impl EntryAbi for PacketProgram {
    type Entry = VerifiedEntry;

    fn entry(context: ContextKind, entry: Entry) -> VerifiedEntry {
        VerifiedEntry { entry, context }
    }
}

impl EntryAbi for ContextProgram {
    type Entry = VerifiedEntry;

    fn entry(context: ContextKind, entry: Entry) -> VerifiedEntry {
        VerifiedEntry { entry, context }
    }
}

/// Entry point of a function of a verified program.
#[derive(Clone, Copy)]
pub struct FunctionEntry {
    pub(super) entry: Entry,
    /// Sizes of key and value.
    pub(super) sizes: EntrySizes,
}

impl EntryAbi for EntryFunction {
    type Entry = FunctionEntry;

    fn entry(sizes: EntrySizes, entry: Entry) -> FunctionEntry {
        FunctionEntry { entry, sizes }
    }
}
