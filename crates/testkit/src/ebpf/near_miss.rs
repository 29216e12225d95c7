//! Near misses: an idiom that is wrong in one place.
//!
//! A constant is one too large, an instruction is missing, doubled or moved, a
//! jump leads into the middle, an intermediate value is read or changed, a store
//! in between hits what is loaded. The result is as safe as the idiom was: its
//! registers hold numbers before and after, and an access is only moved where
//! there is room.

use super::Dialect;
use super::draft::Item;
use super::memory::{Need, size_of};
use super::scope::{Holds, Scope, alu, bit, store};
use isa::ebpf::{AluOp, Imm64, Insn, Operand, Reg, Size, Value64, Width};

/// Number of kinds of changes.
pub(super) const KINDS: usize = 11;

/// The recipe with one or two changes.
pub(super) fn change(scope: &mut Scope<'_, '_>, mut recipe: Vec<Item>) -> Vec<Item> {
    let count = if scope.choices.one_in(4) { 2 } else { 1 };
    for _ in 0..count {
        // Not every kind finds something to change.
        for _ in 0..4 {
            let kind = scope.choices.below(KINDS as u32) as usize;
            if change_once(scope, &mut recipe, kind) {
                scope.notes.near_miss(kind);
                break;
            }
        }
    }
    recipe
}

fn change_once(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>, kind: usize) -> bool {
    match kind {
        0 => change_constant(s, recipe),
        1 => change_width(s, recipe),
        2 => change_register(s, recipe),
        3 => drop_one(s, recipe),
        4 => double_one(s, recipe),
        5 => exchange_neighbours(s, recipe),
        6 => jump_in(s, recipe),
        7 => jump_out(s, recipe),
        8 => read_between(s, recipe),
        9 => write_between(s, recipe),
        _ => store_between(s, recipe),
    }
}

/// Position of an instruction of some kind.
fn find(
    s: &mut Scope<'_, '_>,
    recipe: &[Item],
    is_wanted: impl Fn(&Item) -> bool,
) -> Option<usize> {
    let start = s.choices.below(recipe.len() as u32) as usize;
    let around = (start..recipe.len()).chain(0..start);
    around.into_iter().find(|&at| is_wanted(&recipe[at]))
}

fn is_plain(item: &Item) -> bool {
    matches!(item, Item::Plain(_))
}

fn change_constant(s: &mut Scope<'_, '_>, recipe: &mut [Item]) -> bool {
    let has_constant = |item: &Item| {
        let (Item::Plain(insn) | Item::Jump(insn, _)) = item else {
            return false;
        };
        matches!(
            insn,
            Insn::Alu {
                src: Operand::Imm(_),
                ..
            } | Insn::Jump {
                src: Operand::Imm(_),
                ..
            } | Insn::Store {
                src: Operand::Imm(_),
                ..
            } | Insn::LoadImm64 { .. }
                | Insn::Load { .. }
        )
    };
    let Some(at) = find(s, recipe, has_constant) else {
        return false;
    };
    let by = s.choices.pick(&[1, -1, 1, -1, 8, -8, 16, 32, -32, 2]);
    let flip = s.choices.one_in(4);
    let bits = 1i32.wrapping_shl(s.choices.below(32));
    let near = |imm: i32| {
        if flip {
            imm ^ bits
        } else {
            imm.wrapping_add(by)
        }
    };
    let (Item::Plain(insn) | Item::Jump(insn, _)) = &mut recipe[at] else {
        return false;
    };
    let mut changed = *insn;
    match &mut changed {
        Insn::Alu {
            src: Operand::Imm(imm),
            ..
        }
        | Insn::Jump {
            src: Operand::Imm(imm),
            ..
        }
        | Insn::Store {
            src: Operand::Imm(imm),
            ..
        } => *imm = near(*imm),
        Insn::LoadImm64 {
            imm: Imm64::Value(value),
            ..
        } => {
            let flipped = 1 << s.choices.below(64);
            *value = Value64::new(if flip {
                value.get() ^ flipped
            } else {
                value.get().wrapping_add_signed(by.into())
            });
        }
        Insn::Load { off, .. } => *off = off.saturating_add(by as i16),
        _ => return false,
    }
    if !s.allows(changed) {
        return false;
    }
    *insn = changed;
    true
}

fn change_width(s: &mut Scope<'_, '_>, recipe: &mut [Item]) -> bool {
    let has_width = |item: &Item| {
        let (Item::Plain(insn) | Item::Jump(insn, _)) = item else {
            return false;
        };
        matches!(
            insn,
            Insn::Alu { .. } | Insn::Neg { .. } | Insn::Jump { .. } | Insn::Load { .. }
        )
    };
    let Some(at) = find(s, recipe, has_width) else {
        return false;
    };
    let other = s.choices.pick(&[Size::B, Size::H, Size::W, Size::DW]);
    let (Item::Plain(insn) | Item::Jump(insn, _)) = &mut recipe[at] else {
        return false;
    };
    let mut changed = *insn;
    match &mut changed {
        Insn::Alu { width, .. } | Insn::Neg { width, .. } | Insn::Jump { width, .. } => {
            *width = match width {
                Width::W32 => Width::W64,
                Width::W64 => Width::W32,
            };
        }
        Insn::Load { size, signed, .. } => {
            *size = other;
            *signed &= other != Size::DW;
        }
        _ => return false,
    }
    if !s.allows(changed) {
        return false;
    }
    *insn = changed;
    true
}

fn change_register(s: &mut Scope<'_, '_>, recipe: &mut [Item]) -> bool {
    let has_registers = |item: &Item| {
        let (Item::Plain(insn) | Item::Jump(insn, _)) = item else {
            return false;
        };
        matches!(
            insn,
            Insn::Alu { .. } | Insn::Jump { .. } | Insn::Load { .. }
        )
    };
    let Some(at) = find(s, recipe, has_registers) else {
        return false;
    };
    let Some(target) = s.number_at_hand(0) else {
        return false;
    };
    let source = s.scalar();
    let (Item::Plain(insn) | Item::Jump(insn, _)) = &mut recipe[at] else {
        return false;
    };
    match insn {
        Insn::Alu {
            src: src @ Operand::Reg(_),
            ..
        }
        | Insn::Jump {
            src: src @ Operand::Reg(_),
            ..
        } if s.choices.one_in(2) => {
            *src = Operand::Reg(source);
        }
        Insn::Jump { dst, .. } => *dst = source,
        Insn::Alu { dst, .. } | Insn::Load { dst, .. } => *dst = target,
        _ => return false,
    }
    true
}

fn drop_one(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    let Some(at) = find(s, recipe, is_plain) else {
        return false;
    };
    recipe.remove(at);
    true
}

fn double_one(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    let Some(at) = find(s, recipe, is_plain) else {
        return false;
    };
    recipe.insert(at, recipe[at]);
    true
}

fn exchange_neighbours(s: &mut Scope<'_, '_>, recipe: &mut [Item]) -> bool {
    if recipe.len() < 2 {
        return false;
    }
    let at = s.choices.below(recipe.len() as u32 - 1) as usize;
    let both = is_plain(&recipe[at]) && is_plain(&recipe[at + 1]);
    if both {
        recipe.swap(at, at + 1);
    }
    both
}

/// A position for a new item: not after an unconditional jump, where it would be
/// unreachable.
fn gap(s: &mut Scope<'_, '_>, recipe: &[Item]) -> usize {
    let at = s.choices.below(recipe.len() as u32 + 1) as usize;
    let is_goto = |item: &Item| matches!(item, Item::Jump(Insn::Goto { .. }, _));
    at - usize::from(at > 0 && is_goto(&recipe[at - 1]))
}

/// A jump from before the recipe into it.
fn jump_in(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    if s.scalars() == 0 {
        return false;
    }
    let middle = s.label();
    let condition = s.condition();
    let at = s.choices.below(recipe.len() as u32 + 1) as usize;
    recipe.insert(at, Item::Place(middle));
    recipe.insert(0, Item::Jump(condition, middle));
    true
}

/// A jump from inside the recipe to its end.
fn jump_out(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    if s.scalars() == 0 {
        return false;
    }
    let end = s.label();
    let condition = s.condition();
    let at = gap(s, recipe);
    recipe.insert(at, Item::Jump(condition, end));
    recipe.push(Item::Place(end));
    true
}

/// A register that the recipe writes.
fn written(s: &mut Scope<'_, '_>, recipe: &[Item]) -> Option<Reg> {
    let writes = |item: &Item| match item {
        Item::Plain(Insn::Alu { dst, .. } | Insn::Load { dst, .. }) => Some(*dst),
        _ => None,
    };
    let at = find(s, recipe, |item| writes(item).is_some())?;
    writes(&recipe[at])
}

/// An intermediate value is used for something else too.
fn read_between(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    let Some(read) = written(s, recipe) else {
        return false;
    };
    let at = gap(s, recipe);
    let kept = if s.choices.one_in(2) {
        s.place(Need::plain(Size::DW, !0)).map(|(base, off)| {
            let size = s.choices.pick(&[Size::W, Size::DW]);
            store(size, base, off, Operand::Reg(read))
        })
    } else {
        None
    };
    let insn = match (kept, s.number_at_hand(bit(read))) {
        (Some(kept), _) => kept,
        (None, Some(other)) => {
            let op = s.choices.pick(&[AluOp::Add, AluOp::Xor]);
            alu(op, Width::W64, other, Operand::Reg(read))
        }
        (None, None) => return false,
    };
    recipe.insert(at, Item::Plain(insn));
    true
}

/// An intermediate value is changed.
fn write_between(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    let Some(changed) = written(s, recipe) else {
        return false;
    };
    let at = gap(s, recipe);
    let op = s
        .choices
        .pick(&[AluOp::Add, AluOp::Xor, AluOp::Or, AluOp::Mov]);
    let insn = alu(op, s.width(), changed, s.operand());
    recipe.insert(at, Item::Plain(insn));
    true
}

/// A store hits what the recipe loads, or nearly.
fn store_between(s: &mut Scope<'_, '_>, recipe: &mut Vec<Item>) -> bool {
    let place = |item: &Item| match item {
        Item::Plain(Insn::Load { base, off, .. } | Insn::Store { base, off, .. }) => {
            Some((*base, *off))
        }
        _ => None,
    };
    let Some(found) = find(s, recipe, |item| place(item).is_some()) else {
        return false;
    };
    let Some((base, off)) = place(&recipe[found]) else {
        return false;
    };
    if s.scalars() == 0 {
        return false;
    }
    let size = s.choices.pick(&[Size::B, Size::H, Size::W, Size::DW]);
    let off = off.saturating_add(s.choices.pick(&[0, 0, 1, 4, -1, -4]));
    let insn = store(size, base, off, s.operand());
    if !s.allows(insn) {
        return false;
    }
    let at = gap(s, recipe);
    recipe.insert(at, Item::Plain(insn));
    true
}

impl Scope<'_, '_> {
    /// True if an instruction of a recipe is valid here.
    fn allows(&self, insn: Insn) -> bool {
        use AluOp::{Arsh, Div, Lsh, Mod, Rsh, SDiv, SMod};
        match insn {
            Insn::Alu {
                op,
                width,
                src: Operand::Imm(imm),
                ..
            } if self.dialect == Dialect::Kernel => match op {
                Lsh | Rsh | Arsh => (0..if width == Width::W32 { 32 } else { 64 }).contains(&imm),
                Div | Mod | SDiv | SMod => imm != 0,
                _ => true,
            },
            Insn::Load {
                size, base, off, ..
            }
            | Insn::Store {
                size, base, off, ..
            } => self.is_inside(base, off, size),
            _ => true,
        }
    }

    /// True if these bytes may be accessed.
    fn is_inside(&self, base: Reg, off: i16, size: Size) -> bool {
        let (from, low, high, is_stack) = match self.holds[base.index()] {
            Holds::Memory(at) => (at, 0, self.memory_len, false),
            Holds::Frame(at) => (at, self.frame.low, self.frame.high, true),
            Holds::Lent(at) => (at, 0, self.frame.lent.map_or(0, |(_, len)| len), true),
            _ => return false,
        };
        let at = from + i32::from(off);
        let aligned = at % size_of(size) == 0 || self.dialect == Dialect::Engines || !is_stack;
        at >= low && at + size_of(size) <= high && aligned
    }
}
