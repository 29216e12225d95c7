//! Generator of BTF blobs from a seed: valid ones with every kind of type and with the
//! structures whose special fields the kernel checks, and mutations of them.

use btf::{
    Array, Builder, DeclTag, Encoding, Enumerator, Func, FwdKind, Int, Kind, Linkage, Member,
    Param, StrOffset, TypeId, Var, VarSecinfo,
};
use spec::SplitMix;

/// Generates a blob; most are valid.
pub fn blob(seed: u64) -> Vec<u8> {
    let mut source = Source::new(seed);
    source.base_types();
    if source.one_in(3) {
        source.managed_types();
    }
    if source.one_in(12) {
        source.chain();
    }
    for _ in 0..1 + source.below(24) {
        source.any_type();
    }
    source.builder.finish()
}

/// A minimal valid blob of one type.
pub fn smallest() -> Vec<u8> {
    let mut builder = Builder::new();
    let name = builder.string("int");
    let int = Int {
        size: 4,
        bits: 32,
        offset: 0,
        encoding: Encoding::SIGNED,
    };
    builder.int(name, int);
    builder.finish()
}

/// A type that was made, as far as those that follow need to know it.
#[derive(Clone, Copy)]
struct Made {
    id: TypeId,
    kind: Kind,
    /// Bytes, where it has a size.
    size: Option<u32>,
    /// Is it an integer that an index can be, below its modifiers?
    is_index: bool,
}

struct Source {
    random: SplitMix,
    builder: Builder,
    made: Vec<Made>,
}

impl Source {
    fn new(seed: u64) -> Source {
        Source {
            random: SplitMix::new(seed),
            builder: Builder::new(),
            made: Vec::new(),
        }
    }

    fn below(&mut self, limit: u32) -> u32 {
        (self.random.next_u64() % u64::from(limit.max(1))) as u32
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn made(&mut self, id: TypeId, kind: Kind, size: Option<u32>) -> TypeId {
        self.made.push(Made {
            id,
            kind,
            size,
            is_index: false,
        });
        id
    }

    fn name(&mut self) -> StrOffset {
        const NAMES: &[&str] = &["a", "b", "_x1", "next", "list.0", "p", "node", "root", "s2"];
        let name = self.pick(NAMES);
        self.builder.string(name)
    }

    fn name_or_none(&mut self) -> StrOffset {
        if self.one_in(5) {
            StrOffset::EMPTY
        } else {
            self.name()
        }
    }

    fn base_types(&mut self) {
        const INTS: &[(&str, u32, u32, Encoding)] = &[
            ("int", 4, 32, Encoding::SIGNED),
            ("unsigned int", 4, 32, Encoding::NONE),
            ("char", 1, 8, Encoding::CHAR),
            ("u64", 8, 64, Encoding::NONE),
            ("bool", 1, 8, Encoding::BOOL),
            ("u128", 16, 128, Encoding::NONE),
            ("odd", 4, 5, Encoding::NONE),
        ];
        for &(name, size, bits, encoding) in INTS {
            if name != "int" && self.one_in(3) {
                continue;
            }
            let offset = if bits == 5 { self.below(3) } else { 0 };
            let int = Int {
                size,
                bits,
                offset,
                encoding,
            };
            let name = self.builder.string(name);
            let id = self.builder.int(name, int);
            self.made(id, Kind::Int, Some(size));
            if let (Some(last), true) = (self.made.last_mut(), bits != 5) {
                last.is_index = true;
            }
        }
    }

    /// A type that was made, or (rarely) any number.
    fn any(&mut self) -> TypeId {
        match self.below(40) {
            0 => TypeId(self.below(2 * self.builder.next_id().0)),
            1 => self.builder.next_id(),
            2 => TypeId(self.builder.next_id().0 + self.below(3)),
            _ => {
                let which = self.below(self.made.len() as u32);
                self.made[which as usize].id
            }
        }
    }

    fn of(&mut self, wanted: impl Fn(&Made) -> bool) -> TypeId {
        let found: Vec<TypeId> = self
            .made
            .iter()
            .filter(|made| wanted(made))
            .map(|made| made.id)
            .collect();
        if found.is_empty() || self.one_in(60) {
            return self.any();
        }
        self.pick(&found)
    }

    /// Types that can be a member, an element or a parameter.
    fn sized(&mut self) -> TypeId {
        self.of(|made| made.size.is_some() && !matches!(made.kind, Kind::Var | Kind::Datasec))
    }

    fn size_of(&self, id: TypeId) -> u32 {
        let found = self.made.iter().find(|made| made.id == id);
        found.and_then(|made| made.size).unwrap_or(4)
    }

    fn any_type(&mut self) {
        match self.pick(Kind::ALL) {
            Kind::Void => {}
            Kind::Int => {
                let bits = 8 << self.below(5);
                let int = Int {
                    size: bits / 8,
                    bits,
                    offset: 0,
                    encoding: Encoding(self.pick(&[0, 1, 2, 4])),
                };
                let name = self.name();
                let id = self.builder.int(name, int);
                self.made(id, Kind::Int, Some(int.size));
            }
            Kind::Ptr => {
                let to = match self.below(4) {
                    0 => TypeId::VOID,
                    1 => TypeId(self.builder.next_id().0 + 1 + self.below(4)),
                    _ => self.of(|made| {
                        !matches!(
                            made.kind,
                            Kind::Var | Kind::Datasec | Kind::DeclTag | Kind::Func
                        )
                    }),
                };
                let id = self.builder.reference(Kind::Ptr, StrOffset::EMPTY, to);
                self.made(id, Kind::Ptr, Some(8));
            }
            kind if kind.is_modifier() => self.modifier(kind),
            Kind::Array => self.array(),
            kind if kind.is_composite() => drop(self.composite(kind)),
            kind @ (Kind::Enum | Kind::Enum64) => self.enumeration(kind),
            Kind::Fwd => {
                let forward = self.pick(&[FwdKind::Struct, FwdKind::Union]);
                let name = self.name();
                let id = self.builder.forward(name, forward);
                self.made(id, Kind::Fwd, None);
            }
            Kind::FuncProto => self.prototype(),
            Kind::Func => {
                let proto = self.of(|made| made.kind == Kind::FuncProto);
                let linkage = Linkage(self.below(2));
                let name = self.name();
                let id = self.builder.func(name, Func { proto, linkage });
                self.made(id, Kind::Func, None);
            }
            Kind::Var => {
                let ty = self.sized();
                let linkage = Linkage(self.below(2));
                let name = self.name();
                let id = self.builder.var(name, Var { ty, linkage });
                let size = self.size_of(ty);
                self.made(id, Kind::Var, Some(size));
            }
            Kind::Datasec => self.section(),
            Kind::Float => {
                let size = self.pick(&[2, 4, 8, 12, 16]);
                let name = self.name();
                let id = self.builder.float(name, size);
                self.made(id, Kind::Float, Some(size));
            }
            _ => {
                let target = self.of(|made| {
                    made.kind.is_composite()
                        || matches!(made.kind, Kind::Func | Kind::Var | Kind::Typedef)
                });
                let component = self.pick(&[-1, -1, -1, 0, 1]);
                let text = self.name();
                let id = self.builder.decl_tag(text, DeclTag { target, component });
                self.made(id, Kind::DeclTag, None);
            }
        }
    }

    /// Types inside each other, so many that it may be too many. Most refer to
    /// the next one, so that the kernel meets the outermost first.
    fn chain(&mut self) {
        let len = 28 + self.below(10);
        let forward = self.one_in(2);
        let kinds: &[&[Kind]] = &[
            &[Kind::Struct],
            &[Kind::Array],
            &[Kind::Const, Kind::Volatile],
            &[Kind::Ptr],
            &[Kind::Ptr, Kind::Const],
            &[Kind::Typedef, Kind::Restrict, Kind::TypeTag],
            &[Kind::Struct, Kind::Typedef, Kind::Array],
        ];
        let kinds = self.pick(kinds);
        let int = self.made.first().map_or(TypeId::VOID, |made| made.id);
        if self.one_in(2) {
            // The kernel then knows half of it before it starts at its head.
            let middle = TypeId(self.builder.next_id().0 + 1 + len / 2);
            self.builder.reference(Kind::Ptr, StrOffset::EMPTY, middle);
        }
        let first = self.builder.next_id().0;
        for link in 0..len {
            let to = match (forward, link) {
                (true, link) if link + 1 == len => int,
                (true, link) => TypeId(first + link + 1),
                (false, 0) => int,
                (false, link) => TypeId(first + link - 1),
            };
            let kind = self.pick(kinds);
            let name = self.name();
            let id = match kind {
                Kind::Struct => {
                    let member = Member {
                        name,
                        ty: to,
                        bit_offset: 0,
                        bits: 0,
                    };
                    self.builder.composite(kind, name, 8, &[member])
                }
                Kind::Array => self.builder.array(Array {
                    element: to,
                    index: int,
                    count: 1,
                }),
                Kind::Typedef | Kind::TypeTag => self.builder.reference(kind, name, to),
                _ => self.builder.reference(kind, StrOffset::EMPTY, to),
            };
            self.made(id, kind, Some(8));
        }
    }

    fn modifier(&mut self, kind: Kind) {
        let to = match self.below(8) {
            0 => TypeId::VOID,
            1 => TypeId(self.builder.next_id().0 + 1 + self.below(3)),
            _ => self.of(|made| {
                !matches!(
                    made.kind,
                    Kind::Var | Kind::Datasec | Kind::DeclTag | Kind::Func
                )
            }),
        };
        let below = self.made.iter().find(|made| made.id == to).copied();
        let name = match kind {
            Kind::Typedef | Kind::TypeTag => self.name(),
            _ => StrOffset::EMPTY,
        };
        let id = self.builder.reference(kind, name, to);
        self.made(id, kind, below.and_then(|below| below.size));
        if let (Some(last), Some(below)) = (self.made.last_mut(), below) {
            last.is_index = below.is_index;
        }
    }

    fn array(&mut self) {
        let element = self.sized();
        let index = self.of(|made| made.is_index);
        let count = match self.below(20) {
            0 => 1 << (20 + self.below(12)),
            _ => self.below(5),
        };
        let size = self.size_of(element).saturating_mul(count);
        let id = self.builder.array(Array {
            element,
            index,
            count,
        });
        self.made(id, Kind::Array, Some(size));
    }

    fn composite(&mut self, kind: Kind) -> TypeId {
        let with_bits = self.one_in(3);
        let mut members = Vec::new();
        let mut end = 0u32;
        for _ in 0..self.below(6) {
            let ty = self.sized();
            let size = self.size_of(ty).min(1 << 20);
            let bits = if with_bits && self.one_in(2) {
                1 + self.below(33)
            } else {
                0
            };
            let start = match (kind, bits) {
                (Kind::Union, _) => 0,
                (_, 0) => end.next_multiple_of(8 * size.clamp(1, 8).next_power_of_two()),
                _ => end,
            };
            let len = if bits == 0 { size * 8 } else { bits };
            end = end.max(start.saturating_add(len));
            let name = self.name_or_none();
            members.push(Member {
                name,
                ty,
                bit_offset: start,
                bits,
            });
        }
        let size = end.div_ceil(8).next_multiple_of(4) + 4 * self.below(2);
        let name = self.name_or_none();
        let id = self.builder.composite(kind, name, size, &members);
        self.made(id, kind, Some(size))
    }

    fn enumeration(&mut self, kind: Kind) {
        let mut values = Vec::new();
        for _ in 0..self.below(4) {
            let name = self.name();
            let value = self.random.next_u64();
            values.push(Enumerator { name, value });
        }
        let name = self.name_or_none();
        let signed = self.one_in(2);
        let (id, size) = if kind == Kind::Enum64 {
            (self.builder.enumeration64(name, 8, signed, &values), 8)
        } else {
            let size = self.pick(&[4, 4, 4, 1, 2, 8]);
            (self.builder.enumeration(name, size, signed, &values), size)
        };
        self.made(id, kind, Some(size));
    }

    fn prototype(&mut self) {
        let returns = if self.one_in(2) {
            TypeId::VOID
        } else {
            self.sized()
        };
        let mut params = Vec::new();
        for _ in 0..self.below(4) {
            let name = if self.one_in(12) {
                StrOffset::EMPTY
            } else {
                self.name()
            };
            let ty = self.sized();
            params.push(Param { name, ty });
        }
        if self.one_in(4) {
            params.push(Param {
                name: StrOffset::EMPTY,
                ty: TypeId::VOID,
            });
        }
        let id = self.builder.proto(returns, &params);
        self.made(id, Kind::FuncProto, None);
    }

    fn section(&mut self) {
        let mut vars = Vec::new();
        let mut end = 0u32;
        for _ in 0..self.below(4) {
            let var = self.of(|made| made.kind == Kind::Var);
            let size = self.size_of(var).clamp(1, 1 << 24);
            vars.push(VarSecinfo {
                var,
                offset: end,
                size,
            });
            end += size;
        }
        let size = end + self.below(8);
        let name = self.pick(&[".data", ".bss", ".rodata.str1.1", "license", "a b"]);
        let name = self.builder.string(name);
        let id = self.builder.datasec(name, size, &vars);
        self.made(id, Kind::Datasec, Some(size));
    }

    /// Locks, lists, trees, reference counts and pointers to kernel objects, in
    /// structures that use them, rightly or nearly so.
    fn managed_types(&mut self) {
        const MANAGED: &[(&str, u32)] = &[
            ("bpf_spin_lock", 4),
            ("bpf_res_spin_lock", 4),
            ("bpf_list_head", 16),
            ("bpf_list_node", 24),
            ("bpf_rb_root", 16),
            ("bpf_rb_node", 32),
            ("bpf_refcount", 4),
        ];
        let mut fields = Vec::new();
        for &(name, size) in MANAGED {
            if self.one_in(4) {
                continue;
            }
            let size = if self.one_in(30) { size + 4 } else { size };
            let name = self.builder.string(name);
            let id = self.builder.composite(Kind::Struct, name, size, &[]);
            self.made(id, Kind::Struct, Some(size));
            fields.push((id, size));
        }
        for _ in 0..self.below(3) {
            let tag = self.pick(&["kptr", "kptr_untrusted", "percpu_kptr", "uptr", "other"]);
            let target = self.pick(&["task_struct", "sk_buff", "nothing_of_the_kernel"]);
            let target = self.builder.string(target);
            let target = self.builder.composite(Kind::Struct, target, 0, &[]);
            self.made(target, Kind::Struct, Some(0));
            let target = match self.one_in(4) {
                true => self
                    .builder
                    .reference(Kind::Const, StrOffset::EMPTY, target),
                false => target,
            };
            let tag = self.builder.string(tag);
            let tag = self.builder.reference(Kind::TypeTag, tag, target);
            let mut pointer = self.builder.reference(Kind::Ptr, StrOffset::EMPTY, tag);
            if self.one_in(4) {
                let kind = self.pick(&[Kind::Volatile, Kind::Const]);
                pointer = self.builder.reference(kind, StrOffset::EMPTY, pointer);
            }
            fields.push((pointer, 8));
        }
        if fields.is_empty() {
            return;
        }
        let names = ["owner", "holder", "outer"];
        for name in names.iter().take(1 + self.below(3) as usize) {
            if let Some(field) = self.managing_struct(name, &fields)
                && self.one_in(3)
            {
                fields.push(field);
            }
        }
    }

    /// A structure with some of these fields; itself as a field for the next one.
    fn managing_struct(&mut self, name: &str, fields: &[(TypeId, u32)]) -> Option<(TypeId, u32)> {
        let mut members = Vec::new();
        let mut end = 0;
        let mut count = 0;
        for _ in 0..1 + self.below(4) {
            let (mut ty, mut size) = self.pick(fields);
            if self.one_in(5) {
                let index = self.made.first()?.id;
                count = self.below(4);
                let element = ty;
                ty = self.builder.array(Array {
                    element,
                    index,
                    count,
                });
                size *= count;
            }
            let start = if size < 8 {
                end
            } else {
                u32::next_multiple_of(end, 8)
            };
            let name = self.pick(&["node", "root", "lock"]);
            members.push(Member {
                name: self.builder.string(name),
                ty,
                bit_offset: start * 8,
                bits: 0,
            });
            end = start + size;
        }
        let size = end.next_multiple_of(8).max(count);
        let name = self.builder.string(name);
        let id = self.builder.composite(Kind::Struct, name, size, &members);
        self.made(id, Kind::Struct, Some(size));
        for component in 0..members.len() as i32 {
            if self.one_in(5) {
                continue;
            }
            let owned = self.pick(&["owner", "holder", "outer", "none"]);
            let node = self.pick(&["node", "node", "root", ""]);
            let text = self.pick(&["contains:", "contains:", "contains"]);
            let text = self.builder.string(format!("{text}{owned}:{node}"));
            self.builder.decl_tag(
                text,
                DeclTag {
                    target: id,
                    component,
                },
            );
        }
        Some((id, size))
    }
}
