//! Helpers without changes of the packet, values under their lock, the tail of the packet.

use std::fmt::Write as _;

use spec::programs::ProgramType;

use super::super::maps::{BLOOM, LOCKED, PERCPU_ARRAY, PERCPU_HASH, PERCPU_LRU, PERF};
use super::{MIX, Writer};

/// Helpers whose arguments are a context, stack and numbers: name and arguments.
const ALWAYS: &[(&str, &str)] = &[
    // Text at `r10 - 24`, its number at `r10 - 16`.
    (
        "bpf_strtol",
        "*(u32 *)(r10 - 24) = 0x00332d20\nr1 = r10\nr1 += -24\nr2 = 8\nr3 = 0\nr4 = r10\nr4 += -16\n",
    ),
    (
        "bpf_strtoul",
        "*(u32 *)(r10 - 24) = 0x31667830\nr1 = r10\nr1 += -24\nr2 = 4\nr3 = 16\nr4 = r10\nr4 += -16\n",
    ),
    (
        "bpf_csum_diff",
        "r1 = 0\nr2 = 0\nr3 = r7\nr4 = 40\nr5 = 7\n",
    ),
    (
        "bpf_csum_diff",
        "r1 = r7\nr2 = 20\nr3 = r10\nr3 += -32\nr4 = 32\nr5 = r9\n",
    ),
    ("bpf_redirect", "r1 = 1\nr2 = 0\n"),
    ("bpf_redirect", "r1 = 1\nr2 = 6\n"),
    ("bpf_get_smp_processor_id", ""),
    ("bpf_get_numa_node_id", ""),
];

/// Those of socket buffers beside them.
const SKB: &[(&str, &str)] = &[
    (
        "bpf_skb_load_bytes_relative",
        "r1 = r6\nr2 = 2\nr3 = r10\nr3 += -32\nr4 = 13\nr5 = 0\n",
    ),
    (
        "bpf_skb_load_bytes_relative",
        "r1 = r6\nr2 = 9\nr3 = r10\nr3 += -32\nr4 = 9\nr5 = 1\n",
    ),
    ("bpf_csum_level", "r1 = r6\nr2 = 0\n"),
    ("bpf_get_route_realm", "r1 = r6\n"),
    ("bpf_get_cgroup_classid", "r1 = r6\n"),
];

/// Those whose results differ from machine to machine, of which the last one is for socket
/// buffers.
const MACHINE: &[(&str, &str)] = &[
    ("bpf_ktime_get_ns", ""),
    ("bpf_get_prandom_u32", ""),
    ("bpf_jiffies64", ""),
    ("bpf_get_hash_recalc", "r1 = r6\n"),
];

impl Writer<'_, '_> {
    /// A call of a helper.
    pub(super) fn call(&mut self) {
        let list = match self.choices.below(3) {
            0 if self.features.has_machine => match self.kind {
                ProgramType::Xdp => &MACHINE[..MACHINE.len() - 1],
                _ => MACHINE,
            },
            1 if self.kind == ProgramType::SchedCls => SKB,
            _ => ALWAYS,
        };
        let (helper, arguments) = list[self.choices.below(list.len() as u32) as usize];
        let number = spec::helpers::number(helper).expect("a helper of this name");
        let _ = write!(
            self.text,
            "{arguments}call {number}\n{MIX}r1 = *(u64 *)(r10 - 16)\nr9 += r1\n"
        );
    }

    /// A value under its spin lock, of which both numbers are changed; at times copied out
    /// under it.
    pub(super) fn locked(&mut self) {
        let label = self.label();
        self.number();
        self.text += "r1 &= 3\n*(u32 *)(r10 - 8) = r1\n";
        self.map(LOCKED);
        // No helper may be called under the lock, but memory is read and written.
        let inside = match self.choices.below(4) {
            0 => "r1 = *(u64 *)(r7 + 24)\nr9 += r1\n",
            1 => "if r9 s> 0 goto +1\nr9 += 5\n",
            2 => "*(u64 *)(r10 - 24) = r9\n",
            _ => "",
        };
        let _ = write!(
            self.text,
            "r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto free{label}\nr8 = r0\nr1 = r8\ncall 93\n\
             r1 = *(u64 *)(r8 + 8)\nr9 += r1\n{inside}*(u64 *)(r8 + 8) = r9\n\
             r1 = *(u64 *)(r8 + 16)\nr1 += 1\n*(u64 *)(r8 + 16) = r1\nr9 ^= r1\nr1 = r8\n\
             call 94\nfree{label}:\n"
        );
    }

    /// A value is added to a filter, or looked for if it is there for certain: what else is
    /// found depends on the hash.
    pub(super) fn filter(&mut self) {
        self.text += "*(u64 *)(r10 - 24) = r9\n";
        for call in ["r3 = 0\ncall 87\n", "call 89\n", "r3 = 1\ncall 87\n"] {
            self.map(BLOOM);
            let _ = write!(self.text, "r2 = r10\nr2 += -24\n{call}{MIX}");
            if self.choices.one_in(3) {
                break;
            }
        }
    }

    /// Bytes before the end of the packet, at an offset that the packet has.
    pub(super) fn tail(&mut self) {
        let (_, end) = self.bounds();
        let label = self.label();
        let (size, access) = self
            .choices
            .pick(&[(1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")]);
        let start = 40 + self.choices.below(24);
        self.number();
        let scale = self.choices.below(4);
        let _ = write!(
            self.text,
            "r1 <<= {scale}\nr2 = r7\nr2 += r1\nr3 = r2\nr3 += {}\nr4 = *(u32 *)(r6 + {end})\n\
             if r3 > r4 goto beyond{label}\nr1 = *({access} *)(r2 + {start})\nr9 += r1\n",
            start + size
        );
        if self.choices.one_in(2) {
            let _ = writeln!(self.text, "*({access} *)(r2 + {start}) = r9");
        }
        let _ = writeln!(self.text, "beyond{label}:");
    }

    /// A record for a perf buffer that is not there, with bytes of the packet.
    pub(super) fn event(&mut self) {
        let index = self.choices.pick(&[0u64, 1, 7, 0xffff_ffff]);
        let len = self.choices.pick(&[0u64, 0, 14, 40, 4000]);
        let flags = len << 32 | index;
        self.text += "r1 = r6\n";
        let pointer = 0x5218u64 | u64::from(PERF) << 32;
        let (low, high) = (flags & 0xffff_ffff, flags >> 32);
        let _ = write!(
            self.text,
            ".8byte {pointer:#x}\n.8byte 0\n.8byte {:#x}\n.8byte {:#x}\nr4 = r10\nr4 += -32\n\
             r5 = 24\ncall 25\n{MIX}",
            0x0318 | low << 32,
            high << 32
        );
        self.packet();
    }

    /// The value of another CPU, which may not be there.
    pub(super) fn other_cpu(&mut self) {
        let map = self.choices.pick(&[PERCPU_ARRAY, PERCPU_HASH, PERCPU_LRU]);
        let (label, cpu) = (self.label(), self.choices.below(6));
        self.number();
        self.text += "*(u32 *)(r10 - 8) = r1\n";
        self.map(map);
        let _ = write!(
            self.text,
            "r2 = r10\nr2 += -8\nr3 = {cpu}\ncall 195\nif r0 == 0 goto absent{label}\n\
             r1 = *(u64 *)(r0 + 8)\nr9 += r1\n*(u32 *)(r0 + 0) = r9\nabsent{label}:\n"
        );
    }
}
