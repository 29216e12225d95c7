//! `bpf_throw`: ends a program from any depth of calls.

use vm::ModelPort;

use crate::call::{Call, Return};

/// `void bpf_throw(u64 cookie)`: leaves all functions of the program; its exception callback
/// gets the cookie and returns in its place. Without a callback the program returns the cookie.
pub(super) fn throw<M: ModelPort>(Call([cookie, ..], memory, _): Call<M>) -> Return<M> {
    memory.throw(cookie)?;
    Ok(0)
}
