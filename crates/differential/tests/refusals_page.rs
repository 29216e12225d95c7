//! The committed page of the most frequent refusals.

use beebox_differential::refusals;

#[oracle::test]
fn the_page_is_what_the_programs_give() {
    let page = include_str!("../../../docs/refusals.md");
    let made = refusals::page().expect("a page");
    assert_eq!(page, made, "`cargo xtask refusals` writes it anew");
    assert!(page.matches("\n## ").count() >= 40);
}
