//! Explanation of a refusal: the place, the value, the path and the rule, as data.
//!
//! A refused program is verified again with a recorder in the log's place (`trace`):
//! a list of the steps of the current path, cut back where another path branches off,
//! with the frames as they stood before each of the last steps. From it, one pass forward
//! over the path finds which instruction defined each register and stack slot
//! (`values`), and the rule of the refusal's class (`rules`) says what is missing.
//! Wording is the renderer's (crate `report`).
//!
//! What the caller's capabilities have to do with it, `capability` finds by verifying with
//! more of them.
//!
//! Invariants: the second verification has the verdict of the first, as recording changes
//! nothing; without a recorder the walk pays one comparison for each instruction.
//!
//! Complexity: linear in the instructions of the path; frames are kept for the
//! last `trace::KEPT_STATES` steps, and the first 256.

mod calls;
mod capability;
mod cause;
mod describe;
mod explanation;
mod extent;
mod loops;
mod merged;
mod origin;
mod path;
mod places;
mod rules;
mod scene;
mod trace;
mod values;

pub use crate::log::TypeText;
pub use crate::state::{DynptrKind, Section};
pub use capability::MissingCapabilities;
pub(crate) use capability::missing;
pub use cause::{
    AccessKind, Acquired, ArgumentFault, ArithmeticFault, BoundsFault, Cause, Check, ContextFault,
    ExceptionFault, Expected, KfuncRule, LockFault, LostObject, LostTrust, MapMisuse, MapPart,
    MergedMembers, NullCheck, NumberSource, ObjectFault, OnStack, PacketBase, PacketCheckFault,
    PacketExtent, PacketLoop, Parameter, ParameterFault, PathEnd, ReturnedBy, SignatureFault,
    SizeFault, StackObjectFault, TargetFault, Unwritten,
};
pub use explanation::{
    Called, Capability, Chain, Decision, Explanation, InsnPlace, Known, KnownValue, Note, NoteKind,
    Path, PointerTarget, Source,
};
pub(crate) use trace::{StepState, Trace};

use crate::analysis::Analysis;
use crate::cost::Cost;
use crate::input::Input;
use crate::verdict::Refusal;
use scene::Scene;

/// Result of a verification that ended in a refusal.
pub(crate) struct Ending<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) analysis: &'a Analysis,
    /// Cost of the walk; no instructions if it did not begin.
    pub(crate) cost: &'a Cost,
    /// The path to the refusal; empty if no path led there.
    pub(crate) trace: Trace,
    /// Lines of the kernel's log that the last instruction wrote.
    pub(crate) log: String,
    pub(crate) refusal: &'a Refusal,
}

/// Explains a refusal.
pub(crate) fn explain(ending: Ending<'_>) -> Explanation {
    let log = log_before_reason(&ending.log, &ending.refusal.message());
    let scene = Scene::new(&ending);
    let finding = rules::find(&scene);
    Explanation {
        program: scene.program_name(),
        program_type: ending.input.program.kind(),
        refusal: ending.refusal.clone(),
        place: finding.place.or_else(|| scene.failing_place()),
        cause: finding.cause,
        known: scene.known(&finding.subjects),
        notes: finding.notes,
        path: path::decisions(&scene),
        log,
        missing: None,
    }
}

/// The lines of the log before the one that is the reason.
fn log_before_reason(log: &str, reason: &str) -> Vec<String> {
    let lines = log.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && *line != reason);
    let is_detail = |line: &&str| !line.starts_with("; ") && !line.starts_with("processed ");
    lines.filter(is_detail).map(str::to_owned).collect()
}
