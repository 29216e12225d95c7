//! Lookups of sockets by the ends of a packet.

use std::fmt::Write as _;

use spec::programs::ProgramType;

use super::{MIX, Writer};

/// Fields of `struct bpf_sock`: offset, bits.
const FIELDS: &[(u32, u32)] = &[
    (4, 32),
    (8, 32),
    (12, 32),
    (16, 32),
    (20, 32),
    (24, 32),
    (44, 32),
    (48, 16),
    (72, 32),
];

impl Writer<'_, '_> {
    /// A socket is looked up, read and released.
    pub(super) fn socket(&mut self) {
        let has_sockets = matches!(self.kind, ProgramType::Xdp | ProgramType::SchedCls);
        if !has_sockets {
            return self.locked();
        }
        let label = self.label();
        let len = self.tuple();
        let helper = self.choices.pick(&[
            "bpf_sk_lookup_tcp",
            "bpf_sk_lookup_udp",
            "bpf_skc_lookup_tcp",
        ]);
        let number = spec::helpers::number(helper).expect("a helper of this name");
        let flags = u32::from(self.choices.one_in(12));
        let _ = write!(
            self.text,
            "r1 = r6\nr2 = r10\nr2 += -80\nr3 = {len}\nr4 = -1\nr5 = {flags}\n\
             call {number}\nif r0 == 0 goto no_socket{label}\nr8 = r0\nr9 += 1\n"
        );
        let is_common = helper == "bpf_skc_lookup_tcp";
        for _ in 0..1 + self.choices.below(4) {
            let fields = match is_common {
                true => &FIELDS[..1],
                false => FIELDS,
            };
            let (offset, bits) = self.choices.pick(fields);
            let _ = write!(
                self.text,
                "r1 = *(u{bits} *)(r8 + {offset})\nr9 *= 31\nr9 += r1\n"
            );
        }
        if self.kind == ProgramType::SchedCls && self.choices.one_in(2) {
            let (helper, offset) = self
                .choices
                .pick(&[("bpf_sk_fullsock", 16), ("bpf_get_listener_sock", 20)]);
            let number = spec::helpers::number(helper).expect("a helper of this name");
            let _ = write!(
                self.text,
                "r1 = r8\ncall {number}\nif r0 == 0 goto other{label}\n\
                 r1 = *(u32 *)(r0 + {offset})\nr9 += r1\nother{label}:\n"
            );
        }
        let _ = write!(self.text, "r1 = r8\ncall 86\n{MIX}no_socket{label}:\n");
    }

    /// The ends of a packet at `r10 - 80`, of which a byte of the packet tells one port; their
    /// length.
    fn tuple(&mut self) -> u32 {
        let port = 80 + self.choices.below(6);
        let ports = format!("r1 &= 7\nr1 += 80\nr1 <<= 24\nr1 |= {}\n", port << 8);
        let (words, at) = match self.choices.one_in(3) {
            true => (&[0, 0, 0, 0x0100_0000, 0, 0, 0, 0x0100_0000][..], 48),
            false => (&[0x0100_007f, 0x0100_007f][..], 72),
        };
        for (slot, word) in words.iter().enumerate() {
            let _ = writeln!(self.text, "*(u32 *)(r10 - {}) = {word}", 80 - 4 * slot);
        }
        self.number();
        let _ = writeln!(self.text, "{ports}*(u32 *)(r10 - {at}) = r1");
        let len = 4 * words.len() as u32 + 4;
        match self.choices.one_in(10) {
            true => self.choices.pick(&[12, 8, 13]).min(len),
            false => len,
        }
    }
}
