//! The last lines of a log.

use super::Sink;
use crate::verbose;
use crate::verdict::Statistics;

/// Writes the counts, and at level 4 the time and the stack depths
/// (`print_verification_stats`).
#[doc(alias = "print_verification_stats")]
pub(crate) fn print_statistics(
    sink: &mut Sink<'_>,
    statistics: &Statistics,
    microseconds: u64,
    stack_depths: &[u32],
) {
    struct Writer<'s, 'l> {
        sink: &'s mut Sink<'l>,
    }
    let out = Writer { sink };
    if out.sink.level & 4 != 0 {
        verbose!(out, "verification time {microseconds} usec\n");
        verbose!(out, "stack depth ");
        for (index, depth) in stack_depths.iter().enumerate() {
            let plus = if index == 0 { "" } else { "+" };
            verbose!(out, "{plus}{depth}");
        }
        verbose!(out, "\n");
    }
    verbose!(
        out,
        "processed {} insns (limit {}) max_states_per_insn {} total_states {} peak_states {} mark_read {}\n",
        statistics.insns_processed,
        crate::LIMITS.insns_processed,
        statistics.max_states_per_insn,
        statistics.total_states,
        statistics.peak_states,
        statistics.longest_mark_read_walk
    );
}
