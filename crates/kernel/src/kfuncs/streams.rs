//! Text that programs print into their own streams.

use spec::Errno;
use vm::{ModelPort, Stream};

use super::int;
use crate::call::{Call, Return};
use crate::helpers::{format_arguments, format_text};

/// Bytes of the buffer for a text (`MAX_BPRINTF_BUF`), and most bytes of a format here.
const BUFFER: usize = 1024;
const MOST_FORMAT: u64 = 1 << 16;

/// `int bpf_stream_vprintk_impl(int stream_id, const char *fmt__str, const void *args, u32
/// len__sz, void *aux__prog)`: 0; `-ENOENT` for a stream that there is not, `-EINVAL` for a wrong
/// format or number of arguments, `-ENOSPC` if the stream is full, `-ENOMEM` for a text of more
/// than 1,024 bytes.
pub(super) fn stream_vprintk_impl<M: ModelPort>(
    Call([stream, format, arguments, len, _], memory, _): Call<M>,
) -> Return<M> {
    let Some(stream) = Stream::from_number(stream as u32) else {
        return Ok(int(Errno::ENOENT.negated()));
    };
    let Some(arguments) = format_arguments(arguments, len, memory)? else {
        return Ok(int(Errno::EINVAL.negated()));
    };
    let mut text = Vec::new();
    for at in 0..MOST_FORMAT {
        let mut byte = [0];
        memory.read(format.wrapping_add(at), &mut byte)?;
        if byte == [0] {
            break;
        }
        text.extend(byte);
    }
    let pushed = match format_text(&text, &arguments, BUFFER, memory) {
        Ok(text) => memory.streams()?.push(stream, &text),
        Err(errno) => Err(errno),
    };
    Ok(int(pushed.map_or_else(Errno::negated, |()| 0)))
}
