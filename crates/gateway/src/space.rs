//! Sets of packets as products of five sets of numbers, and what rules leave of them.
//!
//! Packets are of six kinds: of either family; with ports, with type and code, or with neither.
//! Within a kind a rule is one product. What is left of a product without another one are at
//! most five products, one for each field.

use crate::header::{Address, Packet, TransportHeader};
use crate::layout::NO_PORT;
use crate::rules::{Rule, has_ports, has_types, protocol_values};

type Ranges = Vec<(u128, u128)>;

/// A product of sets of values of the five fields, each in ascending ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region([Ranges; 5]);

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecided;

/// Steps that an analysis may take: comparisons of two products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    fn step(&mut self) -> Result<(), Undecided> {
        self.0 = self.0.checked_sub(1).ok_or(Undecided)?;
        Ok(())
    }
}

/// The intersection of two lists of ascending ranges that do not overlap.
pub(crate) fn intersection(a: &[(u128, u128)], b: &[(u128, u128)]) -> Ranges {
    let (mut at, mut bt, mut both) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(at), b.get(bt)) {
        let (first, last) = (x.0.max(y.0), x.1.min(y.1));
        if first <= last {
            both.push((first, last));
        }
        if x.1 < y.1 {
            at += 1;
        } else {
            bt += 1;
        }
    }
    both
}

/// The difference of two lists of ascending ranges that do not
/// overlap.
pub(crate) fn difference(a: &[(u128, u128)], b: &[(u128, u128)]) -> Ranges {
    let (mut left, mut bt) = (Vec::new(), 0);
    for &(first, last) in a {
        while b.get(bt).is_some_and(|it| it.1 < first) {
            bt += 1;
        }
        let mut next = Some(first);
        for &(from, to) in b[bt..].iter().take_while(|it| it.0 <= last) {
            if let Some(start) = next.filter(|start| *start < from) {
                left.push((start, from - 1));
            }
            next = to.checked_add(1);
        }
        if let Some(start) = next.filter(|start| *start <= last) {
            left.push((start, last));
        }
    }
    left
}

/// A kind of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    is_v6: bool,
    transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Ports,
    Types,
    Unknown,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] = {
        const fn kind(is_v6: bool, transport: Transport) -> Kind {
            Kind { is_v6, transport }
        }
        [
            kind(false, Transport::Ports),
            kind(false, Transport::Types),
            kind(false, Transport::Unknown),
            kind(true, Transport::Ports),
            kind(true, Transport::Types),
            kind(true, Transport::Unknown),
        ]
    };

    /// All packets of the kind.
    pub(crate) fn all(self) -> Region {
        let last = if self.is_v6 {
            u128::MAX
        } else {
            u32::MAX.into()
        };
        let no_port = u128::from(NO_PORT);
        let protocols = |has: fn(u8, TransportHeader) -> bool| {
            let all = TransportHeader::ALL.into_iter();
            let values = all.flat_map(|header| (0..=255).map(move |it| (it, header)));
            let values = values.filter(|(protocol, header)| has(*protocol, *header));
            let values = values.map(|(protocol, header)| header.value(protocol).into());
            values.map(|value| (value, value)).collect()
        };
        let (protocols, ports) = match self.transport {
            Transport::Ports => (
                protocols(|it, header| has_ports(it) && header.has_ports()),
                vec![(0, u16::MAX.into())],
            ),
            Transport::Types => (
                protocols(|it, header| has_types(it) && header.has_ports()),
                vec![(0, 255)],
            ),
            Transport::Unknown => (
                protocols(|it, header| match header {
                    TransportHeader::Whole => !has_ports(it) && !has_types(it),
                    TransportHeader::Cut => has_ports(it) || has_types(it),
                    TransportHeader::Offset8 | TransportHeader::Later => true,
                }),
                vec![(no_port, no_port)],
            ),
        };
        Region([
            vec![(0, last)],
            vec![(0, last)],
            protocols,
            ports.clone(),
            ports,
        ])
    }

    /// The packets of the kind that a rule matches, if there are any.
    pub(crate) fn of_rule(self, rule: &Rule) -> Option<Region> {
        let rule = Region([
            rule.source.ranges(self.is_v6),
            rule.destination.ranges(self.is_v6),
            protocol_values(rule),
            rule.source_ports.values(),
            rule.destination_ports.values(),
        ]);
        self.all().intersection(&rule)
    }

    /// The packet with these values.
    pub(crate) fn packet(self, values: [u128; 5]) -> Packet {
        let address = |value| match self.is_v6 {
            true => Address::V6(value),
            false => Address::V4(value as u32),
        };
        let port = |value| match self.transport {
            Transport::Unknown => None,
            _ => Some(value as u16),
        };
        let (protocol, header) = TransportHeader::of_value(values[2] as u32);
        Packet {
            source: address(values[0]),
            destination: address(values[1]),
            protocol,
            header,
            source_port: port(values[3]),
            destination_port: port(values[4]),
        }
    }
}

impl Region {
    /// The intersection, if that is not empty.
    pub(crate) fn intersection(&self, other: &Region) -> Option<Region> {
        let mut fields = self.0.iter().zip(&other.0).map(|(a, b)| intersection(a, b));
        let region = Region(std::array::from_fn(|_| fields.next().unwrap_or_default()));
        (!region.0.iter().any(Vec::is_empty)).then_some(region)
    }

    fn intersects(&self, other: &Region) -> bool {
        let mut fields = self.0.iter().zip(&other.0);
        fields.all(|(a, b)| {
            let (mut at, mut bt) = (0, 0);
            while let (Some(x), Some(y)) = (a.get(at), b.get(bt)) {
                if x.0.max(y.0) <= x.1.min(y.1) {
                    return true;
                }
                if x.1 < y.1 {
                    at += 1;
                } else {
                    bt += 1;
                }
            }
            false
        })
    }

    /// True if everything here is in the other one.
    pub(crate) fn is_inside(&self, other: &Region) -> bool {
        let mut fields = self.0.iter().zip(&other.0);
        fields.all(|(a, b)| {
            let inside = |x: &(u128, u128)| b.iter().any(|y| y.0 <= x.0 && x.1 <= y.1);
            a.iter().all(inside)
        })
    }

    /// Values that are here and in none of the others; `None` if there are none.
    ///
    /// # Errors
    /// [`Undecided`] if the budget is used up before that is known.
    pub(crate) fn outside(
        self,
        others: &[&Region],
        budget: &mut Budget,
    ) -> Result<Option<[u128; 5]>, Undecided> {
        // Products with the number of the first other one that was not taken away yet.
        let mut open = vec![(self, 0)];
        while let Some((mut region, mut next)) = open.pop() {
            let met = loop {
                let Some(other) = others.get(next) else {
                    break None;
                };
                budget.step()?;
                next += 1;
                if region.intersects(other) {
                    break Some(other);
                }
            };
            let Some(other) = met else {
                return Ok(Some(region.0.map(|ranges| ranges[0].0)));
            };
            for field in 0..5 {
                let left = difference(&region.0[field], &other.0[field]);
                if !left.is_empty() {
                    let mut piece = region.clone();
                    piece.0[field] = left;
                    open.push((piece, next));
                }
                region.0[field] = intersection(&region.0[field], &other.0[field]);
            }
        }
        Ok(None)
    }
}
