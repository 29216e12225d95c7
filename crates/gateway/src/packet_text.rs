//! Packets as the words of a rule that matches them alone, and rules by number.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::rules::{Addresses, Ports, Prefix};
use crate::{Address, Field, Packet, RuleError, RuleSet, TransportHeader, protocol_name};

/// Why a text is no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketTextError {
    /// The words are not those of a rule; columns count from the start of the text.
    Rule(RuleError),
    /// What a packet has, and the text does not state.
    Expected(&'static str),
}

impl fmt::Display for PacketTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketTextError::Rule(error) => error.fmt(f),
            PacketTextError::Expected(what) => write!(f, "expected {what}"),
        }
    }
}

impl Error for PacketTextError {}

impl Packet {
    /// True for text that begins with a word of packets.
    pub fn is_text(text: &str) -> bool {
        let words = ["proto ", "from ", "to "];
        words.iter().any(|word| text.starts_with(word))
    }

    /// The value of a field.
    pub fn field_text(&self, field: Field) -> String {
        let port = |port: Option<u16>| match port {
            Some(port) => port.to_string(),
            None => "unknown".to_owned(),
        };
        match field {
            Field::Source => self.source.to_string(),
            Field::Destination => self.destination.to_string(),
            Field::Protocol => match self.header {
                TransportHeader::Whole => self.protocol_text(),
                header => format!("{}, header {}", self.protocol_text(), header.name()),
            },
            Field::SourcePort => port(self.source_port),
            Field::DestinationPort => port(self.destination_port),
        }
    }

    /// The name of the protocol, or its number.
    fn protocol_text(&self) -> String {
        match protocol_name(self.protocol) {
            Some(name) => name.to_owned(),
            None => self.protocol.to_string(),
        }
    }
}

impl FromStr for Packet {
    type Err = PacketTextError;

    fn from_str(text: &str) -> Result<Packet, PacketTextError> {
        let expected = PacketTextError::Expected;
        let set = RuleSet::parse(&format!("pass {text}")).map_err(|mut error| {
            error.column -= "pass ".len().min(error.column - 1);
            PacketTextError::Rule(error)
        })?;
        let rule = set.rules.first().ok_or(expected("a packet"))?;
        let address = |addresses: &Addresses, what| match addresses.prefixes[..] {
            [Prefix::V4(address, 32)] if !addresses.is_negated => Ok(Address::V4(address)),
            [Prefix::V6(address, 128)] if !addresses.is_negated => Ok(Address::V6(address)),
            _ => Err(expected(what)),
        };
        let port = |ports: &Ports| match ports.ranges[..] {
            [] => Ok(None),
            [(first, last)] if first == last && !ports.is_negated => Ok(Some(first)),
            _ => Err(expected("one port")),
        };
        let protocol = match rule.protocols.list[..] {
            [protocol] if !rule.protocols.is_negated => protocol,
            _ => return Err(expected("one protocol")),
        };
        let source = address(&rule.source, "one source address")?;
        let destination = address(&rule.destination, "one destination address")?;
        let is_v6 = |address| matches!(address, Address::V6(_));
        if is_v6(source) != is_v6(destination) {
            return Err(expected("addresses of one family"));
        }
        let ports = port(&rule.source_ports)?.zip(port(&rule.destination_ports)?);
        if rule.source_ports.is_any() != rule.destination_ports.is_any() {
            return Err(expected("both ports (or type and code), or none"));
        }
        let header = match rule.headers.list[..] {
            [] => TransportHeader::of_ports(protocol, ports.is_some()),
            [header] => header,
            _ => return Err(expected("one state of the header")),
        };
        Ok(Packet {
            source,
            destination,
            protocol,
            header,
            source_port: ports.map(|(source, _)| source),
            destination_port: ports.map(|(_, destination)| destination),
        })
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proto {}", self.protocol_text())?;
        if self.header != TransportHeader::of_ports(self.protocol, self.source_port.is_some()) {
            write!(f, " header {}", self.header.name())?;
        }
        let is_icmp = matches!(self.protocol, 1 | 58);
        let (source, destination) = (self.source, self.destination);
        match (self.source_port, self.destination_port) {
            (Some(kind), Some(code)) if is_icmp => {
                write!(f, " from {source} to {destination} type {kind} code {code}")
            }
            (Some(from), Some(to)) => {
                write!(f, " from {source} port {from} to {destination} port {to}")
            }
            _ => write!(f, " from {source} to {destination}"),
        }
    }
}

impl RuleSet {
    /// The rule of a number: 0 the default, those behind the last one the actions for packets
    /// that are not IP, and that are malformed.
    pub fn rule_text(&self, rule: u32) -> String {
        let count = self.rules.len() as u32;
        match rule {
            0 => format!("default {}", self.default),
            rule if rule <= count => format!("rule {rule}: {}", self.rules[rule as usize - 1]),
            rule if rule == count + 1 => format!("no IP packet: {}", self.other),
            _ => format!("malformed: {}", self.malformed),
        }
    }
}
