//! Statements that have helpers fail.

use spec::Errno;

use super::read::number;
use crate::internal::run::ForcedResult;

/// `HELPER [MAP] [at N] = RESULT`.
pub(super) fn fault(text: &str) -> Result<ForcedResult, String> {
    let form = "fault HELPER [MAP] [at N] = RESULT is expected";
    let (call, result) = text.split_once('=').ok_or(form)?;
    let mut words = call.split_whitespace();
    let name = words.next().ok_or(form)?;
    let known = spec::helpers::number(name)
        .or_else(|| spec::helpers::number(&format!("bpf_{name}")))
        .ok_or_else(|| match spec::kfuncs::KernelFunction::of_linux(name) {
            Some(_) => format!("{name} is a kfunc: result {name} = VALUE says what it returns"),
            None => format!("there is no helper {name:?}"),
        })?;
    let mut rest: Vec<&str> = words.collect();
    let at = match rest[..] {
        [.., "at", at] => {
            let at = number(at).filter(|at| *at > 0);
            rest.truncate(rest.len() - 2);
            Some(at.ok_or_else(|| format!("{form}, with N from 1"))?)
        }
        _ => None,
    };
    let map = match rest[..] {
        [] => None,
        [map] => Some(map.to_owned()),
        _ => return Err(form.to_owned()),
    };
    let result = result.trim();
    Ok(ForcedResult {
        number: known,
        map,
        at,
        result: fault_result(result).ok_or_else(|| {
            format!(
                "{result:?} is no result: an error as ENOSPC, NULL, a number or a result of \
                 bpf_fib_lookup as NO_NEIGH"
            )
        })?,
    })
}

/// Results of `bpf_fib_lookup` (`BPF_FIB_LKUP_RET_*`), from 0.
const FIB_RESULTS: [&str; 10] = [
    "SUCCESS",
    "BLACKHOLE",
    "UNREACHABLE",
    "PROHIBIT",
    "NOT_FWDED",
    "FWD_DISABLED",
    "UNSUPP_LWT",
    "NO_NEIGH",
    "FRAG_NEEDED",
    "NO_SRC_ADDR",
];

fn fault_result(text: &str) -> Option<u64> {
    if text == "NULL" {
        return Some(0);
    }
    if let Some(code) = FIB_RESULTS.iter().position(|name| *name == text) {
        return Some(code as u64);
    }
    // Some write what the helper returns, others the name of the error.
    if let Some(error) = Errno::from_name(text.strip_prefix('-').unwrap_or(text)) {
        return Some(error.negated());
    }
    number::<i64>(text).map(|value| value as u64)
}
