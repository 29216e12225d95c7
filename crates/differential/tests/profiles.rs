//! Generated container profiles, compiled here and by libseccomp: the actions for
//! generated calls are equal, and the running kernel takes both filters and decides the
//! calls of its own architectures as they do.
//!
//! A question is a profile (with capabilities, architectures and kernel versions in its
//! rules), a machine, and a call. What a rule's `includes` and `excludes` mean is decided
//! here a second time, as in runc. Left out is what docs/seccomp.md names as different
//! on purpose: rules of one call with different actions, and several conditions in
//! alternatives on architectures that compare low halves only.

use std::collections::BTreeSet;

use classic::SeccompData;
use isa::classic::{Cond, Insn, Operand, Size, SockFilter};
use seccomp::profile::{ContainerProfile, ProgramShape, Runtime, TargetMachine, compile};
use seccomp::{Action, Arch, FilterProgram, X32_BIT, calls};
use serde_json::{Value, json};
use spec::SplitMix;
use spec::kernel::KernelVersion;
use sys::libseccomp::{ArgComparison, Libseccomp};
use sys::seccomp::{Call, Convention, Outcome, instruction_pointer, run};

/// Questions about one profile.
const CALLS: usize = 10;

const NAMES: &[&str] = &[
    "read",
    "openat",
    "socket",
    "clone",
    "ioctl",
    "mmap",
    "ptrace",
    "personality",
    "bind",
    "connect",
    "shmget",
    "semop",
    "unshare",
    "kill",
    "prctl",
    "execve",
    "fcntl",
    "mount",
    "setuid",
    "futex",
    "sendto",
    "accept4",
    "io_uring_setup",
    "clone3",
    "arch_prctl",
    "stat",
    "fchmodat",
];

const CAPS: &[&str] = &["CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_BPF"];

/// Machines, each with the architectures that run on it.
const MACHINES: &[(Arch, &[Arch])] = &[
    (Arch::X86_64, &[]),
    (Arch::X86_64, &[Arch::I386]),
    (Arch::X86_64, &[Arch::I386, Arch::X32]),
    (Arch::Aarch64, &[Arch::Arm]),
    (Arch::Riscv64, &[]),
    (Arch::S390x, &[]),
    (Arch::Ppc64le, &[]),
    (Arch::Mips64, &[]),
    (Arch::Mipsel64, &[]),
];

/// Actions by their names in profiles.
const ACTIONS: &[(&str, Action)] = &[
    ("SCMP_ACT_ALLOW", Action::Allow),
    ("SCMP_ACT_ERRNO", Action::Errno(1)),
    ("SCMP_ACT_KILL", Action::KillThread),
    ("SCMP_ACT_KILL_PROCESS", Action::KillProcess),
    ("SCMP_ACT_TRAP", Action::Trap(0)),
    ("SCMP_ACT_TRACE", Action::Trace(7)),
    ("SCMP_ACT_LOG", Action::Log),
    ("SCMP_ACT_NOTIFY", Action::UserNotif),
];

const OPS: &[&str] = &[
    "SCMP_CMP_NE",
    "SCMP_CMP_LT",
    "SCMP_CMP_LE",
    "SCMP_CMP_EQ",
    "SCMP_CMP_GE",
    "SCMP_CMP_GT",
    "SCMP_CMP_MASKED_EQ",
];

/// Values of arguments, and their neighbours.
const VALUES: &[u64] = &[
    0,
    1,
    2,
    16,
    0xffff_ffff,
    0x1_0000_0000,
    0x7e02_0000,
    1 << 63,
];

struct Choices(SplitMix);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() >> 33) as usize % limit
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn value(&mut self) -> u64 {
        let near = self.pick(VALUES);
        near.wrapping_add(self.below(3) as u64).wrapping_sub(1)
    }
}

/// A rule as generated: once for the text, once for libseccomp.
struct Rule {
    names: Vec<&'static str>,
    action: (&'static str, Action),
    args: Vec<ArgComparison>,
    caps: [Vec<&'static str>; 2],
    arches: [Vec<&'static str>; 2],
    min_kernel: [Option<KernelVersion>; 2],
}

struct Question {
    text: Value,
    rules: Vec<Rule>,
    default: Action,
    machine: TargetMachine,
    archs: Vec<Arch>,
}

fn question(seed: u64) -> (Question, Choices) {
    let mut choices = Choices(SplitMix::new(seed));
    let (arch, others) = choices.pick(MACHINES);
    let archs: Vec<Arch> = [&[arch], others].concat();
    let (default_name, default) = choices.pick(ACTIONS);
    let is_narrow = |arch: &Arch| arch.has_narrow_arguments() || *arch == Arch::X32;
    let mut free = NAMES.to_vec();
    let mut rules = Vec::new();
    for _ in 0..=choices.below(6) {
        let mut names = Vec::new();
        for _ in 0..=choices.below(3) {
            if !free.is_empty() {
                names.push(free.swap_remove(choices.below(free.len())));
            }
        }
        let action = choices.pick(ACTIONS);
        // Alternatives: several rules with the same names and action.
        let alternatives = 1 + choices.below(3);
        for _ in 0..alternatives {
            let most = match alternatives > 1 && archs.iter().any(is_narrow) {
                true => 1,
                false => 3,
            };
            rules.push(rule(&mut choices, names.clone(), action, most));
        }
    }
    let caps: BTreeSet<String> = CAPS
        .iter()
        .filter(|_| choices.one_in(2))
        .map(|cap| (*cap).to_owned())
        .collect();
    let architectures: Vec<&str> = archs.iter().map(|arch| arch.profile_name()).collect();
    let question = Question {
        text: json!({
            "defaultAction": default_name,
            "defaultErrnoRet": errno(default),
            "architectures": architectures,
            "syscalls": rules.iter().map(rule_text).collect::<Vec<_>>(),
        }),
        rules,
        default,
        machine: TargetMachine {
            arch,
            caps,
            kernel: choices.pick(&[
                KernelVersion::new(4, 4, 0),
                KernelVersion::new(5, 10, 0),
                KernelVersion::new(6, 18, 0),
            ]),
            runtime: Runtime::Libseccomp,
        },
        archs,
    };
    (question, choices)
}

fn rule(
    choices: &mut Choices,
    names: Vec<&'static str>,
    action: (&'static str, Action),
    most: usize,
) -> Rule {
    let mut free = vec![0, 1, 2, 3, 4, 5];
    let mut args = Vec::new();
    for _ in 0..choices.below(most + 1) {
        args.push(ArgComparison {
            arg: free.swap_remove(choices.below(free.len())),
            op: 1 + choices.below(OPS.len()) as i32,
            first: choices.value(),
            second: choices.value(),
        });
    }
    let mut some = |from: &[&'static str]| match choices.one_in(3) {
        true => vec![choices.pick(from)],
        false => Vec::new(),
    };
    let arches = ["amd64", "arm64", "s390x", "x86"];
    Rule {
        names,
        action,
        args,
        caps: [some(CAPS), some(CAPS)],
        arches: [some(&arches), some(&arches)],
        min_kernel: [0, 1].map(|_| {
            let is_there = choices.one_in(6);
            is_there
                .then(|| choices.pick(&[KernelVersion::new(4, 8, 0), KernelVersion::new(6, 0, 0)]))
        }),
    }
}

/// The data of an action that has other data than 1.
fn errno(action: Action) -> Option<u16> {
    match action {
        Action::Trace(data) => Some(data),
        _ => None,
    }
}

fn rule_text(rule: &Rule) -> Value {
    let args = rule.args.iter().map(|arg| {
        json!({
            "index": arg.arg,
            "op": OPS[arg.op as usize - 1],
            "value": arg.first,
            "valueTwo": arg.second,
        })
    });
    let filter = |at: usize| {
        let kernel =
            rule.min_kernel[at].map(|version| format!("{}.{}", version.major, version.minor));
        json!({"caps": rule.caps[at], "arches": rule.arches[at], "minKernel": kernel})
    };
    json!({
        "names": rule.names,
        "action": rule.action.0,
        "errnoRet": errno(rule.action.1),
        "args": args.collect::<Vec<_>>(),
        "includes": filter(0),
        "excludes": filter(1),
    })
}

impl Question {
    /// True if a rule counts on the machine, as runc decides it.
    fn counts(&self, rule: &Rule) -> bool {
        let machine = &self.machine;
        let has = |cap: &&str| machine.caps.contains(*cap);
        let is = |arch: &&str| *arch == machine.arch.docker_name();
        let new = |version: &KernelVersion| machine.kernel >= *version;
        let included = rule.caps[0].iter().all(has)
            && (rule.arches[0].is_empty() || rule.arches[0].iter().any(is))
            && rule.min_kernel[0].iter().all(new);
        let excluded = rule.caps[1].iter().any(has)
            || rule.arches[1].iter().any(is)
            || rule.min_kernel[1].iter().any(new);
        included && !excluded && rule.action.1 != self.default
    }

    /// libseccomp's code; `None` if it refuses a rule or does not know an architecture.
    fn peer(&self, library: &Libseccomp) -> Option<Vec<SockFilter>> {
        let token = |arch: &Arch| match arch {
            Arch::X32 => 0x4000_003e,
            arch => arch.audit(),
        };
        let tokens: Vec<u32> = self.archs.iter().map(token).collect();
        let mut filter = library.filter(self.default.to_return(), &tokens).ok()?;
        for rule in self.rules.iter().filter(|rule| self.counts(rule)) {
            for name in &rule.names {
                let number = library.resolve(name)?;
                filter
                    .add(rule.action.1.to_return(), number, &rule.args)
                    .ok()?;
            }
        }
        let code = filter.export().ok()?;
        classic::text::read(
            &code,
            Some(classic::text::Form::Raw(self.machine.arch.byte_order())),
        )
        .ok()
    }
}

/// A call near the rules of a question.
fn call(question: &Question, choices: &mut Choices) -> SeccompData {
    let arch = choices.pick(&question.archs);
    let name = match question.rules.is_empty() || choices.one_in(6) {
        true => choices.pick(NAMES),
        false => {
            let rule = &question.rules[choices.below(question.rules.len())];
            choices.pick(if rule.names.is_empty() {
                NAMES
            } else {
                &rule.names
            })
        }
    };
    let number = match choices.below(12) {
        0 => u32::MAX,
        1 => X32_BIT | choices.below(600) as u32,
        2 => choices.below(600) as u32,
        3 if arch == Arch::I386 => 102,
        _ => calls::number(arch, name).unwrap_or(7),
    };
    let mut data = SeccompData {
        nr: number as i32,
        arch: match choices.one_in(20) {
            true => 0xc000_0102,
            false => arch.audit(),
        },
        instruction_pointer: 0,
        args: [0; 6],
    };
    for arg in &mut data.args {
        *arg = choices.value();
        if arch.has_narrow_arguments() || arch == Arch::X32 {
            *arg &= 0xffff_ffff;
        }
    }
    data
}

/// A filter whose every action is an error number that stands for it, for calls made at
/// the given instruction pointers; other calls are allowed.
fn harmless(program: &[SockFilter], pointers: [u64; 2]) -> (Vec<SockFilter>, Vec<u32>) {
    let mut returns = Vec::new();
    let mut code = |value: u32| {
        let place = returns.iter().position(|&known| known == value);
        let place = place.unwrap_or_else(|| {
            returns.push(value);
            returns.len() - 1
        });
        0x5_0000 + 1000 + place as u32
    };
    let load = |k| Insn::LoadAbs { size: Size::W, k };
    let equal = |k, jt, jf| Insn::Jump {
        cond: Cond::Eq,
        src: Operand::K(k),
        jt,
        jf,
    };
    let [first, second] = pointers;
    let start = [
        load(8),
        equal(first as u32, 2, 0),
        equal(second as u32, 3, 0),
        Insn::RetK(0x7fff_0000),
        load(12),
        equal((first >> 32) as u32, 3, 2),
        load(12),
        equal((second >> 32) as u32, 1, 0),
        Insn::RetK(0x7fff_0000),
    ];
    let body = program.iter().map(|&raw| match Insn::decode(raw) {
        Insn::RetK(value) => Insn::RetK(code(value)),
        other => other,
    });
    let body: Vec<SockFilter> = body.map(|insn| insn.encode()).collect();
    let start = start.map(|insn| insn.encode());
    ([&start, &body[..]].concat(), returns)
}

/// The kernel's answers for calls of its own architectures, as return values of the
/// filter.
fn kernel_answers(
    program: &[SockFilter],
    calls: &[Call],
    pointers: [u64; 2],
) -> Option<Vec<Option<u32>>> {
    let (program, returns) = harmless(program, pointers);
    let answer = run(&[&program], calls).ok()?;
    if answer.installed != [Ok(())] {
        return None;
    }
    let value = |outcome: &Outcome| match outcome {
        Outcome::Returned(code) => returns.get((-code - 1000) as usize).copied(),
        _ => None,
    };
    Some(answer.outcomes.iter().map(value).collect())
}

#[oracle::test]
fn profiles_do_what_libseccomp_and_the_kernel_make_of_them() {
    let library = Libseccomp::load();
    let Some(library) = oracle::found("profiles compiled by libseccomp", library) else {
        return;
    };
    let pointers = [Convention::X86_64, Convention::I386].map(instruction_pointer);
    let allow = [Insn::RetK(0x7fff_0000).encode()];
    let is_kernel_there = kernel_answers(&allow, &[], pointers).is_some();
    if !is_kernel_there {
        oracle::skip("profiles in the kernel", "seccomp(2) is not there");
    }
    let (mut asked, mut left_out, mut of_kernel) = (0, 0, 0);
    let seeds = oracle::seeds(260);
    for seed in seeds.clone() {
        let (question, mut choices) = question(seed);
        let profile =
            ContainerProfile::read(question.text.to_string().as_bytes()).expect("a profile");
        let Some(peer) = question.peer(&library) else {
            left_out += 1;
            continue;
        };
        let order = question.machine.arch.byte_order();
        let theirs = FilterProgram::for_machine(&peer, order).expect("libseccomp's code is taken");
        for shape in [ProgramShape::Tree, ProgramShape::Linear] {
            let ours = compile(&profile, &question.machine, shape).expect("it is short");
            let program = ours.program;
            let ours = FilterProgram::for_machine(&program, order).expect("our code is taken");
            let mut of_host = Vec::new();
            for _ in 0..CALLS {
                let data = call(&question, &mut choices);
                let expected = theirs.run(&data);
                assert_eq!(
                    Action::from_return(ours.run(&data)),
                    Action::from_return(expected),
                    "seed {seed}, {shape:?}: {data:x?}\n{:#}",
                    question.text
                );
                asked += usize::from(shape == ProgramShape::Tree);
                let convention = match data.arch {
                    0xc000_003e => Convention::X86_64,
                    0x4000_0003 => Convention::I386,
                    _ => continue,
                };
                let (nr, args) = (data.nr, data.args);
                of_host.push((
                    Call {
                        convention,
                        nr,
                        args,
                    },
                    expected,
                ));
            }
            if !is_kernel_there {
                continue;
            }
            let calls: Vec<Call> = of_host.iter().map(|(call, _)| *call).collect();
            for code in [&program, &peer] {
                let answers = kernel_answers(code, &calls, pointers).expect("it is taken");
                for ((call, expected), answer) in of_host.iter().zip(answers) {
                    // The kernel skips number -1 before it asks filters for data.
                    if call.nr == -1 {
                        continue;
                    }
                    let answer = answer.map(Action::from_return);
                    let expected = Some(Action::from_return(*expected));
                    assert_eq!(answer, expected, "seed {seed}: {call:x?}");
                    of_kernel += 1;
                }
            }
        }
    }
    eprintln!("profiles: {asked} questions, {of_kernel} of the kernel, {left_out} left out");
    if seeds.clone().count() >= 260 {
        assert!(
            asked >= 2000,
            "{asked} questions, {left_out} profiles left out"
        );
    }
}

#[oracle::test]
fn system_call_numbers_equal_those_of_libseccomp() {
    let library = Libseccomp::load();
    let Some(library) = oracle::found("numbers of calls in libseccomp", library) else {
        return;
    };
    for &arch in Arch::ALL {
        let token = match arch {
            Arch::X32 => 0x4000_003e,
            // Later releases have it.
            Arch::Loongarch64 => continue,
            arch => arch.audit(),
        };
        let mut compared = 0;
        for (number, name) in calls::all(arch) {
            if let Some(known) = library.resolve_on(token, name) {
                assert_eq!(known, number, "{arch} {name}");
                compared += 1;
            }
        }
        assert!(compared > 250, "{arch}: {compared}");
    }
}
