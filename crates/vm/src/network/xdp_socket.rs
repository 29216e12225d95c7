//! AF_XDP sockets, to which XDP programs redirect packets.

/// An AF_XDP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpSocket {
    /// Its cookie, which no other socket of the network has; 0 to get the first free one.
    pub cookie: u64,
    /// The queue that it is bound to; `None` for a socket that is not bound.
    pub queue: Option<DeviceQueue>,
}

/// A receive queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceQueue {
    /// Index of the device.
    pub device: u32,
    /// Number of the queue.
    pub queue: u16,
}

impl XdpSocket {
    /// A socket that is bound to a queue of a device.
    pub const fn bound(device: u32, queue: u16) -> XdpSocket {
        XdpSocket {
            cookie: 0,
            queue: Some(DeviceQueue { device, queue }),
        }
    }

    /// True if it gets packets of a queue: Linux drops those of others (`xsk_rcv_check`).
    pub fn receives_from(&self, queue: DeviceQueue) -> bool {
        self.queue == Some(queue)
    }
}
