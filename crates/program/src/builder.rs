//! Construction of programs and the invariants that every program satisfies.
//!
//! Every index of a map or module is in range, subprogs start in ascending order within
//! the program, chains of attach targets are short, and texts have no NUL byte. Instructions, func_info and line_info are
//! unchecked: checking them is the verifier's part.

use std::fmt;
use std::sync::Arc;

use btf::Btf;
use isa::ebpf::RawInsn;
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::externs::ExternSymbol;
use crate::map_def::{MapDef, MapEntry};
use crate::program::{AttachTarget, FuncInfo, LineInfo, Program, Subprog};

/// Maximum number of instruction slots: sixteen times Linux's limit.
pub const MAX_INSNS: usize = 1 << 24;

/// Maximum number of programs in a chain of attach targets, each the target of the one
/// before it. Linux allows fewer.
pub const MAX_TARGETS: usize = 8;

/// Builder of a [`Program`].
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    pub(crate) program: Program,
}

/// Violated invariant of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidProgram {
    /// The program has more than [`MAX_INSNS`] instructions.
    TooLong {
        /// Number of instruction slots.
        len: usize,
    },
    /// A subprog starts beyond the last instruction, or not after the previous subprog.
    SubprogStart {
        /// Name of the subprog.
        name: String,
        /// Index of its first instruction.
        start: u32,
    },
    /// The initial contents of a map refer to a missing map.
    NoSuchMap {
        /// Name of the outer map.
        map: String,
        /// Index of the missing map.
        index: u32,
    },
    /// The attach target or an extern refers to a missing module.
    NoSuchModule {
        /// Number of the module.
        module: u16,
    },
    /// More than [`MAX_TARGETS`] attach targets follow one another.
    NestedTargets,
    /// A name or the licence contains a NUL byte.
    NulByte {
        /// The name or licence.
        text: String,
    },
}

impl fmt::Display for InvalidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidProgram::TooLong { len } => {
                write!(
                    f,
                    "program has {len} instructions: at most {MAX_INSNS} are accepted"
                )
            }
            InvalidProgram::SubprogStart { name, start } => write!(
                f,
                "subprog {name}: start at instruction {start} is out of order or range"
            ),
            InvalidProgram::NoSuchMap { map, index } => {
                write!(
                    f,
                    "map {map}: initial contents refer to missing map {index}"
                )
            }
            InvalidProgram::NoSuchModule { module } => {
                write!(
                    f,
                    "module {module}: the attach target or an extern refers to it, and the \
                     program has no such module"
                )
            }
            InvalidProgram::NestedTargets => write!(
                f,
                "attach target: chain of more than {MAX_TARGETS} programs, each the target of \
                 the one before it"
            ),
            InvalidProgram::NulByte { text } => write!(f, "text {text:?} contains a NUL byte"),
        }
    }
}

impl std::error::Error for InvalidProgram {}

impl ProgramBuilder {
    /// Builder of a program of this type with these instructions, otherwise empty.
    pub fn new(kind: ProgramType, insns: Vec<RawInsn>) -> ProgramBuilder {
        ProgramBuilder {
            program: Program {
                name: String::new(),
                section: String::new(),
                kind,
                attach_type: None,
                expected_attach_type: None,
                flags: LoadFlags::default(),
                attach_target: None,
                insns,
                subprogs: Vec::new(),
                maps: Arc::default(),
                btf: None,
                func_info: Vec::new(),
                line_info: Vec::new(),
                externs: Arc::default(),
                modules: Arc::default(),
                license: Arc::from(""),
                kernel_version: 0,
            },
        }
    }

    fn with(mut self, set: impl FnOnce(&mut Program)) -> ProgramBuilder {
        set(&mut self.program);
        self
    }

    /// Sets the name of the main function.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> ProgramBuilder {
        self.with(|program| program.name = name.into())
    }

    /// Sets the name of the section.
    #[must_use]
    pub fn section(self, section: impl Into<String>) -> ProgramBuilder {
        self.with(|program| program.section = section.into())
    }

    /// Sets the program type.
    #[must_use]
    pub fn kind(self, kind: ProgramType) -> ProgramBuilder {
        self.with(|program| program.kind = kind)
    }

    /// Sets the instructions.
    #[must_use]
    pub fn insns(self, insns: Vec<RawInsn>) -> ProgramBuilder {
        self.with(|program| program.insns = insns)
    }

    /// Sets the attach type.
    #[must_use]
    pub fn attach_type(self, attach_type: Option<AttachType>) -> ProgramBuilder {
        self.with(|program| program.attach_type = attach_type)
    }

    /// Sets `expected_attach_type` where it is neither the number of the attach type nor
    /// the index of a struct_ops member.
    #[must_use]
    pub fn expected_attach_type(self, number: u32) -> ProgramBuilder {
        self.with(|program| program.expected_attach_type = Some(number))
    }

    /// Sets the load flags.
    #[must_use]
    pub fn flags(self, flags: LoadFlags) -> ProgramBuilder {
        self.with(|program| program.flags = flags)
    }

    /// Sets the attach target.
    #[must_use]
    pub fn attach_target(self, target: Option<AttachTarget>) -> ProgramBuilder {
        self.with(|program| program.attach_target = target)
    }

    /// Sets the subprogs, sorted by start.
    #[must_use]
    pub fn subprogs(self, subprogs: Vec<Subprog>) -> ProgramBuilder {
        self.with(|program| program.subprogs = subprogs)
    }

    /// Sets the maps that instructions refer to by index.
    #[must_use]
    pub fn maps(self, maps: impl Into<Arc<[Arc<MapDef>]>>) -> ProgramBuilder {
        self.with(|program| program.maps = maps.into())
    }

    /// Sets the BTF.
    #[must_use]
    pub fn btf(self, btf: Option<Arc<Btf<'static>>>) -> ProgramBuilder {
        self.with(|program| program.btf = btf)
    }

    /// Sets the func_info records.
    #[must_use]
    pub fn func_info(self, records: Vec<FuncInfo>) -> ProgramBuilder {
        self.with(|program| program.func_info = records)
    }

    /// Sets the line_info records.
    #[must_use]
    pub fn line_info(self, records: Vec<LineInfo>) -> ProgramBuilder {
        self.with(|program| program.line_info = records)
    }

    /// Sets the extern symbols.
    #[must_use]
    pub fn externs(self, externs: impl Into<Arc<[ExternSymbol]>>) -> ProgramBuilder {
        self.with(|program| program.externs = externs.into())
    }

    /// Sets the names of the kernel modules, which are referred to by number.
    #[must_use]
    pub fn modules(self, modules: impl Into<Arc<[String]>>) -> ProgramBuilder {
        self.with(|program| program.modules = modules.into())
    }

    /// Sets the licence.
    #[must_use]
    pub fn license(self, license: impl Into<Arc<str>>) -> ProgramBuilder {
        self.with(|program| program.license = license.into())
    }

    /// Sets `kern_version`.
    #[must_use]
    pub fn kernel_version(self, version: u32) -> ProgramBuilder {
        self.with(|program| program.kernel_version = version)
    }

    /// Checks the invariants and returns the program.
    pub fn build(self) -> Result<Program, InvalidProgram> {
        let program = self.program;
        check_texts(&program)?;
        check_subprogs(&program)?;
        check_maps(&program)?;
        check_modules(&program)?;
        check_targets(&program)?;
        Ok(program)
    }
}

fn check_texts(program: &Program) -> Result<(), InvalidProgram> {
    let texts = [&*program.name, &program.section, &program.license];
    match texts.into_iter().find(|text| text.contains('\0')) {
        Some(text) => Err(InvalidProgram::NulByte {
            text: text.to_owned(),
        }),
        None => Ok(()),
    }
}

fn check_subprogs(program: &Program) -> Result<(), InvalidProgram> {
    let len = program.insns.len();
    if len > MAX_INSNS {
        return Err(InvalidProgram::TooLong { len });
    }
    let mut next = 0;
    for subprog in &program.subprogs {
        if subprog.start < next || subprog.start as usize >= len {
            return Err(InvalidProgram::SubprogStart {
                name: subprog.name.clone(),
                start: subprog.start,
            });
        }
        next = subprog.start + 1;
    }
    Ok(())
}

fn check_maps(program: &Program) -> Result<(), InvalidProgram> {
    for map in program.maps.iter() {
        for (_, entry) in map.contents.entries() {
            if let MapEntry::Map(held) = entry
                && program.map(*held).is_none()
            {
                return Err(InvalidProgram::NoSuchMap {
                    map: map.name.clone(),
                    index: held.0,
                });
            }
        }
    }
    Ok(())
}

fn check_modules(program: &Program) -> Result<(), InvalidProgram> {
    let target = program.attach_target.iter().map(|target| target.module);
    let externs = program.externs.iter().filter_map(ExternSymbol::module);
    let known = program.modules.len();
    match target
        .chain(externs)
        .find(|&module| usize::from(module) > known)
    {
        Some(module) => Err(InvalidProgram::NoSuchModule { module }),
        None => Ok(()),
    }
}

fn check_targets(program: &Program) -> Result<(), InvalidProgram> {
    let target = |program: &Program| program.attach_target.as_ref()?.program.clone();
    let targets = std::iter::successors(target(program), |next| target(next));
    match targets.take(MAX_TARGETS + 1).count() > MAX_TARGETS {
        true => Err(InvalidProgram::NestedTargets),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use btf::TypeId;

    use super::*;
    use crate::map_def::{InitialContents, MapId, MapParams};

    fn exits(count: usize) -> ProgramBuilder {
        let exit = RawInsn {
            code: 0x95,
            ..RawInsn::default()
        };
        ProgramBuilder::new(ProgramType::Xdp, vec![exit; count])
    }

    fn fault(builder: ProgramBuilder) -> String {
        builder
            .build()
            .expect_err("an invariant is violated")
            .to_string()
    }

    #[test]
    fn references_to_missing_things_are_refused() {
        let subprogs = |starts: &[u32]| {
            let subprog = |&start| Subprog {
                name: format!("at{start}"),
                start,
            };
            exits(3).subprogs(starts.iter().map(subprog).collect())
        };
        assert!(subprogs(&[0, 1, 2]).build().is_ok());
        assert!(fault(subprogs(&[0, 3])).starts_with("subprog at3"));
        assert!(fault(subprogs(&[0, 0])).starts_with("subprog at0"));
        let mut outer = MapDef::new("outer", MapParams::default());
        outer.contents = InitialContents::Entries(vec![(0, MapEntry::Map(MapId(1)))]);
        let error = fault(exits(1).maps(vec![Arc::new(outer)]));
        assert_eq!(error, "map outer: initial contents refer to missing map 1");
        let target = AttachTarget {
            btf_id: TypeId(1),
            module: 1,
            ..AttachTarget::default()
        };
        let with_target = exits(1).attach_target(Some(target));
        assert!(
            with_target
                .clone()
                .modules(vec!["m".to_owned()])
                .build()
                .is_ok()
        );
        assert!(fault(with_target).starts_with("module 1"));
        assert!(fault(exits(1).license("GPL\0")).contains("NUL"));
    }
}
