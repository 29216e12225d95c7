//! The committed list of helpers.

use beebox_testkit::helpers;

#[test]
fn the_page_lists_what_is_built() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel_data::linux_6_18_registry(kernel.btf().unwrap());
    assert_eq!(
        include_str!("../../../docs/helpers.md"),
        helpers::page(&registry),
        "`cargo xtask helpers` writes it anew"
    );
}
