//! Packets of runs, their contexts, and loads from them.

mod packet_buffer;
mod packet_context;
mod packet_load;
mod packet_state;
mod sk_buff;

pub use packet_buffer::{HEADROOM, PacketBuffer};
pub use packet_context::{FLOW_DISSECTOR, PacketContext, SKB, XDP};
pub use packet_load::{
    OUTSIDE_PACKET, PacketRules, load_from_packet, load_packet, load_packet_outside,
};
pub use packet_state::{Checksum, ClonedPacket, PacketState, Redirect, Tunnel};
pub use sk_buff::SkBuff;
