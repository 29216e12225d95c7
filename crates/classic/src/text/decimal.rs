//! Four decimal numbers per instruction, in lines (`tcpdump -ddd`) or in one line with
//! commas (`bpf_asm`, xt_bpf, tc). Both start with the number of instructions, which is
//! checked.

use std::fmt::Write;

use isa::classic::SockFilter;

use super::lexer::{Fault, Field, Kind, LeadingZero, Lexer};
use super::{MAX_READ_INSNS, Problem};

pub(super) fn read_lines(text: &str) -> Result<Vec<SockFilter>, Fault> {
    let mut lexer = Lexer::new(text);
    let (announced, at) = count(&mut lexer)?;
    let mut program = Vec::new();
    while lexer.peek().kind != Kind::End {
        if !lexer.peek().opens_line {
            return Err(lexer.expected("the end of the line"));
        }
        lexer.check_room(program.len())?;
        program.push(numbers(&mut lexer)?);
    }
    check_count(announced, at, program)
}

pub(super) fn read_one_line(text: &str) -> Result<Vec<SockFilter>, Fault> {
    let mut lexer = Lexer::new(text);
    let (announced, at) = count(&mut lexer)?;
    let mut program = Vec::new();
    while lexer.take_sign(',') && lexer.peek().kind != Kind::End {
        lexer.check_room(program.len())?;
        program.push(numbers(&mut lexer)?);
    }
    if lexer.peek().kind != Kind::End {
        return Err(lexer.expected("',' or the end"));
    }
    check_count(announced, at, program)
}

/// The number of instructions at the start, and its position.
fn count(lexer: &mut Lexer<'_>) -> Result<(u32, usize), Fault> {
    let at = lexer.peek().at;
    let field = Field::unsigned("the number of instructions", MAX_READ_INSNS as u32);
    let count = lexer.expect_number(field.name, field, LeadingZero::Decimal)?;
    Ok((count as u32, at))
}

fn numbers(lexer: &mut Lexer<'_>) -> Result<SockFilter, Fault> {
    let code = lexer.expect_code(LeadingZero::Decimal)?;
    let on_this_line = |lexer: &Lexer<'_>, field: &str| match lexer.peek().opens_line {
        true => Err(lexer.expected(format!("{field} on the line of the opcode"))),
        false => Ok(()),
    };
    on_this_line(lexer, "jt")?;
    let jt = lexer.expect_skip("jt", LeadingZero::Decimal)?;
    on_this_line(lexer, "jf")?;
    let jf = lexer.expect_skip("jf", LeadingZero::Decimal)?;
    on_this_line(lexer, "k")?;
    let k = lexer.expect_word32("k", LeadingZero::Decimal)?;
    Ok(SockFilter::new(code, jt, jf, k))
}

fn check_count(
    announced: u32,
    at: usize,
    program: Vec<SockFilter>,
) -> Result<Vec<SockFilter>, Fault> {
    if announced as usize == program.len() {
        return Ok(program);
    }
    let found = program.len();
    let problem = Problem::WrongCount { announced, found };
    Err(Fault { at, problem })
}

pub(super) fn write_lines(program: &[SockFilter]) -> String {
    let mut out = format!("{}\n", program.len());
    for SockFilter { code, jt, jf, k } in program {
        let _ = writeln!(out, "{code} {jt} {jf} {k}");
    }
    out
}

pub(super) fn write_one_line(program: &[SockFilter]) -> String {
    let mut out = format!("{},", program.len());
    for SockFilter { code, jt, jf, k } in program {
        let _ = write!(out, "{code} {jt} {jf} {k},");
    }
    out.push('\n');
    out
}
