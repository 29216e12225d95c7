//! The programs of docs/embed.md, which are the examples: each does what the page says.

// The page shows whole programs; their `main` is not called here.
#[allow(dead_code)]
#[path = "../examples/ask_seccomp.rs"]
mod ask_seccomp;
#[allow(dead_code)]
#[path = "../examples/filter_capture.rs"]
mod filter_capture;
#[allow(dead_code)]
#[path = "../examples/host_function.rs"]
mod host_function;
#[allow(dead_code)]
#[path = "../examples/run_model.rs"]
mod run_model;
#[allow(dead_code)]
#[path = "../examples/run_object.rs"]
mod run_object;
#[allow(dead_code)]
#[path = "../examples/run_task.rs"]
mod run_task;
#[allow(dead_code)]
#[path = "../examples/run_threads.rs"]
mod run_threads;
#[allow(dead_code)]
#[path = "../examples/verify_object.rs"]
mod verify_object;

use std::fs;
use std::path::{Path, PathBuf};

use beebox::seccomp::{Action, SeccompFilter};
use beebox::{Expression, FilterError, Object};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The object that the examples of runs load.
fn firewall() -> String {
    let path = repository().join("examples/packets/firewall.bpf.o");
    path.to_str().unwrap().to_owned()
}

#[oracle::test]
fn a_program_runs_between_readings_of_its_counter() {
    let firewall = run_object::Firewall::load(&firewall()).unwrap();
    for times in 1..=3 {
        let (verdict, counted) = firewall.decide(&[0; 64]).unwrap();
        assert_eq!((verdict.name().as_ref(), counted), ("XDP_PASS", times));
    }
}

#[oracle::test]
fn threads_count_in_one_map() {
    assert_eq!(run_threads::count(&firewall(), 50).unwrap(), 200);
}

#[oracle::test]
fn a_task_owns_its_handles() {
    let packets = crate::support::packets();
    let packets = packets.into_iter().filter(|packet| packet.len() < 3000);
    let senders = run_task::senders(&firewall(), packets.collect()).unwrap();
    assert!(senders > 1, "{senders}");
}

#[oracle::test]
fn a_capture_is_filtered() {
    let capture = repository().join("examples/sample.pcap");
    let capture = capture.to_str().unwrap();
    if let Err(FilterError::NoLibpcap(_)) = Expression::new("") {
        return oracle::skip("the example that filters a capture", "no libpcap");
    }
    assert_eq!(
        filter_capture::count(capture, "tcp port 22").unwrap(),
        (100, 298)
    );
    assert!(filter_capture::count(capture, "no such word").is_err());
}

#[oracle::test]
fn a_seccomp_filter_decides_a_call() {
    let text = fs::read(repository().join("examples/sandbox.asm")).unwrap();
    let filter = SeccompFilter::parse(&text).unwrap();
    assert_eq!(
        ask_seccomp::decide(&filter, "openat").unwrap(),
        Action::Errno(1)
    );
    assert!(ask_seccomp::decide(&filter, "opneat").is_err());
    let table = ask_seccomp::table(&filter).unwrap();
    assert!(
        table.iter().any(|line| line.contains("ALLOW when")),
        "{table:?}"
    );
}

#[oracle::test]
fn the_programs_of_an_object_are_verified() {
    let verdicts = |name: &str| {
        let object = Object::open(repository().join("examples").join(name)).unwrap();
        verify_object::verdicts(&object).unwrap()
    };
    assert_eq!(
        verdicts("traffic/traffic.bpf.o"),
        ["count: accepted", "exec: accepted"]
    );
    let refused = verdicts("verify/record.bpf.o");
    assert!(refused[0].contains(": refused: "), "{refused:?}");
    assert!(refused[1].contains("record.bpf.c:"), "{refused:?}");
}

#[oracle::test]
fn a_program_calls_a_function_of_the_host() {
    let file = fs::read(repository().join("examples/host/host.bpf.o")).unwrap();
    let types = Default::default();
    let run =
        |packet: &[u8]| host_function::run(&file, packet, host_function::seen(&types)).unwrap();
    assert_eq!(run(&[8; 64]), 1);
    assert_eq!(run(&[0x86; 100]), 2);
    assert_eq!(*types.lock().unwrap(), [[8, 8], [0x86, 0x86]]);
}

#[oracle::test]
fn a_task_that_is_given_waits() {
    let object = Object::open(repository().join("examples/tools/runqlat.bpf.o")).unwrap();
    assert_eq!(run_model::waited(&object).unwrap(), Some(1));
}

#[oracle::test]
fn a_model_has_helpers_of_packet_programs_fail() {
    let object = Object::open(firewall()).unwrap();
    let instance = beebox::Loader::default().load(&object).unwrap();
    let mut model = beebox::KernelModel::new(&instance).unwrap();
    model.result("bpf_map_lookup_elem", None, "0").unwrap();
    let run = beebox::TestRun::packet(&[0; 64]);
    let program = instance.program("firewall").unwrap();
    assert!(program.test_run_in(&mut model, &run).is_ok());
    let call = &model.calls()[0];
    assert!(call.starts_with("bpf_map_lookup_elem {map: "), "{call}");
    assert!(model.result("bpf_map_lookup", None, "0").is_err());
}
