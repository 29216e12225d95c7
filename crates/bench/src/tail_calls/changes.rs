//! Changes of targets while another thread runs a chain: what one costs, and how long it
//! disturbs the runs.
//!
//! The reader runs without pause and counts; the writer replaces the program of one slot by
//! another one, at a fixed distance. The disturbance of a change is the time of the reader
//! that is missing for the runs that it would have made without changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use differential::tail_calls::{Direct, InKernel, SLOTS};

use super::chains::Chain;
use super::{BEEBOX, KERNEL};
use crate::Failure;
use crate::report::{Report, Unit};

/// The workloads.
pub(super) const CHANGE: &str = "one change under load";
pub(super) const DISTURBANCE: &str = "disturbance of the reader by a change";

/// Time between changes.
const PAUSE: Duration = Duration::from_micros(50);
/// Runs of the reader between looks at the clock.
const BATCH: u32 = 256;

/// Something that runs while its slots are changed.
trait Changing: Sync {
    fn run(&self, rounds: u32);

    fn set(&self, slot: u32, program: u32) -> bool;
}

impl Changing for Direct {
    fn run(&self, rounds: u32) {
        std::hint::black_box(self.run_repeated(rounds));
    }

    fn set(&self, slot: u32, program: u32) -> bool {
        Direct::set(self, slot, Some(program)).is_ok()
    }
}

impl Changing for InKernel {
    fn run(&self, rounds: u32) {
        std::hint::black_box(self.run_repeated(rounds));
    }

    fn set(&self, slot: u32, program: u32) -> bool {
        InKernel::set(self, slot, Some(program)).is_ok()
    }
}

/// Measures changes here and in the kernel, each for that time.
pub(super) fn measure(time: Duration, report: &mut Report) -> Result<(), Failure> {
    let chain = Chain::new(false);
    let native = chain.native(&jit::Options::default())?;
    measure_one(BEEBOX, &native, time, report);
    if let Some(theirs) = chain.in_kernel(report)? {
        measure_one(KERNEL, &theirs, time, report);
    }
    Ok(())
}

fn measure_one(engine: &str, subject: &dyn Changing, time: Duration, report: &mut Report) {
    let (still, _) = race(subject, time, false);
    let (changed, changes) = race(subject, time, true);
    let Some(cost) = changes.mean() else {
        return;
    };
    report.add_row(CHANGE, engine, Unit::NsPerOperation, cost);
    // Runs that are missing, in time of the reader, by the changes of that time.
    let missing = (1.0 - changed / still).max(0.0) * time.as_nanos() as f64;
    let disturbance = missing / changes.count as f64;
    report.add_row(DISTURBANCE, engine, Unit::NsPerOperation, disturbance);
}

/// Changes that were made, and the time that they took.
#[derive(Default)]
struct Changes {
    count: u64,
    time: Duration,
}

impl Changes {
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.time.as_nanos() as f64 / self.count as f64)
    }
}

/// Runs of a reader in a second, while changes are made or none.
fn race(subject: &dyn Changing, time: Duration, with_changes: bool) -> (f64, Changes) {
    let (ends, runs) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut changes = Changes::default();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Relaxed) {
                subject.run(BATCH);
                runs.fetch_add(BATCH.into(), Relaxed);
            }
        });
        let mut next = start + PAUSE;
        while start.elapsed() < time {
            while Instant::now() < next {
                std::hint::spin_loop();
            }
            next += PAUSE;
            if !with_changes {
                continue;
            }
            let slot = changes.count as u32 % SLOTS;
            let program = (slot + 1 + (changes.count / u64::from(SLOTS)) as u32) % SLOTS;
            let before = Instant::now();
            if subject.set(slot, program) {
                changes.time += before.elapsed();
                changes.count += 1;
            }
        }
        ends.store(true, Relaxed);
    });
    (
        runs.load(Relaxed) as f64 / start.elapsed().as_secs_f64(),
        changes,
    )
}
