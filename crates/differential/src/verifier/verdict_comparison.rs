//! Comparison of the running kernel's verifier with ours on one program: verdict, counts
//! and the last line of the log.

use btf::Btf;
use kernel_client::load::{LoadRequest, Resources};
use kernel_client::unprivileged::Caller;
use kernel_client::verdict::{Answer, Counts, LOG_BYTES, describe, kernel_answer, load_as};
use program::Program;
use spec::Kernel;
use spec::registry::Registry;
use sys::bpf::MAX_LOG_SIZE;
use verifier::{LogTail, Options, Verdict, Verification, verify, verify_to};

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

    /// The kernel's types.
    pub fn types(&self) -> Option<&'a Btf<'static>> {
        self.kernel.btf().map(|types| &**types)
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
        // As long as the kernel's.
        let mut log = LogTail::new(MAX_LOG_SIZE);
        let done = verify_to(program, self.kernel, self.registry, &options, &mut log);
        match done.verdict {
            Verdict::Unsupported(_) => Err("unsupported".to_owned()),
            Verdict::Bug(what) => Err(format!("bug: {what}")),
            Verdict::Accepted | Verdict::Refused(_) => Ok(log.finish().0),
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
        Ok(VerdictComparison::of(kernel, answer(done)))
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

impl VerdictComparison {
    /// The kernel's answer beside ours.
    pub(super) fn of(kernel: Answer, ours: Result<Answer, String>) -> VerdictComparison {
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
        VerdictComparison {
            agreement,
            kernel,
            ours,
        }
    }
}

/// Answer of a verification.
pub(super) fn answer(done: Verification) -> Result<Answer, String> {
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
        Verdict::Refused(refusal) => Ok(answer(refusal.errno.0, refusal.message())),
        Verdict::Unsupported(what) => Err(what),
        Verdict::Bug(what) => Err(format!("bug: {what}")),
    }
}

/// True for a program of which Linux 6.18 must not be asked: where an operation on a
/// number that is 0 or -1 adds one path too many to those that wait, it uses the path that
/// it could not add.
pub(super) fn crashes_kernel(program: &Program, done: &Verification) -> bool {
    let refusal = match &done.verdict {
        Verdict::Refused(refusal) => refusal,
        Verdict::Unsupported(what) => return what.ends_with("Linux 6.18 reads at address 0"),
        Verdict::Accepted | Verdict::Bug(_) => return false,
    };
    let at = refusal.insn.and_then(|at| program.insns().get(at as usize));
    refusal.message().starts_with("The sequence of ") && at.is_some_and(|insn| insn.is_arithmetic())
}
