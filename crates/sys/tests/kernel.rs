//! The description of the running kernel.

use beebox_sys::kernel::running;
use spec::Errno;
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

#[oracle::test]
fn error_numbers_are_those_of_the_headers() {
    let files = ["errno-base.h", "errno.h"]
        .map(|name| std::fs::read_to_string(format!("/usr/include/asm-generic/{name}")));
    let [Ok(base), Ok(others)] = files else {
        return oracle::skip("error numbers", "no /usr/include/asm-generic/errno.h");
    };
    let mut defined = Vec::new();
    for line in base.lines().chain(others.lines()) {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(value)) =
            (words.next(), words.next(), words.next())
        {
            // Some are other names of those before them.
            let number = value.parse().map(Errno).ok().or(Errno::from_name(value));
            assert_eq!(Errno::from_name(name), number, "{name}");
            defined.extend(number);
        }
    }
    defined.sort_unstable();
    defined.dedup();
    let named: Vec<Errno> = (0..=133)
        .map(Errno)
        .filter(|number| number.name().is_some())
        .collect();
    assert_eq!(named, defined);
}
