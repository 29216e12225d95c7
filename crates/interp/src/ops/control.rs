//! Calls and returns.

use std::sync::atomic::{AtomicU64, Ordering};

use spec::limits;
use vm::{Call, FrameLayout, TailTable};

use crate::op::{Flow, Op, Operation, Run, step};

/// `r0 = function(r1, …, r5)`.
struct CallHelper;

impl Operation for CallHelper {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let address = std::ptr::with_exposed_provenance::<()>(run.op().wide() as usize);
        let [r1, r2, r3, r4, r5] = [1, 2, 3, 4, 5].map(|number| run.register(number));
        // SAFETY: `call` put the address of a `Call` there; the program's evidence covers
        // its arguments.
        run.r0 = unsafe {
            let function = std::mem::transmute::<*const (), Call>(address);
            run.with_cx(|cx| function(r1, r2, r3, r4, r5, cx))
        };
        run.next()
    }
}

/// `r0 = function(r1, …, r5)`, a helper.
pub(crate) fn call(function: Call) -> Op {
    Op::using_run(step::<CallHelper>).with_wide((function as *const ()).expose_provenance() as u64)
}

/// Calls the function at `t`. The call recurses on the host's stack, so the return is
/// predicted by the return stack buffer; lowering bounds the depth.
struct CallLocal;

impl Operation for CallLocal {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let meter = run.meter();
        meter.calls -= 1;
        if meter.calls < 0 && !meter.renew_calls() {
            return run.finish(0);
        }
        let distance = run.op().t;
        run.call(distance);
        if run.meter().is_over() {
            return run.finish(0);
        }
        run.next()
    }
}

/// A local call; the target is patched later.
pub(crate) fn call_local() -> Op {
    Op::using_run(step::<CallLocal>)
}

/// As [`CallLocal`], in a verified program: with the address of the frame's layout.
struct CallFramed;

impl Operation for CallFramed {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let meter = run.meter();
        meter.calls -= 1;
        if meter.calls < 0 && !meter.renew_calls() {
            return run.finish(0);
        }
        let (distance, layout) = (run.op().t, run.op().wide());
        // SAFETY: `call_framed` put the address of a layout there, which the program keeps.
        let layout = unsafe { &*std::ptr::with_exposed_provenance(layout as usize) };
        run.call_with_frame(distance, layout);
        if run.meter().is_over() {
            return run.finish(0);
        }
        run.next()
    }
}

/// A local call in a verified program; the target is patched later. The program keeps the layout
/// of the frame.
pub(crate) fn call_framed(layout: &FrameLayout) -> Op {
    let layout = std::ptr::from_ref(layout).expose_provenance();
    Op::using_run(step::<CallFramed>).with_wide(layout as u64)
}

/// A tail call: through the table in `r2` to the index in `r3`, or through one slot.
struct TailCall<const ONE_SLOT: bool>;

impl<const ONE_SLOT: bool> Operation for TailCall<ONE_SLOT> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        if *run.tail_calls() >= limits::TAIL_CALLS {
            return run.next();
        }
        // SAFETY: the program keeps its tables, whose addresses lowering put there.
        let entry = unsafe {
            match ONE_SLOT {
                true => TailTable::entry_in(run.op().wide()),
                false => TailTable::entry_at(run.register(2), run.register(3) as u32),
            }
        };
        if entry == 0 {
            return run.next();
        }
        *run.tail_calls() += 1;
        let is_linked = run.op().lhs != 0;
        // SAFETY: entries of tables that admit the threaded interpreter are addresses of its
        // entries, for programs with the context of the caller; the run's guard keeps them. Frames
        // have room for every layout.
        unsafe {
            run.enter(
                &*std::ptr::with_exposed_provenance(entry as usize),
                is_linked,
            )
        }
    }
}

/// A tail call through the table in `r2`, from a function whose frame may be linked.
pub(crate) fn tail_call(is_linked: bool) -> Op {
    Op {
        lhs: is_linked.into(),
        ..Op::using_run(step::<TailCall<false>>)
    }
}

/// A tail call through the slot at an address.
pub(crate) fn tail_call_of_slot(slot: u64, is_linked: bool) -> Op {
    Op {
        lhs: is_linked.into(),
        ..Op::using_run(step::<TailCall<true>>).with_wide(slot)
    }
}

/// Increments the counter at an address.
struct Count;

impl Operation for Count {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let address = run.op().wide() as usize;
        let counter = std::ptr::with_exposed_provenance::<AtomicU64>(address);
        // SAFETY: `count` put the address of a counter there, which the program's references keep.
        let counter = unsafe { &*counter };
        let count = counter.load(Ordering::Relaxed).wrapping_add(1);
        counter.store(count, Ordering::Relaxed);
        run.next()
    }
}

/// The increment of a counter ([`vm::Counters`]), with a lock if threads share it.
pub(crate) fn count(address: u64, is_shared: bool) -> Op {
    match is_shared {
        true => Op::new(step::<SharedCount>).with_wide(address),
        false => Op::new(step::<Count>).with_wide(address),
    }
}

struct SharedCount;

impl Operation for SharedCount {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let address = run.op().wide() as usize;
        let counter = std::ptr::with_exposed_provenance::<AtomicU64>(address);
        // SAFETY: `count` put the address of a counter there, which the program's references keep.
        let counter = unsafe { &*counter };
        counter.fetch_add(1, Ordering::Relaxed);
        run.next()
    }
}

/// Returns `r0` from the function.
struct Exit;

impl Operation for Exit {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let r0 = run.r0;
        run.finish(r0)
    }
}

/// Returns `r0`.
pub(crate) fn exit() -> Op {
    Op::new(step::<Exit>)
}

/// Returns a constant from the function.
struct ExitWith;

impl Operation for ExitWith {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let value = run.op().a;
        run.finish(u64::from(value))
    }
}

/// Returns a constant: `w0 = imm; exit`.
pub(crate) fn exit_with(imm: i32) -> Op {
    Op {
        a: imm as u32,
        ..Op::new(step::<ExitWith>)
    }
}
