//! The system of a run: the machine, the process and the network that helpers report, as the
//! host describes them. [`read`] takes the file of `beebox run --network`.
//!
//! ```
//! use beebox::network::{NetDevice, NetSocket, RoutePrefix, Route, System};
//!
//! let mut system = System::default();
//! let network = &mut system.network;
//! network.add_device(NetDevice::ethernet(2, "eth0".into()));
//! let net = RoutePrefix::new("198.51.100.0".parse()?, 24).ok_or("no prefix")?;
//! let router = "192.0.2.1".parse()?;
//! network.routes.add(Route::via(net, router, 2));
//! network.neighbours.add(2, router, [2, 0, 0, 0, 0, 1]);
//! network.sockets.add(NetSocket::listener("192.0.2.2:80".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`LoadedObject::set_system`](crate::internal::run::LoadedObject::set_system) gives it to programs.

pub use crate::internal::network::{
    Neighbours, NetDevice, NetSocket, Network, NetworkFileError, Route, RoutePrefix, Routes,
    Sockets, System, read,
};
