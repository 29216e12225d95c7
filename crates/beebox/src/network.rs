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
//! network.add_route(Route::via(net, router, 2));
//! network.add_neighbour(2, router, [2, 0, 0, 0, 0, 1]);
//! network.add_socket(NetSocket::listener("192.0.2.2:80".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Loader::system`](crate::Loader::system) gives it to programs.

use crate::failure::{Error, RunCause};

pub use crate::internal::network::{NetDevice, NetSocket, Network, Route, RoutePrefix, System};

/// Reads a description of a machine and its network: JSON, as the book's page on networks has it.
///
/// # Errors
/// [`ErrorKind::Format`](crate::ErrorKind::Format) with the place in the text.
pub fn read(text: &str) -> Result<System, Error> {
    crate::internal::network::read(text).map_err(|error| RunCause::Network(error).into())
}
