//! Helpers that are not built, and what they wait for.

/// What a helper that is not built waits for; `None` for those that are built and for names
/// that no helper has.
pub fn why_waiting(name: &str) -> Option<&'static str> {
    let is_listed = |(_, names): &&(&str, &[&str])| names.contains(&name);
    WAITING.iter().find(is_listed).map(|(why, _)| *why)
}

/// Helpers by what they wait for.
const WAITING: &[(&str, &[&str])] = &[("tail calls", &["bpf_tail_call"])];
