//! Records that the host writes for programs, and dynptrs to them: in the checked engine, as
//! the verifier here does not support such programs, and in the running kernel.

use crate::support::file;
use beebox::internal::object::Object;
use beebox::internal::run::{DataError, Errno, LoadOptions, LoadedObject, SplitMix};
use kernel_client::load::{LoadRequest, load};
use spec::Random;
use sys::bpf::{TestRun, UserRingBuffer};

fn loaded(object: &Object<'_>) -> LoadedObject {
    let options = LoadOptions {
        unverified: true,
        ..LoadOptions::default()
    };
    LoadedObject::load(object, &kernel_data::linux_6_18_minimal(), &options).expect("it is loaded")
}

#[oracle::test]
fn records_are_read_as_in_the_kernel() {
    let bytes = std::fs::read(file("tests/run/user_records.bpf.o")).expect("a committed object");
    let object = Object::open(&bytes).expect("an object");
    let linked = object
        .link(&kernel_data::linux_6_18_minimal())
        .expect("it links");
    let request = LoadRequest {
        log_level: 0,
        log_size: 0,
    };
    let asked = load(&linked.programs[0].program, request).map_err(|fault| format!("{fault:?}"));
    let Some(asked) = oracle::found("user ring buffers of the kernel", asked) else {
        return;
    };
    let theirs = match asked.answer.result {
        Ok(theirs) => theirs,
        Err(errno) => return oracle::skip("user ring buffers of the kernel", errno),
    };
    let mut ours = loaded(&object);
    let maps: Vec<_> = asked.maps.iter().flatten().collect();
    let place = ours.maps().position(|map| map.def.name == "records");
    let ring = maps[place.expect("it is used")];
    let mut ring = UserRingBuffer::open(ring).expect("the kernel maps it");
    let mut random = SplitMix::new(3);
    let packet = [0; 64];
    let mut read = 0;
    for round in 0..300 {
        // Far fewer than the ring holds, so that those that the number 0 leaves fit as well.
        for _ in 0..random.next_u32() % 4 {
            let len = random.next_u32() as usize % 40;
            let mut record: Vec<u8> = (0..len).map(|_| random.next_u32() as u8).collect();
            if random.next_u32().is_multiple_of(8) {
                record.fill(0);
            }
            if ours.write_user_record("records", &record).is_ok() {
                ring.write(&record);
            }
        }
        let run = ours
            .program("drain")
            .expect("it is loaded")
            .test_run(&packet);
        let run = run.expect("it returns");
        let answer = theirs.test_run(&TestRun::on(&packet), &mut [0; 64], &mut []);
        let answer = answer.expect("the kernel runs it");
        assert_eq!(run.retval, answer.retval, "round {round}");
        read += run.retval;
        for (map, theirs) in ours.maps().zip(&maps) {
            if map.def.name == "records" {
                continue;
            }
            let mut value = vec![0; theirs.value_len()];
            theirs.lookup(&[0; 4], &mut value).expect("a variable");
            let entries = map.entries().expect("variables");
            assert_eq!(entries[0].1, value, "round {round}: {}", map.def.name);
        }
    }
    assert!(read > 200, "{read} records");
}

#[oracle::test]
fn records_that_do_not_fit_are_errors() {
    let bytes = std::fs::read(file("tests/run/user_records.bpf.o")).expect("a committed object");
    let object = Object::open(&bytes).expect("an object");
    let loaded = loaded(&object);
    let errno = |name: &str, len: usize| match loaded.write_user_record(name, &vec![0; len]) {
        Ok(()) => None,
        Err(DataError::Map { errno, .. }) => Some(errno),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(errno("records", 4089), Some(Errno::E2BIG));
    assert_eq!(errno("records", 4080), None);
    assert_eq!(errno("records", 1), Some(Errno::ENOSPC));
    assert_eq!(errno("object.bss", 1), Some(Errno::EINVAL));
    let absent = loaded
        .write_user_record("absent", &[])
        .expect_err("no such map");
    assert!(absent.to_string().contains("records"), "{absent}");
}
