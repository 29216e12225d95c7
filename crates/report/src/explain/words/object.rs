//! Wording of causes: allocated objects, lists, trees, kptrs and fields that calls take.

use verifier::reason::{Cause, Explanation, ObjectFault as Fault};

use super::Words;

pub(super) fn words(explanation: &Explanation) -> Words {
    let Cause::AllocatedObject {
        callee,
        number,
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
    let headline = match fault {
        Fault::NotOwned => format!("{argument} is no object that the program owns"),
        Fault::WithoutCount => {
            format!("{argument} is an object without `struct bpf_refcount`, which is not shared")
        }
        Fault::NoField(name) => format!("no {name} is where {argument} points to"),
        Fault::LockNotHeld(name) => {
            format!("{callee} uses a {name} without the lock in the same value or object")
        }
        Fault::LockedTwice => format!("{callee} takes a lock that is held already"),
        Fault::OtherNode(node) => format!("{argument} is not the {node}"),
        Fault::InCallback => {
            format!("{callee} is called in a function that compares nodes of a tree")
        }
        Fault::NotAllocatable => format!("{callee} cannot allocate the type of {argument}"),
        Fault::NotInValue => format!("{argument} does not point into the value of a map"),
        Fault::OtherMap => format!("{argument} is not the map whose value {callee} is given"),
        Fault::SpecialField(name) => format!("{callee} accesses a {name} in an object"),
    };
    let words = Words::new("object", headline);
    match fault {
        Fault::NotOwned => words
            .needed("a pointer with a reference: from bpf_obj_new, bpf_refcount_acquire, bpf_kptr_xchg, or out of a list or tree")
            .help("compare it with null, and use it before it is dropped, kept or put into a list or tree"),
        Fault::WithoutCount => words
            .needed("a structure with a member of type `struct bpf_refcount`")
            .help("add the member to the structure"),
        Fault::NoField(name) => words
            .needed(format!("the address of a {name} at a constant offset"))
            .help("pass the address of the member itself"),
        Fault::LockNotHeld(_) => words
            .needed("the lock beside it, in the same value or object")
            .help("take that lock before, and free it after the call"),
        Fault::LockedTwice => words.help("free the lock before it is taken again"),
        Fault::OtherNode(node) => words
            .needed(format!("the {node}, as the tag `contains:` of the list or tree names it"))
            .help("pass the address of that member"),
        Fault::InCallback => words.help("compare the nodes by their members only"),
        Fault::NotAllocatable => words
            .needed("the id of a structure in the program's BTF; for each CPU, one of numbers of at most 512 bytes")
            .help("pass `bpf_core_type_id_local` of the structure"),
        Fault::NotInValue => words.help("put the member into the values of a map"),
        Fault::OtherMap => words.help("pass the map in which the value was looked up"),
        Fault::SpecialField(_) => words.help("use the calls that are for it"),
    }
}
