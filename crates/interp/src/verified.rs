//! Runs of verified programs: on packets through their context, or on a context alone. They have
//! the memory of native code: addresses are pointers, and nothing is checked that the verifier
//! proved.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use lower::{
    ContextKind, ContextProgram, EntryFunction, EntrySizes, PacketProgram, Verified,
    VerifiedProgram,
};
use vm::{
    CellSlice, Deadline, DirectContext, MAY_GOTO_LOOPS, Machine, MapHandle, Meter, NoSuchCpu,
    Outcome, PacketBuffer, RunContext, RunGuard, TailConvention, TailTarget,
};

use crate::compile::Unsupported;
use crate::op::{TailEntry, complete_in_frame};
use crate::threaded::set_context;
use crate::{Threaded, ThreadedCode, ThreadedProgram};

impl Threaded for PacketProgram {
    type Entry = ContextKind;

    fn entry(context: ContextKind, _: &ThreadedCode) -> ContextKind {
        context
    }
}

impl Threaded for ContextProgram {
    type Entry = ContextKind;

    fn entry(context: ContextKind, _: &ThreadedCode) -> ContextKind {
        context
    }
}

impl Threaded for EntryFunction {
    type Entry = EntrySizes;

    fn entry(sizes: EntrySizes, _: &ThreadedCode) -> EntrySizes {
        sizes
    }
}

/// A verified program of either kind for the threaded interpreter.
#[derive(Clone)]
pub enum VerifiedThreaded {
    /// It reaches a packet through its context.
    Packet(Arc<ThreadedProgram<PacketProgram>>),
    /// It has a context alone.
    Context(Arc<ThreadedProgram<ContextProgram>>),
}

impl VerifiedThreaded {
    /// As [`ThreadedProgram::compile`].
    ///
    /// # Errors
    /// As [`ThreadedProgram::compile`]; a tail call, if programs of another engine use the
    /// program array.
    pub fn compile(program: &VerifiedProgram) -> Result<VerifiedThreaded, Unsupported> {
        Ok(match program {
            VerifiedProgram::Packet(program) => {
                VerifiedThreaded::Packet(Arc::new(ThreadedProgram::compile(program)?))
            }
            VerifiedProgram::Context(program) => {
                VerifiedThreaded::Context(Arc::new(ThreadedProgram::compile(program)?))
            }
        })
    }

    /// The kind of context that the program was verified for.
    pub fn context_kind(&self) -> ContextKind {
        match self {
            VerifiedThreaded::Packet(program) => program.entry,
            VerifiedThreaded::Context(program) => program.entry,
        }
    }

    /// The program as a target of tail calls; `None` if it calls functions of the host, which are
    /// those of the run's first program.
    pub fn tail_target(&self) -> Option<Arc<dyn TailTarget>> {
        match self {
            VerifiedThreaded::Packet(program) => Target::of(program),
            VerifiedThreaded::Context(program) => Target::of(program),
        }
    }
}

impl ThreadedCode {
    /// Runs verified code on a context that was bound to its packet, if it has one.
    ///
    /// # Safety
    /// The program was verified for the kind of context of which `r1` is the address; it has a
    /// packet if the kind has.
    #[inline]
    unsafe fn run_verified<'r>(
        &'r self,
        machine: &mut Machine,
        r1: u64,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let m = machine.enter();
        // SAFETY: the verifier proved that the program accesses its context, laid out as lowering
        // assumes, the packet, its stack, and values of its maps, which the guard and the
        // references keep. `m` is unique for this run; no operation keeps the run context, whose
        // lifetime is extended in type only.
        unsafe {
            self.references.run(r1, guard, cx, |cx| {
                (*m).may_goto = MAY_GOTO_LOOPS;
                (*m).tail_calls = 0;
                (*m).meter = Meter::new(u64::MAX, deadline);
                set_context(m, r1);
                let cx: *mut RunContext<'_> = cx;
                let r0 = complete_in_frame(self.ops.as_ptr(), m, cx.cast(), &self.layouts[0]);
                (*m).meter.outcome(r0)
            })
        }
    }
}

impl ThreadedProgram<PacketProgram> {
    /// Runs the program on a packet, until a deadline if there is one. Packet, context and maps are
    /// left as the program leaves them; `guard` keeps the values of maps that it looks up.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the program has ended. If the context is of another kind
    /// than the program was verified for.
    #[inline]
    pub fn run_until<'r>(
        &'r self,
        machine: &mut Machine,
        packet: &mut PacketBuffer,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        self.check_run(context, &cx)?;
        let r1 = context.bind(Some(packet));
        // SAFETY: the kinds were compared, and the context has the packet, which is borrowed.
        Ok(unsafe { self.code.run_verified(machine, r1, guard, cx, deadline) })
    }
}

impl ThreadedProgram<ContextProgram> {
    /// Runs the program on its context, until a deadline if there is one.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the program has ended. If the context is of another kind
    /// than the program was verified for.
    #[inline]
    pub fn run_until<'r>(
        &'r self,
        machine: &mut Machine,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        self.check_run(context, &cx)?;
        let r1 = context.bind(None);
        // SAFETY: the kinds were compared, and the kind has no packet.
        Ok(unsafe { self.code.run_verified(machine, r1, guard, cx, deadline) })
    }
}

impl<K: Verified + Threaded<Entry = ContextKind>> ThreadedProgram<K> {
    /// Checks what a run requires.
    #[inline]
    fn check_run(&self, context: &DirectContext, cx: &RunContext<'_>) -> Result<(), NoSuchCpu> {
        assert!(
            self.entry == context.kind(),
            "the context is for other programs"
        );
        self.code.references.check_cpu(cx)
    }
}

impl ThreadedProgram<EntryFunction> {
    /// Calls the function with a map and one of its entries, key and value, which the guard
    /// keeps.
    ///
    /// # Errors
    /// If the maps have no values for the CPU.
    ///
    /// # Panics
    /// With the panic of a helper, when the function has returned. If key and value have other
    /// sizes than those of the maps that the function was verified for.
    pub fn run_until<'r>(
        &'r self,
        machine: &mut Machine,
        (map, [key, value]): (&MapHandle, [CellSlice<'r>; 2]),
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        let EntrySizes { key: k, value: v } = self.entry;
        let (object, given) = (map, [key.len(), value.len()]);
        assert!(
            given == [k, v] && [object.key_size, object.value_size] == [k, v],
            "an entry of another kind of map"
        );
        self.code.references.check_cpu(&cx)?;
        let mut context = DirectContext::of_entry(map, [key, value]);
        let r1 = context.bind(None);
        // SAFETY: the function reads three words of its context, which are what it was
        // verified for: a map of those sizes and an entry, which the guard keeps.
        Ok(unsafe { self.code.run_verified(machine, r1, guard, cx, deadline) })
    }
}

/// A program as a target of tail calls.
struct Target<K: Threaded> {
    entry: TailEntry,
    program: Arc<ThreadedProgram<K>>,
}

impl<K: Verified + Threaded<Entry = ContextKind>> Target<K> {
    fn of(program: &Arc<ThreadedProgram<K>>) -> Option<Arc<dyn TailTarget>> {
        let code = &program.code;
        let entry = TailEntry {
            ops: code.ops.as_ptr().expose_provenance(),
            layout: code.layouts[0],
        };
        let program = Arc::clone(program);
        let is_target = !code.references.has_host_functions();
        is_target.then(|| Arc::new(Target { entry, program }) as _)
    }
}

// SAFETY: the program was verified for this kind of context, and the value keeps its operations
// and what they refer to. The entry is at a place of its own, which a target keeps as it is
// created in an `Arc`.
unsafe impl<K: Verified + Threaded<Entry = ContextKind>> TailTarget for Target<K> {
    fn convention(&self) -> TailConvention {
        TailConvention::Threaded
    }

    fn entry(&self) -> u64 {
        ptr::from_ref(&self.entry).expose_provenance() as u64
    }

    fn context(&self) -> ContextKind {
        self.program.entry
    }

    fn cpus(&self) -> u32 {
        self.program.code.references.cpus()
    }
}

impl<K: Verified + Threaded<Entry = ContextKind>> fmt::Debug for Target<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("context", &self.program.entry)
            .finish_non_exhaustive()
    }
}
