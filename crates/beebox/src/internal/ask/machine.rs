//! A machine under QEMU that boots a kernel to the loader: emulated (TCG), without network and disks.
//!
//! The memory file system that the kernel unpacks at its start has two files, the loader and the plan.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{AskOptions, PROCESSORS};

/// The emulator.
const QEMU: &str = "qemu-system-x86_64";

/// Why a kernel does not answer.
#[derive(Debug)]
pub enum AskError {
    /// This build has no loader for the guest.
    NoLoader,
    /// There is no QEMU.
    NoQemu,
    /// QEMU does not start, or files for it cannot be written.
    System(io::Error),
    /// QEMU ended with an error of its own.
    Qemu(String),
    /// The machine ended, or its time was over, before it answered: the last lines of its console.
    NoAnswer {
        /// The time was over.
        is_late: bool,
        /// The console's last lines.
        console: String,
    },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NoLoader => f.write_str(
                "this build has no loader for x86-64 kernels: only those for x86-64 Linux have one",
            ),
            AskError::NoQemu => write!(f, "{QEMU} is not installed"),
            AskError::System(error) => write!(f, "{QEMU}: {error}"),
            AskError::Qemu(text) => write!(f, "{QEMU}: {text}"),
            AskError::NoAnswer { is_late, console } => {
                let what = match is_late {
                    true => "the kernel did not answer in time",
                    false => "the kernel ended without an answer",
                };
                match console.is_empty() {
                    true => write!(f, "{what}; its console is empty"),
                    false => write!(f, "{what}; its console ends: {console}"),
                }
            }
        }
    }
}

impl Error for AskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            AskError::System(error) => Some(error),
            AskError::NoLoader
            | AskError::NoQemu
            | AskError::Qemu(_)
            | AskError::NoAnswer { .. } => None,
        }
    }
}

/// Boots an image, has the plan executed, and returns what the loader wrote.
pub(super) fn run(image: &Path, plan: &[u8], options: &AskOptions) -> Result<Vec<u8>, AskError> {
    if sys::guest::LOADER.is_empty() {
        return Err(AskError::NoLoader);
    }
    let directory = Directory::new().map_err(AskError::System)?;
    let [initrd, console, output] =
        ["initrd", "console", "output"].map(|name| directory.0.join(name));
    fs::write(&initrd, archive(plan)).map_err(AskError::System)?;
    let file = |path: &Path| format!("file:{}", path.display());
    let mut command = Command::new(QEMU);
    command
        .args([
            "-accel",
            "tcg",
            "-cpu",
            "max",
            "-smp",
            &PROCESSORS.to_string(),
            "-m",
        ])
        .arg(format!("{}M", options.memory))
        .args([
            "-display",
            "none",
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
        ])
        .args(["-nic", "none", "-serial", &file(&console)])
        .args([
            "-debugcon",
            &file(&output),
            "-global",
            "isa-debugcon.iobase=0xe9",
        ])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(&initrd)
        // On a loaded host the check of timers may find that none of the emulated ones works.
        .args([
            "-append",
            "console=ttyS0 panic=-1 quiet loglevel=4 no5lvl no_timer_check",
        ]);
    let started = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut machine = started.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => AskError::NoQemu,
        _ => AskError::System(error),
    })?;
    let is_late = wait(&mut machine, options.limit).map_err(AskError::System)?;
    let written = fs::read(&output).unwrap_or_default();
    if written.starts_with(b"BXUP") {
        return Ok(written);
    }
    let mut errors = String::new();
    if let Some(stream) = &mut machine.stderr {
        // What it says is for a message only.
        let _ = io::Read::read_to_string(stream, &mut errors);
    }
    let console = fs::read(&console).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let errors = errors.trim();
    if console.trim().is_empty() && !errors.is_empty() {
        return Err(AskError::Qemu(
            errors.lines().next().unwrap_or_default().to_owned(),
        ));
    }
    let lines: Vec<&str> = console
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    Err(AskError::NoAnswer {
        is_late,
        console: last.join(" | "),
    })
}

/// Waits for the end of the machine, which is stopped when its time is over; true then.
fn wait(machine: &mut Child, limit: Duration) -> io::Result<bool> {
    const STEP: Duration = Duration::from_millis(10);
    let end = Instant::now() + limit;
    while machine.try_wait()?.is_none() {
        if Instant::now() > end {
            machine.kill()?;
            machine.wait()?;
            return Ok(true);
        }
        thread::sleep(STEP);
    }
    Ok(false)
}

/// A directory for the files of one machine, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Directory> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let time = std::time::SystemTime::now();
        let time = time
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("beebox-ask-{}-{count}-{}", process::id(), time.as_nanos());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An archive of the loader and the plan in the format newc of cpio, which the kernel unpacks.
fn archive(plan: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let files: [(&str, u32, &[u8]); 4] = [
        ("dev", 0o40755, &[]),
        ("init", 0o100_755, sys::guest::LOADER),
        ("plan", 0o100_644, plan),
        ("TRAILER!!!", 0, &[]),
    ];
    for (number, (name, mode, data)) in files.into_iter().enumerate() {
        let (len, name_len) = (data.len() as u32, name.len() as u32 + 1);
        let fields = [
            number as u32 + 1,
            mode,
            0,
            0,
            1,
            0,
            len,
            0,
            0,
            0,
            0,
            name_len,
            0,
        ];
        out.extend(b"070701");
        for field in fields {
            out.extend(format!("{field:08x}").bytes());
        }
        out.extend(name.bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(data);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}
