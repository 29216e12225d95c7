//! Call summaries for the passes before the walk: the number of arguments read, whether a
//! result is written, and the effects that callers inherit.

use btf::{Shape, TypeId};
use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use spec::callback::CallbackKind;
use spec::helpers::HelperId;
use spec::registry::{KfuncFlags, RetBase, SpecialKfunc};

use crate::input::Input;

/// A call of the kernel: its prototype as far as liveness needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSummary {
    /// Arguments that the prototype has, 0 to 5.
    pub params: u8,
    /// Nothing is returned.
    pub is_void: bool,
    /// The kernel inlines the call and keeps the registers that the prototype does not
    /// name (`bpf_fastcall`).
    pub fastcall: bool,
    /// The call may sleep.
    pub might_sleep: bool,
}

/// True for calls of helpers (`bpf_helper_call`).
#[doc(alias = "bpf_helper_call")]
pub(super) fn is_helper_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Helper)
}

/// True for calls of functions of this program (`bpf_pseudo_call`).
#[doc(alias = "bpf_pseudo_call")]
pub(super) fn is_local_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Local)
}

/// True for calls of functions of the kernel by BTF id (`bpf_pseudo_kfunc_call`).
#[doc(alias = "bpf_pseudo_kfunc_call")]
pub(super) fn is_kfunc_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Kfunc)
}

/// True for loads of the address of a function of this program (`bpf_pseudo_func`).
#[doc(alias = "bpf_pseudo_func")]
pub(super) fn is_function_address(insn: RawInsn) -> bool {
    insn.pseudo_load() == Some(PseudoLoad::Func)
}

/// The helper of Linux that a slot calls.
pub(super) fn called_helper(insn: RawInsn) -> Option<HelperId> {
    HelperId::from_number(insn.imm).filter(|_| is_helper_call(insn))
}

/// True if the call runs a callback before it returns (`is_sync_callback_calling_insn`,
/// `is_sync_callback_calling_kfunc`, `bpf_is_sync_callback_calling_insn`).
#[doc(alias = "is_sync_callback_calling_insn")]
#[doc(alias = "is_sync_callback_calling_kfunc")]
#[doc(alias = "bpf_is_sync_callback_calling_insn")]
pub(crate) fn calls_sync_callback(input: &Input<'_>, insn: RawInsn) -> bool {
    callback(input, insn).is_some_and(|kind| !kind.is_async())
}

/// True if the call registers a callback that runs later (`is_async_callback_calling_insn`,
/// `is_async_callback_calling_kfunc`, `bpf_is_async_callback_calling_insn`).
#[doc(alias = "is_async_callback_calling_insn")]
#[doc(alias = "is_async_callback_calling_kfunc")]
#[doc(alias = "bpf_is_async_callback_calling_insn")]
pub(crate) fn calls_async_callback(input: &Input<'_>, insn: RawInsn) -> bool {
    callback(input, insn).is_some_and(CallbackKind::is_async)
}

/// The function of the program that the call is given (`is_callback_calling_function`,
/// `is_callback_calling_kfunc`).
#[doc(alias = "is_callback_calling_function")]
#[doc(alias = "is_callback_calling_kfunc")]
fn callback(input: &Input<'_>, insn: RawInsn) -> Option<CallbackKind> {
    match called_helper(insn) {
        Some(helper) => helper.callback(),
        None => special_kfunc(input, insn)?.callback(),
    }
}

/// True if the call advances an open-coded iterator (`is_iter_next_insn`).
#[doc(alias = "is_iter_next_insn")]
pub(super) fn advances_iterator(input: &Input<'_>, insn: RawInsn) -> bool {
    let kfunc = kfunc(input, insn).filter(|_| is_kfunc_call(insn));
    kfunc.is_some_and(|kfunc| kfunc.flags.has(KfuncFlags::ITER_NEXT))
}

/// True if the call changes the packet.
pub(super) fn changes_packet(input: &Input<'_>, insn: RawInsn) -> bool {
    called_helper(insn).is_some_and(HelperId::changes_packet)
        || special_kfunc(input, insn).is_some_and(SpecialKfunc::changes_packet)
}

/// True if the call throws an exception (`is_bpf_throw_kfunc`, `bpf_is_throw_kfunc`).
#[doc(alias = "is_bpf_throw_kfunc")]
#[doc(alias = "bpf_is_throw_kfunc")]
pub(super) fn throws(input: &Input<'_>, insn: RawInsn) -> bool {
    special_kfunc(input, insn) == Some(SpecialKfunc::Throw)
}

fn kfunc<'e>(input: &'e Input<'_>, insn: RawInsn) -> Option<&'e spec::registry::Kfunc> {
    let id = u32::try_from(insn.imm).ok().filter(|id| *id != 0)?;
    (insn.off == 0).then(|| input.registry.kfunc(id))?
}

/// The kfunc with rules of its own that a slot calls.
fn special_kfunc(input: &Input<'_>, insn: RawInsn) -> Option<SpecialKfunc> {
    kfunc(input, insn).filter(|_| is_kfunc_call(insn))?.special
}

/// Number of parameters of a kfunc, and whether it returns nothing.
fn kfunc_arity(input: &Input<'_>, btf_id: u32) -> Option<(u8, bool)> {
    let vmlinux = input.vmlinux?;
    let Shape::Func(func) = vmlinux.get(TypeId(btf_id))?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = vmlinux.get(func.proto)?.shape() else {
        return None;
    };
    // More than five are refused by the walk.
    let params = proto.params().len().min(5) as u8;
    Some((params, proto.returns.is_void()))
}

/// The summary of a call of a helper or kfunc that programs of this type may make; `None` for other
/// instructions and other calls, which the walk will refuse (`get_call_summary`,
/// `bpf_get_call_summary`).
#[doc(alias = "get_call_summary")]
#[doc(alias = "bpf_get_call_summary")]
pub(crate) fn summary(input: &Input<'_>, insn: RawInsn) -> Option<CallSummary> {
    if is_helper_call(insn) {
        let id = u32::try_from(insn.imm).ok()?;
        let proto = input.registry.helper_proto(&input.context, id).ok()?;
        return Some(CallSummary {
            params: proto.arg_count() as u8,
            is_void: proto.ret.base == RetBase::Void,
            fastcall: proto.allow_fastcall && called_helper(insn).is_some_and(HelperId::is_inlined),
            might_sleep: proto.might_sleep,
        });
    }
    if is_kfunc_call(insn) {
        let (kind, attach) = (input.context.kind, input.context.attach);
        let kfunc = kfunc(input, insn).filter(|kfunc| kfunc.is_for(kind, attach))?;
        let (params, is_void) = kfunc_arity(input, kfunc.btf_id)?;
        return Some(CallSummary {
            params,
            is_void,
            fastcall: kfunc.flags.has(KfuncFlags::FASTCALL),
            might_sleep: kfunc.flags.has(KfuncFlags::SLEEPABLE),
        });
    }
    None
}
