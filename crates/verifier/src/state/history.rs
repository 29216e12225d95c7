//! The jump history of a path since its last checkpoint: the instructions that backtracking must know.

use std::rc::Rc;

/// Flags of a history entry (kernel: `INSN_F_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HistoryFlags(pub u16);

impl HistoryFlags {
    /// Nothing particular.
    pub const NONE: HistoryFlags = HistoryFlags(0);
    /// The instruction accessed a stack slot through a stack pointer.
    pub const STACK_ACCESS: HistoryFlags = HistoryFlags(1 << 9);
    /// The destination register is a stack pointer.
    pub const DST_STACK: HistoryFlags = HistoryFlags(1 << 10);
    /// The source register is a stack pointer.
    pub const SRC_STACK: HistoryFlags = HistoryFlags(1 << 11);

    /// An access to slot `spi` of frame `frameno` (`insn_stack_access_flags`).
    #[doc(alias = "insn_stack_access_flags")]
    pub fn stack_access(spi: usize, frameno: u32) -> HistoryFlags {
        HistoryFlags((frameno as u16 & 7) | ((spi as u16 & 63) << 3) | Self::STACK_ACCESS.0)
    }

    /// True if all flags of `other` are set.
    pub fn has(self, other: HistoryFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Frame of a stack access (`insn_stack_access_frameno`).
    #[doc(alias = "insn_stack_access_frameno")]
    pub fn frame(self) -> usize {
        usize::from(self.0 & 7)
    }

    /// Slot of a stack access (`insn_stack_access_spi`).
    #[doc(alias = "insn_stack_access_spi")]
    pub fn spi(self) -> usize {
        usize::from((self.0 >> 3) & 63)
    }
}

/// A register or slot that is linked with a compared scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedReg {
    /// A register.
    Reg {
        /// Frame number.
        frame: usize,
        /// Register number.
        reg: usize,
    },
    /// A slot.
    Slot {
        /// Frame number.
        frame: usize,
        /// Slot number.
        spi: usize,
    },
}

/// Up to six linked registers and slots, packed in ten bits each (frame 3, number 6, is register 1)
/// above a count of four bits (`linked_regs_pack`, `linked_regs_unpack`).
#[doc(alias = "linked_regs_pack")]
#[doc(alias = "linked_regs_unpack")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkedRegs(u64);

impl LinkedRegs {
    /// Most entries.
    pub const MAX: usize = 6;

    /// Number of entries.
    pub const fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    /// True if there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds an entry; false if there is no room (`linked_regs_push`).
    #[doc(alias = "linked_regs_push")]
    pub fn push(&mut self, linked: LinkedReg) -> bool {
        let count = self.len();
        if count == LinkedRegs::MAX {
            return false;
        }
        let entry = match linked {
            LinkedReg::Reg { frame, reg } => frame | reg << 3 | 1 << 9,
            LinkedReg::Slot { frame, spi } => frame | spi << 3,
        };
        self.0 = (self.0 | (entry as u64) << (4 + 10 * count)) + 1;
        true
    }

    /// The entries.
    pub fn iter(self) -> impl Iterator<Item = LinkedReg> {
        (0..self.len()).map(move |index| {
            let entry = (self.0 >> (4 + 10 * index)) as usize & 0x3ff;
            let (frame, number) = (entry & 7, entry >> 3 & 63);
            if entry & 1 << 9 != 0 {
                LinkedReg::Reg { frame, reg: number }
            } else {
                LinkedReg::Slot { frame, spi: number }
            }
        })
    }
}

/// One instruction on the path since the last checkpoint that backtracking must know
/// (kernel: `struct bpf_jmp_history_entry`) (`bpf_jmp_history_entry`).
#[doc(alias = "bpf_jmp_history_entry")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The instruction.
    pub idx: u32,
    /// The instruction executed before it, in 20 bits (programs have at most 1,000,000
    /// instructions), and the flags above it.
    prev_and_flags: u32,
    /// Registers linked with a compared scalar.
    pub linked: LinkedRegs,
}

const _: () = assert!(size_of::<HistoryEntry>() == 16);

impl HistoryEntry {
    const PREV_BITS: u32 = 20;
    const PREV_MASK: u32 = (1 << Self::PREV_BITS) - 1;

    /// An entry of instruction `idx`, executed after `prev_idx`; -1 at the start.
    pub fn new(idx: u32, prev_idx: i32, flags: HistoryFlags, linked: LinkedRegs) -> HistoryEntry {
        HistoryEntry {
            idx,
            prev_and_flags: prev_idx as u32 & Self::PREV_MASK
                | u32::from(flags.0) << Self::PREV_BITS,
            linked,
        }
    }

    /// The instruction executed before it; beyond every program at the start.
    pub fn prev_idx(self) -> u32 {
        self.prev_and_flags & Self::PREV_MASK
    }

    /// The accessed slot and flags.
    pub fn flags(self) -> HistoryFlags {
        HistoryFlags((self.prev_and_flags >> Self::PREV_BITS) as u16)
    }

    /// True if it notes the way here alone: no access to the stack, no linked registers.
    pub fn is_of_jump(&self) -> bool {
        self.flags() == HistoryFlags::NONE && self.linked.is_empty()
    }

    /// Adds what it accessed.
    pub fn add_flags(&mut self, flags: HistoryFlags) {
        self.prev_and_flags |= u32::from(flags.0) << Self::PREV_BITS;
    }
}

/// The jump history of a state. What is longer than a segment is shared by the copies of a state: before
/// Linux 6.12 nothing ends a history ([`Behaviour::LongHistories`](spec::behaviour::Behaviour)), and a
/// program of two instructions in a loop has one of a million entries.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What is behind the segments; at most one segment's length, empty only where all is.
    entries: Vec<HistoryEntry>,
    earlier: Option<Rc<Segment>>,
}

/// A part of a history, with what is in front of it.
#[derive(Debug)]
struct Segment {
    entries: Vec<HistoryEntry>,
    earlier: Option<Rc<Segment>>,
    /// Entries of it and of what is in front of it.
    len: usize,
}

/// Entries of a segment.
const SEGMENT: usize = 128;

impl History {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.backward().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: HistoryEntry) {
        if self.entries.len() == SEGMENT {
            let len = self.len();
            self.earlier = Some(Rc::new(Segment {
                entries: std::mem::take(&mut self.entries),
                earlier: self.earlier.take(),
                len,
            }));
        }
        self.entries.push(entry);
    }

    /// The last entry.
    pub fn last(&self) -> Option<&HistoryEntry> {
        self.entries.last()
    }

    /// The last entry, for writing.
    pub fn last_mut(&mut self) -> Option<&mut HistoryEntry> {
        self.entries.last_mut()
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.earlier = None;
    }

    /// Gives memory back that no entry needs.
    pub fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// A walk from the last entry to the first.
    pub fn backward(&self) -> Backward<'_> {
        Backward {
            entries: &self.entries,
            earlier: self.earlier.as_deref(),
        }
    }
}

impl Drop for Segment {
    /// One segment after the other: each within the one behind it would take as much stack as there are.
    fn drop(&mut self) {
        let mut earlier = self.earlier.take();
        while let Some(mut segment) = earlier.and_then(Rc::into_inner) {
            earlier = segment.earlier.take();
        }
    }
}

/// The entries of a history that a walk has not passed.
#[derive(Clone, Copy, Debug)]
pub struct Backward<'h> {
    entries: &'h [HistoryEntry],
    earlier: Option<&'h Segment>,
}

impl<'h> Backward<'h> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len() + self.earlier.map_or(0, |segment| segment.len)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The last entry.
    pub fn last(&self) -> Option<&'h HistoryEntry> {
        self.entries.last()
    }

    /// Passes the last entry.
    pub fn pass(&mut self) {
        if let [earlier @ .., _] = self.entries {
            self.entries = earlier;
        }
        if let (true, Some(segment)) = (self.entries.is_empty(), self.earlier) {
            self.entries = &segment.entries;
            self.earlier = segment.earlier.as_deref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{History, HistoryEntry, HistoryFlags, LinkedReg, LinkedRegs};

    #[test]
    fn history_flags_keep_slot_and_frame() {
        for (spi, frame) in [(0, 0), (63, 7), (17, 3)] {
            let flags = HistoryFlags::stack_access(spi, frame);
            assert!(flags.has(HistoryFlags::STACK_ACCESS));
            assert!(!flags.has(HistoryFlags::DST_STACK));
            assert_eq!((flags.spi(), flags.frame()), (spi, frame as usize));
        }
    }

    #[test]
    fn history_entries_keep_their_parts_apart() {
        let flags = HistoryFlags::stack_access(63, 7);
        let mut entry = HistoryEntry::new(5, 999_999, flags, LinkedRegs::default());
        assert_eq!((entry.prev_idx(), entry.flags()), (999_999, flags));
        entry.add_flags(HistoryFlags::SRC_STACK);
        assert_eq!(entry.prev_idx(), 999_999);
        assert!(entry.flags().has(flags) && entry.flags().has(HistoryFlags::SRC_STACK));
        let first = HistoryEntry::new(0, -1, HistoryFlags::NONE, LinkedRegs::default());
        assert!(first.prev_idx() > 1_000_000 && first.flags() == HistoryFlags::NONE);
    }

    #[test]
    fn linked_registers_are_at_most_six() {
        let mut linked = LinkedRegs::default();
        assert!(linked.is_empty());
        let entries: Vec<LinkedReg> = (0..6)
            .map(|n| match n % 2 {
                0 => LinkedReg::Reg {
                    frame: n,
                    reg: 9 - n,
                },
                _ => LinkedReg::Slot {
                    frame: 7 - n,
                    spi: 58 + n,
                },
            })
            .collect();
        assert!(entries.iter().all(|&entry| linked.push(entry)));
        assert_eq!(linked.iter().collect::<Vec<_>>(), entries);
        let full = linked;
        assert!(!linked.push(entries[0]));
        assert_eq!(linked, full);
    }

    #[test]
    fn histories_share_what_copies_have_in_common() {
        let entry =
            |at| HistoryEntry::new(at, at as i32 - 1, HistoryFlags::NONE, LinkedRegs::default());
        let walk = |history: &History| {
            let mut backward = history.backward();
            let mut places = Vec::new();
            while let Some(entry) = backward.last() {
                assert_eq!(backward.len(), entry.idx as usize + 1);
                places.push(entry.idx);
                backward.pass();
            }
            assert!(backward.is_empty());
            places.reverse();
            places
        };
        let mut history = History::default();
        for at in 0..300_000 {
            if [0, 1, 127, 128, 129, 256, 257].contains(&at) {
                assert_eq!(walk(&history), Vec::from_iter(0..at));
                assert_eq!((history.len(), history.is_empty()), (at as usize, at == 0));
            }
            history.push(entry(at));
        }
        let mut copy = history.clone();
        history.push(entry(300_000));
        copy.last_mut()
            .expect("an entry")
            .add_flags(HistoryFlags::DST_STACK);
        assert_eq!((history.len(), copy.len()), (300_001, 300_000));
        assert!(
            copy.last()
                .is_some_and(|it| it.flags() == HistoryFlags::DST_STACK)
        );
        drop(history);
        assert_eq!(walk(&copy), Vec::from_iter(0..300_000));
        copy.clear();
        assert!(copy.is_empty());
    }
}
