//! Attach targets that are resolved at load time: a function, hook or tracepoint of the
//! kernel, looked up in its BTF by the name after the slash of the section.

use std::fmt;
use std::sync::Arc;

use btf::{Btf, Kind};
use program::{AttachTarget, Program};
use spec::programs::{AttachType, HookKind, ProgramType, SectionFlags};

use crate::error::Blame;
use crate::programs::ProgramDef;
use spec::kernel::{KernelField, Source};
use spec::{Errno, Kernel};

/// Maximum length of a looked-up type name in bytes.
const MAX_NAME: usize = 127;

/// Reason why a linked program cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachFault {
    /// The section implies no program type, and the caller set none.
    NoType {
        /// Section name.
        section: String,
    },
    /// A struct_ops program to which no struct_ops map refers.
    Unused,
    /// The attach target is neither in the section name nor set.
    NoTarget {
        /// Section name.
        section: String,
    },
    /// A freplace program whose target program is not set.
    NoProgram {
        /// The function that it replaces is named.
        named: bool,
    },
    /// The name exceeds the maximum length.
    TooLong,
    /// The kernel and its modules lack the attach target.
    NotFound {
        /// Name.
        name: String,
        /// The caller named it; the section does otherwise.
        given: bool,
    },
    /// The BTF lacks the attach target, and the kernel may have it: the BTF is reduced, or
    /// stands for that of another kernel.
    LeftOut {
        /// Name.
        name: String,
    },
    /// The module is missing.
    NoModule {
        /// Name.
        name: String,
    },
    /// The BTF of the kernel is unknown.
    NoKernelTypes,
    /// The target program has no BTF.
    NoProgramTypes,
    /// The target program has no such function.
    NoFunction {
        /// Name.
        name: String,
    },
}

impl fmt::Display for AttachFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachFault::NoType { section } => write!(
                f,
                "section name {section:?} implies no program type, and none is set"
            ),
            AttachFault::Unused => {
                write!(f, "struct_ops program to which no struct_ops map refers")
            }
            AttachFault::NoTarget { section } => write!(
                f,
                "section name has no attach target (SEC(\"{section}/FUNCTION\")), and none is \
                 set (--attach PROGRAM=FUNCTION; to attach to a program: --target FILE:PROGRAM)"
            ),
            AttachFault::NoProgram { named: true } => write!(
                f,
                "freplace program has no target program (--target FILE:PROGRAM)"
            ),
            AttachFault::NoProgram { named: false } => write!(
                f,
                "freplace program has no target program (--target FILE:PROGRAM; to replace \
                 another function of it than its main function: --attach PROGRAM=FUNCTION too)"
            ),
            AttachFault::TooLong => write!(f, "name of the attach target is too long"),
            AttachFault::NotFound { name, .. } => write!(
                f,
                "the kernel has no {name} to attach to (a module's: --module-btf FILE; \
                 another kernel's: --kernel PATH; a program's: --target FILE:PROGRAM; another \
                 target: --attach PROGRAM=NAME)"
            ),
            AttachFault::LeftOut { name } => write!(
                f,
                "undecided: the types given leave out {name}, which it attaches to; the \
                 kernel's own types decide"
            ),
            AttachFault::NoModule { name } => write!(
                f,
                "the BTF of module {name} is not given (--module-btf FILE, as /sys/kernel/btf/{name})"
            ),
            AttachFault::NoKernelTypes => {
                write!(
                    f,
                    "BTF of the kernel is required and unknown (--kernel PATH, --btf FILE)"
                )
            }
            AttachFault::NoProgramTypes => write!(f, "the target program has no BTF"),
            AttachFault::NoFunction { name } => {
                write!(f, "the target program has no function {name}")
            }
        }
    }
}

impl std::error::Error for AttachFault {}

impl AttachFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            AttachFault::NotFound { given: false, .. }
            | AttachFault::NoModule { .. }
            | AttachFault::NoKernelTypes => Blame::Target,
            AttachFault::LeftOut { .. } => Blame::Beebox,
            _ => Blame::User,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            AttachFault::NotFound { .. } | AttachFault::LeftOut { .. } => Errno::ESRCH,
            AttachFault::TooLong => Errno::ENAMETOOLONG,
            AttachFault::NoKernelTypes => Errno::ENOENT,
            _ => Errno::EINVAL,
        }
    }
}

/// Program type, attach type and attach target of a program.
pub(crate) type Attachment = (ProgramType, Option<AttachType>, Option<AttachTarget>);

/// Resolves the attach target of a program. `given` is the part set by the caller.
pub(crate) fn attachment(
    code: &ProgramDef<'_>,
    given: Option<AttachTarget>,
    kernel: &Kernel,
) -> Result<Attachment, AttachFault> {
    let section = code.section_name;
    let Some(kind) = code.kind else {
        let section = section.to_string();
        return Err(AttachFault::NoType { section });
    };
    if kind == ProgramType::StructOps && given.is_none() {
        return Err(AttachFault::Unused);
    }
    let traits = code.rule.map_or(SectionFlags::NONE, |rule| rule.flags);
    let attach = match traits.has(SectionFlags::USDT) && kernel.features().uprobe_multi {
        true => Some(AttachType::TraceUprobeMulti),
        false => code.attach,
    };
    let slash = section.as_bytes().iter().position(|&byte| byte == b'/');
    let of_section = slash.map(|slash| &section.as_bytes()[slash + 1..]);
    let name = code
        .attach_name
        .as_deref()
        .map(str::as_bytes)
        .or(of_section);
    let point = if let Some(program) = given.as_ref().and_then(unresolved) {
        Some(find_in_program(program, name)?)
    } else if traits.has(SectionFlags::ATTACH_BTF) && given.is_none() {
        if kind == ProgramType::Ext {
            let named = name.is_some();
            return Err(AttachFault::NoProgram { named });
        }
        let name = name.ok_or_else(|| AttachFault::NoTarget {
            section: section.to_string(),
        })?;
        let given = code.attach_name.is_some();
        Some(find(name, given, attach, kernel)?)
    } else if code.rule.is_some() && HookKind::of(attach) == HookKind::Multi {
        let module = name.and_then(|name| split_module(name).0);
        let module = module
            .map(|module| module_named(module, kernel))
            .transpose()?;
        Some(AttachTarget {
            module: module.unwrap_or(0),
            ..AttachTarget::default()
        })
    } else {
        given
    };
    Ok((kind, attach, point))
}

/// The program of a target whose function is not resolved yet.
fn unresolved(given: &AttachTarget) -> Option<&Arc<Program>> {
    given.program.as_ref().filter(|_| given.btf_id.is_void())
}

/// Resolves the name of a function in another program; its main function if there is no name.
fn find_in_program(
    program: &Arc<Program>,
    name: Option<&[u8]>,
) -> Result<AttachTarget, AttachFault> {
    let types = program.btf().ok_or(AttachFault::NoProgramTypes)?;
    let main = program.func_info().first().map(|info| info.type_id);
    let found = match name {
        Some(name) => types.find_all(Kind::Func, name).next().map(|ty| ty.id()),
        None => main,
    };
    let Some(btf_id) = found else {
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        return Err(AttachFault::NoFunction { name });
    };
    Ok(AttachTarget {
        btf_id,
        program: Some(Arc::clone(program)),
        ..AttachTarget::default()
    })
}

/// Module prefix of a name, before a colon, and the rest.
fn split_module(name: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match name.iter().position(|&byte| byte == b':') {
        Some(colon) => (Some(&name[..colon]), &name[colon + 1..]),
        None => (None, name),
    }
}

fn module_named(name: &[u8], kernel: &Kernel) -> Result<u16, AttachFault> {
    let numbered = kernel.modules().iter().zip(1..=u16::MAX);
    let mut found = numbered.filter(|(module, _)| module.name.as_bytes() == name);
    found
        .next()
        .map(|(_, number)| number)
        .ok_or_else(|| AttachFault::NoModule {
            name: String::from_utf8_lossy(name).into_owned(),
        })
}

/// Resolves a name to a BTF id: in vmlinux unless a module is stated, then in the modules
/// whose name starts with the stated one. `given` is true for a name that the caller set.
fn find(
    name: &[u8],
    given: bool,
    attach: Option<AttachType>,
    kernel: &Kernel,
) -> Result<AttachTarget, AttachFault> {
    let (module, bare) = split_module(name);
    let hook = HookKind::of(attach);
    let prefix = hook.target_prefix();
    let kind = match hook {
        HookKind::RawTracepoint => Kind::Typedef,
        HookKind::Unnamed
        | HookKind::Fentry
        | HookKind::Fexit
        | HookKind::ModifyReturn
        | HookKind::Iterator
        | HookKind::Lsm
        | HookKind::LsmCgroup
        | HookKind::Fsession
        | HookKind::Multi => Kind::Func,
    };
    let full = [prefix.as_bytes(), bare].concat();
    if full.len() > MAX_NAME {
        return Err(AttachFault::TooLong);
    }
    let within = |types: &Btf<'_>| types.find_all(kind, &full).next().map(|ty| ty.id());
    let is_kernels = module.is_none_or(|module| b"vmlinux".starts_with(module));
    let vmlinux = kernel.btf().ok_or(AttachFault::NoKernelTypes)?;
    if let Some(id) = within(vmlinux).filter(|_| is_kernels) {
        return Ok(AttachTarget {
            btf_id: id,
            ..AttachTarget::default()
        });
    }
    for (candidate, number) in kernel.modules().iter().zip(1..=u16::MAX) {
        let is_meant = module.is_none_or(|module| candidate.name.as_bytes().starts_with(module));
        if let Some(id) = within(&candidate.btf).filter(|_| is_meant) {
            return Ok(AttachTarget {
                btf_id: id,
                module: number,
                ..AttachTarget::default()
            });
        }
    }
    let name = String::from_utf8_lossy(name).into_owned();
    // Types are assumed where those that are built in stand for another kernel's.
    let is_open = kernel.is_btf_reduced() || *kernel.source(KernelField::Btf) == Source::Assumed;
    Err(match is_open {
        true => AttachFault::LeftOut { name },
        false => AttachFault::NotFound { name, given },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use btf::{Builder, Func, Linkage, TypeId};
    use spec::kernel::Module;

    /// BTF with functions of these names and a tracepoint.
    fn types(functions: &[&str]) -> Vec<u8> {
        let mut builder = Builder::new();
        let proto = builder.proto(TypeId::VOID, &[]);
        for name in functions {
            let name = builder.string(name);
            builder.func(
                name,
                Func {
                    proto,
                    linkage: Linkage::GLOBAL,
                },
            );
        }
        let name = builder.string("btf_trace_event");
        builder.reference(Kind::Typedef, name, proto);
        builder.finish()
    }

    fn found(name: &str, attach: AttachType) -> Result<(u32, u16), AttachFault> {
        let (kernel, first, second) = (
            types(&["both", "bpf_lsm_hook", "bpf_iter_task"]),
            types(&["both", "in_first"]),
            types(&["both", "in_first", "in_second"]),
        );
        let parse = |blob| Arc::new(Btf::parse(blob).expect("types"));
        let (kernel, first, second) = (parse(kernel), parse(first), parse(second));
        let module = |name: &str, btf| Module {
            name: name.to_owned(),
            btf,
            kfuncs: None,
        };
        let modules = vec![module("net_a", first), module("net_b", second)];
        let kernel = Kernel::default()
            .with_btf(kernel, Source::Given)
            .with_modules(modules, Source::Given);
        find(name.as_bytes(), false, Some(attach), &kernel)
            .map(|point| (point.btf_id.0, point.module))
    }

    #[test]
    fn names_have_a_prefix_by_where_programs_attach() {
        assert_eq!(found("both", AttachType::TraceFentry), Ok((2, 0)));
        assert_eq!(found("hook", AttachType::LsmMac), Ok((3, 0)));
        assert_eq!(found("hook", AttachType::LsmCgroup), Ok((3, 0)));
        assert_eq!(found("task", AttachType::TraceIter), Ok((4, 0)));
        assert_eq!(found("event", AttachType::TraceRawTp), Ok((5, 0)));
        let name = "hook".to_owned();
        let missing = Err(AttachFault::NotFound { name, given: false });
        assert_eq!(found("hook", AttachType::TraceFexit), missing);
    }

    #[test]
    fn targets_missing_in_reduced_btf_are_undecided() {
        let btf = Arc::new(Btf::parse(types(&["known"])).expect("types"));
        let whole = Kernel::default().with_btf(btf, Source::BuiltIn("a kernel"));
        let kernel = whole.clone().with_reduced_btf(true);
        let attach = Some(AttachType::TraceFentry);
        assert!(find(b"known", false, attach, &kernel).is_ok());
        let fault = find(b"unknown", false, attach, &kernel).unwrap_err();
        let name = "unknown".to_owned();
        assert_eq!(fault, AttachFault::LeftOut { name });
        assert_eq!(fault.blame(), Blame::Beebox);
        // Such types stand for another kernel.
        let other = whole.clone().assumed_for("another kernel");
        assert_eq!(find(b"unknown", false, attach, &other), Err(fault));
        for (given, blame) in [(false, Blame::Target), (true, Blame::User)] {
            let name = "unknown".to_owned();
            let missing = AttachFault::NotFound { name, given };
            assert_eq!(missing.blame(), blame);
            assert_eq!(find(b"unknown", given, attach, &whole), Err(missing));
        }
    }

    #[test]
    fn a_module_may_be_named_and_the_kernel_comes_first() {
        let fentry = |name| found(name, AttachType::TraceFentry).ok();
        assert_eq!(fentry("in_first"), Some((3, 1)));
        assert_eq!(fentry("in_second"), Some((4, 2)));
        assert_eq!(fentry("net_b:in_first"), Some((3, 2)));
        assert_eq!(fentry("net_b:both"), Some((2, 2)));
        assert_eq!(fentry("vmlinux:both"), Some((2, 0)));
        assert_eq!(fentry("net_a:in_second"), None);
        // libbpf compares only the start of the module's name.
        assert_eq!(fentry("net:in_second"), Some((4, 2)));
        let long = "x".repeat(MAX_NAME + 1);
        assert_eq!(
            found(&long, AttachType::TraceFentry),
            Err(AttachFault::TooLong)
        );
    }
}
