//! Families of allocated objects in lists, trees and pointers of a map value.

use program::MapParams;
use spec::maps::MapKind;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup};
use crate::helpers::program_types::{TYPES, holder, item};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("objects in lists and trees", objects),
    Family::new("shapes of trees", shapes),
];

/// `bpf_spin_lock` and `bpf_spin_unlock` of the value at `r6`, `bpf_kptr_xchg`.
const LOCK: &str = "r1 = r6\ncall 93\n";
const UNLOCK: &str = "r1 = r6\ncall 94\n";
const XCHG: &str = "call 194\n";

/// Mixes the low half of `r0` into `r9`.
const MIX: &str = "w1 = w0\nr9 *= 31\nr9 += r1\n";

/// Puts the address of a field of the value into `r1`.
fn field(offset: u32) -> String {
    format!("r1 = r6\nr1 += {offset}\n")
}

/// Makes an object with a key, whose address is in `r7`; goes to `out` without memory.
fn new(choices: &mut Choices<'_>) -> String {
    let (key, data) = (choices.below(12), choices.value() as i32);
    format!(
        "r1 = {} ll\nr2 = 0\n{}if r0 == 0 goto out\nr7 = r0\nr1 = {key}\n\
         *(u64 *)(r7 + {}) = r1\nr1 = {data}\n*(u64 *)(r7 + {}) = r1\n",
        TYPES.item.0,
        call("bpf_obj_new_impl"),
        item::KEY,
        item::DATA
    )
}

/// Mixes the key of the object of which `r7` is at an offset, and drops it.
fn use_and_drop(offset: u32) -> String {
    format!(
        "r7 += -{offset}\nr1 = *(u64 *)(r7 + {})\nr9 *= 31\nr9 += r1\nr1 = *(u64 *)(r7 + {})\n\
         r9 *= 31\nr9 += r1\nr1 = r7\nr2 = 0\n{}",
        item::KEY,
        item::DATA,
        call("bpf_obj_drop_impl")
    )
}

/// Puts the object in a register into the list or the tree.
fn put(choices: &mut Choices<'_>, reg: &str) -> String {
    let (root, node, call) = match choices.below(3) {
        0 => (holder::LIST, item::LIST, call("bpf_list_push_front_impl")),
        1 => (holder::LIST, item::LIST, call("bpf_list_push_back_impl")),
        _ => {
            let call = "r3 = func(less) ll\n".to_owned() + &call("bpf_rbtree_add_impl");
            (holder::TREE, item::TREE, call)
        }
    };
    format!(
        "{LOCK}{}r2 = {reg}\nr2 += {node}\nr3 = 0\nr4 = 0\nr5 = 0\n{call}{MIX}{UNLOCK}",
        field(root)
    )
}

/// One operation; `at` numbers its labels.
fn operation(choices: &mut Choices<'_>, at: u32) -> String {
    match choices.below(9) {
        0 | 1 => new(choices) + &put(choices, "r7"),
        // One object twice: in both, or refused.
        2 => {
            let both = new(choices);
            let first = put(choices, "r8");
            let second = put(choices, "r7");
            format!(
                "{both}r1 = r7\nr2 = 0\n{}if r0 == 0 goto drop{at}\nr8 = r0\n{first}{second}\
                 goto next{at}\ndrop{at}:\nr1 = r7\nr2 = 0\n{}next{at}:\n",
                call("bpf_refcount_acquire_impl"),
                call("bpf_obj_drop_impl")
            )
        }
        3 | 4 => {
            let pop = choices.pick(&["bpf_list_pop_front", "bpf_list_pop_back"]);
            format!(
                "{LOCK}{}{}r7 = r0\n{UNLOCK}if r7 == 0 goto none{at}\n{}none{at}:\n",
                field(holder::LIST),
                call(pop),
                use_and_drop(item::LIST)
            )
        }
        5 => {
            let end = choices.pick(&["bpf_list_front", "bpf_list_back"]);
            format!(
                "{LOCK}{}{}if r0 == 0 goto none{at}\nr0 += -{}\nr1 = *(u64 *)(r0 + {})\n\
                 r9 *= 31\nr9 += r1\nnone{at}:\n{UNLOCK}",
                field(holder::LIST),
                call(end),
                item::LIST,
                item::KEY
            )
        }
        6 => remove_first(at),
        7 => {
            let exchange = new(choices);
            format!(
                "{exchange}{}r2 = r7\n{XCHG}if r0 == 0 goto none{at}\nr7 = r0\n{}none{at}:\n",
                field(holder::POINTER),
                use_and_drop(0)
            )
        }
        _ => format!(
            "{}r2 = 0\n{XCHG}if r0 == 0 goto none{at}\nr7 = r0\n{}none{at}:\n",
            field(holder::POINTER),
            use_and_drop(0)
        ),
    }
}

/// Removes the first node of the tree.
fn remove_first(at: u32) -> String {
    format!(
        "{LOCK}{root}{}if r0 == 0 goto empty{at}\nr7 = r0\n{root}r2 = r7\n{}r7 = r0\n{UNLOCK}\
         if r7 == 0 goto none{at}\n{}goto none{at}\nempty{at}:\n{UNLOCK}none{at}:\n",
        call("bpf_rbtree_first"),
        call("bpf_rbtree_remove"),
        use_and_drop(item::TREE),
        root = field(holder::TREE)
    )
}

/// A program that runs operations on the value of a map, and the function that compares keys.
fn program(choices: &mut Choices<'_>, operations: &str) -> Case {
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: holder::SIZE,
        value_type: TYPES.holder,
        max_entries: 1,
        ..MapParams::default()
    };
    let less = item::TREE - item::KEY;
    let text = format!(
        "r9 = 1\n*(u64 *)(r10 - 8) = 0\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\n\
         if r0 == 0 goto out\nr6 = r0\n{operations}out:\nr0 = r9\nr0 >>= 32\nr0 ^= r9\nexit\n\
         less:\nr3 = *(u64 *)(r1 - {less})\nr4 = *(u64 *)(r2 - {less})\nr0 = 0\n\
         if r3 >= r4 goto not_less\nr0 = 1\nnot_less:\nexit\n"
    );
    Case {
        has_types: true,
        ..Case::tc(choices, text)
    }
    .with_map(Setup(params, None))
}

fn objects(choices: &mut Choices<'_>) -> Case {
    let count = 1 + choices.below(10);
    let mut operations: String = (0..count).map(|at| operation(choices, at)).collect();
    // Linux refuses programs with callbacks that no instruction refers to.
    operations += &new(choices);
    operations += &format!(
        "{LOCK}{}r2 = r7\nr2 += {}\nr3 = func(less) ll\nr4 = 0\nr5 = 0\n{}{MIX}{UNLOCK}",
        field(holder::TREE),
        item::TREE,
        call("bpf_rbtree_add_impl")
    );
    program(choices, &operations)
}

/// Inserts and removes nodes of a tree, and goes down from its root.
fn shapes(choices: &mut Choices<'_>) -> Case {
    let mut operations = String::new();
    for at in 0..2 + choices.below(14) {
        operations += &match choices.below(5) {
            0 => remove_first(at),
            _ => {
                new(choices)
                    + &format!(
                        "{LOCK}{}r2 = r7\nr2 += {}\nr3 = func(less) ll\nr4 = 0\nr5 = 0\n{}{MIX}\
                         {UNLOCK}",
                        field(holder::TREE),
                        item::TREE,
                        call("bpf_rbtree_add_impl")
                    )
            }
        };
    }
    // A tree to walk in, whatever was drawn.
    operations += &new(choices);
    operations += &format!(
        "{LOCK}{}r2 = r7\nr2 += {}\nr3 = func(less) ll\nr4 = 0\nr5 = 0\n{}{UNLOCK}",
        field(holder::TREE),
        item::TREE,
        call("bpf_rbtree_add_impl")
    );
    let key = format!(
        "r1 = *(u64 *)(r7 - {})\nr9 *= 31\nr9 += r1\n",
        item::TREE - item::KEY
    );
    operations += &format!(
        "{LOCK}{root}{}if r0 == 0 goto bottom\nr7 = r0\n{key}",
        call("bpf_rbtree_root"),
        root = field(holder::TREE)
    );
    for _ in 0..choices.below(5) {
        let side = choices.pick(&["bpf_rbtree_left", "bpf_rbtree_right"]);
        operations += &format!(
            "{}r2 = r7\n{}if r0 == 0 goto bottom\nr7 = r0\n{key}",
            field(holder::TREE),
            call(side)
        );
    }
    operations += &format!("r9 += 1\nbottom:\n{UNLOCK}");
    program(choices, &operations)
}
