//! Every instruction on every engine: the cases, and the page that counts them.
//!
//! The cases are data: rows of one instruction each (`rows/`, read by
//! `case.rs`) and whole programs (`programs.txt`, read by `program.rs`). Where
//! what they expect comes from stands at the head of each file; none of it comes
//! from an engine. With UPDATE_EXPECT in the environment, which
//! `cargo xtask conformance` sets, the page is written instead of compared.

mod case;
mod engines;
mod page;
mod program;

use case::Row;
use engines::{Answer, ENGINES, Engine, Setting};
use page::{Page, Verdict};
use program::{Expected, Program};

use crate::support::{HAS_NATIVE_CODE, native_code};

const ROWS: &[(&str, &str)] = &[
    (
        "arithmetic.txt",
        include_str!("conformance/rows/arithmetic.txt"),
    ),
    (
        "branches.txt",
        include_str!("conformance/rows/branches.txt"),
    ),
    ("memory.txt", include_str!("conformance/rows/memory.txt")),
    ("atomics.txt", include_str!("conformance/rows/atomics.txt")),
    (
        "refused_by_linux.txt",
        include_str!("conformance/rows/refused_by_linux.txt"),
    ),
    (
        "address_space.txt",
        include_str!("conformance/rows/address_space.txt"),
    ),
];
const PROGRAMS: &str = include_str!("conformance/programs.txt");

#[oracle::test]
fn every_case_is_the_same_on_every_engine_and_on_the_page() {
    let rows: Vec<Row> = ROWS
        .iter()
        .flat_map(|(name, text)| case::parse_file(name, text))
        .collect();
    let programs = program::parse_file("programs.txt", PROGRAMS);
    assert!(rows.len() > 1_500, "{} rows", rows.len());
    let mut page = Page::new();
    let mut wrong = Vec::new();
    let runs_here = |engine: &&Engine| engine.name != "native" || HAS_NATIVE_CODE;
    for engine in ENGINES.iter().filter(runs_here) {
        for row in &rows {
            let verdict = verdict_of_row(engine, row);
            note(&mut wrong, engine, &row.place, &verdict);
            page.count(engine.name, &[row.op()], &verdict);
        }
        for program in &programs {
            let verdict = verdict_of_program(engine, program);
            note(&mut wrong, engine, &program.place, &verdict);
            page.count(engine.name, &program.ops, &verdict);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    if native_code("the page of conformance") {
        page.check_coverage();
        page.compare();
    }
}

fn note(wrong: &mut Vec<String>, engine: &Engine, place: &str, verdict: &Verdict) {
    if let Verdict::Wrong(how) = verdict {
        wrong.push(format!("{} on {place}: {how}", engine.name));
    }
}

fn verdict_of_row(engine: &Engine, row: &Row) -> Verdict {
    let mut memory = row.memory();
    let program = row.program();
    let setting = Setting {
        program: &program,
        packet: None,
        indirect_jumps: false,
    };
    // SAFETY: a row's program touches its stack and the memory it was made for,
    // and ends; Linux's verifier took those that it can be asked about.
    let answer = unsafe { engine.run(&setting, &mut memory) };
    match answer {
        Answer::Refused => Verdict::Refused,
        Answer::Trapped(trap) => Verdict::Wrong(trap.to_string()),
        Answer::Returned(_) => match row.check(&memory) {
            Ok(()) => Verdict::Right,
            Err(how) => Verdict::Wrong(how),
        },
    }
}

fn verdict_of_program(engine: &Engine, program: &Program) -> Verdict {
    if !engine.is_checked && matches!(program.expected, Expected::Trapped(..)) {
        return Verdict::NotAsked;
    }
    let mut memory = program.memory.clone();
    let setting = Setting {
        program: &program.insns,
        packet: program.packet.as_deref(),
        indirect_jumps: program.indirect_jumps,
    };
    // SAFETY: a program that should trap runs on an engine that checks only; the
    // others do nothing wrong.
    let found = match unsafe { engine.run(&setting, &mut memory) } {
        Answer::Refused => return Verdict::Refused,
        Answer::Returned(value) => Expected::Returned(value, memory),
        Answer::Trapped(trap) => Expected::Trapped(trap.reason.name().to_owned(), trap.at),
    };
    match found == program.expected {
        true => Verdict::Right,
        false => Verdict::Wrong(format!("{found:x?}, not {:x?}", program.expected)),
    }
}
