//! seccomp(2) in a child process: installs filters, makes system calls and reports their
//! outcomes.
//!
//! The child reports through shared memory, because the filters under test may forbid
//! every system call. After fork it takes no lock of the parent and does not allocate.

use crate::Errno;
use isa::classic::SockFilter;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// System call convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    /// `syscall` on x86-64 (with bit 30 of the number: x32).
    X86_64,
    /// `int 0x80`: 32-bit number and arguments.
    I386,
}

/// System call to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// System call convention.
    pub convention: Convention,
    /// System call number.
    pub nr: i32,
    /// Arguments.
    pub args: [u64; 6],
}

/// Outcome of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call returned this value; errors are negative.
    Returned(i64),
    /// The call raised SIGSYS with these fields.
    Trapped {
        /// `si_errno`: the filter's data.
        data: i32,
        /// `si_syscall`.
        nr: i32,
        /// `si_arch`.
        arch: u32,
    },
    /// The call killed the process.
    Killed {
        /// Number of the signal.
        signal: i32,
    },
    /// The process was dead before the call.
    NotMade,
}

/// Results of the filters and outcomes of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Result of installing each filter, up to the death of the process.
    pub installed: Vec<Result<(), Errno>>,
    /// Outcome of each call.
    pub outcomes: Vec<Outcome>,
}

/// Installs filters one after the other in a child process, continuing after a rejected
/// one, then makes the calls until one of them kills the child.
///
/// The filters must allow `exit_group` and `rt_sigreturn`, which the child needs to exit
/// and to return from its signal handler.
pub fn run(filters: &[&[SockFilter]], calls: &[Call]) -> Result<Answer, Errno> {
    let board = Board::new(filters.len(), calls.len())?;
    // SAFETY: the child runs `child` only, which allocates nothing and takes no
    // lock, so the state of the parent's other threads does not matter to it.
    let pid = Errno::check(unsafe { libc::fork() })?;
    if pid == 0 {
        child(&board, filters, calls);
    }
    let mut status = 0;
    // SAFETY: `status` is ours to write.
    Errno::check(unsafe { libc::waitpid(pid, &raw mut status, 0) })?;
    Ok(board.answer(status))
}

/// Instruction pointer that filters see in a call of this convention.
pub fn instruction_pointer(convention: Convention) -> u64 {
    // A number that no architecture uses: the kernel answers ENOSYS.
    let call = Call {
        convention,
        nr: 0x3fff_0000,
        args: [0; 6],
    };
    make(&call).1
}

/// Memory shared between parent and child: a word for each filter (its errno plus
/// one), then five for each call (state, returned value, and SIGSYS's fields).
struct Board {
    words: *mut AtomicU64,
    filters: usize,
    calls: usize,
}

const WORDS_PER_CALL: usize = 5;
const MADE: u64 = 1;
const RETURNED: u64 = 2;
const TRAPPED: u64 = 3;

impl Board {
    fn new(filters: usize, calls: usize) -> Result<Board, Errno> {
        let len = Board::len(filters, calls);
        // SAFETY: a fresh anonymous mapping collides with nothing.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len * size_of::<AtomicU64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Board {
            words: address.cast(),
            filters,
            calls,
        })
    }

    fn len(filters: usize, calls: usize) -> usize {
        filters + calls * WORDS_PER_CALL + 1
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `new` mapped this many words, zeroed and page-aligned, and they
        // live until drop; atomics may be shared with the child.
        unsafe { slice::from_raw_parts(self.words, Board::len(self.filters, self.calls)) }
    }

    fn filter(&self, number: usize) -> &AtomicU64 {
        &self.words()[number]
    }

    fn call(&self, number: usize) -> &[AtomicU64] {
        let start = self.filters + number * WORDS_PER_CALL;
        &self.words()[start..start + WORDS_PER_CALL]
    }

    fn answer(&self, status: libc::c_int) -> Answer {
        let installed = (0..self.filters)
            .map(|n| self.filter(n).load(Ordering::SeqCst))
            .take_while(|&word| word != 0)
            .map(|word| match word as i32 - 1 {
                0 => Ok(()),
                errno => Err(Errno(errno)),
            })
            .collect();
        let signal = if libc::WIFSIGNALED(status) {
            libc::WTERMSIG(status)
        } else {
            0
        };
        let outcome = |number| {
            let word = |n: usize| self.call(number)[n].load(Ordering::SeqCst);
            match word(0) {
                RETURNED => Outcome::Returned(word(1) as i64),
                TRAPPED => Outcome::Trapped {
                    data: word(2) as i32,
                    nr: word(3) as i32,
                    arch: word(4) as u32,
                },
                MADE => Outcome::Killed { signal },
                _ => Outcome::NotMade,
            }
        };
        Answer {
            installed,
            outcomes: (0..self.calls).map(outcome).collect(),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let len = Board::len(self.filters, self.calls) * size_of::<AtomicU64>();
        // SAFETY: `new` made this mapping, and `self` is its only owner.
        unsafe { libc::munmap(self.words.cast(), len) };
    }
}

/// The call that the child is making, for its signal handler.
static CURRENT: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

fn child(board: &Board, filters: &[&[SockFilter]], calls: &[Call]) -> ! {
    prepare_to_trap();
    for (number, filter) in filters.iter().enumerate() {
        let errno = match install(filter) {
            Ok(()) => 0,
            Err(Errno(errno)) => errno,
        };
        let word = errno as u64 + 1;
        board.filter(number).store(word, Ordering::SeqCst);
    }
    for (number, call) in calls.iter().enumerate() {
        let words = board.call(number);
        CURRENT.store(words.as_ptr().cast_mut(), Ordering::SeqCst);
        words[0].store(MADE, Ordering::SeqCst);
        let (value, _) = make(call);
        if words[0].load(Ordering::SeqCst) == MADE {
            words[1].store(value as u64, Ordering::SeqCst);
            words[0].store(RETURNED, Ordering::SeqCst);
        }
    }
    // SAFETY: ends the process without running exit handlers of the parent.
    unsafe { libc::_exit(0) }
}

/// Sets no core files, no new privileges (which permits unprivileged filters), and a
/// handler of SIGSYS.
fn prepare_to_trap() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is only read; prctl with this option takes no pointers;
    // the action is a zeroed plain structure with a handler of the signature that
    // SA_SIGINFO requires. Failures appear as failures of the installations.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(_, *mut libc::siginfo_t, _) = on_sigsys;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSYS, &action, ptr::null_mut());
    }
}

/// The part of siginfo_t that SIGSYS fills in, on every 64-bit Linux.
#[repr(C)]
struct SigsysInfo {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    call_address: u64,
    syscall: i32,
    arch: u32,
}

extern "C" fn on_sigsys(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let words = CURRENT.load(Ordering::SeqCst);
    if words.is_null() {
        return;
    }
    // SAFETY: the kernel passes a siginfo_t, whose beginning this is for SIGSYS;
    // CURRENT points to the words of a call on the board, which outlives the child.
    let (info, words) = unsafe {
        (
            info.cast::<SigsysInfo>().read(),
            slice::from_raw_parts(words, WORDS_PER_CALL),
        )
    };
    words[2].store(info.errno as u64, Ordering::SeqCst);
    words[3].store(info.syscall as u64, Ordering::SeqCst);
    words[4].store(u64::from(info.arch), Ordering::SeqCst);
    words[0].store(TRAPPED, Ordering::SeqCst);
}

fn install(filter: &[SockFilter]) -> Result<(), Errno> {
    let len = u16::try_from(filter.len()).map_err(|_| Errno(libc::EINVAL))?;
    let request = libc::sock_fprog {
        len,
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `SockFilter` has the layout of struct sock_filter, `request` names
    // `len` of them, and the kernel only reads.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const request,
        )
    };
    Errno::check(answer as libc::c_int).map(|_| ())
}

/// Makes a system call; returns its value and the address of the next instruction.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn make(call: &Call) -> (i64, u64) {
    use std::arch::asm;

    let (value, ip): (i64, u64);
    let [a, b, c, d, e, f] = call.args;
    match call.convention {
        // SAFETY: the number is either made in a child process on purpose or beyond
        // every system call; the clobbers are those of `syscall`.
        Convention::X86_64 => unsafe {
            asm!(
                "lea r12, [rip + 2f]",
                "syscall",
                "2:",
                inout("rax") i64::from(call.nr) => value,
                in("rdi") a,
                in("rsi") b,
                in("rdx") c,
                in("r10") d,
                in("r8") e,
                in("r9") f,
                out("r12") ip,
                out("rcx") _,
                out("r11") _,
            );
        },
        // SAFETY: as above; `int 0x80` clears r8 to r11. rbx and rbp cannot be
        // operands, so they are passed in r13 and r14, saved and restored.
        Convention::I386 => unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "mov rbx, r13",
                "mov rbp, r14",
                "lea r12, [rip + 2f]",
                "int 0x80",
                "2:",
                "pop rbx",
                "pop rbp",
                inout("rax") u64::from(call.nr as u32) => value,
                in("r13") a,
                in("rcx") b,
                in("rdx") c,
                in("rsi") d,
                in("rdi") e,
                in("r14") f,
                out("r12") ip,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r11") _,
            );
        },
    }
    (value, ip)
}

/// Fails with ENOSYS: system calls are implemented for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
fn make(_: &Call) -> (i64, u64) {
    (-i64::from(libc::ENOSYS), 0)
}
