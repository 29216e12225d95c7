//! BTF as text in the form of `bpftool btf dump format raw`: a line
//! `[ID] KIND "name" key=value …` for each type; members, enumerators, parameters and
//! variables follow on lines that start with `-`.

use std::fmt::Write as _;

use btf::{
    Array, Btf, Builder, DeclTag, Encoding, Enumerator, Func, FwdKind, Int, Kind, Linkage, Member,
    Param, Shape, TypeId, Var, VarSecinfo, dump_raw,
};

use super::CaseError;
use super::lexer::{Words, hex, quoted};

/// Block `.btf` of BTF, or `.btf_bytes` if the lines do not reproduce it.
pub(super) fn write(btf: &Btf<'_>) -> String {
    let mut text = String::from(".btf\n");
    for ty in btf.own_types() {
        write_type(&mut text, btf, ty);
    }
    text.push_str(".end\n");
    let lines: Vec<&str> = text.lines().collect();
    let read = lines.iter().skip(1).take(lines.len() - 2);
    let mut types = Types::default();
    let is_read = read
        .map(|line| types.read(&mut Words::of(0, line)))
        .all(|it| it.is_ok());
    let again = Btf::parse(types.finish().finish());
    if is_read && again.is_ok_and(|again| dump_raw(&again) == dump_raw(btf)) {
        return text;
    }
    let mut text = String::from(".btf_bytes\n");
    for bytes in btf.as_bytes().chunks(32) {
        let _ = writeln!(text, "    {}", hex(bytes));
    }
    text.push_str(".end\n");
    text
}

fn write_type(text: &mut String, btf: &Btf<'_>, ty: btf::Type<'_>) {
    let name = |offset| quoted(btf.string(offset).as_bytes());
    let _ = write!(text, "    [{}] {}", ty.id(), ty.kind().name());
    if !ty.name().is_empty() {
        let _ = write!(text, " {}", quoted(ty.name().as_bytes()));
    }
    let _ = match ty.shape() {
        Shape::Void => Ok(()),
        Shape::Int(int) => write!(
            text,
            " size={} bits_offset={} nr_bits={} encoding={}",
            int.size, int.offset, int.bits, int.encoding.0
        ),
        Shape::Ptr(to)
        | Shape::Typedef(to)
        | Shape::Volatile(to)
        | Shape::Const(to)
        | Shape::Restrict(to)
        | Shape::TypeTag(to) => write!(text, " type_id={to}"),
        Shape::Array(Array {
            element,
            index,
            count,
        }) => write!(
            text,
            " type_id={element} index_type_id={index} nr_elems={count}"
        ),
        Shape::Struct(of) | Shape::Union(of) => {
            let _ = write!(text, " size={}", of.size);
            for member in of.members() {
                let _ = write!(
                    text,
                    "\n        - {} type_id={} bits_offset={}",
                    name(member.name),
                    member.ty,
                    member.bit_offset
                );
                if member.bits != 0 {
                    let _ = write!(text, " bitfield_size={}", member.bits);
                }
            }
            Ok(())
        }
        Shape::Enum(of) => {
            let _ = write!(text, " size={} signed={}", of.size, u8::from(of.signed));
            for value in of.values() {
                let number = match of.signed {
                    true => (value.value as i64).to_string(),
                    false => value.value.to_string(),
                };
                let _ = write!(text, "\n        - {} val={number}", name(value.name));
            }
            Ok(())
        }
        Shape::Fwd(FwdKind::Struct) => write!(text, " fwd_kind=struct"),
        Shape::Fwd(FwdKind::Union) => write!(text, " fwd_kind=union"),
        Shape::Func(func) => write!(
            text,
            " type_id={} linkage={}",
            func.proto,
            linkage(func.linkage)
        ),
        Shape::Proto(proto) => {
            let _ = write!(text, " ret_type_id={}", proto.returns);
            for param in proto.params() {
                let _ = write!(
                    text,
                    "\n        - {} type_id={}",
                    name(param.name),
                    param.ty
                );
            }
            Ok(())
        }
        Shape::Var(var) => write!(text, " type_id={} linkage={}", var.ty, linkage(var.linkage)),
        Shape::Datasec(section) => {
            let _ = write!(text, " size={}", section.size);
            for placed in section.vars() {
                let _ = write!(
                    text,
                    "\n        - type_id={} offset={} size={}",
                    placed.var, placed.offset, placed.size
                );
            }
            Ok(())
        }
        Shape::Float(size) => write!(text, " size={size}"),
        Shape::DeclTag(tag) => write!(
            text,
            " type_id={} component_idx={}",
            tag.target, tag.component
        ),
    };
    text.push('\n');
}

fn linkage(linkage: Linkage) -> String {
    match linkage {
        Linkage::STATIC => "static".to_owned(),
        Linkage::GLOBAL => "global".to_owned(),
        Linkage::EXTERN => "extern".to_owned(),
        other => other.0.to_string(),
    }
}

/// Reader of the lines of a block `.btf`.
#[derive(Default)]
pub(super) struct Types {
    builder: Builder,
    /// Type whose members, enumerators, parameters or variables are being read.
    open: Option<Open>,
}

struct Open {
    kind: Kind,
    name: Vec<u8>,
    keys: Keys,
    parts: Vec<(Vec<u8>, Keys)>,
}

/// Values of the keys on one line.
#[derive(Default)]
struct Keys {
    numbers: Vec<(String, i128)>,
}

impl Keys {
    fn read(words: &mut Words<'_>) -> Result<Keys, CaseError> {
        let mut keys = Keys::default();
        while !words.is_empty() {
            let refusal = words.unexpected("key=value");
            let key = words.key().ok_or(refusal)?;
            let value = match key {
                "linkage" => match words.expect_word("a linkage")? {
                    "static" => 0,
                    "global" => 1,
                    "extern" => 2,
                    other => other
                        .parse()
                        .map_err(|_| words.unexpected("static, global or extern"))?,
                },
                "fwd_kind" => match words.expect_word("struct or union")? {
                    "struct" => 0,
                    "union" => 1,
                    _ => return Err(words.unexpected("struct or union")),
                },
                _ => words.number("a number")?,
            };
            keys.numbers.push((key.to_owned(), value));
        }
        Ok(keys)
    }

    /// Value of a key truncated to 32 bits; 0 if the key is missing.
    fn get(&self, key: &str) -> u32 {
        self.wide(key) as u32
    }

    fn wide(&self, key: &str) -> u64 {
        let found = self.numbers.iter().find(|(known, _)| known == key);
        found.map_or(0, |(_, value)| *value as u64)
    }

    fn ty(&self, key: &str) -> TypeId {
        TypeId(self.get(key))
    }
}

impl Types {
    /// Reads one line.
    pub(super) fn read(&mut self, words: &mut Words<'_>) -> Result<(), CaseError> {
        let first = words.expect_word("[ID] KIND")?;
        if first == "-" {
            let name = match words.has_text() {
                true => words.bytes("a name")?,
                false => Vec::new(),
            };
            let keys = Keys::read(words)?;
            let refusal = words.unexpected("a type before its parts");
            self.open.as_mut().ok_or(refusal)?.parts.push((name, keys));
            return Ok(());
        }
        self.close();
        let id = first
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let id = id.and_then(|id| id.parse().ok()).map(TypeId);
        if id != Some(self.builder.next_id()) {
            return Err(words.unexpected("ids from [1] on, one after the other"));
        }
        let word = words.expect_word("a kind of type")?;
        let kind = Kind::ALL.iter().find(|kind| kind.name() == word);
        let kind = *kind.ok_or_else(|| words.unexpected("a kind of type, as INT"))?;
        let name = match words.has_text() {
            true => words.bytes("a name")?,
            false => Vec::new(),
        };
        self.open = Some(Open {
            kind,
            name,
            keys: Keys::read(words)?,
            parts: Vec::new(),
        });
        // A type without parts is complete, so the next id is known.
        if !has_parts(kind) {
            self.close();
        }
        Ok(())
    }

    /// Builder with the types read.
    pub(super) fn finish(mut self) -> Builder {
        self.close();
        self.builder
    }

    fn close(&mut self) {
        let Some(Open {
            kind,
            name,
            keys,
            parts,
        }) = self.open.take()
        else {
            return;
        };
        let builder = &mut self.builder;
        let name = builder.string(name);
        match kind {
            Kind::Void => {}
            Kind::Int => {
                let int = Int {
                    size: keys.get("size"),
                    bits: keys.get("nr_bits") & 0xff,
                    offset: keys.get("bits_offset") & 0xff,
                    encoding: Encoding(keys.get("encoding") as u8),
                };
                builder.int(name, int);
            }
            Kind::Ptr
            | Kind::Typedef
            | Kind::Volatile
            | Kind::Const
            | Kind::Restrict
            | Kind::TypeTag => {
                builder.reference(kind, name, keys.ty("type_id"));
            }
            Kind::Array => {
                builder.array(Array {
                    element: keys.ty("type_id"),
                    index: keys.ty("index_type_id"),
                    count: keys.get("nr_elems"),
                });
            }
            Kind::Struct | Kind::Union => {
                let members = parts.into_iter().map(|(name, keys)| Member {
                    name: builder.string(name),
                    ty: keys.ty("type_id"),
                    bit_offset: keys.get("bits_offset"),
                    bits: keys.get("bitfield_size") & 0xff,
                });
                let members: Vec<Member> = members.collect();
                builder.composite(kind, name, keys.get("size"), &members);
            }
            Kind::Enum | Kind::Enum64 => {
                let values = parts.into_iter().map(|(name, keys)| Enumerator {
                    name: builder.string(name),
                    value: keys.wide("val"),
                });
                let values: Vec<Enumerator> = values.collect();
                let (size, signed) = (keys.get("size"), keys.get("signed") != 0);
                match kind {
                    Kind::Enum => builder.enumeration(name, size, signed, &values),
                    _ => builder.enumeration64(name, size, signed, &values),
                };
            }
            Kind::Fwd => {
                let forward = match keys.get("fwd_kind") {
                    0 => FwdKind::Struct,
                    _ => FwdKind::Union,
                };
                builder.forward(name, forward);
            }
            Kind::Func => {
                let linkage = Linkage(keys.get("linkage"));
                let proto = keys.ty("type_id");
                builder.func(name, Func { proto, linkage });
            }
            Kind::FuncProto => {
                let params = parts.into_iter().map(|(name, keys)| Param {
                    name: builder.string(name),
                    ty: keys.ty("type_id"),
                });
                let params: Vec<Param> = params.collect();
                builder.proto(keys.ty("ret_type_id"), &params);
            }
            Kind::Var => {
                let linkage = Linkage(keys.get("linkage"));
                let ty = keys.ty("type_id");
                builder.var(name, Var { ty, linkage });
            }
            Kind::Datasec => {
                let vars = parts.iter().map(|(_, keys)| VarSecinfo {
                    var: keys.ty("type_id"),
                    offset: keys.get("offset"),
                    size: keys.get("size"),
                });
                let vars: Vec<VarSecinfo> = vars.collect();
                builder.datasec(name, keys.get("size"), &vars);
            }
            Kind::Float => {
                builder.float(name, keys.get("size"));
            }
            Kind::DeclTag => {
                let tag = DeclTag {
                    target: keys.ty("type_id"),
                    component: keys.get("component_idx") as i32,
                };
                builder.decl_tag(name, tag);
            }
        }
    }
}

fn has_parts(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::FuncProto | Kind::Datasec
    )
}
