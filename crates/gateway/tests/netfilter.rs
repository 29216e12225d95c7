//! Imported rules match packets as the kernel's netfilter does: the rules are loaded in a network
//! namespace of our own, printed by iptables-save or nft, and imported; then packets are sent to
//! its device, and a chain behind all others records those that are accepted.

use crate::support;
use std::process::Command;
use std::thread;

use crate::support::netfilter::{Netfilter, repair, run};
use crate::support::traffic::Traffic;
use beebox_gateway::import::{
    Assumptions, ConnectionState, Fate, Imported, Variant, iptables_save, nft_json,
};
use beebox_gateway::{Action, Header, RuleSet};

/// Packets of each set.
const PACKETS: usize = 4_000;

/// Names the device as usual, has it take packets for any address, and tracks connections by
/// headers alone.
const PREPARE: &str = "set -e
ip link set lo up
ip link set bee0 down
ip link set bee0 name eth0
ip link set eth0 up
cd /proc/sys/net
echo 0 > ipv6/conf/eth0/disable_ipv6
for name in all eth0; do
	echo 0 > ipv4/conf/$name/rp_filter
	echo 1 > ipv4/conf/$name/accept_local
done
echo 1 > ipv4/ip_forward
echo 0 > netfilter/nf_conntrack_checksum
";

/// Routes of packets to the host itself, and through it to another device.
const TO_THE_HOST: &str = "ip route add local 0.0.0.0/0 dev lo
ip -6 route add local ::/0 dev lo
";
const THROUGH: &str = "ip link add docker0 type veth peer name far0
ip link set docker0 up
ip link set far0 up
ip route add default dev docker0
ip neigh add 172.17.0.1 lladdr 02:00:00:00:00:09 dev docker0
";

/// Records what arrives and what is accepted, and sends nothing in answer, so that no
/// connection becomes established.
const PROBE: &str = "table netdev arrived {
	set seen { type ether_addr; size 65535; flags dynamic; }
	chain at { type filter hook ingress device \"eth0\" priority 0; add @seen { ether saddr }; }
}
table inet probe {
	set seen { type ether_addr; size 65535; flags dynamic; }
	chain at_input { type filter hook input priority 300; add @seen { ether saddr }; }
	chain at_forward { type filter hook forward priority 300; add @seen { ether saddr }; }
	chain at_output { type filter hook output priority -300; policy drop; }
}
";

#[derive(Clone, Copy, PartialEq)]
enum Tool {
    Iptables,
    Ip6tables,
    Nft,
}

struct Case {
    name: &'static str,
    tool: Tool,
    text: &'static str,
    routes: &'static str,
    chain: &'static str,
    out_interface: Option<&'static str>,
    /// Later fragments are among the packets: nothing tracks connections, which would put them
    /// together.
    has_fragments: bool,
    /// Reasons of rules that are left out.
    left_out: &'static [&'static str],
}

const CASES: [Case; 7] = [
    Case {
        name: "ufw",
        tool: Tool::Iptables,
        text: include_str!("import/ufw.rules"),
        routes: TO_THE_HOST,
        chain: "INPUT",
        out_interface: None,
        has_fragments: false,
        left_out: &[],
    },
    Case {
        name: "docker",
        tool: Tool::Iptables,
        text: include_str!("import/docker.rules"),
        routes: THROUGH,
        chain: "FORWARD",
        out_interface: Some("docker0"),
        has_fragments: false,
        left_out: &[],
    },
    Case {
        name: "router",
        tool: Tool::Iptables,
        text: include_str!("import/router.rules"),
        routes: THROUGH,
        chain: "FORWARD",
        out_interface: Some("docker0"),
        has_fragments: true,
        left_out: &[],
    },
    Case {
        name: "kube-proxy",
        tool: Tool::Iptables,
        text: include_str!("import/kube.rules"),
        routes: TO_THE_HOST,
        chain: "INPUT",
        out_interface: None,
        has_fragments: false,
        // Of packets to 127.0.0.0/8, which the kernel takes from no device.
        left_out: &["connection state DNAT is unsupported"],
    },
    Case {
        name: "IPv6",
        tool: Tool::Ip6tables,
        text: include_str!("import/six.rules"),
        routes: TO_THE_HOST,
        chain: "INPUT",
        out_interface: None,
        has_fragments: false,
        left_out: &[],
    },
    Case {
        name: "firewalld",
        tool: Tool::Nft,
        text: include_str!("import/firewalld.nft"),
        routes: TO_THE_HOST,
        chain: "inet firewalld filter_INPUT",
        out_interface: None,
        has_fragments: false,
        left_out: &[],
    },
    Case {
        name: "server",
        tool: Tool::Nft,
        text: include_str!("import/server.nft"),
        routes: TO_THE_HOST,
        chain: "inet server input",
        out_interface: None,
        has_fragments: false,
        left_out: &[],
    },
];

/// The variant that printed a file; that of this system for files written by hand.
fn variant(text: &str) -> Variant {
    Variant::of_save(text).unwrap_or(Variant::Nft)
}

impl Case {
    /// Loads the rules into the kernel; returns what the tool prints.
    fn load(&self) -> String {
        match self.tool {
            Tool::Iptables => {
                run("iptables-restore", &[], self.text);
                run("iptables-save", &[], "")
            }
            Tool::Ip6tables => {
                run("ip6tables-restore", &[], self.text);
                run("ip6tables-save", &[], "")
            }
            Tool::Nft => {
                run("nft", &["-f", "-"], self.text);
                run("nft", &["-j", "list", "ruleset"], "")
            }
        }
    }

    fn import(&self, text: &str) -> Imported {
        let assumptions = Assumptions {
            in_interface: Some("eth0".to_owned()),
            out_interface: self.out_interface.map(str::to_owned),
            state: Some(ConnectionState::New),
        };
        let imported = match self.tool {
            Tool::Nft => nft_json(text, Some(self.chain), &assumptions),
            _ => iptables_save(text, Some(self.chain), variant(text), &assumptions),
        };
        let imported = imported.unwrap();
        let text = imported.set.to_string();
        assert_eq!(RuleSet::parse(&text).as_ref(), Ok(&imported.set), "{text}");
        let left_out = imported
            .remarks
            .iter()
            .filter(|it| it.fate == Fate::LeftOut);
        let left_out: Vec<&str> = left_out.map(|it| &*it.reason).collect();
        assert_eq!(left_out, self.left_out, "{}", self.name);
        imported
    }

    /// Compares the verdicts; true if there is a netfilter to compare with.
    fn compare(&self) -> bool {
        let Some(netfilter) = Netfilter::enter("imported rules and netfilter") else {
            return false;
        };
        if Command::new("iptables").arg("--version").output().is_err() {
            oracle::skip("imported rules and netfilter", "there is no iptables");
            return false;
        }
        run("sh", &["-c", &format!("{PREPARE}{}", self.routes)], "");
        let text = self.load();
        let set = self.import(&text).set;
        run("nft", &["-f", "-"], PROBE);
        let mut traffic = Traffic::new(&set, self.tool == Tool::Ip6tables, 77);
        traffic.has_fragments = self.has_fragments;
        let mut frames: Vec<Vec<u8>> = (0..PACKETS)
            .map(|_| {
                let mut frame = traffic.frame();
                frame[..6].copy_from_slice(&netfilter.address);
                repair(&mut frame);
                frame
            })
            .collect();
        let arrived = ["netdev", "arrived", "seen"];
        let seen = netfilter.verdict_of(&mut frames, &arrived, |seen| seen.len() == PACKETS);
        assert_eq!(seen.len(), PACKETS, "{}: frames that arrived", self.name);
        let accepted = support::netfilter::read_set(&["inet", "probe", "seen"]);
        let mut counts = [0; 2];
        for (number, frame) in (0u32..).zip(&frames) {
            let header = Header::of(frame);
            let rule = set.first_match(&header).rule;
            let is_passed = *set.action(rule) != Action::Drop;
            counts[usize::from(is_passed)] += 1;
            assert_eq!(
                accepted.contains_key(&number),
                is_passed,
                "{}: {header:?}, rule {rule}\n{set}\n{text}",
                self.name
            );
        }
        println!("{}: {} dropped, {} passed", self.name, counts[0], counts[1]);
        assert!(
            counts.iter().all(|count| *count > PACKETS / 50),
            "{counts:?}"
        );
        true
    }
}

#[oracle::test]
fn imported_rules_match_as_netfilter_does() {
    for case in &CASES {
        // A namespace belongs to a thread.
        if !thread::spawn(|| case.compare()).join().unwrap() {
            return;
        }
    }
}

#[oracle::test]
fn rules_as_they_are_written_can_be_imported() {
    for case in CASES.iter().filter(|case| case.tool != Tool::Nft) {
        assert!(!case.import(case.text).set.rules.is_empty());
    }
}
