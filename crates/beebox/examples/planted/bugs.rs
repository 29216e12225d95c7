//! Programs with a planted bug each (tests/data/planted), and a property that says what they should do.

use beebox::fuzz::{FuzzRun, Fuzzer, Property};
use beebox::{Error, Object};

/// A program with a bug.
pub(super) struct Bug {
    /// Name of the object and of its program.
    pub(super) name: &'static str,
    /// The bug.
    pub(super) what: &'static str,
    /// What does not hold, in words.
    pub(super) property: &'static str,
    holds: Holds,
}

enum Holds {
    Expect,
    Idempotent,
    /// No run has this verdict, whatever a map holds.
    Never(&'static str, &'static str),
    Check(fn(&FuzzRun<'_>) -> bool),
}

impl Bug {
    /// A fuzzer that looks for it.
    pub(super) fn fuzzer(&self) -> Result<Fuzzer, Error> {
        let path = format!("crates/beebox/tests/data/planted/{}.bpf.o", self.name);
        let object = Object::open(path)?;
        let property = match self.holds {
            Holds::Expect => Property::expect(self.property).expect("an expectation"),
            Holds::Idempotent => Property::idempotent(),
            Holds::Never(verdict, _) => Property::never(verdict, None).expect("a verdict"),
            Holds::Check(holds) => Property::check(self.property, move |run| match holds(run) {
                true => Ok(()),
                false => Err(format!("got {}", run.verdict)),
            }),
        };
        let fuzzer = Fuzzer::new(&object, self.name).property(property);
        Ok(match self.holds {
            Holds::Never(_, map) => fuzzer.vary(map),
            Holds::Expect | Holds::Idempotent | Holds::Check(_) => fuzzer,
        })
    }
}

const fn bug(name: &'static str, what: &'static str, property: &'static str, holds: Holds) -> Bug {
    Bug {
        name,
        what,
        property,
        holds,
    }
}

/// All of them.
pub(super) const BUGS: [Bug; 15] = [
    bug(
        "vlan",
        "a second VLAN tag",
        "UDP to port 4444 is dropped",
        Holds::Check(vlan),
    ),
    bug(
        "options",
        "options of IPv4",
        "TCP to port 23 is dropped",
        Holds::Check(options),
    ),
    bug(
        "fragment",
        "an offset that is not swapped",
        "fragments pass",
        Holds::Check(fragment),
    ),
    bug(
        "extension",
        "length of an IPv6 extension header",
        "TCP to port 23 is dropped",
        Holds::Check(extension),
    ),
    bug(
        "fragment6",
        "length of an IPv6 fragment header",
        "UDP to port 53 is dropped",
        Holds::Check(fragment6),
    ),
    bug(
        "segment",
        "a chain of options of TCP",
        "instructions <= 90",
        Holds::Expect,
    ),
    bug(
        "tunnel",
        "the key of GRE",
        "packets to 203.0.113.7 in GRE are dropped",
        Holds::Check(tunnel),
    ),
    bug(
        "length",
        "a length below that of the header",
        "a message fits a packet",
        Holds::Check(length),
    ),
    bug(
        "strip",
        "a second VLAN tag stays",
        "idempotent",
        Holds::Idempotent,
    ),
    bug(
        "bucket",
        "a token bucket after a pause",
        "a bucket has ten tokens at most",
        Holds::Check(bucket),
    ),
    bug(
        "track",
        "a table of states after five segments",
        "a closed connection passes nothing",
        Holds::Check(track),
    ),
    bug(
        "idle",
        "an age in 32 bits of nanoseconds",
        "nothing passes a minute after a query",
        Holds::Check(idle),
    ),
    bug(
        "vxlan",
        "a VLAN tag inside VXLAN",
        "TCP to port 3306 of network 7000 is dropped",
        Holds::Check(vxlan),
    ),
    bug(
        "mss",
        "the length of an option of TCP",
        "a SYN asks for 1400 bytes at most",
        Holds::Check(mss),
    ),
    bug(
        "wide",
        "wide numbers in a packet and a map",
        "never XDP_ABORTED",
        Holds::Never("XDP_ABORTED", "listen"),
    ),
];

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Where the network header begins, behind up to so many VLAN tags, and its type.
fn network(packet: &[u8], tags: usize) -> Option<(usize, u16)> {
    let mut at = 12;
    for _ in 0..tags {
        if let 0x8100 | 0x88a8 = number(packet, at)? {
            at += 4;
        }
    }
    Some((at + 2, number(packet, at)?))
}

fn vlan(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let (at, kind) = network(run.packet, 2)?;
        let is_udp = run.packet.get(at)? & 15 == 5 && run.packet.get(at + 9)? == &17;
        Some(kind == 0x0800 && is_udp && number(run.packet, at + 22)? == 4444)
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn options(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let (at, kind) = network(run.packet, 0)?;
        let len = usize::from(run.packet.get(at)? & 15) * 4;
        let is_tcp = len >= 20 && run.packet.get(at + 9)? == &6;
        Some(kind == 0x0800 && is_tcp && number(run.packet, at + len + 2)? == 23)
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn fragment(run: &FuzzRun<'_>) -> bool {
    let is_fragment = || {
        let (at, kind) = network(run.packet, 0)?;
        Some(kind == 0x0800 && number(run.packet, at + 6)? & 0x1fff != 0)
    };
    is_fragment() != Some(true) || run.verdict == "XDP_PASS"
}

/// The protocol behind extension headers of these kinds, and where it begins.
fn behind(packet: &[u8], kinds: &[u8], most: usize) -> Option<(u8, usize)> {
    let (at, kind) = network(packet, 0)?;
    let (mut next, mut at) = (*packet.get(at + 6)?, at + 40);
    for _ in 0..most {
        if kind != 0x86dd || !kinds.contains(&next) {
            break;
        }
        let len = match next {
            44 if packet.get(at + 2..at + 4)? != [0, 0] => return None,
            44 => 8,
            _ => 8 + usize::from(*packet.get(at + 1)?) * 8,
        };
        (next, at) = (*packet.get(at)?, at + len);
    }
    (kind == 0x86dd).then_some((next, at))
}

fn extension(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let (protocol, at) = behind(run.packet, &[0, 43, 60], 3)?;
        // The program knows lengths up to 128 bytes.
        let is_near = run.packet.len() < 180;
        Some(is_near && protocol == 6 && number(run.packet, at + 2)? == 23)
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn fragment6(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let (protocol, at) = behind(run.packet, &[0, 44], 2)?;
        let is_near = run.packet.len() < 180;
        Some(is_near && protocol == 17 && number(run.packet, at + 2)? == 53)
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn tunnel(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let (at, kind) = network(run.packet, 0)?;
        let is_gre = run.packet.get(at)? & 15 == 5 && run.packet.get(at + 9)? == &47;
        let flags = number(run.packet, at + 20)?;
        let is_plain = flags & 0xd0ff == 0 && number(run.packet, at + 22)? == 0x0800;
        let inner = match flags & 0x2000 {
            0 => at + 24,
            _ => at + 28,
        };
        let to = run.packet.get(inner + 16..inner + 20)?;
        Some(kind == 0x0800 && is_gre && is_plain && to == [203, 0, 113, 7])
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn length(run: &FuzzRun<'_>) -> bool {
    let longest = run.element("longest", &[0; 4]).unwrap_or_default();
    let longest = longest
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes));
    longest <= 65_527
}

fn bucket(run: &FuzzRun<'_>) -> bool {
    let buckets = run.elements("buckets").into_iter();
    let mut tokens = buckets.filter_map(|(_, value)| {
        let tokens = value.get(8..16)?.first_chunk()?;
        Some(u64::from_le_bytes(*tokens))
    });
    tokens.all(|tokens| tokens <= 10)
}

/// Where TCP or UDP begins in a plain packet of IPv4.
fn plain(packet: &[u8], at: usize, protocol: u8) -> Option<usize> {
    let is_plain = number(packet, at)? == 0x0800 && packet.get(at + 2)? & 15 == 5;
    (is_plain && *packet.get(at + 11)? == protocol).then_some(at + 22)
}

fn track(run: &FuzzRun<'_>) -> bool {
    let passed = || {
        let at = plain(run.packet, 12, 6)?;
        let segment = run.packet.get(at..at + 14)?;
        let (from, to) = (run.packet.get(26..30)?, run.packet.get(30..34)?);
        let addresses = from.iter().zip(to).map(|(from, to)| from ^ to);
        let ports = [segment[0] ^ segment[2], segment[1] ^ segment[3], 0, 0];
        let key: Vec<u8> = addresses.chain(ports).collect();
        let flow = run.element("flows", &key)?;
        let fins = u32::from_le_bytes(*flow.get(4..8)?.first_chunk()?);
        Some(fins >= 2 && run.verdict == "XDP_PASS")
    };
    passed() != Some(true)
}

fn idle(run: &FuzzRun<'_>) -> bool {
    let passed = || {
        let at = plain(run.packet, 12, 17)?;
        let is_query = number(run.packet, at + 2)? == 53;
        let last = run.element("queried", run.packet.get(26..30)?)?;
        let last = u64::from_le_bytes(*last.first_chunk()?);
        let is_late = run.time.saturating_sub(last) >= 61_000_000_000;
        Some(!is_query && is_late && run.verdict == "XDP_PASS")
    };
    passed() != Some(true)
}

fn vxlan(run: &FuzzRun<'_>) -> bool {
    let blocked = || {
        let outer = plain(run.packet, 12, 17)?;
        let flags = run.packet.get(outer + 8)?;
        let network = run.packet.get(outer + 12..outer + 15)?;
        let inner = outer + 16 + 12;
        let at = match number(run.packet, inner)? {
            0x8100 => inner + 4,
            _ => inner,
        };
        let is_blocked = number(run.packet, plain(run.packet, at, 6)? + 2)? == 3306;
        let is_network = flags & 8 != 0 && network == [0, 27, 88];
        Some(number(run.packet, outer + 2)? == 4789 && is_network && is_blocked)
    };
    blocked() != Some(true) || run.verdict == "XDP_DROP"
}

fn mss(run: &FuzzRun<'_>) -> bool {
    let asked = || {
        let packet = run.data_out;
        let at = plain(packet, 12, 6)?;
        let end = at + usize::from(packet.get(at + 12)? >> 4) * 4;
        let mut option = at + 20;
        // As many as the program looks at.
        for _ in 0..10 {
            let kind = *packet.get(option).filter(|_| option + 4 <= end)?;
            let len = usize::from(*packet.get(option + 1)?);
            option += match (kind, len) {
                (0, _) => return None,
                (1, _) => 1,
                (2, 4) => return Some((packet.get(at + 13)?, number(packet, option + 2)?)),
                (_, 2..=40) => len,
                _ => return None,
            };
        }
        None
    };
    asked().is_none_or(|(flags, size)| flags & 2 == 0 || size <= 1400)
}
