//! What it costs to get a program ready, and how large its native code is.
//!
//! rbpf translates bytes, one instruction at a time, having checked them before;
//! so beside our compilers alone stands what leads from bytes to native code.

use std::hint::black_box;

use interp::Code;
use isa::ebpf::{self, RawInsn};
use jit::Native;
use jit::memory::Pool;
use lower::Lowered;

use super::workload::Workload;
use super::{INTERP, JIT, RBPF_JIT, unproved};
use crate::report::{Report, Unit};
use crate::{Failure, peer, race};

/// From bytes to a program that an engine takes.
const LOWER: &str = "lower";
/// From bytes to native code.
pub(super) const LOWER_AND_JIT: &str = "lower + jit";

/// Programs that are shorter say more about system calls than about compilers.
const SHORTEST: usize = 30;

/// Adds the times to the report.
pub(super) fn measure(
    workload: &Workload,
    program: &[RawInsn],
    samples: u32,
    pool: &Pool,
    report: &mut Report,
) -> Result<(), Failure> {
    if program.len() < SHORTEST {
        return Ok(());
    }
    let bytes = ebpf::to_bytes(program);
    let lower = || {
        let slots = ebpf::from_bytes(black_box(&bytes)).expect("whole instructions");
        unproved::lowered(&slots).expect("it was lowered before")
    };
    let lowered = lower();
    let compile = |lowered: &Lowered| {
        let native = Native::compile(lowered, &jit::Options::default(), pool);
        native.expect("it was compiled before")
    };
    let mut names = vec![LOWER, INTERP, JIT, LOWER_AND_JIT];
    let mut alone = || drop(black_box(lower()));
    let mut interp = || drop(black_box(Code::compile(black_box(&lowered))));
    let mut jit = || drop(black_box(compile(black_box(&lowered))));
    let mut both = || drop(black_box(compile(&lower())));
    let mut works: Vec<&mut dyn FnMut()> = vec![&mut alone, &mut interp, &mut jit, &mut both];
    let rbpf = peer::compiled(&bytes).map_err(|unfit| Failure::Unfit(workload.key, unfit))?;
    let mut rbpf_jit = rbpf.map(|mut machine| move || drop(black_box(machine.jit_compile())));
    if let Some(compile) = &mut rbpf_jit {
        names.push(RBPF_JIT);
        works.push(compile);
    }
    let thousands = program.len() as f64 / 1000.0;
    let times = race::times(&mut works, samples);
    for (name, nanoseconds) in names.into_iter().zip(times) {
        let microseconds = nanoseconds / 1000.0 / thousands;
        report.add_row(
            workload.title(),
            name,
            Unit::MicrosPerThousandInsns,
            microseconds,
        );
    }
    Ok(())
}
