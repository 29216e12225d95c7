//! Programs of objects, each loaded alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::object::Object;
use beebox::internal::program::{InitialContents, Program, ProgramType};
use beebox::internal::verify::MapNote;
use beebox::internal::verify::{ProgramLoader, StandaloneProgram, verify};
use beebox::verify::{Options, Verdict};
use btf::Btf;

fn file(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loader");
    fs::read(directory.join(name)).expect("a committed object")
}

fn types_of(name: &str) -> Option<Arc<Btf<'static>>> {
    let bytes = file(name);
    let object = Object::open(&bytes).ok()?;
    Some(Arc::new(object.btf()?.to_owned()))
}

/// The programs of an object whose declaration tags are obeyed, in the order of the file.
fn load(name: &str, kernel: &Kernel) -> Vec<StandaloneProgram> {
    let mut all = Vec::new();
    let loader = ProgramLoader::new(kernel).with_test_tags(&types_of);
    let loaded = loader.load_each(&file(name), name, &mut |loaded| all.push(loaded));
    loaded.expect("the object opens");
    all
}

fn program<'l>(all: &'l [StandaloneProgram], name: &str) -> &'l Program {
    let loaded = all.iter().find(|loaded| loaded.name == name);
    let loaded = loaded.expect("the object has it");
    loaded.program.as_ref().expect("it links")
}

#[oracle::test]
fn a_replacement_of_a_function_is_not_loaded_without_its_target() {
    let kernel = kernel_data::linux_6_18();
    let all = load("alone.o", &kernel);
    let replaced = all.iter().find(|loaded| loaded.name == "replaced");
    let replaced = replaced.expect("the object has it");
    assert_eq!(replaced.kind, Some(ProgramType::Ext));
    assert!(replaced.program.is_err());
}

#[oracle::test]
fn a_map_that_states_no_size_has_one_entry() {
    let kernel = kernel_data::linux_6_18();
    let all = load("alone.o", &kernel);
    let reads_map = program(&all, "reads_map");
    let used = reads_map.used_maps();
    let params = reads_map.map(used[0]).expect("a map").params;
    assert_eq!(params.max_entries, 1);
    let loaded = all.iter().find(|loaded| loaded.name == "reads_map");
    let notes = &loaded.expect("the object has it").notes;
    let is_set = |note: &MapNote| matches!(note, MapNote::Entries { set: 1, .. });
    assert!(notes.iter().any(is_set), "{notes:?}");
}

#[oracle::test]
fn tags_add_flags_and_name_types_for_relocations() {
    let kernel = kernel_data::linux_6_18();
    let all = load("alone.o", &kernel);
    let tagged = program(&all, "tagged");
    assert_eq!(tagged.flags().0, 1);
    let offset = &tagged.insns()[0];
    assert_eq!(offset.imm, 24, "{offset:?}");

    let mut without = Vec::new();
    let loader = ProgramLoader::new(&kernel);
    let loaded = loader.load_each(&file("alone.o"), "alone.o", &mut |loaded| {
        without.push(loaded)
    });
    loaded.expect("the object opens");
    let untagged = program(&without, "tagged");
    assert_eq!(untagged.flags().0, 0);
    assert_ne!(untagged.insns()[0].imm, 24);
}

#[oracle::test]
fn missing_types_of_tags_are_an_error() {
    let kernel = kernel_data::linux_6_18();
    let loader = ProgramLoader::new(&kernel).with_test_tags(&|_| None);
    let mut errors = Vec::new();
    let mut visit = |loaded: StandaloneProgram| {
        if let Err(error) = loaded.program {
            errors.push((loaded.name, error.to_string()));
        }
    };
    let loaded = loader.load_each(&file("alone.o"), "alone.o", &mut visit);
    loaded.expect("the object opens");
    // The replacement has no target, with the types or without.
    let [(replaced, no_target), (tagged, no_types)] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert_eq!((&**replaced, &**tagged), ("replaced", "tagged"));
    assert!(no_target.contains("no target program"), "{no_target}");
    assert!(no_types.contains("moved.o"), "{no_types}");
}

#[oracle::test]
fn a_struct_ops_value_keeps_the_member_that_is_loaded() {
    let kernel = kernel_data::linux_6_18();
    let all = load("alone.o", &kernel);
    for (name, member) in [("ssthresh", "ssthresh"), ("undo_cwnd", "undo_cwnd")] {
        let loaded = program(&all, name);
        let programs = loaded.maps().iter().find_map(|map| match &map.contents {
            InitialContents::StructOps { programs, .. } => Some(programs),
            _ => None,
        });
        let names: Vec<&str> = programs
            .expect("a struct_ops value")
            .iter()
            .map(|(_, program)| &*program.name)
            .collect();
        assert_eq!(names, [member]);
    }
}

#[oracle::test]
fn what_is_missing_concerns_the_program_that_uses_it() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("a built-in registry");
    let all = load("externs.o", &kernel);
    assert!(all.iter().all(|loaded| loaded.weak_externs));
    let verdict = |name| {
        let program = program(&all, name);
        verify(program, &kernel, registry, &Options::default()).verdict
    };
    assert_eq!(verdict("plain"), Verdict::Accepted);
    assert!(matches!(verdict("calls"), Verdict::Refused(_)));
}

#[oracle::test]
fn btf_that_the_kernel_refuses_is_left_out() {
    let kernel = kernel_data::linux_6_18();
    let all = load("unnamed.o", &kernel);
    let refusal = all[0].btf_refusal.as_deref();
    let refusal = refusal.expect("an argument without a name is refused");
    assert!(refusal.contains("FUNC unnamed"), "{refusal}");
    let unnamed = program(&all, "unnamed");
    assert!(unnamed.btf().is_none());
    assert!(unnamed.line_info().is_empty());
    assert!(load("alone.o", &kernel)[0].btf_refusal.is_none());
}
