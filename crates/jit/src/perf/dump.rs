//! The jitdump format, `jit-PID.dump`: code, load times and source lines.
//!
//! A file header is followed by records, all in this machine's byte order:
//!
//! | file header | record header | code load | debug information |
//! |---|---|---|---|
//! | magic `JiTD` | kind: u32 | process, thread: u32 | address: u64 |
//! | version, size, machine, pad, process: u32 | size: u32 | address, address, size, number: u64 | count: u64 |
//! | time, flags: u64 | time: u64 | name, 0, the code | for each line: address: u64, line, 0: u32, file, 0 |
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`, hence `perf record -k mono`. The lines of a
//! program come before its code. perf finds the file by an executable mapping of one of its
//! pages, which is never run.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use isa::ebpf::Insn;

use super::{CodeRegion, Line, plain};

const MAGIC: u32 = u32::from_be_bytes(*b"JiTD");
const VERSION: u32 = 1;
const FILE_HEADER_BYTES: u32 = 40;
const RECORD_HEADER_BYTES: u32 = 16;

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = libc::EM_X86_64 as u32;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = libc::EM_AARCH64 as u32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = libc::EM_NONE as u32;

/// Record types.
const CODE_LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;
const CODE_CLOSE: u32 = 3;

/// A jitdump file of this process.
#[derive(Debug)]
pub struct JitDump {
    path: PathBuf,
    _marker: Marker,
    written: Mutex<Written>,
    /// Number of listings written beside it.
    listings: AtomicU64,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// Number of programs in it.
    programs: u64,
}

impl JitDump {
    /// Creates `jit-PID.dump` in a directory and replaces one that an earlier process with
    /// the same PID left. It is an error if the file system is mounted `noexec`, because
    /// perf could not find the file.
    pub fn create(directory: &Path) -> io::Result<JitDump> {
        let directory = directory.canonicalize()?;
        let path = directory.join(format!("jit-{}.dump", std::process::id()));
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(&path)
        };
        let mut file = match open() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                open()?
            }
            other => other?,
        };
        let mut header = Vec::new();
        let words = [
            MAGIC,
            VERSION,
            FILE_HEADER_BYTES,
            MACHINE,
            0,
            std::process::id(),
        ];
        put_words(&mut header, &words);
        put_longs(&mut header, &[now(), 0]);
        file.write_all(&header)?;
        Ok(JitDump {
            _marker: Marker::map(&file)?,
            path,
            written: Mutex::new(Written { file, programs: 0 }),
            listings: AtomicU64::new(0),
        })
    }

    /// Adds a program.
    pub fn add(&self, code: &CodeRegion<'_>) -> io::Result<()> {
        let mut record = Vec::new();
        let time = now();
        if !code.lines.is_empty() {
            begin(&mut record, DEBUG_INFO, time);
            put_longs(&mut record, &[code.address, code.lines.len() as u64]);
            for line in code.lines {
                put_longs(&mut record, &[code.address + line.offset as u64]);
                put_words(&mut record, &[line.line, 0]);
                put_name(&mut record, line.file);
            }
            end(&mut record, 0)?;
        }
        let start = record.len();
        begin(&mut record, CODE_LOAD, time);
        // SAFETY: the call takes no pointers.
        let thread = unsafe { libc::gettid() };
        put_words(&mut record, &[std::process::id(), thread as u32]);
        let size = code.bytes.len() as u64;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        put_longs(
            &mut record,
            &[code.address, code.address, size, written.programs],
        );
        put_name(&mut record, code.name);
        record.extend_from_slice(code.bytes);
        end(&mut record, start)?;
        written.file.write_all(&record)?;
        written.programs += 1;
        Ok(())
    }

    /// Adds a program with its instructions as the source: they are written to a listing
    /// beside the dump, one line for each slot. `pieces` are those of the code with their
    /// slots.
    pub fn add_program(
        &self,
        code: &CodeRegion<'_>,
        pieces: impl Iterator<Item = (Option<usize>, Range<usize>)>,
        insns: &[Insn],
    ) -> io::Result<()> {
        let number = self.listings.fetch_add(1, Relaxed);
        let file = format!("jit-{}-{number}.bpf", std::process::id());
        let path = self.path.with_file_name(file);
        let line = |insn: &Insn| match insn {
            Insn::Imm64High => "\n".to_owned(),
            insn => format!("{insn}\n"),
        };
        std::fs::write(&path, insns.iter().map(line).collect::<String>())?;
        let file = path.to_string_lossy();
        let lines: Vec<Line<'_>> = pieces
            .filter_map(|(slot, range)| {
                Some(Line {
                    offset: range.start,
                    file: &file,
                    line: slot? as u32 + 1,
                })
            })
            .collect();
        self.add(&CodeRegion {
            lines: &lines,
            ..*code
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JitDump {
    fn drop(&mut self) {
        let mut record = Vec::new();
        begin(&mut record, CODE_CLOSE, now());
        let written = self.written.get_mut();
        let written = written.unwrap_or_else(PoisonError::into_inner);
        // Without the last record the file is still readable.
        let _ = end(&mut record, 0).and_then(|()| written.file.write_all(&record));
    }
}

/// Writes the header of a record; [`end`] sets its size.
fn begin(record: &mut Vec<u8>, kind: u32, time: u64) {
    put_words(record, &[kind, RECORD_HEADER_BYTES]);
    put_longs(record, &[time]);
}

/// Sets the size of the record that begins at `start` and ends here.
fn end(record: &mut [u8], start: usize) -> io::Result<()> {
    let size = u32::try_from(record.len() - start).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the program is too large for a jitdump record",
        )
    })?;
    record[start + 4..start + 8].copy_from_slice(&size.to_ne_bytes());
    Ok(())
}

fn put_words(record: &mut Vec<u8>, words: &[u32]) {
    words
        .iter()
        .for_each(|word| record.extend(word.to_ne_bytes()));
}

fn put_longs(record: &mut Vec<u8>, longs: &[u64]) {
    longs
        .iter()
        .for_each(|long| record.extend(long.to_ne_bytes()));
}

fn put_name(record: &mut Vec<u8>, name: &str) {
    record.extend_from_slice(plain(name).as_bytes());
    record.push(0);
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a `timespec`; Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The executable mapping by which perf finds the file.
#[derive(Debug)]
struct Marker(NonNull<libc::c_void>);

/// One byte: the kernel maps a whole page.
const MARKER_BYTES: usize = 1;

// SAFETY: nothing reads or writes through the address.
unsafe impl Send for Marker {}
// SAFETY: as above.
unsafe impl Sync for Marker {}

impl Marker {
    fn map(file: &File) -> io::Result<Marker> {
        // SAFETY: a new mapping that replaces none and is never accessed.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                MARKER_BYTES,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(Marker(start)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: our mapping, which is never accessed.
        unsafe { libc::munmap(self.0.as_ptr(), MARKER_BYTES) };
    }
}
