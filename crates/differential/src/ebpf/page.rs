//! The page that says how many generated programs were compared, with whom, and
//! what they reached.

use super::engines::{Engines, Tally, compare_engines};
use crate::ebpf::in_kernel::{EbpfComparison, compare_with_kernel};
use kernel_client::{Unavailable, kernel_release};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Seeds that a thread takes at a time.
const PIECE: u64 = 2_000;

/// Works on seeds with every processor, piece by piece: one result for each
/// thread. `work` adds a piece to it and says whether all are to go on.
pub fn in_pieces<T: Default + Send>(
    seeds: Range<u64>,
    work: impl Fn(&mut T, Range<u64>) -> bool + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let is_over = AtomicBool::new(false);
    let work_on = || {
        let mut result = T::default();
        while !is_over.load(Ordering::Relaxed) {
            let start = next.fetch_add(PIECE, Ordering::Relaxed);
            let piece = start..seeds.end.min(start.saturating_add(PIECE));
            if piece.is_empty() {
                break;
            }
            if !work(&mut result, piece) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        result
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work_on)).collect();
        let joined = all.into_iter().map(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

/// Compares the engines on programs from these seeds, on all processors; `begun` is called
/// with the first seed of each chunk.
pub fn compare_engines_in_pieces(seeds: Range<u64>, begun: impl Fn(u64) + Sync) -> Tally {
    let tallies = in_pieces(seeds, |tally: &mut Tally, piece| {
        begun(piece.start);
        tally.add(compare_engines(piece));
        tally.difference.is_none()
    });
    tallies.into_iter().fold(Tally::default(), |mut all, one| {
        all.add(one);
        all
    })
}

/// Everything that was compared.
#[derive(Clone, Debug)]
pub struct Page {
    /// The kernel that answered.
    pub release: String,
    /// Its answer.
    pub kernel: EbpfComparison,
    /// Results of the engines.
    pub engines: Tally,
}

/// Results of the kernel from one thread.
#[derive(Default)]
struct Answers {
    found: EbpfComparison,
    failed: Option<Unavailable>,
}

/// Runs both comparisons.
pub fn compare_all(kernel: u64, engines: u64) -> Result<Page, Unavailable> {
    let release = kernel_release()?;
    let found = in_pieces(0..kernel, |answers: &mut Answers, piece| {
        match compare_with_kernel(piece) {
            Ok(found) => answers.found.add(found),
            Err(why) => answers.failed = Some(why),
        }
        answers.failed.is_none() && answers.found.differences.is_empty()
    });
    let mut answers = EbpfComparison::default();
    for one in found {
        if let Some(why) = one.failed {
            return Err(why);
        }
        answers.add(one.found);
    }
    Ok(Page {
        release,
        kernel: answers,
        engines: compare_engines_in_pieces(0..engines, |_| ()),
    })
}

impl Page {
    /// Differences in words, if there are any.
    pub fn differences(&self) -> Vec<String> {
        let kernel = self.kernel.differences.iter().map(|found| found.describe());
        let engines = self.engines.difference.iter().map(|found| found.describe());
        kernel.chain(engines).collect()
    }

    /// The page in Markdown.
    pub fn markdown(&self) -> String {
        let (kernel, engines) = (&self.kernel, &self.engines);
        let mut text = String::from(
            "# eBPF against the kernel, and engine against engine\n\n\
             Generated programs: safe by construction, with loops, forks, calls, idioms of\n\
             compilers and near misses of them. A reference evaluator, which checks every\n\
             access and every read, gives the expected result. Seeds count from 0, so a run repeats.\n\
             The returned value and every byte of memory are compared; at its end a program\n\
             stores its registers and its stack in memory.\n\n\
             | compared with the reference | programs | runs of each | differences |\n\
             | --- | ---: | ---: | ---: |\n",
        );
        let _ = writeln!(
            text,
            "| Linux {}: XDP programs, compiled and run on packets | {} | {} | {} |",
            self.release,
            kernel.accepted,
            kernel.runs,
            kernel.differences.len()
        );
        for name in Engines::all().names() {
            let differs = engines
                .difference
                .iter()
                .filter(|found| found.engine == name);
            let _ = writeln!(
                text,
                "| Beebox, engine {name} | {} | {} | {} |",
                engines.programs,
                engines.runs,
                differs.count()
            );
        }
        let share = kernel.accepted as f64 * 100.0 / kernel.programs.max(1) as f64;
        let _ = writeln!(
            text,
            "\nOf {} programs generated for the kernel its verifier accepts {share:.2} %.",
            kernel.programs
        );
        text.push_str(&kernel.refusals_markdown());
        text.push_str("\n## What the programs for the engines reached\n");
        text.push_str(&engines.coverage.markdown());
        text.push_str("\n## What the programs that the kernel ran reached\n");
        text.push_str(&kernel.coverage.markdown());
        text
    }
}
