//! Maps of programs, maps and sockets by their handles; captures in one thread and in several.

use crate::support::file;
use beebox::captures::Input;
use beebox::network::NetSocket;
use beebox::{ErrorKind, Instance, Loader, Map, MapKind, Object, TestRun, XdpAction};

fn load(loader: &Loader, path: &str) -> Instance {
    let object = Object::open(file("../..").join(path)).expect("an object");
    loader
        .load(&object)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn errno<T: std::fmt::Debug>(result: Result<T, beebox::Error>) -> Option<i32> {
    let error = result.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Map, "{error}");
    error.errno().map(|errno| errno.0)
}

/// A frame of UDP over IPv4.
fn udp() -> [u8; 54] {
    let mut packet = [0; 54];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[23] = 17;
    packet
}

#[oracle::test]
fn program_arrays_take_programs_of_their_instance() {
    let path = "examples/packets/dispatch.bpf.o";
    let instance = load(&Loader::default(), path);
    let other = load(&Loader::default(), path);
    // The index of the program for UDP in the array.
    const UDP: u32 = 1;
    let protocols = instance.map("protocols").unwrap();
    let [dispatch, target] = ["dispatch", "udp"].map(|name| instance.program(name).unwrap());
    let packet = udp();
    let run = || {
        dispatch
            .test_run(&TestRun::packet(&packet))
            .unwrap()
            .verdict
    };
    // The program in the slot drops the packet, and without one it passes.
    assert_eq!(run(), XdpAction::Drop);
    protocols.set_program(UDP, None).unwrap();
    assert_eq!(run(), XdpAction::Pass);
    assert_eq!(errno(protocols.set_program(UDP, None)), Some(2));
    protocols.set_program(UDP, Some(&target)).unwrap();
    assert_eq!(run(), XdpAction::Drop);
    let foreign = other.program("udp").unwrap();
    assert_eq!(errno(protocols.set_program(UDP, Some(&foreign))), Some(22));
    let (kind, size) = (protocols.kind(), protocols.key_size());
    assert_eq!((kind, size), (MapKind::ProgArray, 4));
}

#[oracle::test]
fn maps_of_maps_take_maps_that_fit() {
    let instance = load(&Loader::default(), "crates/gateway/bpf/gateway.bpf.o");
    let tables = instance.map("tables").unwrap();
    let inner: Map = tables.create_inner().unwrap();
    assert_eq!((inner.kind(), inner.max_entries()), (MapKind::Array, 1));
    let table = vec![7; inner.value_size()];
    let key = 0u32.to_le_bytes();
    inner
        .update_bytes(&key, &table, Default::default())
        .unwrap();
    tables.set_inner(&0u32, &inner).unwrap();
    assert_eq!(tables.entries_bytes().unwrap().len(), 1);
    assert_eq!(inner.lookup_bytes(&key).unwrap(), Some(table));
    assert_eq!(errno(tables.set_inner(&1u32, &inner)), Some(7));
    assert_eq!(errno(tables.set_inner(&0u32, &tables)), Some(22));
    assert_eq!(errno(inner.create_inner()), Some(22));
    assert_eq!(errno(inner.set_inner(&0u32, &inner)), Some(22));
}

#[oracle::test]
fn maps_of_sockets_take_those_of_the_network() {
    let mut network = beebox::network::Network::default();
    let server = NetSocket::listener("192.0.2.2:80".parse().unwrap());
    network.sockets.add(server);
    let loader = Loader::default().network(network);
    let servers = load(&loader, "examples/packets/steer.bpf.o");
    let servers = servers.map("servers").unwrap();
    servers.set_socket(&1u32, 1).unwrap();
    assert_eq!(servers.socket(&1u32), Some(1));
    assert_eq!(servers.socket(&0u32), None);
    assert_eq!(errno(servers.set_socket(&2u32, 1)), Some(7));
    assert_eq!(errno(servers.set_socket(&0u32, 77)), Some(9));
}

#[oracle::test]
fn captures_give_the_same_counts_in_threads() {
    let input = || Input::open_path(file("../../examples/sample.pcap")).expect("the sample");
    let loader = Loader::default().cpus(2);
    let counted = |jobs| {
        let instance = load(&loader, "examples/packets/firewall.bpf.o");
        let program = instance.program("firewall").unwrap();
        let mut packets = 0;
        let summary = match jobs {
            1 => program.run_capture(input(), None, &mut |run, _| packets = run.packet),
            jobs => program.run_capture_parallel(input(), jobs, &mut |run| packets = run.packet),
        };
        let summary = summary.unwrap();
        assert_eq!(summary.packets, packets);
        let actions = instance.map("actions").unwrap();
        let cpus = actions.entries_percpu::<u32, u64>().unwrap();
        let sums: Vec<u64> = cpus.iter().map(|(_, cpus)| cpus.iter().sum()).collect();
        (summary.verdicts, sums)
    };
    assert_eq!(counted(1), counted(2));
}
