//! Wording of each cause of a refusal: headline, requirement and proposed edit.

mod access;
mod attach;
mod bounds;
mod call;
mod capability;
mod context;
mod flow;
mod global;
mod held;
mod map;
mod object;
mod packet;
mod register;
mod returns;
mod stack_object;
mod trust;

use verifier::reason::{Cause, Explanation};

/// Text of an explanation beside the data.
pub(super) struct Words {
    /// Name of the rule, for programs.
    pub(super) name: &'static str,
    /// The cause, in one line.
    pub(super) headline: String,
    /// The unmet requirement.
    pub(super) needed: Option<String>,
    /// The usual edits, the likeliest first.
    pub(super) help: Vec<String>,
}

impl Words {
    fn new(name: &'static str, headline: impl Into<String>) -> Words {
        Words {
            name,
            headline: headline.into(),
            needed: None,
            help: Vec::new(),
        }
    }

    fn needed(mut self, text: impl Into<String>) -> Words {
        self.needed = Some(text.into());
        self
    }

    fn help(mut self, text: impl Into<String>) -> Words {
        self.help.push(text.into());
        self
    }
}

/// The words for an explanation.
pub(super) fn words(explanation: &Explanation) -> Words {
    let words = of_cause(explanation);
    match &explanation.missing {
        Some(missing) => capability::words(explanation, words, missing),
        None => words,
    }
}

fn of_cause(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::Uninitialized { .. }
        | Cause::MaybeNull { .. }
        | Cause::NotPointer { .. }
        | Cause::NotAccessible { .. }
        | Cause::SpillPart { .. }
        | Cause::ReadOnly { .. }
        | Cause::FramePointer
        | Cause::SpecialField { .. }
        | Cause::FieldType { .. }
        | Cause::Misaligned { .. }
        | Cause::Context { .. }
        | Cause::Modified { .. }
        | Cause::MixedPointers
        | Cause::Atomic { .. }
        | Cause::Object { .. }
        | Cause::StackUnwritten { .. }
        | Cause::StackPoisoned { .. } => access::words(explanation),
        Cause::Packet { .. } => packet::words(explanation),
        Cause::Bounds { .. } | Cause::Arithmetic { .. } => bounds::words(explanation),
        Cause::HelperUnavailable { .. }
        | Cause::HelperUnknown { .. }
        | Cause::Relocation { .. }
        | Cause::PacketLoad
        | Cause::KfuncUnavailable { .. }
        | Cause::KfuncMissing { .. }
        | Cause::Trap
        | Cause::License { .. }
        | Cause::ArgumentType { .. }
        | Cause::ModuleType { .. }
        | Cause::ArgumentSize { .. }
        | Cause::ArgumentConstant { .. }
        | Cause::ArgumentNotZero { .. }
        | Cause::ConstantString { .. }
        | Cause::Untrusted { .. }
        | Cause::PacketArgument { .. }
        | Cause::GlobalArguments { .. }
        | Cause::GlobalSignature { .. }
        | Cause::Map { .. } => call::words(explanation),
        Cause::MapCreation(refused) => map::words(refused),
        Cause::StackObject { .. } => stack_object::words(explanation),
        Cause::AllocatedObject { .. } => object::words(explanation),
        Cause::Sleeps { .. }
        | Cause::Leak { .. }
        | Cause::NotAcquired { .. }
        | Cause::TwoReferences { .. }
        | Cause::Lock { .. }
        | Cause::SectionOpen { .. }
        | Cause::SectionCall { .. } => held::words(explanation),
        _ => flow::words(explanation),
    }
}

/// A list as in `a, b or c`.
fn any_of<T: AsRef<str>>(items: &[T]) -> String {
    list(items).replace(" and ", " or ")
}

/// A list as in `a, b and c`, cut where it gets long.
fn list<T: AsRef<str>>(items: &[T]) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = items.iter().take(MOST).map(AsRef::as_ref).collect();
    if items.len() > MOST {
        return format!("{} and {} more", names.join(", "), items.len() - MOST);
    }
    match &names[..] {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
