//! Helpers that change the packet or read it by offset.

use std::fmt::Write as _;

use spec::programs::ProgramType;

use super::{MIX, Writer};

/// A helper whose first argument is the context: its number, and how its other arguments are
/// made.
struct Change {
    helper: &'static str,
    arguments: fn(&mut Writer<'_, '_>) -> String,
}

const fn change(helper: &'static str, arguments: fn(&mut Writer<'_, '_>) -> String) -> Change {
    Change { helper, arguments }
}

const XDP: &[Change] = &[
    change("bpf_xdp_adjust_head", |it| it.delta(-40, 24)),
    change("bpf_xdp_adjust_tail", |it| it.delta(-30, 60)),
    change("bpf_xdp_adjust_meta", |it| {
        let words = it.choices.between(-9, 2);
        format!("r2 = {}\n", 4 * words)
    }),
    change("bpf_xdp_store_bytes", |it| it.bytes()),
    change("bpf_xdp_load_bytes", |it| it.bytes()),
    change("bpf_xdp_get_buff_len", |_| String::new()),
];

/// Those of all programs with a socket buffer here.
const SKB: &[Change] = &[
    change("bpf_skb_store_bytes", |it| {
        let flags = it.choices.pick(&[0, 0, 1, 2, 3, 4]);
        format!("{}r5 = {flags}\n", it.bytes())
    }),
    change("bpf_skb_load_bytes", |it| it.bytes()),
    change("bpf_skb_change_tail", |it| {
        let len = it.choices.pick(&[10, 34, 54, 60, 80, 200, 1500]);
        format!("r2 = {len}\nr3 = 0\n")
    }),
    change("bpf_skb_change_head", |it| {
        let bytes = it.choices.pick(&[0, 1, 4, 14, 20, 300]);
        format!("r2 = {bytes}\nr3 = 0\n")
    }),
    change("bpf_skb_pull_data", |it| {
        let bytes = it.choices.pick(&[0, 1, 40, 64, 1000]);
        format!("r2 = {bytes}\n")
    }),
    change("bpf_l3_csum_replace", |it| {
        let size = it.choices.pick(&[0, 2, 4, 3]);
        it.replaced(24, size)
    }),
    change("bpf_l4_csum_replace", |it| {
        let flags = it.choices.pick(&[0, 2, 4, 0x12, 0x24, 0x32]);
        it.replaced(50, flags)
    }),
    change("bpf_csum_update", |it| {
        let sum = it.choices.below(0x10000);
        format!("r2 = {sum}\n")
    }),
    change("bpf_set_hash_invalid", |_| String::new()),
];

/// Those of classifiers beside them.
const CLASSIFIER: &[Change] = &[
    change("bpf_skb_adjust_room", |it| {
        let mode = it.choices.pick(&[0, 1, 2]);
        let flags = it.choices.pick(&[0, 1, 2, 4, 10, 32, 64]);
        format!("{}r3 = {mode}\nr4 = {flags}\n", it.delta(-24, 40))
    }),
    change("bpf_skb_vlan_push", |it| {
        let proto = it.choices.pick(&[0x0081, 0xa888, 0x0008]);
        let tci = it.choices.below(0x1_0000);
        format!("r2 = {proto}\nr3 = {tci}\n")
    }),
    change("bpf_skb_vlan_pop", |_| String::new()),
    change("bpf_skb_change_proto", |it| {
        let proto = it.choices.pick(&[0x0008, 0xdd86, 0x0608]);
        format!("r2 = {proto}\nr3 = 0\n")
    }),
    change("bpf_skb_change_type", |it| {
        let kind = it.choices.below(6);
        format!("r2 = {kind}\n")
    }),
];

impl Writer<'_, '_> {
    /// A helper that may move the packet, which is looked for again.
    pub(super) fn packet_change(&mut self) {
        let Change { helper, arguments } = match self.kind {
            ProgramType::Xdp => self.pick_change(&[XDP]),
            ProgramType::SchedCls => self.pick_change(&[SKB, CLASSIFIER]),
            _ => self.pick_change(&[SKB]),
        };
        let number = spec::helpers::number(helper).expect("a helper of this name");
        let arguments = arguments(self);
        let _ = write!(self.text, "{arguments}r1 = r6\ncall {number}\n{MIX}");
        if helper.ends_with("load_bytes") {
            self.text += "r1 = *(u64 *)(r10 - 32)\nr9 += r1\n";
        }
        self.packet();
    }

    fn pick_change(&mut self, lists: &[&'static [Change]]) -> &'static Change {
        let list = self.choices.pick(lists);
        &list[self.choices.below(list.len() as u32) as usize]
    }

    /// A length in `r2` by which a part of the packet grows.
    fn delta(&mut self, least: i32, most: i32) -> String {
        match self.choices.one_in(3) {
            true => {
                self.number();
                "r2 = r1\n".to_owned()
            }
            false => format!("r2 = {}\n", self.choices.between(least, most)),
        }
    }

    /// An offset in the packet, 16 bytes of the stack, and a length.
    fn bytes(&mut self) -> String {
        let offset = self.choices.pick(&[0, 12, 14, 23, 30, 58, 90, 65_530]);
        let len = 1 + self.choices.below(16);
        format!("r2 = {offset}\nr3 = r10\nr3 += -32\nr4 = {len}\n")
    }

    /// An offset of a checksum, an old and a new number, and flags.
    fn replaced(&mut self, offset: u32, flags: u32) -> String {
        let (from, to) = (self.choices.below(0x10000), self.choices.below(0x10000));
        let offset = self.choices.pick(&[offset, offset, 3, 58, 1000]);
        format!("r2 = {offset}\nr3 = {from}\nr4 = {to}\nr5 = {flags}\n")
    }
}
