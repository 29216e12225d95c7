//! Names of arguments of system calls that are often traced: the kernel's types have them for few.

/// Calls with the names that Linux has for their arguments.
const ARGUMENTS: &[(&str, &str)] = &[
    ("accept", "fd upeer_sockaddr upeer_addrlen"),
    ("accept4", "fd upeer_sockaddr upeer_addrlen flags"),
    ("bind", "fd umyaddr addrlen"),
    ("bpf", "cmd uattr size"),
    ("chdir", "filename"),
    ("chmod", "filename mode"),
    ("chown", "filename user group"),
    ("chroot", "filename"),
    ("clock_nanosleep", "which_clock flags rqtp rmtp"),
    ("close", "fd"),
    ("connect", "fd uservaddr addrlen"),
    ("creat", "pathname mode"),
    ("dup", "fildes"),
    ("dup2", "oldfd newfd"),
    ("dup3", "oldfd newfd flags"),
    ("epoll_wait", "epfd events maxevents timeout"),
    ("execve", "filename argv envp"),
    ("execveat", "fd filename argv envp flags"),
    ("exit", "error_code"),
    ("exit_group", "error_code"),
    ("faccessat", "dfd filename mode"),
    ("fchmodat", "dfd filename mode"),
    ("fchownat", "dfd filename user group flag"),
    ("fcntl", "fd cmd arg"),
    ("fdatasync", "fd"),
    ("finit_module", "fd uargs flags"),
    ("fsync", "fd"),
    ("ftruncate", "fd length"),
    ("futex", "uaddr op val utime uaddr2 val3"),
    ("getdents64", "fd dirent count"),
    ("ioctl", "fd cmd arg"),
    ("kill", "pid sig"),
    ("link", "oldname newname"),
    ("linkat", "olddfd oldname newdfd newname flags"),
    ("listen", "fd backlog"),
    ("lseek", "fd offset whence"),
    ("mkdir", "pathname mode"),
    ("mkdirat", "dfd pathname mode"),
    ("mmap", "addr len prot flags fd off"),
    ("mount", "dev_name dir_name type flags data"),
    ("mprotect", "start len prot"),
    ("munmap", "addr len"),
    ("nanosleep", "rqtp rmtp"),
    ("open", "filename flags mode"),
    ("openat", "dfd filename flags mode"),
    ("openat2", "dfd filename how usize"),
    ("pipe2", "fildes flags"),
    ("poll", "ufds nfds timeout_msecs"),
    ("pread64", "fd buf count pos"),
    ("ptrace", "request pid addr data"),
    ("pwrite64", "fd buf count pos"),
    ("read", "fd buf count"),
    ("readlinkat", "dfd pathname buf bufsiz"),
    ("readv", "fd vec vlen"),
    ("recvfrom", "fd ubuf size flags addr addr_len"),
    ("recvmsg", "fd msg flags"),
    ("rename", "oldname newname"),
    ("renameat", "olddfd oldname newdfd newname"),
    ("renameat2", "olddfd oldname newdfd newname flags"),
    ("rmdir", "pathname"),
    ("sendmsg", "fd msg flags"),
    ("sendto", "fd buff len flags addr addr_len"),
    ("setgid", "gid"),
    ("setuid", "uid"),
    ("shutdown", "fd how"),
    ("socket", "family type protocol"),
    ("statx", "dfd filename flags mask buffer"),
    ("symlink", "oldname newname"),
    ("symlinkat", "oldname newdfd newname"),
    ("tgkill", "tgid pid sig"),
    ("tkill", "pid sig"),
    ("truncate", "path length"),
    ("umount", "name flags"),
    ("unlink", "pathname"),
    ("unlinkat", "dfd pathname flag"),
    ("write", "fd buf count"),
    ("writev", "fd vec vlen"),
];

/// The names of the arguments of a system call, if it is known.
pub(super) fn arguments(call: &str) -> Option<Vec<&'static str>> {
    let place = ARGUMENTS.binary_search_by_key(&call, |(name, _)| name);
    Some(ARGUMENTS[place.ok()?].1.split(' ').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_in_order() {
        assert!(ARGUMENTS.is_sorted_by_key(|(name, _)| name));
        assert_eq!(
            arguments("openat").as_deref(),
            Some(&["dfd", "filename", "flags", "mode"][..])
        );
        assert_eq!(arguments("open_by_magic"), None);
    }
}
