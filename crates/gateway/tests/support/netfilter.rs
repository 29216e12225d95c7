//! The kernel's netfilter in a network namespace of our own: a device that gets frames, and a
//! set of nftables that records for each frame, by its source address, what became of it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use beebox_gateway::{Action, RuleSet};
use serde_json::Value;
use sys::network::OwnNamespace;
use sys::socket::{PacketLayer, PacketSocket};

/// Runs a program with text as its input; returns what it prints.
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {said}\n{input}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A namespace with a pair of devices. It belongs to a thread.
pub(crate) struct Netfilter {
    _namespace: OwnNamespace,
    sender: PacketSocket,
    /// The address of the device.
    pub(crate) address: [u8; 6],
}

impl Netfilter {
    /// `None` if this process may have no namespace, or there is no nft.
    pub(crate) fn enter(what: &str) -> Option<Netfilter> {
        if Command::new("nft").arg("--version").output().is_err() {
            oracle::skip(what, "there is no nft");
            return None;
        }
        let Ok(namespace) = OwnNamespace::enter() else {
            oracle::skip(what, "no network namespace of our own");
            return None;
        };
        let [near, far] = namespace.create_ethernet_pair().unwrap();
        Some(Netfilter {
            _namespace: namespace,
            sender: PacketSocket::open(far.ifindex, PacketLayer::Link).unwrap(),
            address: near.address,
        })
    }

    /// Sends frames, each with its number as its source address. Waits until as many as expected
    /// are recorded in a set; returns the set: by number what was recorded beside it.
    pub(crate) fn verdict_of(
        &self,
        frames: &mut [Vec<u8>],
        set: &[&str],
        is_complete: impl Fn(&HashMap<u32, u32>) -> bool,
    ) -> HashMap<u32, u32> {
        for (number, frame) in (0u32..).zip(frames.iter_mut()) {
            frame[6..8].copy_from_slice(&[2, 0]);
            frame[8..12].copy_from_slice(&number.to_be_bytes());
            self.sender.send(frame).unwrap();
        }
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let recorded = read_set(set);
            if is_complete(&recorded) || Instant::now() > end {
                return recorded;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The elements of a set `type ether_addr` or `type ether_addr . mark`.
pub(crate) fn read_set(set: &[&str]) -> HashMap<u32, u32> {
    let text = run("nft", &[&["-j", "list", "set"], set].concat(), "");
    let whole: Value = serde_json::from_str(&text).unwrap();
    let objects = whole["nftables"].as_array().unwrap();
    let set = objects.iter().find_map(|it| it.get("set")).unwrap();
    let elements = set["elem"].as_array().cloned().unwrap_or_default();
    let number = |address: &Value| {
        let bytes = address.as_str().unwrap().split(':');
        let bytes = bytes.map(|byte| u32::from_str_radix(byte, 16).unwrap());
        bytes.skip(2).fold(0, |number, byte| number << 8 | byte)
    };
    let entry = |element: &Value| match element["concat"].as_array() {
        Some(parts) => (number(&parts[0]), parts[1].as_u64().unwrap() as u32),
        None => (number(element), 1),
    };
    elements.iter().map(entry).collect()
}

/// Writes the length and the checksum of an IP packet to its header.
pub(crate) fn repair(frame: &mut [u8]) {
    let mut start = 12;
    while frame[start..start + 2] == [0x81, 0] {
        start += 4;
    }
    let kind = [frame[start], frame[start + 1]];
    let ip = &mut frame[start + 2..];
    let len = ip.len() as u16;
    match kind {
        [0x08, 0x00] => {
            ip[2..4].copy_from_slice(&len.to_be_bytes());
            ip[10..12].fill(0);
            let Some(header) = ip.get(..usize::from(ip[0] & 15) * 4) else {
                return;
            };
            let sum = header.chunks(2).fold(0u32, |sum, pair| {
                sum + u32::from(pair[0]) * 256 + u32::from(pair[1])
            });
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        [0x86, 0xdd] => ip[4..6].copy_from_slice(&(len - 40).to_be_bytes()),
        _ => {}
    }
}

/// The table of nftables that judges frames at `bee0` as a set of rules does and records
/// the rule of each in the set `netdev gateway seen`. Rules must not ask for unknown ports.
pub(crate) fn table_of(set: &RuleSet) -> String {
    let mut text = "table netdev gateway {\n\
        set seen { type ether_addr . mark; size 65535; flags dynamic; }\n\
        chain on { add @seen { ether saddr . meta mark } accept; }\n\
        chain off { add @seen { ether saddr . meta mark } drop; }\n\
        chain rules {\ntype filter hook ingress device \"bee0\" priority 0; policy accept;\n"
        .to_owned();
    for (number, rule) in (1..).zip(&set.rules) {
        for (is_v6, family) in [(false, "ip"), (true, "ip6")] {
            assert!(rule.headers.is_any());
            let whole = beebox_gateway::Addresses::default();
            let mut line = format!("meta protocol {family}");
            let mut is_empty = false;
            for (addresses, side) in [(&rule.source, "saddr"), (&rule.destination, "daddr")] {
                let ranges = addresses.ranges(is_v6);
                is_empty |= ranges.is_empty();
                if ranges != whole.ranges(is_v6) {
                    let address = |value: u128| match is_v6 {
                        true => std::net::Ipv6Addr::from(value).to_string(),
                        false => std::net::Ipv4Addr::from(value as u32).to_string(),
                    };
                    let ranges = ranges.iter().map(|(first, last)| match first == last {
                        true => address(*first),
                        false => format!("{}-{}", address(*first), address(*last)),
                    });
                    let list: Vec<String> = ranges.collect();
                    write!(line, " {family} {side} {{ {} }}", list.join(", ")).unwrap();
                }
            }
            if is_empty {
                continue;
            }
            if !rule.protocols.is_any() {
                let not = if rule.protocols.is_negated { "!= " } else { "" };
                let list: Vec<String> = rule.protocols.list.iter().map(u8::to_string).collect();
                write!(line, " meta l4proto {not}{{ {} }}", list.join(", ")).unwrap();
            }
            let kinds = rule.protocols.have_types();
            let fields = [
                (
                    &rule.source_ports,
                    if kinds { "@th,0,8" } else { "th sport" },
                ),
                (
                    &rule.destination_ports,
                    if kinds { "@th,8,8" } else { "th dport" },
                ),
            ];
            // Sets of raw payload have no type: types of ICMP are one a rule.
            for (ports, field) in fields {
                assert!(!ports.has_unknown);
                if ports.is_any() {
                    continue;
                }
                let ranges = ports
                    .ranges
                    .iter()
                    .map(|(first, last)| match first == last {
                        true => first.to_string(),
                        false => format!("{first}-{last}"),
                    });
                let list: Vec<String> = ranges.collect();
                let not = if ports.is_negated { "!= " } else { "" };
                match kinds {
                    true => write!(line, " {field} {not}{}", list[0]).unwrap(),
                    false => write!(line, " {field} {not}{{ {} }}", list.join(", ")).unwrap(),
                }
            }
            writeln!(
                text,
                "{line} meta mark set {number} goto {}",
                chain(&rule.action)
            )
            .unwrap();
        }
    }
    for family in ["ip", "ip6"] {
        let default = chain(&set.default);
        writeln!(
            text,
            "meta protocol {family} meta mark set 0 goto {default}"
        )
        .unwrap();
    }
    text + "}\n}\n"
}

fn chain(action: &Action) -> &'static str {
    match action {
        Action::Drop => "off",
        _ => "on",
    }
}
