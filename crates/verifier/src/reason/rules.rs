//! The rules: one for each class of refusal.
//!
//! A rule reads the refused instruction, what was known before it and the definitions of
//! the path, and of the rejection the fields that the class leaves open.

mod arithmetic;
mod attach;
mod bounds;
mod call;
mod check;
mod context;
mod exception;
mod flow;
mod held;
mod kfunc;
mod memory;
mod number;
mod object;
mod packet;
mod register;
mod resources;
mod stack_object;

use isa::ebpf::{Insn, Reg};

use super::cause::Cause;
use super::explanation::{InsnPlace, Note};
use super::scene::Scene;
use crate::verdict::RefusalKind;

/// Finding of a rule.
pub(super) struct Finding {
    pub(super) cause: Cause,
    /// The place, where it is not the refused instruction.
    pub(super) place: Option<InsnPlace>,
    /// Registers whose values matter.
    pub(super) subjects: Vec<Reg>,
    pub(super) notes: Vec<Note>,
}

impl Finding {
    fn new(cause: Cause) -> Finding {
        Finding {
            cause,
            place: None,
            subjects: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A finding about registers, the first of which has the history that is told.
    fn about(scene: &Scene<'_>, cause: Cause, subjects: &[Reg]) -> Finding {
        let notes = match subjects.first() {
            Some(&reg) if scene.last().is_some() => super::origin::of(scene, scene.def(reg)),
            _ => Vec::new(),
        };
        Finding {
            subjects: subjects.to_vec(),
            notes,
            ..Finding::new(cause)
        }
    }

    /// Adds a note, if no other is of its place.
    fn add(&mut self, note: Note) {
        if self
            .notes
            .iter()
            .all(|other| other.place.insn != note.place.insn)
        {
            self.notes.push(note);
        }
    }
}

/// Cause of the refusal, by the rule of its class.
pub(super) fn find(scene: &Scene<'_>) -> Finding {
    let rules = [
        stack_object::find,
        object::find,
        kfunc::find,
        exception::find,
    ];
    let of_object = rules.into_iter().find_map(|rule| rule(scene));
    let found = match scene.refusal.kind {
        _ if of_object.is_some() => of_object,
        RefusalKind::Encoding => flow::encoding(scene),
        RefusalKind::ControlFlow | RefusalKind::Unreachable | RefusalKind::BackEdge => {
            flow::control_flow(scene)
        }
        RefusalKind::Btf => call::signature(scene).or(Some(Finding::new(Cause::Btf))),
        RefusalKind::AttachTarget => Some(attach::target(scene)),
        RefusalKind::Release => Some(Finding::new(Cause::Release)),
        RefusalKind::KernelBug => Some(Finding::new(Cause::KernelBug)),
        RefusalKind::Privilege => Some(Finding::new(Cause::Privilege)),
        RefusalKind::Uninitialized => register::uninitialized(scene),
        RefusalKind::PointerArithmetic => arithmetic::forbidden(scene),
        RefusalKind::WrongType => memory::wrong_type(scene),
        RefusalKind::MaybeNull => memory::maybe_null(scene),
        RefusalKind::OutOfBounds | RefusalKind::Unbounded => bounds::outside(scene),
        RefusalKind::Misaligned => memory::misaligned(scene),
        RefusalKind::Forbidden => memory::forbidden(scene),
        RefusalKind::Stack => memory::stack(scene),
        RefusalKind::Context => context::access(scene),
        RefusalKind::Unavailable => call::unavailable(scene),
        RefusalKind::Argument => call::argument(scene),
        RefusalKind::License => call::license(scene),
        RefusalKind::MapCreation => {
            let map = scene.input.maps.refused(scene.input.program);
            map.map(|map| Finding::new(Cause::MapCreation(map)))
        }
        RefusalKind::Map => call::map(scene),
        RefusalKind::Section => held::section(scene),
        RefusalKind::Reference => held::reference(scene),
        RefusalKind::Lock => held::lock(scene),
        RefusalKind::ReturnValue => flow::return_value(scene),
        RefusalKind::Loop => flow::infinite_loop(scene),
        RefusalKind::Complexity => resources::complexity(scene),
        RefusalKind::StackSize => resources::stack_size(scene),
        RefusalKind::CallDepth => resources::call_depth(scene),
        RefusalKind::Limit => Some(Finding::new(Cause::TooMany)),
        RefusalKind::Other => None,
    };
    let mut found = found.unwrap_or_else(|| general(scene));
    found
        .notes
        .sort_by_key(|note| note.step.unwrap_or(usize::MAX));
    found
}

/// The finding where no rule is more specific: the registers that the instruction reads.
fn general(scene: &Scene<'_>) -> Finding {
    let named = scene.named_register();
    let mut subjects: Vec<Reg> = named.into_iter().collect();
    if let Some(insn) = scene.insn()
        && !matches!(insn, Insn::Call(_) | Insn::Exit)
    {
        let others = insn.reads().iter().filter(|reg| Some(*reg) != named);
        subjects.extend(others);
    }
    Finding::about(scene, Cause::General, &subjects)
}
