//! Wording of causes: results of programs and callbacks that are out of their range.

use spec::programs::ProgramType;
use verifier::reason::{Cause, Explanation, KnownValue, NoteKind, ReturnedBy};

use super::Words;
use crate::explain::value::{known, range, signed};

pub(super) fn words(explanation: &Explanation) -> Words {
    let Cause::ReturnRange {
        value,
        min,
        max,
        by,
        target,
    } = &explanation.cause
    else {
        return Words::new("return-range", "the result is out of its range");
    };
    let program = explanation.program_type;
    let kind = program.name();
    let who = match (by, target) {
        (ReturnedBy::Callback, _) => String::from("the callback"),
        (ReturnedBy::AsyncCallback, _) => String::from("the callback, which runs later,"),
        (ReturnedBy::Throw, _) => String::from("`bpf_throw` ends the program, which then"),
        (ReturnedBy::ExceptionCallback, _) => {
            String::from("the exception callback, whose result is the program's,")
        }
        (ReturnedBy::Program, Some(target)) => format!("this {kind} program of `{target}`"),
        (ReturnedBy::Program, None) => format!("this {kind} program"),
    };
    let what = match value {
        KnownValue::Number(num) => match num.as_const() {
            Some(value) => format!("returns {}", signed(value as i64)),
            None => format!("may return {}", range(num)),
        },
        value => format!("returns {}", known(value)),
    };
    let allowed = match min == max {
        true => signed(*min),
        false => format!("a value from {} to {}", signed(*min), signed(*max)),
    };
    let words = Words::new("return-range", format!("{who} {what}"))
        .needed(format!("{allowed} on every path"));
    let words = match meaning(program, *by, (*min, *max)) {
        Some(meaning) => words.help(meaning),
        None => words,
    };
    let last_call = explanation.notes.last().map(|note| &note.kind);
    match (by, last_call) {
        (ReturnedBy::Throw, _) => words.help(
            "pass an allowed value to `bpf_throw`, or name a callback (`__exception_cb`) that \
             returns one",
        ),
        (_, Some(NoteKind::Returned { callee, .. })) => words.help(format!(
            "r0 still holds the result of `{callee}`: compare it, and return a constant"
        )),
        _ if min == max => words.help(format!("return {} on every path", signed(*min))),
        _ => {
            words.help("return a constant of these on every path; bound or mask a computed result")
        }
    }
}

/// What the allowed values mean.
fn meaning(program: ProgramType, by: ReturnedBy, range: (i64, i64)) -> Option<&'static str> {
    use ProgramType as Type;
    let of_cgroup = matches!(
        program,
        Type::CgroupSkb
            | Type::CgroupSock
            | Type::CgroupDevice
            | Type::CgroupSockAddr
            | Type::CgroupSysctl
            | Type::CgroupSockopt
    );
    Some(match (by, program, range) {
        (ReturnedBy::Callback, _, (0, 1)) => "0 goes on with the next call, 1 ends them",
        (ReturnedBy::Callback | ReturnedBy::AsyncCallback, _, (0, 0)) => {
            "nothing reads the result of such a callback"
        }
        (ReturnedBy::Callback | ReturnedBy::AsyncCallback, ..) => return None,
        (_, Type::Lsm, (..=-1, 0)) => {
            "0 lets the operation go on, a negative error number denies it"
        }
        (_, Type::Lsm, (0, 1)) => "0 is false and 1 is true, as the hook itself returns them",
        (_, Type::Lsm, (1, 1)) => "the hook returns nothing that the program could change",
        (_, Type::Tracing | Type::RawTracepoint, (0, 0)) => {
            "nothing reads the result of such a program"
        }
        (_, Type::Kprobe, (0, 1)) => {
            "0 lets the session's program run at the return too, 1 does not"
        }
        (_, Type::SkLookup | Type::SkSkb, _) => "1 passes (SK_PASS), 0 drops (SK_DROP)",
        (_, Type::Netfilter, _) => "1 accepts the packet (NF_ACCEPT), 0 drops it (NF_DROP)",
        (_, Type::CgroupSkb, (0, 3)) => {
            "bit 0 lets the packet pass, bit 1 tells TCP of congestion: NET_XMIT_CN"
        }
        (.., (0, 1)) if of_cgroup => "1 allows the operation, 0 denies it",
        (_, Type::CgroupSockAddr, (1, 1)) => "the hook denies nothing: 1 is its only result",
        (_, Type::StructOps, _) => "the operation returns an object: null or the reference itself",
        _ => return None,
    })
}
