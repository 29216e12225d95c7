//! Runs of verified programs: on packets through their context, or on a context alone.

use std::fmt;
use std::panic;
use std::sync::Arc;

use lower::{ContextKind, EntrySizes};
use vm::{
    CellSlice, Deadline, DirectContext, MapHandle, Outcome, PacketBuffer, RunContext, RunGuard,
    TailTarget,
};

use super::{Arguments, Native, NoSuchCpu};

impl Native {
    /// The kind of context of a verified program.
    pub fn context_kind(&self) -> Option<ContextKind> {
        match self.arguments {
            Arguments::Verified(kind) => Some(kind),
            Arguments::Full
            | Arguments::Packet
            | Arguments::Seccomp
            | Arguments::Memory
            | Arguments::Entry(_) => None,
        }
    }

    /// A handle that runs a verified program on packets, if it is written for this kind of
    /// context, and the kind has packets.
    #[inline]
    pub fn on_context(&self, kind: ContextKind) -> Option<OnContext<'_>> {
        let fits = self.arguments == Arguments::Verified(kind) && kind.has_packet();
        fits.then_some(OnContext { native: self })
    }

    /// A handle that runs a verified program on its context alone, if it is written for this
    /// kind of context, and the kind has no packets.
    #[inline]
    pub fn without_packet(&self, kind: ContextKind) -> Option<WithoutPacket<'_>> {
        let fits = self.arguments == Arguments::Verified(kind) && !kind.has_packet();
        fits.then_some(WithoutPacket { native: self })
    }

    /// A handle that calls a function of a verified program with entries of maps, if it is one
    /// that the host calls ([`Lowered::entry_sizes`](lower::Lowered::entry_sizes)).
    pub fn on_entries(&self) -> Option<OnEntries<'_>> {
        match self.arguments {
            Arguments::Entry(sizes) => Some(OnEntries {
                native: self,
                sizes,
            }),
            _ => None,
        }
    }

    /// The program as a target of tail calls: what program arrays hold for native code.
    /// `None` if it is not verified, calls functions of the host, which are those of the run's
    /// first program, or was compiled without
    /// [`Options::tail_target`](super::Options::tail_target).
    pub fn tail_target(self: &Arc<Self>) -> Option<Arc<dyn TailTarget>> {
        let is_target = self.is_tail_target && self.host.is_empty();
        let context = self.context_kind().filter(|_| is_target)?;
        Some(Arc::new(Target {
            native: self.clone(),
            context,
        }))
    }

    /// Runs a verified program on a context that was bound to its packet, if it has one.
    ///
    /// # Safety
    /// The program was verified for this kind of context, of which `r1` is the address; it has
    /// a packet if the kind has.
    #[inline]
    unsafe fn run_verified<'r>(
        &self,
        r1: u64,
        guard: &'r RunGuard,
        mut cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let mut cx = cx.reborrow();
        if cx.maps.is_empty() {
            cx.maps = &self.maps;
        }
        // The program's loads and stores reach the packet through the context.
        cx.context = r1;
        cx.guard = Some(guard);
        cx.host = &self.host;
        // SAFETY: the verifier proved that the program accesses its context, laid out as
        // lowering assumes, the packet, its stack, and values of its maps, which the guard
        // and the handles keep.
        let outcome = unsafe {
            match self.uses_context {
                true => self.run_with_context(r1, 0, &[], &mut cx, u64::MAX, deadline),
                false => self.run_without_context(r1, 0, &[]),
            }
        };
        // SAFETY: the handles keep the maps, and the run has ended.
        unsafe { guard.free_held_lock() };
        if let Some(payload) = cx.panic {
            panic::resume_unwind(payload);
        }
        outcome
    }

    /// Checks what a run of a verified program requires.
    #[inline]
    fn check_run(
        &self,
        context: &DirectContext,
        cx: &RunContext<'_>,
        deadline: Option<Deadline>,
    ) -> Result<(), NoSuchCpu> {
        assert!(
            self.arguments == Arguments::Verified(context.kind()),
            "the context is for other programs"
        );
        self.check_host(cx, deadline)
    }

    /// Checks what a run requires of the host.
    #[inline]
    fn check_host(&self, cx: &RunContext<'_>, deadline: Option<Deadline>) -> Result<(), NoSuchCpu> {
        assert!(
            self.checks_deadline || deadline.is_none(),
            "the code was compiled without deadline checks"
        );
        let (cpu, cpus) = (cx.cpu(), self.cpus);
        match cpu < cpus {
            true => Ok(()),
            false => Err(NoSuchCpu { cpu, cpus }),
        }
    }
}

/// Runs a verified program on packets; see [`Native::on_context`].
#[derive(Clone, Copy)]
pub struct OnContext<'n> {
    native: &'n Native,
}

impl<'n> OnContext<'n> {
    /// The program's `r0`. Packet and context are left as the program leaves them; `guard`
    /// keeps the values of maps that it looks up.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the program has ended. If the context is of another
    /// kind than the program's.
    #[inline]
    pub fn run<'r>(
        self,
        packet: &mut PacketBuffer,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
    ) -> Result<u64, NoSuchCpu>
    where
        'n: 'r,
    {
        Ok(match self.run_until(packet, context, guard, cx, None)? {
            Outcome::Returned(r0) => r0,
            // There is neither a budget nor a deadline.
            Outcome::BudgetExhausted | Outcome::DeadlinePassed => 0,
        })
    }

    /// As [`OnContext::run`], until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with packet, context and maps as the program left them.
    ///
    /// # Errors
    /// As [`OnContext::run`].
    ///
    /// # Panics
    /// As [`OnContext::run`]; and if there is a deadline and the program was compiled without
    /// [`Options::deadline`](super::Options::deadline).
    #[inline]
    pub fn run_until<'r>(
        self,
        packet: &mut PacketBuffer,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu>
    where
        'n: 'r,
    {
        self.native.check_run(context, &cx, deadline)?;
        let r1 = context.bind(Some(packet));
        // SAFETY: the kinds were compared, and the context has the packet, which is borrowed.
        Ok(unsafe { self.native.run_verified(r1, guard, cx, deadline) })
    }
}

/// Runs a verified program on its context alone; see [`Native::without_packet`].
#[derive(Clone, Copy)]
pub struct WithoutPacket<'n> {
    native: &'n Native,
}

impl<'n> WithoutPacket<'n> {
    /// What a run returns, and whether a deadline ended it: as [`OnContext::run_until`].
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// As [`OnContext::run_until`].
    #[inline]
    pub fn run_until<'r>(
        self,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu>
    where
        'n: 'r,
    {
        self.native.check_run(context, &cx, deadline)?;
        let r1 = context.bind(None);
        // SAFETY: the kinds were compared, and the kind has no packet.
        Ok(unsafe { self.native.run_verified(r1, guard, cx, deadline) })
    }
}

/// Calls a function of a verified program; see [`Native::on_entries`].
#[derive(Clone, Copy)]
pub struct OnEntries<'n> {
    native: &'n Native,
    sizes: EntrySizes,
}

impl OnEntries<'_> {
    /// Calls the function with a map and one of its entries, key and value, which the guard
    /// keeps; see [`OnContext::run_until`].
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// As [`OnContext::run_until`]; and if key and value have other sizes than those of the
    /// maps that the function was verified for.
    pub fn run_until<'r>(
        self,
        map: &MapHandle,
        [key, value]: [CellSlice<'r>; 2],
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        let object = map.map();
        let given = [key.len(), value.len()];
        let EntrySizes { key: k, value: v } = self.sizes;
        let sizes = [object.key_size(), object.value_size()];
        assert!(
            given == [k, v] && sizes == [k, v],
            "an entry of another kind of map"
        );
        self.native.check_host(&cx, deadline)?;
        let cells = [key, value].map(|cells| cells.address().expose_provenance() as u64);
        let words = [map.address(), cells[0], cells[1]];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut context = DirectContext::new(ContextKind::Arguments, &bytes);
        let r1 = context.bind(None);
        // SAFETY: the function reads three words of its context, which are what it was
        // verified for: a map of those sizes and an entry, which the guard keeps.
        Ok(unsafe { self.native.run_verified(r1, guard, cx, deadline) })
    }
}

/// A program as a target of tail calls.
struct Target {
    native: Arc<Native>,
    context: ContextKind,
}

// SAFETY: the program was verified for this kind of context, and the value keeps its code
// and what the code refers to. The tail entry takes what the entry takes; it uses the native
// context, which callers have, and ends a run by returning from the entry's frame.
unsafe impl TailTarget for Target {
    fn entry(&self) -> u64 {
        self.native.address() + self.native.tail_entry as u64
    }

    fn context(&self) -> ContextKind {
        self.context
    }

    fn cpus(&self) -> u32 {
        self.native.cpus
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
