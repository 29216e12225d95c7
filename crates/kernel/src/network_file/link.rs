//! Devices, as `ip -json link`, `ip -json addr` and `ip -json netconf` print them.

use std::borrow::Cow;

use vm::network::{DeviceAddress, DeviceKind, NetDevice, Network, scope};

use super::NetworkFileError;
use super::item::Item;

/// Adds a device with its addresses, or the addresses to a device that is there.
pub(super) fn read(network: &mut Network, item: &Item<'_>) -> Result<(), NetworkFileError> {
    let index = item.need("ifindex")?.number()?;
    if index == 0 {
        return Err(item.error("the index of a device is at least 1"));
    }
    let name = item.need("ifname")?.text()?.to_owned();
    let mut device = NetDevice::ethernet(index, Cow::Owned(name));
    device.mtu = item.number_or("mtu", device.mtu)?;
    device.kind = match (
        item.has_word("flags", "LOOPBACK")?,
        item.has_word("flags", "POINTOPOINT")?,
    ) {
        (true, _) => DeviceKind::Loopback,
        (false, true) => DeviceKind::PointToPoint,
        (false, false) => DeviceKind::Broadcast,
    };
    device.is_up = !item.has("flags") || item.has_word("flags", "UP")?;
    if let Some(mac) = item.get("address") {
        // Tunnels have addresses of other lengths, which no frame has.
        device.mac = match item.text_of("link_type")? {
            None | Some("ether" | "loopback" | "[1]" | "[772]") => mac.mac()?,
            Some(_) => [0; 6],
        };
    }
    for address in item.list("addr_info")? {
        device.add_address(read_address(&address)?);
    }
    if device.addresses.is_empty()
        && let Some(old) = network.device(index)
    {
        device.addresses = old.addresses.clone();
    }
    network.add_device(device);
    Ok(())
}

fn read_address(item: &Item<'_>) -> Result<DeviceAddress, NetworkFileError> {
    let address = item.need("local")?.address()?;
    let len = item.need("prefixlen")?;
    let prefix_len: u8 = len.number()?;
    if prefix_len > if address.is_ipv4() { 32 } else { 128 } {
        return Err(len.error(format!("{prefix_len} bits are more than the address has")));
    }
    Ok(DeviceAddress {
        peer: item.get("address").map(|peer| peer.address()).transpose()?,
        scope: item
            .get("scope")
            .map_or(Ok(scope::UNIVERSE), |item| read_scope(&item))?,
        is_secondary: address.is_ipv4() && item.flag("secondary")?,
        is_deprecated: item.flag("deprecated")?,
        is_tentative: item.flag("tentative")? && !item.flag("optimistic")?,
        ..DeviceAddress::new(address, prefix_len)
    })
}

/// A scope by its name or number.
pub(super) fn read_scope(item: &Item<'_>) -> Result<u8, NetworkFileError> {
    Ok(match item.text() {
        Ok("global") => scope::UNIVERSE,
        Ok("link") => scope::LINK,
        Ok("host") => scope::HOST,
        Ok("nowhere") => scope::NOWHERE,
        Ok("site") => 200,
        _ => item.number()?,
    })
}

/// Gives the devices of a VRF its table, from the links that `ip -details` prints.
pub(super) fn resolve_vrfs(network: &mut Network, file: &Item<'_>) -> Result<(), NetworkFileError> {
    let mut links = file.list("link")?;
    links.extend(file.list("addr")?);
    let mut vrfs = Vec::new();
    for link in &links {
        let info = link.get("linkinfo");
        if let Some(info) = &info
            && info.text_of("info_kind")? == Some("vrf")
        {
            let data = info.need("info_data")?;
            let table: u32 = data.need("table")?.number()?;
            vrfs.push((link.need("ifname")?.text()?, table));
        }
    }
    for link in &links {
        let name = link.need("ifname")?.text()?;
        let master = link.text_of("master")?.unwrap_or(name);
        let vrf = vrfs.iter().find(|(vrf, _)| *vrf == master);
        let Some((_, table)) = vrf else { continue };
        let devices = network.devices.to_mut();
        if let Some(device) = devices.iter_mut().find(|device| device.name == name) {
            device.vrf_table = Some(*table);
        }
    }
    Ok(())
}

/// Settings of a device. Those of all devices and of new ones are passed over.
pub(super) fn read_settings(
    network: &mut Network,
    item: &Item<'_>,
) -> Result<(), NetworkFileError> {
    let name = item.need("interface")?;
    if matches!(name.text()?, "all" | "default") {
        return Ok(());
    }
    let index = name.device(network)?.index;
    let family = item.need("family")?;
    let devices = network.devices.to_mut();
    let Some(device) = devices.iter_mut().find(|device| device.index == index) else {
        return Ok(());
    };
    let (forwards, ignores) = match family.text()? {
        "inet" => (&mut device.forwards_ipv4, &mut device.ignores_linkdown_ipv4),
        "inet6" => (&mut device.forwards_ipv6, &mut device.ignores_linkdown_ipv6),
        _ => return Ok(()),
    };
    if item.has("forwarding") {
        *forwards = item.flag("forwarding")?;
    }
    if item.has("ignore_routes_with_linkdown") {
        *ignores = item.flag("ignore_routes_with_linkdown")?;
    }
    Ok(())
}
