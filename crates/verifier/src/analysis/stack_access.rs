//! Bytes of the stack that an instruction accesses by a pointer, before the walk.

use btf::{ParamSuffix, Shape, TypeId};
use isa::ebpf::{Insn, RawInsn, Reg};
use spec::limits::DYNPTR_SIZE;
use spec::registry::{ArgBase, ArgDetail, KfuncFlags, TypeFlags};

use super::calls;
use super::constants::Constants;
use crate::input::Input;
use crate::mem::MAX_STACK;

/// Bytes behind a pointer that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// None.
    None,
    /// So many, read.
    Read(u64),
    /// So many, written for certain.
    Written(u64),
    /// As many as there may be, read.
    Unknown,
}

impl Bytes {
    /// Halves of slots that an access at an offset may read, and those that it writes whole
    /// (`record_stack_access_off`).
    #[doc(alias = "record_stack_access_off")]
    pub(super) fn halves(self, offset: i16) -> (u128, u128) {
        const HALF: i64 = 4;
        let depth = -i64::from(offset);
        if depth <= 0 {
            return (0, 0);
        }
        let range = |low: i64, high: i64| {
            let bits = |count: i64| match count.clamp(0, 128) {
                128 => !0,
                count => (1u128 << count) - 1,
            };
            bits(high + 1) & !bits(low.max(0))
        };
        match self {
            Bytes::None => (0, 0),
            Bytes::Unknown => (range(0, (depth - 1) / HALF), 0),
            Bytes::Read(size) => {
                let low = (depth - size.min(1 << 32) as i64) / HALF;
                (range(low, (depth - 1) / HALF), 0)
            }
            Bytes::Written(size) => {
                let low = (depth - size.min(1 << 32) as i64 + HALF - 1) / HALF;
                (0, range(low, depth / HALF - 1))
            }
        }
    }

    fn of_size(size: u64, is_written: bool) -> Bytes {
        match (size, is_written) {
            (0, _) => Bytes::None,
            (size, true) => Bytes::Written(size),
            (size, false) => Bytes::Read(size),
        }
    }
}

/// The pointer, the offset and the bytes of a load or store.
pub(super) fn of_memory(insn: Insn) -> Option<(Reg, i16, Bytes)> {
    Some(match insn {
        Insn::Load {
            size, base, off, ..
        }
        | Insn::LoadAcquire {
            size, base, off, ..
        }
        | Insn::Atomic {
            size, base, off, ..
        } => (base, off, Bytes::Read(size.bytes().into())),
        Insn::Store {
            size, base, off, ..
        }
        | Insn::StoreRelease {
            size, base, off, ..
        } => (base, off, Bytes::Written(size.bytes().into())),
        _ => return None,
    })
}

/// Registers of a helper that runs a callback: the function, what is given to it, and the register in
/// which it gets that (`find_callback_subprog`).
#[doc(alias = "find_callback_subprog")]
pub(super) fn callback_registers(insn: RawInsn) -> Option<[Reg; 3]> {
    let rules = calls::called_helper(insn)?.callback()?.rules();
    let (given, taken) = rules.given?;
    Some([rules.register, given, taken])
}

/// Bytes behind an argument of a helper or kfunc.
pub(super) fn of_argument(
    input: &Input<'_>,
    constants: &Constants,
    index: u32,
    insn: RawInsn,
    arg: usize,
) -> Bytes {
    match calls::is_helper_call(insn) {
        true => of_helper(input, constants, index, insn, arg),
        false => of_kfunc(input, constants, index, insn, arg).unwrap_or(Bytes::Unknown),
    }
}

/// The register of an argument, counted from 0.
fn register(arg: usize) -> Reg {
    Reg::new(arg as u8 + 1).unwrap_or(Reg::R5)
}

/// Linux's `bpf_helper_stack_access_bytes`.
#[doc(alias = "bpf_helper_stack_access_bytes")]
fn of_helper(
    input: &Input<'_>,
    constants: &Constants,
    index: u32,
    insn: RawInsn,
    arg: usize,
) -> Bytes {
    use ArgBase::{
        Anything, ConstAllocSizeOrZero, ConstMapPtr, ConstSize, ConstSizeOrZero, DontCare,
        KptrXchgDest, PtrToArena, PtrToBtfId, PtrToBtfIdSockCommon, PtrToConstStr, PtrToCtx,
        PtrToFunc, PtrToPercpuBtfId, PtrToRingbufMem, PtrToSockCommon, PtrToSocket, PtrToSpinLock,
        PtrToTimer,
    };
    let proto = u32::try_from(insn.imm).ok();
    let proto = proto.and_then(|id| input.registry.helper_proto(&input.context, id).ok());
    let Some(proto) = proto else {
        return Bytes::Unknown;
    };
    let ty = proto.args[arg];
    let is_written = ty.flags.has(TypeFlags::MEM_UNINIT);
    match ty.base {
        ArgBase::PtrToMapKey | ArgBase::PtrToMapValue => {
            let is_key = ty.base == ArgBase::PtrToMapKey;
            let maps = (0..arg).find(|&arg| proto.args[arg].base == ArgBase::ConstMapPtr);
            let known = maps.and_then(|map| constants.map(index, register(map)));
            let size = match known {
                Some(map) if is_key => input.maps[map].key_size(),
                Some(map) => input.maps[map].value_size(),
                None => largest(input, is_key),
            };
            match (known, size) {
                (None, 0) => Bytes::Unknown,
                _ => Bytes::of_size(size.into(), is_written),
            }
        }
        ArgBase::PtrToMem => {
            if ty.flags.has(TypeFlags::MEM_FIXED_SIZE) {
                return match proto.arg_details[arg] {
                    ArgDetail::Size(size) => Bytes::of_size(size.into(), is_written),
                    _ => Bytes::Unknown,
                };
            }
            let next = proto.args.get(arg + 1).map(|next| next.base);
            if !matches!(next, Some(ArgBase::ConstSize | ArgBase::ConstSizeOrZero)) {
                return Bytes::Unknown;
            }
            match constants.number(index, register(arg + 1)) {
                Some(size) => Bytes::of_size(size.into(), is_written),
                None if is_written => Bytes::None,
                None => Bytes::Read(MAX_STACK as u64),
            }
        }
        ArgBase::PtrToDynptr => Bytes::of_size(DYNPTR_SIZE.into(), is_written),
        ArgBase::PtrToStack => Bytes::None,
        DontCare | ConstMapPtr | PtrToArena | ConstSize | ConstSizeOrZero | PtrToCtx | Anything
        | PtrToSpinLock | PtrToSockCommon | PtrToSocket | PtrToBtfId | PtrToRingbufMem
        | ConstAllocSizeOrZero | PtrToBtfIdSockCommon | PtrToPercpuBtfId | PtrToFunc
        | PtrToConstStr | PtrToTimer | KptrXchgDest => Bytes::Unknown,
    }
}

/// Bytes of the largest key or value of the program's maps.
fn largest(input: &Input<'_>, is_key: bool) -> u32 {
    let used = input.program.used_maps().into_iter();
    let maps = used.map(|id| &input.maps[crate::state::MapRef(id.0)]);
    let sizes = maps.flat_map(|map| {
        let inner = map.inner().map(|inner| &input.maps[inner]);
        [Some(map), inner].into_iter().flatten()
    });
    let sizes = sizes.map(|map| match is_key {
        true => map.key_size(),
        false => map.value_size(),
    });
    sizes.max().unwrap_or(0)
}

/// Linux's `bpf_kfunc_stack_access_bytes`; `None` if it knows nothing.
#[doc(alias = "bpf_kfunc_stack_access_bytes")]
fn of_kfunc(
    input: &Input<'_>,
    constants: &Constants,
    index: u32,
    insn: RawInsn,
    arg: usize,
) -> Option<Bytes> {
    let id = u32::try_from(insn.imm).ok().filter(|_| insn.off == 0)?;
    let kfunc = input.registry.kfunc(id)?;
    let btf = input.vmlinux?;
    let Shape::Func(func) = btf.get(TypeId(id))?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = btf.get(func.proto)?.shape() else {
        return None;
    };
    let mut params = proto.params().skip(arg);
    let Some(param) = params.next() else {
        return Some(Bytes::None);
    };
    let strip = |id: TypeId| btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
    let Shape::Ptr(pointee) = btf.at(strip(param.ty)).shape() else {
        return Some(Bytes::None);
    };
    let suffix = |name| ParamSuffix::of(btf.string(name).as_bytes());
    let target = btf.at(strip(pointee));
    let next = params.next().and_then(|next| suffix(next.name));
    let size = if target.name() == "bpf_dynptr" {
        DYNPTR_SIZE.into()
    } else if matches!(next, Some(ParamSuffix::Size | ParamSuffix::ConstSize)) {
        match constants.number(index, register(arg + 1)) {
            Some(size) => size.into(),
            None => return Some(Bytes::Read(MAX_STACK as u64)),
        }
    } else {
        btf.size_of(target.id())?.into()
    };
    let is_new = arg == 0 && kfunc.flags.has(KfuncFlags::ITER_NEW);
    let is_written = is_new || suffix(param.name) == Some(ParamSuffix::Uninit);
    Some(Bytes::of_size(size, is_written))
}
