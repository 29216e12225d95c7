//! Native code that does the gateway's work: the same tables and bitmaps, and rule after rule.

use ::gateway::{Action, Header, Hits, Packet, Prefix, RuleSet, Table};

use super::traffic::Frame;

const DROP: u32 = 1;
const PASS: u32 = 2;

fn verdict(action: &Action) -> u32 {
    match action {
        Action::Drop => DROP,
        _ => PASS,
    }
}

/// The algorithm of the data plane: table, action, counters.
pub(super) struct Bitmaps<'t> {
    table: &'t Table,
    /// By rule, as the table has them.
    verdicts: Vec<u32>,
    hits: Vec<Hits>,
}

impl<'t> Bitmaps<'t> {
    pub(super) fn new(set: &RuleSet, table: &'t Table) -> Bitmaps<'t> {
        let count = set.rules.len() as u32 + 3;
        Bitmaps {
            table,
            verdicts: (0..count).map(|rule| verdict(set.action(rule))).collect(),
            hits: vec![Hits::default(); count as usize],
        }
    }

    #[inline(always)]
    pub(super) fn judge(&mut self, frame: &Frame) -> u32 {
        let rule = self.table.lookup(&Header::of(frame)).rule as usize;
        let hits = &mut self.hits[rule];
        hits.packets += 1;
        hits.bytes += frame.len() as u64;
        self.verdicts[rule]
    }
}

/// A rule for IPv4 with at most one prefix and range a field.
struct Flat {
    source: (u32, u32),
    destination: (u32, u32),
    protocols: (u8, u8),
    /// Rules without ports also match packets without.
    source_ports: Option<(u16, u16)>,
    destination_ports: Option<(u16, u16)>,
    verdict: u32,
}

/// Rule after rule.
pub(super) struct Linear {
    rules: Vec<Flat>,
    default: u32,
}

impl Linear {
    pub(super) fn new(set: &RuleSet) -> Linear {
        let range = |prefix: Option<&Prefix>| match prefix {
            Some(prefix) => {
                let (first, last) = prefix.range();
                (first as u32, last as u32)
            }
            None => (0, u32::MAX),
        };
        let rules = set.rules.iter().map(|rule| Flat {
            source: range(rule.source.prefixes.first()),
            destination: range(rule.destination.prefixes.first()),
            protocols: rule
                .protocols
                .list
                .first()
                .map_or((0, u8::MAX), |it| (*it, *it)),
            source_ports: rule.source_ports.ranges.first().copied(),
            destination_ports: rule.destination_ports.ranges.first().copied(),
            verdict: verdict(&rule.action),
        });
        Linear {
            rules: rules.collect(),
            default: verdict(&set.default),
        }
    }

    #[inline(always)]
    pub(super) fn judge(&self, frame: &Frame) -> u32 {
        let Header::Ip(Packet {
            source: ::gateway::Address::V4(source),
            destination: ::gateway::Address::V4(destination),
            protocol,
            header: _,
            source_port,
            destination_port,
        }) = Header::of(frame)
        else {
            return PASS;
        };
        let has = |ports: Option<(u16, u16)>, port: Option<u16>| match (ports, port) {
            (None, _) => true,
            (Some((first, last)), Some(port)) => (first..=last).contains(&port),
            (Some(_), None) => false,
        };
        let found = self.rules.iter().find(|rule| {
            (rule.source.0..=rule.source.1).contains(&source)
                && (rule.destination.0..=rule.destination.1).contains(&destination)
                && (rule.protocols.0..=rule.protocols.1).contains(&protocol)
                && has(rule.destination_ports, destination_port)
                && has(rule.source_ports, source_port)
        });
        found.map_or(self.default, |rule| rule.verdict)
    }
}
