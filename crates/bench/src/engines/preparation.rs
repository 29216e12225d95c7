//! Preparation of programs: time to compile, and size of native code.
//!
//! Two ways are compared with rbpf's. From bytes to native code that may run, all
//! of it: there each has a check of its own to do, ours when a program is lowered,
//! rbpf's when it is handed over. And compiling alone: rbpf translates bytes, one
//! instruction at a time, so decoding counts as ours.

use std::hint::black_box;

use interp::ThreadedProgram;
use isa::ebpf::{self, RawInsn};
use jit::Native;
use jit::memory::Pool;
use lower::{Lowered, MemoryProgram};

use super::workload::Workload;
use super::{INTERP, NATIVE, RBPF_JIT, unchecked};
use crate::report::{Report, Unit};
use crate::{Failure, peer, race};

/// From bytes to a program that an engine takes: decoded and checked.
const LOWER: &str = "lower";
/// From bytes to native code.
pub(super) const LOWER_AND_JIT: &str = "lower + native";
/// From bytes to native code, without the check.
pub(super) const DECODE_AND_JIT: &str = "decode + native";
/// rbpf's way from bytes to native code.
pub(super) const CHECK_AND_RBPF_JIT: &str = "check + rbpf jit";

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
    let slots = || ebpf::from_bytes(black_box(&bytes)).expect("whole instructions");
    let lower = || unchecked::lowered(&slots()).expect("it was lowered before");
    let lowered = lower();
    let compile = |lowered: &Lowered<MemoryProgram>| {
        let native = Native::compile(lowered, &jit::Options::default(), pool);
        native.expect("it was compiled before")
    };
    let mut names = vec![LOWER, INTERP, NATIVE, LOWER_AND_JIT, DECODE_AND_JIT];
    let mut alone = || drop(black_box(lower()));
    let mut interp = || drop(black_box(ThreadedProgram::compile(black_box(&lowered))));
    let mut jit = || drop(black_box(compile(black_box(&lowered))));
    let mut all = || drop(black_box(compile(&lower())));
    let mut unchecked = || {
        let insns = ebpf::decode_bytes(black_box(&bytes));
        drop(black_box(insns.expect("whole instructions")));
        drop(black_box(compile(black_box(&lowered))));
    };
    let mut works: Vec<&mut dyn FnMut()> =
        vec![&mut alone, &mut interp, &mut jit, &mut all, &mut unchecked];
    let unfit = |unfit| Failure::UnsupportedConstruct(workload.key, unfit);
    let rbpf = peer::compiled(&bytes).map_err(unfit)?;
    let compiles = rbpf.is_some();
    let mut rbpf_jit = rbpf.map(|mut machine| move || drop(black_box(machine.jit_compile())));
    let mut check_and_rbpf_jit = || {
        let machine = peer::machine(black_box(&bytes));
        drop(black_box(
            machine.expect("it was taken before").jit_compile(),
        ));
    };
    if let Some(compile) = &mut rbpf_jit {
        names.push(RBPF_JIT);
        works.push(compile);
    }
    if compiles {
        names.push(CHECK_AND_RBPF_JIT);
        works.push(&mut check_and_rbpf_jit);
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
