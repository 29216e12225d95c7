//! The loader program of a light skeleton makes maps, loads types and a program by bpf(2) in the
//! process of the run; what it loads runs.

use std::path::Path;
use std::sync::Arc;

use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::run::{Descriptor, LoadOptions, LoadedObject, LoadedProgram};
use program::{Image, InitialContents, MapDef, MapParams, Program};
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};

/// `struct bpf_loader_ctx`, six `struct bpf_map_desc` and a `struct bpf_prog_desc`.
const CONTEXT: usize = 24 + 6 * 16 + 4;

fn read(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(folder.join(name)).expect("a committed file")
}

/// The loader, with its data in a map.
fn loader() -> Program {
    let insns = read("tests/data/light_skeleton/firewall.insns.bin");
    let insns = isa::ebpf::decode_bytes(&insns).expect("whole instructions");
    let insns = isa::ebpf::encode(&insns).expect("instructions of an object");
    let data = read("tests/data/light_skeleton/firewall.data.bin");
    let size = data.len() as u32;
    let mut map = MapDef::new(
        "__loader.map",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: size,
            max_entries: 1,
            ..MapParams::default()
        },
    );
    map.contents = InitialContents::Value {
        image: Image::new(&data, size).to_owned(),
        frozen: false,
    };
    let program = Program::builder(ProgramType::Syscall, insns)
        .name("loader")
        .license("Dual BSD/GPL")
        .flags(LoadFlags::SLEEPABLE)
        .maps(vec![Arc::new(map)]);
    program.build().expect("a program")
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// What the loader returns, and what is open at the descriptors that it leaves in its context.
fn load(options: &LoadOptions) -> (u32, Vec<Descriptor>, usize) {
    let kernel = kernel_data::linux_6_18();
    let mut loaded = LoadedObject::from_program(loader(), &kernel, options).expect("a loader");
    let mut context = vec![0; CONTEXT];
    context[..4].copy_from_slice(&(CONTEXT as u32).to_le_bytes());
    let mut program = loaded.program("loader").expect("it has this name");
    let run = program.test_run_with_context(&[], Some(&context), 1);
    let run = run.expect("the loader runs");
    let places = (0..6).map(|map| 24 + 16 * map).chain([CONTEXT - 4]);
    let process = loaded.process();
    let opened = places.filter_map(|at| process.descriptor(word(&run.ctx_out, at)));
    let opened = opened.collect();
    (run.retval, opened, process.descriptors().len())
}

fn loaded_program(descriptors: &[Descriptor]) -> &LoadedProgram {
    match descriptors.last() {
        Some(Descriptor::Program(program)) => program,
        other => panic!("the last one is no program: {other:?}"),
    }
}

#[oracle::test]
fn a_loader_makes_maps_and_programs_which_run() {
    let kernel = kernel_data::linux_6_18();
    let checked = LoadOptions {
        engine: Engine::Checked,
        ..LoadOptions::default()
    };
    for options in [LoadOptions::default(), checked] {
        let (retval, opened, count) = load(&options);
        assert_eq!(retval as i32, 0);
        let kinds = opened.iter().filter_map(|descriptor| match descriptor {
            Descriptor::Map(map) => map.map.params().kind(),
            _ => None,
        });
        let kinds: Vec<_> = kinds.collect();
        let file = read("../../examples/packets/firewall.bpf.o");
        let object = Object::open(&file).expect("our object");
        let firewall = LoadedObject::load(&object, &kernel, &options).expect("our object");
        let expected = ["senders", "actions", "blocked", "open_ports"].map(|name| {
            let map = firewall.map(name).expect("a map of the object");
            map.params().kind().expect("a known kind")
        });
        assert_eq!(kinds[..4], expected);
        assert_eq!(kinds[4..], [MapKind::Array; 2]);
        // Standard input, output and error; what the loader used only for itself is closed.
        assert_eq!(count, 3 + opened.len());

        let program = loaded_program(&opened);
        assert_eq!(program.program.name(), "firewall");
        assert_eq!(program.program.kind(), ProgramType::Xdp);
        let mut loaded = LoadedObject::from_program(program.program.clone(), &kernel, &options)
            .expect("a verified program");
        let run = loaded
            .program("firewall")
            .expect("its name")
            .test_run(&[0; 64]);
        assert_eq!(run.expect("it runs").verdict.name, "XDP_PASS");
    }
}
