//! What native code relies on beside the verifier's rules: facts about the kernel that a proof
//! rests on, which callers pass in as data.
//!
//! The registry says what helpers read and write, which contexts and sockets have which fields,
//! and which maps a helper takes. Lowering compares each with the code that runs: signatures
//! with those that implementations declare beside them, accesses to contexts and sockets with
//! the layout of [`vm::DirectContext`] and [`vm::network`]. What differs does not run as native
//! code. Linear in the instructions.

use isa::ebpf::{Effect, Insn};
use spec::helpers::HelperId;
use spec::kfuncs::KernelFunction;
use spec::registry::RegBase;
use verifier::{InsnFact, OffsetRange, Pointer, PointerKind, Proof, Value};
use vm::network::{SocketView, TcpFigures};
use vm::{ContextKind, HostFunction};

use crate::structure::FindCall;
use crate::verified::UnsupportedConstruct;

/// Signature of `bpf_tail_call`, which native code makes by itself.
const TAIL_CALL_SIGNATURE: &str = "ctx map any -> void";

/// Bytes of `struct bpf_xdp_sock`.
const XDP_SOCKET_BYTES: usize = 4;

/// Checks the premises of a proof that do not belong to one instruction.
pub(crate) fn check_premises(
    proof: &Proof,
    find_call: FindCall,
    host: &[HostFunction],
) -> Result<(), UnsupportedConstruct> {
    if proof.is_mitigated() {
        return Err(UnsupportedConstruct::Speculation);
    }
    if !proof.has_own_tail_call_maps() {
        return Err(UnsupportedConstruct::Signature(HelperId::TailCall.number()));
    }
    let mut signatures = proof.signatures();
    match signatures.find(|(number, used)| !is_written_for(*number, used, find_call, host)) {
        Some((number, _)) => Err(UnsupportedConstruct::Signature(number)),
        None => Ok(()),
    }
}

/// True if the function of a number of resolved code is written for a signature. Functions that
/// are not there are found by the check of the structure.
fn is_written_for(number: i32, used: &str, find_call: FindCall, host: &[HostFunction]) -> bool {
    if HelperId::from_number(number) == Some(HelperId::TailCall) {
        return used == TAIL_CALL_SIGNATURE;
    }
    match KernelFunction::from_number(number) {
        Some(KernelFunction::Bits(op)) => used == op.signature(),
        Some(KernelFunction::Host(index)) => {
            let function = host.get(usize::from(index));
            function.is_some_and(|function| function.prototype().signatures().any(|it| it == used))
        }
        Some(KernelFunction::Linux(_)) | None => match find_call(number) {
            Some(implementation) => implementation.signatures().any(|declared| declared == used),
            None => true,
        },
    }
}

/// True if an instruction accesses only what native code has of contexts and sockets.
pub(crate) fn has_place(insn: Insn, fact: &InsnFact, kind: ContextKind) -> bool {
    let Some(pointer) = fact.access.as_ref().and_then(Value::pointer) else {
        return true;
    };
    let Some(access) = insn.access() else {
        return true;
    };
    let bytes = access.size.bytes() as usize;
    let is_load = insn.effect() == Some(Effect::Load);
    match pointer.kind {
        PointerKind::Context => {
            let loaded = fact.result.as_ref().filter(|_| is_load);
            is_inside(pointer.offset, bytes, kind.size())
                && match (loaded.and_then(|(_, value)| value.pointer()), is_load) {
                    // The bounds of the packet are not in the structure, and loads of objects
                    // are refused by themselves.
                    (Some(loaded), true) if is_kept(loaded.kind) => {
                        pointer
                            .offset
                            .constant()
                            .and_then(|at| usize::try_from(at).ok())
                            == kind.pointer_field()
                    }
                    (_, true) => true,
                    (_, false) => !reaches_pointer(pointer, bytes, kind),
                }
        }
        kind => match socket_bytes(kind) {
            Some(size) => is_load && is_inside(pointer.offset, bytes, size),
            None => true,
        },
    }
}

/// True for pointers that contexts hold as they are loaded.
fn is_kept(kind: PointerKind) -> bool {
    kind == PointerKind::FlowKeys || socket_bytes(kind).is_some()
}

/// True if a store may change a pointer that the context holds.
fn reaches_pointer(pointer: &Pointer, bytes: usize, kind: ContextKind) -> bool {
    let Some(field) = kind.pointer_field() else {
        return false;
    };
    let field = field as i64;
    let end = pointer.offset.max.saturating_add(bytes as i64);
    pointer.offset.min < field + 8 && field < end
}

/// True if so many bytes at all of the offsets are in an object.
fn is_inside(offset: OffsetRange, bytes: usize, size: usize) -> bool {
    let last = size.checked_sub(bytes).map(|last| last as i64);
    offset.min >= 0 && last.is_some_and(|last| offset.max <= last)
}

/// Bytes of the structure of a socket that programs read; `None` for other pointers.
pub(crate) fn socket_bytes(kind: PointerKind) -> Option<usize> {
    use RegBase::{
        ConstPtrToDynptr, ConstPtrToMap, NotInit, PtrToArena, PtrToBtfId, PtrToBuf, PtrToCtx,
        PtrToFlowKeys, PtrToFunc, PtrToInsn, PtrToMapKey, PtrToMapValue, PtrToMem, PtrToPacket,
        PtrToPacketEnd, PtrToPacketMeta, PtrToStack, PtrToTpBuffer, Scalar,
    };
    match kind {
        PointerKind::Other { base } => match base {
            RegBase::PtrToSocket | RegBase::PtrToSockCommon => Some(SocketView::SIZE),
            RegBase::PtrToTcpSock => Some(TcpFigures::SIZE),
            RegBase::PtrToXdpSock => Some(XDP_SOCKET_BYTES),
            NotInit | Scalar | PtrToCtx | ConstPtrToMap | PtrToMapValue | PtrToMapKey
            | PtrToStack | PtrToPacketMeta | PtrToPacket | PtrToPacketEnd | PtrToFlowKeys
            | PtrToTpBuffer | PtrToBtfId | PtrToMem | PtrToArena | PtrToBuf | PtrToFunc
            | ConstPtrToDynptr | PtrToInsn => None,
        },
        PointerKind::Context
        | PointerKind::Map(_)
        | PointerKind::MapValue(_)
        | PointerKind::MapKey(_)
        | PointerKind::Stack { .. }
        | PointerKind::Packet
        | PointerKind::PacketMeta
        | PointerKind::PacketEnd
        | PointerKind::FlowKeys
        | PointerKind::Memory { .. }
        | PointerKind::Function { .. } => None,
    }
}
