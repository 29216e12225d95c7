//! Helper prototypes of functions of a host.

use super::{Argument, NumberType, Pointee, Prototype};
use crate::registry::{
    ArgBase, ArgDetail, ArgType, HelperProto, HostHelper, KfuncFlags, RetBase, RetType, TypeFlags,
};

/// The helper that a prototype with a helper number is.
pub(super) fn of(prototype: &Prototype) -> Option<HostHelper> {
    let mut args = [ArgType::new(ArgBase::DontCare, TypeFlags::NONE); 5];
    let mut arg_details: [ArgDetail; 5] = Default::default();
    let parameters = prototype.parameters.iter();
    let types = parameters.flat_map(|parameter| types(&parameter.argument));
    for ((ty, detail), at) in types.zip(0..) {
        args[at] = ty;
        arg_details[at] = detail;
    }
    let ret = match prototype.returns {
        Some(_) => RetBase::Integer,
        None => RetBase::Void,
    };
    let proto = HelperProto {
        id: prototype.helper?,
        name: prototype.name.clone().into(),
        function: prototype.name.as_str().into(),
        args,
        arg_details,
        ret: RetType::new(ret, TypeFlags::NONE),
        ret_btf: None,
        gpl_only: false,
        pkt_access: true,
        might_sleep: prototype.flags.has(KfuncFlags::SLEEPABLE),
        allow_fastcall: false,
        restriction: None,
    };
    Some(HostHelper {
        proto,
        programs: prototype.programs,
    })
}

/// The types of the registers that an argument takes.
fn types(argument: &Argument) -> Vec<(ArgType, ArgDetail)> {
    let access = |is_written: bool| match is_written {
        true => TypeFlags::MEM_WRITE,
        false => TypeFlags::MEM_RDONLY,
    };
    let plain = |base, flags| (ArgType::new(base, flags), ArgDetail::None);
    match argument {
        Argument::Scalar(_) => vec![plain(ArgBase::Anything, TypeFlags::NONE)],
        Argument::Text => vec![plain(ArgBase::PtrToConstStr, TypeFlags::NONE)],
        Argument::Bytes { is_written } => vec![
            plain(ArgBase::PtrToMem, access(*is_written)),
            plain(ArgBase::ConstSizeOrZero, TypeFlags::NONE),
        ],
        Argument::Object {
            pointee,
            is_written,
        } => {
            let flags = access(*is_written) | TypeFlags::MEM_FIXED_SIZE;
            let size = ArgDetail::Size(size(pointee));
            vec![(ArgType::new(ArgBase::PtrToMem, flags), size)]
        }
    }
}

/// Bytes of what an argument points to.
fn size(pointee: &Pointee) -> u32 {
    match pointee {
        Pointee::Scalar(scalar) => NumberType::size(*scalar),
        Pointee::Structure { fields, .. } => {
            let sizes = fields.iter();
            let sizes = sizes.map(|field| field.scalar.size() * field.count.unwrap_or(1));
            sizes.sum()
        }
    }
}
