//! Comparison trees against stepwise execution of their comparisons.

use beebox_lower::Function;
use beebox_lower::flow::{Cfg, falls_through, jump_target};
use beebox_lower::trees::{Tree, Trees};
use isa::ebpf::eval;
use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Width, assemble};
use spec::{Random, SplitMix};

/// A program of many comparisons of few registers with few constants, with mostly forward
/// jumps.
fn program(random: &mut SplitMix) -> Vec<Insn> {
    let mut below = |count: u32| random.next_u32() % count;
    let len = 6 + below(40) as i32;
    let (others, registers, wild) = (below(6), 1 + below(12) / 10, below(4) == 0);
    let edges = [0, 1, -1, i32::MAX, i32::MIN, i32::MIN + 1];
    let conds = match below(4) {
        0 => &[Cond::Eq, Cond::Ne][..],
        1 => &[Cond::Eq, Cond::SGt, Cond::SLe, Cond::SLt][..],
        2 => &[Cond::Eq, Cond::Gt, Cond::Ge, Cond::Le][..],
        _ => &Cond::ALL[..],
    };
    let mut insns: Vec<Insn> = (0..len)
        .map(|slot| {
            let far = below(if wild { len as u32 } else { 8 }) as i32;
            let target = match below(10) {
                0 => below(len as u32) as i32,
                _ => (slot + 1 + far).min(len - 1),
            };
            let off = (target - slot - 1) as i16;
            let imm = match below(8) {
                0 => edges[below(6) as usize],
                _ => below(12) as i32 - 2,
            };
            match below(20 + others) {
                0..17 => Insn::Jump {
                    cond: conds[below(conds.len() as u32) as usize],
                    width: Width::W32,
                    dst: [Reg::R1, Reg::R2][below(registers) as usize],
                    src: Operand::Imm(imm),
                    off,
                },
                17..20 => Insn::Goto { off },
                _ => Insn::Alu {
                    op: AluOp::Mov,
                    width: Width::W32,
                    dst: Reg::R0,
                    src: Operand::Imm(imm),
                },
            }
        })
        .collect();
    insns.push(Insn::Exit);
    insns
}

/// The successor of a comparison of the register with a value, or of a jump.
fn step(insns: &[Insn], slot: usize, reg: Reg, value: u32) -> Option<usize> {
    match insns[slot] {
        Insn::Goto { .. } => jump_target(&insns[slot], slot),
        Insn::Jump {
            cond,
            width: Width::W32,
            dst,
            src: Operand::Imm(imm),
            ..
        } if dst == reg => {
            let upper = 7 << 32;
            let holds = eval::compare(
                cond,
                Width::W32,
                upper | u64::from(value),
                imm as i64 as u64,
            );
            match holds {
                true => jump_target(&insns[slot], slot),
                false => Some(slot + 1),
            }
        }
        _ => None,
    }
}

fn leaf(tree: &Tree<'_>, value: u32) -> usize {
    let pieces = tree.pieces();
    let rank = tree.order.rank(value);
    let piece = pieces.partition_point(|piece| piece.from <= rank) - 1;
    pieces[piece].target as usize
}

fn check_values(insns: &[Insn], tree: &Tree<'_>) {
    let around = |value: i32| [-1, 0, 1].map(|by| value.wrapping_add(by) as u32);
    let edges = [0, i32::MAX, i32::MIN, -1];
    for value in (-4..14).chain(edges).flat_map(around) {
        let expected = leaf(tree, value);
        let mut at = tree.start;
        for steps in 0.. {
            assert!(
                steps <= insns.len(),
                "{value} gets to {expected}: {insns:?}"
            );
            at = step(insns, at, tree.dst, value)
                .expect("a path of comparisons and jumps to the leaf");
            if at == expected {
                break;
            }
        }
    }
    let pieces = tree.pieces();
    assert_eq!(pieces[0].from, 0);
    for pair in pieces.windows(2) {
        assert!(pair[0].from < pair[1].from && pair[0].target != pair[1].target);
    }
}

/// Checks that subsumed slots are only reached from roots and subsumed slots.
fn check_parts(insns: &[Insn], trees: &Trees, functions: &[Function]) {
    let led = |slot: usize| trees.is_root(slot) || trees.is_subsumed(slot);
    for (slot, &insn) in insns.iter().enumerate() {
        let next = falls_through(&insn).then_some(slot + 1);
        for to in [next, jump_target(&insn, slot)].into_iter().flatten() {
            if trees.is_subsumed(to) {
                assert!(led(slot), "{slot} leads to {to}: {insns:?}");
            }
        }
        let is_entry = functions.iter().any(|function| function.start == slot);
        assert!(!(is_entry && trees.is_subsumed(slot)), "{slot}: {insns:?}");
    }
    for tree in trees.iter() {
        for piece in tree.pieces() {
            assert!(!trees.is_subsumed(piece.target as usize), "{insns:?}");
        }
    }
}

#[test]
fn every_value_reaches_its_target() {
    let mut random = SplitMix::new(1);
    let (mut count, mut branched, mut backward, mut shared) = (0, 0, 0, 0);
    for round in 0..if cfg!(miri) { 20 } else { 100_000 } {
        let insns = program(&mut random);
        let middle = 1 + random.next_u32() as usize % (insns.len() - 1);
        let functions = [(0, middle), (middle, insns.len())];
        let functions = functions.map(|(start, end)| Function { start, end });
        let incoming_jumps = Cfg::of(&insns);
        let given = (round % 2 == 0).then_some(&functions[..]);
        let wanted = round % 3;
        let trees = Trees::find(&insns, &incoming_jumps, given, |tree| match wanted {
            0 => true,
            1 => tree.is_chain(),
            _ => tree.tests % 2 == 0,
        });
        check_parts(
            &insns,
            &trees,
            &functions[..if given.is_some() { 2 } else { 1 }],
        );
        for tree in trees.iter() {
            check_values(&insns, &tree);
            count += 1;
            branched += u32::from(!tree.is_chain());
            backward += u32::from(tree.has_back_edge);
        }
        shared += trees.slots().filter(|&slot| trees.is_shared(slot)).count();
    }
    if !cfg!(miri) {
        let counts = [count, branched, backward, shared as u32];
        assert!(counts.iter().all(|&count| count > 1_000), "{counts:?}");
    }
}

#[test]
fn a_switch_is_one_tree_of_subsumed_slots() {
    let text = "if w1 s> 3 goto upper; if w1 s> 1 goto two; if w1 == 0 goto a; if w1 == 1 goto b
        goto out; two: if w1 == 2 goto a; if w1 == 3 goto b; goto out
        upper: if w1 == 4 goto a; if w1 == 5 goto b; goto out
        a: r0 = 1; exit; b: r0 = 2; exit; out: r0 = 3; exit";
    let insns = assemble(text).expect("it is well-formed");
    let trees = Trees::find(&insns, &Cfg::of(&insns), None, |_| true);
    let tree = trees.with_root(0).expect("it is a tree");
    assert_eq!((trees.iter().count(), tree.tests), (1, 8));
    assert_eq!(trees.slots().count(), 11);
    assert!((1..11).all(|slot| trees.is_subsumed(slot)));
    for value in 0..8 {
        let expected = match value {
            6.. => 15,
            _ if value % 2 == 0 => 11,
            _ => 13,
        };
        assert_eq!(leaf(&tree, value), expected, "{value}");
    }
}
