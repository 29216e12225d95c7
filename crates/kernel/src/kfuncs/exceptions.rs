//! `bpf_throw`: ends a program from any depth of calls.

use vm::{ModelPort, RunContext};

/// `void bpf_throw(u64 cookie)`: leaves all functions of the program; its exception callback
/// gets the cookie and returns in its place. Without a callback the program returns the cookie.
pub(super) fn throw<M: ModelPort>(
    [cookie, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    memory.throw(cookie)?;
    Ok(0)
}
