//! bpf(2), where this process may call it.

use beebox_sys::Errno;
use beebox_sys::bpf::{
    BtfObject, LoadError, LogLevel, Map, MapRequest, ProgLoad, TestRun, btf_load,
};
use isa::ebpf::{RawInsn, assemble, encode};
use spec::programs::ProgramType;

fn slots(text: &str) -> Vec<RawInsn> {
    encode(&assemble(text).expect(text)).expect(text)
}

/// True if this process may not call bpf(2); reports the skipped test.
fn is_skipped(error: &LoadError) -> bool {
    let is_unavailable = error.is_unavailable();
    if is_unavailable {
        oracle::skip("bpf(2)", error.errno);
    }
    is_unavailable
}

#[oracle::test]
fn a_program_is_loaded_run_and_read_back() {
    let text = "
        r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 14
        if r4 > r3 goto out
        r5 = *(u8 *)(r2 + 2)
        r5 += 1
        *(u8 *)(r2 + 2) = r5
        w0 = 7
        exit
    out:
        w0 = 0
        exit";
    let program = slots(text);
    let request = ProgLoad::new(ProgramType::Xdp.number(), &program).with_log(LogLevel::LEVEL2);
    let (program, log) = match request.load() {
        Ok(loaded) => loaded,
        Err(refused) if is_skipped(&refused) => return,
        Err(refused) => panic!("{refused}\n{}", refused.log),
    };
    assert!(log.contains("processed "), "{log}");

    let packet: Vec<u8> = (0..64).collect();
    let mut out = [0; 128];
    let run = TestRun {
        repeat: 3,
        ..TestRun::on(&packet)
    };
    let tested = program.test_run(&run, &mut out, &mut []).expect("a run");
    assert_eq!((tested.retval, tested.data_len), (7, 64));
    assert_eq!(out[..4], [0, 1, 5, 3]);
    let short = program.test_run(&TestRun::on(&packet[..10]), &mut out, &mut []);
    assert_eq!(short, Err(Errno(libc::EINVAL)));

    let info = program.info().expect("info");
    assert!(info.id > 0 && info.translated.len() >= 12, "{info:?}");
    let sum: u32 = info.function_lens.iter().sum();
    assert_eq!(sum as usize, info.native.len());
}

#[oracle::test]
fn a_refusal_comes_with_the_reason() {
    let program = slots("r0 = r5\nexit");
    let request =
        ProgLoad::new(ProgramType::SocketFilter.number(), &program).with_log(LogLevel::LEVEL1);
    match request.load() {
        Ok(_) => panic!("the kernel accepts the program"),
        Err(refused) if is_skipped(&refused) => (),
        Err(refused) => {
            assert_eq!(refused.errno, Errno(libc::EACCES));
            assert_eq!(refused.reason(), "R5 !read_ok");
            assert!(refused.to_string().ends_with("R5 !read_ok"), "{refused}");
        }
    }
}

/// A hash map of numbers; `None` where this process may not create one.
fn hash(entries: u32) -> Option<Map> {
    let request = MapRequest {
        map_type: 1,
        name: "numbers",
        key_size: 4,
        value_size: 8,
        max_entries: entries,
        ..MapRequest::default()
    };
    match Map::create(&request) {
        Ok(map) => Some(map),
        Err(errno @ (Errno(libc::EPERM) | Errno(libc::ENOSYS))) => {
            oracle::skip("maps of bpf(2)", errno);
            None
        }
        Err(errno) => panic!("{errno}"),
    }
}

#[oracle::test]
fn elements_of_a_map_are_written_read_and_deleted() {
    let Some(map) = hash(2) else {
        return;
    };
    let (key, other) = (1u32.to_le_bytes(), 2u32.to_le_bytes());
    let mut value = [0; 8];
    assert_eq!(map.lookup(&key, &mut value), Err(Errno(libc::ENOENT)));
    assert_eq!(map.update(&key, &7u64.to_le_bytes()), Ok(()));
    const NOEXIST: u64 = 1;
    let again = map.update_with(&key, &value, NOEXIST);
    assert_eq!(again, Err(Errno(libc::EEXIST)));
    assert_eq!(map.lookup(&key, &mut value), Ok(()));
    assert_eq!(u64::from_le_bytes(value), 7);
    assert_eq!(map.next_key(None), Ok(Some(key.to_vec())));
    assert_eq!(map.next_key(Some(&key)), Ok(None));
    assert_eq!(map.update(&other, &value), Ok(()));
    let full = map.update(&3u32.to_le_bytes(), &value);
    assert_eq!(full, Err(Errno(libc::E2BIG)));
    assert_eq!(map.lookup_and_delete(&other, &mut value), Ok(()));
    assert_eq!(map.delete(&other), Err(Errno(libc::ENOENT)));
    // Lengths are checked before the kernel sees an address.
    assert_eq!(map.lookup(&key, &mut [0; 4]), Err(Errno(libc::EINVAL)));
    assert_eq!(map.delete(&[0; 3]), Err(Errno(libc::EINVAL)));
    let info = map.info().expect("info");
    assert_eq!((info.name.as_str(), info.max_entries), ("numbers", 2));
}

#[oracle::test]
fn batches_of_elements_are_written_read_and_deleted() {
    let Some(map) = hash(8) else {
        return;
    };
    let keys: Vec<u8> = (0..5u32).flat_map(u32::to_le_bytes).collect();
    let values: Vec<u8> = (10..15u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(map.update_batch(&keys, &values, 0), Ok((5, None)));
    let (mut found, mut held) = (vec![0; 32], vec![0; 64]);
    let batch = map.lookup_batch(None, &mut found, &mut held, 0, false);
    let batch = batch.expect("a batch");
    assert_eq!((batch.count, batch.end), (5, Some(Errno(libc::ENOENT))));
    let mut pairs: Vec<(u32, u64)> = found
        .chunks_exact(4)
        .zip(held.chunks_exact(8))
        .take(5)
        .map(|(key, value)| {
            let key = u32::from_le_bytes(key.try_into().unwrap());
            (key, u64::from_le_bytes(value.try_into().unwrap()))
        })
        .collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(0, 10), (1, 11), (2, 12), (3, 13), (4, 14)]);
    // The values have no lock.
    const LOCK: u64 = 4;
    let locked = map.lookup_batch(None, &mut found, &mut held, LOCK, false);
    assert_eq!(locked, Err(Errno(libc::EINVAL)));
    assert_eq!(map.delete_batch(&keys[..8], LOCK), Err(Errno(libc::EINVAL)));
    assert_eq!(map.delete_batch(&keys[..8], 0), Ok((2, None)));
    assert_eq!(map.freeze(), Ok(()));
    let frozen = map.update(&keys[..4], &values[..8]);
    assert_eq!(frozen, Err(Errno(libc::EPERM)));
}

#[oracle::test]
fn a_program_refers_to_maps_by_index() {
    let Some(map) = hash(1) else {
        return;
    };
    let program = slots(
        "r1 = map_idx(0) ll
        *(u32 *)(r10 - 4) = 0
        r2 = r10
        r2 += -4
        call 1
        r0 = 0
        exit",
    );
    let descriptors = [map.descriptor() as i32];
    let request = ProgLoad {
        name: "by_index",
        fd_array: &descriptors,
        log_level: LogLevel::LEVEL2,
        log_size: 1 << 16,
        ..ProgLoad::new(1, &program)
    };
    let mut log = Vec::new();
    let answer = request.load_into(&mut log);
    let program = answer.result.expect("the kernel accepts it");
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("processed 7 insns"), "{log}");
    assert_eq!(answer.log_true_size as usize, log.len() + 1);
    let info = program.info().expect("info");
    assert_eq!(info.map_ids, [map.info().expect("info").id]);
    assert_eq!((info.name.as_str(), info.verified_insns), ("by_index", 7));
    let none = ProgLoad {
        fd_array: &[],
        ..request
    };
    let mut log = Vec::new();
    let refused = none.load_into(&mut log).result.map(drop);
    assert_eq!(refused, Err(Errno(libc::EPROTO)));
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("fd_idx without fd_array"), "{log}");
}

#[oracle::test]
fn logs_have_a_level_and_a_buffer_of_their_own() {
    let program = slots("r0 = 0\nexit");
    let request = ProgLoad {
        log_size: 1 << 12,
        ..ProgLoad::new(ProgramType::SocketFilter.number(), &program)
    };
    let mut log = Vec::new();
    let with_buffer = request.load_into(&mut log).result.map(drop);
    if with_buffer == Err(Errno::EPERM) || with_buffer == Err(Errno::ENOSYS) {
        return oracle::skip("bpf(2)", "not permitted");
    }
    // A buffer without a level is refused, a level without a buffer only counts.
    assert_eq!(with_buffer, Err(Errno(libc::EINVAL)));
    assert!(log.is_empty());
    let without_buffer = ProgLoad {
        log_level: LogLevel::LEVEL2,
        log_size: 0,
        ..request
    };
    let answer = without_buffer.load_into(&mut log);
    assert!(answer.log_true_size > 1 && log.is_empty());
    assert_eq!(answer.result.map(drop), Ok(()));

    let blob = btf::Builder::new().finish();
    assert_eq!(
        btf_load(&blob, LogLevel::NONE, 64).result,
        Err(Errno(libc::EINVAL))
    );
    let quiet = btf_load(&blob, LogLevel::NONE, 0);
    assert!(quiet.log.is_empty());
    let [first, second] = [LogLevel::LEVEL1, LogLevel::LEVEL2].map(|it| btf_load(&blob, it, 4096));
    assert_eq!((first.result, second.result), (quiet.result, quiet.result));
    assert!(!first.log.is_empty() && !second.log.is_empty());
    let unknown = btf_load(&blob, LogLevel(1 << 10), 4096);
    assert_eq!(unknown.result, Err(Errno(libc::EINVAL)));
    assert!(unknown.log.is_empty());
}

#[oracle::test]
fn info_states_type_btf_and_licence() {
    let program = slots("r0 = 0\nexit");
    let mut types = btf::Builder::new();
    let [int, main] = ["int", "main"].map(|name| types.string(name));
    let int = types.int(
        int,
        btf::Int {
            size: 4,
            bits: 32,
            offset: 0,
            encoding: btf::Encoding(1),
        },
    );
    let proto = types.proto(int, &[]);
    let linkage = btf::Linkage::GLOBAL;
    let main = types.func(main, btf::Func { proto, linkage });
    let types = BtfObject::load(&types.finish());
    let types = match types {
        Err(Errno::EPERM | Errno::ENOSYS) => return oracle::skip("bpf(2)", "not permitted"),
        types => types.expect("the kernel accepts it"),
    };
    let request = ProgLoad {
        btf: Some(&types),
        func_info: &[[0, main.0]],
        ..ProgLoad::new(ProgramType::Xdp.number(), &program)
    };
    let info = request.load().expect("a program").0.info().expect("info");
    assert_eq!(info.program_type, ProgramType::Xdp.number());
    assert!(info.gpl_compatible && info.btf_id != 0);
    let other = ProgLoad {
        license: c"Proprietary",
        btf: None,
        func_info: &[],
        ..request
    };
    let info = other.load().expect("a program").0.info().expect("info");
    assert!(!info.gpl_compatible && info.btf_id == 0);
}
