//! Families of masks of CPUs.

use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::Case;
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("masks of CPUs", masks)];

/// Functions on a CPU and a mask, on one mask, and on two; those whose result is a `bool`.
const OF_CPU: &[&str] = &[
    "set_cpu",
    "clear_cpu",
    "test_cpu",
    "test_and_set_cpu",
    "test_and_clear_cpu",
];
const OF_ONE: &[&str] = &["setall", "clear", "empty", "full", "weight"];
const OF_TWO: &[&str] = &["copy", "equal", "intersects", "subset"];
const OF_THREE: &[&str] = &["and", "or", "xor"];
/// Functions that return a CPU, or a number that is none if there is no such CPU.
const FIRST: &[&str] = &["first", "first_zero", "first_and"];
const NOTHING: &[&str] = &[
    "set_cpu",
    "clear_cpu",
    "setall",
    "clear",
    "copy",
    "or",
    "xor",
];

fn masks(choices: &mut Choices<'_>) -> Case {
    let new = call("bpf_cpumask_create");
    let release = call("bpf_cpumask_release");
    let mut text = format!(
        "r9 = 1\n{new}if r0 == 0 goto out\nr6 = r0\n{new}if r0 == 0 goto drop_first\nr7 = r0\n\
         {new}if r0 == 0 goto drop_second\nr8 = r0\n"
    );
    for at in 0..4 + choices.below(24) {
        let mut mask = || choices.pick(&["r6", "r7", "r8"]);
        let [first, second, third] = [mask(), mask(), mask()];
        // The machine has 2 CPUs here, and more in the kernel, whose bits stay unset.
        let cpu = choices.pick(&[0u32, 0, 1, 8192, u32::MAX]);
        let (name, arguments) = match choices.below(5) {
            0 | 1 => (
                choices.pick(OF_CPU),
                format!("r1 = {cpu:#x} ll\nr2 = {first}\n"),
            ),
            2 => (choices.pick(OF_ONE), format!("r1 = {first}\n")),
            3 => match choices.one_in(3) {
                true => (
                    choices.pick(FIRST),
                    format!("r1 = {first}\nr2 = {second}\n"),
                ),
                false => (
                    choices.pick(OF_TWO),
                    format!("r1 = {first}\nr2 = {second}\n"),
                ),
            },
            _ => (
                choices.pick(OF_THREE),
                format!("r1 = {first}\nr2 = {second}\nr3 = {third}\n"),
            ),
        };
        text += &arguments;
        text += &call(&format!("bpf_cpumask_{name}"));
        text += &match name {
            name if NOTHING.contains(&name) => continue,
            "weight" => String::new(),
            // No CPU has some number that is not below that of CPUs.
            name if FIRST.contains(&name) => {
                format!("if w0 < 2 goto cpu{at}\nr0 = 99\ncpu{at}:\n")
            }
            _ => "r0 &= 0xff\n".to_owned(),
        };
        text += "w1 = w0\nr9 *= 31\nr9 += r1\n";
    }
    text += &format!(
        "r1 = r8\n{release}drop_second:\nr1 = r7\n{release}drop_first:\nr1 = r6\n{release}\
         out:\nr0 = r9\nr0 >>= 32\nr0 ^= r9\nexit\n"
    );
    Case::new(ProgramType::Syscall, text)
}
