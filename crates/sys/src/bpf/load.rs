//! BPF_PROG_LOAD of programs that can be run on given data, and refusals with their
//! reason.

use super::Program;
use super::prog_load::{ProgLoad, prog_load};
use crate::Errno;
use isa::ebpf::RawInsn;
use std::fmt;

/// The kinds of programs that can be run on given data, by the kernel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ProgramType {
    /// Sees a packet through `struct __sk_buff`; may load from it by the legacy
    /// instructions only.
    SocketFilter = 1,
    /// A traffic classifier: `struct __sk_buff` with direct packet access.
    SchedCls = 3,
    /// `struct xdp_md` with direct packet access.
    Xdp = 6,
    /// Called by user space with a context of its own making.
    Syscall = 31,
}

/// How much the verifier says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Silent = 0,
    /// The path that led to the refusal.
    Path = 1,
    /// Every instruction that it looked at.
    Everything = 2,
    /// The numbers at the end.
    Statistics = 4,
}

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// What it is for.
    pub kind: ProgramType,
    /// Its instructions.
    pub insns: &'a [RawInsn],
    /// What the verifier is to say.
    pub log_level: LogLevel,
    /// Bytes of room for what it says. Where it says more, the last of it is kept
    /// and the answer is ENOSPC. None is needed for [`LogLevel::Silent`].
    pub log_bytes: usize,
    /// Bits of BPF_F_*, such as [`Load::TEST_STATE_FREQ`].
    pub flags: u32,
}

impl<'a> Load<'a> {
    /// BPF_F_SLEEPABLE, without which [`ProgramType::Syscall`] is refused.
    pub const SLEEPABLE: u32 = 1 << 4;
    /// BPF_F_TEST_STATE_FREQ: the verifier keeps a state at every instruction.
    pub const TEST_STATE_FREQ: u32 = 1 << 3;

    /// A program without a log.
    pub fn new(kind: ProgramType, insns: &'a [RawInsn]) -> Load<'a> {
        Load {
            kind,
            insns,
            log_level: LogLevel::Silent,
            log_bytes: 0,
            flags: 0,
        }
    }

    /// The same, with 64 KiB of room for what the verifier says.
    pub fn with_log(self, level: LogLevel) -> Load<'a> {
        Load {
            log_level: level,
            log_bytes: 1 << 16,
            ..self
        }
    }
}

/// The kernel's "no", with the verifier's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// EACCES and EINVAL are mostly the verifier's; E2BIG is a program that is too
    /// long or too complex, ENOSPC a log that did not fit, EPERM a lack of
    /// privilege.
    pub errno: Errno,
    /// What the verifier said.
    pub log: String,
}

impl Refused {
    /// The verifier's reason: the last line that is no statistics.
    pub fn reason(&self) -> &str {
        let lines = self.log.lines().rev();
        lines
            .map(str::trim)
            .find(|line| !line.is_empty() && !is_statistics(line))
            .unwrap_or("")
    }
}

fn is_statistics(line: &str) -> bool {
    ["processed ", "verification time ", "stack depth "]
        .iter()
        .any(|word| line.starts_with(word))
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.errno)?;
        match self.reason() {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Asks the kernel to take a program: the program and what the verifier said.
pub fn load(request: &Load<'_>) -> Result<(Program, String), Refused> {
    let mut log = Vec::new();
    let request = ProgLoad {
        flags: request.flags,
        log_level: request.log_level as u32,
        log_size: request.log_bytes,
        ..ProgLoad::new(request.kind as u32, request.insns)
    };
    let answer = prog_load(&request, &mut log);
    let log = String::from_utf8_lossy(&log).into_owned();
    match answer.result {
        Ok(program) => Ok((program, log)),
        Err(errno) => Err(Refused { errno, log }),
    }
}
