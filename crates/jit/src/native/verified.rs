//! Runs of verified programs: on packets through their context, or on a context alone.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lower::{
    ContextKind, ContextProgram, EntryFunction, EntrySizes, PacketProgram, Verified,
    VerifiedProgram,
};
use vm::{
    CellSlice, Deadline, DirectContext, MapHandle, Outcome, PacketBuffer, RunContext, RunGuard,
    TailConvention, TailTarget,
};

use super::entry::{Entry, EntryAbi, FunctionEntry, Limits, VerifiedEntry};
use super::{CompileError, Native, NativeCode, NoSuchCpu, Options};
use crate::memory::Pool;

/// A verified program as native code, of either kind.
#[derive(Clone)]
pub enum VerifiedNative {
    /// It reaches a packet through its context.
    Packet(Arc<Native<PacketProgram>>),
    /// It has a context alone.
    Context(Arc<Native<ContextProgram>>),
}

impl VerifiedNative {
    /// As [`Native::compile`].
    ///
    /// # Errors
    /// As [`Native::compile`].
    pub fn compile(
        program: &VerifiedProgram,
        options: &Options,
        pool: &Pool,
    ) -> Result<VerifiedNative, CompileError> {
        Ok(match program {
            VerifiedProgram::Packet(program) => {
                VerifiedNative::Packet(Arc::new(Native::compile(program, options, pool)?))
            }
            VerifiedProgram::Context(program) => {
                VerifiedNative::Context(Arc::new(Native::compile(program, options, pool)?))
            }
        })
    }

    /// The kind of context that the program was verified for.
    pub fn context_kind(&self) -> ContextKind {
        match self {
            VerifiedNative::Packet(native) => native.context_kind(),
            VerifiedNative::Context(native) => native.context_kind(),
        }
    }

    /// As [`Native::tail_target`].
    pub fn tail_target(&self) -> Option<Arc<dyn TailTarget>> {
        match self {
            VerifiedNative::Packet(native) => native.tail_target(),
            VerifiedNative::Context(native) => native.tail_target(),
        }
    }
}

impl Deref for VerifiedNative {
    type Target = NativeCode;

    fn deref(&self) -> &NativeCode {
        match self {
            VerifiedNative::Packet(native) => native,
            VerifiedNative::Context(native) => native,
        }
    }
}

impl<K: Verified + EntryAbi<Entry = VerifiedEntry>> Native<K> {
    /// The kind of context that the program was verified for.
    pub fn context_kind(&self) -> ContextKind {
        self.entry.context
    }

    /// The program as a target of tail calls: what program arrays hold for native code.
    /// `None` if it calls functions of the host, which are those of the run's first program, or
    /// was compiled without [`Options::tail_target`].
    pub fn tail_target(self: &Arc<Self>) -> Option<Arc<dyn TailTarget>> {
        let is_target = self.code.is_tail_target && !self.code.references.has_host_functions();
        is_target.then(|| Arc::new(Target(self.clone())) as _)
    }

    /// Runs the program on its context.
    ///
    /// # Safety
    /// `r1` is the address of the context, which has a packet if the kind has.
    #[inline]
    unsafe fn run_bound<'r>(
        &'r self,
        r1: u64,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Outcome {
        // SAFETY: passed on to the caller.
        unsafe {
            self.code
                .run_verified(self.entry.entry, r1, guard, cx, deadline)
        }
    }

    /// Checks what a run requires.
    #[inline]
    fn check_run(
        &self,
        context: &DirectContext,
        cx: &RunContext<'_>,
        deadline: Option<Deadline>,
    ) -> Result<(), NoSuchCpu> {
        assert!(
            self.entry.context == context.kind(),
            "the context is for other programs"
        );
        self.code.check_host(cx, deadline)
    }
}

impl NativeCode {
    /// Runs verified code on a context that was bound to its packet, if it has one.
    ///
    /// # Safety
    /// The entry is that of the code. The program was verified for the kind of context of which
    /// `r1` is the address; it has a packet if the kind has.
    #[inline]
    unsafe fn run_verified<'r>(
        &'r self,
        entry: Entry,
        r1: u64,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Outcome {
        // SAFETY: the verifier proved that the program accesses its context, laid out as
        // lowering assumes, the packet, its stack, and values of its maps, which the guard
        // and the handles keep.
        unsafe {
            self.references.run(r1, guard, cx, |cx| {
                entry.run_in(r1, cx, Limits::until(deadline))
            })
        }
    }

    /// Checks what a run requires of the host.
    #[inline]
    fn check_host(&self, cx: &RunContext<'_>, deadline: Option<Deadline>) -> Result<(), NoSuchCpu> {
        self.assert_checks(deadline);
        self.references.check_cpu(cx)
    }
}

impl Native<PacketProgram> {
    /// The program's `r0`. Packet and context are left as the program leaves them; `guard`
    /// keeps the values of maps that it looks up.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the program has ended. If the context is of another
    /// kind than [`context_kind`](Native::context_kind).
    #[inline]
    pub fn run<'r>(
        &'r self,
        packet: &mut PacketBuffer,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
    ) -> Result<u64, NoSuchCpu> {
        Ok(match self.run_until(packet, context, guard, cx, None)? {
            Outcome::Returned(r0) => r0,
            // There is neither a budget nor a deadline.
            Outcome::BudgetExhausted | Outcome::DeadlinePassed => 0,
        })
    }

    /// As [`run`](Native::run), until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with packet, context and maps as the program left them.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// As [`run`](Native::run); and if there is a deadline and the program was compiled without
    /// [`Options::deadline`].
    // So that the run context is made where the machine reads it, and not copied.
    #[inline(always)]
    pub fn run_until<'r>(
        &'r self,
        packet: &mut PacketBuffer,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        self.check_run(context, &cx, deadline)?;
        let r1 = context.bind(Some(packet));
        // SAFETY: the kinds were compared, and the context has the packet, which is borrowed.
        Ok(unsafe { self.run_bound(r1, guard, cx, deadline) })
    }
}

impl Native<ContextProgram> {
    /// Returns the result of a run, and whether a deadline ended it: with context and maps as the
    /// program left them.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the program has ended. If the context is of another
    /// kind than [`context_kind`](Native::context_kind); if there is a deadline and the program
    /// was compiled without [`Options::deadline`].
    // So that the run context is made where the machine reads it, and not copied.
    #[inline(always)]
    pub fn run_until<'r>(
        &'r self,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        self.check_run(context, &cx, deadline)?;
        let r1 = context.bind(None);
        // SAFETY: the kinds were compared, and the kind has no packet.
        Ok(unsafe { self.run_bound(r1, guard, cx, deadline) })
    }
}

impl Native<EntryFunction> {
    /// Calls the function with a map and one of its entries, key and value, which the guard
    /// keeps.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the function has returned. If there is a deadline and
    /// the program was compiled without [`Options::deadline`]; if key and value have other sizes
    /// than those of the maps that the function was verified for.
    pub fn run_until<'r>(
        &'r self,
        map: &MapHandle,
        [key, value]: [CellSlice<'r>; 2],
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        let FunctionEntry { entry, sizes } = self.entry;
        let EntrySizes { key: k, value: v } = sizes;
        let (object, given) = (map, [key.len(), value.len()]);
        assert!(
            given == [k, v] && [object.key_size, object.value_size] == [k, v],
            "an entry of another kind of map"
        );
        self.code.check_host(&cx, deadline)?;
        let mut context = DirectContext::of_entry(map, [key, value]);
        let r1 = context.bind(None);
        // SAFETY: the function reads three words of its context, which are what it was
        // verified for: a map of those sizes and an entry, which the guard keeps.
        Ok(unsafe { self.code.run_verified(entry, r1, guard, cx, deadline) })
    }
}

/// A program as a target of tail calls.
struct Target<K: EntryAbi>(Arc<Native<K>>);

// SAFETY: the program was verified for this kind of context, and the value keeps its code
// and what the code refers to. The tail entry takes what the entry takes; it uses the native
// context, which callers have, and ends a run by returning from the entry's frame.
unsafe impl<K: Verified + EntryAbi<Entry = VerifiedEntry>> TailTarget for Target<K> {
    fn convention(&self) -> TailConvention {
        TailConvention::Native
    }

    fn entry(&self) -> u64 {
        self.0.address() + self.0.tail_entry as u64
    }

    fn context(&self) -> ContextKind {
        self.0.context_kind()
    }

    fn cpus(&self) -> u32 {
        self.0.references.cpus()
    }
}

impl<K: Verified + EntryAbi<Entry = VerifiedEntry>> fmt::Debug for Target<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("context", &self.0.context_kind())
            .finish_non_exhaustive()
    }
}
