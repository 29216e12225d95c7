//! The description of the running kernel.

use beebox_sys::kernel::running;
use spec::kernel::SymbolAddress;

#[oracle::test]
fn the_running_kernel_describes_itself() {
    let Some(kernel) = oracle::found("BTF of the running kernel", running()) else {
        return;
    };
    assert!(kernel.version_code() >= 5 << 16 && kernel.cpus() > 0);
    assert!(kernel.btf().is_some_and(|btf| btf.len() > 1000));
    let symbols = kernel.symbols().expect("a way to look them up");
    assert_eq!(symbols.address("no such symbol"), SymbolAddress::Missing);
}
