//! The last lines of a log.

use super::Sink;
use crate::analysis::SubprogInfo;
use crate::env::SubprogAux;
use crate::verbose;
use crate::verdict::Statistics;
use spec::behaviour::Behaviour;
use spec::limits;

/// Writes the counts, and at level 4 the time and the stack depths, by function where the
/// kernel counts so
/// (`print_verification_stats`).
#[doc(alias = "print_verification_stats")]
pub(crate) fn print_statistics(
    sink: &mut Sink<'_>,
    statistics: &Statistics,
    microseconds: u64,
    stack_depths: &[u32],
    functions: &[(&SubprogInfo, &SubprogAux)],
) {
    struct Writer<'s, 'l> {
        sink: &'s mut Sink<'l>,
    }
    let out = Writer { sink };
    if out.sink.counts_by_function() {
        verbose!(out.sink, "verification time {microseconds} usec\n");
        let deepest = out.sink.deepest_stack;
        verbose!(out.sink, "stack depth max {deepest}\n");
        for (number, (info, aux)) in functions.iter().enumerate() {
            let name = match info.name.as_str() {
                "" => "<unknown>",
                name => name,
            };
            let kind = match (number, info.is_global) {
                (0, _) => "main",
                (_, true) => "global",
                (_, false) => "static",
            };
            let ([own, all], stack) = (aux.insns, aux.stack_depth);
            verbose!(
                out.sink,
                "subprog {number} ({name}) {kind} insns_self {own} insns_total {all} stack {stack}\n"
            );
        }
    } else if out.sink.level & super::STATISTICS != 0 {
        verbose!(out.sink, "verification time {microseconds} usec\n");
        verbose!(out.sink, "stack depth ");
        for (index, depth) in stack_depths.iter().enumerate() {
            let plus = if index == 0 { "" } else { "+" };
            verbose!(out.sink, "{plus}{depth}");
        }
        if out.sink.rules.has(Behaviour::DeepestShown) {
            let deepest = out.sink.deepest_stack;
            verbose!(out.sink, " max {deepest}\ninsns processed ");
            let of_main = |number: usize| number == 0;
            let own = functions.iter().enumerate();
            let own = own.filter(|(number, (info, _))| of_main(*number) || info.is_global);
            for (number, (_, aux)) in own {
                let plus = if of_main(number) { "" } else { "+" };
                verbose!(out.sink, "{plus}{}", aux.insns[1]);
            }
        }
        verbose!(out.sink, "\n");
    }
    verbose!(
        out.sink,
        "processed {} insns (limit {}) max_states_per_insn {} total_states {} peak_states {} mark_read {}\n",
        statistics.insns_processed,
        limits::INSNS_PROCESSED,
        statistics.max_states_per_insn,
        statistics.total_states,
        statistics.peak_states,
        statistics.longest_mark_read_walk
    );
}
