//! Reading a written case yields an equal program, but for the order of strings in its
//! BTF: for generated programs with wide loads, records at any slot, target programs,
//! maps of all contents and inner maps.

use std::sync::Arc;

use beebox_program::case::Case;
use beebox_program::{
    AttachTarget, ExternResolution, ExternSymbol, ExternSymbolKind, FuncInfo, Image,
    InitialContents, KernelTypeId, LineInfo, MapDef, MapEntry, MapId, MapParams, Program,
    ProgramId, ProgramRef, Subprog,
};
use btf::{Btf, Builder, Encoding, Func, Int, Linkage, StrOffset, TypeId, dump_raw};
use isa::ebpf::RawInsn;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use spec::maps::{MapFlags, MapKind};
use spec::programs::{AttachType, LoadFlags, ProgramType};

/// Number of modules of each program.
const MODULES: u16 = 2;
/// Number of maps of each program.
const MAPS: usize = 3;
/// Offset behind the strings of every generated BTF.
const NO_STRING: u32 = 1 << 20;

fn text() -> impl Strategy<Value = String> {
    "[^\\x00]{0,6}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8.., 0..8)
}

/// One or two slots: a wide load, parts of one, an instruction of a known opcode, any bits.
fn any_slots() -> impl Strategy<Value = Vec<RawInsn>> {
    let insn = |code, regs, off, imm| RawInsn {
        code,
        regs,
        off,
        imm,
    };
    let wide = (0u8..8, 0u8..11, any::<[i32; 2]>()).prop_map(move |(src, dst, [low, high])| {
        vec![insn(0x18, src << 4 | dst, 0, low), insn(0, 0, 0, high)]
    });
    let any_insn = (any::<u8>(), any::<u8>(), any::<i16>(), any::<i32>());
    let any_insn = any_insn.prop_map(move |(code, regs, off, imm)| insn(code, regs, off, imm));
    let part = select(vec![
        insn(0x18, 0x11, 0, 1),
        insn(0, 0, 0, 0),
        insn(0, 0x10, 0, 3),
    ]);
    let codes = vec![
        0x05, 0x06, 0x07, 0x0f, 0x15, 0x1d, 0x61, 0x63, 0x79, 0x7b, 0x85, 0x95, 0xb4, 0xb7, 0xbf,
        0xc3, 0xdb, 0xdc, 0xe5,
    ];
    let known = (select(codes), 0u8..11, 0u8..11, any::<i16>(), any::<i32>());
    let known =
        known.prop_map(move |(code, dst, src, off, imm)| insn(code, src << 4 | dst, off, imm));
    prop_oneof![
        3 => wide,
        1 => any_insn.prop_map(|insn| vec![insn]),
        1 => part.prop_map(|insn| vec![insn]),
        2 => known.prop_map(|insn| vec![insn]),
    ]
}

fn image() -> impl Strategy<Value = Image<'static>> {
    (vec(any::<u8>(), 0..80), 0u32..100)
        .prop_map(|(bytes, size)| Image::new(&bytes, size).to_owned())
}

fn reference() -> impl Strategy<Value = ProgramRef> {
    (any::<u32>(), text()).prop_map(|(id, name)| ProgramRef {
        id: ProgramId(id),
        name,
    })
}

fn contents() -> impl Strategy<Value = InitialContents> {
    let entry = prop_oneof![
        (0..MAPS as u32).prop_map(|map| MapEntry::Map(MapId(map))),
        reference().prop_map(MapEntry::Program),
    ];
    prop_oneof![
        vec((any::<u32>(), entry), 0..4).prop_map(InitialContents::Entries),
        (image(), any::<bool>())
            .prop_map(|(image, frozen)| InitialContents::Value { image, frozen }),
        (image(), any::<u64>())
            .prop_map(|(image, offset)| InitialContents::Arena { image, offset }),
        (image(), vec((any::<u32>(), reference()), 0..3))
            .prop_map(|(image, programs)| InitialContents::StructOps { image, programs }),
        vec(any::<u32>(), 0..4).prop_map(InitialContents::JumpTable),
    ]
}

fn map_without_contents() -> impl Strategy<Value = MapDef> {
    let kinds = MapKind::ALL.iter().map(|kind| kind.number());
    let kind = prop_oneof![select(kinds.collect::<Vec<u32>>()), any::<u32>()];
    let rare = prop_oneof![4 => Just(0u32), 1 => any::<u32>()];
    let params = (kind, any::<[u32; 3]>(), vec(rare, 5), any::<u64>());
    let value = option::of((any::<u32>(), 0..=MODULES));
    (params, text(), option::of(text()), value, any::<bool>()).prop_map(
        |((map_type, sizes, rare, extra), name, kernel_name, value, has_btf)| {
            let mut def = MapDef::new(name, MapParams::default());
            def.params = MapParams {
                map_type,
                key_size: sizes[0],
                value_size: sizes[1],
                max_entries: sizes[2],
                flags: MapFlags(rare[0]),
                extra,
                numa_node: rare[1],
                key_type: TypeId(rare[2]),
                value_type: TypeId(rare[3]),
            };
            def.ifindex = rare[4];
            def.has_btf = has_btf;
            def.kernel_name = kernel_name.unwrap_or(def.kernel_name);
            def.kernel_value = value.map(|(id, module)| KernelTypeId {
                id: TypeId(id),
                module,
            });
            def
        },
    )
}

fn map() -> impl Strategy<Value = Arc<MapDef>> {
    let inner = option::of(map_without_contents().prop_map(Arc::new));
    (map_without_contents(), inner, contents()).prop_map(|(mut def, inner, contents)| {
        def.inner = inner;
        def.contents = contents;
        Arc::new(def)
    })
}

fn extern_symbol() -> impl Strategy<Value = ExternSymbol> {
    let id = || any::<u32>().prop_map(TypeId);
    let kind = prop_oneof![
        Just(ExternSymbolKind::Kconfig),
        Just(ExternSymbolKind::Address),
        id().prop_map(ExternSymbolKind::Variable),
        id().prop_map(ExternSymbolKind::Kfunc),
    ];
    let resolution = prop_oneof![
        Just(ExternResolution::Missing),
        Just(ExternResolution::Kconfig),
        any::<u64>().prop_map(ExternResolution::Address),
        (id(), 0..=MODULES).prop_map(|(id, module)| ExternResolution::Btf { id, module }),
    ];
    (text(), id(), any::<bool>(), kind, resolution).prop_map(
        |(name, type_id, is_weak, kind, resolution)| ExternSymbol {
            name,
            type_id,
            is_weak,
            kind,
            resolution,
        },
    )
}

/// BTF with these strings, and their offsets.
fn types(names: &[Vec<u8>]) -> (Btf<'static>, Vec<StrOffset>) {
    let mut types = Builder::default();
    let offsets: Vec<StrOffset> = names.iter().map(|name| types.string(name)).collect();
    let name = offsets.first().copied().unwrap_or_default();
    let int = Int {
        size: 4,
        bits: 32,
        offset: 0,
        encoding: Encoding(1),
    };
    let int = types.int(name, int);
    let proto = types.proto(int, &[]);
    let linkage = Linkage::GLOBAL;
    types.func(name, Func { proto, linkage });
    let btf = Btf::parse(types.finish()).expect("the builder makes sound BTF");
    (btf, offsets)
}

/// A record: the place of its instruction among the slots, its line and column, and its
/// texts among the strings.
type Record = (Index, u32, u32, [Index; 2]);

fn records() -> impl Strategy<Value = Vec<Record>> {
    vec(any::<Record>(), 0..8)
}

/// A program with at most this many target programs after one another.
fn any_program(targets: usize) -> BoxedStrategy<Program> {
    let target = match targets {
        0 => Just(None).boxed(),
        targets => option::of(any_program(targets - 1).prop_map(Arc::new)).boxed(),
    };
    let target = (any::<u32>(), 0..=MODULES, option::of(any::<u32>()), target);
    let target = option::of(
        target.prop_map(|(id, module, member, program)| AttachTarget {
            btf_id: TypeId(id),
            module,
            member,
            program,
        }),
    );
    let code = (
        vec(any_slots(), 1..12),
        vec(any::<Index>(), 0..5),
        records(),
        records(),
        option::of(vec(bytes(), 1..5)),
        text(),
    );
    let attach = (
        select(ProgramType::ALL.to_vec()),
        option::of(select(AttachType::ALL.to_vec())),
        option::of(any::<u32>()),
        target,
        any::<u32>(),
    );
    let rest = (
        [text(), text(), text()],
        vec(map(), MAPS),
        vec(extern_symbol(), 0..3),
        vec(text(), usize::from(MODULES)),
        any::<u32>(),
    );
    (code, attach, rest)
        .prop_map(|(code, attach, rest)| {
            let (slots, subprogs, func_info, line_info, names, subprog_name) = code;
            let (kind, attach_type, expected, target, flags) = attach;
            let ([name, section, license], maps, externs, modules, version) = rest;
            let insns = slots.concat();
            let len = insns.len();
            let mut starts: Vec<usize> = subprogs.iter().map(|at| at.index(len)).collect();
            starts.sort_unstable();
            starts.dedup();
            let subprogs = starts.into_iter().map(|start| Subprog {
                name: format!("{subprog_name}{start}"),
                start: start as u32,
            });
            // Records may be behind the last slot.
            let place = |at: Index| at.index(len + 2) as u32;
            let func_info = func_info.into_iter().map(|(at, id, ..)| FuncInfo {
                insn: place(at),
                type_id: TypeId(id),
            });
            let (btf, mut offsets) = names.as_deref().map(types).unzip();
            if let Some(offsets) = &mut offsets {
                offsets.extend([StrOffset(0), StrOffset(NO_STRING)]);
            }
            let offsets = offsets.unwrap_or_else(|| vec![StrOffset(0), StrOffset(5)]);
            let line_info = line_info.into_iter().map(|(at, line, column, texts)| {
                let [file, text] = texts.map(|at| *at.get(&offsets));
                LineInfo {
                    insn: place(at),
                    file,
                    text,
                    line,
                    column,
                }
            });
            let (func_info, line_info) = (func_info.collect(), line_info.collect());
            let program = Program::builder(kind, insns)
                .name(name)
                .section(section)
                .license(license)
                .attach_type(attach_type)
                .attach_target(target)
                .flags(LoadFlags(flags))
                .subprogs(subprogs.collect())
                .maps(maps)
                .btf(btf.map(Arc::new))
                .func_info(func_info)
                .line_info(line_info)
                .externs(externs)
                .modules(modules)
                .kernel_version(version);
            let program = match expected {
                Some(number) => program.expected_attach_type(number),
                None => program,
            };
            program.build().expect("it satisfies the invariants")
        })
        .boxed()
}

/// Instruction, line, column, and file name and text of a line, or their offsets where the
/// BTF has none there.
type LineWithTexts = (u32, u32, u32, [Result<Vec<u8>, u32>; 2]);

fn lines(program: &Program) -> Vec<LineWithTexts> {
    let text = |all: [StrOffset; 2]| {
        let btf = program.btf();
        let btf = btf.filter(|btf| all.iter().all(|it| (it.0 as usize) < btf.strings_end()));
        all.map(|offset| match btf {
            Some(btf) => Ok(btf.string(offset).as_bytes().to_vec()),
            None => Err(offset.0),
        })
    };
    let records = program.line_info().iter();
    let records = records.map(|it| (it.insn, it.line, it.column, text([it.file, it.text])));
    records.collect()
}

/// The same program without what has offsets of strings, and without its target program.
fn without_strings(program: &Program) -> Program {
    let target = program.attach_target().cloned().map(|target| AttachTarget {
        program: None,
        ..target
    });
    let plain = program.to_builder().attach_target(target).btf(None);
    plain.line_info(Vec::new()).build().expect("fewer parts")
}

fn target(program: &Program) -> Option<&Program> {
    program.attach_target()?.program.as_deref()
}

fn assert_equal(one: &Program, other: &Program, text: &str) {
    assert!(without_strings(one) == without_strings(other), "{text}");
    assert_eq!(lines(one), lines(other), "{text}");
    let dump = |program: &Program| program.btf().map(|btf| dump_raw(btf));
    assert_eq!(dump(one), dump(other), "{text}");
    match (target(one), target(other)) {
        (Some(one), Some(other)) => assert_equal(one, other, text),
        (one, other) => assert_eq!(one, other, "{text}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_written_case_reads_back_as_an_equal_program(program in any_program(2)) {
        let text = Case::new(program.clone()).to_string();
        let read = match Case::parse(&text) {
            Ok(case) => case.program,
            Err(error) => panic!("{error}\n{text}"),
        };
        assert_equal(&program, &read, &text);
        // The order of strings is that of the text from here on.
        let again = Case::new(read.clone()).to_string();
        prop_assert_eq!(&again, &text);
        let again = Case::parse(&again).map(|case| case.program);
        prop_assert!(again == Ok(read), "{}", text);
    }
}
