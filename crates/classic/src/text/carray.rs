//! `tcpdump -dd`: elements of a C array, `{ code, jt, jf, k },`.
//!
//! The declaration around them (`struct sock_filter code[] = { … };`) is optional.

use std::fmt::Write;

use isa::classic::SockFilter;

use super::lexer::{Fault, Kind, LeadingZero, Lexer};

pub(super) fn read(text: &str) -> Result<Vec<SockFilter>, Fault> {
    let mut lexer = Lexer::new(text);
    let is_declared = skip_declaration(&mut lexer)?;
    let mut program = Vec::new();
    while lexer.peek().kind == Kind::Sign('{') {
        lexer.check_room(program.len())?;
        program.push(element(&mut lexer)?);
        if !lexer.take_sign(',') {
            break;
        }
    }
    if is_declared {
        lexer.expect_sign('}')?;
    }
    match lexer.peek().kind {
        Kind::End => Ok(program),
        _ if is_declared => Err(lexer.expected("the end")),
        _ => Err(lexer.expected("'{ code, jt, jf, k },' or the end")),
    }
}

/// Skips up to the brace that opens the array, if there is a declaration.
fn skip_declaration(lexer: &mut Lexer<'_>) -> Result<bool, Fault> {
    if lexer.peek().kind != Kind::Word {
        return Ok(false);
    }
    while let Kind::Word | Kind::Number | Kind::Sign('[' | ']') = lexer.peek().kind {
        lexer.take();
    }
    lexer.expect_sign('=')?;
    lexer.expect_sign('{')?;
    Ok(true)
}

fn element(lexer: &mut Lexer<'_>) -> Result<SockFilter, Fault> {
    lexer.expect_sign('{')?;
    let code = lexer.expect_code(LeadingZero::Octal)?;
    lexer.expect_sign(',')?;
    let jt = lexer.expect_skip("jt", LeadingZero::Octal)?;
    lexer.expect_sign(',')?;
    let jf = lexer.expect_skip("jf", LeadingZero::Octal)?;
    lexer.expect_sign(',')?;
    let k = lexer.expect_word32("k", LeadingZero::Octal)?;
    lexer.expect_sign('}')?;
    Ok(SockFilter::new(code, jt, jf, k))
}

pub(super) fn write(program: &[SockFilter]) -> String {
    let mut out = String::with_capacity(program.len() * 32);
    for SockFilter { code, jt, jf, k } in program {
        let _ = writeln!(out, "{{ 0x{code:x}, {jt}, {jf}, 0x{k:08x} }},");
    }
    out
}
