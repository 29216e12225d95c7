//! Families of helpers that look up routes, in networks of random devices, addresses, routes,
//! rules and neighbours: made in the kernel by `ip`, and read from what it prints.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::{fs, io};

use spec::programs::ProgramType;
use sys::Errno;
use vm::System;

use super::Family;
use super::case::{Case, bytes_at};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        network: Some(network_of_routes),
        ..Family::new("IPv4 routes", |choices| lookup(choices, true))
    },
    Family {
        network: Some(network_of_routes),
        ..Family::new("IPv6 routes", |choices| lookup(choices, false))
    },
];

/// Devices, without the loopback device: pairs of the even one and the odd one behind it.
pub(super) const DEVICES: u32 = 6;

/// An address of a small network, in which routes and packets meet.
pub(super) fn address(choices: &mut Choices<'_>, is_ipv4: bool) -> String {
    let byte = |choices: &mut Choices<'_>| choices.pick(&[0, 0, 1, 2, 3, 128, 255]);
    let [b, c, d] = [byte(choices), byte(choices), byte(choices)];
    match (is_ipv4, choices.below(40)) {
        (true, 0) => format!("192.168.{c}.{d}"),
        (true, 1) => format!("127.0.0.{d}"),
        (true, 2) => format!("224.0.0.{d}"),
        (true, _) => format!("10.{b}.{c}.{d}"),
        (false, 0) => format!("fe80::{d:x}"),
        (false, 1) => format!("ff02::{d:x}"),
        (false, 2) => "::1".to_owned(),
        (false, 3) => format!("fd00::{d:x}"),
        (false, _) => format!("2001:db8:{b:x}:{c:x}::{d:x}"),
    }
}

fn prefix(choices: &mut Choices<'_>, is_ipv4: bool) -> String {
    let bits = match is_ipv4 {
        true => [0, 7, 8, 9, 16, 16, 17, 24, 24, 25, 31, 32],
        false => [0, 7, 16, 32, 41, 48, 48, 56, 64, 64, 127, 128],
    };
    format!("{}/{}", address(choices, is_ipv4), choices.pick(&bits))
}

fn device(choices: &mut Choices<'_>) -> String {
    format!("v{}", choices.below(DEVICES))
}

/// An address of a host on the link of a device.
fn host(choices: &mut Choices<'_>, is_ipv4: bool, device: &str) -> String {
    let number = &device[1..];
    let last = choices.below(4) + 2;
    match is_ipv4 {
        true => format!("10.20{number}.0.{last}"),
        false => format!("2001:db8:20{number}::{last}"),
    }
}

/// A network of the calling thread's namespace, as it is read from what `ip` prints.
pub(super) fn network_of_routes(
    choices: &mut Choices<'_>,
    system: System,
) -> Result<System, Errno> {
    let mut commands = String::new();
    devices(choices, &mut commands);
    run_ip(None, &commands)?;
    let settings = settings(choices)?;
    for (family, is_ipv4) in [("-4", true), ("-6", false)] {
        let mut commands = String::new();
        for _ in 0..10 + choices.below(40) {
            let route = route(choices, is_ipv4);
            // What is appended to an IPv6 route joins its next hops, and `ip` prints the
            // settings of the first one only.
            let verb = match is_ipv4 {
                true => choices.pick(&["add", "append"]),
                false => "add",
            };
            let _ = writeln!(commands, "route {verb} {route}");
        }
        if choices.one_in(2) {
            for _ in 0..choices.below(5) {
                rule(choices, is_ipv4, &mut commands);
            }
        }
        run_ip(Some(family), &commands)?;
    }
    let text = describe(&settings)?;
    let described = kernel::network_file::read(&text);
    let described = described.unwrap_or_else(|error| panic!("{error}\n{text}"));
    Ok(System {
        network: described.network,
        ..system
    })
}

fn devices(choices: &mut Choices<'_>, commands: &mut String) {
    let mut line = |text: String| {
        commands.push_str(&text);
        commands.push('\n');
    };
    line("link set lo up".to_owned());
    for first in (0..DEVICES).step_by(2) {
        let second = first + 1;
        line(format!("link add v{first} type veth peer name v{second}"));
        for number in [first, second] {
            let mtu = choices.pick(&[1500, 1500, 1280, 1400, 9000, 65_535]);
            line(format!("link set v{number} addrgenmode none mtu {mtu}"));
        }
        line(format!("link set v{first} up"));
        if !choices.one_in(3) {
            line(format!("link set v{second} up"));
        }
    }
    for number in 0..DEVICES {
        line(format!("addr add 10.20{number}.0.1/24 dev v{number}"));
        line(format!(
            "addr add 2001:db8:20{number}::1/64 dev v{number} nodad"
        ));
        for _ in 0..choices.below(3) {
            let own = address(choices, true);
            let len = choices.pick(&[8, 16, 24, 32]);
            let scope = choices.pick(&["global", "global", "link", "host"]);
            line(format!("addr add {own}/{len} dev v{number} scope {scope}"));
            let own = address(choices, false);
            let len = choices.pick(&[48, 64, 128]);
            let life = choices.pick(&["", "", " preferred_lft 0"]);
            line(format!("addr add {own}/{len} dev v{number} nodad{life}"));
        }
        for is_ipv4 in [true, false] {
            for _ in 0..3 {
                let host = host(choices, is_ipv4, &format!("v{number}"));
                let (mac, state) = (
                    choices.below(256),
                    choices.pick(&["permanent", "stale", "failed", "noarp"]),
                );
                let lladdr = match state {
                    "failed" => String::new(),
                    _ => format!("lladdr 02:00:00:00:0{number}:{mac:02x} "),
                };
                line(format!(
                    "neigh replace {host} {lladdr}dev v{number} nud {state}"
                ));
            }
        }
        line(format!(
            "neigh replace fe80::{number} lladdr 02:00:00:00:00:0{number} dev v{number}"
        ));
    }
}

/// Sets what no command of `ip` sets; the choice among next hops, as the file of the network
/// describes it.
fn settings(choices: &mut Choices<'_>) -> Result<String, Errno> {
    let set = |path: &str, value: u32| {
        let path = format!("/proc/sys/net/{path}");
        fs::write(path, value.to_string()).map_err(Errno::from)
    };
    // A host that does not forward prefers reachable routers for packets that it receives.
    set("ipv6/conf/all/forwarding", 1)?;
    let names = (0..DEVICES).map(|number| format!("v{number}"));
    for name in names.chain(["lo".to_owned()]) {
        for family in ["ipv4", "ipv6"] {
            let on = |choices: &mut Choices<'_>, chance| u32::from(!choices.one_in(chance));
            set(&format!("{family}/conf/{name}/forwarding"), on(choices, 12))?;
            let path = format!("{family}/conf/{name}/ignore_routes_with_linkdown");
            set(&path, on(choices, 2))?;
        }
    }
    let (seed, has_ports) = (choices.below(1 << 31).max(1), choices.one_in(2));
    set("ipv4/fib_multipath_hash_seed", seed)?;
    set("ipv4/fib_multipath_hash_policy", u32::from(has_ports))?;
    Ok(format!(
        "{{\"seed\": {seed}, \"ipv4_has_ports\": {has_ports}}}"
    ))
}

fn route(choices: &mut Choices<'_>, is_ipv4: bool) -> String {
    let mut text = String::new();
    let kind = match choices.below(10) {
        0 => choices.pick(&["blackhole", "unreachable", "prohibit", "throw", "local"]),
        _ => "",
    };
    let prefix = prefix(choices, is_ipv4);
    let mut add = |part: String| {
        text.push_str(&part);
        text.push(' ');
    };
    add(format!("{kind} {prefix}"));
    if is_ipv4 && choices.one_in(8) {
        add(format!("tos {:#x}", choices.pick(&[4, 8, 16])));
    }
    if !is_ipv4 && choices.one_in(10) {
        add(format!("from {}", self::prefix(choices, false)));
    }
    let is_plain = matches!(kind, "" | "local");
    if kind.is_empty() && choices.one_in(4) {
        for _ in 0..2 + choices.below(3) {
            let device = device(choices);
            let host = host(choices, is_ipv4, &device);
            let weight = choices.below(5) + 1;
            add(format!(
                "nexthop via {host} dev {device} weight {weight} onlink"
            ));
        }
    } else if is_plain {
        let device = device(choices);
        match choices.below(8) {
            0 if is_ipv4 && kind.is_empty() => {
                add(format!(
                    "via inet6 fe80::{} dev {device} onlink",
                    &device[1..]
                ));
            }
            1 if kind.is_empty() && is_ipv4 => {
                add(format!("encap ip6 id 1 dst fe80::9 dev {device}"));
            }
            1 if kind.is_empty() => {
                let mode = choices.pick(&["encap", "inline"]);
                let host = host(choices, false, &device);
                add(format!(
                    "encap seg6 mode {mode} segs 2001:db8::4 via {host} dev {device}"
                ));
            }
            0..=5 if kind.is_empty() => {
                let host = host(choices, is_ipv4, &device);
                add(format!("via {host} dev {device} onlink"));
            }
            _ => add(format!("dev {device}")),
        }
    }
    if choices.one_in(3) {
        add(format!("metric {}", choices.below(4)));
    }
    if choices.one_in(3) {
        // Locked ones are odd: `ip` does not print the lock.
        let mtu = choices.pick(&[1280, 1300, 1301, 1401, 1500, 1499]);
        let lock = if mtu % 2 == 1 { "lock " } else { "" };
        add(format!("mtu {lock}{mtu}"));
    }
    if is_plain && choices.one_in(6) {
        let device = device(choices);
        let own = match is_ipv4 {
            true => format!("10.20{}.0.1", &device[1..]),
            false => format!("2001:db8:20{}::1", &device[1..]),
        };
        add(format!("src {own}"));
    }
    if choices.one_in(4) {
        add(format!(
            "table {}",
            choices.pick(&["local", "default", "7", "8"])
        ));
    }
    if !is_ipv4 && choices.one_in(6) {
        add(format!("pref {}", choices.pick(&["low", "medium", "high"])));
    }
    text
}

fn rule(choices: &mut Choices<'_>, is_ipv4: bool, commands: &mut String) {
    let mut text = String::from("rule add ");
    let mut add = |part: String| {
        text.push_str(&part);
        text.push(' ');
    };
    if choices.one_in(6) {
        add("not".to_owned());
    }
    let from = if choices.one_in(2) {
        prefix(choices, is_ipv4)
    } else {
        "all".to_owned()
    };
    add(format!("from {from}"));
    if choices.one_in(3) {
        add(format!("to {}", prefix(choices, is_ipv4)));
    }
    match choices.below(8) {
        0 => add(format!("iif {}", device(choices))),
        1 => add(format!("oif {}", device(choices))),
        2 => add(format!(
            "fwmark {:#x}/{:#x}",
            choices.below(4),
            choices.pick(&[1, 3, 0xffff_ffffu32])
        )),
        3 => add(format!("tos {:#x}", choices.pick(&[4, 8, 16]))),
        4 => add("ipproto 6 dport 80".to_owned()),
        5 => add("ipproto 17 sport 80-90".to_owned()),
        6 => add("iif lo".to_owned()),
        _ => {}
    }
    let priority = choices.below(8) * 10 + 1;
    add(format!("pref {priority}"));
    match choices.below(8) {
        0 => add(choices
            .pick(&["blackhole", "unreachable", "prohibit"])
            .to_owned()),
        1 => add(format!("goto {}", choices.pick(&[32_766, 91]))),
        2 => add("nop".to_owned()),
        3 => add(format!(
            "table main suppress_prefixlength {}",
            choices.pick(&[0, 8, 16])
        )),
        _ => add(format!("table {}", choices.pick(&[7, 8, 9, 254, 255]))),
    }
    commands.push_str(&text);
    commands.push('\n');
}

/// Gives commands to `ip`, each for itself: a batch ends at the first one that `ip` does not
/// understand. What it or the kernel refuses is not there afterwards.
pub(crate) fn run_ip(family: Option<&str>, commands: &str) -> Result<(), Errno> {
    for command in commands.lines() {
        let mut ip = Command::new("ip");
        ip.args(family).args(command.split_ascii_whitespace());
        ip.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    }
    Ok(())
}

/// The file of the network of this thread's namespace.
fn describe(multipath: &str) -> Result<String, Errno> {
    let print = |arguments: &str| -> io::Result<String> {
        let mut ip = Command::new("ip");
        ip.args(["-N", "-json", "-details"]);
        let output = ip.args(arguments.split(' ')).output()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(if text.is_empty() {
            "[]".to_owned()
        } else {
            text
        })
    };
    let route = print("route show table all")?;
    let mut locked = String::new();
    let mut rest = &route[..];
    while let Some(at) = rest.find("{\"mtu\":") {
        let end = at + rest[at..].find('}').unwrap_or(0);
        locked.push_str(&rest[..end]);
        if rest[..end].ends_with(['1', '3', '5', '7', '9']) {
            locked.push_str(",\"lock\":true");
        }
        rest = &rest[end..];
    }
    locked.push_str(rest);
    Ok(format!(
        "{{\"addr\": {}, \"route\": {locked}, \"rule\": {}, \"rule6\": {}, \"neigh\": {}, \
         \"netconf\": {}, \"multipath\": {multipath}}}",
        print("addr")?,
        print("rule")?,
        print("-6 rule")?,
        print("neigh show nud all")?,
        print("netconf")?,
    ))
}

/// A program that looks up the route of a packet.
fn lookup(choices: &mut Choices<'_>, is_ipv4: bool) -> Case {
    let mut params: Vec<u8> = (0..64).map(|_| choices.below(256) as u8).collect();
    params[0] = match choices.below(20) {
        0 => choices.below(12) as u8,
        _ if is_ipv4 => 2,
        _ => 10,
    };
    params[1] = choices.pick(&[6, 17, 17, 1, 0]);
    let port = |choices: &mut Choices<'_>| choices.pick(&[80u16, 85, 443]).to_be_bytes();
    params[2..4].copy_from_slice(&port(choices));
    params[4..6].copy_from_slice(&port(choices));
    let len = choices.pick(&[
        0u16, 0, 60, 1280, 1281, 1300, 1301, 1400, 1500, 1501, 9000, 65_535,
    ]);
    params[6..8].copy_from_slice(&len.to_ne_bytes());
    let index = match choices.below(20) {
        0 => choices.below(20),
        // Those of a namespace come behind the loopback device.
        _ => 2 + choices.below(DEVICES),
    };
    params[8..12].copy_from_slice(&index.to_ne_bytes());
    let class = choices.pick(&[0u32, 0, 4, 8, 16, 0x14, 0xff, 17]);
    let class = match is_ipv4 {
        true => class.to_ne_bytes(),
        false => (class << 20 | choices.below(1 << 20)).to_be_bytes(),
    };
    params[12..16].copy_from_slice(&class);
    for at in [16, 32] {
        let mut text = address(choices, is_ipv4);
        if choices.one_in(4) {
            let device = device(choices);
            text = host(choices, is_ipv4, &device);
        }
        match text.parse().expect("an address") {
            std::net::IpAddr::V4(ip) => params[at..at + 4].copy_from_slice(&ip.octets()),
            std::net::IpAddr::V6(ip) => params[at..at + 16].copy_from_slice(&ip.octets()),
        }
    }
    let known = choices.below(64);
    let flags = match choices.below(20) {
        0 => choices.value() as u32,
        1..=8 => 0,
        _ => known,
    };
    let word = match (flags & 8 != 0, choices.one_in(2)) {
        (true, _) => choices.pick(&[7u32, 8, 9, 253, 254, 255, 0]),
        (false, _) => choices.below(4),
    };
    params[48..52].copy_from_slice(&word.to_ne_bytes());
    params[52..56].copy_from_slice(&choices.below(5).to_ne_bytes());
    let size = choices.pick(&[64, 64, 64, 64, 64, 64, 64, 64, 65, 63, 1]);
    let stores = bytes_at(72, &params);
    let kind = choices.pick(&[
        ProgramType::Xdp,
        ProgramType::SchedCls,
        ProgramType::SchedAct,
    ]);
    // The structure becomes the start of the packet.
    let store = match kind {
        ProgramType::Xdp => "call 190\n",
        _ => "r5 = 0\ncall 9\n",
    };
    let text = format!(
        "r6 = r1\n*(u64 *)(r10 - 8) = 5\n{stores}r1 = r6\nr2 = r10\nr2 += -72\nr3 = {size}\n\
         r4 = {flags:#x} ll\ncall 69\nr9 = r0\nr1 = r6\nr2 = 0\nr3 = r10\nr3 += -72\nr4 = 72\n\
         {store}r0 = r9\nexit"
    );
    let frame = choices.pick(&[100, 1294, 1298, 1299, 1414, 1418, 1514, 1518, 1519, 3000]);
    let mut packet: Vec<u8> = (0..frame).map(|_| choices.below(256) as u8).collect();
    packet[12..14].copy_from_slice(&[8, 0]);
    Case {
        packet,
        ..Case::new(kind, text)
    }
}
