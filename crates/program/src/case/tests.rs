//! Reading and writing of cases, and error messages.

use super::*;

const TEXT: &str = r#"# counts
.program "count"
.section "xdp"
.type xdp
.attach_type xdp
.flags BPF_F_XDP_HAS_FRAGS 0x100
.license "GPL"
.kernel_version 0x6122c
.module "net_a"
.attach btf_id=7 module=1
.map "hits" type=array key=4 value=40 entries=1 flags=0x80 btf_value=1 btf=1
    .data size=40 01 0203
    .bytes 32 ff
    .frozen
.end
.map "outer" type=hash_of_maps key=4 value=4 entries=2
    .inner "outer.inner" type=array key=4 value=8 entries=1
    .entry 1 map 0
.end
.map "progs" type=prog_array key=4 value=4 entries=1
    .entry 0 program 3 "other"
.end
.extern "bpf_task_acquire" kfunc 2 type_id=3 weak btf 77 1
.btf
    [1] INT "unsigned \"int\"" size=4 bits_offset=0 nr_bits=32 encoding=0
    [2] FUNC_PROTO ret_type_id=1
        - "ctx" type_id=1
    [3] FUNC "count" type_id=2 linkage=global
    [4] STRUCT "s" size=8
        - "a" type_id=1 bits_offset=0 bitfield_size=3
        - "b" type_id=1 bits_offset=32
    [5] ENUM64 "e" size=8 signed=1
        - "LOW" val=-1
.end
.kernel "6.18.44" refused 13
    .log "R0 invalid mem access 'scalar'"
    .return 7
.end
.subprog "count"
.func_info 3
.file "count.c"
.line 4 2 "	return *hits; // \x01"
    r1 = map_idx_value(0, 4) ll
    if r1 == 0 goto out
    r0 = *(u64 *)(r1 + 0)
    .8byte 0x95
out:
.subprog "leaf"
    exit # done
"#;

#[test]
fn reading_a_written_case_yields_an_equal_program() {
    let case = Case::parse(TEXT).unwrap();
    let program = &case.program;
    assert_eq!((program.name(), program.insns().len()), ("count", 6));
    assert_eq!(program.expected_attach_type(), 37);
    assert_eq!(program.flags(), spec::programs::LoadFlags(0x120));
    let value = program.maps()[0].initial_value().unwrap();
    assert_eq!((value.size(), &value.to_vec()[..3]), (40, &[1, 2, 3][..]));
    assert_eq!(value.to_vec()[32], 0xff);
    assert!(program.maps()[0].is_frozen());
    assert_eq!(program.subprogs()[1].start, 5);
    let btf = program.btf().unwrap();
    let line = program.line_at(3).unwrap();
    assert_eq!(btf.string(line.text), "\treturn *hits; // \x01");
    assert_eq!(case.answers[0].errno, Some(13));
    let text = case.to_string();
    let again = Case::parse(&text).unwrap();
    assert_eq!(again.to_string(), text);
    assert_eq!(again.program, *program, "{text}");
}

#[test]
fn errors_name_the_line_and_the_expected_operand() {
    let error = |text: &str| Case::parse(text).expect_err(text).to_string();
    assert_eq!(
        error("exit"),
        "program type is missing: add a line such as .type xdp"
    );
    assert_eq!(
        error(".type xdq"),
        "line 1: expected a program type, as xdp, found \"xdq\""
    );
    assert_eq!(
        error(".type xdp\n.map \"m\" type=array\n"),
        "block .map lacks its .end"
    );
    assert_eq!(
        error(".type xdp\n\n.nothing 4"),
        "line 3: unknown directive .nothing"
    );
    assert_eq!(
        error(".license GPL"),
        "line 1: expected a licence in quotes, found \"GPL\""
    );
    assert!(error(".type xdp\nr0 = 1\nr0 == 2").starts_with("line 3, column 4: "));
    assert!(error(".license \"GPL").starts_with("line 1: string lacks its closing quote"));
    assert!(error(".btf\n[2] INT size=4").starts_with("line 2: expected ids"));
    assert!(error(".type xdp 5").starts_with("line 1: expected the end of the line"));
}

/// The program that is read from its written case.
fn again(program: &Program) -> Program {
    let text = Case::new(program.clone()).to_string();
    match Case::parse(&text) {
        Ok(case) => case.program,
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[test]
fn records_keep_their_slot_behind_a_wide_load() {
    let head = ".type xdp\n.btf\n.end\n";
    for records in [
        ".at 1\n.line 3 1 \"x\"",
        ".at 1\n.func_info 7",
        ".at 1\n.subprog \"inside\"",
        ".at 1\n.func_info 7\n.line 4 1 \"x\"\n.at 9\n.line 5 1 \"y\"",
    ] {
        let text = format!("{head}    r1 = 7 ll\n{records}\n    r0 = 0\n    exit\n");
        let program = Case::parse(&text).unwrap().program;
        let records = program.line_info().iter().map(|it| it.insn);
        let records = records.chain(program.func_info().iter().map(|it| it.insn));
        let mut records = records.chain(program.subprogs().iter().map(|it| it.start));
        assert!(records.any(|at| at == 1), "{text}");
        assert_eq!(again(&program), program, "{text}");
    }
    // A wide load whose second slot is not that of a load, and one without a second slot.
    let text = ".type xdp\n    .8byte 0x100000118\n    .8byte 0x500\n.at 1\n.func_info 1\n    exit\n    .8byte 0x18";
    let program = Case::parse(text).unwrap().program;
    assert_eq!(again(&program), program);
}

#[test]
fn lines_without_strings_state_offsets() {
    let text = ".type xdp\n.line 3 1 file=5 text=9\n    exit\n";
    let program = Case::parse(text).unwrap().program;
    assert!(program.btf().is_none());
    assert_eq!(program.line_info()[0].text, btf::StrOffset(9));
    assert_eq!(again(&program), program);
    let text = ".type xdp\n.btf\n.end\n.line 3 1 \"x\"\n.line 4 1 file=99 text=0\n    exit\n";
    let program = Case::parse(text).unwrap().program;
    assert_eq!(program.line_info()[1].file, btf::StrOffset(99));
    assert_eq!(again(&program), program);
    let error = Case::parse(".type xdp\n.line 3 1 file=5").unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("line 2: expected the line in quotes, or file=OFFSET"),
        "{error}"
    );
}

#[test]
fn a_stated_expected_attach_type_stays() {
    let text = ".type xdp\n.attach_type xdp\n.expected_attach_type 37\n    exit\n";
    let program = Case::parse(text).unwrap().program;
    assert_eq!(again(&program), program);
}

#[test]
fn target_programs_are_blocks() {
    let text = r#".program "replacement"
.type ext
.license "GPL"
.attach btf_id=3 module=0
.target
    .program "main"
    .type xdp
    .map "m" type=array key=4 value=4 entries=1
    .end
    .attach btf_id=1 module=0
    .target
        .type tracing
    out:
        goto out
    .end
    .btf
        [1] INT "int" size=4 bits_offset=0 nr_bits=32 encoding=1
    .end
    .subprog "main"
        r0 = 2
        exit
.end
.kernel "6.18.44" accepted
.end
    r0 = 1
    exit
"#;
    let case = Case::parse(text).unwrap();
    let program = &case.program;
    assert_eq!(program.insns().len(), 2);
    let target = program.attach_target().unwrap();
    assert_eq!(target.btf_id, btf::TypeId(3));
    let target = target.program.as_ref().unwrap();
    assert_eq!((target.name(), target.maps().len()), ("main", 1));
    let of_target = target.attach_target().unwrap().program.as_ref().unwrap();
    assert_eq!(of_target.kind(), spec::programs::ProgramType::Tracing);
    assert_eq!(again(program), *program);
    assert_eq!(
        case.to_string(),
        Case::parse(&case.to_string()).unwrap().to_string()
    );
    let only_program = text.replacen(".attach btf_id=3 module=0\n", "", 1);
    let only_program = Case::parse(&only_program).unwrap().program;
    assert_eq!(again(&only_program), only_program);
}

#[test]
fn errors_in_target_programs_name_their_line() {
    let error = |text: &str| Case::parse(text).expect_err(text).to_string();
    let missing = error(".type ext\n.target\n    exit\n.end\n");
    assert!(
        missing.starts_with("line 2: program type is missing"),
        "{missing}"
    );
    let asm = error(".type ext\n.target\n.type xdp\n\n r0 == 1\n.end\n");
    assert!(asm.starts_with("line 5, column 5: "), "{asm}");
    let behind = error(".type ext\n.target\n.type xdp\n exit\n.end\n r0 == 1\n");
    assert!(behind.starts_with("line 6, column 5: "), "{behind}");
    assert_eq!(
        error(".type ext\n.target\n"),
        "block .target lacks its .end"
    );
    let twice = ".target\n.type xdp\n.end\n".repeat(2);
    assert!(error(&twice).starts_with("line 4: expected one .target"));
    let answer = error(".target\n.type xdp\n.kernel \"6.18\" accepted\n.end\n");
    assert!(
        answer.starts_with("line 3: .kernel within .target"),
        "{answer}"
    );
    assert!(error(&".target\n".repeat(100_000)).starts_with("line 9: more than 8 blocks"));
    assert!(error(".type xdp\n.end\n").starts_with("line 2: unknown directive .end"));
}

#[test]
fn the_documented_target_is_read() {
    let page = include_str!("../../../../docs/verify.md");
    let block = page
        .split("```text\n")
        .find(|it| it.starts_with(".type ext"));
    let block = block.unwrap().split("```").next().unwrap();
    let program = Case::parse(block).unwrap().program;
    let target = program.attach_target().unwrap();
    assert_eq!(target.program.as_ref().unwrap().func_info()[0].insn, 2);
    assert_eq!(again(&program), program);
}
