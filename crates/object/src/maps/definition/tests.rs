//! Valid and invalid map declarations, built from BTF. Errors, and the first of several,
//! are libbpf 7.2's.

use btf::{Array, Btf, Builder, Encoding, Enumerator, Int, Kind, Member, StrOffset, TypeId};
use spec::Errno;
use spec::loader::LoaderKind;

use super::*;

/// Builder of the types of attributes.
struct Types {
    builder: Builder,
    int: TypeId,
    long: TypeId,
}

impl Types {
    fn new() -> Types {
        let mut builder = Builder::new();
        let mut int = |name: &str, size: u32| {
            let name = builder.string(name);
            let encoding = Encoding::SIGNED;
            let (bits, offset) = (size * 8, 0);
            builder.int(
                name,
                Int {
                    size,
                    bits,
                    offset,
                    encoding,
                },
            )
        };
        let (int, long) = (int("int", 4), int("long", 8));
        Types { builder, int, long }
    }

    fn pointer(&mut self, to: TypeId) -> TypeId {
        self.builder.reference(Kind::Ptr, StrOffset::EMPTY, to)
    }

    fn array(&mut self, element: TypeId, count: u32) -> TypeId {
        let index = self.int;
        self.builder.array(Array {
            element,
            index,
            count,
        })
    }

    fn number(&mut self, value: u32) -> TypeId {
        let array = self.array(self.int, value);
        self.pointer(array)
    }

    fn structure(&mut self, members: &[(&str, TypeId)]) -> TypeId {
        let members: Vec<Member> = members
            .iter()
            .zip(0..)
            .map(|(&(name, ty), index)| Member {
                name: self.builder.string(name),
                ty,
                bit_offset: 64 * index,
                bits: 0,
            })
            .collect();
        let size = 8 * members.len() as u32;
        let name = StrOffset::EMPTY;
        self.builder.composite(Kind::Struct, name, size, &members)
    }

    /// `values` with pointers to this type.
    fn values(&mut self, of: TypeId) -> TypeId {
        let pointer = self.pointer(of);
        self.array(pointer, 0)
    }

    fn read(&self, structure: TypeId) -> Result<Declaration, MapFault> {
        self.read_as(structure, false)
    }

    fn read_as(&self, structure: TypeId, relaxed: bool) -> Result<Declaration, MapFault> {
        let btf = Btf::parse(self.builder.finish()).expect("sound types");
        let rules = (LoaderKind::Libbpf.rules(), relaxed);
        read(&btf, btf.at(structure).as_composite().unwrap(), rules)
    }
}

const HASH: u32 = MapKind::Hash.number();
const PROGRAMS: u32 = MapKind::ProgArray.number();
const MAPS: u32 = MapKind::ArrayOfMaps.number();

fn wrong_shape(attribute: &str, expected: Kind, found: Kind) -> MapFault {
    MapFault::WrongShape {
        attribute: attribute.into(),
        expected,
        found,
    }
}

/// Result of a declaration with these attributes after its `type`.
fn read_with(
    kind: u32,
    attributes: impl FnOnce(&mut Types) -> Vec<(&'static str, TypeId)>,
) -> Result<Declaration, MapFault> {
    let mut types = Types::new();
    let mut members = vec![("type", types.number(kind))];
    members.extend(attributes(&mut types));
    let structure = types.structure(&members);
    types.read(structure)
}

#[test]
fn attributes_set_parameters() {
    let read = read_with(HASH, |types| {
        vec![
            ("max_entries", types.number(7)),
            ("map_flags", types.number(5)),
            ("numa_node", types.number(2)),
            ("key", types.pointer(types.int)),
            ("key_size", types.number(4)),
            ("value_size", types.number(8)),
            ("value", types.pointer(types.long)),
            ("map_extra", types.number(9)),
            ("pinning", types.number(1)),
        ]
    });
    let expected = MapParams {
        map_type: HASH,
        key_size: 4,
        value_size: 8,
        max_entries: 7,
        flags: MapFlags(5),
        extra: 9,
        numa_node: 2,
        key_type: TypeId(1),
        value_type: TypeId(2),
    };
    let read = read.unwrap();
    assert_eq!((read.params, read.inner, read.pinning), (expected, None, 1));
}

#[test]
fn different_sizes_are_refused() {
    let fault = |of, first, second| Err(MapFault::TwoSizes { of, first, second });
    let read = read_with(HASH, |types| {
        vec![
            ("key_size", types.number(8)),
            ("key", types.pointer(types.int)),
        ]
    });
    assert_eq!(read, fault(SizeAttribute::Key, 8, 4));
    let read = read_with(HASH, |types| {
        vec![
            ("value", types.pointer(types.long)),
            ("value_size", types.number(4)),
        ]
    });
    assert_eq!(read, fault(SizeAttribute::Value, 8, 4));
    // A size of 0 is unstated, whatever follows.
    let read = read_with(HASH, |types| {
        vec![
            ("key_size", types.number(0)),
            ("key", types.pointer(types.int)),
        ]
    });
    assert_eq!(read.unwrap().params.key_size, 4);
    let read = read_with(HASH, |types| vec![("value", types.pointer(TypeId::VOID))]);
    let (of, ty) = (SizeAttribute::Value, TypeId::VOID);
    assert_eq!(read, Err(MapFault::NoSize { of, ty }));
}

#[test]
fn numbers_are_lengths_of_arrays() {
    let read = read_with(HASH, |types| vec![("max_entries", types.int)]);
    assert_eq!(read, Err(wrong_shape("max_entries", Kind::Ptr, Kind::Int)));
    let read = read_with(HASH, |types| vec![("map_flags", types.pointer(types.int))]);
    assert_eq!(read, Err(wrong_shape("map_flags", Kind::Array, Kind::Int)));
    // A typedef of the pointer is valid, one of the array is not.
    let read = read_with(HASH, |types| {
        let number = types.number(3);
        let name = types.builder.string("three");
        vec![(
            "numa_node",
            types.builder.reference(Kind::Typedef, name, number),
        )]
    });
    assert_eq!(read.unwrap().params.numa_node, 3);
    let read = read_with(HASH, |types| {
        let array = types.array(types.int, 3);
        let name = types.builder.string("three");
        let array = types.builder.reference(Kind::Typedef, name, array);
        vec![("numa_node", types.pointer(array))]
    });
    assert_eq!(
        read,
        Err(wrong_shape("numa_node", Kind::Array, Kind::Typedef))
    );
    // Other types and named types are not numbers.
    let read = read_with(HASH, |types| {
        let pointer = types.pointer(types.int);
        let name = types.builder.string("key_pointer");
        vec![("key", types.builder.reference(Kind::Typedef, name, pointer))]
    });
    assert_eq!(read, Err(wrong_shape("key", Kind::Ptr, Kind::Typedef)));
}

#[test]
fn long_numbers_are_enumerations_of_one_value() {
    let extra = |values: &[u64], wide: bool| {
        let values: Vec<Enumerator> = values
            .iter()
            .map(|&value| Enumerator {
                name: StrOffset(1),
                value,
            })
            .collect();
        read_with(HASH, |types| {
            let name = StrOffset::EMPTY;
            let ty = match wide {
                true => types.builder.enumeration64(name, 8, false, &values),
                false => types.builder.enumeration(name, 4, false, &values),
            };
            vec![("map_extra", ty)]
        })
        .map(|read| read.params.extra)
    };
    assert_eq!(extra(&[5 << 40], true), Ok(5 << 40));
    assert_eq!(extra(&[77], false), Ok(77));
    // 32-bit values are signed.
    assert_eq!(extra(&[0x8000_0000], false), Ok(0xffff_ffff_8000_0000));
    let fault = Err(MapFault::NotOneNumber("map_extra".into()));
    assert_eq!(
        (extra(&[], true), extra(&[1, 2], false)),
        (fault.clone(), fault)
    );
    let read = read_with(HASH, |types| vec![("map_extra", types.int)]);
    assert_eq!(read, Err(wrong_shape("map_extra", Kind::Enum, Kind::Int)));
}

#[test]
fn maps_of_maps_have_one_inner_declaration() {
    let inner = |types: &mut Types| {
        let members = [
            ("type", types.number(HASH)),
            ("max_entries", types.number(3)),
        ];
        types.structure(&members)
    };
    let read = read_with(MAPS, |types| {
        let inner = inner(types);
        vec![("values", types.values(inner))]
    });
    let read = read.unwrap();
    let held = read.inner.unwrap();
    assert_eq!((held.map_type, held.max_entries), (HASH, 3));
    assert_eq!(
        (read.params.value_size, read.params.value_type),
        (4, TypeId::VOID)
    );

    let fault = |kind, attributes: fn(&mut Types) -> Vec<(&'static str, TypeId)>| {
        read_with(kind, attributes).unwrap_err()
    };
    let held = |fault| MapFault::Inner(Box::new(fault));
    let not_last = fault(MAPS, |types| {
        let inner = types.structure(&[]);
        vec![
            ("values", types.values(inner)),
            ("max_entries", types.number(1)),
        ]
    });
    assert_eq!(not_last, MapFault::ValuesNotLast);
    let of_hash = fault(HASH, |types| {
        let inner = types.structure(&[]);
        vec![("values", types.values(inner))]
    });
    assert_eq!(
        (of_hash.errno(), of_hash),
        (Errno::EOPNOTSUPP, MapFault::ValuesOfOther(HASH))
    );
    let closed = fault(MAPS, |types| {
        let pointer = types.pointer(types.int);
        vec![("values", types.array(pointer, 1))]
    });
    assert_eq!(closed, MapFault::ValuesNotOpen);
    let of_numbers = fault(MAPS, |types| vec![("values", types.array(types.int, 0))]);
    assert_eq!(of_numbers, wrong_shape("values", Kind::Ptr, Kind::Int));
    let to_numbers = fault(MAPS, |types| vec![("values", types.values(types.int))]);
    assert_eq!(to_numbers, wrong_shape("values", Kind::Struct, Kind::Int));
    let wide = fault(MAPS, |types| {
        let inner = types.structure(&[]);
        vec![
            ("value_size", types.number(8)),
            ("values", types.values(inner)),
        ]
    });
    let (of, first, second) = (SizeAttribute::Value, 8, 4);
    assert_eq!(wide, MapFault::TwoSizes { of, first, second });
    let empty = fault(MAPS, |types| {
        let inner = types.structure(&[]);
        vec![("values", types.values(inner))]
    });
    assert_eq!(empty, held(MapFault::NoKind));
    let pinned = fault(MAPS, |types| {
        let members = [("pinning", types.number(0))];
        let inner = types.structure(&members);
        vec![("values", types.values(inner))]
    });
    assert_eq!(pinned, held(MapFault::InnerPinned));
    let twice = fault(MAPS, |types| {
        let innermost = types.structure(&[]);
        let members = [
            ("type", types.number(MAPS)),
            ("values", types.values(innermost)),
        ];
        let inner = types.structure(&members);
        vec![("values", types.values(inner))]
    });
    assert_eq!(twice.errno(), Errno::EOPNOTSUPP);
    assert_eq!(twice, held(MapFault::NestedTwice));
}

#[test]
fn program_arrays_have_programs() {
    let read = read_with(PROGRAMS, |types| {
        let proto = types.builder.proto(types.int, &[]);
        vec![("values", types.values(proto))]
    });
    assert_eq!(read.unwrap().params.value_size, 4);
    let read = read_with(PROGRAMS, |types| vec![("values", types.values(types.int))]);
    assert_eq!(read, Err(wrong_shape("values", Kind::FuncProto, Kind::Int)));
}

#[test]
fn unknown_and_missing_attributes_are_refused() {
    let mut types = Types::new();
    let members = [("type", types.number(HASH)), ("colour", types.number(1))];
    let structure = types.structure(&members);
    let fault = MapFault::UnknownAttribute("colour".into());
    assert_eq!(fault.errno(), Errno::EOPNOTSUPP);
    assert_eq!(types.read(structure), Err(fault));
    assert!(types.read_as(structure, true).is_ok());
    let read = read_with(HASH, |types| vec![("pinning", types.number(2))]);
    assert_eq!(read, Err(MapFault::UnknownPinning(2)));
    assert_eq!(read_with(0, |_| vec![]), Err(MapFault::NoKind));
    let mut types = Types::new();
    let structure = types.structure(&[]);
    assert_eq!(types.read(structure), Err(MapFault::NoKind));
    // The kernel refuses an unknown map type.
    let read = read_with(999, |_| vec![]).unwrap().params;
    assert_eq!((read.map_type, read.kind()), (999, None));
}
