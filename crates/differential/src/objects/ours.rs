//! Data that Beebox passes to the kernel for an object, in the common form.

use btf::Name;
use object::{Error, Linked, Object, OpenOptions};
use program::{
    InitialContents, MapDef, MapEntry, MapId, MapParams, Program, ProgramId, ProgramRef,
};
use spec::Kernel;

use super::class;
use super::syscall_record::{
    Contents, CreatedMap, Frozen, LoadedProgram, LoadedTypes, MapAttributes, OpenedMap,
    OpenedProgram, Outcome, Scope, Stage, SyscallRecord, WrittenValue,
};

/// The longest name that the kernel takes, in bytes.
const LONGEST_NAME: usize = 15;

/// libbpf's file descriptor of a program that is not loaded.
const NOT_LOADED: i32 = -2;

/// Opens an object and links it: the whole, or one program alone.
pub fn load(file: &[u8], path: &str, prog: &str, kernel: &Kernel) -> SyscallRecord {
    let mut record = SyscallRecord::new(Scope { prog: prog.into() });
    let options = OpenOptions {
        name: Some(path),
        ..OpenOptions::default()
    };
    let mut object = match Object::open_with(file, &options) {
        Ok(object) => object,
        Err(error) => {
            record.outcome = Some(failure(Stage::Open, &error));
            return record;
        }
    };
    if prog.is_empty() {
        opened(&object, &mut record);
    } else {
        object.set_autoload(|code| is(code.name, prog));
    }
    let linked = object.link(kernel);
    let failed = match &linked {
        Err(error) => Some(error),
        Ok(linked) => linked.unloadable.first().map(|program| &program.error),
    };
    record.outcome = Some(match failed {
        Some(error) => failure(Stage::Load, error),
        None => Outcome {
            stage: Stage::Load,
            errno: 0,
            messages: Vec::new(),
            known_class: None,
        },
    });
    if let Ok(linked) = &linked {
        loaded(&object, linked, &mut record);
    }
    record
}

fn is(name: Name<'_>, text: &str) -> bool {
    name.as_bytes() == text.as_bytes()
}

fn failure(stage: Stage, error: &Error) -> Outcome {
    Outcome {
        stage,
        errno: error.problem().errno().0,
        messages: vec![error.to_string()],
        known_class: Some(class::of_problem(error.problem())),
    }
}

fn opened(object: &Object<'_>, record: &mut SyscallRecord) {
    for (_, code) in object.programs() {
        record.programs.push(OpenedProgram {
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
        let initial = map.image().filter(|_| map.struct_ops().is_none());
        record.maps.push(OpenedMap {
            name: map.name().to_owned(),
            attributes: attributes(map.params()),
            autocreate: map.autocreate,
            pin: map.pin.clone().unwrap_or_default(),
            initial: initial.map(|image| image.to_vec()),
        });
    }
}

fn loaded(object: &Object<'_>, linked: &Linked, record: &mut SyscallRecord) {
    let types = object.btf();
    record.types = types.map(|types| LoadedTypes::new(types.as_bytes()));
    let names = Names { linked };
    let created_maps = || {
        let created = linked.maps.iter().filter(|map| map.autocreate);
        created.map(|map| &*map.def)
    };
    // Jump tables come first.
    let is_jump_table = |map: &&MapDef| matches!(map.contents, InitialContents::JumpTable(_));
    for map in created_maps().filter(is_jump_table) {
        record.created.push(created(map, None));
        started(&names, map, record);
    }
    for map in created_maps().filter(|map| !is_jump_table(map)) {
        if let Some(inner) = &map.inner {
            record.created.push(created(inner, None));
        }
        let inner = map.inner.as_ref().map(|inner| inner.name.clone());
        record.created.push(created(map, inner));
    }
    // Programs stand in maps once they are loaded, struct_ops once they are attached.
    let turn = |map: &MapDef| match &map.contents {
        InitialContents::JumpTable(_) => 3,
        InitialContents::StructOps { .. } => 2,
        InitialContents::Entries(entries) if entries.iter().any(|(_, it)| is_program(it)) => 1,
        _ => 0,
    };
    for now in 0..3 {
        for map in created_maps().filter(|map| turn(map) == now) {
            started(&names, map, record);
        }
    }
    for linked in &linked.programs {
        let program = names.loaded(&linked.program, types.is_some());
        record.loaded.push(program);
    }
}

fn is_program(entry: &MapEntry) -> bool {
    matches!(entry, MapEntry::Program(_))
}

fn attributes(params: &MapParams) -> MapAttributes {
    MapAttributes {
        kind: params.map_type,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        extra: params.extra,
        numa_node: params.numa_node,
        btf_key: params.key_type.0,
        btf_value: params.value_type.0,
    }
}

fn created(map: &MapDef, inner: Option<String>) -> CreatedMap {
    CreatedMap {
        map: map.name.clone(),
        name: map.kernel_name.clone(),
        attributes: attributes(&map.params),
        ifindex: map.ifindex,
        btf: map.has_btf,
        btf_vmlinux_value: map.kernel_value.map_or(0, |value| value.id.0),
        inner,
    }
}

fn started(names: &Names<'_>, map: &MapDef, record: &mut SyscallRecord) {
    let written = |key: u32| WrittenValue {
        map: map.name.clone(),
        key: key.to_le_bytes().to_vec(),
        value: None,
        value_map: None,
        value_prog: None,
        progs: Vec::new(),
    };
    match &map.contents {
        InitialContents::Entries(entries) => {
            for (key, entry) in entries {
                let mut written = written(*key);
                match entry {
                    MapEntry::Map(map) => written.value_map = Some(names.map(*map)),
                    MapEntry::Program(program) if names.is_loaded(program.id) => {
                        written.value_prog = Some(program.name.clone());
                    }
                    MapEntry::Program(_) => written.value = Some(NOT_LOADED.to_le_bytes().into()),
                }
                record.written.push(written);
            }
        }
        InitialContents::Value { image, .. } => {
            let mut written = written(0);
            written.value = Some(image.to_vec());
            record.written.push(written);
        }
        InitialContents::Arena { image, offset } => record.add_contents(Contents {
            map: map.name.clone(),
            offset: *offset,
            bytes: image.to_vec(),
        }),
        InitialContents::StructOps { image, programs } => {
            let mut written = written(0);
            written.value = Some(image.to_vec());
            let programs = programs.iter();
            let place = |(at, program): &(u32, ProgramRef)| (*at as usize, program.name.clone());
            written.progs = programs.map(place).collect();
            record.written.push(written);
        }
        // The target of a jump is the first word of a value.
        InitialContents::JumpTable(places) => {
            for (key, place) in (0u32..).zip(places) {
                let mut value = vec![0; map.params.value_size as usize];
                value[..4].copy_from_slice(&place.to_le_bytes());
                let mut written = written(key);
                written.value = Some(value);
                record.written.push(written);
            }
        }
    }
    if map.is_frozen() {
        let map = map.name.clone();
        record.frozen.push(Frozen { map });
    }
}

struct Names<'o> {
    linked: &'o Linked,
}

impl Names<'_> {
    fn map(&self, id: MapId) -> String {
        let map = self.linked.maps.get(id.0 as usize);
        map.map(|map| map.def.name.clone()).unwrap_or_default()
    }

    fn is_loaded(&self, id: ProgramId) -> bool {
        let linked = self.linked.programs.iter().map(|program| program.id);
        let unloadable = self.linked.unloadable.iter().map(|program| program.id);
        linked.chain(unloadable).any(|loaded| loaded == id)
    }

    fn loaded(&self, program: &Program, btf: bool) -> LoadedProgram {
        let insns = isa::ebpf::to_bytes(&program.insns_with_map_fds(|_| 0));
        let maps = program.map_loads();
        let maps = maps.map(|(at, map, _)| (at, self.map(map))).collect();
        let func_info = program.func_info().iter();
        let func_info = func_info.flat_map(|record| [record.insn, record.type_id.0]);
        let line_info = program.line_info().iter().flat_map(|record| {
            let place = record.line << 10 | record.column;
            [record.insn, record.file.0, record.text.0, place]
        });
        let mut name = program.name().to_owned();
        name.truncate(LONGEST_NAME);
        LoadedProgram {
            prog: program.name().to_owned(),
            name,
            kind: program.kind().number(),
            attach: program.expected_attach_type(),
            flags: program.flags().0,
            license: program.license().to_owned(),
            kern_version: program.kernel_version(),
            ifindex: 0,
            attach_btf_id: program.attach_target().map_or(0, |it| it.btf_id.0),
            btf,
            insns,
            maps,
            func_info_size: if program.func_info().is_empty() { 0 } else { 8 },
            func_info: func_info.flat_map(u32::to_le_bytes).collect(),
            line_info_size: if program.line_info().is_empty() {
                0
            } else {
                16
            },
            line_info: line_info.flat_map(u32::to_le_bytes).collect(),
        }
    }
}
