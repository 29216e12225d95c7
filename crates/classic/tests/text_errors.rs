//! Errors of readers: positions and expectations.

use beebox_classic::text::{ByteOrder, Form, MAX_BYTES, read};

/// Reads an input in a form; returns the message.
fn message(input: impl AsRef<[u8]>, form: Option<Form>) -> String {
    match read(input.as_ref(), form) {
        Ok(program) => panic!("{} instructions were read", program.len()),
        Err(error) => error.to_string(),
    }
}

#[oracle::test]
fn assembly_errors_state_line_column_and_what_is_expected() {
    let many = |lines: usize| format!("jeq #1, far\n{}far: ret #0", "tax\n".repeat(lines));
    let cases = [
        (
            "ldq [0]",
            "line 1, column 1: expected an instruction or a label with ':', found 'ldq'",
        ),
        (
            "ldh [12]\nldw [4]",
            "line 2, column 1: expected an instruction or a label with ':', found 'ldw'",
        ),
        (
            "ldh",
            "line 1, column 4: expected '[k]' or '[x + k]' after ldh, found the end",
        ),
        (
            "ldh M[3]",
            "line 1, column 5: expected '[k]' or '[x + k]' after ldh, found 'M'",
        ),
        (
            "ld [12 ; open\n\n",
            "line 1, column 7: expected ']', found the end",
        ),
        ("ld [12", "line 1, column 7: expected ']', found the end"),
        (
            "ld [y + 12]",
            "line 1, column 5: expected an offset or 'x', found 'y'",
        ),
        (
            "ld [%a + 12]",
            "line 1, column 6: expected 'x' after '%', found 'a'",
        ),
        (
            "ld #nowhere",
            "line 1, column 5: expected a number, 'len' or the name of an extension after '#', found 'nowhere'",
        ),
        (
            "ld #4294967296",
            "line 1, column 5: 4294967296 does not fit a 32-bit word, which holds -2147483648 to 4294967295",
        ),
        (
            "ld #-2147483649",
            "line 1, column 5: -2147483649 does not fit a 32-bit word, which holds -2147483648 to 4294967295",
        ),
        (
            "ld #0x",
            "line 1, column 5: expected a number, 'len' or the name of an extension after '#', found '0x'",
        ),
        (
            "ld #09",
            "line 1, column 5: expected a number, 'len' or the name of an extension after '#', found '09'",
        ),
        (
            "ldx 5*([14]&0xf)",
            "line 1, column 5: expected '4*([k]&0xf)', found '5'",
        ),
        (
            "ldxb 4*([14]&0x1f)",
            "line 1, column 14: expected '4*([k]&0xf)', found '0x1f'",
        ),
        (
            "st #1",
            "line 1, column 4: expected 'M[k]' after st, found '#'",
        ),
        (
            "ret",
            "line 1, column 4: expected '#k' or 'a' after ret, found the end",
        ),
        (
            "ret %",
            "line 1, column 6: expected 'a' or 'x' after '%', found the end",
        ),
        ("jeq #1", "line 1, column 7: expected ',', found the end"),
        (
            "jeq #1, 5\nret #0",
            "line 1, column 9: expected a label, found '5'",
        ),
        (
            "jeq #1, ret #0",
            "line 1, column 9: expected a label, found 'ret'",
        ),
        (
            "\tjmp nowhere\n\tret #0",
            "line 1, column 6: label 'nowhere' is not defined",
        ),
        (
            "aa: ld #1\naa: ret a",
            "line 2, column 1: label 'aa' is already defined on line 1",
        ),
        (
            "aa: ld #1\njeq #1, aa\nret a",
            "line 2, column 9: a conditional jump can't go backwards, but label 'aa' is before it",
        ),
        (
            &many(256),
            "line 1, column 9: label 'far' is too far: a conditional jump skips up to 255 instructions, not 256",
        ),
        (
            "ld #1\nend:",
            "line 2, column 5: expected an instruction, found the end",
        ),
        (
            "x: ret a",
            "line 1, column 1: expected an instruction, found 'x'",
        ),
        (
            "ld #1 /* no end",
            "line 1, column 7: expected an instruction, found an unterminated comment",
        ),
        (
            "ld #1\n$",
            "line 2, column 1: expected an instruction, found '$'",
        ),
        (
            "ld #1 é",
            "line 1, column 7: expected an instruction, found 'é'",
        ),
        (
            "ret #0 ; ünï\n  ret é",
            "line 2, column 7: expected '#k' or 'a' after ret, found 'é'",
        ),
        (
            ".insn 65536, 0, 0, 0",
            "line 1, column 7: 65536 does not fit the opcode, which holds 0 to 65535",
        ),
        (
            ".insn 6, 256, 0, 0",
            "line 1, column 10: 256 does not fit jt, which holds 0 to 255",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(message(source, Some(Form::Asm)), expected, "{source}");
    }
}

#[oracle::test]
fn listing_errors_state_line_column_and_what_is_expected() {
    let cases = [
        (
            "(001) ret #0",
            "line 1, column 2: expected instruction number 0, found 1",
        ),
        (
            "(000) ldh [12]\n(001) jeq #0x800 jt 2",
            "line 2, column 22: expected 'jf', found the end",
        ),
        (
            "(000) jeq #1 jt 0 jf 1",
            "line 1, column 17: a conditional jump can't go backwards, but instruction 0 is before it",
        ),
        (
            "(000) jeq #1 jt 1 jf 257",
            "line 1, column 22: instruction 257 is too far: a conditional jump skips up to 255 instructions, not 256",
        ),
        (
            "(000) ret #0 (001) ret #0",
            "line 1, column 14: expected a line that starts with '(' and the instruction's number, found '('",
        ),
        (
            "(000) wait",
            "line 1, column 7: expected an instruction, found 'wait'",
        ),
        (
            "(000)",
            "line 1, column 6: expected an instruction, found the end",
        ),
        (
            "(000) ldh #1",
            "line 1, column 11: expected '[k]' or '[x + k]' after ldh, found '#'",
        ),
        (
            "ret #0",
            "line 1, column 1: expected a line that starts with '(' and the instruction's number, found 'ret'",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(message(source, Some(Form::Dump)), expected, "{source}");
    }
}

#[oracle::test]
fn number_errors_state_line_column_and_what_is_expected() {
    let cases = [
        (
            Form::CArray,
            "{ 0x6, 0, 0 },",
            "line 1, column 13: expected ',', found '}'",
        ),
        (
            Form::CArray,
            "{ 0x6, 0, 0, 0 } { 6, 0, 0, 0 }",
            "line 1, column 18: expected '{ code, jt, jf, k },' or the end, found '{'",
        ),
        (
            Form::CArray,
            "{ 0x10000, 0, 0, 0 }",
            "line 1, column 3: 0x10000 does not fit the opcode, which holds 0 to 65535",
        ),
        (
            Form::CArray,
            "struct sock_filter c[] = { { 6, 0, 0, 0 },",
            "line 1, column 43: expected '}', found the end",
        ),
        (
            Form::CArray,
            "{ BPF_RET, 0, 0, 0 }",
            "line 1, column 3: expected the opcode, found 'BPF_RET'",
        ),
        (
            Form::Decimal,
            "2\n6 0 0 0\n",
            "line 1, column 1: the first number announces 2 instructions, 1 follow",
        ),
        (
            Form::Decimal,
            "1\n6 0 0\n",
            "line 2, column 6: expected k on the line of the opcode, found the end",
        ),
        (
            Form::Decimal,
            "1\n6 0 0 0 0\n",
            "line 2, column 9: expected the end of the line, found '0'",
        ),
        (
            Form::Decimal,
            "1\n6 300 0 0\n",
            "line 2, column 3: 300 does not fit jt, which holds 0 to 255",
        ),
        (
            Form::Decimal,
            "one\n",
            "line 1, column 1: expected the number of instructions, found 'one'",
        ),
        (
            Form::Decimal,
            "9999999\n",
            "line 1, column 1: 9999999 does not fit the number of instructions, which holds 0 to 1048576",
        ),
        (
            Form::OneLine,
            "1,6 0 0,",
            "line 1, column 8: expected k, found ','",
        ),
        (
            Form::OneLine,
            "1,6 0 0 0,6 0 0 0,",
            "line 1, column 1: the first number announces 1 instructions, 2 follow",
        ),
        (
            Form::OneLine,
            "1 6 0 0 0",
            "line 1, column 3: expected ',' or the end, found '6'",
        ),
    ];
    for (form, source, expected) in cases {
        assert_eq!(message(source, Some(form)), expected, "{source}");
    }
}

#[oracle::test]
fn raw_errors_name_the_byte() {
    let raw = Some(Form::Raw(ByteOrder::Little));
    assert_eq!(
        message([0u8; 13], raw),
        "byte 8: the last instruction is truncated: it has 5 of 8 bytes"
    );
    assert_eq!(
        message(vec![0u8; 8 * ((1 << 20) + 1)], raw),
        "byte 8388608: more than 1048576 instructions"
    );
    assert_eq!(
        message(vec![0u8; MAX_BYTES + 1], None),
        "byte 67108864: longer than 67108864 bytes"
    );
}

#[oracle::test]
fn what_is_no_program_is_named() {
    let none = "not a classic program in any form: neither a sock_filter array \
                nor tcpdump -d, -dd, -ddd, bpf_asm's one line or its source";
    let cases: [(&[u8], &str); 9] = [
        (b"", "the input is empty"),
        (b" \n\t ; only a comment\n", "the input is empty"),
        (
            b"\x7fELF\x02\x01",
            "this is an ELF object, not a classic program",
        ),
        (
            b"\xd4\xc3\xb2\xa1\x02\x00",
            "this is a packet capture, not a classic program",
        ),
        (
            b"{\"defaultAction\": 1}",
            "this is a JSON document, not a classic program",
        ),
        (
            b"\x1f\x8b\x08",
            "this is a gzip file, not a classic program",
        ),
        (b"!", none),
        (b"\xff", none),
        (b"\xff\xfe1\0", "this is UTF-16 text, not a classic program"),
    ];
    for (input, expected) in cases {
        assert_eq!(message(input, None), expected, "{input:?}");
    }
    assert_eq!(
        message(b"ld #1\nret \xff", None),
        "line 2, column 5: byte 0xff is not text (UTF-8)"
    );
}

#[oracle::test]
fn a_named_form_may_be_without_instructions() {
    let empty = [
        (Form::Raw(ByteOrder::Little), ""),
        (Form::Dump, "\n"),
        (Form::CArray, ""),
        (Form::Decimal, "0\n"),
        (Form::OneLine, "0,"),
        (Form::Asm, "; nothing\n"),
    ];
    for (form, input) in empty {
        assert_eq!(read(input.as_bytes(), Some(form)), Ok(vec![]), "{form:?}");
    }
}

/// What people paste, beside what tools print.
#[oracle::test]
fn notations_at_the_edge_are_read() {
    let program =
        |input: &str, form| read(input.as_bytes(), form).unwrap_or_else(|e| panic!("{input}: {e}"));
    let accept = program("1,6 0 0 65535,", None);
    for input in [
        "1,6 0 0 65535",
        "1, 6 0 0 0xffff,\r\n",
        "1\n6 0 0 65535",
        "1\r\n6 0 0 65535\r\n",
        "{ 0x06, 0, 0, 0x0000ffff }",
        "{6,0,0,65535},",
        "static const struct sock_filter code[1] = {\n\t{ 0x06,  0,  0, 0x0000ffff }, // all\n};\n",
        "(000) ret      #65535\n",
        "(000) ret #0xffff",
        "\u{feff}ret #65535",
        "RET #0177777",
        "/* a */ ret #65535 // all",
        "a1: b: ret #65535",
    ] {
        assert_eq!(program(input, None), accept, "{input}");
    }
    let index = program("ldb [x + 12]\nldb [x + -12]", None);
    assert_eq!(program("ldb [x+12]\nldb [x-12]", None), index);
    let extension = program("ld #vlan_avail\nld #rand", None);
    assert_eq!(
        program("(000) ld [vlanp]\n(001) ld [random]", None),
        extension
    );
    assert_eq!(
        program("(000) ld [vlan_avail]\n(001) ld [rand]", None),
        extension
    );
}
