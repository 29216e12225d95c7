//! Functions as they are written: instructions with labels, and what becomes of
//! them when every distance is known.

use isa::ebpf::{Callee, Insn};

/// A place in a function that jumps name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub(super) u32);

/// Item of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An instruction that falls through (a 64-bit immediate takes two slots) or exits.
    Plain(Insn),
    /// A jump to a label, whatever distance the instruction states.
    Jump(Insn, Label),
    /// Here the label is.
    Place(Label),
    /// A call of the function with that number.
    Call(usize),
}

/// The slots of all functions, the first of them first.
pub(super) fn link(functions: &[&[Item]]) -> Vec<Insn> {
    let mut far = vec![Vec::new(); functions.len()];
    loop {
        let layout = Layout::of(functions, &far);
        let mut grown = false;
        if layout.end > i16::MAX as usize {
            for (number, items) in functions.iter().enumerate() {
                grown |= layout.note_far_jumps(number, items, &mut far[number]);
            }
        }
        if !grown {
            return layout.write(functions, &far);
        }
    }
}

/// Layout of the items.
struct Layout {
    starts: Vec<usize>,
    /// The slots of each function's labels.
    labels: Vec<Vec<usize>>,
    end: usize,
}

/// Slots of a conditional jump that is too far: over a `goto`, to a `gotol`.
const FAR_SLOTS: usize = 3;

impl Layout {
    fn of(functions: &[&[Item]], far: &[Vec<usize>]) -> Layout {
        let mut layout = Layout {
            starts: Vec::with_capacity(functions.len()),
            labels: Vec::with_capacity(functions.len()),
            end: 0,
        };
        for (items, far) in functions.iter().zip(far) {
            layout.starts.push(layout.end);
            let mut labels = Vec::new();
            for (at, item) in items.iter().enumerate() {
                if let Item::Place(Label(label)) = *item {
                    let label = label as usize;
                    if labels.len() <= label {
                        labels.resize(label + 1, usize::MAX);
                    }
                    labels[label] = layout.end;
                }
                layout.end += slots(item, far.binary_search(&at).is_ok());
            }
            layout.labels.push(labels);
        }
        layout
    }

    fn distance(&self, function: usize, from: usize, to: Label) -> i64 {
        self.labels[function][to.0 as usize] as i64 - from as i64 - 1
    }

    /// Adds the conditional jumps whose distance needs more than 16 bits.
    fn note_far_jumps(&self, function: usize, items: &[Item], far: &mut Vec<usize>) -> bool {
        let known = far.len();
        let mut slot = self.starts[function];
        for (at, item) in items.iter().enumerate() {
            let is_known = far[..known].binary_search(&at).is_ok();
            if let Item::Jump(Insn::Jump { .. } | Insn::MayGoto { .. }, to) = *item
                && !is_known
                && i16::try_from(self.distance(function, slot, to)).is_err()
            {
                far.push(at);
            }
            slot += slots(item, is_known);
        }
        let grown = far.len() > known;
        far.sort_unstable();
        grown
    }

    fn write(&self, functions: &[&[Item]], far: &[Vec<usize>]) -> Vec<Insn> {
        let mut insns = Vec::with_capacity(self.end);
        for (number, (items, far)) in functions.iter().zip(far).enumerate() {
            for (at, item) in items.iter().enumerate() {
                match *item {
                    Item::Plain(insn) => {
                        insns.push(insn);
                        if matches!(insn, Insn::LoadImm64 { .. }) {
                            insns.push(Insn::Imm64High);
                        }
                    }
                    Item::Place(_) => {}
                    Item::Call(callee) => {
                        let off = self.starts[callee] as i64 - insns.len() as i64 - 1;
                        insns.push(Insn::Call(Callee::Local(off as i32)));
                    }
                    Item::Jump(insn, to) if far.binary_search(&at).is_ok() => {
                        insns.extend([with_distance(insn, 1), Insn::Goto { off: 1 }]);
                        let off = self.distance(number, insns.len(), to) as i32;
                        insns.push(Insn::GotoLong { off });
                    }
                    Item::Jump(insn, to) => {
                        let off = self.distance(number, insns.len(), to) as i32;
                        insns.push(with_distance(insn, off));
                    }
                }
            }
        }
        insns
    }
}

fn slots(item: &Item, far: bool) -> usize {
    match item {
        Item::Place(_) => 0,
        Item::Plain(Insn::LoadImm64 { .. }) => 2,
        Item::Jump(..) if far => FAR_SLOTS,
        _ => 1,
    }
}

/// The jump with that distance; a `goto` becomes a `gotol` where it must.
pub(super) fn with_distance(insn: Insn, distance: i32) -> Insn {
    let short = i16::try_from(distance);
    match (insn, short) {
        (
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                ..
            },
            Ok(off),
        ) => Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        },
        (Insn::MayGoto { .. }, Ok(off)) => Insn::MayGoto { off },
        (Insn::Goto { .. }, Ok(off)) => Insn::Goto { off },
        (Insn::Goto { .. } | Insn::GotoLong { .. }, _) => Insn::GotoLong { off: distance },
        (other, _) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::{Cond, Operand, Reg, Width};

    const IF: Insn = Insn::Jump {
        cond: Cond::Eq,
        width: Width::W64,
        dst: Reg::R0,
        src: Operand::Imm(0),
        off: 0,
    };

    #[test]
    fn distances_count_from_the_next_slot() {
        let near = [
            Item::Place(Label(1)),
            Item::Jump(IF, Label(0)),
            Item::Call(1),
            Item::Place(Label(0)),
            Item::Jump(Insn::Goto { off: 0 }, Label(1)),
        ];
        let linked = link(&[&near, &[Item::Plain(Insn::Exit)]]);
        let expected = [
            with_distance(IF, 1),
            Insn::Call(Callee::Local(1)),
            Insn::Goto { off: -3 },
            Insn::Exit,
        ];
        assert_eq!(linked, expected);
    }

    #[test]
    fn far_jumps_become_long_ones() {
        let mut items = vec![
            Item::Jump(IF, Label(0)),
            Item::Jump(Insn::Goto { off: 0 }, Label(0)),
        ];
        items.extend(vec![Item::Plain(Insn::Exit); 40_000]);
        items.push(Item::Place(Label(0)));
        items.push(Item::Plain(Insn::Exit));
        let linked = link(&[&items]);
        let expected = [
            with_distance(IF, 1),
            Insn::Goto { off: 1 },
            Insn::GotoLong { off: 40_001 },
            Insn::GotoLong { off: 40_000 },
        ];
        assert_eq!(linked[..4], expected);
        assert_eq!(linked.len(), 40_005);
    }
}
