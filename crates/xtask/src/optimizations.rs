//! Counts what the optimizations of the engines do for programs of others, and writes the
//! last section of docs/performance.md.

use std::fs;
use std::path::Path;

use differential::corpus;

use crate::Outcome;

/// The heading of the section, which is the last one of the page.
const HEADING: &str = "## Optimizations on programs of others";

const ABOUT: &str = "\
Written by `cargo xtask optimizations`. The programs were not written for Beebox: every
function of the kernel's selftests in both builds (equal functions once; map addresses and
calls stand in for those of linked programs), libpcap's code for common filter expressions,
and container profiles for two architectures. A count is how often the compiler applies the
optimization; the bytes are those that the code has more without it. An optimization that
adds bytes saves time: comparisons of a chain, or stores. Every
optimization can be left out (`jit::Options::optimizations`,
`interp::ThreadedProgram::compile_with`), and the differential test runs with each one left out in
turn.

Not among them, because programs of others hardly use them (times in the build for cpu v3,
bytes saved): counts of bits as `popcnt` (1, 148), copies carried by loops (32, 67), loop
rotation (2, 8), `andn` (2, 0), `movbe` for other than packet loads (43, 9), reciprocals for unsigned division of 32 bits (33, 40) and of
64 (20, -112) and for signed division (55, -434), multiplication by shift or `lea` (19, 0), scaled
indices (56, 271), memory operands of later instructions (365, 349), one computation of the IPv4
header length (0; 2 in libpcap's filters), division by constants of the full width (4, 26), divisors known not
to be zero (0); in the interpreter, redundant truncations (3).

Not among them either, because a filter on a capture of a gigabyte, reading included, takes the same
time without them: packet filters compiled a second time without bounds checks, their branches
merged into one jump, their results selected without a branch, fields compared in network byte
order.
";

/// The section, with its heading.
pub(crate) fn section() -> String {
    let parts = corpus::parts();
    format!(
        "{HEADING}\n\n{ABOUT}\n{}\nThe fusions of the interpreter, by how often they are \
         applied:\n\n{}",
        corpus::page::table(&parts),
        corpus::page::fusion_table(&parts)
    )
}

/// Counts, and writes the section.
pub(crate) fn count() -> Outcome {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let text = fs::read_to_string(&page)?;
    let before = text.split(HEADING).next().unwrap_or_default().trim_end();
    fs::write(&page, format!("{before}\n\n{}", section()))?;
    println!("the last section of docs/performance.md is written");
    Ok(())
}
