//! Verification of the programs of an object: verdicts, logs, explanations.

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use beebox::verify::{Options, ProgramVerification, Verdict};

use crate::boundary::{self, Failure, owned, pointer, shared, text_for_c, value};
use crate::object::beebox_object;

/// What became of a program.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum beebox_verdict_kind {
    /// The kernel loads it.
    BEEBOX_ACCEPTED = 0,
    /// The kernel refuses it: `error` is its error number, `message` its reason.
    BEEBOX_REFUSED = 1,
    /// It uses what Beebox does not support, which `message` names: no verdict.
    BEEBOX_UNSUPPORTED = 2,
    /// It cannot be linked for the kernel.
    BEEBOX_NOT_LINKED = 3,
}

use beebox_verdict_kind::{BEEBOX_ACCEPTED, BEEBOX_NOT_LINKED, BEEBOX_REFUSED, BEEBOX_UNSUPPORTED};

/// The verification of a program. Texts belong to the verification; later versions add fields at the
/// end.
#[allow(non_camel_case_types)]
#[derive(Debug)]
#[repr(C)]
pub struct beebox_verdict {
    /// Name of the program.
    pub program: *const c_char,
    /// Its section.
    pub section: *const c_char,
    /// What became of it.
    pub kind: beebox_verdict_kind,
    /// Error number of the refusal, positive; 0 if it is none.
    pub error: c_int,
    /// The instruction at which it is refused; -1 if there is none.
    pub insn: i64,
    /// The reason in one line; empty if it is accepted.
    pub message: *const c_char,
    /// The kernel's log at the requested level; empty at level 0.
    pub log: *const c_char,
    /// Cause, source line, the way there, the usual edit; NULL if it is not refused.
    pub explanation: *const c_char,
    /// Type of the program (`enum bpf_prog_type`); 0 if its section says none.
    pub prog_type: u32,
    /// Instructions that were walked over.
    pub insns_processed: u32,
    /// States that were made.
    pub total_states: u32,
    /// Most states that were kept at one time.
    pub peak_states: u32,
    /// Most states that were kept at one instruction.
    pub max_states_per_insn: u32,
    /// Time of the verification in microseconds.
    pub duration_us: u64,
}

/// Verifications of the programs of an object.
#[allow(non_camel_case_types)]
pub struct beebox_verification {
    verdicts: Vec<beebox_verdict>,
    /// What the verdicts point to.
    _texts: Vec<CString>,
}

impl beebox_verification {
    fn new(results: Vec<ProgramVerification>) -> beebox_verification {
        let mut texts = Vec::new();
        let verdicts = results
            .into_iter()
            .map(|result| verdict(result, &mut texts));
        beebox_verification {
            verdicts: verdicts.collect(),
            _texts: texts,
        }
    }
}

/// One result, with its texts among the others.
fn verdict(result: ProgramVerification, texts: &mut Vec<CString>) -> beebox_verdict {
    let mut keep = |text: String| {
        // The bytes stay at their place while the list grows.
        let text = text_for_c(text);
        let place = text.as_ptr();
        texts.push(text);
        place
    };
    let explanation = result.explanation_text().map(&mut keep);
    let (kind, error, insn, message) = match result.verification.as_ref().map(|it| &it.verdict) {
        Ok(Verdict::Accepted) => (BEEBOX_ACCEPTED, 0, None, String::new()),
        Ok(Verdict::Refused(refusal)) => (
            BEEBOX_REFUSED,
            refusal.errno.0,
            refusal.insn,
            refusal.reason(),
        ),
        Ok(Verdict::Unsupported(what) | Verdict::Bug(what)) => {
            (BEEBOX_UNSUPPORTED, libc::EOPNOTSUPP, None, what.clone())
        }
        Err(error) => {
            let errno = error.errno().map_or(libc::EINVAL, |errno| errno.0);
            (BEEBOX_NOT_LINKED, errno, None, error.to_string())
        }
    };
    let done = result.verification.ok();
    let statistics = done
        .as_ref()
        .map(|done| done.statistics)
        .unwrap_or_default();
    let duration_us = done.as_ref().map_or(0, |done| done.duration_us);
    beebox_verdict {
        program: keep(result.name),
        section: keep(result.section),
        kind,
        error,
        insn: insn.map_or(-1, i64::from),
        message: keep(message),
        log: keep(done.map(|done| done.log).unwrap_or_default()),
        explanation: explanation.unwrap_or(ptr::null()),
        prog_type: result.kind.map_or(0, |kind| kind.number()),
        insns_processed: statistics.insns_processed,
        total_states: statistics.total_states,
        peak_states: statistics.peak_states,
        max_states_per_insn: statistics.max_states_per_insn,
        duration_us,
    }
}

/// Verifies the programs of an object for its kernel, each loaded alone, loaded or not. `log_level`
/// has the bits of the kernel's: 1 the path that leads to the refusal, 2 every instruction, 4
/// statistics.
///
/// Returns the verifications, which `beebox_verification__free` frees, or NULL. A refused program is no
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__verify(
    obj: *const beebox_object,
    log_level: u32,
) -> *mut beebox_verification {
    pointer(|| {
        if log_level > 7 {
            let what = format!("log_level is {log_level}: its bits are 1, 2 and 4");
            return Err(Failure::argument(what));
        }
        // SAFETY: the caller promises an object.
        let obj = unsafe { shared(obj, "obj") }?;
        let options = Options {
            log_level,
            ..Options::default()
        };
        let results = obj.object().verify(&obj.kernel(), &options)?;
        Ok(owned(beebox_verification::new(results)))
    })
}

/// Number of programs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_verification__count(
    verification: *const beebox_verification,
) -> usize {
    let count = || {
        // SAFETY: the caller promises a verification.
        let verification = unsafe { shared(verification, "verification") }?;
        Ok(verification.verdicts.len())
    };
    value(count, |_| 0)
}

/// The verification of the program at an index, in the order of the file; NULL behind the last. It
/// belongs to the verification.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_verification__verdict(
    verification: *const beebox_verification,
    index: usize,
) -> *const beebox_verdict {
    let verdict = || {
        // SAFETY: the caller promises a verification.
        let verdicts = unsafe { &shared(verification, "verification")?.verdicts };
        let behind = || Failure::argument(format!("there are {} programs", verdicts.len()));
        Ok(ptr::from_ref(verdicts.get(index).ok_or_else(behind)?))
    };
    value(verdict, |_| ptr::null())
}

/// Frees a verification. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_verification__free(verification: *mut beebox_verification) {
    // SAFETY: the caller promises a verification and its end.
    unsafe { boundary::free(verification) }
}
