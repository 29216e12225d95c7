//! What calls do with their arguments, by the callee's prototype.

use isa::ebpf::{Callee, Insn, Reg, RegSet};
use spec::registry::{ArgBase, ArgDetail, HelperProto, TypeFlags};

use super::trace::Trace;
use crate::input::Input;
use crate::state::{MapRef, RegKind};

/// The prototype of a callee that is a helper of the program.
pub(super) fn prototype<'a>(input: &Input<'a>, callee: Callee) -> Option<&'a HelperProto> {
    let Callee::Helper(number) = callee else {
        return None;
    };
    input.registry.helper(&input.context, number as u32).ok()
}

/// True if a helper writes the memory that an argument points to.
pub(super) fn writes_through(input: &Input<'_>, callee: Callee, number: u8) -> bool {
    let arg = prototype(input, callee).and_then(|proto| proto.args.get(usize::from(number) - 1));
    arg.is_some_and(|arg| {
        arg.flags.has(TypeFlags::MEM_UNINIT) || arg.flags.has(TypeFlags::MEM_WRITE)
    })
}

/// The first argument of the call at a step that is a map, and the map.
pub(super) fn map_argument(trace: &Trace, step: usize) -> Option<(Reg, MapRef)> {
    RegSet::ARGUMENTS.iter().find_map(|reg| {
        let RegKind::MapPtr { map, .. } = trace.reg(step, reg.index())?.kind else {
            return None;
        };
        Some((reg, map))
    })
}

/// Bytes that a call at a step accesses through an argument, as far as they are known.
pub(super) fn argument_bytes(
    input: &Input<'_>,
    trace: &Trace,
    step: usize,
    number: u8,
) -> Option<u32> {
    let Insn::Call(callee) = input.insns[trace.steps().get(step)?.insn as usize] else {
        return None;
    };
    let proto = prototype(input, callee)?;
    let index = usize::from(number.checked_sub(1)?);
    let reg = |reg: Reg| trace.reg(step, reg.index());
    let map = || Some(&input.maps[map_argument(trace, step)?.1]);
    match proto.args[index].base {
        ArgBase::PtrToMapKey => Some(map()?.key_size()),
        ArgBase::PtrToMapValue => Some(map()?.value_size()),
        _ => match proto.arg_details[index] {
            ArgDetail::Size(size) => Some(size),
            _ => {
                let size = reg(Reg::new(number + 1)?)?;
                size.is_scalar()
                    .then(|| u32::try_from(size.num.umax).ok())
                    .flatten()
            }
        },
    }
}
