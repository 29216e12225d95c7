//! Variables of loaded objects, printed text, seeds.

use crate::support::NATIVE;
use std::fs;
use std::path::{Path, PathBuf};

use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::program::AttachType;
use beebox::internal::run::{DataError, LoadOptions, LoadedObject, RunClock, RunError};
use kernel_client::load::{LoadRequest, load as load_in_kernel};
use sys::bpf::TestRun;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(path: &str, program: &str, options: &LoadOptions) -> LoadedObject {
    let file = fs::read(repository().join(path)).unwrap();
    let mut object = Object::open(&file).unwrap();
    object.set_autoload(|known| known.name == program);
    let kernel = kernel_data::linux_6_18_minimal();
    LoadedObject::load(&object, &kernel, options).unwrap_or_else(|error| panic!("{error}"))
}

const REPORT: &str = "crates/cli/tests/data/report.bpf.o";

#[oracle::test]
fn variables_are_read_and_written() {
    let mut loaded = load(REPORT, "report", &LoadOptions::default());
    assert_eq!(loaded.global::<u32>("limit"), Ok(3));
    loaded.set_global("limit", &1u32).unwrap();
    let mut program = loaded.program("report").unwrap();
    program.set_clock(RunClock::Fixed(5));
    let run = program.test_run(&[0; 20]).unwrap();
    assert_eq!(run.printk.texts, ["packet 1 of 20 bytes at 5\n"]);
    assert_eq!(program.test_run(&[0; 20]).unwrap().verdict.name, "XDP_DROP");
    assert_eq!(loaded.global::<u64>("packets"), Ok(2));
    assert_eq!(loaded.global::<[u64; 3]>("last").unwrap()[0], 5);

    let wrong = loaded.global::<u32>("packets").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "variable packets has 8 bytes, the type in Rust 4; u64 (beebox gen rust) fits"
    );
    let Err(DataError::NoVariable { known, .. }) = loaded.global_bytes("packet") else {
        panic!("there is no such variable");
    };
    assert!(known.iter().any(|name| name == "packets"), "{known:?}");
}

#[oracle::test]
fn equal_seeds_give_equal_runs() {
    let random = |seed, engine| {
        let options = LoadOptions {
            seed,
            engine,
            ..LoadOptions::default()
        };
        let mut loaded = load(REPORT, "report", &options);
        assert_eq!(loaded.program("report").unwrap().engine(), engine);
        let mut last = Vec::new();
        for _ in 0..8 {
            let mut program = loaded.program("report").unwrap();
            program.test_run(&[0; 60]).unwrap();
            last.push(loaded.global::<[u32; 6]>("last").unwrap());
        }
        last
    };
    let first = random(1, NATIVE);
    assert_eq!(random(1, NATIVE), first);
    assert_eq!(random(1, Engine::Checked), first);
    assert_ne!(random(2, NATIVE), first);
}

/// Linux loads programs for entries of device and CPU maps, but does not test-run them.
#[oracle::test]
fn programs_behind_a_redirection_are_not_test_run() {
    let file = fs::read(repository().join("examples/packets/firewall.bpf.o")).unwrap();
    let kernel = kernel_data::linux_6_18_minimal();
    let packet = [0; 64];
    for attach in [AttachType::XdpDevmap, AttachType::XdpCpumap] {
        let mut object = Object::open(&file).unwrap();
        object.program_mut("firewall").unwrap().attach = Some(attach);
        let mut loaded = LoadedObject::load(&object, &kernel, &LoadOptions::default()).unwrap();
        let mut firewall = loaded.program("firewall").unwrap();
        let refused = firewall.test_run(&packet).unwrap_err();
        assert_eq!(refused, RunError::AttachType(attach));

        let linked = object.link(&kernel).unwrap();
        let request = LoadRequest {
            log_level: 0,
            log_size: 0,
        };
        let theirs = load_in_kernel(&linked.programs[0].program, request);
        let theirs = theirs.map_err(|fault| format!("{fault:?}"));
        let Some(theirs) = oracle::found("test runs of the kernel", theirs) else {
            return;
        };
        let theirs = match theirs.answer.result {
            Ok(theirs) => theirs,
            Err(errno) => {
                assert_eq!(errno.0, 1, "a refusal that is not one of privilege");
                oracle::skip("test runs of the kernel", errno);
                return;
            }
        };
        let answer = theirs.test_run(&TestRun::on(&packet), &mut [0; 64], &mut []);
        assert_eq!(answer.err().map(|errno| errno.0), Some(22));
    }
}
