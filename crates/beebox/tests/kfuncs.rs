//! Kernel functions of Linux in programs of an object: as native code and in the checked
//! engine, and what is said of those that are not run.

use crate::support::{ENGINES, INTERP};
use std::path::Path;

use beebox::Engine;
use beebox::internal::EngineRefusal;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject};

fn load(program: &str, options: LoadOptions) -> Result<LoadedObject, LoadError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/kfuncs.bpf.o");
    let file = std::fs::read(path).expect("a committed object");
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|candidate| candidate.name == program);
    LoadedObject::load(&object, &kernel_data::linux_6_18_minimal(), &options)
}

#[oracle::test]
fn both_engines_run_them() {
    for engine in ENGINES {
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let mut loaded = load("native", options).expect("it is loaded");
        let mut program = loaded.program("native").expect("it is loaded");
        assert_eq!(program.fallback_reason(), None);
        for (source, count) in [(1u8, 1), (2, 2), (1, 2), (3, 3)] {
            let mut packet = [0; 64];
            packet[0] = source;
            let run = program.test_run(&packet).expect("it runs");
            assert_eq!(run.retval, 10 + count, "{engine:?}");
            // ENOENT, and both directions of the zone.
            assert_eq!(run.data_out[4..8], (-2i32).to_le_bytes());
            assert_eq!(run.data_out[8..12], [3, 0, 0, 0]);
        }
    }
}

#[oracle::test]
fn strings_are_for_the_checked_engine() {
    let mut loaded = load("text", LoadOptions::default()).expect("it is loaded");
    let mut text = loaded.program("text").expect("it is loaded");
    match text.fallback_reason() {
        Some(EngineRefusal::Construct {
            insn: Some(_),
            what,
        }) => assert!(what.ends_with("a call of bpf_strlen"), "{what}"),
        // It is the only engine of this machine.
        Some(EngineRefusal::Machine(_)) | None if INTERP == Engine::Checked => {}
        why => panic!("{why:?}"),
    }
    assert_eq!(text.test_run(&[0; 64]).expect("it runs").retval, 3);
}

#[oracle::test]
fn a_thrown_cookie_is_the_result() {
    let mut loaded = load("thrown", LoadOptions::default()).expect("it is loaded");
    let mut thrown = loaded.program("thrown").expect("it is loaded");
    assert_eq!(thrown.test_run(&[0; 64]).expect("it runs").retval, 7);
}

#[oracle::test]
fn those_that_wait_are_refused_by_name() {
    let options = LoadOptions {
        unverified: true,
        ..LoadOptions::default()
    };
    match load("encrypted", options) {
        Err(LoadError::Function { function, why, .. }) => {
            assert_eq!((&*function, &*why), ("bpf_crypto_encrypt", "model ciphers"));
        }
        other => panic!("{other:?}"),
    }
}
