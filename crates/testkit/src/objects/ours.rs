//! What Beebox hands over for an object, in the common form.

use btf::Name;
use object::maps::{Entry, NewMap, Start};
use object::{Error, JumpTable, Linked, Object, OpenOptions, ProgramId, Target};
use program::{Program, PseudoLoad, is_wide_load};
use spec::maps::MapKind;

use super::class;
use super::handed::{
    Contents, CreatedMap, Frozen, Handed, LoadedProgram, LoadedTypes, OpenedMap, OpenedProgram,
    Outcome, Scope, Stage, WrittenValue,
};

/// The longest name that the kernel takes, in bytes.
const LONGEST_NAME: usize = 15;

/// What libbpf calls the map of a table of places.
const JUMP_TABLE: &str = ".jumptables";

/// What libbpf gives as descriptor of a program that is not loaded.
const NOT_LOADED: i32 = -2;

/// Opens an object and links it: the whole, or one program alone.
pub fn load(file: &[u8], path: &str, prog: &str, target: &Target<'_>) -> Handed {
    let mut handed = Handed::new(Scope { prog: prog.into() });
    let options = OpenOptions {
        name: Some(path),
        ..OpenOptions::default()
    };
    let mut object = match Object::open_with(file, &options) {
        Ok(object) => object,
        Err(error) => {
            handed.outcome = Some(failure(Stage::Open, &error));
            return handed;
        }
    };
    if prog.is_empty() {
        opened(&object, &mut handed);
    } else {
        object.set_autoload(|code| is(code.name, prog));
    }
    let linked = object.link(target);
    let failed = match &linked {
        Err(error) => Some(error),
        Ok(linked) => linked.refused.first().map(|(_, error)| error),
    };
    handed.outcome = Some(match failed {
        Some(error) => failure(Stage::Load, error),
        None => Outcome {
            stage: Stage::Load,
            errno: 0,
            messages: Vec::new(),
            known_class: None,
        },
    });
    if let Ok(linked) = &linked {
        loaded(&object, linked, &mut handed);
    }
    handed
}

fn is(name: Name<'_>, text: &str) -> bool {
    name.as_bytes() == text.as_bytes()
}

fn failure(stage: Stage, error: &Error) -> Outcome {
    Outcome {
        stage,
        errno: error.problem().errno(),
        messages: vec![error.to_string()],
        known_class: Some(class::of_problem(error.problem())),
    }
}

fn opened(object: &Object<'_>, handed: &mut Handed) {
    for (_, code) in object.programs() {
        handed.programs.push(OpenedProgram {
            name: code.name.to_string(),
            section: code.section_name.to_string(),
            kind: code.kind.map_or(0, |kind| kind.number()),
            attach: code.attach.map_or(0, |attach| attach.number()),
            flags: code.flags.0,
            autoload: code.autoload,
            insns: code.len() as u32,
        });
    }
    for (_, map) in object.maps().iter() {
        let definition = map.definition();
        let initial = map.image().filter(|_| map.struct_ops().is_none());
        handed.maps.push(OpenedMap {
            name: map.name().to_owned(),
            kind: definition.number,
            key_size: definition.key_size,
            value_size: definition.value_size,
            max_entries: definition.max_entries,
            flags: definition.flags.0,
            extra: definition.extra,
            numa_node: definition.numa_node,
            btf_key: definition.key.0,
            btf_value: definition.value.0,
            autocreate: map.autocreate,
            pin: map.pin.clone().unwrap_or_default(),
            initial: initial.map(|image| image.to_vec()),
        });
    }
}

fn loaded(object: &Object<'_>, linked: &Linked<'_>, handed: &mut Handed) {
    let types = object.types();
    handed.types = types.map(|types| LoadedTypes::new(types.as_bytes()));
    let names = Names { object, linked };
    for table in &linked.jump_tables {
        jump_table(table, handed);
    }
    let created_maps = || linked.maps.iter().filter(|map| map.autocreate);
    for map in created_maps() {
        if let Some(inner) = &map.inner {
            handed.created.push(created(inner, None));
        }
        let inner = map.inner.as_ref().map(|inner| inner.name.clone());
        handed.created.push(created(map, inner));
    }
    // Programs stand in maps once they are loaded, tables when they are attached.
    let turn = |map: &NewMap<'_>| match &map.start {
        Start::Table { .. } => 2,
        Start::Entries(entries) if entries.iter().any(|(_, entry)| is_program(*entry)) => 1,
        _ => 0,
    };
    for now in 0..3 {
        for map in created_maps().filter(|map| turn(map) == now) {
            started(&names, map, handed);
        }
    }
    for (_, program) in &linked.programs {
        handed.loaded.push(names.loaded(program, types.is_some()));
    }
}

fn is_program(entry: Entry) -> bool {
    matches!(entry, Entry::Program(_))
}

/// A table of places is a map that has each place as the first word of a value.
fn jump_table(table: &JumpTable, handed: &mut Handed) {
    const VALUE: usize = 16;
    let map = || JUMP_TABLE.to_owned();
    handed.created.push(CreatedMap {
        map: map(),
        name: map(),
        kind: MapKind::InsnArray.number(),
        key_size: 4,
        value_size: VALUE as u32,
        max_entries: table.places.len() as u32,
        flags: 0,
        extra: 0,
        numa_node: 0,
        ifindex: 0,
        btf: false,
        btf_key: 0,
        btf_value: 0,
        btf_vmlinux_value: 0,
        inner: None,
    });
    for (key, place) in (0u32..).zip(&table.places) {
        let mut value = vec![0; VALUE];
        value[..4].copy_from_slice(&place.to_le_bytes());
        handed.written.push(WrittenValue {
            map: map(),
            key: key.to_le_bytes().to_vec(),
            value: Some(value),
            value_map: None,
            value_prog: None,
            progs: Vec::new(),
        });
    }
    handed.frozen.push(Frozen { map: map() });
}

fn created(map: &NewMap<'_>, inner: Option<String>) -> CreatedMap {
    let definition = map.definition;
    CreatedMap {
        map: map.name.clone(),
        name: map.kernel_name.clone(),
        kind: definition.number,
        key_size: definition.key_size,
        value_size: definition.value_size,
        max_entries: definition.max_entries,
        flags: definition.flags.0,
        extra: definition.extra,
        numa_node: definition.numa_node,
        ifindex: map.device,
        btf: map.described,
        btf_key: definition.key.0,
        btf_value: definition.value.0,
        btf_vmlinux_value: map.kernel_value.map_or(0, |value| value.ty.0),
        inner,
    }
}

fn started(names: &Names<'_, '_>, map: &NewMap<'_>, handed: &mut Handed) {
    let written = |key: u32| WrittenValue {
        map: map.name.clone(),
        key: key.to_le_bytes().to_vec(),
        value: None,
        value_map: None,
        value_prog: None,
        progs: Vec::new(),
    };
    match &map.start {
        Start::Entries(entries) => {
            for &(key, entry) in entries {
                let mut written = written(key);
                match entry {
                    Entry::Map(map) => written.value_map = Some(names.map(map.0)),
                    Entry::Program(id) if names.is_loaded(id) => {
                        written.value_prog = Some(names.program(id));
                    }
                    Entry::Program(_) => written.value = Some(NOT_LOADED.to_le_bytes().into()),
                }
                handed.written.push(written);
            }
        }
        Start::Value { image, frozen } => {
            let mut written = written(0);
            written.value = Some(image.to_vec());
            handed.written.push(written);
            if *frozen {
                let map = map.name.clone();
                handed.frozen.push(Frozen { map });
            }
        }
        Start::Arena { image, offset } => handed.add_contents(Contents {
            map: map.name.clone(),
            offset: *offset,
            bytes: image.to_vec(),
        }),
        Start::Table { image, programs } => {
            let mut written = written(0);
            written.value = Some(image.to_vec());
            let programs = programs.iter();
            let programs = programs.map(|&(at, id)| (at as usize, names.program(id)));
            written.progs = programs.collect();
            handed.written.push(written);
        }
    }
}

struct Names<'o, 'a> {
    object: &'o Object<'a>,
    linked: &'o Linked<'o>,
}

impl Names<'_, '_> {
    /// Behind the maps of the object are its tables of places.
    fn map(&self, number: u32) -> String {
        let map = self.linked.maps.get(number as usize);
        map.map_or_else(|| JUMP_TABLE.to_owned(), |map| map.name.clone())
    }

    fn is_loaded(&self, id: ProgramId) -> bool {
        self.linked.programs.iter().any(|(loaded, _)| *loaded == id)
    }

    fn program(&self, id: ProgramId) -> String {
        let code = self.object.codes().get(id);
        code.map_or_else(|| format!("{id:?}"), |code| code.name.to_string())
    }

    fn loaded(&self, program: &Program, btf: bool) -> LoadedProgram {
        let insns = isa::ebpf::to_bytes(&program.for_kernel(|_| 0));
        let mut maps = Vec::new();
        let mut slots = program.slots.iter().enumerate();
        while let Some((at, slot)) = slots.next() {
            if !is_wide_load(*slot) {
                continue;
            }
            let source = slot.src();
            if source == PseudoLoad::MapIndex as u8 || source == PseudoLoad::MapIndexValue as u8 {
                maps.push((at, self.map(slot.imm as u32)));
            }
            slots.next();
        }
        let functions = program.functions.iter();
        let func_info = functions.flat_map(|function| [function.slot, function.ty.0]);
        let lines = program.lines.iter();
        let line_info = lines.flat_map(|line| {
            let place = line.line << 10 | line.column;
            [line.slot, line.file.0, line.text.0, place]
        });
        let mut name = program.name.clone();
        name.truncate(LONGEST_NAME);
        LoadedProgram {
            prog: program.name.clone(),
            name,
            kind: program.kind.map_or(0, |kind| kind.number()),
            attach: program.expected_attach_type(),
            flags: program.flags.0,
            license: program.license.to_string(),
            kern_version: program.kernel_version,
            ifindex: 0,
            attach_btf_id: program.attach_point.map_or(0, |point| point.id.0),
            btf,
            insns,
            maps,
            func_info_size: if program.functions.is_empty() { 0 } else { 8 },
            func_info: func_info.flat_map(u32::to_le_bytes).collect(),
            line_info_size: if program.lines.is_empty() { 0 } else { 16 },
            line_info: line_info.flat_map(u32::to_le_bytes).collect(),
        }
    }
}
