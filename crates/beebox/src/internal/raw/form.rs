//! Forms of raw programs: bytes, bytes in hexadecimal, assembler text, and the code
//! section of an object.

use std::fmt;

use interp::checked::CheckedProgram;
use isa::ebpf::{AsmError, PartialSlot, assemble};

use super::elf::{self, ElfError};

/// The form of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramForm {
    /// Eight bytes for each slot, little-endian.
    Bytes,
    /// The same in hexadecimal, two digits for each byte.
    Hex,
    /// Text in the form that LLVM prints and reads.
    Asm,
    /// An ELF object of which one section is the program.
    Elf,
}

impl ProgramForm {
    /// Detects the form of a file: an object by its magic, bytes if they are not text,
    /// hexadecimal if the text has nothing else, assembler otherwise.
    pub fn detect(file: &[u8]) -> ProgramForm {
        if file.starts_with(elf::MAGIC) {
            return ProgramForm::Elf;
        }
        let text = std::str::from_utf8(file).ok();
        match text.filter(|text| !text.contains('\0')) {
            None => ProgramForm::Bytes,
            Some(text) if is_hex(text) => ProgramForm::Hex,
            Some(_) => ProgramForm::Asm,
        }
    }
}

/// Reads a program in a form, or in the one that is detected.
pub fn read_program(
    file: &[u8],
    form: Option<ProgramForm>,
) -> Result<CheckedProgram, ProgramReadError> {
    match form.unwrap_or_else(|| ProgramForm::detect(file)) {
        ProgramForm::Bytes => Ok(CheckedProgram::from_bytes(file)?),
        ProgramForm::Hex => Ok(CheckedProgram::from_bytes(&parse_hex(&text(file)?)?)?),
        ProgramForm::Asm => Ok(CheckedProgram::new(assemble(&text(file)?)?)),
        ProgramForm::Elf => elf::elf_program(file, None),
    }
}

/// The bytes of a text in hexadecimal: two digits for each, with white space, commas and
/// `0x` between them.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, ProgramReadError> {
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
                return Err(ProgramReadError::HalfByte { at });
            }
            (_, None) => return Err(ProgramReadError::NoHexDigit { at, found: c }),
        }
    }
    match first {
        Some(_) => Err(ProgramReadError::HalfByte { at: text.len() }),
        None => Ok(bytes),
    }
}

fn is_hex(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || ",xX".contains(c);
    text.chars().all(is_part) && text.contains(|c: char| c.is_ascii_hexdigit())
}

fn text(file: &[u8]) -> Result<String, ProgramReadError> {
    match std::str::from_utf8(file) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(ProgramReadError::NoText {
            at: error.valid_up_to(),
        }),
    }
}

/// Reason why a file is not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramReadError {
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

impl fmt::Display for ProgramReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramReadError::Bytes(error) => write!(f, "{error}"),
            ProgramReadError::NoHexDigit { at, found } => {
                write!(f, "character {at} is not a hexadecimal digit: {found:?}")
            }
            ProgramReadError::HalfByte { at } => write!(
                f,
                "a byte has two digits, the one before character {at} has one"
            ),
            ProgramReadError::Asm(error) => write!(f, "{error}"),
            ProgramReadError::NoText { at } => write!(f, "not text: byte {at} is not UTF-8"),
            ProgramReadError::Elf(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ProgramReadError {}

impl From<PartialSlot> for ProgramReadError {
    fn from(error: PartialSlot) -> ProgramReadError {
        ProgramReadError::Bytes(error)
    }
}

impl From<AsmError> for ProgramReadError {
    fn from(error: AsmError) -> ProgramReadError {
        ProgramReadError::Asm(error)
    }
}

impl From<ElfError> for ProgramReadError {
    fn from(error: ElfError) -> ProgramReadError {
        ProgramReadError::Elf(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn forms_are_detected() {
        for (file, form) in [
            (&EXIT[..], ProgramForm::Bytes),
            (b"", ProgramForm::Asm),
            (b"95 00 00 00 00 00 00 00\n", ProgramForm::Hex),
            (b"0x95,0x00", ProgramForm::Hex),
            (b"exit", ProgramForm::Asm),
            (b"\x7fELF", ProgramForm::Elf),
            (b"r0 = 1; exit", ProgramForm::Asm),
        ] {
            assert_eq!(ProgramForm::detect(file), form, "{file:?}");
        }
    }

    #[test]
    fn every_form_of_a_program_is_the_same_program() {
        let program = CheckedProgram::from_bytes(&EXIT).unwrap();
        for file in [&EXIT[..], b"95000000 00000000", b"exit"] {
            assert_eq!(read_program(file, None), Ok(program.clone()), "{file:?}");
        }
        let partial = ProgramReadError::Bytes(PartialSlot { len: 7 });
        assert_eq!(read_program(&EXIT[..7], None), Err(partial.clone()));
        assert_eq!(read_program(b"95 00 00 00 00 00 00", None), Err(partial));
    }

    #[test]
    fn hexadecimal_as_people_write_it() {
        assert_eq!(parse_hex("0x01, 0x02\n03 0405"), Ok(vec![1, 2, 3, 4, 5]));
        assert_eq!(parse_hex(""), Ok(vec![]));
        assert_eq!(parse_hex("1 2"), Err(ProgramReadError::HalfByte { at: 1 }));
        assert_eq!(parse_hex("123"), Err(ProgramReadError::HalfByte { at: 3 }));
        let found = ProgramReadError::NoHexDigit { at: 2, found: 'g' };
        assert_eq!(parse_hex("01g"), Err(found));
    }
}
