//! Packets whose transport header is cut off, and fragments, meet imported rules as they meet
//! those rules in netfilter: loaded by both variants of iptables, and as expressions of nftables,
//! in a network namespace of our own.

use crate::support;
use std::process::Command;
use std::thread;

use crate::support::netfilter::{Netfilter, repair, run};
use beebox::internal::run::{LoadOptions, SplitMix};
use beebox_gateway::import::{Assumptions, Fate, Variant, iptables_save, nft_json};
use beebox_gateway::{Action, Capacity, Compiled, Header, Hook, Plane, RuleSet};

/// Records what arrives, and what the rules let pass.
const PROBE: &str = "table netdev arrived {
	set seen { type ether_addr; size 65535; flags dynamic; }
	chain at { type filter hook ingress device \"bee0\" priority 0; add @seen { ether saddr }; }
}
table inet probe {
	set seen { type ether_addr; size 65535; flags dynamic; }
	chain at { type filter hook prerouting priority -290; policy drop; add @seen { ether saddr }; }
}
";

const RULES: &str = "*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:office - [0:0]
:counted - [0:0]
-A INPUT -s 10.9.0.0/16 -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -j DROP
-A INPUT -s 10.1.0.0/16 -p udp -j office
-A INPUT -s 10.2.0.0/16 -p tcp -m tcp -j ACCEPT
-A INPUT -s 10.2.0.0/16 -p sctp -m sctp --sport 1000
-A INPUT -s 10.3.0.0/16 -j counted
-A INPUT -p tcp -m tcp --dport 81 -j DROP
-A INPUT -p tcp -m multiport --dports 82,83 -j DROP
-A INPUT -p udp -m udp --sport 1000 --dport 81 -j DROP
-A INPUT -p sctp -m sctp ! --dport 80 -j DROP
-A office -p udp -m multiport --ports 80,82 -j RETURN
-A office -p udp -m udp --sport 900:1100 -j DROP
-A counted -p tcp -m tcp --dport 9 -j RETURN
-A counted -p udp -m udp --sport 9
-A counted -p icmp -m icmp --icmp-type 0 -j ACCEPT
-A counted -p 47 -j DROP
COMMIT
";

const RULES_V6: &str = "*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -s 2001:db8:9::/48 -j ACCEPT
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j DROP
-A INPUT -p tcp -m tcp --dport 81 -j DROP
-A INPUT -p udp -m multiport --dports 81,82 -j DROP
-A INPUT -s 2001:db8:1::/48 -p udp -m udp --sport 1000 -j ACCEPT
-A INPUT -p sctp -m sctp --dport 81 -j DROP
COMMIT
";

const TABLE: &str = "table ip rules {
	chain input {
		type filter hook prerouting priority -300; policy drop;
		ip saddr 10.9.0.0/16 accept
		meta l4proto { tcp, udp } th dport 81 accept
		tcp sport 1000 tcp dport != 82 accept
		icmp type 8 accept
		meta l4proto sctp th dport vmap { 80 : accept, 82 : drop }
		meta l4proto { tcp, udp } th sport . th dport { 1000 . 83, 1001 . 80 } accept
		udp dport 1-100 accept
	}
}
";

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Packets from some sources with each protocol: with so many bytes of it, as a whole packet, a
/// first fragment, and fragments at 8 and 16 bytes; some with bytes behind their end. Data of later
/// fragments are zeros, as nftables reads ports out of them.
fn frames(netfilter: &Netfilter, is_v6: bool) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let icmp = if is_v6 { 58 } else { 1 };
    for source in [1, 2, 3, 9] {
        for protocol in [TCP, UDP, SCTP, icmp, 47] {
            for len in [0, 2, 4, 7, 8, 11, 12, 19, 20, 24] {
                for (port, fragment) in [(80, 0), (81, 0), (82, 0), (83, 1), (81, 8), (82, 16)] {
                    let first = if protocol == icmp {
                        [8, 0, 0, 0]
                    } else {
                        [3, 232, 0, port]
                    };
                    let mut transport = [&first[..], &[0; 20]].concat();
                    transport[4..6].copy_from_slice(&[0, 8]);
                    if fragment >= 8 {
                        transport.fill(0);
                    }
                    transport.truncate(len);
                    let mut frame = netfilter.address.to_vec();
                    frame.extend([0; 6]);
                    let bytes = u8::try_from(fragment & !7).unwrap();
                    match is_v6 {
                        false => {
                            let position = [u8::from(fragment & 1 != 0) << 5, bytes / 8];
                            frame.extend([0x08, 0, 0x45, 0, 0, 0, 0, 1]);
                            frame.extend([position[0], position[1], 64, protocol, 0, 0]);
                            frame.extend([10, source, 2, 3, 192, 0, 2, 1]);
                        }
                        true => {
                            let next = if fragment == 0 { protocol } else { 44 };
                            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, next, 64]);
                            frame.extend([0x20, 1, 0x0d, 0xb8, 0, source, 0, 0]);
                            frame.extend([0, 0, 0, 0, 0, 0, 0, 1]);
                            frame.extend([0x20, 1, 0x0d, 0xb8, 0, 7, 0, 0]);
                            frame.extend([0, 0, 0, 0, 0, 0, 0, 1]);
                            if fragment != 0 {
                                let more = u8::from(fragment & 1 != 0);
                                frame.extend([protocol, 0, 0, bytes | more, 0, 0, 0, 1]);
                            }
                        }
                    }
                    frame.extend(transport);
                    repair(&mut frame);
                    if len % 4 == 0 && frame.len() < 60 {
                        // As Ethernet fills short frames up.
                        frame.resize(60, 0x51);
                    }
                    frames.push(frame);
                }
            }
        }
    }
    frames
}

/// Compares the rules that `load` puts into the kernel and returns; false if there is nothing to
/// compare with.
fn compare(name: &str, is_v6: bool, load: &dyn Fn() -> Option<RuleSet>) -> bool {
    let Some(netfilter) = Netfilter::enter("cut headers and netfilter") else {
        return false;
    };
    let prepare = "echo 0 > /proc/sys/net/ipv6/conf/bee0/disable_ipv6; ip link set bee0 up";
    run("sh", &["-c", prepare], "");
    let Some(set) = load() else {
        return false;
    };
    run("nft", &["-f", "-"], PROBE);
    let mut frames = frames(&netfilter, is_v6);
    let count = frames.len();
    let arrived = ["netdev", "arrived", "seen"];
    let seen = netfilter.verdict_of(&mut frames, &arrived, |seen| seen.len() == count);
    assert_eq!(seen.len(), count, "{name}: frames that arrived");
    let accepted = support::netfilter::read_set(&["inet", "probe", "seen"]);
    let compiled = Compiled::new(&set).unwrap();
    let (table, kernel) = (compiled.table(), kernel_data::linux_6_18());
    let (capacity, options) = (Capacity::of(table), LoadOptions::default());
    let plane = Plane::load(table, Hook::Xdp, capacity, &kernel, true, &options).unwrap();
    let mut random = SplitMix::new(1);
    let mut program = plane.program(Hook::Xdp, 0, &mut random).unwrap();
    let mut dropped = 0;
    for (number, frame) in (0u32..).zip(&frames) {
        let header = Header::of(frame);
        let rule = set.first_match(&header).rule;
        let is_dropped = *set.action(rule) == Action::Drop;
        dropped += usize::from(is_dropped);
        program.test_run(frame).unwrap();
        assert_eq!(
            plane.last_rule(0).unwrap(),
            Some(rule),
            "{name}: {header:?}"
        );
        let is_accepted = accepted.contains_key(&number);
        assert_ne!(
            is_accepted, is_dropped,
            "{name}: {header:?}, rule {rule}\n{set}"
        );
    }
    assert!(
        dropped > count / 8 && dropped < count * 7 / 8,
        "{dropped} of {count}"
    );
    true
}

/// Loads rules for what arrives, before connections are tracked; returns those for the chain INPUT.
fn iptables(tool: &str, rules: &str) -> Option<RuleSet> {
    if Command::new(tool).arg("--version").output().is_err() {
        oracle::skip("cut headers and netfilter", format!("there is no {tool}"));
        return None;
    }
    let raw = rules
        .replace("*filter", "*raw")
        .replace("INPUT", "PREROUTING");
    let raw = raw.replace(":FORWARD ACCEPT [0:0]\n", "");
    run(&format!("{tool}-restore"), &[], &raw);
    let text = run(&format!("{tool}-save"), &[], "");
    let text = text
        .replace("*raw", "*filter")
        .replace("PREROUTING", "INPUT");
    let expected = match tool.ends_with("legacy") {
        true => Variant::Legacy,
        false => Variant::Nft,
    };
    assert_eq!(Variant::of_save(&text), Some(expected), "{text}");
    let imported = iptables_save(&text, Some("INPUT"), expected, &Assumptions::default()).unwrap();
    assert!(
        imported.remarks.iter().all(|it| it.fate != Fate::LeftOut),
        "{:?}",
        imported.remarks
    );
    let text = imported.set.to_string();
    assert_eq!(RuleSet::parse(&text).as_ref(), Ok(&imported.set), "{text}");
    Some(imported.set)
}

fn nftables() -> Option<RuleSet> {
    run("nft", &["-f", "-"], TABLE);
    let text = run("nft", &["-j", "list", "ruleset"], "");
    let imported = nft_json(&text, None, &Assumptions::default()).unwrap();
    assert!(imported.remarks.is_empty(), "{:?}", imported.remarks);
    Some(imported.set)
}

#[oracle::test]
fn packets_with_cut_headers_fare_as_in_netfilter() {
    type Load = fn() -> Option<RuleSet>;
    let cases: [(&str, bool, Load); 5] = [
        ("iptables-legacy", false, || {
            iptables("iptables-legacy", RULES)
        }),
        ("iptables-nft", false, || iptables("iptables-nft", RULES)),
        ("ip6tables-legacy", true, || {
            iptables("ip6tables-legacy", RULES_V6)
        }),
        ("ip6tables-nft", true, || {
            iptables("ip6tables-nft", RULES_V6)
        }),
        ("nftables", false, nftables),
    ];
    for (name, is_v6, load) in cases {
        // A namespace belongs to a thread.
        if !thread::spawn(move || compare(name, is_v6, &load))
            .join()
            .unwrap()
        {
            return;
        }
    }
}

#[oracle::test]
fn ports_of_any_protocol_are_left_out() {
    let rule = |expr: &str| {
        let table = r#"{"table": {"family": "ip", "name": "t", "handle": 1}}"#;
        let chain = r#"{"chain": {"family": "ip", "table": "t", "name": "c", "handle": 1,
            "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}"#;
        let text = format!(
            r#"{{"nftables": [{table}, {chain}, {{"rule": {{"family": "ip", "table": "t",
            "chain": "c", "handle": 2, "expr": [{expr}]}}}}]}}"#
        );
        nft_json(&text, None, &Assumptions::default()).unwrap()
    };
    let port = r#"{"match": {"op": "==", "left": {"payload": {"protocol": "th", "field": "dport"}}, "right": 81}}"#;
    let of = |protocols: &str| {
        format!(
            r#"{{"match": {{"op": "==", "left": {{"meta": {{"key": "l4proto"}}}}, "right": {protocols}}}}}, "#
        )
    };
    let accept = r#", {"accept": null}"#;
    for (expr, is_left_out) in [
        (format!("{port}{accept}"), true),
        (
            format!("{}{port}{accept}", of(r#"{"set": ["tcp", "udp"]}"#)),
            false,
        ),
        (format!("{}{port}{accept}", of("\"icmp\"")), true),
        (
            format!("{}{port}{accept}", of(r#"{"set": ["tcp", "gre"]}"#)),
            true,
        ),
    ] {
        let imported = rule(&expr);
        let reasons: Vec<&str> = imported.remarks.iter().map(|it| &*it.reason).collect();
        assert_eq!(
            imported.set.rules.len(),
            2 - usize::from(is_left_out),
            "{expr}"
        );
        assert_eq!(reasons.len(), usize::from(is_left_out), "{expr}");
        assert!(
            reasons.iter().all(|it| it.starts_with("th reads")),
            "{reasons:?}"
        );
    }
}
