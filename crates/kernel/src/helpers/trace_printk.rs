//! `bpf_trace_printk` and `bpf_trace_vprintk`: text of a format and numbers for whoever
//! watches the run, as [`super::snprintf`] makes it.

use spec::Errno;
use vm::{MemoryPort, RunContext};

use super::snprintf;
use crate::call::{Call, Return};

/// Bytes of the longest text with its final zero byte (`MAX_BPRINTF_BUF`).
const BUFFER: usize = 1024;

/// `long bpf_trace_printk(const char *fmt, u32 fmt_size, ...)`, with at most three numbers:
/// the length of the text, also where only a part of it is printed; `-EINVAL` for a wrong
/// format.
pub(super) fn trace_printk<M: MemoryPort>(
    Call([format, size, arguments @ ..], memory, cx): Call<M>,
) -> Return<M> {
    print(format, size, &arguments, memory, cx)
}

/// `long bpf_trace_vprintk(const char *fmt, u32 fmt_size, const void *data, u32 data_len)`:
/// as [`trace_printk`], with the numbers in an array.
pub(super) fn trace_vprintk<M: MemoryPort>(
    Call([format, size, data, data_len, _], memory, cx): Call<M>,
) -> Return<M> {
    match snprintf::arguments(data, data_len, memory)? {
        Some(arguments) => print(format, size, &arguments, memory, cx),
        None => Ok(Errno::EINVAL.negated()),
    }
}

fn print<M: MemoryPort>(
    format: u64,
    size: u64,
    arguments: &[u64],
    memory: &M,
    cx: &mut RunContext<'_>,
) -> Return<M> {
    let mut bytes = vec![0; size as u32 as usize];
    memory.read(format, &mut bytes)?;
    let Some(end) = bytes.iter().position(|byte| *byte == 0) else {
        return Ok(Errno::EINVAL.negated());
    };
    match snprintf::text(&bytes[..end], arguments, BUFFER, memory) {
        Ok(text) => {
            if let Some(printk) = &mut cx.printk {
                let shown = &text[..text.len().min(BUFFER - 1)];
                // A zero byte (`%c`) ends it.
                let end = shown.iter().position(|byte| *byte == 0);
                printk.print(&shown[..end.unwrap_or(shown.len())]);
            }
            Ok(text.len() as u64)
        }
        Err(errno) => Ok(errno.negated()),
    }
}
