//! Kfuncs in the checked engine and in the running kernel: equal results, packets, memory and
//! errors.

use crate::support;
use beebox_differential::helpers::kfunc_families;

#[oracle::test]
fn kfuncs_do_what_those_of_linux_do() {
    support::assert_equal_answers("kfuncs of the running kernel", 18, kfunc_families(), 5_000);
}
