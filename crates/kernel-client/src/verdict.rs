//! The running kernel's answer to a program: verdict, counts and the last line of the log.

use std::fmt;

use program::Program;
use spec::kernel::Privileges;
use sys::Errno;
use sys::bpf::LoadAnswer;

use crate::load::{LoadFault, LoadRequest, Resources};
use crate::unprivileged::Caller;

/// The kernel prints why it refuses a program, and statistics, at every log level, so
/// the level that prints no states leaves the smallest log.
const STATISTICS: u32 = 4;
/// Size of its buffer in bytes. Some messages are logged once for each call.
pub const LOG_BYTES: usize = 1 << 16;
/// The error number where the log does not fit.
const ENOSPC: Errno = Errno(28);

/// A verifier's answer to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The error number of a refusal; 0 if the program is accepted.
    pub errno: i32,
    /// Counts of the walk; `None` where the program is refused before it.
    pub counts: Option<Counts>,
    /// The last line before the counts, of a refused program.
    pub reason: String,
}

/// Counts of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions processed.
    pub insns: u32,
    /// Most states at one instruction.
    pub per_insn: u32,
    /// States made.
    pub total: u32,
    /// Most states at one time.
    pub peak: u32,
}

impl fmt::Display for Counts {
    /// As the kernel's log has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            insns,
            per_insn,
            total,
            peak,
        } = self;
        write!(
            f,
            "processed {insns} insns (limit 1000000) max_states_per_insn {per_insn} \
             total_states {total} peak_states {peak} mark_read 0"
        )
    }
}

impl Answer {
    /// True if the program is accepted.
    pub fn is_accepted(&self) -> bool {
        self.errno == 0
    }

    /// Error number and last line.
    pub fn refusal(&self) -> (i32, &str) {
        (self.errno, &self.reason)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            0 => write!(f, "accepted")?,
            errno => write!(f, "refused {errno}: {}", self.reason)?,
        }
        match self.counts {
            Some(counts) => write!(f, "; {counts}"),
            None => Ok(()),
        }
    }
}

/// Error number and last line of a refusal; `None` if the program is accepted.
pub type Refused = Option<(i32, String)>;

/// The running kernel's verdict on a program, whose BTF and maps are created for it alone.
///
/// # Errors
/// As [`kernel_answer`].
pub fn refusal_of_kernel(program: &Program) -> Result<Refused, String> {
    let caller = Caller::with(Privileges::ALL).ok_or("bpf(2) is not allowed")?;
    let mut resources = Resources::of(program).map_err(describe)?;
    let answer = kernel_answer(&caller, program, &mut resources, &mut Vec::new())?;
    Ok((!answer.is_accepted()).then_some((answer.errno, answer.reason)))
}

/// Loads a caller's program with its BTF into the running kernel, and creates its maps as the
/// caller; `log` is a buffer.
///
/// # Errors
/// Reason why the program does not reach the verifier.
pub fn load_as(
    caller: &Caller,
    program: &Program,
    resources: &mut Resources,
    request: LoadRequest,
    log: &mut Vec<u8>,
) -> Result<LoadAnswer, LoadFault> {
    let dropped = caller.loads_programs();
    let answer = resources.load(program, request, log);
    drop(dropped);
    answer
}

/// The running kernel's answer to a caller's program with its BTF and maps; `log` is a
/// buffer.
///
/// # Errors
/// If the kernel refuses the BTF or the maps of the program, does not permit bpf(2), or
/// if the log exceeds [`LOG_BYTES`].
pub fn kernel_answer(
    caller: &Caller,
    program: &Program,
    resources: &mut Resources,
    log: &mut Vec<u8>,
) -> Result<Answer, String> {
    let request = LoadRequest {
        log_level: STATISTICS,
        log_size: LOG_BYTES,
    };
    let result = match load_as(caller, program, resources, request, log) {
        Ok(answer) => answer.result,
        Err(LoadFault::Map { errno, .. }) if !caller.has_all() => {
            return Ok(Answer {
                errno: errno.0,
                counts: None,
                reason: String::new(),
            });
        }
        Err(fault) => return Err(describe(fault)),
    };
    let log = String::from_utf8_lossy(log);
    match result {
        Err(ENOSPC) => Err("the log does not fit".to_owned()),
        Err(Errno::EPERM) if log.is_empty() && caller.has_all() => {
            Err("bpf(2) is not allowed".to_owned())
        }
        result => Ok(Answer {
            errno: result.as_ref().err().map_or(0, |errno| errno.0),
            counts: counts_of(&log),
            reason: match result {
                Ok(_) => String::new(),
                Err(_) => sys::kernel::last_words(&log).unwrap_or_default().to_owned(),
            },
        }),
    }
}

/// The fault as text.
pub fn describe(fault: LoadFault) -> String {
    format!("{fault:?}")
}

/// Counts in the statistics of a log.
pub fn counts_of(log: &str) -> Option<Counts> {
    log.lines().rev().find_map(read_counts)
}

/// Counts of the line `processed N insns (limit L) max_states_per_insn A total_states B
/// peak_states C mark_read D`.
fn read_counts(line: &str) -> Option<Counts> {
    let numbers: Vec<u32> = line
        .strip_prefix("processed ")?
        .split([' ', ')'])
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [insns, _, per_insn, total, peak, ..] => Some(Counts {
            insns,
            per_insn,
            total,
            peak,
        }),
        _ => None,
    }
}
