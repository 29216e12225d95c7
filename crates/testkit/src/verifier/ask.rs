//! Comparison of the running kernel's verifier with ours on one program: verdict, counts
//! and the last line of the log.

use std::fmt;

use program::Program;
use spec::Kernel;
use spec::kernel::Privileges;
use spec::registry::Registry;
use sys::Errno;
use sys::bpf::{LoadAnswer, MAX_LOG_SIZE};
use verifier::{Options, Verdict, Verification, verify};

use crate::kernel::load::{LoadFault, LoadRequest, Resources};
use crate::kernel::unprivileged::Caller;

/// The kernel prints why it refuses a program, and statistics, at every log level, so
/// the level that prints no states leaves the smallest log.
const STATISTICS: u32 = 4;
/// Size of its buffer in bytes. Some messages are logged once for each call.
const LOG_BYTES: usize = 1 << 16;
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
    fn refusal(&self) -> (i32, &str) {
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

/// Agreement of two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agreement {
    /// Verdict, counts and reason are equal.
    Equal,
    /// Our verifier does not support the program.
    Unsupported,
    /// We accept what the kernel refuses.
    FalseAccept,
    /// We refuse what the kernel accepts.
    FalseReject,
    /// The verdicts are equal, the counts differ.
    Counts,
    /// Both refuse, with different last lines or error numbers.
    Reason,
}

/// Error number and last line of a refusal; `None` if the program is accepted.
pub type Refused = Option<(i32, String)>;

/// The running kernel's verdict on a program, whose BTF and maps are created for it alone.
///
/// # Errors
/// As [`VerifierPair::kernel`].
pub fn refusal_of_kernel(program: &Program) -> Result<Refused, String> {
    let caller = Caller::with(Privileges::ALL).ok_or("bpf(2) is not allowed")?;
    let mut resources = Resources::of(program).map_err(describe)?;
    let answer = kernel_answer(&caller, program, &mut resources, &mut Vec::new())?;
    Ok((!answer.is_accepted()).then_some((answer.errno, answer.reason)))
}

/// Loads a caller's program with its BTF into the running kernel, and creates its maps as the
/// caller; `log` is a buffer.
fn load_as(
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
fn kernel_answer(
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
            counts: log.lines().rev().find_map(read_counts),
            reason: match result {
                Ok(_) => String::new(),
                Err(_) => last_line(&log).to_owned(),
            },
        }),
    }
}

/// The fault as text.
fn describe(fault: LoadFault) -> String {
    format!("{fault:?}")
}

/// The running kernel's verifier and ours, with the BTF and maps in the kernel of the
/// last program, which the next one uses again if it declares the same.
pub struct VerifierPair<'a> {
    kernel: &'a Kernel,
    registry: &'a Registry,
    caller: Caller,
    declared: Option<(Program, Resources)>,
    log: Vec<u8>,
}

impl<'a> VerifierPair<'a> {
    /// Both verifiers for a kernel, which is the running one, and for a caller with its
    /// privileges; `None` where this kernel lets no such caller load programs.
    pub fn new(kernel: &'a Kernel, registry: &'a Registry) -> Option<VerifierPair<'a>> {
        Some(VerifierPair {
            kernel,
            registry,
            caller: Caller::with(kernel.privileges())?,
            declared: None,
            log: Vec::with_capacity(LOG_BYTES),
        })
    }

    /// The same verifiers for another thread.
    pub fn for_thread(&self) -> VerifierPair<'a> {
        VerifierPair {
            kernel: self.kernel,
            registry: self.registry,
            caller: self.caller.clone(),
            declared: None,
            log: Vec::with_capacity(LOG_BYTES),
        }
    }

    /// True if the caller has all capabilities.
    pub fn has_all(&self) -> bool {
        self.caller.has_all()
    }

    /// True if the caller has CAP_BPF.
    pub fn has_bpf(&self) -> bool {
        self.kernel.privileges().has_bpf()
    }

    /// The running kernel's answer.
    ///
    /// # Errors
    /// If the kernel refuses the BTF or the maps of the program, does not permit bpf(2), or
    /// if the log exceeds its buffer.
    pub fn kernel(&mut self, program: &Program) -> Result<Answer, String> {
        self.declare(program)?;
        match &mut self.declared {
            Some((_, resources)) => kernel_answer(&self.caller, program, resources, &mut self.log),
            None => Err("no resources".to_owned()),
        }
    }

    /// The running kernel's whole log of a program at a level.
    ///
    /// # Errors
    /// As [`VerifierPair::kernel`], and if there is no log.
    pub fn kernel_log(&mut self, program: &Program, log_level: u32) -> Result<WholeLog, String> {
        self.declare(program)?;
        let Some((_, resources)) = &mut self.declared else {
            return Err("no resources".to_owned());
        };
        // Of the largest buffer only pages that the kernel writes become resident.
        let request = LoadRequest {
            log_level,
            log_size: MAX_LOG_SIZE,
        };
        let mut log = Vec::new();
        let answer = load_as(&self.caller, program, resources, request, &mut log);
        let answer = answer.map_err(describe)?;
        let size = answer.log_true_size as usize;
        let errno = answer.result.err().map_or(0, |errno| errno.0);
        if size > MAX_LOG_SIZE {
            let text = "does not fit into the kernel's largest";
            return Err(format!("a log of {size} bytes {text}"));
        }
        if log.is_empty() {
            return Err(format!("no log of the kernel (errno {errno})"));
        }
        let text = String::from_utf8(log);
        let text =
            text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(WholeLog { text, errno })
    }

    /// Our log of a program at a level; `Err` names what is unsupported, or the failure.
    pub fn our_log(&self, program: &Program, log_level: u32) -> Result<String, String> {
        let options = Options {
            log_level,
            ..Options::default()
        };
        let done = verify(program, self.kernel, self.registry, &options);
        match done.verdict {
            Verdict::Unsupported(_) => Err("unsupported".to_owned()),
            Verdict::Bug(what) => Err(format!("bug: {what}")),
            Verdict::Accepted | Verdict::Refused(_) => Ok(done.log),
        }
    }

    /// Keeps BTF and maps of a program in the kernel, if they are not there yet.
    fn declare(&mut self, program: &Program) -> Result<(), String> {
        let is_declared = self
            .declared
            .as_ref()
            .is_some_and(|(last, _)| last.maps() == program.maps() && last.btf() == program.btf());
        if !is_declared {
            self.declared = None;
            let resources = Resources::of(program).map_err(describe)?;
            self.declared = Some((program.clone(), resources));
        }
        Ok(())
    }

    /// Our answer; `Err` names what is unsupported, or the failure.
    pub fn ours(&self, program: &Program) -> Result<Answer, String> {
        answer(self.verify(program))
    }

    fn verify(&self, program: &Program) -> Verification {
        verify(program, self.kernel, self.registry, &Options::default())
    }

    /// Puts a program to both; fails as [`VerifierPair::kernel`] does, and where the answer
    /// would depend on what no description of a kernel says.
    pub fn compare(&mut self, program: &Program) -> Result<VerdictComparison, String> {
        let done = self.verify(program);
        if crashes_kernel(program, &done) {
            return Err("this kernel would read at address 0".to_owned());
        }
        let kernel = self.kernel(program)?;
        // Which functions of its BTF have an address is not in the BTF.
        if kernel
            .reason
            .starts_with("cannot find address for kernel function")
        {
            return Err("a kernel function has no address".to_owned());
        }
        // Which files this process has open is not in the program.
        if kernel.reason.ends_with("is not pointing to valid bpf_map") {
            return Err("an instruction names a descriptor of the process".to_owned());
        }
        let ours = answer(done);
        let agreement = match &ours {
            Err(_) => Agreement::Unsupported,
            Ok(ours) if ours.is_accepted() && !kernel.is_accepted() => Agreement::FalseAccept,
            Ok(ours) if !ours.is_accepted() && kernel.is_accepted() => Agreement::FalseReject,
            // What is refused before the verifier starts has no log.
            Ok(ours) if !kernel.is_accepted() && kernel.reason.is_empty() => {
                match ours.errno == kernel.errno {
                    true => Agreement::Equal,
                    false => Agreement::Reason,
                }
            }
            // Where the kernel says no word, its last line is about something else.
            Ok(ours)
                if !ours.is_accepted() && ours.reason.is_empty() && ours.errno == kernel.errno =>
            {
                Agreement::Equal
            }
            Ok(ours) if ours.refusal() != kernel.refusal() => Agreement::Reason,
            // Programs that are refused before the walk have no counts.
            Ok(ours) if kernel.counts.is_some() && ours.counts != kernel.counts => {
                Agreement::Counts
            }
            Ok(_) => Agreement::Equal,
        };
        Ok(VerdictComparison {
            agreement,
            kernel,
            ours,
        })
    }
}

/// A log of the running kernel.
#[derive(Clone, Debug)]
pub struct WholeLog {
    /// Its text.
    pub text: String,
    /// Error number of the load, 0 if the program is accepted.
    pub errno: i32,
}

/// Two answers to one program.
#[derive(Clone, Debug)]
pub struct VerdictComparison {
    /// Their agreement.
    pub agreement: Agreement,
    /// The kernel's.
    pub kernel: Answer,
    /// Ours, or what is unsupported.
    pub ours: Result<Answer, String>,
}

/// Answer of a verification.
fn answer(done: Verification) -> Result<Answer, String> {
    let of = done.statistics;
    let answer = |errno, reason| Answer {
        errno,
        counts: Some(Counts {
            insns: of.insns_processed,
            per_insn: of.max_states_per_insn,
            total: of.total_states,
            peak: of.peak_states,
        }),
        reason,
    };
    match done.verdict {
        Verdict::Accepted => Ok(answer(0, String::new())),
        Verdict::Refused(refusal) => Ok(answer(refusal.errno.0, refusal.message)),
        Verdict::Unsupported(what) => Err(what),
        Verdict::Bug(what) => Err(format!("bug: {what}")),
    }
}

/// True for a program of which Linux 6.18 must not be asked: where an operation on a
/// number that is 0 or -1 adds one path too many to those that wait, it uses the path that
/// it could not add.
fn crashes_kernel(program: &Program, done: &Verification) -> bool {
    const CLASS: u8 = 7;
    let Verdict::Refused(refusal) = &done.verdict else {
        return false;
    };
    let at = refusal.insn.and_then(|at| program.insns().get(at as usize));
    refusal.message.starts_with("The sequence of ")
        && at.is_some_and(|insn| matches!(insn.code & CLASS, 4 | 7))
}

/// The last line of a log before its statistics, without source lines.
fn last_line(log: &str) -> &str {
    let is_reason = |line: &&str| {
        let notes = ["processed ", "stack depth ", "; "];
        !line.is_empty() && !notes.iter().any(|note| line.starts_with(note))
    };
    // Some messages have no newline, and the statistics follow on their line.
    let lines = log.lines().rev();
    let lines = lines.map(|line| line.split("verification time ").next().unwrap_or(line));
    lines.into_iter().find(is_reason).unwrap_or_default()
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
