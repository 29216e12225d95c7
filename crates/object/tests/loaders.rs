//! Objects that are written for other loaders than libbpf: what they are by the conventions of each,
//! which one is guessed, and what is refused. `cargo differential compare loaders` compares the same
//! objects with the loaders themselves.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use beebox_object::maps::{Contents, InitialEntry};
use beebox_object::{Error, Object, OpenOptions};
use expect_test::expect_file;
use isa::ebpf::decode;
use spec::Kernel;
use spec::loader::LoaderKind;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(file(name)).expect("an object")
}

fn open<'a>(
    file: &'a [u8],
    loader: LoaderKind,
    defines: &[(String, u64)],
) -> Result<Object<'a>, Error> {
    let options = OpenOptions {
        name: Some("object"),
        loader,
        defines,
        ..OpenOptions::default()
    };
    Object::open_with(file, &options)
}

/// Programs with their types and functions, and maps with their elements.
fn described(object: &Object<'_>) -> String {
    let mut text = format!("licence {:?}\n", object.license());
    let linked = object.link(&Kernel::default()).expect("it is linked");
    for (id, code) in object.programs() {
        let kind = code.kind.map_or("-", |kind| kind.name());
        let attach = code.attach.map_or("-", |attach| attach.name());
        let (section, flags) = (code.section_name, code.section_flags().0);
        let _ = write!(
            text,
            "{} in {section}: {kind}, {attach}, flags {flags:#x}",
            code.name
        );
        let program = linked.programs.iter().find(|program| program.id == id);
        let functions = program.map(|linked| {
            let subprogs = linked.program.subprogs().iter();
            subprogs
                .map(|it| format!("{}@{}", it.name, it.start))
                .collect::<Vec<_>>()
        });
        let _ = writeln!(text, ", {}", functions.unwrap_or_default().join(" "));
    }
    for (_, map) in object.maps().iter() {
        let params = map.params();
        let (key, value) = (params.key_size, params.value_size);
        let kind = params.kind().map_or("-", |kind| kind.name());
        let entries = params.max_entries;
        let _ = write!(
            text,
            "{}: {kind}, {key} to {value} bytes, {entries} entries",
            map.name()
        );
        let _ = write!(
            text,
            ", flags {:#x}, pinning {}",
            params.flags.0,
            map.pinning()
        );
        let types = (params.key_type.0, params.value_type.0);
        let _ = write!(text, ", pin {:?}, types {types:?}", map.pin);
        if let Some(inner) = map.inner() {
            let _ = write!(text, ", of maps of type {}", inner.map_type);
        }
        if let Contents::Entries(entries) = map.contents() {
            for (key, entry) in entries {
                let name = match entry {
                    InitialEntry::Map(id) => {
                        object.maps().get(*id).map(|map| map.name().to_owned())
                    }
                    InitialEntry::Program(id) => object
                        .program_defs()
                        .get(*id)
                        .map(|code| code.name.to_string()),
                };
                let _ = write!(text, ", [{key}] {}", name.unwrap_or_default());
            }
        }
        text.push('\n');
    }
    text
}

fn check(name: &str, loader: LoaderKind) {
    let bytes = bytes(&format!("loaders/{name}.o"));
    let object = open(&bytes, loader, &[]).expect(name);
    assert_eq!(object.loader(), loader);
    expect_file![file(&format!("loaders/{name}.txt"))].assert_eq(&described(&object));
    // libbpf takes none of them.
    assert!(Object::open(&bytes).is_err(), "{name}");
}

#[oracle::test]
fn objects_are_what_their_loaders_make_of_them() {
    check("libbpf_0_8", LoaderKind::Libbpf08);
    check("cilium_ebpf", LoaderKind::CiliumEbpf);
    check("aya", LoaderKind::Aya);
    check("iproute2", LoaderKind::Iproute2);
}

#[oracle::test]
fn the_loader_is_guessed_from_what_libbpf_refuses() {
    let guessed = |name: &str| {
        let file = bytes(name);
        let object = Object::open_guessing(&file, &OpenOptions::default()).ok()?;
        let guess = object.guess().map(ToString::to_string);
        assert_eq!(
            guess.is_some(),
            object.loader() != LoaderKind::Libbpf,
            "{name}"
        );
        Some((object.loader(), guess.unwrap_or_default()))
    };
    let kind = |name| guessed(name).map(|(loader, _)| loader);
    assert_eq!(kind("objects/calls.o"), Some(LoaderKind::Libbpf));
    assert_eq!(kind("loaders/aya.o"), Some(LoaderKind::Aya));
    assert_eq!(kind("loaders/iproute2.o"), Some(LoaderKind::Iproute2));
    assert_eq!(
        kind("objects/refused/old_maps.o"),
        Some(LoaderKind::Libbpf08)
    );
    assert_eq!(
        kind("objects/refused/gobpf.o"),
        Some(LoaderKind::CiliumEbpf)
    );
    assert_eq!(
        kind("objects/refused/call_of_a_program.o"),
        Some(LoaderKind::CiliumEbpf)
    );
    let (loader, words) = guessed("objects/refused/static_program.o").expect("it is taken");
    assert_eq!(loader, LoaderKind::CiliumEbpf);
    assert!(
        words.contains("conventions of cilium/ebpf: libbpf refuses it, section socket"),
        "{words}"
    );
    // A symbol of inline assembly is one that the application defines.
    let (loader, words) = guessed("loaders/cilium_ebpf.o").expect("it is taken");
    assert_eq!(loader, LoaderKind::CiliumEbpf);
    assert!(
        words.ends_with("; NODE_ID is undefined and 0 (--define NODE_ID=NUMBER)"),
        "{words}"
    );
    // The extern map may be that of another object, BCC makes the map, and no one has this order.
    assert_eq!(kind("objects/refused/extern_map.o"), None);
    assert_eq!(kind("objects/refused/bcc.o"), None);
    assert_eq!(kind("objects/refused/big_endian.o"), None);
}

#[oracle::test]
fn refusals_name_the_loader() {
    let refusal = |name: &str, loader| {
        let file = bytes(name);
        open(&file, loader, &[])
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    for (name, loader, words) in [
        (
            "loaders/iproute2.o",
            LoaderKind::CiliumEbpf,
            "which another loader reads (conventions of cilium/ebpf)",
        ),
        (
            "loaders/iproute2.o",
            LoaderKind::Libbpf08,
            "(conventions of libbpf 0.8)",
        ),
        (
            "loaders/cilium_ebpf.o",
            LoaderKind::Aya,
            "section name implies no program type, which this loader refuses (conventions of aya)",
        ),
        (
            "loaders/cilium_ebpf.o",
            LoaderKind::Libbpf08,
            "static function outside .text",
        ),
        (
            "objects/refused/bcc.o",
            LoaderKind::Aya,
            "map definition has 16 bytes instead of 20 or more",
        ),
        (
            "objects/refused/pinned_otherwise.o",
            LoaderKind::Iproute2,
            "pinning 7 is neither none",
        ),
        (
            "objects/jump_table.o",
            LoaderKind::CiliumEbpf,
            "reference into section .jumptables, which has no variables",
        ),
        (
            "objects/jump_table.o",
            LoaderKind::Aya,
            "no function has the bytes at offset 0, which this loader refuses",
        ),
        (
            "objects/externs.o",
            LoaderKind::CiliumEbpf,
            "variable of the kernel of another type than void",
        ),
        (
            "objects/externs.o",
            LoaderKind::Aya,
            "DATASEC lists `LINUX_KERNEL_VERSION`, which the file lacks",
        ),
        (
            "objects/variables.o",
            LoaderKind::Libbpf08,
            "reference into section .addr_space.1",
        ),
    ] {
        let said = refusal(name, loader);
        assert!(said.contains(words), "{name}, {loader}: {said}");
    }
    let said = refusal("objects/refused/static_program.o", LoaderKind::Libbpf);
    assert!(!said.contains("conventions"), "{said}");
}

#[oracle::test]
fn undefined_symbols_load_what_the_loader_defines() {
    let file = bytes("loaders/cilium_ebpf.o");
    let node = |defines: &[(String, u64)]| {
        let object = open(&file, LoaderKind::CiliumEbpf, defines).expect("it is opened");
        let linked = object.link(&Kernel::default()).expect("it is linked");
        let shared = linked
            .programs
            .iter()
            .find(|it| it.program.name() == "shared");
        let insns = decode(shared.expect("a program").program.insns());
        let texts = insns.iter().map(ToString::to_string);
        texts
            .filter(|text| text.contains(" ll") && !text.contains("map"))
            .collect::<Vec<_>>()
    };
    assert_eq!(node(&[]), ["r1 = 0x0 ll"]);
    let defined = [("NODE_ID".to_owned(), 0x1_0000_0007)];
    assert_eq!(node(&defined), ["r1 = 0x100000007 ll"]);
}

#[oracle::test]
fn a_call_of_an_undefined_function_refuses_its_program_alone() {
    let file = bytes("../../../examples/link/main.bpf.o");
    assert!(Object::open(&file).is_err());
    let object = open(&file, LoaderKind::CiliumEbpf, &[]).expect("it is opened");
    let linked = object.link(&Kernel::default()).expect("it is linked");
    let refused = linked.unloadable.iter().map(|it| it.error.to_string());
    let refused: Vec<String> = refused.collect();
    assert!(
        refused.len() == 1 && refused[0].contains("extern has no BTF"),
        "{refused:?}"
    );
}
