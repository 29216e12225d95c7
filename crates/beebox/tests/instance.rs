//! Objects in instances: handles of programs and maps, typed elements, test runs, limits, maps that
//! outlive a reload.

// It is written as a module of a crate of its own.
#[allow(unreachable_pub)]
mod firewall;

use std::error::Error as _;
use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::{ENGINES, file, native_code, packets};
use beebox::Engine;
use beebox::{
    Error, ErrorKind, Instance, Loader, Map, Object, Program, TestRun, UpdateMode, Verdict,
    XdpAction,
};
use firewall::types::{address, network, rule, sender};

fn object(name: &str) -> Object {
    Object::open(file("../../examples/packets").join(name)).expect("an object")
}

fn load(name: &str) -> Instance {
    let loaded = Loader::default().load(&object(name));
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

fn limits() -> Object {
    Object::open(file("tests/run/limits.bpf.o")).expect("an object")
}

/// A frame of IPv4 from 192.0.2.7.
fn packet() -> [u8; 34] {
    let mut packet = [0; 34];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[26..30].copy_from_slice(&[192, 0, 2, 7]);
    packet
}

const BLOCKED: network = network {
    prefix_length: 24,
    address: [192, 0, 2, 0],
};

const RULE: rule = rule {
    name: [0; 16],
    hits: 0,
};

#[oracle::test]
fn handles_go_everywhere() {
    fn is_free<T: Send + Sync + Clone + 'static>() {}
    is_free::<Object>();
    is_free::<Loader>();
    is_free::<Instance>();
    is_free::<Program>();
    is_free::<Map>();
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<Error>();
}

#[oracle::test]
fn a_structure_keeps_a_program_with_its_maps() {
    struct Firewall {
        program: Program,
        blocked: Map,
    }
    let kept = {
        let instance = load("firewall.bpf.o");
        Firewall {
            program: instance.program("firewall").unwrap(),
            blocked: instance.map("blocked").unwrap(),
        }
    };
    kept.blocked.update(&BLOCKED, &RULE).unwrap();
    let hits = || {
        let found = kept.blocked.lookup::<network, rule>(&BLOCKED).unwrap();
        found.unwrap().hits
    };
    for runs in 1..=3 {
        let result = kept.program.test_run(&TestRun::packet(&packet())).unwrap();
        assert_eq!(result.verdict, XdpAction::Drop);
        assert_eq!(hits(), runs);
    }
    // Another thread has clones, and they are the same map.
    let (program, blocked) = (kept.program.clone(), kept.blocked.clone());
    let other = thread::spawn(move || {
        program.test_run(&TestRun::packet(&packet())).unwrap();
        blocked.delete(&BLOCKED).unwrap()
    });
    assert!(other.join().unwrap());
    assert!(
        kept.blocked
            .lookup::<network, rule>(&BLOCKED)
            .unwrap()
            .is_none()
    );
    let result = kept.program.test_run(&TestRun::packet(&packet())).unwrap();
    assert_eq!(result.verdict, Verdict::Xdp(XdpAction::Pass));
    assert_eq!((result.retval, result.verdict.passes()), (2, true));
}

#[oracle::test]
fn threads_count_together() {
    let instance = load("firewall.bpf.o");
    let program = instance.program("firewall").unwrap();
    instance
        .map("blocked")
        .unwrap()
        .update(&BLOCKED, &RULE)
        .unwrap();
    let threads = [0, 1].map(|cpu| {
        let program = program.clone();
        thread::spawn(move || {
            let mut runner = program.runner_on(cpu);
            for _ in 0..500 {
                assert_eq!(runner.run(&packet()).unwrap().verdict, XdpAction::Drop);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    let blocked = instance.map("blocked").unwrap();
    let entries = blocked.entries::<network, rule>().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1.hits, 1000);
    // Both CPUs counted for themselves.
    let actions = instance.map("actions").unwrap();
    let dropped = actions.lookup_percpu::<u32, u64>(&1).unwrap().unwrap();
    assert_eq!(dropped[..2], [500, 500]);
}

#[oracle::test]
fn bindings_of_the_object_are_types_of_its_maps() {
    let committed = fs::read_to_string(file("tests/instance/firewall.rs")).unwrap();
    let bytes = fs::read(file("../../examples/packets/firewall.bpf.o")).unwrap();
    let named = beebox::internal::object::OpenOptions {
        name: Some("firewall.bpf.o"),
        ..Default::default()
    };
    let opened = beebox::internal::object::Object::open_with(&bytes, &named).unwrap();
    let options = report::bindings::BindingsOptions {
        file: "firewall.bpf.o".to_owned(),
        pod: true,
        ..Default::default()
    };
    let written = report::bindings::rust_bindings(&opened, &options).unwrap();
    assert_eq!(written, committed);

    let instance = load("firewall.bpf.o");
    assert!(instance.map(firewall::globals::bss::MAP).is_ok());
    let program = instance.program(firewall::programs::firewall).unwrap();
    program.test_run(&TestRun::packet(&packet())).unwrap();
    let senders = instance.map(firewall::maps::senders::NAME).unwrap();
    let from = address {
        bytes: [192, 0, 2, 7],
    };
    let found: sender = senders.lookup(&from).unwrap().unwrap();
    assert_eq!(
        (found.packets, found.bytes, found.last),
        (1, 34, firewall::types::PASS)
    );
    assert_eq!(
        senders.keys::<[u8; 4]>().unwrap(),
        [from.bytes],
        "a type of the same size serves too"
    );
}

#[oracle::test]
fn elements_are_updated_by_modes_and_removed() {
    let ports = load("firewall.bpf.o").map("open_ports").unwrap();
    let update = |mode| ports.update_with(&80u16, &7u64, mode);
    let missing = update(UpdateMode::Exist).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Map);
    assert_eq!(missing.to_string(), "map open_ports: ENOENT");
    update(UpdateMode::NoExist).unwrap();
    let known = update(UpdateMode::NoExist).unwrap_err();
    assert_eq!(known.errno().map(|errno| errno.0), Some(17));
    update(UpdateMode::Any).unwrap();
    assert_eq!(ports.entries::<u16, u64>().unwrap(), [(80, 7)]);
    assert!(ports.delete(&80u16).unwrap());
    assert!(!ports.delete(&80u16).unwrap());
    assert_eq!(ports.lookup::<u16, u64>(&80).unwrap(), None);
    assert_eq!(ports.entries_bytes().unwrap(), []);
    ports
        .update_bytes(&[80, 0], &[1; 8], UpdateMode::Any)
        .unwrap();
    assert_eq!(ports.lookup_bytes(&[80, 0]).unwrap(), Some(vec![1; 8]));
    assert!(ports.delete_bytes(&[80, 0]).unwrap());
}

#[oracle::test]
fn values_of_all_cpus_are_read_and_written() {
    let instance = load("limit.bpf.o");
    let senders = instance.map("senders").unwrap();
    // struct spent: bytes, packets and dropped.
    type Spent = [u32; 4];
    let cpus: Vec<Spent> = vec![[1, 0, 2, 3], [4, 0, 5, 6]];
    senders.update_percpu(&9u32, &cpus).unwrap();
    assert_eq!(
        senders.lookup_percpu::<u32, Spent>(&9).unwrap(),
        Some(cpus.clone())
    );
    assert_eq!(
        senders.entries_percpu::<u32, Spent>().unwrap(),
        [(9, cpus.clone())]
    );
    let few = senders.update_percpu(&9u32, &cpus[..1]).unwrap_err();
    assert_eq!(few.errno().map(|errno| errno.0), Some(22));
    // Values of 4 bytes are each rounded up to 8.
    let verdicts = instance.map("verdicts").unwrap();
    verdicts.update_percpu(&1u32, &[7u32, 8]).unwrap();
    assert_eq!(
        verdicts.lookup_percpu::<u32, u32>(&1).unwrap(),
        Some(vec![7, 8])
    );
    let single = verdicts.lookup::<u32, u32>(&1).unwrap_err();
    assert_eq!(single.kind(), ErrorKind::Type);
    assert!(single.to_string().contains("percpu"), "{single}");
    let ports = load("firewall.bpf.o").map("open_ports").unwrap();
    let each = ports.lookup_percpu::<u16, u64>(&1).unwrap_err();
    assert_eq!(
        each.to_string(),
        "map open_ports has one value for all CPUs"
    );
}

#[oracle::test]
fn errors_say_what_would_fit() {
    let instance = load("firewall.bpf.o");
    let blocked = instance.map("blocked").unwrap();
    let wrong = blocked.lookup::<u32, [u64; 3]>(&1).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Type);
    assert_eq!(
        wrong.to_string(),
        "the key of map blocked has 8 bytes, the type in Rust 4; network (beebox gen rust) fits"
    );
    let wrong = instance.global::<u32>("refused").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "variable refused has 8 bytes, the type in Rust 4; u64 (beebox gen rust) fits"
    );
    let errors = [
        (instance.map("ports").unwrap_err(), "open_ports"),
        (instance.program("wall").unwrap_err(), "firewall"),
        (instance.global::<u64>("refuse").unwrap_err(), "refused"),
        (
            Loader::default()
                .max_entries("ports", 1)
                .load(&object("firewall.bpf.o"))
                .unwrap_err(),
            "open_ports",
        ),
        (
            Loader::default()
                .programs(["wall"])
                .load(&object("firewall.bpf.o"))
                .unwrap_err(),
            "firewall",
        ),
    ];
    for (error, known) in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(known), "{error}");
    }
    let constant = instance.set_global("checks_ports", 0u8).unwrap_err();
    assert_eq!(constant.errno().map(|errno| errno.0), Some(1));
    let absent = Object::open("no/such.bpf.o").unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::File);
    assert!(absent.source().is_some() && absent.to_string().starts_with("no/such.bpf.o: "));
    let text = Object::from_bytes(b"no object").unwrap_err();
    assert_eq!(text.kind(), ErrorKind::Object);
    let refused = Loader::default()
        .load(&Object::open(file("../../examples/verify/port.bpf.o")).unwrap())
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(refused.errno().map(|errno| errno.0), Some(13));
    let explanation = refused.explanation().expect("it is explained");
    assert_eq!(Some(&explanation.refusal), refused.refusal());
    let source = explanation.place.as_ref().and_then(|at| at.source.as_ref());
    assert!(source.is_some_and(|source| source.file.ends_with("port.bpf.c")));
    assert!(absent.refusal().is_none() && absent.explanation().is_none());
}

#[oracle::test]
fn the_loader_changes_the_object() {
    let loader = Loader::default()
        .global("budget", 40u64)
        .max_entries("senders", 2)
        .cpus(4)
        .programs(["limit"]);
    let instance = loader.load(&object("limit.bpf.o")).unwrap();
    assert_eq!(instance.map("senders").unwrap().max_entries(), 2);
    let program = instance.program("limit").unwrap();
    let packet = packet();
    let run = TestRun::packet(&packet).cpu(3);
    // 20 bytes a packet, without the link-layer header.
    let verdicts: Vec<bool> = (0..3)
        .map(|_| program.test_run(&run).unwrap().verdict.passes())
        .collect();
    assert_eq!(verdicts, [true, true, false]);
    let counts = instance.map("verdicts").unwrap();
    let passed = counts.lookup_percpu::<u32, u32>(&1).unwrap().unwrap();
    assert_eq!(passed, [0, 0, 0, 2]);
    // The loader loads again, and the new instance begins anew.
    let again = loader.load(&object("limit.bpf.o")).unwrap();
    let program = again.program("limit").unwrap();
    assert!(program.test_run(&run).unwrap().verdict.passes());
    let wrong = Loader::default()
        .global("budget", 1u8)
        .load(&object("limit.bpf.o"));
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Object);
}

#[oracle::test]
fn test_runs_take_the_fields_of_the_system_call() {
    let instance = load("firewall.bpf.o");
    let program = instance.program("firewall").unwrap();
    let packet = packet();
    let run = TestRun::packet(&packet).repeat(5).data_size_out(14);
    let result = program.test_run(&run);
    let result = result.unwrap();
    assert_eq!(result.data_out, packet[..14]);
    assert_eq!(result.data_size_out, 34);
    let senders = instance.map("senders").unwrap();
    let seen: sender = senders.lookup(&[192u8, 0, 2, 7]).unwrap().unwrap();
    assert_eq!(seen.packets, 5);
    // A context of struct xdp_md whose data_end is beyond the packet.
    let ctx_in = [0, 35].map(u32::to_le_bytes).concat();
    let short = TestRun::packet(&packet[..13]);
    let refused = [
        (short, ErrorKind::Input, Some(22)),
        (
            TestRun::packet(&packet).ctx_in(&ctx_in),
            ErrorKind::Input,
            Some(22),
        ),
        (
            TestRun::packet(&packet).flags(1),
            ErrorKind::Input,
            Some(22),
        ),
        (
            TestRun::packet(&packet).batch_size(8),
            ErrorKind::Input,
            Some(22),
        ),
        (
            TestRun::packet(&packet).flags(2),
            ErrorKind::Unsupported,
            None,
        ),
        (TestRun::packet(&packet).cpu(99), ErrorKind::Input, None),
    ];
    for (run, kind, errno) in refused {
        let error = program.test_run(&run).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.errno().map(|errno| errno.0), errno, "{error}");
    }
}

#[oracle::test]
fn a_runner_answers_as_test_runs_do() {
    for engine in ENGINES {
        let loader = Loader::default().engine(engine);
        let [tested, run] =
            [(); 2].map(|()| loader.load(&object("rewrite.bpf.o")).expect("it loads"));
        let name = object("rewrite.bpf.o").program_names()[0].clone();
        let (tested, run) = (tested.program(&name).unwrap(), run.program(&name).unwrap());
        assert_eq!(run.engine(), engine);
        let mut runner = run.runner();
        assert!(runner.packet().is_empty());
        for packet in packets().iter().filter(|packet| packet.len() < 3000) {
            let theirs = tested.test_run(&TestRun::packet(packet)).unwrap();
            let ours = runner.run(packet).unwrap();
            assert_eq!((ours.retval, ours.verdict), (theirs.retval, theirs.verdict));
            assert_eq!(*runner.packet(), theirs.data_out);
        }
    }
}

#[oracle::test]
fn runs_end_at_their_limits() {
    let run = |loader: Loader, name: &str| {
        let instance = loader.programs([name]).load(&limits()).unwrap();
        let program = instance.program(name).unwrap();
        let ended = program.test_run(&TestRun::packet(&[0; 64])).map(drop);
        let mut runner = program.runner();
        let again = runner.run(&[0; 64]).map(drop);
        assert_eq!(ended.is_err(), again.is_err());
        ended.map_err(|error| error.kind())
    };
    if native_code("the time limit of native code") {
        let time = Loader::default().time_limit(Duration::from_millis(20));
        assert_eq!(run(time, "endless"), Err(ErrorKind::Limit));
    }
    let checked = Loader::default().engine(Engine::Checked);
    let few = checked.clone().instruction_limit(1000);
    assert_eq!(run(few, "endless"), Err(ErrorKind::Limit));
    assert_eq!(run(checked, "evict"), Ok(()));
    let memory = Loader::default().map_memory(1 << 20).programs(["array"]);
    let refused = memory.load(&limits()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
}

#[oracle::test]
fn maps_outlive_a_reload() {
    let loader = Loader::default();
    let old = loader.load(&object("firewall.bpf.o")).unwrap();
    let blocked = old.map("blocked").unwrap();
    blocked.update(&BLOCKED, &RULE).unwrap();
    let reload = loader.clone().reuse_map("blocked", &blocked);
    let reload = reload.reuse_map("actions", &old.map("actions").unwrap());
    for engine in ENGINES {
        let new = reload.clone().engine(engine);
        let new = new.load(&object("firewall.bpf.o")).unwrap();
        let program = new.program("firewall").unwrap();
        let result = program.test_run(&TestRun::packet(&packet())).unwrap();
        assert_eq!(result.verdict, XdpAction::Drop, "{engine:?}");
        // Maps that were not named are new.
        assert_eq!(new.map("senders").unwrap().keys::<u32>().unwrap().len(), 1);
    }
    drop((old, reload));
    // The old handle sees what the new instances counted.
    let found: rule = blocked.lookup(&BLOCKED).unwrap().unwrap();
    assert_eq!(found.hits, ENGINES.len() as u64);
}

#[oracle::test]
fn maps_that_differ_are_not_reused() {
    let object = object("firewall.bpf.o");
    let old = load("firewall.bpf.o");
    let refused = |loader: Loader| {
        let error = loader.load(&object).unwrap_err();
        (error.kind(), error.to_string())
    };
    let reuse = |name: &str, map: &str| Loader::default().reuse_map(name, &old.map(map).unwrap());
    let (kind, text) = refused(reuse("blocked", "open_ports"));
    assert_eq!(kind, ErrorKind::Incompatible);
    assert_eq!(
        text,
        "map blocked cannot be reused: its map_type is 1, that of the object 11"
    );
    let (kind, text) = refused(reuse("blocked", "blocked").max_entries("blocked", 9));
    assert_eq!(kind, ErrorKind::Incompatible);
    assert!(text.contains("max_entries is 1024"), "{text}");
    let (kind, text) = refused(reuse("actions", "actions").cpus(5));
    assert_eq!(kind, ErrorKind::Incompatible);
    assert!(text.contains("CPUs"), "{text}");
    let (kind, _) = refused(reuse("ports", "open_ports"));
    assert_eq!(kind, ErrorKind::NotFound);
}

#[oracle::test]
fn equal_seeds_give_equal_instances() {
    let object = Object::open(file("../cli/tests/data/report.bpf.o")).unwrap();
    let last = |seed| {
        let instance = Loader::default().seed(seed).load(&object).unwrap();
        let program = instance.program("report").unwrap();
        let runs = [(); 4].map(|()| {
            program.test_run(&TestRun::packet(&[0; 60])).unwrap();
            instance.global::<[u32; 6]>("last").unwrap()
        });
        assert_ne!(runs[0], runs[1], "runs have numbers of their own");
        runs
    };
    assert_eq!(last(1), last(1));
    assert_ne!(last(1), last(2));
}
