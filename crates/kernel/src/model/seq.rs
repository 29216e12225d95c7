//! `bpf_seq_printf` and `bpf_seq_write`: the text of an iterator.

use spec::Errno;
use vm::MemoryPort;

use super::model_calls::Model;
use crate::helpers::{Bytes, format_arguments, format_text};

/// Bytes of the longest text of one call.
const BUFFER: usize = 1 << 16;

impl Model {
    /// `long bpf_seq_printf(struct seq_file *m, const char *fmt, u32 fmt_size, const void *data, u32
    /// data_len)`: 0, or `-EINVAL` for a wrong format.
    pub(super) fn seq_printf<M: MemoryPort>(
        &self,
        [_, format, size, data, data_len]: [u64; 5],
        memory: &M,
    ) -> Result<u64, M::Fault> {
        let format = Bytes::read(memory, format, size as u32 as usize)?;
        let end = format.get().iter().position(|byte| *byte == 0);
        let arguments = format_arguments(data, data_len, memory)?;
        let (Some(end), Some(arguments)) = (end, arguments) else {
            return Ok(Errno::EINVAL.negated());
        };
        Ok(
            match format_text(&format.get()[..end], &arguments, BUFFER, memory) {
                Ok(text) => {
                    self.write_seq(&text);
                    0
                }
                Err(errno) => errno.negated(),
            },
        )
    }

    /// `long bpf_seq_write(struct seq_file *m, const void *data, u32 len)`: 0.
    pub(super) fn seq_write<M: MemoryPort>(
        &self,
        [_, data, len, ..]: [u64; 5],
        memory: &M,
    ) -> Result<u64, M::Fault> {
        let bytes = Bytes::read(memory, data, len as u32 as usize)?;
        self.write_seq(bytes.get());
        Ok(0)
    }
}
