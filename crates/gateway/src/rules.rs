//! Rules: what they match, and what becomes of a packet.

mod read;
mod tokens;
mod write;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::header::{Address, Header, Packet, TransportHeader};
use crate::layout::NO_PORT;

pub use tokens::RuleError;

/// Rules in the order of precedence, and the actions for other packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSet {
    /// Action for IP packets that no rule matches.
    pub default: Action,
    /// Action for frames that are no IP packets.
    pub other: Action,
    /// Action for packets whose IP header or extension headers are malformed or truncated.
    pub malformed: Action,
    /// The rules.
    pub rules: Vec<Rule>,
}

impl Default for RuleSet {
    /// Without rules: everything passes but malformed packets.
    fn default() -> RuleSet {
        RuleSet {
            default: Action::Pass,
            other: Action::Pass,
            malformed: Action::Drop,
            rules: Vec::new(),
        }
    }
}

/// Action for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    Pass,
    /// It is dropped.
    Drop,
    /// It leaves by an interface: its name, or its index in decimal.
    Redirect(String),
    /// It goes on; the rule is there for its counters.
    Count,
    /// It goes on, and of so many the first is copied to the ring buffer.
    Sample(u32),
}

/// A rule: a packet matches if each field matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Action for packets that match.
    pub action: Action,
    /// Protocol above IP and its extension headers.
    pub protocols: Protocols,
    /// What there is of the header of that protocol.
    pub headers: TransportHeaders,
    /// Source address.
    pub source: Addresses,
    /// Source port, or type of ICMP.
    pub source_ports: Ports,
    /// Destination address.
    pub destination: Addresses,
    /// Destination port, or code of ICMP.
    pub destination_ports: Ports,
    /// A remark.
    pub comment: String,
}

/// A comment as the text of a rule holds it: in one line, without blanks around it.
pub(crate) fn comment_line(text: &str) -> String {
    text.trim().replace('\n', " ")
}

impl Rule {
    /// A rule that matches every packet.
    pub fn new(action: Action) -> Rule {
        Rule {
            action,
            protocols: Protocols::default(),
            headers: TransportHeaders::default(),
            source: Addresses::default(),
            source_ports: Ports::default(),
            destination: Addresses::default(),
            destination_ports: Ports::default(),
            comment: String::new(),
        }
    }

    /// True if the packet matches.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.protocols.contains(packet.protocol)
            && self.headers.contains(packet.header)
            && self.source.contains(packet.source)
            && self.destination.contains(packet.destination)
            && self.source_ports.contains(packet.source_port)
            && self.destination_ports.contains(packet.destination_port)
    }
}

/// Addresses that a rule matches. Without prefixes all of both families; otherwise those of the
/// prefixes, or the others of the families that the prefixes are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The addresses are those outside of the prefixes.
    pub is_negated: bool,
    /// The prefixes.
    pub prefixes: Vec<Prefix>,
}

/// The addresses with equal leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// Of IPv4: address and number of bits.
    V4(u32, u8),
    /// Of IPv6: address and number of bits.
    V6(u128, u8),
}

impl Prefix {
    /// Least and greatest address, of IPv4 in the lower 32 bits.
    pub fn range(&self) -> (u128, u128) {
        match *self {
            Prefix::V4(address, bits) => {
                let free = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
                ((address & !free).into(), (address | free).into())
            }
            Prefix::V6(address, bits) => {
                let free = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
                (address & !free, address | free)
            }
        }
    }

    /// True if it is of IPv6.
    pub fn is_v6(&self) -> bool {
        matches!(self, Prefix::V6(..))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Prefix::V4(address, 32) => write!(f, "{}", Ipv4Addr::from(address)),
            Prefix::V4(address, bits) => write!(f, "{}/{bits}", Ipv4Addr::from(address)),
            Prefix::V6(address, 128) => write!(f, "{}", Ipv6Addr::from(address)),
            Prefix::V6(address, bits) => write!(f, "{}/{bits}", Ipv6Addr::from(address)),
        }
    }
}

impl Addresses {
    /// True for all addresses of both families.
    pub fn is_any(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// True if the address is one of them.
    pub fn contains(&self, address: Address) -> bool {
        if self.is_any() {
            return true;
        }
        let (value, is_v6) = match address {
            Address::V4(address) => (address.into(), false),
            Address::V6(address) => (address, true),
        };
        let family = || self.prefixes.iter().filter(|it| it.is_v6() == is_v6);
        let is_inside = family().any(|prefix| {
            let (least, greatest) = prefix.range();
            (least..=greatest).contains(&value)
        });
        is_inside != self.is_negated && family().next().is_some()
    }

    /// The addresses of a family as ranges in ascending order that do not touch.
    pub fn ranges(&self, is_v6: bool) -> Vec<(u128, u128)> {
        let last = if is_v6 { u128::MAX } else { u32::MAX.into() };
        if self.is_any() {
            return vec![(0, last)];
        }
        let family = self.prefixes.iter().filter(|it| it.is_v6() == is_v6);
        let ranges: Vec<(u128, u128)> = family.map(Prefix::range).collect();
        match ranges.is_empty() {
            true => ranges,
            false => normalize(ranges, self.is_negated, last),
        }
    }
}

/// Ports that a rule matches. Without ranges and `has_unknown` all, also of packets whose ports
/// are unknown; otherwise those of the ranges, or the other ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The ports are those outside of the ranges.
    pub is_negated: bool,
    /// First and last ports.
    pub ranges: Vec<(u16, u16)>,
    /// Packets whose ports are unknown match too. Not with `is_negated`.
    pub has_unknown: bool,
}

impl Ports {
    /// True for all ports and for packets without.
    pub fn is_any(&self) -> bool {
        self.ranges.is_empty() && !self.has_unknown
    }

    /// True if the port is one of them.
    pub fn contains(&self, port: Option<u16>) -> bool {
        match port {
            _ if self.is_any() => true,
            None => self.has_unknown,
            Some(port) => {
                let mut ranges = self.ranges.iter();
                ranges.any(|(first, last)| (first..=last).contains(&&port)) != self.is_negated
            }
        }
    }

    /// The ports as ranges in ascending order that do not touch. The value of unknown ports is
    /// [`NO_PORT`], behind the greatest one.
    pub(crate) fn values(&self) -> Vec<(u128, u128)> {
        if self.is_any() {
            return vec![(0, NO_PORT.into())];
        }
        let known = self.ranges.iter();
        let known = known.map(|&(first, last)| (first.into(), last.into()));
        let mut ranges = normalize(known.collect(), self.is_negated, u16::MAX.into());
        if self.has_unknown {
            ranges.push((NO_PORT.into(), NO_PORT.into()));
            ranges = normalize(ranges, false, NO_PORT.into());
        }
        ranges
    }

    /// The ports of ascending ranges, as [`Ports::values`] returns them; `None` for no ports.
    pub(crate) fn of_values(ranges: &[(u128, u128)]) -> Option<Ports> {
        let no_port = u128::from(NO_PORT);
        let (first, last) = (ranges.first()?, ranges.last()?);
        if ranges.len() == 1 && (first.0, last.1) == (0, no_port) {
            return Some(Ports::default());
        }
        let known = ranges.iter().filter(|it| it.0 < no_port);
        Some(Ports {
            is_negated: false,
            ranges: known
                .map(|it| (it.0 as u16, it.1.min(u16::MAX.into()) as u16))
                .collect(),
            has_unknown: last.1 == no_port,
        })
    }
}

/// Sorts ranges, joins those that touch, and replaces them by what is between them on request.
fn normalize(mut ranges: Vec<(u128, u128)>, is_negated: bool, last: u128) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for (first, end) in ranges {
        match joined.last_mut() {
            Some((_, before)) if first <= before.saturating_add(1) => *before = end.max(*before),
            _ => joined.push((first, end)),
        }
    }
    if !is_negated {
        return joined;
    }
    let mut between = Vec::new();
    let mut next = Some(0);
    for (first, end) in joined {
        if let Some(start) = next.filter(|start| *start < first) {
            between.push((start, first - 1));
        }
        next = end.checked_add(1);
    }
    if let Some(start) = next.filter(|start| *start <= last) {
        between.push((start, last));
    }
    between
}

/// Protocols that a rule matches. Without a list all; otherwise those of the list, or the other
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Protocols {
    /// The protocols are those outside of the list.
    pub is_negated: bool,
    /// Numbers of IP protocols.
    pub list: Vec<u8>,
}

impl Protocols {
    /// True for all protocols.
    pub fn is_any(&self) -> bool {
        self.list.is_empty()
    }

    /// True if the protocol is one of them.
    pub fn contains(&self, protocol: u8) -> bool {
        self.is_any() || self.list.contains(&protocol) != self.is_negated
    }

    /// True if all of them have ports.
    pub fn have_ports(&self) -> bool {
        !self.is_any() && !self.is_negated && self.list.iter().all(|it| has_ports(*it))
    }

    /// True if all of them have types and codes.
    pub fn have_types(&self) -> bool {
        !self.is_any() && !self.is_negated && self.list.iter().all(|it| has_types(*it))
    }
}

/// What rules match of transport headers. Without a list all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TransportHeaders {
    /// The matched ones, in the order of [`TransportHeader::ALL`].
    pub list: Vec<TransportHeader>,
}

impl TransportHeaders {
    /// Those for which `is_in` holds; `None` if there are none.
    pub(crate) fn where_in(is_in: impl Fn(TransportHeader) -> bool) -> Option<TransportHeaders> {
        let list: Vec<_> = (TransportHeader::ALL.into_iter())
            .filter(|it| is_in(*it))
            .collect();
        match list.len() {
            0 => None,
            all if all == TransportHeader::ALL.len() => Some(TransportHeaders::default()),
            _ => Some(TransportHeaders { list }),
        }
    }

    /// True for all headers.
    pub fn is_any(&self) -> bool {
        self.list.is_empty()
    }

    /// True if the header is one of them.
    pub fn contains(&self, header: TransportHeader) -> bool {
        self.is_any() || self.list.contains(&header)
    }
}

/// Values of protocol and transport header together that a rule matches, as ranges in ascending
/// order: 256 values for each state of the header.
pub(crate) fn protocol_values(rule: &Rule) -> Vec<(u128, u128)> {
    let mut ranges: Vec<(u128, u128)> = Vec::new();
    for header in TransportHeader::ALL {
        let protocols =
            (0..=255).filter(|it| rule.headers.contains(header) && rule.protocols.contains(*it));
        for value in protocols.map(|it| header.value(it).into()) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == value => *last = value,
                _ => ranges.push((value, value)),
            }
        }
    }
    ranges
}

/// True for protocols whose header begins with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
pub(crate) fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

/// True for ICMP and ICMPv6.
pub(crate) fn has_types(protocol: u8) -> bool {
    matches!(protocol, 1 | 58)
}

/// Names of protocols, as `/etc/protocols` has them.
const PROTOCOLS: &[(u8, &str)] = &[
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipencap"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "ipv6"),
    (46, "rsvp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmpv6"),
    (88, "eigrp"),
    (89, "ospf"),
    (103, "pim"),
    (112, "vrrp"),
    (115, "l2tp"),
    (132, "sctp"),
    (136, "udplite"),
];

/// The usual name of a protocol, if it has one here.
pub fn protocol_name(number: u8) -> Option<&'static str> {
    let mut known = PROTOCOLS.iter();
    known.find(|(it, _)| *it == number).map(|(_, name)| *name)
}

/// The number of a protocol by its usual name or `ipv6-icmp`, in any case of letters.
pub(crate) fn protocol_number(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    if name == "ipv6-icmp" || name == "icmp6" {
        return Some(58);
    }
    let mut known = PROTOCOLS.iter();
    known.find(|(_, it)| *it == name).map(|(number, _)| *number)
}

/// The rule that decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Number of the rule from 1; 0 for the default; for frames that are no IP packets one more
    /// than there are rules, for malformed packets two more.
    pub rule: u32,
}

impl RuleSet {
    /// The first rule that matches, by trying one after the other.
    pub fn first_match(&self, header: &Header) -> Match {
        let count = self.rules.len() as u32;
        let rule = match header {
            Header::Ip(packet) => {
                let mut rules = (1..).zip(&self.rules);
                rules
                    .find(|(_, rule)| rule.matches(packet))
                    .map_or(0, |(number, _)| number)
            }
            Header::Other => count + 1,
            Header::Malformed => count + 2,
        };
        Match { rule }
    }

    /// The action of a [`Match`].
    pub fn action(&self, rule: u32) -> &Action {
        let count = self.rules.len() as u32;
        match rule {
            0 => &self.default,
            rule if rule <= count => &self.rules[rule as usize - 1].action,
            rule if rule == count + 1 => &self.other,
            _ => &self.malformed,
        }
    }
}
