//! Options that the engine of a run of an object would ignore, which are refused.

use beebox::Engine;

use super::{Args, ClockKind};
use crate::answer::Failure;

/// Fails for an option that does nothing beside the others.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let is_checked = args.engine == Some(Engine::Checked) || args.inputs.unverified;
    let has_capture = args.inputs.pcap.is_some() || args.expect.is_some();
    let limits = "--engine checked; --timeout SECONDS limits the other engines";
    let has_packets = args.inputs.pcap.is_some() && args.expect.is_none();
    let of_capture = "--pcap IN, without --expect";
    let refused: [(bool, &str, &str); 11] = [
        (
            args.verdicts && !has_packets,
            "--verdicts is for packets of a capture",
            of_capture,
        ),
        (
            args.selection.only.is_some() && !has_packets,
            "--only is for packets of a capture",
            of_capture,
        ),
        (
            args.selection.limit.is_some() && !has_packets,
            "--limit is for packets of a capture",
            of_capture,
        ),
        (
            args.selection.comments && !has_packets,
            "--comments is for packets of a capture",
            of_capture,
        ),
        (
            args.against.is_some() && !has_packets,
            "--against is for packets of a capture",
            of_capture,
        ),
        (
            args.share_maps && args.jobs == 1,
            "--share-maps is for several threads",
            "--jobs N",
        ),
        (
            args.limits.budget.is_some() && !is_checked,
            "--budget is for --engine checked only",
            limits,
        ),
        (
            args.limits.frames.is_some() && !is_checked,
            "--frames is for --engine checked only",
            limits,
        ),
        (
            args.inputs.unverified && matches!(args.engine, Some(Engine::Native | Engine::Interp)),
            "engines native and interp run verified programs only",
            "--unverified without --engine",
        ),
        (
            args.retpoline && is_checked,
            "--retpoline is for --engine native only",
            "no --retpoline",
        ),
        (
            args.clock == Some(ClockKind::Capture) && !has_capture,
            "--clock capture is for packets of a capture",
            "--pcap IN, or --time NS",
        ),
    ];
    match refused.iter().find(|(is_refused, ..)| *is_refused) {
        Some((_, what, remedy)) => Err(Failure::new(what).hint(remedy)),
        None => Ok(()),
    }
}
