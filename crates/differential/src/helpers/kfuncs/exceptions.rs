//! Families of exceptions: `bpf_throw` from functions, with and without one that gets the
//! cookie.

use super::call;
use crate::helpers::Family;
use crate::helpers::case::Case;
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("exceptions", exceptions)];

/// Throws if a condition holds that depends on `r1`, which stays.
fn perhaps_throw(choices: &mut Choices<'_>, label: &str) -> String {
    let (mask, bits) = (choices.pick(&[1, 3, 7]), choices.below(8));
    let factor = 2 * choices.below(1000) + 1;
    format!(
        "r2 = r1\nr2 &= {mask}\nif r2 != {} goto {label}\nr1 *= {factor}\n{}{label}:\n",
        bits & mask,
        call("bpf_throw")
    )
}

fn exceptions(choices: &mut Choices<'_>) -> Case {
    let functions = 1 + choices.below(5);
    let mut text = "r6 = r1\nr1 = *(u32 *)(r6 + 0)\n".to_owned();
    text += &perhaps_throw(choices, "main_goes_on");
    text += "call f0\nr7 = r0\n";
    let has_loop = choices.one_in(2);
    if has_loop {
        text += &format!(
            "r1 = {}\nr2 = func(round) ll\nr3 = r10\nr3 += -8\n*(u64 *)(r10 - 8) = r7\nr4 = 0\n\
             call 181\nr7 = *(u64 *)(r10 - 8)\n",
            1 + choices.below(9)
        );
    }
    text += "r0 = r7\nr0 >>= 32\nr0 ^= r7\nexit\n";
    for number in 0..functions {
        text += &format!("f{number}:\nr6 = r1\n");
        text += &perhaps_throw(choices, &format!("f{number}_goes_on"));
        if number + 1 < functions {
            let next = number + 1;
            text += &format!("r1 *= 3\nr1 += {next}\ncall f{next}\nr0 += r6\nexit\n");
        } else {
            text += "r0 = r6\nr0 *= 7\nexit\n";
        }
    }
    if has_loop {
        // Linux refuses exceptions in functions that helpers call.
        text += "round:\nr3 = *(u64 *)(r2 + 0)\nr3 *= 5\nr3 += r1\n*(u64 *)(r2 + 0) = r3\n\
                 r0 = 0\nexit\n";
    }
    let callback = choices.one_in(2).then(|| {
        let factor = 2 * choices.below(1000) + 1;
        format!("r0 = r1\nr0 >>= 3\nr0 ^= r1\nr0 *= {factor}\nexit\n")
    });
    Case {
        has_types: true,
        exception_callback: callback,
        ..Case::tc(choices, text)
    }
}
