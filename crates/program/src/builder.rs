//! Construction of programs and the invariants that every program satisfies.
//!
//! Every index of a map or module is in range, subprogs start in ascending order within
//! the program, definitions of inner maps have neither contents nor inner maps, chains of
//! attach targets are short, and texts have no NUL byte. Instructions, func_info and
//! line_info are unchecked: checking them is the verifier's part.

use std::fmt;
use std::sync::Arc;

use btf::Btf;
use isa::ebpf::RawInsn;
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::externs::ExternSymbol;
use crate::map_def::{InitialContents, MapDef, MapEntry};
use crate::program::{AttachTarget, FailedRelocation, FuncInfo, LineInfo, Program, Subprog};

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
    /// The attach target, an extern or a map refers to a missing module.
    NoSuchModule {
        /// Number of the module.
        module: u16,
        /// What refers to it.
        by: ModuleUse,
    },
    /// The definition of inner maps has initial contents or inner maps.
    InnerMap {
        /// Name of the outer map.
        map: String,
    },
    /// More than [`MAX_TARGETS`] attach targets follow one another.
    NestedTargets,
    /// A name or the licence contains a NUL byte.
    NulByte {
        /// Which text of the program it is.
        place: ProgramText,
        /// The name or licence.
        text: String,
    },
}

/// Part of a program that refers to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleUse {
    /// The attach target.
    AttachTarget,
    /// An extern symbol of this name.
    Extern(String),
    /// The struct_ops value of the map of this name.
    Map(String),
}

impl fmt::Display for ModuleUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleUse::AttachTarget => f.write_str("attach target"),
            ModuleUse::Extern(name) => write!(f, "extern {name}"),
            ModuleUse::Map(name) => write!(f, "map {name}"),
        }
    }
}

/// Place of a text in a program. Indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramText {
    /// Name of the program.
    Program,
    /// Name of the section.
    Section,
    /// Licence.
    License,
    /// Name of the subprog with this index.
    Subprog(usize),
    /// Name of the map with this index, or its name in the kernel.
    Map(usize),
    /// Name of the inner maps of the map with this index, or their name in the kernel.
    InnerMap(usize),
    /// Name of a program in the initial contents of the map with this index.
    MapContents(usize),
    /// Name of the extern symbol with this index.
    Extern(usize),
    /// Name of the module with this index.
    Module(usize),
}

impl fmt::Display for ProgramText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramText::Program => f.write_str("name of the program"),
            ProgramText::Section => f.write_str("name of the section"),
            ProgramText::License => f.write_str("licence"),
            ProgramText::Subprog(index) => write!(f, "name of subprog {index}"),
            ProgramText::Map(index) => write!(f, "name of map {index}"),
            ProgramText::InnerMap(index) => write!(f, "name of the inner maps of map {index}"),
            ProgramText::MapContents(index) => {
                write!(f, "name of a program in the contents of map {index}")
            }
            ProgramText::Extern(index) => write!(f, "name of extern {index}"),
            ProgramText::Module(index) => write!(f, "name of module {index}"),
        }
    }
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
            InvalidProgram::NoSuchModule { module, by } => {
                write!(f, "{by}: refers to missing module {module}")
            }
            InvalidProgram::InnerMap { map } => write!(
                f,
                "map {map}: the definition of its inner maps has initial contents or inner maps"
            ),
            InvalidProgram::NestedTargets => write!(
                f,
                "attach target: chain of more than {MAX_TARGETS} programs, each the target of \
                 the one before it"
            ),
            InvalidProgram::NulByte { place, text } => {
                write!(f, "{place}: {text:?} contains a NUL byte")
            }
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
                failed_relocations: Vec::new(),
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

    /// Sets the CO-RE relocations that failed.
    #[must_use]
    pub fn failed_relocations(self, failed: Vec<FailedRelocation>) -> ProgramBuilder {
        self.with(|program| program.failed_relocations = failed)
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
    let own = [
        (ProgramText::Program, &*program.name),
        (ProgramText::Section, &program.section),
        (ProgramText::License, &program.license),
    ];
    let subprogs = program.subprogs.iter().enumerate();
    let subprogs = subprogs.map(|(at, subprog)| (ProgramText::Subprog(at), &*subprog.name));
    let maps = program.maps.iter().enumerate();
    let maps = maps.flat_map(|(at, map)| texts_of_map(at, map));
    let externs = program.externs.iter().enumerate();
    let externs = externs.map(|(at, symbol)| (ProgramText::Extern(at), &*symbol.name));
    let modules = program.modules.iter().enumerate();
    let modules = modules.map(|(at, name)| (ProgramText::Module(at), &**name));
    let mut texts = own
        .into_iter()
        .chain(subprogs)
        .chain(maps)
        .chain(externs)
        .chain(modules);
    match texts.find(|(_, text)| text.contains('\0')) {
        Some((place, text)) => Err(InvalidProgram::NulByte {
            place,
            text: text.to_owned(),
        }),
        None => Ok(()),
    }
}

fn texts_of_map(at: usize, map: &MapDef) -> impl Iterator<Item = (ProgramText, &str)> {
    let inner = map.inner.iter();
    let inner = inner.flat_map(move |inner| names_of_map(ProgramText::InnerMap(at), inner));
    let programs = map.contents.programs();
    let programs = programs.map(move |program| (ProgramText::MapContents(at), &*program.name));
    let own = names_of_map(ProgramText::Map(at), map).into_iter();
    own.chain(inner).chain(programs)
}

fn names_of_map(place: ProgramText, map: &MapDef) -> [(ProgramText, &str); 2] {
    [(place, &map.name), (place, &map.kernel_name)]
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
        if let Some(inner) = &map.inner
            && (inner.inner.is_some() || inner.contents != InitialContents::default())
        {
            return Err(InvalidProgram::InnerMap {
                map: map.name.clone(),
            });
        }
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
    let target = program.attach_target.iter();
    let target = target.map(|target| (target.module, ModuleUse::AttachTarget));
    let externs = program.externs.iter().filter_map(|symbol| {
        let module = symbol.module()?;
        Some((module, ModuleUse::Extern(symbol.name.clone())))
    });
    let maps = program.maps.iter();
    let maps = maps.flat_map(|map| [Some(map), map.inner.as_ref()]);
    let maps = maps.flatten().filter_map(|map| {
        let module = map.kernel_value?.module;
        Some((module, ModuleUse::Map(map.name.clone())))
    });
    let known = program.modules.len();
    match target
        .chain(externs)
        .chain(maps)
        .find(|(module, _)| usize::from(*module) > known)
    {
        Some((module, by)) => Err(InvalidProgram::NoSuchModule { module, by }),
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
    use crate::externs::{ExternResolution, ExternSymbolKind};
    use crate::map_def::{KernelTypeId, MapId, MapParams, ProgramId, ProgramRef};

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
        let error = fault(with_target);
        assert_eq!(error, "attach target: refers to missing module 1");
        assert!(fault(exits(1).license("GPL\0")).contains("NUL"));
    }

    fn map(name: &str) -> MapDef {
        MapDef::new(name, MapParams::default())
    }

    fn with_map(map: MapDef) -> ProgramBuilder {
        exits(1).maps(vec![Arc::new(map)])
    }

    #[test]
    fn texts_have_no_nul_byte() {
        let subprog = |name: &str| Subprog {
            name: name.to_owned(),
            start: 0,
        };
        let symbol = ExternSymbol {
            name: "e\0".to_owned(),
            type_id: TypeId(1),
            is_weak: true,
            kind: ExternSymbolKind::Kconfig,
            resolution: ExternResolution::Missing,
        };
        let mut renamed = map("m");
        renamed.kernel_name = "k\0".to_owned();
        let mut outer = map("m");
        outer.inner = Some(Arc::new(map("i\0")));
        let mut programs = map("m");
        let reference = ProgramRef {
            id: ProgramId(0),
            name: "r\0".to_owned(),
        };
        programs.contents = InitialContents::Entries(vec![(0, MapEntry::Program(reference))]);
        for (builder, error) in [
            (exits(1).name("p\0"), "name of the program: \"p\\0\""),
            (exits(1).section("s\0"), "name of the section: \"s\\0\""),
            (exits(1).license("GPL\0"), "licence: \"GPL\\0\""),
            (
                exits(1).subprogs(vec![subprog("a\0b")]),
                "name of subprog 0: \"a\\0b\"",
            ),
            (with_map(map("m\0x")), "name of map 0: \"m\\0x\""),
            (with_map(renamed), "name of map 0: \"k\\0\""),
            (with_map(outer), "name of the inner maps of map 0: \"i\\0\""),
            (
                with_map(programs),
                "name of a program in the contents of map 0: \"r\\0\"",
            ),
            (exits(1).externs(vec![symbol]), "name of extern 0: \"e\\0\""),
            (
                exits(1).modules(vec!["n\0".to_owned()]),
                "name of module 0: \"n\\0\"",
            ),
        ] {
            assert_eq!(fault(builder), format!("{error} contains a NUL byte"));
        }
    }

    #[test]
    fn inner_maps_and_modules_of_maps_are_checked() {
        let mut held = map("inner");
        held.contents = InitialContents::Entries(vec![(0, MapEntry::Map(MapId(9)))]);
        let mut nested = map("inner");
        nested.inner = Some(Arc::new(map("innermost")));
        for inner in [held, nested] {
            let mut outer = map("outer");
            outer.inner = Some(Arc::new(inner));
            let error = fault(with_map(outer));
            let expected = "map outer: the definition of its inner maps has initial contents";
            assert!(error.starts_with(expected), "{error}");
        }
        let mut of_module = map("ops");
        of_module.kernel_value = Some(KernelTypeId {
            id: TypeId(1),
            module: 2,
        });
        let mut outer = map("outer");
        outer.inner = Some(Arc::new(of_module.clone()));
        for def in [of_module, outer] {
            let one = vec!["m".to_owned()];
            let error = fault(with_map(def.clone()).modules(one));
            assert_eq!(error, "map ops: refers to missing module 2");
            let two = vec!["m".to_owned(), "n".to_owned()];
            assert!(with_map(def).modules(two).build().is_ok());
        }
    }

    #[test]
    fn chains_of_attach_targets_are_short() {
        let chain = |length| {
            let innermost = exits(1).build();
            (0..length).fold(innermost, |target, _| {
                let target = AttachTarget {
                    program: Some(Arc::new(target?)),
                    ..AttachTarget::default()
                };
                exits(1).attach_target(Some(target)).build()
            })
        };
        assert!(chain(MAX_TARGETS).is_ok());
        assert_eq!(chain(MAX_TARGETS + 1), Err(InvalidProgram::NestedTargets));
    }
}
