//! Outputs of packets by the verdict of their run.

use capture::{Block, Encoder, Record};

use super::{PacketOutput, RunCaptureError};
use crate::internal::captures::Input;

/// Bytes of packets that are collected before they are written.
const PORTION: usize = 256 << 10;

/// Output of the packets of a verdict.
pub struct VerdictOutput<'w> {
    /// Name of the verdict.
    pub verdict: String,
    /// The file.
    pub output: PacketOutput<'w>,
}

/// The outputs of a run on a capture.
pub(super) struct Sorter<'w>(Vec<(VerdictOutput<'w>, Encoder, Vec<u8>)>);

impl<'w> Sorter<'w> {
    /// Starts the files.
    pub(super) fn start(outputs: Vec<VerdictOutput<'w>>, input: &Input) -> Sorter<'w> {
        let started = outputs.into_iter().map(|output| {
            let encoder = Encoder::new(output.output.format, input.format(), None);
            let mut kept = Vec::new();
            encoder.start_file(&mut kept);
            encoder.start_capture(input.framing(), &mut kept);
            (output, encoder, kept)
        });
        Sorter(started.collect())
    }

    /// True without outputs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a block without packet.
    pub(super) fn put_block(&mut self, block: &Block<'_>) {
        for (_, encoder, kept) in &mut self.0 {
            encoder.put_block(block, kept);
        }
    }

    /// Adds a packet: as the program left it if it goes on, otherwise as it came, with a comment if there
    /// is one.
    pub(super) fn put(
        &mut self,
        verdict: &str,
        record: &Record<'_>,
        data: &[u8],
        comment: Option<&str>,
    ) -> Result<(), RunCaptureError> {
        for (output, encoder, kept) in &mut self.0 {
            if output.verdict == verdict {
                let put = match comment {
                    Some(comment) => encoder.put_commented(record, data, comment, kept),
                    None => encoder.put_changed(record, data, kept),
                };
                put.map_err(RunCaptureError::OtherLinkType)?;
            }
            if kept.len() >= PORTION {
                write(output, kept)?;
            }
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Result<(), RunCaptureError> {
        self.0
            .iter_mut()
            .try_for_each(|(output, _, kept)| write(output, kept))
    }
}

fn write(output: &mut VerdictOutput<'_>, kept: &mut Vec<u8>) -> Result<(), RunCaptureError> {
    let written = output.output.file.write_all(kept);
    kept.clear();
    written.map_err(RunCaptureError::Output)
}
