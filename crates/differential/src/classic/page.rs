//! The page that says how much was compared and what was reached.

use super::{FilterComparison, Unavailable, kernel_release, limits, link, seccomp, unix};
use classic::Rule;
use std::fmt::Write as _;
use testkit::coverage::Coverage;

/// Every comparison with the kernel.
#[derive(Clone, Debug)]
pub struct Page {
    /// The kernel that answered.
    pub release: String,
    /// The comparisons, with descriptions.
    pub comparisons: Vec<(&'static str, FilterComparison)>,
}

/// The rules of the checker and later stages that a socket filter can violate.
pub const SOCKET_RULES: &[Rule] = &[
    Rule::Empty,
    Rule::TooLong,
    Rule::UnknownOpcode,
    Rule::DivisionByZero,
    Rule::ShiftTooFar,
    Rule::MemoryOutOfRange,
    Rule::JumpOutOfRange,
    Rule::UnknownExtension,
    Rule::NoReturn,
    Rule::MemoryNotWritten,
    Rule::ConvertedJumpTooFar,
];

/// The rules that only a seccomp filter can break.
pub const SECCOMP_RULES: &[Rule] = &[Rule::SeccompOffset, Rule::SeccompOpcode, Rule::MemoryLimit];

/// Runs every comparison: sockets on this many programs, the others on a number by their
/// cost.
pub fn compare_all(programs: u64) -> Result<Page, Unavailable> {
    let part = |share: u64| 0..(programs / share).max(1);
    Ok(Page {
        release: kernel_release()?,
        comparisons: vec![
            (
                "Sockets (AF_UNIX pair)",
                unix::compare_with_kernel(0..programs)?,
            ),
            (
                "Sockets, every opcode and ancillary offset",
                unix::compare_every_opcode()?,
            ),
            (
                "Packet sockets (veth pair)",
                link::compare_with_kernel(part(4))?,
            ),
            (
                "Payload offsets (veth pair)",
                link::compare_payload_offsets(part(3))?,
            ),
            (
                "Length of the conversion (`optmem_max`)",
                limits::compare_memory_limits(part(10))?,
            ),
            (
                "seccomp (forked children)",
                seccomp::compare_with_kernel(part(5))?,
            ),
            (
                "seccomp, every opcode and offset of the data",
                seccomp::compare_every_opcode()?,
            ),
        ],
    })
}

impl Page {
    /// Total number of differences.
    pub fn differences(&self) -> usize {
        let all = self.comparisons.iter();
        all.map(|(_, found)| found.differences.len()).sum()
    }

    /// Total coverage.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for (_, found) in &self.comparisons {
            coverage.add(&found.coverage);
        }
        coverage
    }

    /// The page in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Classic BPF against the kernel\n\n\
             Generated programs, the same bytes to both sides: the checker, the limits and\n\
             the plain interpreter of Beebox, and Linux {}. Seeds count from 0, so a run\n\
             repeats. Verdict and errno are compared for every program, and the returned\n\
             value, all 32 bits, for every packet or system call. A program counts as\n\
             refused under the rule that Beebox names; the kernel's verdict and errno must be\n\
             the same.\n\n\
             | compared | programs | accepted | refused | runs | differences |\n\
             | --- | ---: | ---: | ---: | ---: | ---: |\n",
            self.release
        );
        for (what, found) in &self.comparisons {
            let (accepted, refused) = found.coverage.verdicts();
            let _ = writeln!(
                text,
                "| {what} | {} | {accepted} | {refused} | {} | {} |",
                found.programs,
                found.runs,
                found.differences.len()
            );
        }
        text.push_str("\nWhat the programs reached (one traced run of each accepted program):\n");
        text.push_str(&self.coverage().markdown());
        text
    }
}
