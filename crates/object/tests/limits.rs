//! Limits: objects made by hand whose linked programs would be far larger than their
//! file.

use std::sync::Arc;
use std::time::Duration;

use beebox_object::{Blame, Error, Object, Problem, RelocationFault};
use spec::Kernel;
use spec::kernel::Source;
use sys::process::thread_time;

/// Section: name, type, flags, link, info, entry size, bytes.
type Section = (&'static str, u32, u64, u32, u32, u64, Vec<u8>);

const BYTES: u32 = 1;
const SYMBOLS: u32 = 2;
const NAMES: u32 = 3;
const RELOCATIONS: u32 = 9;
/// SHF_ALLOC and SHF_EXECINSTR.
const CODE: u64 = 6;

/// Bytes of a BPF object with these sections; the last is the section-name table.
fn elf(mut sections: Vec<Section>) -> Vec<u8> {
    sections.insert(0, ("", 0, 0, 0, 0, 0, Vec::new()));
    let mut names = Vec::new();
    let mut starts = Vec::new();
    for (name, ..) in &sections {
        starts.push(names.len() as u32);
        names.extend(name.bytes().chain([0]));
    }
    sections.last_mut().expect("a section of names").6 = names;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    let mut headers = Vec::new();
    for ((_, kind, flags, link, info, entry, bytes), name) in sections.iter().zip(starts) {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [*flags, 0, file.len() as u64, bytes.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(link.to_le_bytes());
        headers.extend(info.to_le_bytes());
        headers.extend(8u64.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        file.extend(bytes);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    let halves = |file: &mut Vec<u8>, at: usize, half: u16| {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    };
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    halves(&mut file, 16, 1);
    halves(&mut file, 18, 247);
    halves(&mut file, 58, 64);
    halves(&mut file, 60, sections.len() as u16);
    halves(&mut file, 62, sections.len() as u16 - 1);
    file.extend(headers);
    file
}

/// Global function symbol of a section.
fn function(section: u16, start: u64, size: u64) -> Vec<u8> {
    let mut symbol = 1u32.to_le_bytes().to_vec();
    symbol.extend([0x12, 0]);
    symbol.extend(section.to_le_bytes());
    symbol.extend(start.to_le_bytes());
    symbol.extend(size.to_le_bytes());
    symbol
}

/// Symbol table, and the string table after it.
fn symbols(own: u32, functions: impl IntoIterator<Item = Vec<u8>>) -> [Section; 2] {
    let mut table = vec![0; 24];
    functions
        .into_iter()
        .for_each(|symbol| table.extend(symbol));
    [
        (".symtab", SYMBOLS, 0, own + 1, 1, 24, table),
        (".strtab", NAMES, 0, 0, 0, 0, b"\0program\0".to_vec()),
    ]
}

fn names_of_sections() -> Section {
    (".shstrtab", NAMES, 0, 0, 0, 0, Vec::new())
}

fn link(file: &[u8]) -> Result<usize, Error> {
    let object = Object::open(file)?;
    Ok(object.link(&Kernel::default())?.programs.len())
}

fn check_too_large(file: &[u8]) {
    let error = link(file).expect_err("it would be too large");
    let is_meant = |problem: &Problem| {
        matches!(
            problem,
            Problem::Relocation(RelocationFault::TooLarge { .. })
        )
    };
    assert!(is_meant(error.problem()), "{error}");
    assert_eq!(error.blame(), Blame::Beebox);
}

const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

/// Many programs over the same bytes of one section.
fn overlapping(programs: usize, slots: usize) -> Vec<u8> {
    let code = EXIT.repeat(slots);
    let each = function(1, 0, code.len() as u64);
    let mut sections = vec![("socket", BYTES, CODE, 0, 0, 0, code)];
    sections.extend(symbols(2, vec![each; programs]));
    sections.push(names_of_sections());
    elf(sections)
}

/// Many programs that call one large function.
fn sharing(programs: u64, slots: usize) -> Vec<u8> {
    let call = [0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff];
    let code = [call, EXIT].concat().repeat(programs as usize);
    let called = EXIT.repeat(slots);
    let size = called.len() as u64;
    let mut relocations = Vec::new();
    for program in 0..programs {
        relocations.extend((16 * program).to_le_bytes());
        relocations.extend((1u64 << 32 | 10).to_le_bytes());
    }
    let mut sections = vec![
        ("socket", BYTES, CODE, 0, 0, 0, code),
        (".text", BYTES, CODE, 0, 0, 0, called),
        (".relsocket", RELOCATIONS, 0, 4, 1, 16, relocations),
    ];
    let all = (0..programs).map(|program| function(1, 16 * program, 16));
    sections.extend(symbols(4, [function(2, 0, size)].into_iter().chain(all)));
    sections.push(names_of_sections());
    elf(sections)
}

#[oracle::test]
fn programs_of_the_same_bytes_have_a_limit() {
    assert_eq!(link(&overlapping(10, 100)), Ok(10));
    check_too_large(&overlapping(4100, 4100));
}

#[oracle::test]
fn programs_that_share_functions_have_a_limit() {
    assert_eq!(link(&sharing(10, 100)), Ok(10));
    check_too_large(&sharing(300, 60_000));
}

/// Bytes of little-endian words.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// BTF with an `int` and these names.
fn types(names: &str) -> Vec<u8> {
    let types = words(&[1, 1 << 24, 4, 0x0100_0020]);
    let mut blob = words(&[0x0001_eb9f, 24, 0, types.len() as u32]);
    blob.extend(words(&[types.len() as u32, names.len() as u32]));
    blob.extend(types);
    blob.extend(names.bytes());
    blob
}

/// Programs of one instruction with a `type_exists` relocation of `int`, in reverse
/// order; the first one has the other relocations.
fn asking(programs: u32, questions: u32) -> Vec<u8> {
    const EXISTS: u32 = 8;
    let names = "\0int\x000\0socket\0";
    let records = (0..questions).map(|question| {
        let program = (programs - 1).saturating_sub(question);
        words(&[8 * program, 1, 5, EXISTS])
    });
    let mut asked = words(&[16, 7, questions]);
    asked.extend(records.flatten());
    let mut ext = words(&[0x0001_eb9f, 32, 0, 0, 0, 0, 0, asked.len() as u32]);
    ext.extend(asked);
    let code = [0xb7, 0, 0, 0, 1, 0, 0, 0].repeat(programs as usize);
    let mut sections = vec![
        ("socket", BYTES, CODE, 0, 0, 0, code),
        (".BTF", BYTES, 0, 0, 0, 0, types(names)),
        (".BTF.ext", BYTES, 0, 0, 0, 0, ext),
    ];
    let all = (0..programs).map(|program| function(1, 8 * u64::from(program), 8));
    sections.extend(symbols(4, all));
    sections.push(names_of_sections());
    elf(sections)
}

#[oracle::test]
fn relocations_of_types_in_any_order_take_linear_time() {
    let kernel = types("\0int\0");
    let kernel = btf::Btf::parse(kernel).expect("the types are valid");
    let target = Kernel::default().with_btf(Arc::new(kernel), Source::Given);
    let file = asking(40_000, 160_000);
    let object = Object::open(&file).expect("the object is valid");
    let began = thread_time();
    let linked = object.link(&target).expect("every question has an answer");
    assert_eq!(linked.programs.len(), 40_000);
    // Linear time is about a second, quadratic time a quarter of an hour.
    assert!(thread_time() - began < Duration::from_secs(120));
}

/// Kprobes of one instruction, each in a section of its own, with line_info.
fn in_sections(programs: u16) -> Vec<u8> {
    let mut names = "\0int\0".to_owned();
    let starts: Vec<u32> = (0..programs)
        .map(|number| {
            let start = names.len() as u32;
            names += &format!("kprobe/{number}\0");
            start
        })
        .collect();
    let group = |number: u16| words(&[starts[usize::from(number)], 1, 0, 1, 1, 1 << 10]);
    let mut lines = words(&[16]);
    lines.extend((0..programs).flat_map(group));
    let len = lines.len() as u32;
    let mut ext = words(&[0x0001_eb9f, 32, 0, 0, 0, len, len, 0]);
    ext.extend(lines);
    let code = vec![0xb7, 0, 0, 0, 1, 0, 0, 0];
    let mut sections: Vec<Section> = (0..programs)
        .map(|number| {
            let name: &'static str = format!("kprobe/{number}").leak();
            (name, BYTES, CODE, 0, 0, 0, code.clone())
        })
        .collect();
    sections.push((".BTF", BYTES, 0, 0, 0, 0, types(&names)));
    sections.push((".BTF.ext", BYTES, 0, 0, 0, 0, ext));
    let all = (1..=programs).map(|section| function(section, 0, 8));
    sections.extend(symbols(u32::from(programs) + 3, all));
    sections.push(names_of_sections());
    elf(sections)
}

#[oracle::test]
fn programs_that_are_linked_one_by_one_take_linear_time() {
    let kernel = Kernel::default();
    let file = in_sections(40_000);
    let began = thread_time();
    let object = Object::open(&file).expect("the object is valid");
    let mut session = object.link_session(&kernel).expect("nothing is missing");
    for (id, _) in object.programs() {
        let linked = session.link(&[id]).expect("nothing is missing");
        assert_eq!(linked.programs.len(), 1, "{:?}", linked.unloadable);
        assert_eq!(linked.programs[0].program.line_info().len(), 1);
    }
    // Linear time is below a second, quadratic time minutes.
    assert!(thread_time() - began < Duration::from_secs(10));
}

#[oracle::test]
fn a_session_links_as_the_whole_object_does() {
    let kernel = types("\0int\0");
    let kernel = btf::Btf::parse(kernel).expect("the types are valid");
    let target = Kernel::default().with_btf(Arc::new(kernel), Source::Given);
    let file = asking(50, 120);
    let object = Object::open(&file).expect("the object is valid");
    let whole = object.link(&target).expect("every question has an answer");
    let mut session = object.link_session(&target).expect("nothing is missing");
    for _ in 0..2 {
        for linked in &whole.programs {
            let alone = session.link(&[linked.id]).expect("as all together");
            assert_eq!(alone.programs, std::slice::from_ref(linked));
        }
    }
}
