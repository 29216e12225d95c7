//! Asks the running kernel about generated classic programs, and keeps what it
//! answered: the page of counts, and the cases that hold where it can't be asked.

use std::fs;
use std::path::Path;

use testkit::kernel::{cases, page};

use crate::Outcome;

/// Programs for sockets; the other comparisons follow in proportion.
const PROGRAMS: u64 = 200_000;
/// Programs from which the kept cases come.
const KEPT: u64 = 1_200;

/// Compares, and writes docs/classic-oracle.md and the file of cases.
pub(crate) fn ask() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = page::compare_all(PROGRAMS).map_err(|why| format!("not asked: {why:?}"))?;
    for (what, comparison) in &page.comparisons {
        for difference in &comparison.differences {
            eprintln!("{what}: {}", difference.describe());
        }
    }
    if page.differences() > 0 {
        return Err("the kernel answers differently; nothing was written".into());
    }
    fs::write(root.join("docs/classic-oracle.md"), page.markdown())?;
    let cases = cases::record(KEPT).map_err(|why| format!("not asked: {why:?}"))?;
    let kept = "crates/testkit/cases/classic-linux-6.18.txt";
    fs::write(root.join(kept), cases)?;
    Ok(())
}
