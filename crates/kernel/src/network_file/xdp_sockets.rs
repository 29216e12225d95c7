//! AF_XDP sockets: the queue of a device that each is bound to.

use vm::network::{DeviceQueue, Network, XdpSocket};

use super::NetworkFileError;
use super::item::Item;

/// Reads an AF_XDP socket and adds it.
pub(super) fn read(network: &mut Network, item: &Item<'_>) -> Result<(), NetworkFileError> {
    item.check_members(&["dev", "queue", "cookie"])?;
    let queue = match (item.get("dev"), item.get("queue")) {
        (Some(device), _) => Some(DeviceQueue {
            device: device.device(network)?.index,
            queue: item.number_or("queue", 0)?,
        }),
        (None, Some(queue)) => {
            return Err(queue.error("a queue belongs to a device, which `dev` names"));
        }
        (None, None) => None,
    };
    let cookie = item.number_or("cookie", 0)?;
    if cookie != 0 && network.sockets.has_cookie(cookie) {
        let cookie = item.need("cookie")?;
        return Err(cookie.error("another socket has this cookie; each needs its own, or none"));
    }
    network.sockets.add_xdp(XdpSocket { cookie, queue });
    Ok(())
}
