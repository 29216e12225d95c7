//! Reading inverts writing, in every form; and no input makes a reader panic.

use beebox_classic::text::{ByteOrder, Form, dump_line, read, write};
use isa::classic::{Insn, OPCODES, SockFilter};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Any four fields, with opcodes of the table as likely as others and fields
/// near the values that matter.
fn any_insn() -> impl Strategy<Value = SockFilter> {
    let listed = (0..OPCODES.len()).prop_map(|row| OPCODES[row].0);
    let code = prop_oneof![4 => listed, 1 => any::<u16>(), 1 => 0u16..0x100];
    let k = prop_oneof![
        any::<u32>(),
        0u32..20,
        (0xffff_f000u32 - 4)..0xffff_f044,
        Just(u32::MAX),
        Just(1 << 31),
    ];
    let skip = prop_oneof![0u8..6, any::<u8>()];
    (code, skip.clone(), skip, k).prop_map(|(code, jt, jf, k)| SockFilter::new(code, jt, jf, k))
}

fn any_program() -> impl Strategy<Value = Vec<SockFilter>> {
    prop::collection::vec(any_insn(), 0..300)
}

/// What `tcpdump -d` shows of an instruction: the fields that it uses and, of
/// one that libpcap does not know, the opcode and branch offsets.
fn as_dumped(raw: SockFilter) -> SockFilter {
    match Insn::decode(raw) {
        Insn::Invalid(_) => {
            let is_branch = raw.code & 7 == 5 && raw.code & 0xf0 != 0;
            let (jt, jf) = if is_branch { (raw.jt, raw.jf) } else { (0, 0) };
            SockFilter::new(raw.code, jt, jf, 0)
        }
        insn => insn.encode(),
    }
}

const LOSSLESS: &[Form] = &[
    Form::Raw(ByteOrder::Little),
    Form::Raw(ByteOrder::Big),
    Form::CArray,
    Form::Decimal,
    Form::OneLine,
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512, rng_seed: RngSeed::Fixed(oracle::property_seed()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[oracle::test]
    fn lossless_forms_keep_every_field(program in any_program()) {
        for &form in LOSSLESS {
            let written = write(&program, form);
            let read_back = read(&written, Some(form));
            prop_assert_eq!(read_back.as_ref(), Ok(&program), "{}", String::from_utf8_lossy(&written));
        }
    }

    #[oracle::test]
    fn assembly_keeps_the_fields_that_are_used(program in any_program()) {
        let used: Vec<_> = program.iter().map(|&raw| Insn::decode(raw).encode()).collect();
        let written = write(&used, Form::Asm);
        let read_back = read(&written, Some(Form::Asm));
        prop_assert_eq!(read_back.as_ref(), Ok(&used), "{}", String::from_utf8_lossy(&written));
        // A field that an instruction ignores shows only where the language has
        // no words for the instruction.
        let meaning = |program: &[SockFilter]| -> Vec<Insn> {
            program.iter().map(|&raw| Insn::decode(raw)).collect()
        };
        let read_back = read(&write(&program, Form::Asm), Some(Form::Asm)).unwrap();
        prop_assert_eq!(meaning(&read_back), meaning(&program));
    }

    #[oracle::test]
    fn dumps_keep_what_they_show(program in any_program()) {
        let shown: Vec<_> = program.iter().map(|&raw| as_dumped(raw)).collect();
        let written = write(&program, Form::Dump);
        prop_assert_eq!(&written, &write(&shown, Form::Dump));
        let read_back = read(&written, Some(Form::Dump));
        prop_assert_eq!(read_back.as_ref(), Ok(&shown), "{}", String::from_utf8_lossy(&written));
    }

    #[oracle::test]
    fn every_text_form_is_detected(program in any_program()) {
        prop_assume!(!program.is_empty());
        for &form in Form::ALL.iter().filter(|form| form.is_text()) {
            prop_assert_eq!(Form::detect(&write(&program, form)), Some(form));
        }
    }

    #[oracle::test]
    fn raw_programs_are_detected_by_their_opcodes(rows in prop::collection::vec(0..OPCODES.len(), 1..100)) {
        // `ld #k`, opcode 0, reads the same in both orders.
        prop_assume!(rows.iter().any(|&row| OPCODES[row].0 != 0));
        let program: Vec<_> = rows.iter().map(|&row| SockFilter::new(OPCODES[row].0, 1, 2, 3)).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let form = Form::Raw(order);
            prop_assert_eq!(Form::detect(&write(&program, form)), Some(form));
        }
    }

    #[oracle::test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_in_every_form(&bytes);
    }

    #[oracle::test]
    fn nearly_right_texts_do_not_panic(
        program in prop::collection::vec(any_insn(), 1..12),
        edits in prop::collection::vec((any::<prop::sample::Index>(), edit()), 1..6),
    ) {
        for &form in Form::ALL {
            let mut bytes = write(&program, form);
            for (at, edit) in &edits {
                let at = at.index(bytes.len());
                match edit {
                    Edit::Delete => { bytes.remove(at); }
                    Edit::Insert(new) => { bytes.splice(at..at, new.bytes()); }
                    Edit::Cut => bytes.truncate(at.max(1)),
                }
                if bytes.is_empty() { bytes.push(b'l'); }
            }
            read_in_every_form(&bytes);
        }
    }

    #[oracle::test]
    fn arbitrary_words_of_the_language_do_not_panic(words in prop::collection::vec(word(), 0..60)) {
        read_in_every_form(words.join(" ").as_bytes());
        read_in_every_form(words.join("").as_bytes());
        read_in_every_form(words.join("\n").as_bytes());
    }

    #[oracle::test]
    fn an_instruction_is_one_line(index in 0usize..100_000, raw in any_insn()) {
        prop_assert!(!dump_line(index, raw).contains('\n'));
    }
}

#[derive(Clone, Debug)]
enum Edit {
    Delete,
    Insert(&'static str),
    Cut,
}

const WORDS: &[&str] = &[
    "ld",
    "ldh",
    "ldb",
    "ldx",
    "ldxb",
    "ldi",
    "ldxi",
    "st",
    "stx",
    "ret",
    "tax",
    "jeq",
    "jne",
    "jlt",
    "jset",
    "jmp",
    "ja",
    "add",
    "neg",
    "x",
    "a",
    "M",
    "#",
    "%",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "+",
    "-",
    "*",
    "&",
    "4",
    "0xf",
    "0",
    "07",
    "0b1",
    "0x",
    "09",
    "99999999999",
    "4*([14]&0xf)",
    "#len",
    "#proto",
    "len",
    "label",
    "label:",
    "(000)",
    "jt",
    "jf",
    ";",
    "//",
    "/*",
    "*/",
    "\n",
    "\t",
    "\r\n",
    "é",
    "\u{feff}",
    "unimp",
    ".insn",
    "struct",
    "=",
    "\"",
    "\0",
];

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WORDS)
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        Just(Edit::Delete),
        word().prop_map(Edit::Insert),
        Just(Edit::Cut)
    ]
}

/// Reads in all forms; an error must have a text and, in a text form, a place
/// that is there.
fn read_in_every_form(bytes: &[u8]) {
    let forms = Form::ALL.iter().copied().map(Some).chain([None]);
    for form in forms {
        let Err(error) = read(bytes, form) else {
            continue;
        };
        assert!(!error.to_string().is_empty());
        if let beebox_classic::text::TextPlace::Text { line, column } = error.place {
            let text = String::from_utf8_lossy(bytes);
            let line = text.split('\n').nth(line - 1).expect("the line is there");
            assert!(column <= line.chars().count() + 1, "{error}: {text:?}");
        }
    }
}
