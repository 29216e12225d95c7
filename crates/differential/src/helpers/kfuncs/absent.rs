//! Families of functions on objects of the kernel that do not exist.

use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, bytes_at, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("objects of the kernel that do not exist", absent),
    Family::new(
        "objects for system calls that do not exist",
        absent_in_syscalls,
    ),
];

fn absent(choices: &mut Choices<'_>) -> Case {
    let lookup = |get: &str, release: &str, argument: u64| {
        format!(
            "r1 = {argument:#x} ll\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n{}r6 = 2\nnone:\n",
            call(get),
            call(release)
        )
    };
    let mut kind = ProgramType::SchedCls;
    let words = bytes_at(48, &[7; 48]);
    let call = match choices.below(5) {
        0 => lookup(
            "bpf_task_from_pid",
            "bpf_task_release",
            choices.pick(&[u64::MAX, 99_999_999, 1 << 31]),
        ),
        1 => lookup(
            "bpf_task_from_vpid",
            "bpf_task_release",
            choices.pick(&[u64::MAX, 99_999_999]),
        ),
        2 => lookup(
            "bpf_cgroup_from_id",
            "bpf_cgroup_release",
            choices.pick(&[0, u64::MAX, 1 << 50]),
        ),
        3 => lookup(
            "bpf_lookup_system_key",
            "bpf_key_put",
            choices.pick(&[3, 5, u64::MAX]),
        ),
        _ => {
            kind = ProgramType::Xdp;
            let size = choices.pick(&[36, 36, 36, 35, 4, 3, 0, 8]);
            let netns = choices.pick(&[-1i32, -1, -2, 0, 7]) as u32;
            format!(
                "r6 = r1\n{words}r1 = {netns:#x} ll\n*(u32 *)(r10 - 44) = r1\nr1 = r6\nr2 = r10\n\
                 r2 += -48\nr3 = {size}\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n{}r6 = 2\n\
                 none:\n",
                call("bpf_xdp_get_xfrm_state"),
                call("bpf_xdp_xfrm_state_release")
            )
        }
    };
    let clear = match kind {
        ProgramType::Xdp => String::new(),
        _ => words,
    };
    let text = format!("{clear}{call}r0 = r6\n{}", digest(48, 2));
    Case {
        kind,
        ..Case::tc(choices, text)
    }
}

fn absent_in_syscalls(choices: &mut Choices<'_>) -> Case {
    let clear = bytes_at(424, &[7; 424]);
    let called = match choices.below(3) {
        0 => {
            let size = choices.pick(&[408, 408, 408, 407, 1]);
            let reserved = choices.pick(&[0, 0, 1]);
            format!(
                "r1 = {reserved}\n*(u16 *)(r10 - 394) = r1\nr1 = 0\n*(u8 *)(r10 - 395) = r1\n\
                 r1 = r10\nr1 += -408\nr2 = {size}\nr3 = r10\nr3 += -424\n{}r6 = 1\n\
                 if r0 == 0 goto none\nr1 = r0\n{}r6 = 2\nnone:\n",
                call("bpf_crypto_ctx_create"),
                call("bpf_crypto_ctx_release")
            )
        }
        1 => {
            let flags = choices.pick(&[0u64, 0, 1, 1, 2, u64::MAX]);
            let size = choices.pick(&[0, 1, 8, 16]);
            let from = choices.pick(&[0u64, 1, 0x10]);
            format!(
                "r1 = r10\nr1 += -424\nr2 = {size}\nr3 = {from:#x} ll\nr4 = {flags:#x} ll\n{}r6 = r0\n",
                call("bpf_copy_from_user_str")
            )
        }
        _ => {
            let (serial, flags) = (
                choices.pick(&[0x7fff_fff0u64, 1 << 30]),
                choices.pick(&[0, 8]),
            );
            format!(
                "r1 = {serial:#x} ll\nr2 = {flags}\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n\
                 {}r6 = 2\nnone:\n",
                call("bpf_lookup_user_key"),
                call("bpf_key_put")
            )
        }
    };
    let text = format!("{clear}{called}r0 = r6\n{}", digest(424, 2));
    Case {
        kind: ProgramType::Syscall,
        packet: Vec::new(),
        ..Case::tc(choices, text)
    }
}
