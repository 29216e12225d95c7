//! Layout of the context that a program receives in `r1`.
//!
//! A socket filter sees `struct __sk_buff` (`include/uapi/linux/bpf.h`). Three
//! values that classic ancillary loads need have no field there; they follow
//! behind it, where no program of a user can point.

/// A four-byte field of the socket-filter context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Bytes from the start of the context.
    pub offset: i16,
    /// Its name in C.
    pub name: &'static str,
}

macro_rules! fields {
    ($( $constant:ident = $offset:literal, $name:literal, $doc:literal; )*) => {
        $( #[doc = $doc] pub const $constant: Field = Field { offset: $offset, name: $name }; )*
        /// Every field that filters read, in order of offset.
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

/// Bytes of the socket-filter context, our three fields included.
pub const SK_BUFF_SIZE: usize = 208;

/// Bytes of `struct seccomp_data`: number, architecture, instruction pointer
/// and six arguments.
pub const SECCOMP_DATA_SIZE: usize = 64;
