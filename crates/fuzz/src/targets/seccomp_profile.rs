//! Container profiles compile to filters that mean what the profile says in
//! either shape.
//!
//! The input: one byte that picks the machine, then JSON.

use classic::SeccompData;
use seccomp::profile::{
    ContainerProfile, NEWEST_KERNEL, ProgramShape, Runtime, TargetMachine, compile,
};
use seccomp::{Arch, FilterProgram, Stack, calls};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "seccomp-profile",
    property: "a profile that can be read compiles to filters that Linux takes and that agree",
    words: &[
        "\"defaultAction\":",
        "\"SCMP_ACT_ERRNO\"",
        "\"SCMP_ACT_ALLOW\"",
        "\"SCMP_ACT_TRACE\"",
        "\"defaultErrnoRet\":",
        "\"errnoRet\":",
        "\"architectures\":",
        "\"SCMP_ARCH_X86_64\"",
        "\"SCMP_ARCH_X32\"",
        "\"SCMP_ARCH_AARCH64\"",
        "\"archMap\":",
        "\"subArchitectures\":",
        "\"syscalls\":",
        "\"names\":",
        "\"name\":",
        "\"action\":",
        "\"args\":",
        "\"index\":",
        "\"value\":",
        "\"valueTwo\":",
        "\"op\":",
        "\"SCMP_CMP_MASKED_EQ\"",
        "\"SCMP_CMP_GE\"",
        "\"SCMP_CMP_NE\"",
        "\"includes\":",
        "\"excludes\":",
        "\"caps\":",
        "\"CAP_SYS_ADMIN\"",
        "\"arches\":",
        "\"minKernel\":",
        "\"4.8\"",
        "\"personality\"",
        "\"clone\"",
        "\"ptrace\"",
        "[",
        "]",
        "{",
        "}",
        ",",
        "18446744073709551615",
        "null",
        "-1",
        "\"\"",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let Some((&choice, text)) = input.split_first() else {
        return Signature::of(());
    };
    let profile = match ContainerProfile::read(text) {
        Ok(profile) => profile,
        Err(error) => return Signature::of(error.what.split(['"', '\'']).next()),
    };
    let machine = TargetMachine {
        arch: Arch::ALL[usize::from(choice) % Arch::ALL.len()],
        caps: if choice & 0x80 == 0 {
            vec![]
        } else {
            vec!["CAP_SYS_ADMIN".to_owned()]
        }
        .into_iter()
        .collect(),
        kernel: NEWEST_KERNEL,
        runtime: match choice & 0x40 {
            0 => Runtime::Runc,
            _ => Runtime::Libseccomp,
        },
    };
    let stacks: Vec<Stack> = [ProgramShape::Linear, ProgramShape::Tree]
        .into_iter()
        .filter_map(|shape| compile(&profile, &machine, shape).ok())
        .filter_map(|compiled| {
            // Linux may refuse it still, for its length after conversion only.
            let filter = FilterProgram::new(&compiled.program)
                .map_err(|refusal| {
                    assert_ne!(refusal.stage, classic::Stage::Checker, "{refusal:?}")
                })
                .ok()?;
            let mut stack = Stack::default();
            stack.install(filter).ok()?;
            Some(stack)
        })
        .collect();
    if let [linear, tree] = &stacks[..] {
        for call in sample(&profile) {
            assert_eq!(linear.run(&call), tree.run(&call), "{call:?}");
        }
    }
    let length = profile
        .rules
        .iter()
        .map(|rule| rule.names.len() + rule.args.len())
        .sum::<usize>();
    Signature::of((stacks.len(), profile.default, length.min(32)))
}

/// Calls about which the profile may say something.
fn sample(profile: &ContainerProfile) -> Vec<SeccompData> {
    let conditions = profile.rules.iter().flat_map(|rule| &rule.args);
    let mut values: Vec<u64> = conditions
        .flat_map(|arg| [arg.value, arg.value_two, arg.value | arg.value_two])
        .flat_map(|value| {
            [
                value,
                value.wrapping_add(1),
                value.wrapping_sub(1),
                value ^ 1 << 32,
            ]
        })
        .take(64)
        .collect();
    values.push(0);
    let names = profile.rules.iter().flat_map(|rule| &rule.names).take(32);
    let mut calls = Vec::new();
    for (at, name) in names.map(String::as_str).chain(["read"]).enumerate() {
        for &arch in Arch::ALL {
            let nr = calls::number(arch, name).unwrap_or(at as u32);
            calls.extend(values.iter().map(|&value| SeccompData {
                nr: nr as i32,
                arch: arch.audit(),
                instruction_pointer: 0,
                args: [value; 6],
            }));
        }
    }
    calls
}
