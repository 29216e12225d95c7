//! Every text form reads any bytes, and gives back what was written.
//!
//! The input: one byte that names the form (0: tell by looking), then the text.

use classic::text::{self, Form, TextPlace};
use isa::classic::{Insn, SockFilter};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "classic-text",
    property: "a program that can be read is the same after writing it in any form",
    words: &[
        "ldh [12]\n",
        "ldb [x + 14]\n",
        "ldx 4*([14]&0xf)\n",
        "ld M[3]\n",
        "st M[15]\n",
        "ld #len\n",
        "ld vlan_tci\n",
        "jeq #0x800,a,b\n",
        "jneq #6, drop\n",
        "jset x,1,2\n",
        "a: ret a\n",
        "ret #-1\n",
        "drop:",
        "#proto",
        "#poff",
        "#rand",
        "[k]",
        "0x",
        "-",
        "\n",
        "{ 0x28, 0, 0, 0x0000000c },\n",
        "(000) ldh      [12]\n",
        "jt 2\tjf 3",
        "4,40 0 0 12,",
        ",",
        "6 0 0 0\n",
        "/* */",
        "; ",
        "tax\n",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let Some((choice, bytes)) = input.split_first() else {
        return Signature::of(());
    };
    let form = Form::ALL.get(usize::from(*choice).wrapping_sub(1)).copied();
    let program = match text::read(bytes, form) {
        Ok(program) => program,
        Err(error) => {
            check_place(error.place, bytes);
            return Signature::of((error.form, std::mem::discriminant(&error.problem)));
        }
    };
    for &form in Form::ALL {
        let written = text::write(&program, form);
        let again = text::read(&written, Some(form));
        let again = again.unwrap_or_else(|error| panic!("written as {form:?}, refused: {error:?}"));
        match form {
            Form::Dump => assert_eq!(shown(&program), shown(&again)),
            Form::Asm => assert_eq!(meanings(&program), meanings(&again)),
            _ => assert_eq!(program, again, "as {form:?}"),
        }
    }
    let opcodes = program
        .iter()
        .fold(0, |set, raw| set | 1_u64 << (raw.code % 64));
    Signature::of((form, opcodes, program.len().min(64)))
}

/// A program but for fields that its instructions ignore, which the assembly
/// language leaves out.
fn meanings(program: &[SockFilter]) -> Vec<Insn> {
    program.iter().map(|&raw| Insn::decode(raw)).collect()
}

/// The program as `tcpdump -d` prints it: of unknown instructions only the opcode.
fn shown(program: &[SockFilter]) -> Vec<Insn> {
    let shown = |insn| match insn {
        Insn::Invalid(raw) => Insn::Invalid(SockFilter::new(raw.code, 0, 0, 0)),
        insn => insn,
    };
    meanings(program).into_iter().map(shown).collect()
}

fn check_place(place: TextPlace, bytes: &[u8]) {
    match place {
        TextPlace::Input => (),
        TextPlace::Byte(at) => assert!(at <= bytes.len()),
        TextPlace::Text { line, column } => {
            let text = String::from_utf8_lossy(bytes);
            let there = text.split('\n').nth(line - 1).expect("a line of the text");
            assert!(column <= there.chars().count() + 1, "a column of the line");
        }
    }
}
