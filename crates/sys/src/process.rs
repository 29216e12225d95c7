//! Resources: time and memory of a child process, time of a thread, free space on a disk.

use std::ffi::CString;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Exit status, output and resources of a child process.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Exit status.
    pub status: ExitStatus,
    /// Bytes written to standard output.
    pub stdout: Vec<u8>,
    /// Time from its start to its end.
    pub wall: Duration,
    /// Processor time, its own and the system's for it.
    pub cpu: Duration,
    /// Peak resident memory in bytes. Linux includes what the parent had resident when
    /// it started the child, so a parent that measures should be small.
    pub peak_memory: u64,
}

/// Runs a command to its end, without input and with standard error discarded.
pub fn measure(command: &mut Command) -> io::Result<Usage> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut stdout = Vec::new();
    if let Some(pipe) = &mut child.stdout {
        pipe.read_to_end(&mut stdout)?;
    }
    let pid = child.id() as libc::pid_t;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: both pointers are to storage of the right type. The child belongs to this
    // function and is waited for here only: `Child` does not wait when it is dropped.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(io::Error::last_os_error());
    }
    let wall = start.elapsed();
    // SAFETY: a successful wait4 fills the structure.
    let usage = unsafe { usage.assume_init() };
    Ok(Usage {
        status: ExitStatus::from_raw(status),
        stdout,
        wall,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        peak_memory: usage.ru_maxrss as u64 * 1024,
    })
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// Processor time of the calling thread, which waiting for a processor does not add to.
pub fn thread_time() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to storage of the right type.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr()) };
    assert_eq!(failed, 0, "Linux has this clock for every thread");
    // SAFETY: a successful clock_gettime fills the structure.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Most bytes of memory that this process has had at one time.
pub fn peak_memory() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to storage of the right type.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(failed, 0, "Linux has the usage of every process");
    // SAFETY: a successful getrusage fills the structure.
    let usage = unsafe { usage.assume_init() };
    usage.ru_maxrss as u64 * 1024
}

/// Free bytes of the file system of a directory, for an unprivileged user.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let directory = CString::new(directory.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path is a C string, and the pointer is to storage of the right type.
    if unsafe { libc::statvfs(directory.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a successful statvfs fills the structure.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail * found.f_frsize)
}

/// The effective user of this process.
pub fn effective_user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_no_processor_time() {
        let began = thread_time();
        std::thread::sleep(Duration::from_millis(200));
        assert!(thread_time() - began < Duration::from_millis(100));
        while thread_time() - began < Duration::from_millis(10) {}
    }

    #[test]
    fn a_child_is_measured() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo some words; echo others >&2; sleep 0.05; exit 3"]);
        let usage = measure(&mut shell).unwrap();
        assert_eq!(usage.status.code(), Some(3));
        assert_eq!(usage.stdout, b"some words\n");
        assert!(usage.wall >= Duration::from_millis(50));
        assert!(usage.cpu > Duration::ZERO && usage.cpu < usage.wall);
        assert!(usage.peak_memory > 100_000, "{}", usage.peak_memory);
    }

    #[test]
    fn space_is_found_where_there_is_a_directory() {
        assert!(free_space(&std::env::temp_dir()).unwrap() > 0);
        assert!(free_space(Path::new("/no/such/place")).is_err());
    }
}
