//! The committed list of helpers.

use beebox_differential::helpers;

#[oracle::test]
fn the_page_lists_what_is_built() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel_data::linux_6_18_registry(kernel.btf().unwrap());
    let page = include_str!("../../../docs/helpers.md");
    // The table of runs comes from another command.
    let (_, runs) = page.split_once("<!-- runs -->\n").expect("a part of runs");
    let (runs, _) = runs.split_once("<!-- /runs -->").expect("its end");
    assert_eq!(
        page,
        helpers::page(&registry, runs),
        "`cargo xtask helpers` writes it anew"
    );
}
