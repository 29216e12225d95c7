//! Wording of causes: allocated objects, lists, trees, kptrs and fields that calls take.

use verifier::reason::{Cause, Explanation, ObjectFault as Fault};

use super::Words;
use crate::explain::value::known;

pub(super) fn words(explanation: &Explanation) -> Words {
    let Cause::AllocatedObject {
        callee,
        number,
        found,
        fault,
    } = &explanation.cause
    else {
        return Words::new("object", "an object is used otherwise than it may be");
    };
    let callee = match callee {
        Some(callee) => format!("`{callee}`"),
        None => String::from("the instruction"),
    };
    let argument = match number {
        Some(number) => format!("argument {number} of {callee}"),
        None => format!("an argument of {callee}"),
    };
    let found = match found {
        Some(found) => format!(", {},", known(found)),
        None => String::new(),
    };
    let headline = match fault {
        Fault::NotOwned => format!("{argument}{found} is no object that the program owns"),
        Fault::GivenAway(by) => {
            format!("{argument} is an object that `{by}` took from the program")
        }
        Fault::NonOwning(None) => {
            format!("{argument} is an object that a list or tree owns, not the program")
        }
        Fault::NonOwning(Some(by)) => {
            format!(
                "{argument} is an object that a list or tree owns since `{by}`, not the program"
            )
        }
        Fault::OtherRelease(_) => {
            format!("{argument}{found} is not of the kind that {callee} frees")
        }
        Fault::NoContainer => {
            format!("{argument}{found} is neither in the value of a map nor in an allocated object")
        }
        Fault::WithoutCount => {
            format!("{argument} is an object without `struct bpf_refcount`, which is not shared")
        }
        Fault::NoField(name) => format!("no {name} is where {argument} points to"),
        Fault::NoFieldInMap { map, name } => {
            format!("values of map `{map}`, into which {argument} points, have no `{name}`")
        }
        Fault::FieldAt {
            name,
            off,
            expected,
        } => format!("{argument} has offset {off}, and the `{name}` is at offset {expected}"),
        Fault::FieldVariable(name) => {
            format!("{argument}, the address of a {name}, has an offset that is not constant")
        }
        Fault::Unreferenced => {
            format!("{argument} is a kptr that holds no reference (`__kptr_untrusted`)")
        }
        Fault::LockNotHeld { name, other: false } => {
            format!("{callee} uses a {name} without the lock in the same value or object")
        }
        Fault::LockNotHeld { name, other: true } => {
            format!("{callee} uses a {name} under the lock of another value or object")
        }
        Fault::LockedTwice => format!("{callee} takes a lock that is held already"),
        Fault::OtherNode(node, name) => format!("{argument} is not the {node} of struct {name}"),
        Fault::InCallback => {
            format!("{callee} is called in a function that compares nodes of a tree")
        }
        Fault::NotAllocatable => format!("{callee} cannot allocate the type of argument 1"),
        Fault::NotInValue => format!("{argument}{found} does not point into the value of a map"),
        Fault::OtherMap => format!("{argument} is not the map whose value {callee} is given"),
        Fault::SpecialField(name) => format!("{callee} accesses a {name} in an object"),
    };
    let words = Words::new("object", headline);
    match fault {
        Fault::NotOwned => words
            .needed("a pointer with a reference: from bpf_obj_new, bpf_refcount_acquire, bpf_kptr_xchg, or out of a list or tree")
            .help("compare it with null, and use it before it is dropped, kept or put into a list or tree"),
        Fault::GivenAway(by) => words
            .needed("an object that the program still owns")
            .help(format!("use it before `{by}`, or take a second reference first: bpf_refcount_acquire, for a structure with a `struct bpf_refcount`")),
        Fault::NonOwning(_) => words
            .needed("a pointer with a reference")
            .help("take it out of the list or tree first (bpf_list_pop_front, bpf_rbtree_remove), or take a second reference by bpf_refcount_acquire"),
        Fault::OtherRelease(release) => words
            .needed("bpf_obj_drop for what bpf_obj_new returned, bpf_percpu_obj_drop for what bpf_percpu_obj_new returned")
            .help(format!("call {release} instead")),
        Fault::NoContainer => words
            .needed("a member of the value of a map, of a global variable, or of an object of bpf_obj_new")
            .help("declare it as a global variable or in the values of a map, beside its lock"),
        Fault::WithoutCount => words
            .needed("a structure with a member of type `struct bpf_refcount`")
            .help("add the member to the structure"),
        Fault::NoField(name) => words
            .needed(format!("the address of a {name} at a constant offset"))
            .help("pass the address of the member itself"),
        Fault::NoFieldInMap { name, .. } => words
            .needed(format!("a map with BTF whose value contains a `{name}`"))
            .help(format!("put a `{name}` into the structure that the map's values are")),
        Fault::FieldAt { name, .. } => words
            .needed(format!("the address of the `{name}`"))
            .help("pass the address of the member itself, as `&value->member`"),
        Fault::FieldVariable(name) => words
            .needed(format!("the address of a {name} at a constant offset"))
            .help("of several members, choose by constants, one call in each branch; or look up one value for each"),
        Fault::Unreferenced => words
            .needed("a kptr that is declared with `__kptr`")
            .help("declare the member with `__kptr`, or store to it by assignment"),
        Fault::LockNotHeld { other, .. } => {
            let words = words.needed("the lock beside it, in the same value or object");
            match other {
                true => words.help("take the lock that is declared beside it instead; what a second lookup returns is another value to the verifier"),
                false => words.help("take that lock before, and free it after the call"),
            }
        }
        Fault::LockedTwice => words
            .needed("a lock that this path does not hold yet")
            .help("free the lock before it is taken again"),
        Fault::OtherNode(node, name) => words
            .needed(format!("the {node} of struct {name}, as the tag `contains:` of the list or tree names it"))
            .help("pass the address of that member"),
        Fault::InCallback => words
            .needed("a callback that changes no list, tree, lock or section")
            .help("compare the nodes by their members only"),
        Fault::NotAllocatable => words
            .needed("the id of a structure in the program's BTF; for each CPU, one of numbers of at most 512 bytes")
            .help("pass `bpf_core_type_id_local` of the structure"),
        Fault::NotInValue => words
            .needed("the address of the member in a value that was looked up")
            .help("put the member into the values of a map"),
        Fault::OtherMap => words
            .needed("the map of the value")
            .help("pass the map in which the value was looked up"),
        Fault::SpecialField(_) => words
            .needed("an access beside the member")
            .help("use the calls that are for it; copy other members one by one"),
    }
}
