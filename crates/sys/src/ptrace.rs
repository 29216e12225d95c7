//! ptrace(2): the seccomp filters of a running process.

use std::ptr;

use crate::Errno;
use isa::classic::SockFilter;

/// `PTRACE_SECCOMP_GET_FILTER` (linux/ptrace.h), not named by libc.
const GET_FILTER: Request = 0x420c;

/// Seccomp filters of the main thread of a process, in the order of their installation.
///
/// Stops the process while it reads them. Needs ptrace access to the process and
/// CAP_SYS_ADMIN; the caller must not be under a filter itself. EINVAL: the process has
/// no filter.
pub fn seccomp_filters(pid: i32) -> Result<Vec<Vec<SockFilter>>, Errno> {
    let stopped = Stopped::new(pid)?;
    let mut filters = Vec::new();
    // Linux counts from the oldest (ptrace(2) says from the newest).
    loop {
        match stopped.filter(filters.len()) {
            Ok(filter) => filters.push(filter),
            Err(Errno(libc::ENOENT)) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(filters)
}

/// A traced and stopped process; detached when dropped.
struct Stopped {
    pid: i32,
}

impl Stopped {
    fn new(pid: i32) -> Result<Stopped, Errno> {
        request(libc::PTRACE_SEIZE, pid, 0, ptr::null_mut())?;
        // From here on, dropping `stopped` detaches.
        let seized = Stopped { pid };
        request(libc::PTRACE_INTERRUPT, pid, 0, ptr::null_mut())?;
        let mut status = 0;
        // SAFETY: `status` is ours to write.
        Errno::check(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) })?;
        if libc::WIFSTOPPED(status) {
            Ok(seized)
        } else {
            // The process ended before it stopped.
            Err(Errno(libc::ESRCH))
        }
    }

    fn filter(&self, index: usize) -> Result<Vec<SockFilter>, Errno> {
        let count = request(GET_FILTER, self.pid, index, ptr::null_mut())?;
        let mut filter = vec![SockFilter::default(); count];
        let room = filter.as_mut_ptr().cast();
        let copied = request(GET_FILTER, self.pid, index, room)?;
        filter.truncate(copied);
        Ok(filter)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Detaching fails if the process ended, which needs no action.
        let _ = request(libc::PTRACE_DETACH, self.pid, 0, ptr::null_mut());
    }
}

/// The type of requests in the C library's declaration of ptrace(2).
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(
    what: Request,
    pid: i32,
    address: usize,
    data: *mut libc::c_void,
) -> Result<usize, Errno> {
    // SAFETY: of the requests made here only GET_FILTER writes to `data`, and it writes
    // as many records as it returned before, for which the caller allocated memory (a
    // filter does not change while its process is stopped).
    let answer = unsafe { libc::ptrace(what, pid, address, data) };
    usize::try_from(answer).map_err(|_| Errno::last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_without_filters_and_a_missing_process_are_errors() {
        assert_eq!(seccomp_filters(i32::MAX).unwrap_err(), Errno(libc::ESRCH));
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answer = seccomp_filters(child.id() as i32);
        // EACCES or EPERM without the privilege.
        let answers = [libc::EINVAL, libc::EACCES, libc::EPERM];
        assert!(answers.contains(&answer.unwrap_err().0));
        // The process continues.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        let mut echo = [0; 1];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut echo)
            .unwrap();
        assert_eq!(&echo, b"x");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
