//! Wording of capabilities that the caller lacks.

use verifier::reason::{Capability, Cause, Explanation, MissingCapabilities};

use super::{Words, list};

/// The words for a refusal that more capabilities take away: of the capability, where nothing
/// else is wrong, else those of the cause with the capability beside them.
pub(super) fn words(
    explanation: &Explanation,
    cause: Words,
    missing: &MissingCapabilities,
) -> Words {
    const NAME: &str = "capability";
    let needed = names(&missing.needed);
    let only = |what: String| Words::new(NAME, format!("{what} needs {needed}"));
    let kind = explanation.program_type.name();
    let mut words = match &explanation.cause {
        Cause::HelperUnavailable { helper, .. } => only(format!("`{helper}`")),
        Cause::KfuncUnavailable { kfunc, .. } => only(format!("the kernel function `{kfunc}`")),
        Cause::BackEdge { to } => only(format!(
            "a loop (here a jump back to instruction {})",
            to.insn
        )),
        Cause::TooMany => only(String::from("a program of this size")),
        Cause::Privilege | Cause::General => match &explanation.place {
            Some(place) => only(format!("`{}`", place.text)),
            None => only(format!("a program of type {kind}")),
        },
        _ => Words {
            headline: format!("{}; it is allowed with {needed}", cause.headline),
            ..cause
        },
    };
    let needed = format!("{needed} for the caller (or CAP_SYS_ADMIN)");
    words.needed = Some(match words.needed.take() {
        Some(of_cause) => format!("{of_cause}; or {needed}"),
        None => needed,
    });
    words.help.insert(0, load_with(missing));
    words
}

/// The proposal to load with the capabilities.
fn load_with(missing: &MissingCapabilities) -> String {
    let needed = names(&missing.needed);
    match &missing.accepted_with {
        Some(all) if *all == missing.needed => {
            format!("load with {needed} as well: the program is accepted then")
        }
        Some(all) => format!(
            "load with {needed} as well; with {} the program is accepted",
            names(all)
        ),
        None => format!("load with {needed} as well: another reason to refuse it is left then"),
    }
}

fn names(capabilities: &[Capability]) -> String {
    let names: Vec<&str> = capabilities.iter().map(|one| one.name()).collect();
    list(&names)
}
