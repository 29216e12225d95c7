//! Policy rules: which route table is searched for which packets.

use std::ops::RangeInclusive;

use super::{RoutePrefix, table};

/// A rule (`ip rule`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// The lowest comes first.
    pub priority: u32,
    /// It is for the packets that do not match.
    pub is_inverted: bool,
    /// Sources.
    pub from: Option<RoutePrefix>,
    /// Destinations.
    pub to: Option<RoutePrefix>,
    /// Index of the device that received the packet.
    pub input: Option<u32>,
    /// Index of the device that the socket is bound to.
    pub output: Option<u32>,
    /// Mark of the packet, and the bits of it that count.
    pub mark: (u32, u32),
    /// Type of service; 0 for any.
    pub tos: u8,
    /// Protocol in the IP header; 0 for any.
    pub protocol: u8,
    /// Source ports.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Option<RangeInclusive<u16>>,
    /// User ids of sockets.
    pub users: Option<RangeInclusive<u32>>,
    /// Its action.
    pub action: RuleAction,
    /// Routes whose prefix is not longer do not count.
    pub suppressed_prefix_len: Option<u8>,
}

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// Asks a table.
    Table(u32),
    /// Asks the table of the packet's VRF (`l3mdev`).
    Vrf,
    /// Goes on with the first rule of this priority.
    Goto(u32),
    /// Nothing.
    Nop,
    /// Drops the packet.
    Blackhole,
    /// Drops the packet, and says that the network cannot be reached.
    Unreachable,
    /// Drops the packet, and says that it is forbidden.
    Prohibit,
}

impl PolicyRule {
    /// A rule for all packets.
    pub const fn new(priority: u32, action: RuleAction) -> PolicyRule {
        PolicyRule {
            priority,
            is_inverted: false,
            from: None,
            to: None,
            input: None,
            output: None,
            mark: (0, 0),
            tos: 0,
            protocol: 0,
            source_ports: None,
            destination_ports: None,
            users: None,
            action,
            suppressed_prefix_len: None,
        }
    }
}

/// The rules of both families, in the order of their priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRules {
    ipv4: Vec<PolicyRule>,
    ipv6: Vec<PolicyRule>,
}

/// PolicyRules that Linux has at first: those of IPv6 are the first two.
const FIRST: [PolicyRule; 3] = [
    PolicyRule::new(0, RuleAction::Table(table::LOCAL)),
    PolicyRule::new(32_766, RuleAction::Table(table::MAIN)),
    PolicyRule::new(32_767, RuleAction::Table(table::DEFAULT)),
];

impl PolicyRules {
    /// The rules that Linux has at first: local, main and default table.
    pub const DEFAULT: PolicyRules = PolicyRules {
        ipv4: Vec::new(),
        ipv6: Vec::new(),
    };

    /// Sets the rules of a family.
    pub fn set(&mut self, is_ipv4: bool, mut rules: Vec<PolicyRule>) {
        rules.sort_by_key(|rule| rule.priority);
        let first = match is_ipv4 {
            true => &FIRST[..],
            false => &FIRST[..2],
        };
        if rules == first {
            rules.clear();
        }
        match is_ipv4 {
            true => self.ipv4 = rules,
            false => self.ipv6 = rules,
        }
    }

    /// Adds a rule to a family, before those of its priority.
    pub fn add(&mut self, is_ipv4: bool, rule: PolicyRule) {
        let mut rules = match self.custom(is_ipv4) {
            Some(rules) => rules.to_vec(),
            None if is_ipv4 => FIRST.to_vec(),
            None => FIRST[..2].to_vec(),
        };
        let place = rules.partition_point(|other| other.priority < rule.priority);
        rules.insert(place, rule);
        self.set(is_ipv4, rules);
    }

    /// The rules of a family; `None` if they are those that Linux has at first, without which
    /// it searches the tables directly.
    pub fn custom(&self, is_ipv4: bool) -> Option<&[PolicyRule]> {
        let rules = match is_ipv4 {
            true => &self.ipv4,
            false => &self.ipv6,
        };
        (!rules.is_empty()).then_some(&rules[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rules_are_no_custom_ones() {
        let mut rules = PolicyRules::default();
        rules.set(true, FIRST.to_vec());
        assert_eq!(rules.custom(true), None);
        rules.add(true, PolicyRule::new(100, RuleAction::Blackhole));
        let priorities: Vec<u32> = (rules.custom(true).unwrap().iter())
            .map(|rule| rule.priority)
            .collect();
        assert_eq!(priorities, [0, 100, 32_766, 32_767]);
    }
}
