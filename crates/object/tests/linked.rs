//! The objects beside this file, linked and printed: programs, instructions, references,
//! functions and lines. The texts were compared with libbpf 7.2 when they were recorded.
//!
//! `UPDATE_EXPECT=1 cargo test -p beebox-object --test it linked::` records them again.

use expect_test::expect_file;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox_object::{Error, LinkedProgram, Object, OpenOptions, Referent};
use program::InitialContents;
use spec::kernel::{Features, KernelConfig, KernelVersion, Source, SymbolAddress, Symbols};
use spec::{Errno, Kernel};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects")
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(directory().join(name)).expect("a committed object")
}

fn open<'a>(name: &str, file: &'a [u8]) -> Result<Object<'a>, Error> {
    let options = OpenOptions {
        name: Some(name),
        ..OpenOptions::default()
    };
    Object::open_with(file, &options)
}

/// Links an object for a kernel with the BTF of `kernel`.
fn linked(name: &str, kernel: &str, features: Features) -> String {
    let (file, kernel) = (bytes(name), bytes(kernel));
    let mut object = open(name, &file).expect(name);
    object.set_autoload(|_| true);
    let kernel = Object::open(&kernel).expect("a kernel");
    let types = kernel.btf().expect("types").to_owned();
    let symbols = Symbols::new(|name| match name {
        "symbol" => SymbolAddress::At(0xffff_ffff_8123_4567),
        _ => SymbolAddress::Missing,
    });
    let config = KernelConfig::new("CONFIG_HZ=250\n# CONFIG_NO is not set\n");
    let target = Kernel::new("test")
        .with_btf(Arc::new(types), Source::Given)
        .with_symbols(symbols, Source::Given)
        .with_config(config, Source::Given)
        .with_version(KernelVersion::from_code(0x06_12_00), Source::Given)
        .with_features(features, Source::Given);
    let linked = object.link(&target).expect(name);
    let mut text = String::new();
    for program in &linked.programs {
        write_program(&mut text, &object, program).unwrap();
    }
    for program in &linked.unloadable {
        writeln!(text, "refused: {}", program.error).unwrap();
    }
    for map in &linked.maps {
        if let InitialContents::JumpTable(places) = &map.def.contents {
            writeln!(text, "jump table: {places:?}").unwrap();
        }
    }
    text
}

fn write_program(
    text: &mut String,
    object: &Object<'_>,
    linked: &LinkedProgram,
) -> Result<(), std::fmt::Error> {
    let program = &linked.program;
    let kind = program.kind().name();
    let attach = program.attach_type().map_or("-", |attach| attach.name());
    writeln!(
        text,
        "{} in {}: {kind}, {attach}, flags {:#x}, attach target {:?}, licence {:?}, version {:#x}",
        program.name(),
        program.section(),
        program.flags().0,
        program.attach_target(),
        program.license(),
        program.kernel_version(),
    )?;
    for (at, insn) in (0..).zip(program.decode()) {
        if let Some(function) = program.subprogs().iter().find(|it| it.start == at) {
            let ty = program.func_info().iter().find(|it| it.insn == at);
            let ty = ty.map(|it| it.type_id.0);
            writeln!(text, "{}: type {ty:?}", function.name)?;
        }
        for line in program.line_info().iter().filter(|line| line.insn == at) {
            let types = object.btf().expect("lines need types");
            let source = types.string(line.text).to_string();
            writeln!(text, "  ; {}:{} {}", line.line, line.column, source.trim())?;
        }
        write!(text, "{at:5}: {insn}")?;
        if let Some(reference) = linked.reference_at(at) {
            write!(text, "    {}", name(object, reference.to))?;
        }
        text.push('\n');
    }
    text.push('\n');
    Ok(())
}

fn name(object: &Object<'_>, to: Referent) -> String {
    let map = |id| object.maps().get(id).map_or("a table", |map| map.name());
    let known = |id| &object.externs().get(id).expect("it is known").name;
    match to {
        Referent::Map(id) => map(id).to_owned(),
        Referent::Value { map: id, offset } => format!("{} + {offset}", map(id)),
        Referent::Kfunc { function, id, .. } => format!("{} [{id}]", known(function)),
        Referent::MissingKfunc(id) => format!("no {}", known(id)),
        Referent::Typed { object, id, .. } => format!("{} [{id}]", known(object)),
        Referent::Address(object) => known(object).clone(),
        other => format!("{other:?}"),
    }
}

fn check(name: &str, found: &str) {
    expect_file![directory().join(name)].assert_eq(found);
}

#[oracle::test]
fn every_object_links_as_recorded() {
    for name in [
        "calls",
        "variables",
        "core",
        "externs",
        "throws",
        "jump_table",
    ] {
        let features = Features::LINUX_6_18;
        check(
            &format!("{name}.txt"),
            &linked(&format!("{name}.o"), "kernel.o", features),
        );
    }
}

#[oracle::test]
fn core_relocations_depend_on_the_kernel() {
    check(
        "core-moved.txt",
        &linked("core.o", "moved.o", Features::LINUX_6_18),
    );
}

#[oracle::test]
fn arena_globals_are_at_its_end_if_the_kernel_supports_it() {
    let features = Features {
        wide_offsets: true,
        ..Features::LINUX_6_18
    };
    check(
        "variables-wide.txt",
        &linked("variables.o", "kernel.o", features),
    );
}

#[oracle::test]
fn errors_state_problem_place_and_blame() {
    let mut found = String::new();
    let mut objects = files(&directory().join("refused"));
    objects.retain(|file| has_extension(file, &["o"]));
    objects.sort();
    for path in objects {
        let name = path.file_name().unwrap().to_str().unwrap();
        let file = fs::read(&path).expect("an object");
        let error = open(name, &file).expect_err(name);
        let errno = error.problem().errno().0;
        writeln!(found, "{error}\n    {:?}, {errno}", error.blame()).unwrap();
    }
    check("refused.txt", &found);
}

#[oracle::test]
fn without_kernel_btf_only_dependent_programs_are_refused() {
    let target = Kernel::default();
    let file = bytes("calls.o");
    let object = open("calls.o", &file).unwrap();
    assert_eq!(object.link(&target).unwrap().programs.len(), 3);
    let file = bytes("core.o");
    let object = open("core.o", &file).unwrap();
    let error = object.link(&target).unwrap_err();
    assert_eq!(error.problem().errno(), Errno::ENOENT, "{error}");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

fn has_extension(file: &Path, wanted: &[&str]) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| wanted.contains(&extension))
}

#[oracle::test]
fn damaged_objects_are_refused_or_linked_without_a_panic() {
    let target = Kernel::default();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |limit: usize| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) as usize % limit
    };
    let mut linked = 0;
    for name in [
        "calls.o",
        "variables.o",
        "core.o",
        "externs.o",
        "throws.o",
        "jump_table.o",
    ] {
        let whole = bytes(name);
        for round in 0..400 {
            let mut file = whole.clone();
            for _ in 0..=round % 4 {
                let at = below(file.len());
                file[at] = [0, 0xff, 1 << below(8), below(256) as u8][below(4)];
            }
            if round % 8 == 0 {
                file.truncate(below(whole.len()));
            }
            if let Ok(object) = Object::open(&file) {
                linked += usize::from(object.link(&target).is_ok());
            }
        }
    }
    assert!(linked > 100, "undetected damage is common: {linked}");
}
