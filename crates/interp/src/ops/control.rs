//! Calls and returns.

use vm::Call;

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
            function(r1, r2, r3, r4, r5, run.cx())
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
