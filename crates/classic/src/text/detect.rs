//! Detection of the form of an input.

use isa::classic::{Insn, SockFilter};

use super::lexer::{Kind, Lexer};
use super::{ByteOrder, Form, Problem, raw};

/// Other file formats by their magic bytes.
const OTHER_FILES: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF object"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xa1\xb2\xc3\xd4", "a packet capture"),
    (b"\xd4\xc3\xb2\xa1", "a packet capture"),
    (b"\xa1\xb2\x3c\x4d", "a packet capture"),
    (b"\x4d\x3c\xb2\xa1", "a packet capture"),
    (b"\x0a\x0d\x0d\x0a", "a packet capture"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

pub(super) fn detect(bytes: &[u8]) -> Result<Form, Problem> {
    for &(start, what) in OTHER_FILES {
        if bytes.starts_with(start) {
            return Err(Problem::OtherFile { what });
        }
    }
    // The high byte of every opcode is NUL, and no text holds one.
    if bytes.contains(&0) {
        return Ok(Form::Raw(byte_order(bytes)));
    }
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    };
    let mut lexer = Lexer::new(valid);
    let first = lexer.take();
    let second = lexer.peek();
    match first.kind {
        Kind::End if valid.len() == bytes.len() => Err(Problem::Empty),
        Kind::Sign('(') => Ok(Form::Dump),
        Kind::Sign('{') if matches!(second.kind, Kind::Sign('"' | '}')) => {
            let what = "a JSON document";
            Err(Problem::OtherFile { what })
        }
        Kind::Sign('{') => Ok(Form::CArray),
        Kind::Number if second.kind == Kind::Sign(',') => Ok(Form::OneLine),
        Kind::Number => Ok(Form::Decimal),
        Kind::Word if matches!(first.text, "struct" | "static" | "const") => Ok(Form::CArray),
        Kind::Word => Ok(Form::Asm),
        _ => Err(Problem::Unrecognized),
    }
}

/// The byte order in which more opcodes are valid; the host's in a tie.
fn byte_order(bytes: &[u8]) -> ByteOrder {
    let (insns, _) = bytes.as_chunks();
    let valid = |order| {
        let decode = |&bytes| Insn::decode(raw::decode(bytes, order));
        let is_valid = |insn: &Insn| !matches!(insn, Insn::Invalid(SockFilter { .. }));
        insns.iter().map(decode).filter(is_valid).count()
    };
    let (little, big) = (valid(ByteOrder::Little), valid(ByteOrder::Big));
    match little.cmp(&big) {
        std::cmp::Ordering::Greater => ByteOrder::Little,
        std::cmp::Ordering::Less => ByteOrder::Big,
        std::cmp::Ordering::Equal => ByteOrder::NATIVE,
    }
}
