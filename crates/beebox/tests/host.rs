//! Functions of a host, called by programs as kfuncs: every kind of argument, in both engines,
//! with the kernel's refusals.

use crate::support::{ENGINES, NATIVE};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beebox::Engine;
use beebox::HostFunction;
use beebox::internal::host::KfuncFlags;
use beebox::internal::host::{BadFunctions, Prototype};
use beebox::internal::object::Object;
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject};
use beebox::{kfunc, kfunc_struct};

kfunc_struct! {
    struct Entry {
        hits: u64,
        limit: u32,
        name: [u8; 4],
    }
}

/// The functions, and how often they were called.
fn functions() -> (Vec<HostFunction>, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = |calls: &Arc<AtomicU64>| calls.fetch_add(1, Ordering::Relaxed);
    let [sum, find, fill, length, flip] = [(); 5].map(|()| calls.clone());
    let functions = vec![
        kfunc! {
            fn host_sum(bytes: &[u8], scale: u16) -> i64 {
                count(&sum);
                let sum: i64 = bytes.iter().map(|byte| i64::from(*byte)).sum();
                -sum * i64::from(scale)
            }
        },
        kfunc! {
            fn host_find(key: u32, found: &mut Entry, pattern: &Entry) -> i32 {
                count(&find);
                if key == 0 {
                    return -2;
                }
                found.hits += pattern.hits * u64::from(key);
                found.limit = pattern.limit;
                found.name.reverse();
                1
            }
        },
        kfunc! {
            fn host_fill(bytes: &mut [u8], value: u8) {
                count(&fill);
                bytes.fill(value);
            }
        },
        kfunc! {
            fn host_length(text: &std::ffi::CStr) -> u32 {
                count(&length);
                text.to_bytes().len() as u32
            }
        },
        kfunc! {
            fn host_flip(value: bool, total: &mut u64, by: i32) -> bool {
                count(&flip);
                *total = total.wrapping_add_signed(by.into());
                !value
            }
        },
    ];
    (functions, calls)
}

fn file() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/host.bpf.o");
    std::fs::read(path).expect("a committed object")
}

fn load(
    program: &str,
    engine: Engine,
    functions: &[HostFunction],
) -> Result<LoadedObject, LoadError> {
    let file = file();
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|candidate| candidate.name == program);
    let options = LoadOptions {
        engine,
        ..LoadOptions::default()
    };
    LoadedObject::load_with_functions(&object, &kernel_data::linux_6_18(), &options, functions)
}

/// The functions with the helper numbers of the object.
fn helpers() -> (Vec<HostFunction>, Arc<AtomicU64>) {
    let numbers = [65536, 65537, 65538, 65539, 0x6fff_ffff];
    let (functions, calls) = functions();
    let functions = functions.into_iter().zip(numbers);
    let functions = functions.map(|(function, number)| function.as_helper(number));
    (functions.collect(), calls)
}

#[oracle::test]
fn every_kind_of_argument_arrives_and_goes_back() {
    let names = ["all", "helpers"];
    let runs = names.map(|name| ENGINES.map(|engine| (name, engine)));
    for (name, engine) in runs.into_iter().flatten() {
        let (functions, calls) = helpers();
        let mut loaded = load(name, engine, &functions).expect("it is loaded");
        let mut all = loaded.program(name).expect("it is loaded");
        assert_eq!(all.fallback_reason(), None);
        assert_eq!(all.engine(), engine);
        for key in [0u8, 1, 2, 255] {
            let mut packet = [1u8; 64];
            packet[16] = key;
            let run = all.test_run(&packet).expect("it runs");
            assert_eq!(run.retval, 2);
            let words: Vec<u64> = run
                .data_out
                .as_chunks::<8>()
                .0
                .iter()
                .map(|w| u64::from_le_bytes(*w))
                .collect();
            let sum = 47 + i64::from(key);
            assert_eq!(words[0] as i64, -3 * sum, "{engine:?}");
            let found = if key == 0 { -2i32 } else { 1 };
            assert_eq!(words[1], u64::from(found as u32));
            let (hits, limit, name) = match key {
                0 => (1, 2, 0x0605_0403),
                key => (1 + 7 * u64::from(key), 8, 0x0304_0506u64),
            };
            assert_eq!((words[2], words[3]), (hits, limit | name << 32));
            assert_eq!(words[4], 0x5a5a_5a5a_5a5a_5a5a);
            assert_eq!(words[5], 6);
            assert_eq!(words[6..8], [u64::from(hits % 2 == 0), 33]);
        }
        assert_eq!(calls.load(Ordering::Relaxed), 4 * 5);
    }
}

#[oracle::test]
fn a_function_that_no_host_has_is_none() {
    let (functions, _) = functions();
    let mut loaded = load("optional", NATIVE, &functions).expect("it is loaded");
    let run = loaded.program("optional").unwrap().test_run(&[0; 64]);
    assert_eq!(run.unwrap().retval, 3);
}

#[oracle::test]
fn the_verifier_checks_calls_as_those_of_the_kernel() {
    let (functions, _) = functions();
    let refused = |program: &str, functions: &[HostFunction]| match load(program, NATIVE, functions)
    {
        Err(LoadError::Refused { refusal, .. }) => refusal.message(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused("unbounded", &functions),
        "arg#0 arg#1 memory, len pair leads to invalid memory access"
    );
    assert_eq!(
        refused("text", &functions),
        "arg#0 doesn't point to a const string"
    );
    let mut sleepable = functions.clone();
    sleepable[0].prototype_mut().flags = KfuncFlags::SLEEPABLE;
    assert_eq!(
        refused("all", &sleepable),
        "program must be sleepable to call sleepable kfunc host_sum"
    );
    let mut elsewhere = functions;
    elsewhere[0].prototype_mut().programs.0 = 0;
    assert_eq!(
        refused("all", &elsewhere),
        "calling kernel function host_sum is not allowed"
    );
}

#[oracle::test]
fn the_verifier_checks_helpers_of_a_host_as_those_of_the_kernel() {
    let refused = |program: &str, change: fn(&mut Prototype)| {
        let (mut functions, _) = helpers();
        change(functions[0].prototype_mut());
        match load(program, NATIVE, &functions) {
            Err(LoadError::Refused { refusal, .. }) => refusal.message(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused("unbounded_helper", |_| {}),
        "R1 offset is outside of the packet"
    );
    assert_eq!(
        refused("read_only", |_| {}),
        "write into map forbidden, value_size=7 off=0 size=4"
    );
    assert_eq!(refused("no_helper", |_| {}), "invalid func unknown#65999");
    assert_eq!(
        refused("helpers", |prototype| prototype.programs.0 = 0),
        "program of this type cannot use helper host_sum#65536"
    );
    assert_eq!(
        refused("helpers", |prototype| prototype.flags =
            KfuncFlags::SLEEPABLE),
        "helper call might sleep in a non-sleepable prog"
    );
    assert_eq!(
        refused("helpers", |prototype| prototype.helper = None),
        "invalid func unknown#65536"
    );
}

#[oracle::test]
fn prototypes_that_no_kfunc_can_have_are_refused() {
    let with = |change: fn(&mut Prototype)| {
        let (mut functions, _) = functions();
        change(functions[0].prototype_mut());
        match load("optional", NATIVE, &functions) {
            Err(LoadError::Functions(bad)) => bad,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(
        with(|prototype| prototype.name = "host_find".into()),
        BadFunctions::Name(_)
    ));
    assert!(matches!(
        with(|prototype| prototype.name = "bpf_strcmp".into()),
        BadFunctions::Name(_)
    ));
    assert!(matches!(
        with(|prototype| prototype.name = "host-find".into()),
        BadFunctions::NotAName(_)
    ));
    assert!(matches!(
        with(|prototype| prototype.flags = KfuncFlags::ACQUIRE),
        BadFunctions::Flags { .. }
    ));
    assert!(matches!(
        with(|prototype| {
            let again = prototype.parameters.clone();
            prototype.parameters.extend(again);
        }),
        BadFunctions::Arguments { words: 6, .. }
    ));
    for number in [0, 211, 0xffff, 0x7000_0000, u32::MAX] {
        let (mut functions, _) = functions();
        functions[0].prototype_mut().helper = Some(number);
        let refused = load("optional", NATIVE, &functions);
        assert!(matches!(
            refused,
            Err(LoadError::Functions(BadFunctions::HelperNumber { number: n, .. })) if n == number
        ));
    }
    let (mut functions, _) = helpers();
    functions[1].prototype_mut().helper = Some(65536);
    assert!(matches!(
        load("optional", NATIVE, &functions),
        Err(LoadError::Functions(BadFunctions::HelperNumber {
            number: 65536,
            ..
        }))
    ));
}

#[oracle::test]
fn other_functions_than_those_of_the_object_do_not_link() {
    let (mut functions, _) = functions();
    functions.remove(0);
    assert!(matches!(
        load("all", NATIVE, &functions),
        Err(LoadError::Link(_))
    ));
}

#[oracle::test]
fn the_header_declares_what_the_object_uses() {
    let (functions, _) = functions();
    let text = HostFunction::header(&functions);
    for line in [
        "struct Entry {\n\tunsigned long long hits;\n\tunsigned int limit;\n\tunsigned char name[4];\n};",
        "extern long long host_sum(const void *bytes, unsigned int bytes__sz, unsigned short scale) __weak __ksym;",
        "extern int host_find(unsigned int key, struct Entry *found, const struct Entry *pattern) __weak __ksym;",
        "extern void host_fill(void *bytes, unsigned int bytes__sz, unsigned char value) __weak __ksym;",
        "extern unsigned int host_length(const char *text__str) __weak __ksym;",
        "extern _Bool host_flip(_Bool value, unsigned long long *total, int by) __weak __ksym;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (functions, _) = helpers();
    let text = HostFunction::header(&functions);
    for line in [
        "static long long (*const host_sum)(const void *bytes, unsigned int bytes__sz, unsigned short scale) = (void *)65536;",
        "static void (*const host_fill)(void *bytes, unsigned int bytes__sz, unsigned char value) = (void *)65538;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let seen = [kfunc! {
        fn host_seen(header: &[u8], length: u32) -> u64 {
            header.len() as u64 + u64::from(length)
        }
    }];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/host/host.h");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        HostFunction::header(&seen)
    );
}
