//! The format of `tcpdump -d`: one line per instruction, with its number and, for branches,
//! the numbers of both targets.
//!
//! The output equals that of libpcap 1.10's `bpf_image`, including the trailing spaces of
//! `txa`. Instructions printed as `unimp` (opcodes unknown to libpcap, such as `ldx #len`)
//! are read back as that opcode with `k` 0.

use std::fmt::Write;

use isa::classic::{Extension, Insn, SockFilter};

use super::Problem;
use super::lexer::{Fault, Field, Kind, LeadingZero, Lexer};
use super::operand::{self, Operand};

/// libpcap's name of an extension.
fn name(extension: Extension) -> &'static str {
    match extension {
        Extension::VlanPresent => "vlanp",
        Extension::Random => "random",
        other => other.name(),
    }
}

pub(super) fn write(program: &[SockFilter]) -> String {
    let mut out = String::with_capacity(program.len() * 40);
    for (index, &insn) in program.iter().enumerate() {
        out.push_str(&dump_line(index, insn));
        out.push('\n');
    }
    out
}

/// An instruction in the format of `tcpdump -d`, without newline.
pub fn dump_line(index: usize, raw: SockFilter) -> String {
    let insn = Insn::decode(raw);
    let (mnemonic, operand) = match (insn, insn.mnemonic()) {
        // libpcap does not know it.
        (Insn::LoadXLen, _) | (_, None) => ("unimp", format!("0x{:x}", raw.code)),
        (_, Some(mnemonic)) => (mnemonic, operand_text(index, insn)),
    };
    let mut line = format!("({index:03}) {mnemonic:<8} ");
    if has_targets(raw.code) {
        let [jt, jf] = [raw.jt, raw.jf].map(|skip| index + 1 + usize::from(skip));
        let _ = write!(line, "{operand:<16} jt {jt}\tjf {jf}");
    } else {
        line.push_str(&operand);
    }
    line
}

/// True if libpcap prints the two targets: for all opcodes of the jump class but `ja`.
fn has_targets(code: u16) -> bool {
    code & 0x07 == 0x05 && code & 0xf0 != 0
}

fn operand_text(index: usize, insn: Insn) -> String {
    let is_hex = matches!(
        insn.mnemonic(),
        Some("ld" | "ldx" | "and" | "or" | "xor" | "jeq" | "jgt" | "jge" | "jset")
    );
    match Operand::of(insn) {
        None | Some(Operand::Nothing | Operand::A) => String::new(),
        Some(Operand::X) => "x".to_owned(),
        Some(Operand::Imm(k)) if is_hex => format!("#0x{k:x}"),
        Some(Operand::Imm(k)) => format!("#{}", k as i32),
        Some(Operand::Abs(k)) => match Extension::from_offset(k) {
            Some(extension) => format!("[{}]", name(extension)),
            None => format!("[{}]", k as i32),
        },
        Some(Operand::Ind(k)) => format!("[x + {}]", k as i32),
        Some(Operand::Mem(k)) => format!("M[{}]", k as i32),
        Some(Operand::Msh(k)) => format!("4*([{}]&0xf)", k as i32),
        Some(Operand::Len) => "#pktlen".to_owned(),
        // libpcap computes the target in 32 bits.
        Some(Operand::Skip(k)) => format!("{}", (index as u32 + 1).wrapping_add(k) as i32),
    }
}

pub(super) fn read(text: &str) -> Result<Vec<SockFilter>, Fault> {
    let mut lexer = Lexer::new(text);
    let mut program = Vec::new();
    while lexer.peek().kind != Kind::End {
        lexer.check_room(program.len())?;
        program.push(line(&mut lexer, program.len())?);
    }
    Ok(program)
}

fn line(lexer: &mut Lexer<'_>, index: usize) -> Result<SockFilter, Fault> {
    if lexer.peek().kind != Kind::Sign('(') || !lexer.peek().opens_line {
        return Err(lexer.expected("a line that starts with '(' and the instruction's number"));
    }
    lexer.expect_sign('(')?;
    check_index(lexer, index)?;
    lexer.expect_sign(')')?;

    let opcode = lexer.peek();
    let mnemonic = opcode.text.to_ascii_lowercase();
    let is_known = operand::is_mnemonic(&mnemonic) || mnemonic == "unimp";
    if opcode.kind != Kind::Word || !is_known || opcode.opens_line {
        return Err(lexer.expected("an instruction"));
    }
    lexer.take();
    let mut insn = match mnemonic.as_str() {
        "unimp" => SockFilter::new(lexer.expect_code(LeadingZero::Decimal)?, 0, 0, 0),
        "ja" => {
            let target = lexer.expect_word32("the target of the jump", LeadingZero::Decimal)?;
            let skip = target.wrapping_sub(index as u32 + 1);
            Insn::Goto(skip).encode()
        }
        "ret" if ends_line(lexer) => Insn::RetA.encode(),
        _ => operand::read(lexer, &mnemonic)?,
    };
    if has_targets(insn.code) {
        insn.jt = target(lexer, "jt", index)?;
        insn.jf = target(lexer, "jf", index)?;
    }
    Ok(insn)
}

fn ends_line(lexer: &Lexer<'_>) -> bool {
    let next = lexer.peek();
    next.opens_line || next.kind == Kind::End
}

fn check_index(lexer: &mut Lexer<'_>, expected: usize) -> Result<(), Fault> {
    let at = lexer.peek().at;
    let field = Field::unsigned("the instruction's number", u32::MAX);
    let found = lexer.expect_number(field.name, field, LeadingZero::Decimal)? as u32;
    if found as usize == expected {
        return Ok(());
    }
    let problem = Problem::WrongIndex { expected, found };
    Err(Fault { at, problem })
}

/// The target after `jt` or `jf`, as instructions to skip.
fn target(lexer: &mut Lexer<'_>, word: &'static str, index: usize) -> Result<u8, Fault> {
    lexer.expect_word(word)?;
    let at = lexer.peek().at;
    let field = Field::unsigned("the target of the branch", u32::MAX);
    let target = lexer.expect_number(field.name, field, LeadingZero::Decimal)?;
    let skip = target - (index as i64 + 1);
    u8::try_from(skip).map_err(|_| {
        let target = format!("instruction {target}");
        let problem = Problem::TargetTooFar { target, skip };
        Fault { at, problem }
    })
}
