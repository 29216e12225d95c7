//! Forms of raw programs: bytes, bytes in hexadecimal, assembler text, and the code
//! section of an object.

use std::fmt;

use interp::checked::CheckedProgram;
use isa::ebpf::{AsmError, PartialSlot, assemble};

use super::elf::{self, ElfError};

/// The form of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Eight bytes for each slot, little-endian.
    Bytes,
    /// The same in hexadecimal, two digits for each byte.
    Hex,
    /// Text in the form that LLVM prints and reads.
    Asm,
    /// An ELF object of which one section is the program.
    Elf,
}

impl Form {
    /// Detects the form of a file: an object by its magic, bytes if they are not text,
    /// hexadecimal if the text has nothing else, assembler otherwise.
    pub fn detect(file: &[u8]) -> Form {
        if file.starts_with(elf::MAGIC) {
            return Form::Elf;
        }
        let text = std::str::from_utf8(file).ok();
        match text.filter(|text| !text.contains('\0')) {
            None => Form::Bytes,
            Some(text) if is_hex(text) => Form::Hex,
            Some(_) => Form::Asm,
        }
    }
}

/// Reads a program in a form, or in the one that is detected.
pub fn read_program(file: &[u8], form: Option<Form>) -> Result<CheckedProgram, ReadError> {
    match form.unwrap_or_else(|| Form::detect(file)) {
        Form::Bytes => Ok(CheckedProgram::from_bytes(file)?),
        Form::Hex => Ok(CheckedProgram::from_bytes(&parse_hex(&text(file)?)?)?),
        Form::Asm => Ok(CheckedProgram::new(assemble(&text(file)?)?)),
        Form::Elf => elf::elf_program(file, None),
    }
}

/// The bytes of a text in hexadecimal: two digits for each, with white space, commas and
/// `0x` between them.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let mut first = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let digit = c.to_digit(16);
        match (first, digit) {
            (None, Some(0)) if rest.next_if(|(_, c)| matches!(c, 'x' | 'X')).is_some() => {}
            (None, Some(high)) => first = Some(high),
            (Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                first = None;
            }
            (None, None) if c.is_ascii_whitespace() || c == ',' => {}
            (Some(_), None) if c.is_ascii_whitespace() || c == ',' => {
                return Err(ReadError::HalfByte { at });
            }
            (_, None) => return Err(ReadError::NoHexDigit { at, found: c }),
        }
    }
    match first {
        Some(_) => Err(ReadError::HalfByte { at: text.len() }),
        None => Ok(bytes),
    }
}

fn is_hex(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || ",xX".contains(c);
    text.chars().all(is_part) && text.contains(|c: char| c.is_ascii_hexdigit())
}

fn text(file: &[u8]) -> Result<String, ReadError> {
    match std::str::from_utf8(file) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(ReadError::NoText {
            at: error.valid_up_to(),
        }),
    }
}

/// Why a file is not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The length is not a multiple of eight bytes.
    Bytes(PartialSlot),
    /// The text is not hexadecimal: it has this character at this byte.
    NoHexDigit {
        /// Byte of the text.
        at: usize,
        /// The character.
        found: char,
    },
    /// A byte has one digit; the second one is missing here.
    HalfByte {
        /// Byte of the text.
        at: usize,
    },
    /// The text is not assembler source.
    Asm(AsmError),
    /// The file should be text and is not UTF-8 from this byte on.
    NoText {
        /// Byte of the file.
        at: usize,
    },
    /// The object has no section that can be read alone.
    Elf(ElfError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Bytes(error) => write!(f, "{error}"),
            ReadError::NoHexDigit { at, found } => {
                write!(f, "character {at} is not a hexadecimal digit: {found:?}")
            }
            ReadError::HalfByte { at } => write!(
                f,
                "a byte has two digits, the one before character {at} has one"
            ),
            ReadError::Asm(error) => write!(f, "{error}"),
            ReadError::NoText { at } => write!(f, "not text: byte {at} is not UTF-8"),
            ReadError::Elf(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<PartialSlot> for ReadError {
    fn from(error: PartialSlot) -> ReadError {
        ReadError::Bytes(error)
    }
}

impl From<AsmError> for ReadError {
    fn from(error: AsmError) -> ReadError {
        ReadError::Asm(error)
    }
}

impl From<ElfError> for ReadError {
    fn from(error: ElfError) -> ReadError {
        ReadError::Elf(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn forms_are_told_apart() {
        for (file, form) in [
            (&EXIT[..], Form::Bytes),
            (b"", Form::Asm),
            (b"95 00 00 00 00 00 00 00\n", Form::Hex),
            (b"0x95,0x00", Form::Hex),
            (b"exit", Form::Asm),
            (b"\x7fELF", Form::Elf),
            (b"r0 = 1; exit", Form::Asm),
        ] {
            assert_eq!(Form::detect(file), form, "{file:?}");
        }
    }

    #[test]
    fn every_form_of_a_program_is_the_same_program() {
        let program = CheckedProgram::from_bytes(&EXIT).unwrap();
        for file in [&EXIT[..], b"95000000 00000000", b"exit"] {
            assert_eq!(read_program(file, None), Ok(program.clone()), "{file:?}");
        }
        let partial = ReadError::Bytes(PartialSlot { len: 7 });
        assert_eq!(read_program(&EXIT[..7], None), Err(partial.clone()));
        assert_eq!(read_program(b"95 00 00 00 00 00 00", None), Err(partial));
    }

    #[test]
    fn hexadecimal_as_people_write_it() {
        assert_eq!(parse_hex("0x01, 0x02\n03 0405"), Ok(vec![1, 2, 3, 4, 5]));
        assert_eq!(parse_hex(""), Ok(vec![]));
        assert_eq!(parse_hex("1 2"), Err(ReadError::HalfByte { at: 1 }));
        assert_eq!(parse_hex("123"), Err(ReadError::HalfByte { at: 3 }));
        let found = ReadError::NoHexDigit { at: 2, found: 'g' };
        assert_eq!(parse_hex("01g"), Err(found));
    }
}
