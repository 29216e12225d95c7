//! An object whose programs call each other through a program array that it fills: which
//! program ends each run, here and in the running kernel.

use std::path::Path;

use beebox::captures::{Event, Input};
use beebox::object::Object;
use beebox::run::{Errno, LoadOptions, LoadedObject, NotLoaded};
use sys::bpf::{LoadedProgram, Map, TestRun};
use testkit::kernel::load::{LoadRequest, load};

const WHAT: &str = "test runs of the kernel";

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn packets() -> Vec<Vec<u8>> {
    let mut input = Input::open_path(example("sample.pcap")).expect("the sample");
    let mut packets = Vec::new();
    while let Some(event) = input.next_event().expect("the sample") {
        if let Event::Packet(record) = event {
            packets.push(record.data().to_vec());
        }
    }
    packets
}

/// A program of the object in the kernel, with maps of its own.
fn in_kernel(object: &mut Object<'_>, name: &str) -> Option<(LoadedProgram, Vec<Option<Map>>)> {
    object.set_autoload(|program| program.name == name);
    let linked = object.link(&kernel_data::linux_6_18()).expect("it links");
    let request = LoadRequest {
        log_level: 1,
        log_size: 1 << 20,
    };
    let loaded = load(&linked.programs[0].program, request).map_err(|fault| format!("{fault:?}"));
    let loaded = oracle::found(WHAT, loaded)?;
    let program = oracle::found(WHAT, loaded.answer.result)?;
    Some((program, loaded.maps))
}

#[test]
fn tail_calls_end_where_the_kernels_do() {
    let file = std::fs::read(example("packets/dispatch.bpf.o")).expect("a committed object");
    let mut object = Object::open(&file).expect("an object");
    let kernel = kernel_data::linux_6_18();
    let loaded = LoadedObject::load(&object, &kernel, &LoadOptions::default());
    let mut ours = loaded.expect("it is loaded");
    let packets = packets();
    let mut dispatch = ours.program("dispatch").expect("it is loaded");
    let verdicts = packets.iter().map(|packet| {
        let run = dispatch.test_run(packet).expect("the program runs");
        run.retval
    });
    let verdicts: Vec<u32> = verdicts.collect();
    // UDP over IPv4 is dropped: 11 packets, as `ip proto 17` counts.
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == 1).count(), 11);
    assert_eq!(ours.global::<u64>("udp_packets").expect("a variable"), 11);
    // Of the others, 122 are TCP.
    let others = ours.global::<u64>("others").expect("a variable");
    assert_eq!(others, packets.len() as u64 - 11 - 122);

    let Some((theirs, maps)) = in_kernel(&mut object, "dispatch") else {
        return;
    };
    let array = maps
        .iter()
        .flatten()
        .find(|map| map.info().unwrap().map_type == 3);
    let array = array.expect("a program array");
    let mut kept = Vec::new();
    for (index, name) in [(0u32, "tcp"), (1, "udp")] {
        let (program, maps) = in_kernel(&mut object, name).expect("the kernel takes the others");
        let descriptor = program.descriptor().to_ne_bytes();
        array.update(&index.to_ne_bytes(), &descriptor).expect(name);
        kept.push((program, maps));
    }
    for (packet, verdict) in packets.iter().zip(verdicts) {
        let mut out = vec![0; 1 << 16];
        let run = theirs.test_run(&TestRun::on(packet), &mut out, &mut []);
        assert_eq!(run.expect("the kernel runs it").retval, verdict);
    }
}

#[test]
fn an_array_that_holds_an_absent_program_is_named() {
    let file = std::fs::read(example("packets/dispatch.bpf.o")).expect("a committed object");
    let mut object = Object::open(&file).expect("an object");
    object.set_autoload(|program| program.name == "dispatch");
    let kernel = kernel_data::linux_6_18();
    let error = LoadedObject::load(&object, &kernel, &LoadOptions::default()).unwrap_err();
    let NotLoaded::ProgramArray {
        map,
        program,
        errno,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (&**map, &**program, *errno),
        ("protocols", "tcp", Errno::EBADF)
    );
}
