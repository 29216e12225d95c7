//! Reading the sections of an object.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use gimli::{
    AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, SectionId, UnitRef,
};
use object::elf::{Elf, SectionKind, SymbolPlace};

use super::types::{Base, Member, Type, Types};
use super::{Debug, Function, Inlined, Locations, Variable};

type Slice<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = DebuggingInformationEntry<Slice<'d>>;

/// Most entries that one is an instance of, one of the other.
const MOST_ORIGINS: usize = 4;

/// `ELFCOMPRESS_ZLIB`.
const ZLIB: u32 = 1;
/// Most bytes of a section that is decompressed.
const MOST_DECOMPRESSED: u64 = 256 << 20;

/// `R_BPF_64_ABS64` and `R_BPF_64_ABS32`, and the latter where no dynamic linker relocates.
const ABSOLUTE_64: u32 = 2;
const ABSOLUTE_32: [u32; 2] = [3, 4];

pub(super) fn read(file: &[u8]) -> Option<Debug> {
    let elf = Elf::parse(file).ok()?;
    elf.section_named(b".debug_info")?;
    let load =
        |id: SectionId| Ok::<_, gimli::Error>(relocated(&elf, id.name()).unwrap_or_default());
    let sections = gimli::DwarfSections::load(load).ok()?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut debug = Debug {
        sections: elf
            .sections()
            .iter()
            .map(|section| section.name.to_string())
            .collect(),
        ..Debug::default()
    };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            // What a damaged unit has in front of the damage is kept.
            let _ = read_unit(unit.unit_ref(&dwarf), &mut debug);
        }
    }
    (!debug.functions.is_empty()).then_some(debug)
}

/// The bytes of a section that is compressed by zlib (`clang -gz`).
fn decompressed(section: &[u8]) -> Option<Vec<u8>> {
    // `Elf64_Chdr`: type, reserved, size and alignment.
    let (header, packed) = section.split_at_checked(24)?;
    let kind = u32::from_le_bytes(*header.first_chunk()?);
    let size = u64::from_le_bytes(*header[8..].first_chunk()?);
    if kind != ZLIB || size > MOST_DECOMPRESSED {
        return None;
    }
    let mut bytes = Vec::new();
    let read = flate2::read::ZlibDecoder::new(packed)
        .take(size)
        .read_to_end(&mut bytes);
    read.ok().filter(|len| *len as u64 == size).map(|_| bytes)
}

/// The bytes of a section with its relocations applied.
pub(super) fn relocated(elf: &Elf<'_>, name: &str) -> Option<Vec<u8>> {
    let section = elf.section_named(name.as_bytes())?;
    let mut bytes = match section.compressed {
        true => decompressed(section.data().ok()?)?,
        false => section.data().ok()?.to_vec(),
    };
    let relocations = elf.sections().iter().filter(|relocations| {
        relocations.kind == SectionKind::Relocations && relocations.target == section.id
    });
    for relocation in relocations
        .filter_map(|table| elf.relocations(table).ok())
        .flatten()
    {
        let Some(symbol) = elf.symbol(relocation.symbol) else {
            continue;
        };
        let number = match symbol.place {
            SymbolPlace::Section(id) => id.0,
            SymbolPlace::Undefined | SymbolPlace::Special(_) => 0,
        };
        let at = relocation.offset as usize;
        if relocation.kind == ABSOLUTE_64
            && let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut())
        {
            let value = u64::from_le_bytes(*place).wrapping_add(symbol.value);
            *place = value.wrapping_add(u64::from(number) << 32).to_le_bytes();
        } else if ABSOLUTE_32.contains(&relocation.kind)
            && let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut())
        {
            let value = u32::from_le_bytes(*place).wrapping_add(symbol.value as u32);
            *place = value.to_le_bytes();
        }
    }
    Some(bytes)
}

/// What entries are in.
struct Scope {
    depth: isize,
    /// Ranges of instructions.
    ranges: Vec<Range<u64>>,
    /// The inlined function, if it is one.
    inlined: Option<String>,
}

fn read_unit<'d>(unit: UnitRef<'_, Slice<'d>>, debug: &mut Debug) -> gimli::Result<()> {
    let mut base_types = HashMap::new();
    let first = debug.functions.len();
    let mut scopes: Vec<Scope> = Vec::new();
    // The types that the members, enumerators or counts that follow are of, the innermost last.
    let mut owners: Vec<(isize, usize)> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let (depth, tag) = (entry.depth(), entry.tag());
        let stated = entry.attr(gimli::DW_AT_alignment);
        let size = entry.attr(gimli::DW_AT_byte_size);
        let size = size.filter(|_| tag == gimli::DW_TAG_base_type);
        let aligns = [stated, size].into_iter().flatten();
        let aligns = aligns.filter_map(|attr| attr.udata_value());
        debug.most_align = aligns.fold(debug.most_align, u64::max);
        scopes.retain(|scope| scope.depth < depth);
        owners.retain(|(of, _)| *of < depth);
        match tag {
            gimli::DW_TAG_subprogram if entry.has_attr(gimli::DW_AT_low_pc) => {
                let ranges = ranges(unit, entry)?;
                if let (Some(range), Some(name)) = (ranges.first(), name(unit, entry)?) {
                    debug.functions.push(Function {
                        name,
                        addresses: range.clone(),
                        variables: Vec::new(),
                        inlined: Vec::new(),
                        encoding: unit.encoding(),
                        base_types: HashMap::new(),
                    });
                    scopes = vec![Scope {
                        depth,
                        ranges,
                        inlined: None,
                    }];
                }
            }
            gimli::DW_TAG_lexical_block if !scopes.is_empty() => {
                let ranges = ranges(unit, entry)?;
                let inlined = scopes.last().and_then(|scope| scope.inlined.clone());
                scopes.push(Scope {
                    depth,
                    ranges,
                    inlined,
                });
            }
            gimli::DW_TAG_inlined_subroutine if !scopes.is_empty() => {
                let ranges = ranges(unit, entry)?;
                let name = name(unit, entry)?.unwrap_or_default();
                let call_line = entry.attr(gimli::DW_AT_call_line);
                let call_line = call_line.and_then(|line| line.udata_value());
                let call_line = call_line.and_then(|line| u32::try_from(line).ok());
                if let Some(function) = debug.functions.last_mut() {
                    let (name, ranges) = (name.clone(), ranges.clone());
                    function.inlined.push(Inlined {
                        name,
                        ranges,
                        depth,
                        call_line,
                    });
                }
                scopes.push(Scope {
                    depth,
                    ranges,
                    inlined: Some(name),
                });
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                if let (Some(scope), Some(name)) = (scopes.last(), name(unit, entry)?) {
                    let variable = Variable {
                        name,
                        within: scope.inlined.clone(),
                        kind: kind(unit, entry)?,
                        line: line(unit, entry)?,
                        is_parameter: tag == gimli::DW_TAG_formal_parameter,
                        scope: scope.ranges.clone(),
                        locations: locations(unit, entry)?,
                    };
                    if let Some(function) = debug.functions.last_mut() {
                        function.variables.push(variable);
                    }
                }
            }
            _ => {
                let at = offset_of(unit, entry.offset());
                if tag == gimli::DW_TAG_base_type
                    && let Some(value) = gimli::ValueType::from_entry(entry)?
                {
                    base_types.insert(entry.offset().0, value);
                }
                read_type(unit, entry, (at, depth), &mut owners, &mut debug.types)?;
            }
        }
    }
    for function in &mut debug.functions[first..] {
        function.base_types = base_types.clone();
    }
    Ok(())
}

/// Reads the entry of a type, or of a part of one.
fn read_type<'d>(
    unit: UnitRef<'_, Slice<'d>>,
    entry: &Entry<'d>,
    (at, depth): (usize, isize),
    owners: &mut Vec<(isize, usize)>,
    types: &mut Types,
) -> gimli::Result<()> {
    let name = || Ok::<_, gimli::Error>(own_name(unit, entry)?.unwrap_or_default());
    let number = |attribute| entry.attr(attribute).and_then(|attr| attr.udata_value());
    let size = || number(gimli::DW_AT_byte_size).unwrap_or(0) as usize;
    let made = match entry.tag() {
        gimli::DW_TAG_base_type => {
            let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
                Some(AttributeValue::Encoding(encoding)) => encoding,
                _ => gimli::DW_ATE_unsigned,
            };
            let base = match encoding {
                gimli::DW_ATE_boolean => Base::Bool,
                gimli::DW_ATE_signed => Base::Signed,
                gimli::DW_ATE_signed_char => Base::SignedChar,
                gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => Base::UnsignedChar,
                gimli::DW_ATE_float => Base::Float,
                _ => Base::Unsigned,
            };
            Type::Base {
                name: name()?,
                size: size(),
                base,
            }
        }
        gimli::DW_TAG_pointer_type => Type::Pointer(kind(unit, entry)?),
        gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
            let keyword = match entry.tag() == gimli::DW_TAG_union_type {
                true => "union",
                false => "struct",
            };
            let name = name()?;
            Type::Composite {
                keyword,
                name,
                size: size(),
                members: Vec::new(),
            }
        }
        gimli::DW_TAG_array_type => Type::Array {
            of: kind(unit, entry)?,
            count: 0,
        },
        gimli::DW_TAG_enumeration_type => Type::Enum {
            name: name()?,
            size: size(),
            values: Vec::new(),
        },
        gimli::DW_TAG_typedef => Type::Typedef {
            name: name()?,
            of: kind(unit, entry)?,
        },
        gimli::DW_TAG_const_type => Type::Modifier {
            word: "const ",
            of: kind(unit, entry)?,
        },
        gimli::DW_TAG_volatile_type => Type::Modifier {
            word: "volatile ",
            of: kind(unit, entry)?,
        },
        gimli::DW_TAG_restrict_type => Type::Modifier {
            word: "",
            of: kind(unit, entry)?,
        },
        gimli::DW_TAG_subroutine_type => Type::Function,
        gimli::DW_TAG_member => {
            let bits = number(gimli::DW_AT_bit_size).map(|bits| bits as u32);
            let start = 8 * number(gimli::DW_AT_data_member_location).unwrap_or(0);
            let bit_offset = match (
                number(gimli::DW_AT_data_bit_offset),
                number(gimli::DW_AT_bit_offset),
                bits,
            ) {
                (Some(offset), ..) => offset,
                // DWARF 2 counts from the most significant bit of what holds the field.
                (None, Some(above), Some(bits)) => {
                    let holder = 8 * number(gimli::DW_AT_byte_size).unwrap_or(0);
                    (start + holder).saturating_sub(above + u64::from(bits))
                }
                (None, ..) => start,
            };
            let member = Member {
                name: name()?,
                kind: kind(unit, entry)?,
                bit_offset,
                bits,
            };
            if let Some((_, owner)) = owners.last() {
                types.add_member(*owner, member);
            }
            return Ok(());
        }
        gimli::DW_TAG_enumerator => {
            let value = entry.attr(gimli::DW_AT_const_value);
            let value = value.and_then(|attr| attr.sdata_value());
            if let (Some((_, owner)), Some(value)) = (owners.last(), value) {
                types.add_enumerator(*owner, name()?, value);
            }
            return Ok(());
        }
        gimli::DW_TAG_subrange_type => {
            let upper = number(gimli::DW_AT_upper_bound).map(|bound| bound.saturating_add(1));
            let count = number(gimli::DW_AT_count).or(upper).unwrap_or(0);
            if let Some((_, owner)) = owners.last() {
                types.add_dimension(*owner, count as usize);
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    types.add(at, made);
    owners.push((depth, at));
    Ok(())
}

/// The offset of an entry in all units.
fn offset_of<'d>(unit: UnitRef<'_, Slice<'d>>, offset: gimli::UnitOffset) -> usize {
    offset.to_unit_section_offset(&unit).0
}

/// What is found of an entry, or of the ones that it is an instance of.
fn of_origins<'d, T>(
    unit: UnitRef<'_, Slice<'d>>,
    entry: &Entry<'d>,
    find: impl Fn(&Entry<'d>) -> gimli::Result<Option<T>>,
) -> gimli::Result<Option<T>> {
    let mut found = find(entry)?;
    let mut instance = entry.clone();
    for _ in 0..MOST_ORIGINS {
        let origin = instance.attr_value(gimli::DW_AT_abstract_origin);
        let origin = origin.or(instance.attr_value(gimli::DW_AT_specification));
        let (None, Some(AttributeValue::UnitRef(offset))) = (&found, origin) else {
            break;
        };
        instance = unit.entry(offset)?;
        found = find(&instance)?;
    }
    Ok(found)
}

fn kind<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Option<usize>> {
    of_origins(unit, entry, |entry| {
        Ok(match entry.attr_value(gimli::DW_AT_type) {
            Some(AttributeValue::UnitRef(offset)) => Some(offset_of(unit, offset)),
            Some(AttributeValue::DebugInfoRef(offset)) => Some(offset.0),
            _ => None,
        })
    })
}

fn own_name<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Option<String>> {
    let Some(name) = entry.attr_value(gimli::DW_AT_name) else {
        return Ok(None);
    };
    let name = unit.attr_string(name)?;
    Ok(Some(name.to_string_lossy().into_owned()))
}

fn name<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Option<String>> {
    of_origins(unit, entry, |entry| own_name(unit, entry))
}

/// The line that declares an entry.
fn line<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Option<u32>> {
    of_origins(unit, entry, |entry| {
        let line = entry.attr(gimli::DW_AT_decl_line);
        let line = line.and_then(|attr| attr.udata_value());
        Ok(line.and_then(|line| u32::try_from(line).ok()))
    })
}

fn ranges<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Vec<Range<u64>>> {
    let mut ranges = unit.die_ranges(entry)?;
    let mut found = Vec::new();
    while let Some(range) = ranges.next()? {
        found.push(range.begin..range.end);
    }
    Ok(found)
}

fn locations<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &Entry<'d>) -> gimli::Result<Locations> {
    if let Some(value) = entry.attr(gimli::DW_AT_const_value) {
        let number = value
            .sdata_value()
            .or(value.udata_value().map(|value| value as i64));
        return Ok(match number {
            Some(number) => Locations::Constant(number.to_le_bytes().to_vec()),
            None => Locations::None,
        });
    }
    let Some(location) = entry.attr_value(gimli::DW_AT_location) else {
        return Ok(Locations::None);
    };
    if let Some(expression) = location.exprloc_value() {
        return Ok(Locations::One(expression.0.slice().to_vec()));
    }
    let mut ranges = Vec::new();
    if let Some(mut list) = unit.attr_locations(location)? {
        while let Some(entry) = list.next()? {
            let expression = entry.data.0.slice().to_vec();
            ranges.push((entry.range.begin..entry.range.end, expression));
        }
    }
    Ok(Locations::Ranges(ranges))
}
