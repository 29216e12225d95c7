//! Sets of packets as products of five sets of numbers, and what rules leave of them.
//!
//! Packets are of six kinds: of either family; with ports, with type and code, or with neither.
//! Within a kind a rule is one product. What is left of a product without another one are at
//! most five products, one for each field. Ranges are shared: a copy of a product takes constant
//! time, and equal lists of protocols are in memory once.

use std::collections::HashMap;
use std::rc::Rc;

use crate::header::{Address, Packet, TransportHeader};
use crate::layout::NO_PORT;
use crate::rules::{
    Protocols, Rule, RuleSet, TransportHeaders, has_ports, has_types, protocol_values,
};

type Ranges = Vec<(u128, u128)>;
/// Ranges that several products have.
type SharedRanges = Rc<[(u128, u128)]>;

/// A product of sets of values of the five fields, each in ascending ranges that do not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region([SharedRanges; 5]);

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecided;

/// Steps that an analysis may take. A step is a comparison of two products with at most
/// [`RANGES_PER_STEP`] ranges; whatever takes longer counts as so many more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: u64,
    spent: u64,
}

/// Ranges that a step compares at most.
const RANGES_PER_STEP: usize = 64;

impl Budget {
    pub(crate) fn new(steps: u64) -> Budget {
        Budget {
            left: steps,
            spent: 0,
        }
    }

    /// Steps that were taken.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// Takes steps.
    ///
    /// # Errors
    /// [`Undecided`] if fewer are left; then none are left.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Undecided> {
        let is_enough = steps <= self.left;
        let taken = steps.min(self.left);
        self.left -= taken;
        self.spent += taken;
        is_enough.then_some(()).ok_or(Undecided)
    }

    /// Takes the steps of a comparison of two products.
    pub(crate) fn compare(&mut self, a: &Region, b: &Region) -> Result<(), Undecided> {
        self.spend(1 + ((a.len() + b.len()) / RANGES_PER_STEP) as u64)
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
            let mut ranges = Ranges::new();
            for (protocol, header) in values {
                let value = u128::from(header.value(protocol));
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == value => *last = value,
                    _ => ranges.push((value, value)),
                }
            }
            ranges
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
        let (addresses, ports): (Rc<[_]>, Rc<[_]>) = ([(0, last)].into(), ports.into());
        Region([
            addresses.clone(),
            addresses,
            protocols.into(),
            ports.clone(),
            ports,
        ])
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
        let field = |field: usize| common(&self.0[field], &other.0[field]);
        let region = Region(std::array::from_fn(field));
        (!region.0.iter().any(|it| it.is_empty())).then_some(region)
    }

    /// The ranges of a field.
    pub(crate) fn field(&self, at: usize) -> &[(u128, u128)] {
        &self.0[at]
    }

    /// Number of ranges.
    fn len(&self) -> usize {
        self.0.iter().map(|ranges| ranges.len()).sum()
    }

    /// The least value of each field.
    pub(crate) fn first(&self) -> [u128; 5] {
        std::array::from_fn(|field| self.0[field][0].0)
    }

    /// True if they have a packet in common.
    pub(crate) fn intersects(&self, other: &Region) -> bool {
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
            let mut at = 0;
            a.iter().all(|x| {
                while b.get(at).is_some_and(|y| y.1 < x.0) {
                    at += 1;
                }
                b.get(at).is_some_and(|y| y.0 <= x.0 && x.1 <= y.1)
            })
        })
    }

    /// Appends what is left without another product: at most five disjoint products.
    pub(crate) fn subtract(mut self, other: &Region, left: &mut Vec<Region>) {
        for field in 0..5 {
            let outside = difference(&self.0[field], &other.0[field]);
            if !outside.is_empty() {
                let mut piece = self.clone();
                piece.0[field] = outside.into();
                left.push(piece);
            }
            self.0[field] = common(&self.0[field], &other.0[field]);
        }
    }
}

/// The intersection of two lists of ranges, shared with a list of a single range around the
/// other one.
fn common(a: &SharedRanges, b: &SharedRanges) -> SharedRanges {
    let is_around = |outer: &[(u128, u128)], inner: &[(u128, u128)]| match (outer, inner) {
        (&[(first, last)], &[(from, _), ..]) => {
            first <= from && inner.last().is_some_and(|it| it.1 <= last)
        }
        _ => false,
    };
    if is_around(b, a) {
        a.clone()
    } else if is_around(a, b) {
        b.clone()
    } else {
        intersection(a, b).into()
    }
}

/// By rule the products of each kind of packets that it matches.
pub(crate) struct Regions {
    rules: Vec<[Option<Region>; 6]>,
    all: [Region; 6],
}

impl Regions {
    /// The products of all rules.
    pub(crate) fn of<'s>(set: &'s RuleSet) -> Regions {
        let all = Kind::ALL.map(Kind::all);
        let mut protocols: HashMap<(&Protocols, &TransportHeaders), [SharedRanges; 6]> =
            HashMap::new();
        let any_port: Rc<[_]> = [(0, NO_PORT.into())].into();
        let of_rule = |rule: &'s Rule| {
            let Rule {
                source,
                destination,
                source_ports,
                destination_ports,
                ..
            } = rule;
            let protocols = protocols
                .entry((&rule.protocols, &rule.headers))
                .or_insert_with(|| {
                    let own: Rc<[_]> = protocol_values(rule).into();
                    std::array::from_fn(|kind| common(&own, &all[kind].0[2]))
                });
            let [from, to] = [source_ports, destination_ports].map(|ports| match ports.is_any() {
                true => any_port.clone(),
                false => ports.values().into(),
            });
            let sides = [false, true].map(|is_v6| {
                [source, destination].map(|side| match side.is_any() {
                    true => all[usize::from(is_v6) * 3].0[0].clone(),
                    false => side.ranges(is_v6).into(),
                })
            });
            std::array::from_fn(|kind| {
                let [source, destination] = &sides[kind / 3];
                let own = &protocols[kind];
                let fields = [source, destination, own, &from, &to];
                let is_empty = fields.iter().any(|ranges| ranges.is_empty());
                let own = (!is_empty).then(|| Region(fields.map(Rc::clone)));
                own.and_then(|own| own.intersection(&all[kind]))
            })
        };
        Regions {
            rules: set.rules.iter().map(of_rule).collect(),
            all,
        }
    }

    /// The products of each kind that a rule matches without the rules before it, 0 for the
    /// default.
    pub(crate) fn of_rule(&self, rule: u32) -> [Option<&Region>; 6] {
        match rule.checked_sub(1) {
            Some(at) => self.rules[at as usize].each_ref().map(Option::as_ref),
            None => self.all.each_ref().map(Some),
        }
    }
}
