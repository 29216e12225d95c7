//! Types of programs that allocate objects, throw exceptions, or hold objects in maps.

use std::sync::LazyLock;

use btf::{Btf, Linkage, TypeId};

use crate::registry::fields::Types;

/// Types of programs, in one blob.
pub(super) struct ProgramTypes {
    pub(super) blob: Vec<u8>,
    pub(super) btf: Btf<'static>,
    /// A key of 32 bits.
    pub(super) key: TypeId,
    /// The main function, and one whose exceptions go to the callback.
    pub(super) main: TypeId,
    pub(super) throwing_main: TypeId,
    /// Static functions.
    pub(super) callback: TypeId,
    /// The global function that gets the cookie of an exception.
    pub(super) exception_callback: TypeId,
    /// An object: see [`item`].
    pub(super) item: TypeId,
    /// A value that holds objects: see [`holder`].
    pub(super) holder: TypeId,
    /// A value with a resilient lock.
    pub(super) locked: TypeId,
    /// An object with a copy for each CPU: two numbers of 8 bytes.
    pub(super) counters: TypeId,
    /// A value that holds one: see [`counted`].
    pub(super) counted: TypeId,
}

/// Offsets in an object that trees, lists and pointers hold.
pub(super) mod item {
    pub(in crate::helpers) const KEY: u32 = 0;
    pub(in crate::helpers) const DATA: u32 = 8;
    pub(in crate::helpers) const TREE: u32 = 16;
    pub(in crate::helpers) const LIST: u32 = 48;
    pub(super) const REFERENCES: u32 = 72;
    pub(super) const SIZE: u32 = 80;
}

/// Offsets in a value that holds objects. The lock comes first.
pub(super) mod holder {
    pub(in crate::helpers) const LIST: u32 = 8;
    pub(in crate::helpers) const TREE: u32 = 24;
    pub(in crate::helpers) const POINTER: u32 = 40;
    pub(super) const PLAIN: u32 = 48;
    pub(in crate::helpers) const SIZE: u32 = 56;
}

/// Offsets in a value that holds an object with copies.
pub(super) mod counted {
    pub(in crate::helpers) const POINTER: u32 = 8;
    pub(in crate::helpers) const SIZE: u32 = 16;
}

/// Offset of the resilient lock in its value, and bytes of that.
pub(super) const LOCK: u32 = 8;
pub(super) const LOCKED_SIZE: u32 = 16;

pub(super) static TYPES: LazyLock<ProgramTypes> = LazyLock::new(program_types);

fn program_types() -> ProgramTypes {
    let mut types = Types::new();
    let number = types.u64;
    let lock = types.opaque("bpf_spin_lock", 4, 4);
    let resilient = types.opaque("bpf_res_spin_lock", 4, 4);
    let references = types.opaque("bpf_refcount", 4, 4);
    let list_node = types.opaque("bpf_list_node", 24, 8);
    let tree_node = types.opaque("bpf_rb_node", 32, 8);
    let list_head = types.opaque("bpf_list_head", 16, 8);
    let tree_root = types.opaque("bpf_rb_root", 16, 8);
    let members = [
        (number, "key", item::KEY),
        (number, "data", item::DATA),
        (tree_node, "tree", item::TREE),
        (list_node, "list", item::LIST),
        (references, "references", item::REFERENCES),
    ];
    let item = types.structure("beebox_item", item::SIZE, &members);
    let pointer = types.tagged_pointer("kptr", item);
    let members = [
        (lock, "lock", 0),
        (list_head, "list", holder::LIST),
        (tree_root, "tree", holder::TREE),
        (pointer, "pointer", holder::POINTER),
        (number, "plain", holder::PLAIN),
    ];
    let holder = types.structure("beebox_holder", holder::SIZE, &members);
    types.contains(holder, 1, "contains:beebox_item:list");
    types.contains(holder, 2, "contains:beebox_item:tree");
    let members = [(number, "plain", 0), (resilient, "lock", LOCK)];
    let locked = types.structure("beebox_locked", LOCKED_SIZE, &members);
    let members = [(number, "first", 0), (number, "second", 8)];
    let counters = types.structure("beebox_counters", 16, &members);
    let pointer = types.tagged_pointer("percpu_kptr", counters);
    let members = [(number, "plain", 0), (pointer, "pointer", counted::POINTER)];
    let counted = types.structure("beebox_counted", counted::SIZE, &members);
    let main = types.function("main", 1, Linkage::GLOBAL);
    let throwing_main = types.function("throwing_main", 1, Linkage::GLOBAL);
    types.tag(throwing_main, "exception_callback:caught");
    let callback = types.function("callback", 4, Linkage::STATIC);
    let exception_callback = types.function("caught", 1, Linkage::GLOBAL);
    let key = types.u32;
    let blob = types.into_blob();
    ProgramTypes {
        btf: Btf::parse(blob.clone()).expect("types that were built"),
        blob,
        key,
        main,
        throwing_main,
        callback,
        exception_callback,
        item,
        holder,
        locked,
        counters,
        counted,
    }
}
