//! Neighbours, as `ip -json neigh` prints them.

use vm::network::Network;

use super::NetworkFileError;
use super::item::Item;

/// States in which packets are sent to a neighbour (`NUD_VALID`).
const VALID: &[&str] = &["PERMANENT", "NOARP", "REACHABLE", "PROBE", "STALE", "DELAY"];

/// Adds a neighbour, if its address is valid.
pub(super) fn read(network: &mut Network, item: &Item<'_>) -> Result<(), NetworkFileError> {
    let device = item.need("dev")?.device(network)?.index;
    let address = item.need("dst")?.address()?;
    let mut is_valid = !item.has("state");
    for state in VALID {
        is_valid |= item.has_word("state", state)?;
    }
    if is_valid {
        let mac = item.get("lladdr").map_or(Ok([0; 6]), |mac| mac.mac())?;
        network.neighbours.add(device, address, mac);
    }
    Ok(())
}
