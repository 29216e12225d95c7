//! A packet before it has a link-layer header, and the headers it can get.

use capture::LinkType;

/// Link-layer encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Link {
    Ethernet,
    LinuxSll,
    LinuxSll2,
    Raw,
    Null,
    Loop,
    Ppp,
}

impl Link {
    /// All encapsulations.
    pub const ALL: &[Link] = &[
        Link::Ethernet,
        Link::LinuxSll,
        Link::LinuxSll2,
        Link::Raw,
        Link::Null,
        Link::Loop,
        Link::Ppp,
    ];

    /// As capture files number it.
    pub fn link_type(self) -> LinkType {
        match self {
            Link::Ethernet => LinkType::ETHERNET,
            Link::LinuxSll => LinkType::LINUX_SLL,
            Link::LinuxSll2 => LinkType::LINUX_SLL2,
            Link::Raw => LinkType::RAW,
            Link::Null => LinkType::NULL,
            Link::Loop => LinkType::LOOP,
            Link::Ppp => LinkType::PPP,
        }
    }
}

/// A packet.
pub(super) struct Frame {
    /// An EtherType, or below 0x600 the mark of an LLC header at the start of
    /// the payload.
    pub(super) ethertype: u16,
    pub(super) to: [u8; 6],
    pub(super) from: [u8; 6],
    pub(super) payload: Vec<u8>,
}

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const LLC: u16 = 0;

impl Frame {
    /// The packet with a header of this kind; `None` if the kind cannot carry it.
    pub(super) fn on(self, link: Link) -> Option<Vec<u8>> {
        let family = match self.ethertype {
            IPV4 => Some(2u32),
            IPV6 => Some(30),
            _ => None,
        };
        let is_group = self.to[0] & 1 != 0;
        let pkt_type = match self.to {
            [0xff, ..] => 1,
            _ if is_group => 2,
            _ => self.from[5] % 5,
        };
        // Linux gives frames with an LLC header number 4.
        let cooked_protocol = if self.ethertype == LLC {
            4
        } else {
            self.ethertype
        };
        let mut frame = match link {
            Link::Ethernet => {
                let kind = match self.ethertype {
                    LLC => self.payload.len() as u16,
                    ethertype => ethertype,
                };
                [&self.to[..], &self.from, &kind.to_be_bytes()].concat()
            }
            Link::LinuxSll => {
                let mut header = vec![0, pkt_type, 0, 1, 0, 6];
                header.extend_from_slice(&self.from);
                header.extend_from_slice(&[0, 0]);
                header.extend_from_slice(&cooked_protocol.to_be_bytes());
                header
            }
            Link::LinuxSll2 => {
                let mut header = cooked_protocol.to_be_bytes().to_vec();
                let ifindex = self.from[5] % 4;
                header.extend_from_slice(&[0, 0, 0, 0, 0, ifindex, 0, 1, pkt_type, 6]);
                header.extend_from_slice(&self.from);
                header.extend_from_slice(&[0, 0]);
                header
            }
            Link::Raw => family.map(|_| Vec::new())?,
            Link::Null => family?.to_le_bytes().to_vec(),
            Link::Loop => family?.to_be_bytes().to_vec(),
            Link::Ppp => {
                let protocol = match self.ethertype {
                    IPV4 => 0x0021u16,
                    IPV6 => 0x0057,
                    0x8847 => 0x0281,
                    _ => return None,
                };
                [&[0xff, 0x03], &protocol.to_be_bytes()[..]].concat()
            }
        };
        frame.extend_from_slice(&self.payload);
        Some(frame)
    }
}
