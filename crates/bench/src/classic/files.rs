//! The whole process: counting the packets of a large capture that match.
//!
//! A capture of 1 GB is made, read once so that it lies in the page cache, and
//! then filtered by commands in turns, several times each; the fastest counts.
//! No filter can be faster than reading the file, so a process that does nothing
//! else is one of the contenders. All that filter must find as many packets.
//!
//! Captures are made, and the file is read, in processes of their own: Linux
//! counts to the peak memory of a child what its parent had when it started it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;

use sys::libpcap::Libpcap;
use sys::process;
use testkit::captures::{self, Link, Mix};

use crate::report::{Measured, Report, Target, Unit};
use crate::scratch::Scratch;
use crate::{Failure, Options, Progress, fresh};

/// Purpose that a failure of a process names.
const PURPOSE: &str = "measuring whole processes";

const BYTES: u64 = 1_000_000_000;
const FILTER: &str = "port 22";
const TURNS: u32 = 7;

const READ_LOOP: &str = "read loop";
const ONE_JOB: &str = "beebox -J 1";
const TWO_JOBS: &str = "beebox -J 2";
pub(super) const TCPDUMP: &str = "tcpdump";

// Parts that run in processes of their own.
const MAKE: &str = "make";
const READ: &str = "read";

/// A mix of packets, and the required ratio of tcpdump's time to ours on it.
struct Size {
    name: &'static str,
    workload: &'static str,
    mix: Mix,
    faster_than_tcpdump: f64,
}

const SIZES: &[Size] = &[
    Size {
        name: "small",
        workload: "1 GB, small packets",
        mix: Mix::Small,
        faster_than_tcpdump: 2.3,
    },
    Size {
        name: "large",
        workload: "1 GB, large packets",
        mix: Mix::Large,
        faster_than_tcpdump: 1.7,
    },
];

/// Adds what was measured to the report, or a note why nothing was.
pub(super) fn measure(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let beebox = match (&options.beebox, obstacle()) {
        (Some(beebox), None) => beebox,
        (_, Some(obstacle)) => {
            report
                .notes
                .push(format!("Whole processes were not measured: {obstacle}."));
            return Ok(());
        }
        (None, None) => {
            report.notes.push(
                "Whole processes were not measured: there is no beebox command beside \
                 beebox-bench (`cargo build --release` makes it, --beebox names one)."
                    .into(),
            );
            return Ok(());
        }
    };
    let directory =
        Scratch::new().map_err(|error| Failure::System("a scratch directory", error))?;
    let mut results = Vec::new();
    for size in SIZES {
        progress(&format!("making a capture: {}", size.workload));
        let path = directory.path().join(format!("{}.pcap", size.name));
        let capture = path.display().to_string();
        fresh::succeed(
            options.part("classic", &[MAKE, size.name, &capture]),
            PURPOSE,
        )?;
        let turns = race(options, beebox, size, &capture, progress)?;
        for (contender, turns) in CONTENDERS.into_iter().zip(&turns) {
            report.add_row(
                size.workload,
                contender,
                Unit::Seconds,
                best(&turns.seconds),
            );
            report.add_row(
                size.workload,
                contender,
                Unit::Megabytes,
                best(&turns.megabytes),
            );
        }
        results.push(turns);
        fs::remove_file(&path).map_err(|error| Failure::System("a capture of ours", error))?;
    }
    summarise(&results, report);
    report.notes.push(format!(
        "Whole processes count the packets that match `{FILTER}` in a capture of 1 GB (small: 276 \
         bytes a packet on average, large: 784) in the page cache; the read loop only reads the \
         file, 256 KiB at a time."
    ));
    Ok(())
}

/// The reason why the benchmark cannot run, if any.
fn obstacle() -> Option<String> {
    /// Beside the capture in the page cache.
    const MEMORY: u64 = 2 * BYTES;
    if let Err(error) = Command::new("tcpdump").arg("--version").output() {
        return Some(format!("tcpdump can't be started ({error})"));
    }
    if Libpcap::load().is_err() {
        return Some("there is no libpcap to compile the expression".into());
    }
    let temporary = std::env::temp_dir();
    match process::free_space(&temporary) {
        Ok(free) if free < BYTES + BYTES / 4 => {
            return Some(format!("{} has no room for 1 GB", temporary.display()));
        }
        Ok(_) => {}
        Err(error) => return Some(format!("{}: {error}", temporary.display())),
    }
    match available_memory() {
        Some(available) if available < MEMORY => {
            Some("there is not enough memory to keep 1 GB in the page cache".into())
        }
        _ => None,
    }
}

fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Times of a command, one for each turn.
#[derive(Default)]
struct Turns {
    seconds: Vec<f64>,
    megabytes: Vec<f64>,
}

/// The commands that race, in order.
const CONTENDERS: [&str; 4] = [READ_LOOP, ONE_JOB, TWO_JOBS, TCPDUMP];

fn command(contender: &str, options: &Options, beebox: &Path, capture: &str) -> Command {
    let jobs = match contender {
        READ_LOOP => return options.part("classic", &[READ, capture]),
        TCPDUMP => {
            let mut command = Command::new("tcpdump");
            command.args(["-r", capture, "--count", FILTER]);
            return command;
        }
        ONE_JOB => "1",
        _ => "2",
    };
    let mut command = Command::new(beebox);
    command.args(["filter", "--count", "-J", jobs, FILTER, capture]);
    command
}

fn race(
    options: &Options,
    beebox: &Path,
    size: &Size,
    capture: &str,
    progress: &mut Progress<'_>,
) -> Result<[Turns; 4], Failure> {
    fresh::succeed(command(READ_LOOP, options, beebox, capture), PURPOSE)?;
    let mut turns: [Turns; 4] = Default::default();
    let mut first: Option<(&str, u64)> = None;
    for turn in 1..=TURNS {
        progress(&format!("{}: turn {turn} of {TURNS}", size.workload));
        for (contender, turns) in CONTENDERS.into_iter().zip(&mut turns) {
            let usage = fresh::succeed(command(contender, options, beebox, capture), PURPOSE)?;
            turns.seconds.push(usage.wall.as_secs_f64());
            turns.megabytes.push(usage.peak_memory as f64 / 1e6);
            if contender == READ_LOOP {
                continue;
            }
            let found = count(&usage.stdout)?;
            let (right, expected) = *first.get_or_insert((contender, found));
            if found != expected {
                return Err(Failure::Process {
                    purpose: "counting packets",
                    said: format!(
                        "{right} counts {expected} packets and {contender} {found} in {}",
                        size.workload
                    ),
                });
            }
        }
    }
    Ok(turns)
}

/// The least value, with the spread of all.
fn best(values: &[f64]) -> Measured {
    Measured {
        value: values.iter().copied().fold(f64::INFINITY, f64::min),
        spread: Measured::median(values.to_vec()).spread,
    }
}

/// Ratio of the times of `one` and `other`, with the spread over the turns.
fn ratio(one: &Turns, other: &Turns) -> Measured {
    let turns = one.seconds.iter().zip(&other.seconds);
    Measured {
        value: best(&one.seconds).value / best(&other.seconds).value,
        spread: Measured::median(turns.map(|(one, other)| one / other).collect()).spread,
    }
}

/// The number that a command printed first.
fn count(stdout: &[u8]) -> Result<u64, Failure> {
    let text = String::from_utf8_lossy(stdout);
    let first = text.split_whitespace().next().unwrap_or_default();
    first.parse().map_err(|_| Failure::Process {
        purpose: "counting packets",
        said: format!("no number: {text:?}"),
    })
}

fn summarise(results: &[[Turns; 4]], report: &mut Report) {
    let ratios = |of: fn(&[Turns; 4]) -> Measured| results.iter().map(of);
    let by_value = |a: &Measured, b: &Measured| a.value.total_cmp(&b.value);
    let to_read = ratios(|[read_loop, one_job, ..]| ratio(one_job, read_loop)).max_by(by_value);
    let to_two_jobs = ratios(|[_, one_job, two_jobs, _]| ratio(one_job, two_jobs)).min_by(by_value);
    if let Some(to_read) = to_read {
        report.add_figure(
            "file_vs_read_loop",
            "time to filter a capture in one thread over a bare read loop's: the greater of 2 \
             packet sizes",
            to_read,
            Some(Target::AtMost(1.3)),
        );
    }
    for (size, [_, one_job, _, tcpdump]) in SIZES.iter().zip(results) {
        report.add_figure(
            format!("{}_packets_vs_tcpdump", size.name),
            format!("one thread's speed over tcpdump's, {} packets", size.name),
            ratio(tcpdump, one_job),
            Some(Target::AtLeast(size.faster_than_tcpdump)),
        );
    }
    if let Some(to_two_jobs) = to_two_jobs {
        report.add_figure(
            "two_jobs_vs_one",
            "two threads' speed over one's: the lesser of 2 packet sizes",
            to_two_jobs,
            Some(Target::AtLeast(1.6)),
        );
    }
}

/// Runs a part in a process of its own; `None` if the name is no part of this benchmark.
pub(super) fn part(words: &[&str]) -> Option<Result<(), Failure>> {
    match *words {
        [MAKE, name, path] => {
            let size = SIZES.iter().find(|size| size.name == name)?;
            Some(make(size.mix, path).map_err(|error| Failure::System("making a capture", error)))
        }
        [READ, path] => {
            Some(read(path).map_err(|error| Failure::System("reading a capture", error)))
        }
        _ => None,
    }
}

fn make(mix: Mix, path: &str) -> io::Result<()> {
    let file = File::create_new(path)?;
    captures::write(mix, Link::Ethernet, BYTES, 1, &file)?;
    // Else it would be written out while we measure.
    file.sync_all()
}

fn read(path: &str) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}
