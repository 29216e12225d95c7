//! ptrace(2): the seccomp filters of a running process.

use std::ptr;

use crate::Errno;
use isa::classic::SockFilter;

/// `PTRACE_SECCOMP_GET_FILTER` (linux/ptrace.h), not named by libc.
const GET_FILTER: libc::c_uint = 0x420c;

/// The filters of a process's main thread in the order of their installation.
///
/// The process is stopped while they are read. This needs ptrace access to the process
/// and CAP_SYS_ADMIN, and the caller must not be under a filter itself. EINVAL: the
/// process has no filter.
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

/// A traced and stopped process. Dropping it detaches.
struct Stopped {
    pid: i32,
}

impl Stopped {
    fn new(pid: i32) -> Result<Stopped, Errno> {
        request(libc::PTRACE_SEIZE, pid, 0, ptr::null_mut())?;
        // From here on it is ours to let go.
        let seized = Stopped { pid };
        request(libc::PTRACE_INTERRUPT, pid, 0, ptr::null_mut())?;
        let mut status = 0;
        // SAFETY: `status` is ours to write.
        Errno::check(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) })?;
        if libc::WIFSTOPPED(status) {
            Ok(seized)
        } else {
            // It died meanwhile.
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
        // A process that died needs no letting go.
        let _ = request(libc::PTRACE_DETACH, self.pid, 0, ptr::null_mut());
    }
}

fn request(
    what: libc::c_uint,
    pid: i32,
    address: usize,
    data: *mut libc::c_void,
) -> Result<usize, Errno> {
    // SAFETY: of the requests made here only GET_FILTER writes to `data`, and
    // writes as many records as it answered before: those that the caller made
    // room for (a filter does not change while its process stands still).
    let answer = unsafe { libc::ptrace(what, pid, address, data) };
    usize::try_from(answer).map_err(|_| Errno::last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_without_filters_or_none_says_so() {
        assert_eq!(seccomp_filters(i32::MAX).unwrap_err(), Errno(libc::ESRCH));
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answer = seccomp_filters(child.id() as i32);
        // EACCES or EPERM where we may not ask.
        let answers = [libc::EINVAL, libc::EACCES, libc::EPERM];
        assert!(answers.contains(&answer.unwrap_err().0));
        // It runs on.
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
