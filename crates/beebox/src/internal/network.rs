//! The machine, the process and the network that helpers report.

pub use ::kernel::network_file::{NetworkFileError, read};
pub use vm::System;
pub use vm::network::{
    DeviceAddress, DeviceKind, DeviceQueue, Multipath, Neighbours, NetDevice, NetSocket, Network,
    NextHop, PolicyRule, PolicyRules, Route, RouteKind, RoutePreference, RoutePrefix, RouteTable,
    Routes, RuleAction, SocketPart, SocketProtocol, SocketRef, SocketState, SocketView, Sockets,
    SynCookies, TcpFigures, XdpSocket, scope, table,
};
