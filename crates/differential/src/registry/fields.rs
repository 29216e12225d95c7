//! Special fields of map values, asked by creating maps whose BTF describes a value with
//! one such field, and by loading programs that use such a map.

use btf::{Btf, Builder, DeclTag, Encoding, Func, Int, Kind, Linkage, Member, Param, TypeId};
use spec::maps::MapKind;
use sys::Errno;
use sys::bpf::{BtfObject, Map, MapRequest};

use super::map_requests::request;
use super::numbering;

/// A special field: its bit of `enum btf_field_type`, and how a value declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialField {
    /// Bit of `enum btf_field_type`.
    pub bit: u32,
    /// Name of the structure, or tag of the pointer.
    pub name: &'static str,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A structure of so many bytes and this alignment.
    Opaque(u32, u32),
    /// The root of a list or tree of local nodes, the node's structure and its bytes;
    /// a value with one needs a spin lock.
    Root(&'static str, u32),
    /// A tagged pointer to this structure.
    Pointer(&'static str),
}

/// Every field that a map value can hold.
pub const FIELDS: &[SpecialField] = &[
    field(1, "bpf_spin_lock", Form::Opaque(4, 4)),
    field(2, "bpf_timer", Form::Opaque(16, 8)),
    field(4, "kptr_untrusted", Form::Pointer("task_struct")),
    field(8, "kptr", Form::Pointer("task_struct")),
    field(16, "percpu_kptr", Form::Pointer("task_struct")),
    field(32, "bpf_list_head", Form::Root("bpf_list_node", 24)),
    field(128, "bpf_rb_root", Form::Root("bpf_rb_node", 32)),
    field(512, "bpf_refcount", Form::Opaque(4, 4)),
    field(1024, "bpf_wq", Form::Opaque(16, 8)),
    field(2048, "uptr", Form::Pointer("local")),
    field(4096, "bpf_res_spin_lock", Form::Opaque(4, 4)),
    field(8192, "bpf_task_work", Form::Opaque(8, 8)),
];

const fn field(bit: u32, name: &'static str, form: Form) -> SpecialField {
    SpecialField { bit, name, form }
}

impl SpecialField {
    /// True if the kernel with this BTF has it: the structure, or the enumerator of its kind of pointer.
    pub fn is_known(&self, btf: &Btf<'_>) -> bool {
        let kind = match (self.form, self.name) {
            (Form::Opaque(..) | Form::Root(..), name) => {
                return btf.find(Kind::Struct, name).is_some();
            }
            (Form::Pointer(_), "kptr_untrusted") => "BPF_KPTR_UNREF",
            (Form::Pointer(_), "percpu_kptr") => "BPF_KPTR_PERCPU",
            (Form::Pointer(_), "uptr") => "BPF_UPTR",
            (Form::Pointer(_), _) => "BPF_KPTR_REF",
        };
        // The second one before Linux 6.2.
        let enumerations = ["btf_field_type", "bpf_kptr_type"];
        enumerations.iter().any(|name| {
            let all = numbering::enumerators(btf, name).unwrap_or_default();
            all.iter().any(|(name, _)| name == kind)
        })
    }

    /// True for the root of a list or tree.
    pub fn is_root(&self) -> bool {
        matches!(self.form, Form::Root(..))
    }
}

/// A value type in a blob of types.
pub struct ValueType {
    /// The blob.
    pub blob: Vec<u8>,
    /// Type of a key of 32 bits.
    pub key: TypeId,
    /// `struct bpf_cgroup_storage_key`.
    pub cgroup_key: TypeId,
    /// The value.
    pub value: TypeId,
    /// Bytes of the value.
    pub size: u32,
}

/// A value of 8 bytes without special fields.
pub fn plain_value() -> ValueType {
    let types = Types::new();
    let member = (types.u64, "x", 0);
    types.value("value", 8, &[member])
}

/// A value with one special field.
pub fn value_with(field: SpecialField) -> ValueType {
    let mut types = Types::new();
    let (value, size, _) = types.add_value_with(field);
    types.finish(value, size)
}

/// A value with a kptr to a structure of the kernel, which needs a destructor.
pub fn kptr_to(structure: &str) -> ValueType {
    let mut types = Types::new();
    let member = (types.u64, "x", 0);
    let to = types.structure(structure, 8, &[member]);
    let pointer = types.tagged_pointer("kptr", to);
    types.value("value", 8, &[(pointer, "field", 0)])
}

/// The types of a program with one static callback of four arguments: the functions'
/// ids for func_info.
pub fn with_callback() -> (Vec<u8>, [TypeId; 2]) {
    let mut types = Types::new();
    let functions = types.functions_with_callback();
    (types.into_blob(), functions)
}

/// The types of a program with one static callback, of a map value with a spin lock before
/// two numbers of 8 bytes, and of one with a timer between two such numbers.
pub struct WithLock {
    /// The types.
    pub blob: Vec<u8>,
    /// The functions' ids for func_info: the program and the callback.
    pub functions: [TypeId; 2],
    /// The type of a key of 4 bytes.
    pub key: TypeId,
    /// The type of the value of 24 bytes.
    pub value: TypeId,
    /// The type of the value of 32 bytes.
    pub timed: TypeId,
}

/// As [`with_callback`], with map values that have a spin lock and a timer.
pub fn with_callback_and_lock() -> WithLock {
    let mut types = Types::new();
    let functions = types.functions_with_callback();
    let lock = types.opaque("bpf_spin_lock", 4, 4);
    let (key, number) = (types.u32, types.u64);
    let members = [
        (lock, "lock", 0),
        (number, "first", 8),
        (number, "second", 16),
    ];
    let value = types.structure("locked", 24, &members);
    let timer = types.opaque("bpf_timer", 16, 8);
    let members = [
        (number, "count", 0),
        (timer, "timer", 8),
        (number, "last", 24),
    ];
    let timed = types.structure("timed", 32, &members);
    WithLock {
        blob: types.into_blob(),
        functions,
        key,
        value,
        timed,
    }
}

impl Types {
    /// Adds a value with one special field: its type, its bytes and the offset of the field.
    pub(crate) fn add_value_with(&mut self, field: SpecialField) -> (TypeId, u32, u32) {
        match field.form {
            Form::Opaque(size, align) => {
                let field = self.opaque(field.name, size, align);
                let (size, x) = (8 + size.next_multiple_of(8), self.u64);
                let members = [(x, "x", 0), (field, "field", 8)];
                (self.structure("value", size, &members), size, 8)
            }
            Form::Pointer(to) => {
                let member = (self.u64, "x", 0);
                let to = self.structure(to, 8, &[member]);
                let pointer = self.tagged_pointer(field.name, to);
                (self.structure("value", 8, &[(pointer, "field", 0)]), 8, 0)
            }
            Form::Root(node, node_size) => {
                let lock = self.opaque("bpf_spin_lock", 4, 4);
                let root = self.opaque(field.name, 16, 8);
                let link = self.opaque(node, node_size, 8);
                let data = format!("{node}_data");
                self.structure(&data, node_size, &[(link, "node", 0)]);
                let members = [(lock, "lock", 0), (root, "root", 8)];
                let value = self.structure("value", 24, &members);
                self.contains(value, 1, &format!("contains:{data}:node"));
                (value, 24, 8)
            }
        }
    }

    /// A program of one argument and a static callback of four.
    fn functions_with_callback(&mut self) -> [TypeId; 2] {
        let main = self.function("main", 1, Linkage::GLOBAL);
        [main, self.function("callback", 4, Linkage::STATIC)]
    }
}

/// Creates a map of a kind with this value.
pub fn create(kind: MapKind, value: &ValueType) -> Result<Map, Errno> {
    let types = BtfObject::load(&value.blob)?;
    let plain = request(kind, None).ok_or(Errno(ENOTSUPP))?;
    // A kind without values takes no description of one.
    let has_values = plain.key_size != 0 && plain.value_size != 0;
    let key = match plain.key_size {
        16 => value.cgroup_key,
        _ => value.key,
    };
    let request = MapRequest {
        value_size: match has_values {
            true => value.size,
            false => plain.value_size,
        },
        btf: Some(&types),
        btf_key: key.0,
        btf_value: value.value.0,
        ..plain
    };
    Map::create(&request)
}

const ENOTSUPP: i32 = 524;

type Named<'a> = (TypeId, &'a str, u32);

/// Types in the making, with the numbers that all of them use.
pub(crate) struct Types {
    builder: Builder,
    pub(crate) u32: TypeId,
    pub(crate) u64: TypeId,
}

impl Types {
    pub(crate) fn new() -> Types {
        let mut builder = Builder::new();
        let mut int = |name: &str, size: u32| {
            let name = builder.string(name);
            let int = Int {
                size,
                bits: 8 * size,
                offset: 0,
                encoding: Encoding::default(),
            };
            builder.int(name, int)
        };
        let (u32, u64) = (int("u32", 4), int("u64", 8));
        Types { builder, u32, u64 }
    }

    pub(crate) fn structure(&mut self, name: &str, size: u32, members: &[Named<'_>]) -> TypeId {
        let name = self.builder.string(name);
        let members: Vec<Member> = members
            .iter()
            .map(|&(ty, name, offset)| Member {
                name: self.builder.string(name),
                ty,
                bit_offset: 8 * offset,
                bits: 0,
            })
            .collect();
        self.builder.composite(Kind::Struct, name, size, &members)
    }

    /// A structure of numbers of its alignment.
    pub(crate) fn opaque(&mut self, name: &str, size: u32, align: u32) -> TypeId {
        let each = if align == 8 { self.u64 } else { self.u32 };
        let places = (0..size).step_by(align as usize);
        let members: Vec<Named<'_>> = places
            .zip(["a", "b", "c", "d"])
            .map(|(offset, name)| (each, name, offset))
            .collect();
        self.structure(name, size, &members)
    }

    pub(crate) fn tagged_pointer(&mut self, tag: &str, to: TypeId) -> TypeId {
        let tag = self.builder.string(tag);
        let tag = self.builder.reference(Kind::TypeTag, tag, to);
        let none = self.builder.string("");
        self.builder.reference(Kind::Ptr, none, tag)
    }

    /// A tag of a member, or of the whole type (-1).
    pub(crate) fn contains(&mut self, target: TypeId, component: i32, text: &str) {
        let text = self.builder.string(text);
        self.builder.decl_tag(text, DeclTag { target, component });
    }

    /// A function of so many numbers.
    pub(crate) fn function(&mut self, name: &str, count: usize, linkage: Linkage) -> TypeId {
        let parameter = self.builder.string("a");
        let (number, result) = (self.u64, self.u32);
        let params = vec![
            Param {
                name: parameter,
                ty: number,
            };
            count
        ];
        let proto = self.builder.proto(result, &params);
        let name = self.builder.string(name);
        self.builder.func(name, Func { proto, linkage })
    }

    /// A tag of a whole type.
    pub(crate) fn tag(&mut self, target: TypeId, text: &str) {
        self.contains(target, -1, text);
    }

    pub(crate) fn into_blob(self) -> Vec<u8> {
        self.builder.finish()
    }

    fn value(mut self, name: &str, size: u32, members: &[Named<'_>]) -> ValueType {
        let value = self.structure(name, size, members);
        self.finish(value, size)
    }

    fn finish(mut self, value: TypeId, size: u32) -> ValueType {
        let members = [
            (self.u64, "cgroup_inode_id", 0),
            (self.u32, "attach_type", 8),
        ];
        let cgroup_key = self.structure("bpf_cgroup_storage_key", 16, &members);
        ValueType {
            blob: self.builder.finish(),
            key: self.u32,
            cgroup_key,
            value,
            size,
        }
    }
}
