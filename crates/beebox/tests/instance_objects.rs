//! Maps of programs, maps and sockets by their handles; captures in one thread and in several.

use crate::support::file;
use beebox::MapsJson;
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

#[oracle::test]
fn a_test_run_has_a_network_of_its_own() {
    let network = std::fs::read_to_string(file("../../examples/packets/router.json"));
    let network = beebox::network::read(&network.unwrap()).unwrap().network;
    let router = load(&Loader::default(), "examples/packets/router.bpf.o");
    let (route, results) = (router.program("route"), router.map("results"));
    let (route, results) = (route.unwrap(), results.unwrap());
    // From the LAN, which is interface 2, to a network that is a blackhole.
    let packet = [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 1, 7, 8, 0][..],
        &[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 0, 0, 0],
        &[192, 0, 2, 7, 203, 0, 113, 7],
    ]
    .concat();
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&(packet.len() as u32).to_le_bytes());
    context[12..16].copy_from_slice(&2u32.to_le_bytes());
    let found = |run: &TestRun| {
        let before = results.entries::<u32, u64>().unwrap();
        let verdict = route.test_run(run).map(|result| result.verdict);
        let after = results.entries::<u32, u64>().unwrap();
        let counted = before.iter().zip(&after).position(|pair| pair.0 != pair.1);
        (verdict.map_err(|error| error.errno()), counted)
    };
    let with_network = TestRun::packet(&packet).network(&network);
    // Without it there is no interface 2, and the lookup finds no route that forwards.
    let (none, lost) = found(&TestRun::packet(&packet));
    assert_eq!(none.unwrap(), XdpAction::Pass);
    assert_ne!(lost, Some(1));
    let (refused, _) = found(&TestRun::packet(&packet).ctx_in(&context));
    assert!(refused.is_err(), "{refused:?}");
    // `BPF_FIB_LKUP_RET_BLACKHOLE`
    let (dropped, counted) = found(&with_network.ctx_in(&context));
    assert_eq!((dropped.unwrap().retval(), counted), (1, Some(1)));
    // The network of a run is that of no other one.
    let (none, again) = found(&TestRun::packet(&packet));
    assert_eq!((none.unwrap().retval(), again), (2, lost));
}

#[oracle::test]
fn forms_of_fields_are_chosen_when_an_object_is_loaded() {
    let object = Object::open(file("../../examples/packets/firewall.bpf.o")).unwrap();
    let loader = Loader::default().map_format("blocked.key.address=ipv4");
    let instance = loader.load(&object).unwrap();
    let maps = MapsJson::open(file("../../examples/packets/rules.json")).unwrap();
    instance.fill_maps(&object, &maps).unwrap();
    let json = instance.maps_json(&object).unwrap();
    assert!(json.contains(r#""address": "192.0.2.2""#), "{json}");
    let again = MapsJson::parse(json.as_bytes()).unwrap();
    assert_eq!(instance.fill_maps(&object, &again).unwrap(), []);
    for (format, why) in [
        ("blocked.key.address=ipv6", "16"),
        ("blocked.key.address=ipv5", "ipv5"),
        ("blocked.address=ipv4", "no MAP.key, MAP.value or variable"),
        ("nothing.key=ipv4", "nothing"),
    ] {
        let error = Loader::default().map_format(format).load(&object);
        let error = error.expect_err("a form that does not fit");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}
