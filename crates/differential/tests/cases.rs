//! The models against the kernel's recorded answers: runs anywhere.

use beebox_differential::classic::cases::{Case, parse};

#[oracle::test]
fn the_kernels_recorded_answers_hold() {
    let text = include_str!("../../testkit/cases/classic-linux-6.18.txt");
    let cases = parse(text).expect("the file of cases is well formed");
    assert!(cases.len() > 500, "only {} cases", cases.len());
    for case in &cases {
        assert!(case.holds(), "the kernel answered otherwise: {case}");
        assert_eq!(case.to_string().parse(), Ok(case.clone()));
    }
}

#[oracle::test]
fn a_wrong_answer_is_detected() {
    let wrong: Case = "2,48 0 0 1,22 0 0 0 | 0a0b=0xc".parse().expect("a case");
    assert!(!wrong.holds());
    let right: Case = "2,48 0 0 1,22 0 0 0 | 0a0b=0xb".parse().expect("a case");
    assert!(right.holds());
}
