//! Text and binary forms of classic programs: readers, writers and detection.
//!
//! | form | made by | taken by |
//! |---|---|---|
//! | [`Form::Raw`] | libseccomp's export, a dump of memory | the kernel |
//! | [`Form::Dump`] | `tcpdump -d` | people |
//! | [`Form::CArray`] | `tcpdump -dd`, `bpf_asm -c` | C sources |
//! | [`Form::Decimal`] | `tcpdump -ddd` | scripts |
//! | [`Form::OneLine`] | `bpf_asm`, `nfbpf_compile` | xt_bpf, tc |
//! | [`Form::Asm`] | people | `bpf_asm` |
//!
//! Readers and writers are linear in time and space, and inputs are limited by
//! [`MAX_BYTES`] and [`MAX_READ_INSNS`]. No input panics.
//!
//! Writing never fails, and reading is its inverse: `read(write(p, f), f) == p`. Two forms
//! lose information: [`Form::Asm`] and [`Form::Dump`] omit ignored fields, and the latter,
//! as tcpdump, prints only the opcode of instructions unknown to libpcap.
//!
//! ```
//! use beebox_classic::text::{self, Form};
//!
//! let program = text::read(b"ldh [12]\n jneq #0x800, drop\n ret #-1\n drop: ret #0", None)?;
//! assert_eq!(
//!     text::write(&program, Form::OneLine),
//!     b"4,40 0 0 12,21 0 1 2048,6 0 0 4294967295,6 0 0 0,\n",
//! );
//! # Ok::<(), text::ReadError>(())
//! ```

mod asm;
mod carray;
mod decimal;
mod detect;
mod dump;
mod error;
mod lexer;
mod operand;
mod raw;

pub use dump::dump_line;
pub use error::{Problem, ReadError, TextPlace};

use isa::classic::SockFilter;

/// Largest input in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// Largest number of instructions that a reader accepts; more than Linux's limit, because
/// capture filters may have any length.
pub const MAX_READ_INSNS: usize = 1 << 20;

/// Order of the bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of the host.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "little") {
        ByteOrder::Little
    } else {
        ByteOrder::Big
    };
}

/// A text or binary form of a classic program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// An array of `struct sock_filter`, eight bytes each.
    Raw(ByteOrder),
    /// `tcpdump -d`: `(000) ldh      [12]`.
    Dump,
    /// `tcpdump -dd`: `{ 0x28, 0, 0, 0x0000000c },`.
    CArray,
    /// `tcpdump -ddd`: the number of instructions, then a line of four decimal
    /// numbers for each.
    Decimal,
    /// `bpf_asm`'s output: `2,40 0 0 12,6 0 0 0,`.
    OneLine,
    /// The assembly language of `bpf_asm`.
    Asm,
}

impl Form {
    /// All forms.
    pub const ALL: &[Form] = &[
        Form::Raw(ByteOrder::Little),
        Form::Raw(ByteOrder::Big),
        Form::Dump,
        Form::CArray,
        Form::Decimal,
        Form::OneLine,
        Form::Asm,
    ];

    /// Detects the form of an input; `None` if none fits.
    ///
    /// Text forms are detected by their first word. Inputs with a NUL byte are raw
    /// programs, because every opcode has one and no text does; the byte order is the one
    /// with more valid opcodes.
    pub fn detect(bytes: &[u8]) -> Option<Form> {
        detect::detect(bytes).ok()
    }

    /// True if the form is text.
    pub const fn is_text(self) -> bool {
        !matches!(self, Form::Raw(_))
    }

    /// Name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Raw(ByteOrder::Little) => "raw sock_filter array (little-endian)",
            Form::Raw(ByteOrder::Big) => "raw sock_filter array (big-endian)",
            Form::Dump => "tcpdump -d listing",
            Form::CArray => "tcpdump -dd array",
            Form::Decimal => "tcpdump -ddd list",
            Form::OneLine => "bpf_asm one-line program",
            Form::Asm => "bpf_asm source",
        }
    }
}

/// Reads a program in a form; without one, the form is detected.
///
/// The program is not checked: it may have unknown opcodes and jumps out of it. An empty
/// input is a program without instructions if the form is given, otherwise an error.
pub fn read(bytes: &[u8], form: Option<Form>) -> Result<Vec<SockFilter>, ReadError> {
    if bytes.len() > MAX_BYTES {
        let problem = Problem::TooManyBytes { limit: MAX_BYTES };
        return Err(ReadError::new(form, TextPlace::Byte(MAX_BYTES), problem));
    }
    let form = match form {
        Some(form) => form,
        None => detect::detect(bytes)
            .map_err(|problem| ReadError::new(None, TextPlace::Input, problem))?,
    };
    if let Form::Raw(order) = form {
        return raw::read(bytes, order);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let place = TextPlace::in_text(&String::from_utf8_lossy(&bytes[..at]), at);
        ReadError::new(Some(form), place, Problem::NotText { byte: bytes[at] })
    })?;
    let parsed = match form {
        Form::Dump => dump::read(text),
        Form::CArray => carray::read(text),
        Form::Decimal => decimal::read_lines(text),
        Form::OneLine => decimal::read_one_line(text),
        Form::Raw(_) | Form::Asm => asm::read(text),
    };
    parsed.map_err(|fault| {
        ReadError::new(
            Some(form),
            TextPlace::in_text(text, fault.at),
            fault.problem,
        )
    })
}

/// Writes a program.
pub fn write(program: &[SockFilter], form: Form) -> Vec<u8> {
    match form {
        Form::Raw(order) => raw::write(program, order),
        Form::Dump => dump::write(program).into_bytes(),
        Form::CArray => carray::write(program).into_bytes(),
        Form::Decimal => decimal::write_lines(program).into_bytes(),
        Form::OneLine => decimal::write_one_line(program).into_bytes(),
        Form::Asm => asm::write(program).into_bytes(),
    }
}
