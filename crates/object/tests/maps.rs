//! Maps, global variables and externs of `maps/everything.o`, as opened and as map
//! definitions. The text beside it and the numbers here were compared with libbpf 7.2
//! when they were recorded.
//!
//! `UPDATE_EXPECT=1 cargo test -p beebox-object --test it maps::` records the text again.

use expect_test::expect_file;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox_object::externs::ExternFault;
use beebox_object::maps::{LinkedMap, MapFault, StructOpsFault};
use beebox_object::{Error, Linked, Object, OpenOptions, Problem};
use btf::{Btf, Builder, Kind, Linkage, Member, Shape, StrOffset, TypeId};
use program::{ExternResolution, InitialContents, MapDef, MapEntry};
use spec::kernel::{Features, KernelConfig, KernelVersion, Source, SymbolAddress, Symbols};
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Kernel};

const CONFIG: &str = "\
# comment
CONFIG_SWITCH=y
CONFIG_THREE=m
CONFIG_LETTER=n
CONFIG_NUMBER=-0x10
CONFIG_WIDE=0xffffffffffffffff
CONFIG_TEXT=\"too long a text\"
CONFIG_OTHER=1
";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/maps")
        .join(name)
}

fn everything() -> Vec<u8> {
    fs::read(file("everything.o")).expect("a committed object")
}

fn kernel() -> Arc<Btf<'static>> {
    let bytes = fs::read(file("kernel.o")).expect("a committed object");
    let object = Object::open(&bytes).expect("a kernel");
    let types = object.btf().expect("types").as_bytes();
    Arc::new(Btf::parse(types.to_vec()).expect("types"))
}

fn open(bytes: &[u8]) -> Object<'_> {
    let options = OpenOptions {
        name: Some("everything.o"),
        ..OpenOptions::default()
    };
    Object::open_with(bytes, &options).expect("a sound object")
}

fn symbols(name: &str) -> SymbolAddress {
    match name {
        "schedule" => SymbolAddress::At(0x1234),
        _ => SymbolAddress::Missing,
    }
}

fn target(btf: &Arc<Btf<'static>>) -> Kernel {
    Kernel::new("test")
        .with_btf(btf.clone(), Source::Given)
        .with_config(KernelConfig::new(CONFIG), Source::Given)
        .with_symbols(Symbols::new(symbols), Source::Given)
        .with_version(KernelVersion::new(6, 18, 44), Source::Given)
        .with_cpus(2, Source::Given)
}

fn link(object: &Object<'_>) -> Result<Linked, Error> {
    let kernel = kernel();
    object.link(&target(&kernel))
}

fn extern_fault(error: Error) -> ExternFault {
    match error.problem() {
        Problem::Extern(fault) => fault.clone(),
        other => panic!("{other}"),
    }
}

fn map_fault(error: Error) -> MapFault {
    match error.problem() {
        Problem::Map(fault) => fault.clone(),
        other => panic!("{other}"),
    }
}

#[oracle::test]
fn map_definitions_are_those_of_libbpf() {
    let bytes = everything();
    let object = open(&bytes);
    let linked = link(&object).expect("a kernel that has it all");
    let mut text = String::new();
    for map in &linked.maps {
        write_map(&mut text, &object, map);
    }
    expect_file![file("everything.txt")].assert_eq(&text);
}

fn write_map(text: &mut String, object: &Object<'_>, map: &LinkedMap) {
    write_head(text, &map.def, "");
    if !map.autocreate {
        writeln!(text, "  not created").unwrap();
    }
    if let Some(pin) = &map.pin {
        writeln!(text, "  pinned at {pin}").unwrap();
    }
    write_contents(text, object, &map.def, "");
}

fn write_head(text: &mut String, map: &MapDef, indent: &str) {
    let of = &map.params;
    let kind = of.kind().map_or("?", MapKind::name);
    let flags: Vec<&str> = of.flags.names().collect();
    write!(text, "{indent}{} ({}): {kind}", map.name, map.kernel_name).unwrap();
    write!(text, " key {} value {}", of.key_size, of.value_size).unwrap();
    write!(
        text,
        " entries {} flags [{}]",
        of.max_entries,
        flags.join(" ")
    )
    .unwrap();
    write!(text, " extra {:#x} node {}", of.extra, of.numa_node).unwrap();
    match map.has_btf {
        true => writeln!(text, " types {} {}", of.key_type, of.value_type).unwrap(),
        false => writeln!(text).unwrap(),
    }
}

fn write_contents(text: &mut String, object: &Object<'_>, map: &MapDef, indent: &str) {
    if let Some(value) = map.kernel_value {
        writeln!(
            text,
            "{indent}  kernel type {} of {}",
            value.id, value.module
        )
        .unwrap();
    }
    if let Some(inner) = &map.inner {
        write_head(text, inner, "  holds ");
        write_contents(text, object, inner, "  holds ");
    }
    match &map.contents {
        InitialContents::Entries(entries) => {
            for (key, entry) in entries {
                let what = match entry {
                    MapEntry::Map(map) => object.maps().get(*map).unwrap().name().to_owned(),
                    MapEntry::Program(program) => program.name.clone(),
                };
                writeln!(text, "{indent}  [{key}] = {what}").unwrap();
            }
        }
        InitialContents::Value { image, frozen } => {
            let end = if *frozen { ", frozen" } else { "" };
            writeln!(text, "{indent}  = {:02x?}{end}", image.to_vec()).unwrap();
        }
        InitialContents::Arena { image, offset } => {
            writeln!(text, "{indent}  = {:02x?} at {offset}", image.to_vec()).unwrap();
        }
        InitialContents::StructOps { image, programs } => {
            writeln!(text, "{indent}  = {:02x?}", image.to_vec()).unwrap();
            for (offset, program) in programs {
                writeln!(text, "{indent}  {offset}: {}", program.name).unwrap();
            }
        }
        InitialContents::JumpTable(places) => {
            writeln!(text, "{indent}  jumps to {places:?}").unwrap();
        }
    }
}

#[oracle::test]
fn btf_for_the_kernel_is_that_of_libbpf() {
    let bytes = everything();
    let object = open(&bytes);
    let types = object.btf().unwrap().as_bytes();
    assert_eq!(
        (types.len(), fnv(types)),
        (4675, 16_822_985_814_284_587_570)
    );
}

/// FNV-1a hash, by which libbpf's blob was recorded.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[oracle::test]
fn struct_ops_programs_attach_to_members_of_the_kernel_type() {
    let bytes = everything();
    let linked = link(&open(&bytes)).unwrap();
    let points = linked.programs.iter().filter_map(|linked| {
        let target = linked.program.attach_target()?;
        Some((linked.program.name(), target.btf_id, target.member))
    });
    let points: Vec<_> = points.collect();
    let expected = [
        ("start_machine", TypeId(17), Some(4)),
        ("stop_machine", TypeId(17), Some(2)),
    ];
    assert_eq!(points, expected);
}

#[oracle::test]
fn struct_ops_programs_are_loaded_with_their_maps() {
    let bytes = everything();
    let loaded = |object: &Object<'_>| -> Vec<String> {
        let programs = link(object).unwrap().programs;
        let of_tables = programs
            .into_iter()
            .map(|linked| linked.program.name().to_owned())
            .filter(|name| name.ends_with("machine"));
        of_tables.collect()
    };
    let mut object = open(&bytes);
    assert_eq!(loaded(&object), ["start_machine", "stop_machine"]);
    // The second struct_ops has the first function only.
    for (table, is_created) in [("machine", false), ("idle_machine", true)] {
        let id = object.maps().named(table).unwrap();
        object.maps_mut().get_mut(id).unwrap().autocreate = is_created;
    }
    assert_eq!(loaded(&object), ["start_machine"]);
    // A program that the caller removes from its struct_ops is not loaded.
    let mut object = open(&bytes);
    let id = object.maps().named("machine").unwrap();
    let table = object.maps().get(id).unwrap().struct_ops().unwrap();
    let stop = table.member(object.btf().unwrap(), "stop").unwrap();
    assert_eq!(table.member(object.btf().unwrap(), "pause"), None);
    assert!(table.program(stop).is_some());
    let map = object.maps_mut().get_mut(id).unwrap();
    map.struct_ops_mut().unwrap().set_program(stop, None);
    assert_eq!(loaded(&object), ["start_machine"]);
}

/// The kernel with a struct_ops type of these members: a name, and the name of an integer
/// type or `None` for a function pointer.
fn other_kernel(members: &[(&str, Option<&str>)]) -> Arc<Btf<'static>> {
    let kernel = kernel();
    let table = kernel.find(Kind::Struct, "machine_ops").unwrap();
    let function = table.as_composite().unwrap().member(2).unwrap().ty;
    let types: Vec<TypeId> = members
        .iter()
        .map(|(_, ty)| match ty {
            Some(name) => kernel.find(Kind::Int, name).expect(name).id(),
            None => function,
        })
        .collect();
    let mut builder = Builder::with_types_of(&kernel);
    let mut renamed: Vec<u8> = builder.finish();
    // The original type is renamed to a name of the same length.
    let name = b"\0machine_ops\0";
    let at = renamed
        .windows(name.len())
        .position(|bytes| bytes == name)
        .unwrap();
    renamed[at + 1] = b'M';
    let holder = b"\0bpf_struct_ops_machine_ops\0";
    let at = renamed
        .windows(holder.len())
        .position(|bytes| bytes == holder)
        .unwrap();
    renamed[at + 1] = b'B';
    let kernel = Arc::new(Btf::parse(renamed).unwrap());
    builder = Builder::with_types_of(&kernel);
    let listed: Vec<Member> = members
        .iter()
        .zip(types)
        .zip(0..)
        .map(|(((name, _), ty), index)| Member {
            name: builder.string(name),
            ty,
            bit_offset: index * 64,
            bits: 0,
        })
        .collect();
    let name = builder.string("machine_ops");
    let size = 8 * members.len() as u32;
    let table = builder.composite(Kind::Struct, name, size, &listed);
    let data = Member {
        name: builder.string("data"),
        ty: table,
        bit_offset: 0,
        bits: 0,
    };
    let name = builder.string("bpf_struct_ops_machine_ops");
    builder.composite(Kind::Struct, name, size, &[data]);
    Arc::new(Btf::parse(builder.finish()).unwrap())
}

#[oracle::test]
fn incompatible_struct_ops_are_refused() {
    let bytes = everything();
    let word = Some("unsigned int");
    let fault = |members: &[(&str, Option<&str>)]| {
        let kernel = other_kernel(members);
        let error = open(&bytes).link(&target(&kernel)).unwrap_err();
        assert_eq!(error.place().symbol.as_deref(), Some("machine"));
        match error.problem() {
            Problem::StructOps(fault) => fault.clone(),
            other => panic!("{other}"),
        }
    };
    let missing = |name: &str| StructOpsFault::MissingMember(name.into());
    assert_eq!(fault(&[("start", None), ("speed", word)]), missing("stop"));
    assert_eq!(fault(&[("start", None), ("stop", None)]), missing("speed"));
    let wide = Some("unsigned long long");
    let expected = StructOpsFault::OtherSize {
        member: "speed".into(),
        here: 4,
        there: Some(8),
    };
    assert_eq!(
        fault(&[("start", None), ("stop", None), ("speed", wide)]),
        expected
    );
    let expected = StructOpsFault::OtherKind {
        member: "start".into(),
        here: Kind::Ptr,
        there: Kind::Int,
    };
    assert_eq!(fault(&[("start", word), ("stop", None)]), expected);
    assert_eq!(expected.errno(), Errno::EOPNOTSUPP);
    assert_eq!(missing("stop").errno(), Errno::EOPNOTSUPP);
}

#[oracle::test]
fn kconfig_values_must_fit() {
    let bytes = everything();
    let kernel = kernel();
    let fault = |config: &str| {
        let config = KernelConfig::new(config);
        let target = target(&kernel).with_config(config, Source::Given);
        extern_fault(open(&bytes).link(&target).unwrap_err())
    };
    let mismatch = |value: &str, needs| ExternFault::ConfigMismatch {
        value: value.into(),
        needs,
    };
    let number = "a char or an integer";
    assert_eq!(fault("CONFIG_SWITCH=1\n"), mismatch("1", number));
    assert_eq!(
        fault("CONFIG_SWITCH=m\n"),
        mismatch("m", "an enum libbpf_tristate or a char")
    );
    assert_eq!(fault("CONFIG_TEXT=12\n"), mismatch("12", number));
    assert_eq!(
        fault("CONFIG_TEXT=\"x\n"),
        mismatch("\"x", "a closing quote")
    );
    assert_eq!(
        fault("CONFIG_NUMBER=\"1\"\n"),
        mismatch("\"1\"", "an array of char")
    );
    assert_eq!(
        fault("CONFIG_NUMBER=12x\n"),
        ExternFault::ConfigNumber("12x".into())
    );
    assert_eq!(fault("CONFIG_WIDE=0x10000000000000000\n"), {
        ExternFault::ConfigNumber("0x10000000000000000".into())
    });
    let range = |value, size| ExternFault::ConfigRange { value, size };
    assert_eq!(fault("CONFIG_NUMBER=0x80000000\n"), range(1 << 31, 4));
    assert_eq!(fault("CONFIG_LETTER=128\n"), range(128, 1));
    assert_eq!(
        fault("CONFIG_X\n"),
        ExternFault::ConfigLine("CONFIG_X".into())
    );
    assert_eq!(
        fault("CONFIG_X=\n"),
        ExternFault::ConfigLine("CONFIG_X=".into())
    );
}

#[oracle::test]
fn a_given_configuration_overrides_the_kernels() {
    let bytes = everything();
    let options = OpenOptions {
        config: Some("CONFIG_NUMBER=077\nCONFIG_LETTER=65\n"),
        ..OpenOptions::default()
    };
    let object = Object::open_with(&bytes, &options).unwrap();
    let linked = link(&object).unwrap();
    let values = &linked.maps[object.maps().kconfig().unwrap().0 as usize];
    let InitialContents::Value {
        image,
        frozen: true,
    } = &values.def.contents
    else {
        panic!("values of the configuration are constants");
    };
    let at = |name| {
        let global = object.global(name).unwrap();
        let bytes = image.to_vec();
        bytes[global.offset as usize..][..global.size as usize].to_vec()
    };
    assert_eq!(at("CONFIG_NUMBER"), 63i32.to_le_bytes());
    assert_eq!(at("CONFIG_LETTER"), [65]);
    assert_eq!(at("CONFIG_THREE"), 2u32.to_le_bytes());
    assert_eq!(at("LINUX_HAS_SOMETHING"), [0]);
}

#[oracle::test]
fn missing_externs_are_errors_unless_weak() {
    let bytes = everything();
    let object = open(&bytes);
    let linked = link(&object).unwrap();
    let found = |name: &str| {
        let (id, known) = object.externs().named(name).expect(name);
        assert_eq!(object.externs().of_symbol(known.symbol).unwrap().0, id);
        linked.externs.get(id)
    };
    let kernel = kernel();
    let id = |kind, name| kernel.find(kind, name).unwrap().id();
    let typed = |id| ExternResolution::Btf { id, module: 0 };
    assert_eq!(found("schedule"), ExternResolution::Address(0x1234));
    assert_eq!(found("absent_symbol"), ExternResolution::Missing);
    assert_eq!(found("typed_symbol"), typed(id(Kind::Var, "typed_symbol")));
    assert_eq!(found("absent_typed_symbol"), ExternResolution::Missing);
    assert_eq!(
        found("kernel_function"),
        typed(id(Kind::Func, "kernel_function"))
    );
    // The kernel has it with another number of parameters.
    assert_eq!(found("other_prototype"), ExternResolution::Missing);
    assert_eq!(found("flavoured___one"), typed(id(Kind::Func, "flavoured")));
    assert_eq!(found("CONFIG_WIDE"), ExternResolution::Kconfig);

    let fault = |target: Kernel| extern_fault(object.link(&target).unwrap_err());
    let nothing = |_: &str| SymbolAddress::Missing;
    let twice = |_: &str| SymbolAddress::Several(1, 2);
    let with = |find: fn(&str) -> SymbolAddress| {
        target(&kernel).with_symbols(Symbols::new(find), Source::Given)
    };
    assert_eq!(fault(with(nothing)), ExternFault::Unresolved);
    // A variable with a symbol and without BTF gets type id 0, which the kernel refuses.
    let all = |_: &str| SymbolAddress::At(1);
    let linked = object.link(&with(all)).unwrap();
    let (id, _) = object.externs().named("absent_typed_symbol").unwrap();
    assert_eq!(linked.externs.get(id), typed(TypeId::VOID));
    assert_eq!(
        fault(with(twice)),
        ExternFault::Ambiguous {
            first: 1,
            second: 2
        }
    );
    let none = Builder::new().finish();
    let none = Arc::new(Btf::parse(none).unwrap());
    assert_eq!(fault(target(&none)), ExternFault::Missing);
    let unversioned = target(&kernel).with_version(KernelVersion::from_code(0), Source::Given);
    assert_eq!(fault(unversioned), ExternFault::NoVersion);
    assert_eq!(ExternFault::Unresolved.errno(), Errno::ESRCH);
}

#[oracle::test]
fn variables_are_read_and_set_by_name() {
    let bytes = everything();
    let mut object = open(&bytes);
    assert_eq!(object.read_global("counter").unwrap(), 5u32.to_le_bytes());
    assert_eq!(object.read_number("own_counter").unwrap(), 6);
    assert_eq!(object.read_global("zeros").unwrap(), [0; 24]);
    object.write_number("limit", 0xffff_ffff).unwrap();
    assert_eq!(object.read_number("limit").unwrap(), 0xffff_ffff);
    object.write_number("counter", -2).unwrap();
    assert_eq!(
        object.read_global("counter").unwrap(),
        (-2i32).to_le_bytes()
    );
    assert_eq!(object.read_number("counter").unwrap(), -2);
    let global = object.global("pairs").unwrap();
    assert_eq!(
        (global.offset, global.size, global.is_static),
        (0, 32, false)
    );
    let names: Vec<String> = object.globals().map(|global| global.name).collect();
    for name in ["counter", "own_counter", "text", "shy", "CONFIG_WIDE"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    let fault = |result: Result<(), Error>| map_fault(result.unwrap_err());
    let range = |value, size| MapFault::OutOfRange { value, size };
    assert_eq!(fault(object.write_number("limit", -1)), range(-1, 4));
    assert_eq!(
        fault(object.write_number("counter", 1 << 31)),
        range(1 << 31, 4)
    );
    assert_eq!(fault(object.write_number("pairs", 1)), MapFault::NotNumber);
    let short = object.write_global("limit", &[1]);
    let expected = MapFault::ContentsSize {
        expected: 4,
        given: 1,
    };
    assert_eq!(fault(short), expected);
    let unknown = object.write_global("nothing", &[1]);
    assert_eq!(fault(unknown), MapFault::NoSuchVariable("nothing".into()));
    // kconfig externs are not writable.
    let config = object.write_global("CONFIG_LETTER", &[1]);
    assert_eq!(fault(config), MapFault::NoContents);
    // Written values are in the map definitions.
    let linked = link(&object).unwrap();
    let rodata = object.maps().named("everythi.rodata").unwrap();
    let InitialContents::Value { image, .. } = &linked.maps[rodata.0 as usize].def.contents else {
        panic!("constants");
    };
    assert_eq!(image.to_vec(), [0xff; 4]);
}

#[oracle::test]
fn sizes_and_contents_can_be_set() {
    let bytes = everything();
    let mut object = open(&bytes);
    let maps = object.maps_mut();
    let id = maps.named("ring").unwrap();
    let ring = maps.get_mut(id).unwrap();
    for (asked, given) in [
        (1, 4096),
        (4096, 4096),
        (12288, 16384),
        (0, 0),
        (u32::MAX, u32::MAX),
    ] {
        ring.set_max_entries(asked);
        assert_eq!(ring.params().max_entries, given, "{asked}");
    }
    let id = maps.named("outer_array_with_a_long_name").unwrap();
    let outer = maps.get_mut(id).unwrap();
    outer.inner_mut().unwrap().set_max_entries(9);
    assert_eq!(outer.inner().unwrap().max_entries, 9);
    let id = maps.named(".data.shy").unwrap();
    let shy = maps.get_mut(id).unwrap();
    assert_eq!(
        shy.set_inner(Default::default()),
        Err(MapFault::HoldsNoMaps)
    );
    shy.set_image(&[1, 2, 3, 4]).unwrap();
    assert_eq!(shy.image().unwrap().to_vec(), [1, 2, 3, 4]);
    assert!(shy.set_image(&[1]).is_err());
    let id = maps.named("everyth.kconfig").unwrap();
    let values = maps.get_mut(id).unwrap();
    assert_eq!(values.set_image(&[0; 31]), Err(MapFault::NoContents));
    assert!(values.params().flags.has(MapFlags::RDONLY_PROG));
}

#[oracle::test]
fn the_last_array_of_a_section_is_resized() {
    let bytes = everything();
    let mut object = open(&bytes);
    let id = object.maps().named(".data.pairs").unwrap();
    object.set_value_size(id, 80).unwrap();
    let section = object.maps().get(id).unwrap().params().value_type;
    let types = object.btf().unwrap();
    assert_eq!(types.size_of(section), Some(80));
    let global = object.global("pairs").unwrap();
    assert_eq!((types.size_of(global.ty), global.size), (Some(80), 80));
    assert_eq!(object.read_global("pairs").unwrap()[..4], [1, 0, 0, 0]);
    // A size with half an element removes the BTF.
    object.set_value_size(id, 81).unwrap();
    let params = object.maps().get(id).unwrap().params();
    let expected = (81, TypeId::VOID);
    assert_eq!((params.value_size, params.value_type), expected);
    let arena = object.maps().arena().unwrap();
    let refused = object.set_value_size(arena, 8);
    assert_eq!(map_fault(refused.unwrap_err()), MapFault::FixedSize);
}

#[oracle::test]
fn arena_globals_are_at_its_end_if_the_kernel_supports_it() {
    let bytes = everything();
    let object = open(&bytes);
    let kernel = kernel();
    let offset = |wide_offsets| {
        let features = Features {
            wide_offsets,
            ..Features::LINUX_6_18
        };
        let target = target(&kernel).with_features(features, Source::Given);
        let linked = object.link(&target).unwrap();
        match linked.maps[object.maps().arena().unwrap().0 as usize]
            .def
            .contents
        {
            InitialContents::Arena { offset, .. } => offset,
            _ => panic!("an arena"),
        }
    };
    assert_eq!((offset(false), offset(true)), (0, 4096));
}

#[oracle::test]
fn hidden_variables_are_static_to_the_kernel() {
    let bytes = everything();
    let object = open(&bytes);
    let types = object.btf().unwrap();
    let Shape::Var(var) = types.find(Kind::Var, "shy").unwrap().shape() else {
        panic!("a variable");
    };
    assert_eq!(var.linkage, Linkage::STATIC);
    let shy = object
        .maps()
        .get(object.maps().named(".data.shy").unwrap())
        .unwrap();
    assert!(!shy.params().flags.has(MapFlags::MMAPABLE));
    assert_ne!(
        types.find(Kind::Var, "dummy_ksym").unwrap().name_offset(),
        StrOffset::EMPTY
    );
}
