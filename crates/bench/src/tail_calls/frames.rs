//! Frames that the flow dissector takes apart.

/// Names of the frames, and the layers of each.
pub(super) const FRAMES: &[(&str, &[Layer])] = &[
    ("TCP", &[Layer::Ipv4(6), Layer::Tcp]),
    ("UDP over IPv6", &[Layer::Ipv6(17), Layer::Udp]),
    (
        "UDP behind three extension headers",
        &[
            Layer::Ipv6(0),
            Layer::Options(43),
            Layer::Options(60),
            Layer::Options(17),
            Layer::Udp,
        ],
    ),
    (
        "first fragment over IPv6",
        &[Layer::Ipv6(44), Layer::Fragment(17), Layer::Udp],
    ),
    ("TCP in a VLAN", &[Layer::Vlan, Layer::Ipv4(6), Layer::Tcp]),
    (
        "TCP in two VLANs",
        &[Layer::OuterVlan, Layer::Vlan, Layer::Ipv4(6), Layer::Tcp],
    ),
    ("MPLS", &[Layer::Mpls]),
    (
        "TCP over IPv6 in GRE",
        &[Layer::Ipv4(47), Layer::Gre, Layer::Ipv6(6), Layer::Tcp],
    ),
    (
        "UDP in IP in IP",
        &[Layer::Ipv4(4), Layer::Ipv4(17), Layer::Udp],
    ),
];

/// A header, some with the protocol of the next one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer {
    Vlan,
    OuterVlan,
    Mpls,
    Ipv4(u8),
    Ipv6(u8),
    Options(u8),
    Fragment(u8),
    Gre,
    Tcp,
    Udp,
}

impl Layer {
    /// Type of the header in the one before it, if that is Ethernet or like it.
    fn ethertype(self) -> u16 {
        match self {
            Layer::Vlan => 0x8100,
            Layer::OuterVlan => 0x88a8,
            Layer::Mpls => 0x8847,
            Layer::Ipv6(_) => 0x86dd,
            Layer::Ipv4(_)
            | Layer::Options(_)
            | Layer::Fragment(_)
            | Layer::Gre
            | Layer::Tcp
            | Layer::Udp => 0x0800,
        }
    }

    /// The bytes of the header, before this type.
    fn write(self, next: u16, out: &mut Vec<u8>) {
        match self {
            Layer::Vlan | Layer::OuterVlan => {
                out.extend([0, 5]);
                out.extend(next.to_be_bytes());
            }
            Layer::Mpls => out.extend([0, 1, 0x11, 64]),
            Layer::Ipv4(protocol) => {
                out.extend([0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol, 0, 0]);
                out.extend([192, 0, 2, 1, 198, 51, 100, 7]);
            }
            Layer::Ipv6(protocol) => {
                out.extend([0x60, 0, 0, 0, 0, 40, protocol, 64]);
                out.extend((0..32).map(|at| 0x20 + at));
            }
            Layer::Options(protocol) => out.extend([protocol, 0, 1, 4, 0, 0, 0, 0]),
            Layer::Fragment(protocol) => out.extend([protocol, 0, 0, 1, 0, 0, 0, 9]),
            Layer::Gre => {
                out.extend([0, 0]);
                out.extend(next.to_be_bytes());
            }
            Layer::Tcp => {
                out.extend([0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0]);
                out.extend([0x50, 2, 0x20, 0, 0, 0, 0, 0]);
            }
            Layer::Udp => out.extend([0x30, 0x39, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]),
        }
    }
}

/// The frame of a name, with Ethernet in front and some bytes behind; empty for others.
pub(super) fn frame(name: &str) -> Vec<u8> {
    let found = FRAMES.iter().find(|(of, _)| *of == name);
    let layers = found.map_or(&[][..], |(_, layers)| layers);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let types = layers.iter().map(|layer| layer.ethertype());
    let types: Vec<u16> = types.chain([0]).collect();
    frame.extend(types[0].to_be_bytes());
    for (layer, next) in layers.iter().zip(&types[1..]) {
        layer.write(*next, &mut frame);
    }
    frame.resize(frame.len() + 18, 0xaa);
    frame
}
