//! The exception callback: a global function that a declaration tag of the main function
//! names. It runs when `bpf_throw` is called, in place of the rest of the program.

use btf::{Btf, Kind, Linkage, Shape, TypeId};
use program::EXCEPTION_CALLBACK_TAG;
use spec::behaviour::Behaviour;

use crate::input::Input;
use crate::log::Sink;
use crate::{Result, refuse, refuse_if};

/// First instruction of the exception callback (`bpf_find_exception_callback_insn_off`).
#[doc(alias = "bpf_find_exception_callback_insn_off")]
pub(super) fn find_callback(input: &Input<'_>, pass: &mut Sink<'_>) -> Result<Option<u32>> {
    if !input.rules.has(Behaviour::ExceptionCallbacks) {
        return Ok(None);
    }
    let (Some(types), Some(main)) = (input.program.btf(), input.program.func_info().first()) else {
        return Ok(None);
    };
    let tags = types.decl_tags(main.type_id, -1);
    let mut names = tags.filter_map(|tag| {
        Some(
            tag.as_bytes()
                .strip_prefix(EXCEPTION_CALLBACK_TAG)?
                .to_vec(),
        )
    });
    let Some(name) = names.next() else {
        return Ok(None);
    };
    refuse_if!(names.next().is_some(), pass => Program::SeveralExceptionCallbacks);
    let name = String::from_utf8_lossy(&name);
    let Some(callback) = types.find(Kind::Func, &name) else {
        return Err(refuse!(pass => Program::NoExceptionCallback { name }));
    };
    refuse_if!(!is_global(types, callback.id()), pass => Program::ExceptionCallbackStatic { name });
    let mut records = input.program.func_info().iter();
    match records.rfind(|record| record.type_id == callback.id()) {
        None => Err(refuse!(pass => Program::ExceptionCallbackType)),
        Some(record) if record.insn == 0 => Err(refuse!(pass => Program::ExceptionCallbackOffset)),
        Some(record) => Ok(Some(record.insn)),
    }
}

fn is_global(types: &Btf<'_>, function: TypeId) -> bool {
    matches!(
        types.at(function).shape(),
        Shape::Func(function) if function.linkage == Linkage::GLOBAL
    )
}
