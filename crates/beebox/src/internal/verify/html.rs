//! The page of the walks over programs that were verified.

use std::panic::{AssertUnwindSafe, catch_unwind};

use report::html::{SourceFinder, VerifyPage, WalkedProgram};
use report::veristat::ResultVerdict;
use verifier::{KeptSteps, Options, Walk};

use super::results::{self, Row};
use crate::Kernel;

/// Most steps of a page, and of one program.
const MOST_OF_PAGE: u32 = 400_000;
const MOST_OF_PROGRAM: u32 = 200_000;

/// The page of the walks of rows that have their programs; each is verified again. `None` for a kernel
/// without a registry.
pub fn walk_page(
    rows: &[&Row],
    kernel: &Kernel,
    options: &Options,
    title: &str,
    sources: &SourceFinder,
) -> Option<String> {
    let registry = kernel.registry()?;
    let totals: Vec<u32> = rows
        .iter()
        .map(|row| u32::try_from(row.total_insns).unwrap_or(u32::MAX))
        .collect();
    let mut page = VerifyPage::default();
    for ((row, total), most) in rows.iter().zip(&totals).zip(shares(&totals)) {
        let kept = KeptSteps::of(*total, most);
        let walk = row.program().map(|program| {
            let walk = || verifier::walk(program, kernel, registry, options, kept);
            // A panic is a fault of the verifier, which the row tells.
            catch_unwind(AssertUnwindSafe(walk)).unwrap_or_default()
        });
        let explained = match (&row.explanation, row.verdict, row.program()) {
            (None, ResultVerdict::Failure, Some(program)) => {
                results::explain(program, kernel, registry, options)
            }
            _ => None,
        };
        let explanation = row.explanation.as_ref().or(explained.as_ref());
        page.add(&WalkedProgram {
            file: &row.file_name,
            name: &row.prog_name,
            program: row.program(),
            verdict: row.verdict.name(),
            reason: &row.reason,
            explanation: explanation.map(|explained| &explained.data),
            total_insns: row.total_insns,
            total_states: row.total_states,
            walk: &walk.unwrap_or_else(Walk::default),
        });
    }
    Some(page.finish(title, sources))
}

/// How many steps of each program the page has: all of short walks, of long ones equal shares of the rest.
fn shares(totals: &[u32]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|at| totals[*at]);
    let mut shares = vec![0; totals.len()];
    let mut left = MOST_OF_PAGE;
    for (done, at) in order.iter().enumerate() {
        let share = left / (totals.len() - done) as u32;
        shares[*at] = totals[*at].min(share).min(MOST_OF_PROGRAM);
        left -= shares[*at];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_walks_share_what_short_ones_leave() {
        assert_eq!(shares(&[10, 20]), [10, 20]);
        assert_eq!(shares(&[1_000_000, 10]), [MOST_OF_PROGRAM, 10]);
        let many = shares(&[1_000_000, 1_000_000, 100_000]);
        assert_eq!(many, [150_000, 150_000, 100_000]);
    }
}
