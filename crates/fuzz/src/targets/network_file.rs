//! Files that describe the network of a run: any text is a system, or an error with its place.

use beebox::internal::network::read;

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "network-file",
    property: "a network is read or refused, the same way each time",
    words: &[
        "\"link\": [",
        "\"addr\": [",
        "\"route\": [",
        "\"rule\": [",
        "\"rule6\": [",
        "\"neigh\": [",
        "\"netconf\": [",
        "\"multipath\": {",
        "\"socket\": [",
        "\"xdp_socket\": [",
        "\"tcp_syncookies\": 1",
        "\"ifindex\": 3",
        "\"ifname\": \"v0\"",
        "\"dev\": \"v0\"",
        "\"dst\": \"default\"",
        "\"dst\": \"10.0.0.0/8\"",
        "\"gateway\": \"2001:db8::1\"",
        "\"via\": {\"family\": \"inet6\", \"host\": \"fe80::5\"}",
        "\"nexthops\": [",
        "\"table\": \"main\"",
        "\"priority\": 7",
        "\"protocol\": \"tcp\"",
        "\"local\": \"[::1]%v0:80\"",
        "\"remote\": \"*:*\"",
        "\"state\": \"ESTAB\"",
        "\"linkinfo\": {\"info_kind\": \"vrf\", \"info_data\": {\"table\": 7}}",
        "\"master\": \"v0\"",
        "\"cookie\": 1",
        "18446744073709551615",
        "-1",
        "null",
        "{",
        "}",
        "[",
        "]",
        ",",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let text = String::from_utf8_lossy(input);
    let found = read(&text);
    assert_eq!(found, read(&text), "another result");
    match found {
        Ok(system) => {
            let network = &system.network;
            Signature::of((
                network.devices.len().min(8),
                network.routes.iter().count().min(8),
                network.sockets.list().len().min(8),
            ))
        }
        Err(error) => {
            let letters = |text: &str| -> String {
                let kept = text.chars().filter(|it| !it.is_ascii_digit());
                kept.take(40).collect()
            };
            Signature::of((letters(&error.place), letters(&error.problem)))
        }
    }
}
