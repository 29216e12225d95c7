//! Policy rules: a lookup searches the tables of the rules that match, until one has an answer.

use vm::network::{Network, PolicyRule, RuleAction};

use super::{Flow, Found, NoRoute};

/// Searches the tables of the rules that match a packet. `search` returns `None` if the table has no
/// route for it.
pub(super) fn lookup<'n>(
    network: &'n Network,
    rules: &'n [PolicyRule],
    flow: &Flow,
    mut search: impl FnMut(u32) -> Option<Result<Found<'n>, NoRoute>>,
) -> Result<Found<'n>, NoRoute> {
    let mut place = 0;
    while let Some(rule) = rules.get(place) {
        place += 1;
        let table = vrf_table(network, flow);
        let is_vrf = rule.action == RuleAction::Vrf;
        if matches(rule, flow) == rule.is_inverted || is_vrf && table.is_none() {
            continue;
        }
        let table = match rule.action {
            RuleAction::Table(table) => Some(table),
            RuleAction::Vrf => table,
            RuleAction::Nop => None,
            RuleAction::Goto(priority) => {
                // Targets come later: Linux 6.18 refuses others, and goes on if there is none.
                let mut behind = rules[place..].iter();
                place += behind
                    .position(|rule| rule.priority == priority)
                    .unwrap_or(0);
                None
            }
            RuleAction::Blackhole => return Err(NoRoute::Blackhole),
            RuleAction::Unreachable => return Err(NoRoute::NoneMatches),
            RuleAction::Prohibit => return Err(NoRoute::Prohibited),
        };
        match table.and_then(&mut search) {
            None => {}
            Some(Ok(found)) if is_suppressed(rule, &found) => {}
            Some(answer) => return answer,
        }
    }
    Err(NoRoute::NoneMatches)
}

/// The table of the VRF that a packet belongs to.
fn vrf_table(network: &Network, flow: &Flow) -> Option<u32> {
    network.device(flow.vrf_device)?.vrf_table
}

fn is_suppressed(rule: &PolicyRule, found: &Found<'_>) -> bool {
    let most = rule.suppressed_prefix_len;
    most.is_some_and(|most| found.prefix_len <= most)
}

fn matches(rule: &PolicyRule, flow: &Flow) -> bool {
    let is_ipv4 = flow.destination.is_ipv4();
    let (mark, mask) = rule.mark;
    let has_tos = match is_ipv4 {
        // The lower bits are those of congestion; IPv4 ignores the upper three of the class.
        true => rule.tos == 0 || rule.tos == flow.tos & 0x1c,
        false => rule.tos == 0 || rule.tos == flow.tos & 0xfc,
    };
    let port = |ports: &Option<std::ops::RangeInclusive<u16>>, port| {
        ports.as_ref().is_none_or(|ports| ports.contains(&port))
    };
    rule.input.is_none_or(|input| input == flow.input)
        && rule.output.is_none_or(|output| output == flow.output)
        && (mark ^ flow.mark) & mask == 0
        && rule.users.as_ref().is_none_or(|users| users.contains(&0))
        && (rule.from).is_none_or(|from| flow.has_source && from.contains(flow.source))
        && rule.to.is_none_or(|to| to.contains(flow.destination))
        && has_tos
        && (rule.protocol == 0 || rule.protocol == flow.protocol)
        && port(&rule.source_ports, flow.source_port)
        && port(&rule.destination_ports, flow.destination_port)
}
