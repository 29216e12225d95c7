//! Compiled profiles: both shapes are equivalent to each other and to libseccomp's recorded
//! code for the same profile.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use beebox_seccomp::profile::{
    ContainerProfile, NEWEST_KERNEL, ProfileNote, ProgramShape, Runtime, TargetMachine, compile,
};
use beebox_seccomp::{Action, Analysis, Arch, FilterProgram, Stack, diff};
use classic::SeccompData;
use isa::classic::SockFilter;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use spec::kernel::KernelVersion;

fn example(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../examples/seccomp").join(name)
}

fn recorded() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/web-server.libseccomp")
}

fn machine(arch: Arch, caps: &[&str], kernel: KernelVersion) -> TargetMachine {
    let caps = caps
        .iter()
        .map(|cap| (*cap).to_owned())
        .collect::<BTreeSet<_>>();
    TargetMachine {
        arch,
        caps,
        kernel,
        runtime: Runtime::Libseccomp,
    }
}

fn stack(program: &[SockFilter]) -> Stack {
    let mut stack = Stack::default();
    stack.install(FilterProgram::new(program).unwrap()).unwrap();
    stack
}

fn compiled(profile: &ContainerProfile, machine: &TargetMachine, shape: ProgramShape) -> Stack {
    stack(&compile(profile, machine, shape).unwrap().program)
}

/// The action of every call of the three x86 interfaces, one per line.
fn summary(stack: &Stack) -> String {
    let mut analysis = Analysis::new(stack).unwrap();
    let mut text = String::new();
    for arch in [Arch::X86_64, Arch::I386, Arch::X32] {
        let table = analysis.table(arch).unwrap();
        let mut lines = Vec::new();
        for group in &table.groups {
            let cases = group
                .cases
                .iter()
                .map(|case| format!("{} {}", case.action, case.when));
            let mut cases: Vec<String> = cases.collect();
            cases.sort();
            for (nr, name) in &group.calls {
                lines.push((*nr, format!("{arch} {name}: {}", cases.join("; "))));
            }
        }
        lines.sort();
        for (_, line) in lines {
            let _ = writeln!(text, "{line}");
        }
        for others in &table.others {
            let action = others.cases[0].action;
            assert_eq!((others.cases.len(), others.is_all), (1, true));
            let _ = writeln!(text, "{arch} unnamed: {action}");
        }
    }
    text
}

/// The summary of libseccomp's filter for the profile: recorded, or with
/// `BEEBOX_LIBSECCOMP_FILTER=libseccomp.bpf` (exported by seccomp_export_bpf) computed and recorded.
fn libseccomps_summary() -> String {
    let Some(filter) = std::env::var_os("BEEBOX_LIBSECCOMP_FILTER") else {
        return std::fs::read_to_string(recorded()).unwrap();
    };
    let program = classic::text::read(&std::fs::read(filter).unwrap(), None).unwrap();
    let summary = summary(&stack(&program));
    std::fs::write(recorded(), &summary).unwrap();
    summary
}

#[test]
fn a_profile_matches_libseccomp() {
    let profile =
        ContainerProfile::read(&std::fs::read(example("web-server.json")).unwrap()).unwrap();
    let machine = machine(Arch::X86_64, &["CAP_SYS_PTRACE"], NEWEST_KERNEL);
    let recorded = libseccomps_summary();
    for shape in [ProgramShape::Tree, ProgramShape::Linear] {
        let summary = summary(&compiled(&profile, &machine, shape));
        for (line, recorded) in summary.lines().zip(recorded.lines()) {
            assert_eq!(line, recorded, "{shape:?}");
        }
        assert_eq!(summary.lines().count(), recorded.lines().count());
    }
}

#[test]
fn both_shapes_are_equivalent_on_every_machine() {
    let profile =
        ContainerProfile::read(&std::fs::read(example("web-server.json")).unwrap()).unwrap();
    for &arch in &[
        Arch::X86_64,
        Arch::Aarch64,
        Arch::Riscv64,
        Arch::I386,
        Arch::X32,
    ] {
        for caps in [&[][..], &["CAP_SYS_PTRACE", "CAP_SYS_CHROOT"]] {
            for kernel in [KernelVersion::new(4, 7, 0), NEWEST_KERNEL] {
                let machine = machine(arch, caps, kernel);
                let tree = compiled(&profile, &machine, ProgramShape::Tree);
                let linear = compiled(&profile, &machine, ProgramShape::Linear);
                assert_eq!(diff(&tree, &linear), Ok(Vec::new()), "{machine:?}");
            }
        }
    }
}

/// A rule in JSON.
fn rule() -> impl Strategy<Value = serde_json::Value> {
    let names = [
        "read", "write", "clone", "socket", "shmat", "connect", "ioctl", "openat",
    ];
    let name = proptest::sample::subsequence(names.to_vec(), 1..4);
    let actions = ["ALLOW", "LOG", "KILL_PROCESS", "TRAP"];
    let action = proptest::sample::select(actions.to_vec());
    let ops = ["NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"];
    let values = [
        0u64,
        1,
        5,
        40,
        0xffff_ffff,
        1 << 32,
        0x1_0000_0005,
        u64::MAX,
    ];
    let value = proptest::sample::select(values.to_vec());
    let arg = (
        0u8..6,
        proptest::sample::select(ops.to_vec()),
        value.clone(),
        value,
    );
    let arg = arg.prop_map(|(index, op, value, two)| {
        serde_json::json!({
            "index": index, "op": format!("SCMP_CMP_{op}"), "value": value, "valueTwo": two,
        })
    });
    (name, action, proptest::collection::vec(arg, 0..3)).prop_map(|(names, action, args)| {
        serde_json::json!({
            "names": names, "action": format!("SCMP_ACT_{action}"), "args": args,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, rng_seed: RngSeed::Fixed(oracle::property_seed()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_shapes_are_equivalent_for_random_rules(rules in proptest::collection::vec(rule(), 1..8)) {
        let profile = serde_json::json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            "syscalls": rules,
        });
        let profile = ContainerProfile::read(profile.to_string().as_bytes()).unwrap();
        let machine = machine(Arch::X86_64, &[], NEWEST_KERNEL);
        let tree = compiled(&profile, &machine, ProgramShape::Tree);
        let linear = compiled(&profile, &machine, ProgramShape::Linear);
        prop_assert_eq!(diff(&tree, &linear), Ok(Vec::new()));
    }
}

#[test]
fn a_long_profile_reaches_over_long_distances() {
    // Every call has a condition of its own: bodies are far from the comparisons of
    // numbers.
    let rules: Vec<_> = beebox_seccomp::calls::all(Arch::X86_64)
        .map(|(nr, name)| {
            serde_json::json!({
                "names": [name], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 1, "op": "SCMP_CMP_GT", "value": u64::from(nr) << 31}],
            })
        })
        .collect();
    let profile = serde_json::json!({
        "defaultAction": "SCMP_ACT_KILL_PROCESS",
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": rules,
    });
    let profile = ContainerProfile::read(profile.to_string().as_bytes()).unwrap();
    let machine = machine(Arch::X86_64, &[], NEWEST_KERNEL);
    let tree = compiled(&profile, &machine, ProgramShape::Tree);
    let linear = compiled(&profile, &machine, ProgramShape::Linear);
    assert!(linear.filters()[0].checked().insns().len() > 1500);
    assert_eq!(diff(&tree, &linear), Ok(Vec::new()));
    for (nr, _) in beebox_seccomp::calls::all(Arch::X86_64) {
        let edge = u64::from(nr) << 31;
        let mut call = classic::SeccompData {
            nr: nr as i32,
            arch: Arch::X86_64.audit(),
            ..Default::default()
        };
        for (value, runs) in [(edge, false), (edge + 1, true), (u64::MAX, true)] {
            call.args[1] = value;
            assert_eq!(tree.run(&call).allows(), runs, "{call:?}");
        }
    }
}

/// Numbers of calls around the newest that a profile names, with what runc's filter does: of
/// each architecture the newest, and whether a number is above it.
const NEWER: &[(Arch, &[(u32, bool)])] = &[
    // epoll_pwait is 281; numbers with the x32 bit and -1 are left to libseccomp's code.
    (
        Arch::X86_64,
        &[
            (0, false),
            (270, false),
            (281, false),
            (282, true),
            (334, true),
            (439, true),
            (1000, true),
            (0x3fff_ffff, true),
            (0x4000_0000 + 300, false),
            (u32::MAX, false),
        ],
    ),
    // socket (359) is also behind socketcall, where libseccomp looks for it: epoll_pwait (319)
    // is the newest.
    (
        Arch::I386,
        &[(319, false), (320, true), (359, true), (u32::MAX, true)],
    ),
    (
        Arch::Aarch64,
        &[(198, false), (199, true), (291, true), (u32::MAX, true)],
    ),
    // Calls that the kernel does not know arrive as number 0.
    (
        Arch::S390x,
        &[(0, true), (4, false), (312, false), (313, true)],
    ),
    (Arch::Riscv64, &[(0, false), (198, false), (199, true)]),
];

#[test]
fn calls_newer_than_a_profile_get_enosys_from_runc() {
    let defaults = [
        (r#""SCMP_ACT_ERRNO""#, true),
        (r#""SCMP_ACT_ERRNO", "defaultErrnoRet": 13"#, true),
        (r#""SCMP_ACT_KILL""#, true),
        (r#""SCMP_ACT_KILL_PROCESS""#, true),
        (r#""SCMP_ACT_TRAP""#, true),
        (r#""SCMP_ACT_TRACE""#, false),
        (r#""SCMP_ACT_LOG""#, false),
        (r#""SCMP_ACT_ALLOW""#, false),
    ];
    for (default, refuses) in defaults {
        // Names in rules with the default action count too.
        let text = format!(
            r#"{{"defaultAction": {default}, "syscalls": [
                {{"names": ["read", "close", "socket"], "action": "SCMP_ACT_NOTIFY"}},
                {{"names": ["no_such_call"], "action": "SCMP_ACT_ALLOW"}},
                {{"names": ["epoll_pwait"], "action": {action}}}]}}"#,
            action = default.split(',').next().unwrap()
        );
        let profile = ContainerProfile::read(text.as_bytes()).unwrap();
        for &(arch, numbers) in NEWER {
            for shape in [ProgramShape::Linear, ProgramShape::Tree] {
                let of = |runtime| {
                    let machine = TargetMachine {
                        runtime,
                        ..machine(arch, &[], NEWEST_KERNEL)
                    };
                    let program = compile(&profile, &machine, shape).unwrap().program;
                    let order = arch.byte_order();
                    let mut stack = Stack::default();
                    let filter = FilterProgram::for_machine(&program, order).unwrap();
                    stack.install(filter).unwrap();
                    stack
                };
                let (runc, libseccomp) = (of(Runtime::Runc), of(Runtime::Libseccomp));
                for &(number, is_newer) in numbers {
                    let data = SeccompData {
                        nr: number as i32,
                        arch: arch.audit(),
                        instruction_pointer: 0,
                        args: [0; 6],
                    };
                    let expected = match refuses && is_newer {
                        true => Action::Errno(38),
                        false => libseccomp.run(&data),
                    };
                    assert_eq!(runc.run(&data), expected, "{default} {arch} {number}");
                }
            }
        }
    }
}

/// What `InitSeccomp` of runc refuses, and libseccomp alone does not.
#[test]
fn profiles_that_runc_refuses_are_refused() {
    let compile = |text: &str, runtime| {
        let profile = ContainerProfile::read(text.as_bytes()).unwrap();
        let machine = TargetMachine {
            runtime,
            ..machine(Arch::X86_64, &[], NEWEST_KERNEL)
        };
        compile(&profile, &machine, ProgramShape::Tree)
    };
    let refused = [
        (
            r#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#,
            "defaultAction: runc refuses the profile: SCMP_ACT_NOTIFY cannot be used as default action",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                {"names": ["read", "write"], "action": "SCMP_ACT_NOTIFY"}]}"#,
            "syscalls[0]: runc refuses the profile: SCMP_ACT_NOTIFY cannot be used for the write syscall",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ERRNO",
                "flags": ["SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_FOO"]}"#,
            "flags: runc refuses the profile: seccomp flag SECCOMP_FILTER_FLAG_FOO is not known to runc",
        ),
    ];
    for (text, what) in refused {
        let error = compile(text, Runtime::Runc).unwrap_err();
        assert_eq!(error.to_string(), what);
        let notes = compile(text, Runtime::Libseccomp).unwrap().notes;
        let flag = ProfileNote::UnknownFlag("SECCOMP_FILTER_FLAG_FOO".to_owned());
        assert_eq!(notes.contains(&flag), text.contains("FOO"));
    }
    // Rules that do not apply are not the runtime's.
    let excluded = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["write"], "action": "SCMP_ACT_NOTIFY", "includes": {"arches": ["s390x"]}},
        {"names": ["read"], "action": "SCMP_ACT_NOTIFY"}]}"#;
    assert!(compile(excluded, Runtime::Runc).is_ok());
}

#[test]
fn x32_has_a_newest_call_of_its_own() {
    let text = r#"{"defaultAction": "SCMP_ACT_ERRNO",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"],
        "syscalls": [{"names": ["read", "ioctl", "openat"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let profile = ContainerProfile::read(text.as_bytes()).unwrap();
    let machine = TargetMachine {
        runtime: Runtime::Runc,
        ..machine(Arch::X86_64, &[], NEWEST_KERNEL)
    };
    let stack = compiled(&profile, &machine, ProgramShape::Tree);
    let action = |nr: u32| {
        stack.run(&SeccompData {
            nr: nr as i32,
            arch: Arch::X86_64.audit(),
            instruction_pointer: 0,
            args: [0; 6],
        })
    };
    // openat is 257, ioctl of x32 514.
    let x32 = 0x4000_0000;
    assert_eq!(action(257), Action::Allow);
    assert_eq!(action(258), Action::Errno(38));
    assert_eq!(action(514), Action::Errno(38));
    assert_eq!(action(x32 + 257), Action::Allow);
    assert_eq!(action(x32 + 258), Action::Errno(1));
    assert_eq!(action(x32 + 514), Action::Allow);
    assert_eq!(action(x32 + 515), Action::Errno(38));
    assert_eq!(action(u32::MAX), Action::Errno(38));
}
