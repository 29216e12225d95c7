//! Call summaries for the passes before the walk: the number of arguments read, whether a
//! result is written, and the effects that callers inherit.

use btf::{Shape, TypeId};
use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use spec::registry::{KfuncFlags, RetBase};

use crate::env::Env;

/// Number of `bpf_tail_call`.
pub(super) const TAIL_CALL: i32 = 12;
/// Number of `bpf_get_smp_processor_id`, which the x86-64 kernel inlines.
const GET_SMP_PROCESSOR_ID: i32 = 8;
/// `bpf_timer_set_callback`.
const TIMER_SET_CALLBACK: i32 = 170;
/// `bpf_for_each_map_elem`, `bpf_find_vma`, `bpf_loop`, `bpf_user_ringbuf_drain`.
const SYNC_CALLBACKS: [i32; 4] = [164, 180, 181, 209];
/// Helpers after which pointers into the packet are invalid.
const CHANGES_PACKET: [i32; 23] = [
    9,   // skb_store_bytes
    10,  // l3_csum_replace
    11,  // l4_csum_replace
    12,  // tail_call: the program called may be any
    13,  // clone_redirect
    18,  // skb_vlan_push
    19,  // skb_vlan_pop
    31,  // skb_change_proto
    38,  // skb_change_tail
    39,  // skb_pull_data
    43,  // skb_change_head
    44,  // xdp_adjust_head
    50,  // skb_adjust_room
    54,  // xdp_adjust_meta
    62,  // msg_pull_data
    65,  // xdp_adjust_tail
    73,  // lwt_push_encap
    74,  // lwt_seg6_store_bytes
    75,  // lwt_seg6_adjust_srh
    76,  // lwt_seg6_action
    90,  // msg_push_data
    91,  // msg_pop_data
    143, // store_hdr_opt
];

/// A call of the kernel: its prototype as far as liveness needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSummary {
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

/// True for calls of helpers.
pub(super) fn is_helper_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Helper)
}

/// True for calls of functions of this program.
pub(super) fn is_local_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Local)
}

/// True for calls of functions of the kernel by BTF id.
pub(super) fn is_kfunc_call(insn: RawInsn) -> bool {
    insn.pseudo_call() == Some(PseudoCall::Kfunc)
}

/// True for loads of the address of a function of this program.
pub(super) fn is_function_address(insn: RawInsn) -> bool {
    insn.pseudo_load() == Some(PseudoLoad::Func)
}

/// True if the helper changes the packet (`bpf_helper_changes_pkt_data`).
pub fn helper_changes_packet(id: i32) -> bool {
    CHANGES_PACKET.contains(&id)
}

/// True if the call runs a callback before it returns.
pub fn calls_sync_callback(env: &Env<'_>, insn: RawInsn) -> bool {
    is_helper_call(insn) && SYNC_CALLBACKS.contains(&insn.imm)
        || is_kfunc_call(insn) && is_named(env, insn, &["bpf_rbtree_add_impl"])
}

/// True if the call registers a callback that runs later.
pub fn calls_async_callback(env: &Env<'_>, insn: RawInsn) -> bool {
    const KFUNCS: [&str; 3] = [
        "bpf_wq_set_callback_impl",
        "bpf_task_work_schedule_signal_impl",
        "bpf_task_work_schedule_resume_impl",
    ];
    is_helper_call(insn) && insn.imm == TIMER_SET_CALLBACK
        || is_kfunc_call(insn) && is_named(env, insn, &KFUNCS)
}

/// True if the call advances an open-coded iterator.
pub(super) fn advances_iterator(env: &Env<'_>, insn: RawInsn) -> bool {
    kfunc(env, insn).is_some_and(|kfunc| kfunc.flags.has(KfuncFlags::ITER_NEXT))
}

/// True if the call changes the packet.
pub(super) fn changes_packet(env: &Env<'_>, insn: RawInsn) -> bool {
    is_helper_call(insn) && helper_changes_packet(insn.imm)
        || is_kfunc_call(insn) && is_named(env, insn, &["bpf_xdp_pull_data"])
}

/// True if the call throws an exception.
pub(super) fn throws(env: &Env<'_>, insn: RawInsn) -> bool {
    is_kfunc_call(insn) && is_named(env, insn, &["bpf_throw"])
}

fn kfunc<'e>(env: &'e Env<'_>, insn: RawInsn) -> Option<&'e spec::registry::Kfunc> {
    let id = u32::try_from(insn.imm).ok().filter(|id| *id != 0)?;
    (insn.off == 0).then(|| env.registry.kfunc(id))?
}

fn is_named(env: &Env<'_>, insn: RawInsn, names: &[&str]) -> bool {
    kfunc(env, insn).is_some_and(|kfunc| names.contains(&&*kfunc.name))
}

/// Number of parameters of a kfunc, and whether it returns nothing.
fn kfunc_arity(env: &Env<'_>, btf_id: u32) -> Option<(u8, bool)> {
    let vmlinux = env.vmlinux?;
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

/// The summary of a call of a helper or kfunc that the program may make; `None` for
/// other instructions and for calls that the walk will refuse.
pub fn summary(env: &Env<'_>, insn: RawInsn) -> Option<CallSummary> {
    if is_helper_call(insn) {
        let id = u32::try_from(insn.imm).ok()?;
        let proto = env.registry.helper(&env.context, id).ok()?;
        return Some(CallSummary {
            params: proto.arg_count() as u8,
            is_void: proto.ret.base == RetBase::Void,
            fastcall: proto.allow_fastcall && insn.imm == GET_SMP_PROCESSOR_ID,
            might_sleep: proto.might_sleep,
        });
    }
    if is_kfunc_call(insn) {
        let (kind, attach) = (env.context.kind, env.context.attach);
        let kfunc = kfunc(env, insn).filter(|kfunc| kfunc.is_for(kind, attach))?;
        let (params, is_void) = kfunc_arity(env, kfunc.btf_id)?;
        return Some(CallSummary {
            params,
            is_void,
            fastcall: kfunc.flags.has(KfuncFlags::FASTCALL),
            might_sleep: kfunc.flags.has(KfuncFlags::SLEEPABLE),
        });
    }
    None
}
