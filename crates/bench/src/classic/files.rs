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
use std::path::{Path, PathBuf};
use std::process::Command;

use sys::libpcap::Libpcap;
use sys::process::{self, Usage};

use crate::captures::{self, Link, Mix};
use crate::report::{Report, Target, Unit, middle};
use crate::{Failure, Options, Progress};

const BYTES: u64 = 1_000_000_000;
const FILTER: &str = "port 22";
const TURNS: u32 = 7;

const READ_LOOP: &str = "read loop";
const ONE_JOB: &str = "beebox -j 1";
const TWO_JOBS: &str = "beebox -j 2";
pub(super) const TCPDUMP: &str = "tcpdump";

// Parts that run in processes of their own.
const MAKE: &str = "make";
const READ: &str = "read";

/// A mix of packets, and how much faster than tcpdump we want to be on it.
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
    if let Some(obstacle) = obstacle() {
        report
            .notes
            .push(format!("Whole processes were not measured: {obstacle}."));
        return Ok(());
    }
    let directory =
        Scratch::new().map_err(|error| Failure::System("a scratch directory", error))?;
    for size in SIZES {
        progress(&format!("making a capture: {}", size.workload));
        let capture = directory.0.join(format!("{}.pcap", size.name));
        let path = capture.display().to_string();
        succeed(options.part("classic", &[MAKE, size.name, &path]))?;
        race(options, size, &capture, progress, report)?;
        fs::remove_file(&capture).map_err(|error| Failure::System("a capture of ours", error))?;
    }
    summarise(report);
    report.notes.push(format!(
        "Whole processes count the packets that match `{FILTER}` in a capture of 1 GB (small: 276 \
         bytes a packet on average, large: 784) in the page cache; the read loop only reads the \
         file, 256 KiB at a time."
    ));
    Ok(())
}

/// What stands in the way, if anything.
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

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("beebox-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed here can't be reported here either.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What one command needed in each of its turns.
#[derive(Default)]
struct Turns {
    seconds: Vec<f64>,
    megabytes: Vec<f64>,
}

fn race(
    options: &Options,
    size: &Size,
    capture: &Path,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let path = capture.display().to_string();
    let beebox = |jobs: &str| {
        let mut command = Command::new(&options.beebox);
        command
            .args(["filter", "--count", "-j", jobs, FILTER])
            .arg(capture);
        command
    };
    let tcpdump = || {
        let mut command = Command::new("tcpdump");
        command.arg("-r").arg(capture).args(["--count", FILTER]);
        command
    };
    let contenders: [(&str, &dyn Fn() -> Command); 4] = [
        (READ_LOOP, &|| options.part("classic", &[READ, &path])),
        (ONE_JOB, &|| beebox("1")),
        (TWO_JOBS, &|| beebox("2")),
        (TCPDUMP, &tcpdump),
    ];
    succeed(options.part("classic", &[READ, &path]))?;
    let mut turns: [Turns; 4] = Default::default();
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for turn in 0..TURNS {
        progress(&format!("{}: turn {} of {TURNS}", size.workload, turn + 1));
        for ((engine, command), turns) in contenders.iter().zip(&mut turns) {
            let usage = succeed(command())?;
            turns.seconds.push(usage.wall.as_secs_f64());
            turns.megabytes.push(usage.peak_memory as f64 / 1e6);
            if *engine != READ_LOOP {
                counts.push((engine, count(&usage.stdout)?));
            }
        }
    }
    if let Some(&(engine, found)) = counts.iter().find(|(_, found)| *found != counts[0].1) {
        let (right, expected) = counts[0];
        let said = format!(
            "{right} counts {expected} packets and {engine} {found} in {}",
            size.workload
        );
        return Err(Failure::Process {
            purpose: "counting packets",
            said,
        });
    }
    for ((engine, _), turns) in contenders.into_iter().zip(turns) {
        report.add_row(size.workload, engine, Unit::Seconds, least(&turns.seconds));
        set_spread(report, turns.seconds);
        report.add_row(
            size.workload,
            engine,
            Unit::Megabytes,
            least(&turns.megabytes),
        );
        set_spread(report, turns.megabytes);
    }
    Ok(())
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn set_spread(report: &mut Report, values: Vec<f64>) {
    if let Some(row) = report.rows.last_mut() {
        row.spread = middle(values).1;
    }
}

/// Runs a command that must succeed.
fn succeed(mut command: Command) -> Result<Usage, Failure> {
    const PURPOSE: &str = "measuring whole processes";
    let usage = process::measure(&mut command).map_err(|error| Failure::System(PURPOSE, error))?;
    if usage.status.success() {
        Ok(usage)
    } else {
        let said = format!("{command:?} ended with {}", usage.status);
        Err(Failure::Process {
            purpose: PURPOSE,
            said,
        })
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

fn summarise(report: &mut Report) {
    let workloads = || SIZES.iter().map(|size| size.workload);
    let least = |report: &Report, engine, other| {
        report.least_speed_up(workloads(), engine, other, Unit::Seconds)
    };
    if let Some(speed) = least(report, ONE_JOB, READ_LOOP) {
        report.add_figure(
            "file_vs_read_loop",
            "time to filter a capture in one thread over a bare read loop's: the greater of 2 \
             packet sizes",
            1.0 / speed,
            Some(Target::AtMost(1.3)),
        );
    }
    for size in SIZES {
        if let Some(speed) = report.speed_up(size.workload, ONE_JOB, TCPDUMP, Unit::Seconds) {
            report.add_figure(
                format!("{}_packets_vs_tcpdump", size.name),
                format!("one thread's speed over tcpdump's, {} packets", size.name),
                speed,
                Some(Target::AtLeast(size.faster_than_tcpdump)),
            );
        }
    }
    if let Some(speed) = least(report, TWO_JOBS, ONE_JOB) {
        report.add_figure(
            "two_jobs_vs_one",
            "two threads' speed over one's: the lesser of 2 packet sizes",
            speed,
            Some(Target::AtLeast(1.6)),
        );
    }
}

/// What runs in a process of its own; `None` if it is not one of ours.
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
