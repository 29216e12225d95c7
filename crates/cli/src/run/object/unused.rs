//! Options that the engine of a run of an object would ignore, which are refused.

use super::super::Args;
use super::super::trusted::Engine;
use super::ClockKind;
use crate::answer::Failure;

/// Fails for an option that does nothing beside the others.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let own = &args.object;
    let is_checked = args.engine == Some(Engine::Checked) || own.unverified;
    let has_capture = own.pcap.is_some() || own.expect.is_some();
    let limits = "--engine checked; --timeout SECONDS limits native code";
    let refused: [(bool, &str, &str); 7] = [
        (
            own.share_maps && own.jobs == 1,
            "--share-maps is for several threads",
            "--jobs N",
        ),
        (
            args.budget.is_some() && !is_checked,
            "--budget is for --engine checked only",
            limits,
        ),
        (
            args.frames.is_some() && !is_checked,
            "--frames is for --engine checked only",
            limits,
        ),
        (
            own.unverified && args.engine == Some(Engine::Native),
            "engine native runs verified programs only",
            "--unverified without --engine native",
        ),
        (
            own.unverified && args.engine == Some(Engine::Checked),
            "--engine checked is that of --unverified",
            "--unverified alone",
        ),
        (
            own.retpoline && is_checked,
            "--retpoline is for --engine native only",
            "no --retpoline",
        ),
        (
            own.clock == Some(ClockKind::Capture) && !has_capture,
            "--clock capture is for packets of a capture",
            "--pcap IN, or --time NS",
        ),
    ];
    match refused.iter().find(|(is_refused, ..)| *is_refused) {
        Some((_, what, remedy)) => Err(Failure::new(what).hint(remedy)),
        None => Ok(()),
    }
}
