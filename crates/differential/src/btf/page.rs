//! The page that says how many blobs were compared, and why they were refused.

use std::fmt::Write as _;
use std::ops::Range;

use super::{BtfComparison, Oracle};
use kernel_client::{Unavailable, kernel_release};

/// A comparison with who answered.
#[derive(Debug)]
pub struct Page {
    /// The kernel's release.
    pub release: String,
    /// The compared seeds.
    pub seeds: Range<u64>,
    /// Result.
    pub comparison: BtfComparison,
}

impl Page {
    /// Compares blobs from these seeds.
    pub fn ask(seeds: Range<u64>) -> Result<Page, Unavailable> {
        let release = kernel_release()?;
        let comparison = Oracle::open()?.compare(seeds.clone());
        Ok(Page {
            release,
            seeds,
            comparison,
        })
    }

    /// The page in Markdown.
    pub fn markdown(&self) -> String {
        let BtfComparison {
            blobs,
            taken,
            reasons,
            differences,
        } = &self.comparison;
        let mut text = format!(
            "# BTF against the kernel\n\n\
             <!-- Written by `cargo differential compare btf`. -->\n\n\
             Generated BTF blobs, valid and damaged, were given to `BPF_BTF_LOAD` of Linux\n\
             {} and to Beebox's own check. The verdict, the error number and the whole log, byte\n\
             for byte, must be the same. Seeds {} to {}: one valid blob each, and seven that are\n\
             damaged in different ways.\n\n\
             | blobs | taken | refused | reasons | differences |\n\
             | ---: | ---: | ---: | ---: | ---: |\n\
             | {blobs} | {taken} | {} | {} | {} |\n\n\
             Refused blobs by reason (as Beebox names it; the comparison is of the kernel's log\n\
             and ours):\n\n\
             | reason | blobs |\n\
             | --- | ---: |\n",
            self.release,
            self.seeds.start,
            self.seeds.end.saturating_sub(1),
            blobs - taken,
            reasons.len(),
            differences.len(),
        );
        let mut reasons: Vec<(&String, &u64)> = reasons.iter().collect();
        reasons.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        for (name, count) in reasons {
            let _ = writeln!(text, "| {name} | {count} |");
        }
        text
    }
}
