//! Programs of an object, each loaded alone, as libbpf 1.x loads it with autoload off for
//! all others.
//!
//! Only its own instructions and those it calls are linked. Globals hold what the file
//! says, nothing is pinned, a map that leaves its size to its loader gets one
//! ([`MapNote`]), and of struct_ops values only the members that are this program stay.
//! Where something external is missing, undefined symbols become weak, so that only what
//! uses them is refused; maps of kinds that the kernel lacks are left out. BTF that the
//! kernel refuses is left out, unless the object has struct_ops values. An freplace program
//! has no target here, so that there is no verdict about it.
//!
//! Cost: an object is opened once, or twice if externs are missing, and what its programs
//! share is computed once, unless struct_ops or test tags make it differ; each program is
//! linked when it is visited, so that one at a time is in memory. A program that may use a map of a kind
//! that the kernel lacks is verified here once, to know whether a path reaches it.

use std::sync::Arc;

use btf::ext::CoreKind;
use btf::validate::{Reason, kernel_log, validate};
use btf::{Btf, TypeId};
use isa::ebpf::{Callee, Imm64, Insn, Reg, encode};
use object::maps::Maps;
use object::{
    Error, LinkedProgram, Object, OpenOptions, Problem, ProgramId, Reference, Referent,
    RelocationFault,
};
use program::creation::LOADER_STACK_BYTES;
use program::{MapDef, Program};
use spec::Kernel;
use spec::kernel::{KernelField, Source};
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};
use spec::since::Release;
use verifier::{LogTail, Options, RefusalKind, Verdict, Verification};

use super::notes::{self, MapNote};
use super::results::verify_program;
use super::test_tags::TestTags;
use crate::internal::loading::ObjectLoading;

/// Reads BTF that a test names as a file.
pub type ReadBtf<'a> = &'a dyn Fn(&str) -> Option<Arc<Btf<'static>>>;

/// Loads the programs of objects, each alone.
#[derive(Clone, Copy)]
pub struct ProgramLoader<'a> {
    kernel: &'a Kernel,
    flags: LoadFlags,
    keeps_name: bool,
    loading: Option<&'a ObjectLoading>,
    read_btf: Option<ReadBtf<'a>>,
    choose: &'a dyn Fn(&str) -> bool,
    change: &'a dyn Fn(&mut Object<'_>),
}

/// A program of an object, loaded alone.
#[derive(Debug)]
pub struct StandaloneProgram {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its type, if its section says one.
    pub kind: Option<ProgramType>,
    /// The program, or why it cannot be loaded.
    pub program: Result<Program, Error>,
    /// True if CO-RE relocations ask whether the kernel has a type, member or enumerator.
    pub checks_types: bool,
    /// True if undefined symbols had to become weak.
    pub weak_externs: bool,
    /// The kernel's refusal of the object's BTF, if it refuses it: the last line of its
    /// log. The program has none then.
    pub btf_refusal: Option<String>,
    /// Assumptions about its maps.
    pub notes: Vec<MapNote>,
    /// Expected return value, from the tag `test_retval`.
    pub retval: Option<u32>,
    /// The test expects that the verifier refuses it (`test_expect_failure`).
    pub is_refused: bool,
}

impl StandaloneProgram {
    /// A program alone, as the kernel loads it: without its BTF if the kernel refuses that.
    pub fn from_program(program: Program, kernel: &Kernel) -> StandaloneProgram {
        let types = program.btf().filter(|_| !has_struct_ops(&program));
        let kernel_types = kernel.btf().map(|btf| &**btf);
        let btf_refusal = types.and_then(|types| btf_refusal(types.as_bytes(), kernel_types));
        StandaloneProgram {
            name: program.name().to_owned(),
            section: program.section().to_owned(),
            kind: Some(program.kind()),
            program: Ok(match &btf_refusal {
                Some(_) => without_btf(program),
                None => program,
            }),
            checks_types: false,
            weak_externs: false,
            btf_refusal,
            notes: Vec::new(),
            retval: None,
            is_refused: false,
        }
    }

    /// An edited program in the place of this one.
    pub(super) fn edited(&self, program: Program) -> StandaloneProgram {
        StandaloneProgram {
            name: self.name.clone(),
            section: self.section.clone(),
            kind: self.kind,
            program: Ok(program),
            checks_types: self.checks_types,
            weak_externs: self.weak_externs,
            btf_refusal: self.btf_refusal.clone(),
            notes: Vec::new(),
            retval: self.retval,
            is_refused: self.is_refused,
        }
    }

    /// The verification of the program. Its verdict is [`Verdict::Unsupported`] in place of a
    /// refusal of what the kernel's release lacks, if checks of types may keep the program from it
    /// and the types are assumed: those of that release would answer otherwise.
    pub fn check_release(&self, done: Verification, kernel: &Kernel) -> Verification {
        let is_open = self.checks_types
            && *kernel.source(KernelField::Btf) == Source::Assumed
            && matches!(&done.verdict, Verdict::Refused(refusal)
                if refusal.kind == RefusalKind::Release && refusal.insn.is_some());
        match kernel.version().filter(|_| is_open) {
            Some(version) => Verification {
                verdict: Verdict::Unsupported(format!("rules of Linux {}", Release::from(version))),
                ..done
            },
            None => done,
        }
    }
}

fn has_struct_ops(program: &Program) -> bool {
    let mut maps = program.maps().iter();
    program.kind() == ProgramType::StructOps
        || maps.any(|map| map.kind() == Some(MapKind::StructOps))
}

impl<'a> ProgramLoader<'a> {
    /// A loader of all programs for this kernel, without further load flags.
    pub fn new(kernel: &'a Kernel) -> ProgramLoader<'a> {
        ProgramLoader {
            kernel,
            flags: LoadFlags::default(),
            keeps_name: false,
            loading: None,
            read_btf: None,
            choose: &|_| true,
            change: &|_| {},
        }
    }

    /// Adds load flags to those of the sections.
    #[must_use]
    pub fn with_flags(self, flags: LoadFlags) -> ProgramLoader<'a> {
        ProgramLoader { flags, ..self }
    }

    /// Names objects as they are given, and not by the last part of a path up to its first dot, if no
    /// conventions are set.
    #[must_use]
    pub fn with_whole_names(self, keeps_name: bool) -> ProgramLoader<'a> {
        ProgramLoader { keeps_name, ..self }
    }

    /// Opens objects by these conventions, and sets types and attach targets; libbpf's count
    /// otherwise.
    #[must_use]
    pub fn with_loading(self, loading: &'a ObjectLoading) -> ProgramLoader<'a> {
        let loading = Some(loading);
        ProgramLoader { loading, ..self }
    }

    /// Obeys the declaration tags of the kernel's selftests: load flags
    /// (`test_prog_flags`) and BTF for CO-RE relocations (`test_btf_path`), which is read
    /// by file name.
    #[must_use]
    pub fn with_test_tags(self, read_btf: ReadBtf<'a>) -> ProgramLoader<'a> {
        let read_btf = Some(read_btf);
        ProgramLoader { read_btf, ..self }
    }

    /// Loads the programs whose name is chosen.
    #[must_use]
    pub fn with_choice(self, choose: &'a dyn Fn(&str) -> bool) -> ProgramLoader<'a> {
        ProgramLoader { choose, ..self }
    }

    /// Changes the object after it is opened, before programs are linked.
    #[must_use]
    pub fn with_change(self, change: &'a dyn Fn(&mut Object<'_>)) -> ProgramLoader<'a> {
        ProgramLoader { change, ..self }
    }

    /// Loads the programs of an object in the order of the file.
    ///
    /// # Errors
    /// If the object cannot be opened; a program that cannot be linked is visited.
    pub fn load_each(
        &self,
        file: &[u8],
        name: &str,
        visit: &mut dyn FnMut(StandaloneProgram),
    ) -> Result<(), Error> {
        let mut opened = Opened::open(self, file, name)?;
        let selected: Vec<ProgramId> = opened
            .object
            .programs()
            .filter(|(_, code)| (self.choose)(&code.name.to_string()))
            .map(|(id, _)| id)
            .collect();
        let mut selected = selected.into_iter();
        let lacking = opened.load_all(self, &mut selected, false, visit);
        if let Some(id) = lacking {
            let mut file = file.to_vec();
            object::make_undefined_symbols_weak(&mut file);
            let mut opened = Opened::open(self, &file, name)?;
            opened.load_all(self, &mut [id].into_iter().chain(selected), true, visit);
        }
        Ok(())
    }
}

fn is_missing_extern(loaded: &StandaloneProgram) -> bool {
    let error = loaded.program.as_ref().err();
    error.is_some_and(|error| matches!(error.problem(), Problem::Extern(_)))
}

/// An object, and its maps as they are before a program is loaded.
struct Opened<'o> {
    object: Object<'o>,
    maps: Maps<'o>,
    /// The sizes that were set in place of the loader.
    sized: Vec<MapNote>,
    btf_refusal: Option<String>,
}

impl<'o> Opened<'o> {
    fn open(loader: &ProgramLoader<'_>, file: &'o [u8], name: &str) -> Result<Opened<'o>, Error> {
        let options = OpenOptions {
            name: Some(name),
            keeps_name: loader.keeps_name,
            ..OpenOptions::default()
        };
        let mut object = match loader.loading {
            Some(loading) => loading.open(file, name)?,
            None => Object::open_with(file, &options)?,
        };
        let completes_sizes = object.loader().rules().completes_sizes;
        let mut sized = Vec::new();
        for_each_map(object.maps_mut(), |map| {
            map.pin = None;
            let kind = map.params().kind();
            let is_there = kind.is_some_and(|kind| has_map_kind(loader.kernel, kind));
            if !is_there && map.struct_ops().is_none() {
                map.autocreate = false;
            }
            let is_by_cpu = kind.is_some_and(MapKind::has_entry_by_cpu);
            if map.params().max_entries == 0
                && !kind.is_some_and(MapKind::has_no_entries)
                && !(is_by_cpu && completes_sizes)
            {
                map.set_max_entries(1);
                sized.push(MapNote::Entries {
                    map: map.name().to_owned(),
                    set: map.params().max_entries,
                });
            }
            if map.params().value_size == 0 && kind == Some(MapKind::StackTrace) {
                map.set_value_size(LOADER_STACK_BYTES);
                sized.push(MapNote::ValueSize {
                    map: map.name().to_owned(),
                    set: LOADER_STACK_BYTES,
                });
            }
        });
        if let Some(loading) = loader.loading {
            loading.set_programs(&mut object);
        }
        (loader.change)(&mut object);
        let maps = object.maps().clone();
        let kernel = loader.kernel.btf().map(|btf| &**btf);
        let btf_refusal = object
            .btf()
            .and_then(|types| btf_refusal(types.as_bytes(), kernel));
        Ok(Opened {
            object,
            maps,
            sized,
            btf_refusal,
        })
    }

    /// Loads programs and visits each. Unless undefined symbols are weak already, stops at
    /// the first that lacks an extern, and returns it.
    fn load_all(
        &mut self,
        loader: &ProgramLoader<'_>,
        programs: &mut impl Iterator<Item = ProgramId>,
        is_weak: bool,
        visit: &mut dyn FnMut(StandaloneProgram),
    ) -> Option<ProgramId> {
        let mut visit = |id, loaded: Option<StandaloneProgram>| {
            let loaded = loaded?;
            if !is_weak && is_missing_extern(&loaded) {
                return Some(id);
            }
            visit(StandaloneProgram {
                weak_externs: is_weak,
                ..loaded
            });
            None
        };
        if self.has_struct_ops() || loader.read_btf.is_some() {
            return programs.find_map(|id| visit(id, self.load_apart(loader, id)));
        }
        let mut session = self.object.link_session(loader.kernel);
        programs.find_map(|id| {
            let linked = match &mut session {
                Ok(session) => session.link(&[id]),
                Err(refusal) => Err(refusal.clone()),
            };
            let program = linked.and_then(|linked| match linked.unloadable.into_iter().next() {
                Some(unloadable) => Err(unloadable.error),
                None => Ok(linked.programs.into_iter().next()),
            });
            visit(id, self.loaded(loader, id, &TestTags::default(), program))
        })
    }

    fn has_struct_ops(&self) -> bool {
        self.maps.iter().any(|(_, map)| map.struct_ops().is_some())
    }

    /// Loads one program with the maps and the kernel that are its own; `None` if the object
    /// has none of this index.
    fn load_apart(
        &mut self,
        loader: &ProgramLoader<'_>,
        id: ProgramId,
    ) -> Option<StandaloneProgram> {
        let has_struct_ops = self.has_struct_ops();
        let object = &mut self.object;
        let code = object.program_defs().get(id)?;
        let (name, kind) = (code.name.to_string(), code.kind);
        let place = (code.section, code.start);
        object.set_autoload(|code| (code.section, code.start) == place);
        if has_struct_ops {
            *object.maps_mut() = self.maps.clone();
            for_each_map(object.maps_mut(), |map| {
                if let Some(value) = map.struct_ops_mut() {
                    value.retain_programs(|program| program == id);
                }
            });
        }
        let tags = match loader.read_btf {
            Some(_) => object.btf().map(|types| TestTags::of(types, &name)),
            None => None,
        };
        let tags = tags.unwrap_or_default();
        let program = core_kernel(loader, &tags).and_then(|with_btf| {
            link(object, id, kind, with_btf.as_ref().unwrap_or(loader.kernel))
        });
        self.loaded(loader, id, &tags, program)
    }

    /// A program as it is loaded once it is linked; `None` if there is none.
    fn loaded(
        &self,
        loader: &ProgramLoader<'_>,
        id: ProgramId,
        tags: &TestTags,
        program: Result<Option<LinkedProgram>, Error>,
    ) -> Option<StandaloneProgram> {
        let code = self.object.program_defs().get(id)?;
        let mut checks_types = false;
        let program = match program {
            Ok(linked) => {
                let linked = linked?;
                checks_types = linked.references.iter().any(asks_existence);
                Ok(with_flags(linked.program, tags.flags(loader.flags)))
            }
            Err(error) => Err(error),
        };
        let btf_refusal = self.btf_refusal.clone().filter(|_| !self.has_struct_ops());
        let program = match &btf_refusal {
            Some(_) => program.map(without_btf),
            None => program,
        };
        let program = program.map(|program| with_lacking_maps(program, loader.kernel));
        let notes = match &program {
            Ok(program) => notes::of_program(program, &self.sized, loader.kernel),
            Err(_) => Vec::new(),
        };
        Some(StandaloneProgram {
            name: code.name.to_string(),
            section: code.section_name.to_string(),
            kind: code.kind,
            program,
            checks_types,
            weak_externs: false,
            btf_refusal,
            notes,
            retval: tags.retval,
            is_refused: tags.is_refused,
        })
    }
}

/// True if the kernel has maps of this kind, by its registry; true without a registry, which
/// verification needs anyway.
fn has_map_kind(kernel: &Kernel, kind: MapKind) -> bool {
    let registry = kernel.registry();
    registry.is_none_or(|registry| registry.map(kind).is_some())
}

/// The last line of the kernel's log if it refuses BTF; of special fields, which the log leaves out,
/// the violated rule.
fn btf_refusal(bytes: &[u8], kernel: Option<&Btf<'_>>) -> Option<String> {
    let refusal = validate(bytes, kernel).err()?;
    if let Reason::Field(_) = refusal.reason {
        return Some(format!("error {}: {refusal}", refusal.errno()));
    }
    let log = kernel_log(bytes, Some(&refusal));
    let log = String::from_utf8_lossy(&log);
    let last = log.lines().next_back().unwrap_or_default();
    Some(format!("error {}: {}", refusal.errno(), last.trim()))
}

fn for_each_map<'o>(maps: &mut Maps<'o>, mut visit: impl FnMut(&mut object::maps::Map<'o>)) {
    let ids: Vec<_> = maps.iter().map(|(id, _)| id).collect();
    for id in ids {
        if let Some(map) = maps.get_mut(id) {
            visit(map);
        }
    }
}

/// The kernel with the BTF that a test's tags name for CO-RE relocations; `None` if they
/// name none.
fn core_kernel(loader: &ProgramLoader<'_>, tags: &TestTags) -> Result<Option<Kernel>, Error> {
    let (Some(read), Some(name)) = (loader.read_btf, &tags.btf) else {
        return Ok(None);
    };
    let absent = || Error::new(RelocationFault::NoKernelTypes).about(name);
    let btf = read(name).ok_or_else(absent)?;
    Ok(Some(loader.kernel.clone().with_core_btf(btf)))
}

/// Links what is to be loaded and returns this program.
fn link(
    object: &mut Object<'_>,
    id: ProgramId,
    kind: Option<ProgramType>,
    kernel: &Kernel,
) -> Result<Option<LinkedProgram>, Error> {
    let mut linked = object.link(kernel);
    if kind != Some(ProgramType::StructOps)
        && let Err(error) = &linked
        && matches!(error.problem(), Problem::StructOps(_))
    {
        // Types that the kernel lacks concern only the programs in them.
        for_each_map(object.maps_mut(), |map| {
            if map.struct_ops().is_some() {
                map.autocreate = false;
            }
        });
        linked = object.link(kernel);
    }
    let mut linked = linked?;
    let mut unloadable = linked.unloadable.iter();
    if let Some(at) = unloadable.position(|program| program.id == id) {
        return Err(linked.unloadable.swap_remove(at).error);
    }
    Ok(linked.programs.into_iter().find(|linked| linked.id == id))
}

/// True for a CO-RE relocation that asks whether the kernel has something.
fn asks_existence(reference: &Reference) -> bool {
    let Referent::Core(spec) = reference.to else {
        return false;
    };
    [
        CoreKind::FIELD_EXISTS,
        CoreKind::TYPE_EXISTS,
        CoreKind::TYPE_MATCHES,
        CoreKind::ENUM_VALUE_EXISTS,
    ]
    .contains(&spec.kind)
}

fn with_flags(program: Program, flags: LoadFlags) -> Program {
    if flags == LoadFlags::default() {
        return program;
    }
    let builder = program.to_builder().flags(program.flags().with(flags));
    // Flags change nothing that makes a program valid.
    builder.build().unwrap_or(program)
}

/// The program as linked with the maps whose kind the kernel lacks, if a path reaches the use of one:
/// they are not created, and that is why it is not loaded. A path that checks first is none.
fn with_lacking_maps(program: Program, kernel: &Kernel) -> Program {
    let decoded = program.decode();
    let missing = |at: usize| match decoded.get(at)? {
        Insn::Call(Callee::Helper(number)) => program.missing_map(*number),
        _ => None,
    };
    let has_missing = (0..decoded.len()).any(|at| missing(at).is_some());
    let Some(registry) = kernel.registry().filter(|_| has_missing) else {
        return program;
    };
    let mut log = LogTail::new(0);
    let done = verify_program(&program, kernel, registry, &Options::default(), &mut log);
    let reached = match done.map(|done| done.verdict) {
        Ok(Verdict::Refused(refusal)) => refusal.insn,
        _ => None,
    };
    if reached.and_then(|at| missing(at as usize)).is_none() {
        return program;
    }
    let mut insns = program.insns().to_vec();
    let mut at = 0;
    while at + 1 < insns.len() {
        let Some(map) = missing(at) else {
            at += 1;
            continue;
        };
        // Which register gets its address is not kept: no program is verified without its maps.
        let (dst, index) = (Reg::R1, map.0 as i32);
        let imm = Imm64::MapIndex { index, high: 0 };
        let load = [Insn::LoadImm64 { dst, imm }, Insn::Imm64High];
        let Ok(load) = encode(&load) else {
            return program;
        };
        insns[at..at + 2].copy_from_slice(&load);
        at += 2;
    }
    program.to_builder().insns(insns).build().unwrap_or(program)
}

/// The program as it is loaded when the kernel refused its BTF.
fn without_btf(program: Program) -> Program {
    let maps = program.maps().iter().map(|map| {
        let mut map = MapDef::clone(map);
        map.has_btf = false;
        (map.params.key_type, map.params.value_type) = (TypeId::VOID, TypeId::VOID);
        Arc::new(map)
    });
    let maps: Vec<_> = maps.collect();
    let builder = program.to_builder().btf(None).maps(maps);
    let builder = builder.func_info(Vec::new()).line_info(Vec::new());
    // Instructions may need BTF; the verifier then says so.
    builder.build().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use spec::kernel::Source;
    use spec::registry::text;

    use super::*;

    #[test]
    fn kinds_of_maps_are_those_of_the_registry() {
        let kernel = kernel_data::linux_6_18();
        for kind in MapKind::ALL {
            let is_there = *kind <= MapKind::Arena;
            assert_eq!(has_map_kind(&kernel, *kind), is_there, "{kind:?}");
        }
        let lines = text::write(kernel.registry().unwrap());
        let registry = text::parse(&lines.replace("map arena ", "map insn_array ")).unwrap();
        let other = kernel.with_registry(Box::new(|| registry), Source::Given);
        assert!(has_map_kind(&other, MapKind::InsnArray));
        assert!(!has_map_kind(&other, MapKind::Arena));
    }
}
