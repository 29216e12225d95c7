//! Padding bit fields that preserve the offsets of members where the compiler's layout
//! differs.

use super::{CDump, DumpError};

/// Gap between members, in bits.
pub(super) struct Gap {
    /// End of the previous member.
    pub(super) from: u64,
    /// Start of the next member.
    pub(super) to: u64,
    /// Alignment of the next member in bytes.
    pub(super) align: u64,
    /// True between bit fields.
    pub(super) between_bits: bool,
}

impl CDump<'_> {
    /// Fills a gap with the largest type whose natural alignment fits. `T: 0` ends a unit
    /// where the compiler would not.
    pub(super) fn fill(&mut self, gap: &Gap, level: usize) -> Result<(), DumpError> {
        let pads = [
            ("long", 8 * u64::from(self.alignments.pointer)),
            ("int", 32),
            ("short", 16),
            ("char", 8),
        ];
        let Gap { mut from, to, .. } = *gap;
        if from >= to {
            return Ok(());
        }
        let fits = |&&(_, bits): &&(&str, u64)| from.next_multiple_of(bits) <= to;
        let (name, bits) = *pads.iter().find(fits).unwrap_or(&pads[3]);
        let aligned = from.next_multiple_of(bits);
        if aligned > from && aligned <= to {
            let natural = from.next_multiple_of(8 * gap.align.max(1));
            let needs_mark = gap.between_bits
                || (aligned == to && natural != aligned)
                || (aligned != to && to - aligned <= aligned - from);
            if needs_mark {
                let width = if gap.between_bits { aligned - from } else { 0 };
                self.pad(name, width, level)?;
            }
            from = aligned;
        }
        while from != to {
            let width = (to - from).min(bits);
            let name = match pads.iter().rev().find(|(_, bits)| *bits >= width) {
                Some((smallest, _)) if width != bits => smallest,
                _ => name,
            };
            self.pad(name, width, level)?;
            from += width;
        }
        Ok(())
    }

    fn pad(&mut self, name: &str, width: u64, level: usize) -> Result<(), DumpError> {
        self.spend()?;
        self.new_line(level);
        self.put(name);
        self.put(": ");
        match width {
            // What most of them are.
            64 => self.put("64"),
            width => self.put(width.to_string()),
        }
        self.put(";");
        Ok(())
    }
}
