//! Families of resilient locks and states of interrupts.

use program::MapParams;
use spec::maps::MapKind;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup};
use crate::helpers::program_types::{LOCK, LOCKED_SIZE, TYPES};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("resilient locks", locks)];

/// Takes the lock of the value in the register of a number, and those of others while it is held:
/// the verifier sees that a lock is taken twice by the same register.
fn section(choices: &mut Choices<'_>, depth: u32) -> String {
    const MOST: u32 = 3;
    let saves_flags = choices.one_in(2);
    let (flags, reg) = (24 + 8 * depth, 6 + depth);
    let state = |name: &str| match saves_flags {
        true => format!("r2 = r10\nr2 += -{flags}\n{}", call(name)),
        false => call(name.split("_irq").next().unwrap_or(name)),
    };
    let inner = match depth + 1 < MOST && !choices.one_in(3) {
        true => section(choices, depth + 1),
        false => String::new(),
    };
    format!(
        "r1 = r{reg}\nr1 += {LOCK}\n{}if r0 != 0 goto wrong{depth}\nr1 = *(u64 *)(r{reg} + 0)\n\
         r1 += 3\n*(u64 *)(r{reg} + 0) = r1\nr9 *= 31\nr9 += r1\n{inner}r1 = r{reg}\n\
         r1 += {LOCK}\n{}goto right{depth}\nwrong{depth}:\nw1 = w0\nr9 *= 31\nr9 += r1\n\
         right{depth}:\n",
        state("bpf_res_spin_lock_irqsave"),
        state("bpf_res_spin_unlock_irqrestore"),
    )
}

fn locks(choices: &mut Choices<'_>) -> Case {
    let params = MapParams {
        map_type: choices.pick(&[MapKind::Array, MapKind::Hash]).number(),
        key_size: 4,
        value_size: LOCKED_SIZE,
        value_type: TYPES.locked,
        max_entries: 2,
        ..MapParams::default()
    };
    // Values that the verifier takes for three, of two keys.
    let lookup = |reg: u32, key: u32| {
        format!(
            "r1 = {key}\n*(u64 *)(r10 - 8) = r1\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\n\
             if r0 == 0 goto out\nr{reg} = r0\n"
        )
    };
    let keys = [choices.below(2), 1, choices.below(2)];
    let lookups: String = (6..).zip(keys).map(|(reg, key)| lookup(reg, key)).collect();
    let section = section(choices, 0);
    let (save, restore) = match choices.one_in(2) {
        true => {
            let flags = "r1 = r10\nr1 += -64\n";
            (
                format!("{flags}{}", call("bpf_local_irq_save")),
                format!("{flags}{}", call("bpf_local_irq_restore")),
            )
        }
        false => (String::new(), String::new()),
    };
    // A hash has an entry of key 1 only.
    let entry = format!(
        "*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 72) = 5\n*(u64 *)(r10 - 64) = 0\nr1 = {MAP:#x} ll\n\
         r2 = r10\nr2 += -8\nr3 = r10\nr3 += -72\nr4 = 0\ncall 2\n"
    );
    let text = format!(
        "r9 = 1\n{entry}{lookups}{save}{section}{restore}out:\nr0 = r9\nr0 >>= 32\nr0 ^= r9\nexit\n"
    );
    Case {
        has_types: true,
        ..Case::tc(choices, text)
    }
    .with_map(Setup(params, None))
}
