//! Helpers in the checked engine and in the running kernel: equal results, packets,
//! contexts and errors.

use crate::support;
use beebox_differential::helpers::families;

#[oracle::test]
fn helpers_do_what_those_of_linux_do() {
    support::assert_equal_answers("helpers of the running kernel", 28, families(), 25_000);
}
