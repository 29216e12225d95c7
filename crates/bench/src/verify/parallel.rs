//! The program with repeated precision requests, verified by several threads at the same
//! time in a process of its own: time and peak memory.

use verifier::{Options as VerifyOptions, Verdict};

use super::programs::{self, Named};
use super::target::Target;
use super::{BEEBOX, BENCH, NO_SKIP};
use crate::report::{Report, Unit};
use crate::{Failure, Options, Progress, fresh};

/// The part that verifies in this process: `parallel THREADS skip|no-skip`.
pub(super) const PART: &str = "parallel";

/// Numbers of concurrent verifications.
const THREADS: [usize; 4] = [1, 2, 8, 32];

const SKIP: &str = "skip";
const WITHOUT: &str = "no-skip";

/// Measures every number of threads, with precision-skip and without. Peak memory counts
/// what this process has resident, so it should be small still.
pub(super) fn measure(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    for threads in THREADS {
        for (engine, switch) in [(BEEBOX, SKIP), (NO_SKIP, WITHOUT)] {
            let workload = format!("precision requests on a long history, {threads} at a time");
            progress(&workload);
            let command = options.part(BENCH.name, &[PART, &threads.to_string(), switch]);
            let usage = fresh::succeed(command, "measuring parallel verification")?;
            let megabytes = usage.peak_memory as f64 / 1e6;
            report.add_row(&workload, engine, Unit::Seconds, usage.wall.as_secs_f64());
            report.add_row(&workload, engine, Unit::Megabytes, megabytes);
        }
    }
    Ok(())
}

/// Verifies the program in this process as the words say; `None` if they name no such
/// part.
pub(super) fn part(words: &[&str]) -> Option<Result<(), Failure>> {
    let [PART, threads, switch] = words else {
        return None;
    };
    let threads: usize = threads.parse().ok()?;
    let precision_skip = match *switch {
        SKIP => true,
        WITHOUT => false,
        _ => return None,
    };
    Some(verify(threads, precision_skip))
}

fn verify(threads: usize, precision_skip: bool) -> Result<(), Failure> {
    let target = Target::running()?;
    let programs = programs::of_object(&programs::stress(), &target)?;
    let options = VerifyOptions {
        precision_skip,
        ..VerifyOptions::default()
    };
    let accepts =
        |named: &Named| target.verify(&named.program, &options).verdict == Verdict::Accepted;
    let accepted = std::thread::scope(|scope| {
        let work = || programs.iter().all(accepts);
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .all(|thread| thread.join().unwrap_or(false))
    });
    match accepted {
        true => Ok(()),
        false => Err(Failure::Process {
            purpose: "verifying in parallel",
            said: "the program is not accepted".to_owned(),
        }),
    }
}
