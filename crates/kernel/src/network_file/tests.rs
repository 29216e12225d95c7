//! Files of a network: what is read, and the place that errors name.

use vm::network::{RouteKind, RuleAction, SocketState, scope};

use super::*;

const DEVICES: &str = r#""addr": [
    {"ifindex": 1, "ifname": "lo", "flags": ["LOOPBACK", "UP"], "mtu": 65536,
     "link_type": "loopback", "address": "00:00:00:00:00:00", "addr_info": []},
    {"ifindex": 3, "ifname": "v0", "flags": ["BROADCAST", "UP"], "mtu": 1400,
     "link_type": "ether", "address": "ba:12:6b:a5:ac:85", "addr_info": [
        {"family": "inet", "local": "10.0.0.1", "prefixlen": 24, "scope": "global"}]}]"#;

fn file(more: &str) -> Result<System, NetworkFileError> {
    read(&format!("{{{DEVICES}, {more}}}"))
}

#[test]
fn the_empty_file_is_the_default() {
    assert_eq!(read("{}").unwrap(), System::DEFAULT);
}

#[test]
fn routes_are_those_that_ip_prints() {
    let system = file(
        r#""route": [
        {"type": "unicast", "dst": "10.4.0.0/16", "encap": "ip6", "src": "::",
         "dst": "fe80::9", "dev": "v0", "table": "77", "scope": "link"},
        {"dst": "default", "gateway": "2001:db8::1", "dev": "v0", "metric": 9, "pref": "high"},
        {"type": "blackhole", "dst": "10.6.0.0/16"},
        {"dst": "10.8.0.0/16", "tos": "0x10", "nexthops": [
            {"gateway": "10.0.0.3", "dev": "v0", "weight": 2, "flags": ["dead"]},
            {"via": {"family": "inet6", "host": "fe80::5"}, "dev": "v0"}]}]"#,
    );
    let network = system.unwrap().network;
    let routes: Vec<_> = network.routes.iter().collect();
    // By family, table and length.
    let [default, tunnel, blackhole, several] = &routes[..] else {
        panic!("{routes:?}");
    };
    assert_eq!(tunnel.table, 77);
    assert_eq!(tunnel.next_hops[0].encapsulation, Some(0));
    assert_eq!(tunnel.scope, scope::LINK);
    assert_eq!(blackhole.kind, RouteKind::Blackhole);
    assert!(several.next_hops[0].is_dead);
    assert_eq!(
        several.next_hops[1].gateway,
        Some("fe80::5".parse().unwrap())
    );
    assert!(default.destination.address().is_ipv6());
    assert_eq!((default.metric, several.tos), (9, 16));
}

#[test]
fn rules_are_those_that_ip_prints() {
    let system = file(
        r#""rule": [{"priority": 0, "src": "all", "table": "local"},
        {"priority": 50, "not": null, "src": "all", "dst": "10.2.0.0", "dstlen": 16,
         "ipproto": "tcp", "sport_start": 80, "sport_end": 90, "action": "prohibit"}]"#,
    );
    let rules = system.unwrap().network.rules;
    let rule = &rules.custom(true).unwrap()[1];
    assert!(rule.is_inverted);
    assert_eq!(rule.action, RuleAction::Prohibit);
    assert_eq!(rule.to.unwrap().len(), 16);
    assert_eq!(
        (rule.protocol, rule.source_ports.clone()),
        (6, Some(80..=90))
    );
    assert!(rules.custom(false).is_none());
}

#[test]
fn sockets_are_those_that_ss_prints() {
    let system = file(
        r#""socket": [
        {"protocol": "tcp", "state": "LISTEN", "local": "*:80", "remote": "*:*"},
        {"protocol": "tcp", "local": "127.0.0.1%v0:81", "cookie": 9},
        {"protocol": "tcp", "state": "ESTAB", "local": "[::ffff:10.0.0.1]:80",
         "remote": "[::ffff:10.0.0.2]:5000", "mark": 7, "tcp": {"snd_cwnd": 10, "bytes_acked": 5000000000}},
        {"protocol": "udp", "local": "[fe80::1]%v0:53", "reuseport": 1, "uid": 1000}]"#,
    );
    let network = system.unwrap().network;
    let [all, on_device, connection, udp] = network.sockets.list() else {
        panic!("{:?}", network.sockets);
    };
    assert_eq!(all.local, "[::]:80".parse().unwrap());
    assert!(!all.is_ipv6_only && all.takes_ipv4());
    assert_eq!((all.state, all.cookie), (SocketState::Listen, 1));
    assert_eq!((on_device.device, on_device.cookie), (3, 9));
    assert_eq!(connection.state, SocketState::Established);
    assert_eq!(connection.remote_ipv4().octets(), [10, 0, 0, 2]);
    assert_eq!(connection.tcp.bytes_acked, 5_000_000_000);
    assert_eq!((udp.device, udp.group, udp.uid), (3, Some(1), 1000));
}

#[test]
fn errors_name_the_place() {
    for (more, place) in [
        (r#""routes": []"#, ""),
        (r#""route": {}"#, "route"),
        (
            r#""route": [{"dst": "10.0.0.0/33", "dev": "v0"}]"#,
            "route[0].dst",
        ),
        (
            r#""route": [{"dst": "10.0.0.0/8", "dev": "v9"}]"#,
            "route[0].dev",
        ),
        (r#""route": [{"dst": "10.0.0.0/8"}]"#, "route[0]"),
        (
            r#""route": [{"dst": "::/0", "dev": "v0", "table": "red"}]"#,
            "route[0].table",
        ),
        (
            r#""neigh": [{"dst": "10.0.0.2", "dev": "v0", "lladdr": "1:2"}]"#,
            "neigh[0].lladdr",
        ),
        (r#""neigh": [5]"#, "neigh[0]"),
        (r#""rule": [{"src": "all"}]"#, "rule[0]"),
        (r#""rule": [{"priority": -1}]"#, "rule[0].priority"),
        (r#""socket": [{"protocol": "tcp"}]"#, "socket[0]"),
        (
            r#""socket": [{"protocol": "sctp", "local": "*:80"}]"#,
            "socket[0].protocol",
        ),
        (
            r#""socket": [{"protocol": "tcp", "local": "::1:80"}]"#,
            "socket[0].local",
        ),
        (
            r#""socket": [{"protocol": "udp", "local": "*:80", "state": "LISTEN"}]"#,
            "socket[0].state",
        ),
        (
            r#""socket": [{"protocol": "tcp", "local": "*:80", "tcp": {"snd_cwnd": 4294967296}}]"#,
            "socket[0].tcp.snd_cwnd",
        ),
        (
            r#""socket": [{"protocol": "tcp", "local": "*:80", "dev": "v9"}]"#,
            "socket[0].dev",
        ),
        (
            r#""socket": [{"protocol": "tcp", "local": "*:80", "cookie": 1},
            {"protocol": "tcp", "local": "*:81", "cookie": 1}]"#,
            "socket[1].cookie",
        ),
        (r#""tcp_syncookies": 3"#, "tcp_syncookies"),
        (r#""xdp_socket": [{"dev": "v9"}]"#, "xdp_socket[0].dev"),
        (r#""xdp_socket": [{"queue": 1}]"#, "xdp_socket[0].queue"),
        (
            r#""xdp_socket": [{"dev": "v0", "queue": 65536}]"#,
            "xdp_socket[0].queue",
        ),
        (
            r#""socket": [{"protocol": "tcp", "local": "*:80", "cookie": 1}],
            "xdp_socket": [{}, {"cookie": 1}]"#,
            "xdp_socket[1].cookie",
        ),
        (
            r#""netconf": [{"interface": "v0", "family": "inet", "forwarding": 1}]"#,
            "netconf[0].forwarding",
        ),
    ] {
        assert_eq!(file(more).unwrap_err().place, place, "{more}");
    }
    assert!(read("[").unwrap_err().problem.starts_with("invalid JSON"));
}
