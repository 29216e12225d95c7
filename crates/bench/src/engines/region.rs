//! The memory that a program of a workload runs on.
//!
//! Every engine has its own, laid out alike: it begins with the context that an
//! XDP program finds in `r1`, as the kernel has it inside (two pointers, to the
//! data and behind them), and a cache line later come the data. Some programs
//! write to them, always the same, so that every run does the same work.

/// Bytes of a cache line, at the start of which context and data lie.
const LINE: usize = 64;

/// Bytes of the context.
pub(super) const CONTEXT: usize = 16;

/// Readable bytes after the data, for engines that load eight bytes for one.
const SLACK: usize = 8;

/// Context and data.
pub(super) struct Region {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Region {
    /// A region that holds these data.
    pub(super) fn new(data: &[u8]) -> Region {
        let mut buffer = vec![0u8; LINE + LINE + data.len() + SLACK];
        let start = buffer.as_ptr().align_offset(LINE);
        let mut region = Region {
            start,
            len: data.len(),
            buffer: Vec::new(),
        };
        buffer[region.data_range()].copy_from_slice(data);
        // The programs find the data by these numbers.
        let data = buffer[start + LINE..].as_mut_ptr().expose_provenance() as u64;
        let end = data + region.len as u64;
        buffer[start..start + 8].copy_from_slice(&data.to_ne_bytes());
        buffer[start + 8..start + CONTEXT].copy_from_slice(&end.to_ne_bytes());
        region.buffer = buffer;
        region
    }

    /// The whole region, with the context at its start.
    pub(super) fn memory(&mut self) -> &mut [u8] {
        let end = self.data_range().end;
        &mut self.buffer[self.start..end]
    }

    /// The context and the data apart.
    pub(super) fn parts(&mut self) -> (&mut [u8], &mut [u8]) {
        let data = self.data_range();
        let (before, after) = self.buffer.split_at_mut(data.start);
        let context = &mut before[self.start..self.start + CONTEXT];
        (context, &mut after[..self.len])
    }

    fn data_range(&self) -> std::ops::Range<usize> {
        let start = self.start + LINE;
        start..start + self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_holds_the_bounds_of_the_data() {
        let mut region = Region::new(&[1, 2, 3]);
        let (context, data) = region.parts();
        let word = |at: usize| u64::from_ne_bytes(context[at..at + 8].try_into().unwrap());
        assert_eq!(word(0), data.as_ptr() as u64);
        assert_eq!(word(8), data.as_ptr() as u64 + 3);
        assert_eq!(data, [1, 2, 3]);
        let start = region.memory().as_ptr();
        assert_eq!(start.align_offset(LINE), 0);
        assert_eq!(region.memory().len(), LINE + 3);
    }
}
