//! Programs that are operations of a structure (`check_struct_ops_btf_id`).

use btf::{Btf, Kind, Name};
use isa::ebpf::{Callee, Insn};
use program::Program;
use spec::helpers::HelperId;
use spec::programs::LoadFlags;
use spec::registry::StructOps;

use super::function::{AttachedFunction, operation};
use crate::input::Input;
use crate::log::Sink;
use crate::{Result, Stop, refuse, refuse_if};

/// Checks that the program is an operation that programs can be (`check_struct_ops_btf_id`).
#[doc(alias = "check_struct_ops_btf_id")]
pub(super) fn check_struct_ops(input: &Input<'_>, check: &mut Sink<'_>) -> Result<()> {
    refuse_if!(!input.program.is_gpl_compatible(), check => Program::StructOpsLicense);
    let Some(target) = input.program.attach_target() else {
        return Err(refuse!(check => Program::NoOperation));
    };
    let types = input
        .vmlinux
        .filter(|_| target.module == 0)
        .ok_or_else(|| Stop::unsupported("operations of a structure without its BTF"))?;
    let id = target.btf_id;
    let structure = types.get(id).filter(|ty| is_registered(types, ty.name()));
    let Some((structure, members)) = structure.and_then(|ty| Some((ty, ty.as_composite()?))) else {
        return Err(refuse!(check => Program::NotStructOps { id: id.0 }));
    };
    let name = structure.name();
    let index = target.member.unwrap_or(0);
    let Some(member) = members.member(index as usize) else {
        return Err(refuse!(check => Program::NoMember { index, name }));
    };
    let member_name = types.string(member.name);
    if operation(types, &member).is_none() {
        return Err(refuse!(check => Program::NotOperation { member: member_name, index, name }));
    }
    let Some(operations) = input.struct_ops() else {
        return Err(Stop::unsupported(format!("operations of struct {name}")));
    };
    check_member(input.program, operations, member_name, check)?;
    check_tail_calls(input, check)
}

/// True if the kernel has a structure of operations of this name: its map's values have a type.
fn is_registered(types: &Btf<'_>, name: Name<'_>) -> bool {
    types
        .find(Kind::Struct, &format!("bpf_struct_ops_{name}"))
        .is_some()
}

/// Checks that programs may be the operation, and may sleep in it if they do
/// (`bpf_struct_ops_supported`, `check_member`).
#[doc(alias = "bpf_struct_ops_supported")]
fn check_member(
    program: &Program,
    operations: &StructOps,
    member: Name<'_>,
    check: &mut Sink<'_>,
) -> Result<()> {
    let refused = |check: &mut Sink<'_>| refuse!(check => Program::UnsupportedMember { name: member, structure: operations.name });
    let name = member.to_str().unwrap_or_default();
    if !operations.operations.has(name) {
        return Err(refused(check));
    }
    if program.flags().has(LoadFlags::SLEEPABLE) && !operations.sleepable.has(name) {
        return Err(refused(check).with_errno(crate::Errno::EINVAL));
    }
    Ok(())
}

/// Programs with referenced arguments make no tail calls.
fn check_tail_calls(input: &Input<'_>, check: &mut Sink<'_>) -> Result<()> {
    let is_tail_call = |insn: &Insn| {
        matches!(insn, Insn::Call(Callee::Helper(id))
            if HelperId::from_number(*id) == Some(HelperId::TailCall))
    };
    if !input.insns.iter().any(is_tail_call) {
        return Ok(());
    }
    let function = AttachedFunction::of(input);
    if function.is_some_and(|function| !function.referenced_args(input).is_empty()) {
        return Err(refuse!(check => Program::ReferencedTailCall));
    }
    Ok(())
}
