//! Families of sections and casts.

use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, bytes_at, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("sections and casts", sections)];

fn sections(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[ProgramType::SchedCls, ProgramType::Xdp]);
    let mut text = format!("r6 = r1\nr9 = 0\n{}", bytes_at(8, &[0; 8]));
    for at in 0..1 + choices.below(4) {
        let (before, behind) = match choices.below(3) {
            0 => ("bpf_rcu_read_lock", "bpf_rcu_read_unlock"),
            1 => ("bpf_preempt_disable", "bpf_preempt_enable"),
            _ => {
                text += &format!(
                    "r1 = r6\n{}if r0 == 0 goto none{at}\nr9 += 1\nnone{at}:\n",
                    call("bpf_cast_to_kern_ctx")
                );
                continue;
            }
        };
        text += &format!("{}r9 *= 31\nr9 += {at}\n{}", call(before), call(behind));
    }
    text += &format!("r0 = r9\n{}", digest(8, 1));
    Case {
        kind,
        ..Case::tc(choices, text)
    }
}
