//! Operands, and the assembly of an instruction from mnemonic and operand.
//!
//! Both directions derive from the instruction table: the operand from the decoded
//! instruction, and the opcode from the row with the mnemonic and the shape of the operand.
//!
//! One reader serves the assembly language and `tcpdump -d`, so it accepts the notations of
//! both: `#proto` and `[proto]`, `#len` and `#pktlen`.

use isa::classic::{Extension, Insn, OPCODES, Operand as Source, SockFilter};

use super::lexer::{Fault, Kind, LeadingZero, Lexer};

/// The operand of a mnemonic, without jump targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// Nothing.
    Nothing,
    /// `a`
    A,
    /// `x`
    X,
    /// `#k`
    Imm(u32),
    /// `[k]`, and the extensions.
    Abs(u32),
    /// `[x + k]`
    Ind(u32),
    /// `M[k]`
    Mem(u32),
    /// `4*([k]&0xf)`
    Msh(u32),
    /// `#len`
    Len,
    /// The target of `ja`, as instructions to skip.
    Skip(u32),
}

impl Operand {
    /// The operand of an instruction; `None` for an invalid one.
    pub(super) fn of(insn: Insn) -> Option<Operand> {
        Some(match insn {
            Insn::LoadAbs { k, .. } => Operand::Abs(k),
            Insn::LoadInd { k, .. } => Operand::Ind(k),
            Insn::LoadLen | Insn::LoadXLen => Operand::Len,
            Insn::LoadImm(k) | Insn::LoadXImm(k) | Insn::RetK(k) => Operand::Imm(k),
            Insn::LoadMem(k) | Insn::LoadXMem(k) | Insn::Store(k) | Insn::StoreX(k) => {
                Operand::Mem(k)
            }
            Insn::LoadXMsh(k) => Operand::Msh(k),
            Insn::Alu { src, .. } | Insn::Jump { src, .. } => match src {
                Source::K(k) => Operand::Imm(k),
                Source::X => Operand::X,
            },
            Insn::Goto(k) => Operand::Skip(k),
            Insn::RetA => Operand::A,
            Insn::Neg | Insn::Tax | Insn::Txa => Operand::Nothing,
            Insn::Invalid(_) => return None,
        })
    }

    /// The operand as the field `k`.
    fn k(self) -> u32 {
        match self {
            Operand::Nothing | Operand::A | Operand::X | Operand::Len => 0,
            Operand::Imm(k)
            | Operand::Abs(k)
            | Operand::Ind(k)
            | Operand::Mem(k)
            | Operand::Msh(k)
            | Operand::Skip(k) => k,
        }
    }

    /// Syntax of its shape in the assembly language.
    fn shape(self) -> &'static str {
        match self {
            Operand::Nothing => "nothing",
            Operand::A => "'a'",
            Operand::X => "'x'",
            Operand::Imm(_) => "'#k'",
            Operand::Abs(_) => "'[k]'",
            Operand::Ind(_) => "'[x + k]'",
            Operand::Mem(_) => "'M[k]'",
            Operand::Msh(_) => "'4*([k]&0xf)'",
            Operand::Len => "'#len'",
            Operand::Skip(_) => "a target",
        }
    }
}

/// The rows with a mnemonic: opcode and an operand of their shape.
fn rows(mnemonic: &str) -> impl Iterator<Item = (u16, Operand)> {
    OPCODES
        .iter()
        .filter(move |&&(_, name)| name == mnemonic)
        .filter_map(|&(code, _)| {
            let operand = Operand::of(Insn::decode(SockFilter::new(code, 0, 0, 0)))?;
            Some((code, operand))
        })
}

/// True if the mnemonic is in the table.
pub(super) fn is_mnemonic(word: &str) -> bool {
    OPCODES.iter().any(|&(_, name)| name == word)
}

/// Reads the operand of a mnemonic; returns the instruction without jump offsets.
pub(super) fn read(lexer: &mut Lexer<'_>, mnemonic: &str) -> Result<SockFilter, Fault> {
    let start = lexer.peek();
    let takes_none = rows(mnemonic).all(|(_, operand)| operand == Operand::Nothing);
    let operand = match takes_none {
        true => Some(Operand::Nothing),
        false => read_operand(lexer)?,
    };
    operand
        .and_then(|operand| assemble(mnemonic, operand))
        .ok_or_else(|| start.is_not(format!("{} after {mnemonic}", shapes(mnemonic))))
}

/// The instruction with this mnemonic and operand.
fn assemble(mnemonic: &str, operand: Operand) -> Option<SockFilter> {
    let same_shape =
        |row: Operand| std::mem::discriminant(&row) == std::mem::discriminant(&operand);
    let (code, _) = rows(mnemonic).find(|&(_, row)| same_shape(row))?;
    Some(SockFilter::new(code, 0, 0, operand.k()))
}

const ZERO: LeadingZero = LeadingZero::Octal;

fn read_operand(lexer: &mut Lexer<'_>) -> Result<Option<Operand>, Fault> {
    let next = lexer.peek();
    match next.kind {
        Kind::Sign('#') => {
            lexer.take();
            if let Some(operand) = read_name(lexer) {
                return Ok(Some(operand));
            }
            let what = "a number, 'len' or the name of an extension after '#'";
            Ok(Some(Operand::Imm(lexer.expect_word32(what, ZERO)?)))
        }
        Kind::Sign('[') => read_offset(lexer).map(Some),
        Kind::Sign('%') => {
            lexer.take();
            match read_register(lexer) {
                None => Err(lexer.expected("'x' or 'a' after '%'")),
                register => Ok(register),
            }
        }
        Kind::Number => read_msh(lexer).map(Some),
        Kind::Word if lexer.take_word("m") => {
            lexer.expect_sign('[')?;
            let k = lexer.expect_word32("the number of a word in M[]", ZERO)?;
            lexer.expect_sign(']')?;
            Ok(Some(Operand::Mem(k)))
        }
        Kind::Word => Ok(read_register(lexer).or_else(|| read_name(lexer))),
        _ => Ok(None),
    }
}

/// Reads `x` or `a`, if one is next.
fn read_register(lexer: &mut Lexer<'_>) -> Option<Operand> {
    if lexer.take_word("x") {
        Some(Operand::X)
    } else if lexer.take_word("a") {
        Some(Operand::A)
    } else {
        None
    }
}

/// Reads `len` or an extension, if one is next.
fn read_name(lexer: &mut Lexer<'_>) -> Option<Operand> {
    if lexer.take_word("len") || lexer.take_word("pktlen") {
        return Some(Operand::Len);
    }
    let extension = extension(lexer.peek().text)?;
    lexer.take();
    Some(Operand::Abs(extension.offset()))
}

/// An extension by bpf_asm's name or libpcap's.
fn extension(word: &str) -> Option<Extension> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "vlan_pr" | "vlanp" => Some(Extension::VlanPresent),
        "random" => Some(Extension::Random),
        _ => {
            let has_name = |extension: &Extension| extension.name() == lower;
            Extension::ALL.iter().copied().find(has_name)
        }
    }
}

/// `[k]`, `[x + k]` or `[extension]`.
fn read_offset(lexer: &mut Lexer<'_>) -> Result<Operand, Fault> {
    lexer.expect_sign('[')?;
    let is_index = lexer.take_sign('%');
    let operand = if lexer.take_word("x") {
        if lexer.peek().kind != Kind::Sign('-') {
            lexer.expect_sign('+')?;
        }
        Operand::Ind(lexer.expect_word32("an offset", ZERO)?)
    } else if is_index {
        return Err(lexer.expected("'x' after '%'"));
    } else if let Some(extension) = extension(lexer.peek().text) {
        lexer.take();
        Operand::Abs(extension.offset())
    } else {
        Operand::Abs(lexer.expect_word32("an offset or 'x'", ZERO)?)
    };
    lexer.expect_sign(']')?;
    Ok(operand)
}

/// `4*([k]&0xf)`.
fn read_msh(lexer: &mut Lexer<'_>) -> Result<Operand, Fault> {
    expect_msh_number(lexer, 4)?;
    lexer.expect_sign('*')?;
    lexer.expect_sign('(')?;
    lexer.expect_sign('[')?;
    let k = lexer.expect_word32("an offset", ZERO)?;
    lexer.expect_sign(']')?;
    lexer.expect_sign('&')?;
    expect_msh_number(lexer, 0xf)?;
    lexer.expect_sign(')')?;
    Ok(Operand::Msh(k))
}

/// Only 4 and 15 are valid in this load.
fn expect_msh_number(lexer: &mut Lexer<'_>, number: u32) -> Result<(), Fault> {
    const SHAPE: &str = "'4*([k]&0xf)'";
    let token = lexer.peek();
    match lexer.expect_word32(SHAPE, ZERO)? {
        found if found == number => Ok(()),
        _ => Err(token.is_not(SHAPE)),
    }
}

/// The operands that a mnemonic takes, for a message: `'[k]' or '[x + k]'`.
pub(super) fn shapes(mnemonic: &str) -> String {
    let shapes: Vec<_> = rows(mnemonic).map(|(_, operand)| operand.shape()).collect();
    match shapes.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
