//! Layout of the context that a program receives in `r1`.
//!
//! The context of a socket filter is `struct __sk_buff` (`include/uapi/linux/bpf.h`).
//! Three private fields follow it, for ancillary loads of classic programs; eBPF programs
//! cannot access them.

/// A four-byte field of the socket-filter context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Offset in bytes from the start of the context.
    pub offset: i16,
    /// Name in C.
    pub name: &'static str,
}

macro_rules! fields {
    ($( $constant:ident = $offset:literal, $name:literal, $doc:literal; )*) => {
        $( #[doc = $doc] pub const $constant: Field = Field { offset: $offset, name: $name }; )*
        /// Fields that filters read, by offset.
        pub const SK_BUFF: &[Field] = &[ $( $constant ),* ];
    };
}

fields! {
    LEN = 0, "len", "Length of the packet.";
    PKT_TYPE = 4, "pkt_type", "Packet type (`PACKET_HOST` and so on).";
    MARK = 8, "mark", "Firewall mark.";
    QUEUE_MAPPING = 12, "queue_mapping", "Queue mapping.";
    PROTOCOL = 16, "protocol", "Link-layer protocol, in network byte order.";
    VLAN_PRESENT = 20, "vlan_present", "1 if the device stripped a VLAN tag.";
    VLAN_TCI = 24, "vlan_tci", "The stripped tag's control information.";
    VLAN_PROTO = 28, "vlan_proto", "The stripped tag's protocol, in network byte order.";
    IFINDEX = 40, "ifindex", "Interface index; 0 without a device.";
    HASH = 68, "hash", "Flow hash.";
    HAS_DEVICE = 192, "has_device", "1 if the packet belongs to a device (behind `__sk_buff`).";
    HATYPE = 196, "hatype", "ARP hardware type of the device (behind `__sk_buff`).";
    CPU = 200, "cpu", "CPU that runs the filter (behind `__sk_buff`).";
}

/// Size of the socket-filter context in bytes, private fields included.
pub const SK_BUFF_SIZE: usize = 208;

/// Size of `struct seccomp_data` in bytes: number, architecture, instruction pointer and
/// six arguments.
pub const SECCOMP_DATA_SIZE: usize = 64;
