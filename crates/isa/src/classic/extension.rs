//! Linux's ancillary loads: absolute loads at or above [`AD_OFFSET`] load metadata of a
//! packet instead of its bytes. Source: `include/uapi/linux/filter.h` and
//! Documentation/networking/filter.rst, "Supported extensions".

/// First offset of the ancillary area (`SKF_AD_OFF`, -0x1000).
pub const AD_OFFSET: u32 = (-0x1000i32) as u32;
/// Offsets from here on count from the network header (`SKF_NET_OFF`).
pub const NET_OFFSET: u32 = (-0x10_0000i32) as u32;
/// Offsets from here on count from the link-layer header (`SKF_LL_OFF`).
pub const LL_OFFSET: u32 = (-0x20_0000i32) as u32;

macro_rules! extensions {
    ($( $variant:ident = $code:literal, $name:literal, $doc:literal; )*) => {
        /// An ancillary load.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Extension { $( #[doc = $doc] $variant, )* }

        impl Extension {
            /// All extensions, in the order of their codes.
            pub const ALL: &[Extension] = &[ $( Extension::$variant ),* ];

            /// The extension that an absolute load at `k` names, if any.
            pub const fn from_offset(k: u32) -> Option<Extension> {
                match k.wrapping_sub(AD_OFFSET) {
                    $( $code => Some(Extension::$variant), )*
                    _ => None,
                }
            }

            /// Offset of the ancillary load.
            pub const fn offset(self) -> u32 {
                match self { $( Extension::$variant => AD_OFFSET + $code, )* }
            }

            /// Name in the language of `bpf_asm`, without the `#`.
            pub const fn name(self) -> &'static str {
                match self { $( Extension::$variant => $name, )* }
            }

            /// Description of the loaded value.
            pub const fn doc(self) -> &'static str {
                match self { $( Extension::$variant => $doc, )* }
            }
        }
    };
}

extensions! {
    Protocol = 0, "proto", "Link-layer protocol (an EtherType).";
    PktType = 4, "type", "Packet type: to us, broadcast, multicast, other host, outgoing.";
    Ifindex = 8, "ifidx", "Interface index; without a device the program ends with A.";
    Nlattr = 12, "nla", "Offset of the netlink attribute of type X, searched from A; 0 if absent.";
    NlattrNest = 16, "nlan", "Offset of the nested attribute of type X inside the one at A; 0 if absent.";
    Mark = 20, "mark", "Firewall mark.";
    Queue = 24, "queue", "Queue mapping.";
    Hatype = 28, "hatype", "ARP hardware type of the device; without a device the program ends with A.";
    Rxhash = 32, "rxhash", "Flow hash.";
    Cpu = 36, "cpu", "Number of the CPU that runs the filter.";
    AluXorX = 40, "xor_x", "A ^= X (the historical form of the xor instruction).";
    VlanTci = 44, "vlan_tci", "VLAN tag control information that the device stripped.";
    VlanPresent = 48, "vlan_avail", "1 if the device stripped a VLAN tag.";
    PayOffset = 52, "poff", "Offset of the payload, found by walking the headers.";
    Random = 56, "rand", "A random number.";
    VlanTpid = 60, "vlan_tpid", "Protocol of the VLAN tag that the device stripped.";
}
