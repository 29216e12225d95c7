//! Policy rules, as `ip -json rule` prints them.

use std::ops::RangeInclusive;

use vm::network::{Network, PolicyRule, RuleAction, table};

use super::NetworkFileError;
use super::item::Item;
use super::routes::{read_prefix, read_table};

/// The index of a device that is not there, which no packet has.
const NO_DEVICE: u32 = u32::MAX;

/// A rule of a family.
pub(super) fn read(
    network: &Network,
    item: &Item<'_>,
    is_ipv4: bool,
) -> Result<PolicyRule, NetworkFileError> {
    let mut rule = PolicyRule::new(item.need("priority")?.number()?, read_action(item)?);
    rule.is_inverted = item.has("not");
    rule.from = read_prefix(item, ["src", "srclen"], is_ipv4)?;
    rule.to = read_prefix(item, ["dst", "dstlen"], is_ipv4)?;
    let device = |name| -> Result<Option<u32>, NetworkFileError> {
        let name = item.text_of(name)?;
        let index = |name| {
            network
                .device_named(name)
                .map_or(NO_DEVICE, |device| device.index)
        };
        Ok(name.map(index))
    };
    rule.input = device("iif")?;
    rule.output = device("oif")?;
    if item.has("fwmark") {
        rule.mark = (
            item.number_or("fwmark", 0)?,
            item.number_or("fwmask", u32::MAX)?,
        );
    }
    rule.tos = item.number_or("tos", 0)?;
    if let Some(protocol) = item.get("ipproto") {
        rule.protocol = match protocol.text() {
            Ok("icmp") => 1,
            Ok("tcp") => 6,
            Ok("udp") => 17,
            Ok("ipv6-icmp") => 58,
            Ok("sctp") => 132,
            Ok(name) if name.starts_with("ipproto-") => {
                let number = name.trim_start_matches("ipproto-").parse();
                number.map_err(|_| protocol.error(format!("`{name}` is no protocol")))?
            }
            _ => protocol.number()?,
        };
    }
    rule.source_ports = range(item, ["sport", "sport_start", "sport_end"])?;
    rule.destination_ports = range(item, ["dport", "dport_start", "dport_end"])?;
    if item.has("uid_start") {
        rule.users = Some(item.number_or("uid_start", 0)?..=item.number_or("uid_end", u32::MAX)?);
    }
    if let Some(len) = item.get("suppress_prefixlen") {
        rule.suppressed_prefix_len = Some(len.number()?);
    }
    Ok(rule)
}

fn read_action(item: &Item<'_>) -> Result<RuleAction, NetworkFileError> {
    if let Some(priority) = item.get("goto") {
        return Ok(RuleAction::Goto(priority.number()?));
    }
    if item.has("nop") {
        return Ok(RuleAction::Nop);
    }
    if item.has("l3mdev") {
        return Ok(RuleAction::Vrf);
    }
    let Some(action) = item.get("action") else {
        return Ok(RuleAction::Table(read_table(item)?.unwrap_or(table::MAIN)));
    };
    Ok(match action.text()? {
        "blackhole" | "6" => RuleAction::Blackhole,
        "unreachable" | "7" => RuleAction::Unreachable,
        "prohibit" | "8" => RuleAction::Prohibit,
        other => return Err(action.error(format!("unknown action `{other}`"))),
    })
}

/// One port or a range of them.
fn range(
    item: &Item<'_>,
    [one, first, last]: [&str; 3],
) -> Result<Option<RangeInclusive<u16>>, NetworkFileError> {
    if let Some(port) = item.get(one) {
        let port = port.number()?;
        return Ok(Some(port..=port));
    }
    Ok(match item.has(first) {
        true => Some(item.number_or(first, 0)?..=item.number_or(last, u16::MAX)?),
        false => None,
    })
}
