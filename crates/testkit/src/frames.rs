//! Ethernet frames from a seed: protocols nested as they are on wires, and as
//! they are not, cut off anywhere.

use crate::generate::Generator;

/// A frame with one number in the place where a walk over its headers decides:
/// as its Ethernet type, as what PPPoE or GRE carries, or (its lower byte) as what
/// IP carries.
pub fn frame_around(generator: &mut Generator, number: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(128);
    frame.extend((0..12).map(|_| generator.bits() as u8));
    let [high, low] = number.to_be_bytes();
    match generator.below(5) {
        0 | 1 => frame.extend([high, low]),
        2 => frame.extend([0x88, 0x64, 0x11, 0, 0, 0, 0, 0, high, low]),
        3 => {
            frame.extend([0x08, 0x00, 0x45]);
            frame.extend([0; 8]);
            frame.push(low);
            frame.extend([0; 10]);
        }
        _ => {
            frame.extend([0x86, 0xdd, 0x60]);
            frame.extend([0; 5]);
            frame.push(47);
            frame.extend([0; 33]);
            frame.extend([0, 0, high, low]);
        }
    }
    let payload = 2 + generator.below(60) as usize;
    frame.extend(generator.packet_bytes(payload));
    frame
}

/// A frame of 14 to `largest` bytes. The first byte is a hint for whom it is.
pub fn frame(generator: &mut Generator, largest: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    frame.extend((0..12).map(|_| generator.bits() as u8));
    let mut next = Next::Ethertype;
    for _ in 0..1 + generator.below(20) {
        next = match next {
            Next::Ethertype => network(generator, &mut frame),
            Next::IpProtocol { field } => transport(generator, &mut frame, field),
            Next::Payload => break,
        };
    }
    let payload = generator.below(100) as usize;
    frame.extend(generator.packet_bytes(payload));
    if generator.one_in(3) {
        let len = generator.below(frame.len() as u32) as usize;
        frame.truncate(len);
    }
    for _ in 0..generator.below(3) {
        let at = generator.below(frame.len() as u32) as usize;
        if at > 12 {
            frame[at] = generator.bits() as u8;
        }
    }
    let shortest = 14;
    if frame.len() < shortest {
        frame.resize(shortest, 0);
    }
    frame.truncate(largest);
    frame
}

enum Next {
    /// A network protocol, after its EtherType.
    Ethertype,
    /// Payload of an IP header, with its protocol number.
    IpProtocol {
        field: usize,
    },
    Payload,
}

fn network(generator: &mut Generator, frame: &mut Vec<u8>) -> Next {
    const TYPES: [u16; 22] = [
        0x0800, 0x0800, 0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x86dd, 0x86dd, 0x8100, 0x88a8,
        0x8864, 0x8864, 0x8847, 0x8848, 0x88ca, 0x8906, 0x0806, 0x4305, 0x88f7, 0x88fb, 0x892f,
    ];
    let ethertype = if generator.one_in(30) {
        generator.bits() as u16
    } else {
        generator.pick(&TYPES)
    };
    frame.extend(ethertype.to_be_bytes());
    network_header(generator, frame, ethertype)
}

fn network_header(generator: &mut Generator, frame: &mut Vec<u8>, ethertype: u16) -> Next {
    match ethertype {
        0x0800 => ipv4(generator, frame),
        0x86dd => {
            let start = frame.len();
            frame.push(0x60);
            frame.extend((1..40).map(|_| generator.bits() as u8));
            Next::IpProtocol { field: start + 6 }
        }
        0x8100 | 0x88a8 => {
            frame.extend((generator.bits() as u16).to_be_bytes());
            Next::Ethertype
        }
        0x8864 => pppoe(generator, frame),
        0x8847 | 0x8848 => {
            frame.extend(generator.bits().to_be_bytes());
            Next::Payload
        }
        0x4305 => {
            // A unicast packet of a mesh, with a frame in it.
            frame.push(generator.pick(&[0x40, 0x40, 0x40, 0x41]));
            frame.push(generator.pick(&[15, 15, 15, 14]));
            frame.extend((2..22).map(|_| generator.bits() as u8));
            Next::Ethertype
        }
        0x88fb | 0x892f => {
            frame.extend(generator.bits().to_be_bytes());
            Next::Ethertype
        }
        _ => Next::Payload,
    }
}

fn ipv4(generator: &mut Generator, frame: &mut Vec<u8>) -> Next {
    let start = frame.len();
    let words = match generator.below(8) {
        0 => generator.below(16),
        1 => 6 + generator.below(10),
        _ => 5,
    };
    frame.push(0x40 | words as u8);
    frame.extend((1..20).map(|_| generator.bits() as u8));
    let fragment: u16 = match generator.below(8) {
        0 => 0x2000,
        1 => generator.bits() as u16,
        2 => 0x4000,
        _ => 0,
    };
    frame[start + 6..start + 8].copy_from_slice(&fragment.to_be_bytes());
    frame.extend((20..4 * words).map(|_| generator.bits() as u8));
    Next::IpProtocol { field: start + 9 }
}

fn pppoe(generator: &mut Generator, frame: &mut Vec<u8>) -> Next {
    frame.push(generator.pick(&[0x11, 0x11, 0x11, 0x11, 0x12, 0x21]));
    frame.push(generator.pick(&[0, 0, 0, 0, 1]));
    frame.extend(generator.bits().to_be_bytes());
    let (protocol, ethertype): (u16, u16) = generator.pick(&[
        (0x0021, 0x0800),
        (0x0021, 0x0800),
        (0x0057, 0x86dd),
        (0x0281, 0x8847),
        (0x0283, 0x8848),
        (0xc021, 0),
        (0x0100, 0),
        (0x2145, 0),
        (0x5760, 0),
    ]);
    frame.extend(protocol.to_be_bytes());
    network_header(generator, frame, ethertype)
}

fn transport(generator: &mut Generator, frame: &mut Vec<u8>, field: usize) -> Next {
    const PROTOCOLS: [u8; 24] = [
        6, 6, 17, 17, 1, 58, 2, 33, 132, 136, 4, 4, 41, 41, 47, 47, 47, 0, 43, 44, 60, 137, 51, 115,
    ];
    let protocol = if generator.one_in(20) {
        generator.bits() as u8
    } else {
        generator.pick(&PROTOCOLS)
    };
    frame[field] = protocol;
    let start = frame.len();
    match protocol {
        4 => ipv4(generator, frame),
        41 => network_header(generator, frame, 0x86dd),
        137 => network_header(generator, frame, 0x8847),
        47 => gre(generator, frame),
        0 | 43 | 60 => {
            let units = if generator.one_in(9) {
                generator.below(256)
            } else {
                generator.below(3)
            };
            frame.extend([0, units as u8]);
            frame.extend((2..8 * (units + 1)).map(|_| generator.bits() as u8));
            Next::IpProtocol { field: start }
        }
        44 => {
            frame.extend([0, 0]);
            let offset = generator.pick(&[0, 1, 6, 8, 0xfff8]);
            frame.extend(u16::to_be_bytes(offset));
            frame.extend(generator.bits().to_be_bytes());
            Next::IpProtocol { field: start }
        }
        6 => {
            frame.extend((0..20).map(|_| generator.bits() as u8));
            Next::Payload
        }
        _ => {
            let len = generator.below(20);
            frame.extend((0..len).map(|_| generator.bits() as u8));
            Next::Payload
        }
    }
}

fn gre(generator: &mut Generator, frame: &mut Vec<u8>) -> Next {
    let flags: u16 = match generator.below(4) {
        0 => generator.bits() as u16,
        1 => 0x2001 | (generator.bits() as u16 & 0x9080),
        _ => generator.bits() as u16 & 0xb000,
    };
    frame.extend(flags.to_be_bytes());
    let is_pptp = flags & 7 == 1;
    let ethertype: u16 = if is_pptp && !generator.one_in(8) {
        0x880b
    } else {
        generator.pick(&[0x0800, 0x86dd, 0x6558, 0x6558, 0x8847, 0x1234])
    };
    frame.extend(ethertype.to_be_bytes());
    let mut optional = 0;
    for flag in [0x8000, 0x2000, 0x1000] {
        optional += if flags & flag != 0 { 4 } else { 0 };
    }
    if is_pptp && flags & 0x80 != 0 {
        optional += 4;
    }
    frame.extend((0..optional).map(|_| generator.bits() as u8));
    match ethertype {
        0x6558 => {
            frame.extend((0..12).map(|_| generator.bits() as u8));
            Next::Ethertype
        }
        0x880b => {
            frame.extend([0xff, 3]);
            let (protocol, inner): (u16, u16) =
                generator.pick(&[(0x21, 0x0800), (0x57, 0x86dd), (0xc021, 0)]);
            frame.extend(protocol.to_be_bytes());
            network_header(generator, frame, inner)
        }
        other => network_header(generator, frame, other),
    }
}
