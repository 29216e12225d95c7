//! The edit that makes a program pass in a kernel that refuses it, tried where that is mechanical.
//!
//! What a kernel lacks is guarded by a check that is constant when the program is loaded
//! (`bpf_core_enum_value_exists`, `bpf_ksym_exists`, `bpf_core_field_exists`, or of what the kernel has for
//! other programs its version): where it answers no, the use is dead code. The program with that answer is made by writing `r = 0`, the path around the
//! use, over it, and verified; the next thing that lacks is guarded, too. A helper that the kernel has in
//! its place is tried by its number.

use isa::ebpf::{AluOp, Callee, Insn, Operand, RawInsn, Reg, Width};
use program::Program;
use spec::helpers;
use spec::kernel::{KernelField, KernelVersion, Source};
use spec::programs::LoadFlags;
use spec::since::{Feature, Release};
use verifier::{Refusal, RefusalKind, Verdict};

use super::super::StandaloneProgram;
use super::super::results::{Row, explain};
use super::cause::{Budget, Decider, DeciderKind, RefusalCause, of_refusal};
use crate::Kernel;

/// An edit, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// In words.
    pub text: String,
    /// What came of it.
    pub outcome: EditOutcome,
}

/// What came of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The edited program was verified, and the kernel takes it.
    Accepted,
    /// The edited program was verified, and the kernel refuses it for another reason.
    Refused(String),
    /// It was not verified.
    Untried,
}

/// Helpers in the place of newer ones with the same arguments.
const IN_PLACE: &[(&str, &str)] = &[
    ("bpf_probe_read_kernel", "bpf_probe_read"),
    ("bpf_probe_read_user", "bpf_probe_read"),
    ("bpf_probe_read_kernel_str", "bpf_probe_read_str"),
    ("bpf_probe_read_user_str", "bpf_probe_read_str"),
    ("bpf_ktime_get_boot_ns", "bpf_ktime_get_ns"),
    ("bpf_ktime_get_coarse_ns", "bpf_ktime_get_ns"),
    ("bpf_ktime_get_tai_ns", "bpf_ktime_get_ns"),
    ("bpf_jiffies64", "bpf_ktime_get_ns"),
    ("bpf_get_current_task_btf", "bpf_get_current_task"),
];

/// Guards of one program at most.
const MOST_GUARDS: usize = 16;

/// The edit that makes the program of a row pass in a kernel that refuses it; `other` is the row of a
/// kernel that takes it.
pub(super) fn find(
    row: &Row,
    kernel: &Kernel,
    cause: Option<&RefusalCause>,
    other: Option<(&Row, &Kernel)>,
) -> Option<Edit> {
    let accepting = other.and_then(|(_, kernel)| kernel.version());
    let loaded = row.loaded.as_deref()?;
    let program = loaded.program.as_ref().ok()?;
    let refusal = row.refusal.as_ref()?;
    let decider = cause?.deciders.first()?;
    let budget = Budget::new();
    let untried = |text: String| Edit {
        text,
        outcome: EditOutcome::Untried,
    };
    match decider.kind {
        DeciderKind::Helper
        | DeciderKind::Kfunc
        | DeciderKind::Type
        | DeciderKind::Field
        | DeciderKind::Context => {
            let in_place = || {
                let edit = put_in_place(loaded, program, refusal, kernel, &budget)?;
                (edit.outcome == EditOutcome::Accepted).then_some(edit)
            };
            in_place().or_else(|| guard(loaded, refusal, kernel, other, &budget))
        }
        DeciderKind::Feature => Some(untried(feature_words(&decider.name))),
        DeciderKind::Map => Some(untried(
            "create the map only where the kernel has it (bpf_map__set_autocreate), and guard its uses \
             by a constant that the loader sets (const volatile bool in .rodata)"
                .to_owned(),
        )),
        DeciderKind::MapFlag => Some(untried(format!(
            "create the map without {} where the kernel lacks it (bpf_map__set_map_flags)",
            decider.name.split(' ').next().unwrap_or(&decider.name)
        ))),
        DeciderKind::Flag | DeciderKind::Target => without_flag(loaded, program, kernel, &budget),
        DeciderKind::ProgramType | DeciderKind::AttachType => {
            let since = decider.since.or(accepting.map(Release::from));
            let since = since.map_or_else(String::new, |since| format!(" before Linux {since}"));
            Some(untried(format!(
                "leave the program out on kernels{since} (bpf_program__set_autoload), and load one of \
                 another {} in its place if there is one",
                decider.kind.name()
            )))
        }
        DeciderKind::Behaviour => {
            let registry = kernel.registry()?;
            let explained = explain(program, kernel, registry, &budget.options())?;
            let help = explained.data.get("help")?.as_array()?;
            let words: Vec<&str> = help.iter().filter_map(|words| words.as_str()).collect();
            (!words.is_empty()).then(|| untried(words.join("; or ")))
        }
        DeciderKind::Offer => None,
    }
}

/// The edit for a kernel that lacks an instruction or a form of programs.
fn feature_words(name: &str) -> String {
    let by_option = Feature::ALL.iter().find_map(|feature| {
        let option = match feature {
            Feature::JumpLess => "-mcpu=v1",
            Feature::Jump32 => "-mcpu=v2",
            Feature::AtomicFetch | Feature::AtomicBits | Feature::AtomicExchange => "-mcpu=v2",
            Feature::SignedLoads
            | Feature::SignedMoves
            | Feature::ByteSwap
            | Feature::SignedDivision
            | Feature::LongJumps
            | Feature::OrderedAccess => "-mcpu=v3",
            _ => return None,
        };
        (feature.name() == name).then_some(option)
    });
    match by_option {
        Some("-mcpu=v2") if name.contains("atomic") => format!(
            "compile a second object without {name} for older kernels: __sync_fetch_and_add whose result \
             is not used, and clang -mcpu=v2; and load it where this one is refused"
        ),
        Some(option) => format!(
            "compile a second object without {name} for older kernels (clang {option}), and load it where \
             this one is refused"
        ),
        None => format!(
            "write a second program without {name} for older kernels, and load it where this one is \
             refused (bpf_program__set_autoload)"
        ),
    }
}

/// The same program without a load flag that it can do without.
fn without_flag(
    loaded: &StandaloneProgram,
    program: &Program,
    kernel: &Kernel,
    budget: &Budget,
) -> Option<Edit> {
    let flags = program.flags();
    let rows = [
        (
            LoadFlags::XDP_HAS_FRAGS,
            "BPF_F_XDP_HAS_FRAGS",
            "xdp",
            "xdp.frags",
        ),
        (LoadFlags::SLEEPABLE, "BPF_F_SLEEPABLE", "…", "….s"),
    ];
    let mut rows = rows.into_iter();
    let (flag, name, section, with_flag) = rows.find(|(flag, ..)| flags.has(*flag))?;
    let rest = LoadFlags(flags.0 & !flag.0);
    let edited = program.to_builder().flags(rest).build().ok()?;
    let edited = StandaloneProgram::edited(loaded, edited);
    let outcome = match budget.verdict(&edited, kernel)? {
        Verdict::Accepted => EditOutcome::Accepted,
        Verdict::Refused(refusal) => EditOutcome::Refused(refusal.reason()),
        Verdict::Unsupported(_) | Verdict::Bug(_) => EditOutcome::Untried,
    };
    Some(Edit {
        text: format!(
            "load it without {name} there: bpf_program__set_flags before it is loaded, or \
             SEC(\"{section}\") in place of SEC(\"{with_flag}\")"
        ),
        outcome,
    })
}

/// The same program with another helper in place of the one that is refused.
fn put_in_place(
    loaded: &StandaloneProgram,
    program: &Program,
    refusal: &Refusal,
    kernel: &Kernel,
    budget: &Budget,
) -> Option<Edit> {
    if refusal.kind != RefusalKind::Unavailable {
        return None;
    }
    let refused = *program.decode().get(refusal.insn? as usize)?;
    let Insn::Call(Callee::Helper(refused)) = refused else {
        return None;
    };
    let name = helpers::helper(refused)?.name;
    let (_, older) = IN_PLACE.iter().find(|(newer, _)| *newer == name)?;
    let older_number = helpers::number(older)?;
    let mut insns = program.insns().to_vec();
    for (raw, insn) in insns.iter_mut().zip(program.decode()) {
        if insn == Insn::Call(Callee::Helper(refused)) {
            raw.imm = older_number;
        }
    }
    let edited = with_insns(loaded, program, insns)?;
    let outcome = match budget.verdict(&edited, kernel)? {
        Verdict::Accepted => EditOutcome::Accepted,
        Verdict::Refused(refusal) => EditOutcome::Refused(refusal.reason()),
        Verdict::Unsupported(_) | Verdict::Bug(_) => EditOutcome::Untried,
    };
    Some(Edit {
        text: format!("call {older}, which the kernel has, in place of {name}"),
        outcome,
    })
}

/// Guards what is refused, one thing after the other, until the program is taken or refused for what
/// no guard keeps away.
fn guard(
    loaded: &StandaloneProgram,
    refusal: &Refusal,
    kernel: &Kernel,
    other: Option<(&Row, &Kernel)>,
    budget: &Budget,
) -> Option<Edit> {
    let other_kernel = other.map(|(_, kernel)| kernel);
    let accepting = other_kernel.and_then(version_of_types);
    let other = other.and_then(|(row, _)| row.program());
    let program = loaded.program.as_ref().ok()?;
    let mut insns = program.insns().to_vec();
    let mut words: Vec<String> = Vec::new();
    let (mut current, mut refusal) = (program.clone(), refusal.clone());
    for _ in 0..MOST_GUARDS {
        let is_absent = matches!(
            refusal.kind,
            RefusalKind::Unavailable | RefusalKind::Context
        );
        let decider = of_refusal(&current, &refusal, kernel, other_kernel);
        let guarded = match decider.filter(|_| is_absent) {
            Some(decider) => words_of(&decider, accepting),
            // What uses the result of a guarded call is called in the same block.
            None => Some("what uses its result in the same block".to_owned())
                .filter(|_| !words.is_empty()),
        };
        let Some(guarded) = guarded else { break };
        let Some(at) = refusal.insn else { break };
        if !leave_out(&mut insns, at as usize, &current, other) {
            break;
        }
        if !words.contains(&guarded) {
            words.push(guarded);
        }
        let edited = with_insns(loaded, program, insns.clone())?;
        let edit = |outcome| {
            let text = words.join("; ");
            Some(Edit { text, outcome })
        };
        match budget.verdict(&edited, kernel) {
            Some(Verdict::Accepted) => return edit(EditOutcome::Accepted),
            Some(Verdict::Refused(next)) => refusal = next,
            Some(Verdict::Unsupported(_) | Verdict::Bug(_)) => break,
            None => return edit(EditOutcome::Untried),
        }
        current = edited.program.ok()?;
    }
    (!words.is_empty()).then(|| Edit {
        text: words.join("; "),
        outcome: EditOutcome::Refused(refusal.reason()),
    })
}

/// The version of the kernel that the types are of: a derived kernel has those of a newer one.
fn version_of_types(kernel: &Kernel) -> Option<KernelVersion> {
    let of_types = match kernel.source(KernelField::Btf) {
        Source::BuiltIn(title) => title.rsplit(' ').next().and_then(|word| word.parse().ok()),
        _ => None,
    };
    of_types.or(kernel.version())
}

/// The guard of what a kernel lacks; of what it has for other programs, its version.
fn words_of(decider: &Decider, accepting: Option<KernelVersion>) -> Option<String> {
    let name = &decider.name;
    let verb = match decider.kind {
        DeciderKind::Helper | DeciderKind::Kfunc => "call",
        DeciderKind::Field | DeciderKind::Context => "access",
        DeciderKind::Type => "use",
        DeciderKind::Behaviour
        | DeciderKind::Map
        | DeciderKind::MapFlag
        | DeciderKind::Feature
        | DeciderKind::Flag
        | DeciderKind::ProgramType
        | DeciderKind::AttachType
        | DeciderKind::Target
        | DeciderKind::Offer => return None,
    };
    if decider.is_there || decider.kind == DeciderKind::Context {
        let KernelVersion { major, minor, .. } = accepting?;
        return Some(format!(
            "{verb} {name} inside `if (LINUX_KERNEL_VERSION >= KERNEL_VERSION({major}, {minor}, 0))` \
             (`extern int LINUX_KERNEL_VERSION __kconfig`)"
        ));
    }
    Some(match decider.kind {
        DeciderKind::Helper => format!(
            "call {name} inside `if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_{}))`",
            name.strip_prefix("bpf_").unwrap_or(name)
        ),
        DeciderKind::Kfunc => format!(
            "declare {name} `__ksym __weak` and call it inside `if (bpf_ksym_exists({name}))`"
        ),
        DeciderKind::Type if name.contains(['.', '[']) => {
            format!("read {name} inside `if (bpf_core_field_exists(…))`")
        }
        DeciderKind::Type => format!("use {name} inside `if (bpf_core_type_exists({name}))`"),
        _ => format!("access {name} inside `if (bpf_core_field_exists(…))`"),
    })
}

/// Writes the path around an instruction over it: its result is 0. True if the instruction has a
/// register for its result, or none is needed.
fn leave_out(insns: &mut [RawInsn], at: usize, current: &Program, other: Option<&Program>) -> bool {
    let decoded = current.decode();
    let Some(insn) = decoded.get(at) else {
        return false;
    };
    // A call in place of a failed relocation: the instruction is that of a kernel where it succeeds.
    let is_poison =
        matches!(insn, Insn::Call(Callee::Helper(number)) if helpers::helper(*number).is_none());
    let is_relocation = current
        .failed_relocations()
        .iter()
        .any(|failed| failed.insn as usize == at);
    let original = other.and_then(|other| other.decode().get(at).copied());
    let insn = match is_poison && is_relocation {
        true => original,
        false => Some(*insn),
    };
    let zero = |dst: Reg| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst,
        src: Operand::Imm(0),
    };
    let written = match insn {
        Some(Insn::Call(_)) => zero(Reg::R0),
        Some(Insn::Load { dst, .. } | Insn::Alu { dst, .. } | Insn::LoadImm64 { dst, .. }) => {
            zero(dst)
        }
        Some(Insn::Store { .. }) => zero(Reg::R0),
        _ => return false,
    };
    let nothing = RawInsn {
        code: 0x05,
        ..RawInsn::default()
    };
    let Some((raw, _)) = written.encode() else {
        return false;
    };
    insns[at] = match insn {
        Some(Insn::Store { .. }) => nothing,
        _ => raw,
    };
    if matches!(insn, Some(Insn::LoadImm64 { .. }))
        && let Some(second) = insns.get_mut(at + 1)
    {
        *second = nothing;
    }
    true
}

/// The program with other instructions.
fn with_insns(
    loaded: &StandaloneProgram,
    program: &Program,
    insns: Vec<RawInsn>,
) -> Option<StandaloneProgram> {
    let edited = program.to_builder().insns(insns).build().ok()?;
    let edited = StandaloneProgram::edited(loaded, edited);
    Some(edited)
}
