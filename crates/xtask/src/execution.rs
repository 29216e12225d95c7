//! `cargo xtask soak execution`: generated programs with maps on every engine for verified
//! programs, and a part of them in the running kernel.

use testkit::execution::{Equal, Machine, Setting, compare};

use crate::Outcome;

/// Programs if no number is given.
const PROGRAMS: u64 = 100_000;

/// Of so many programs, one runs in the kernel too, if no number is given.
const WITNESSED: u64 = 10;

/// Compares programs: `[PROGRAMS [SEED [WITNESSED]]]`.
pub(crate) fn compare_runs(numbers: &[&str]) -> Outcome {
    let read = |text: &&str| {
        let number = text.parse::<u64>();
        number.map_err(|_| format!("{text:?} is no number"))
    };
    let numbers = numbers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (programs, first, witnessed) = match numbers[..] {
        [] => (PROGRAMS, 0, WITNESSED),
        [programs] => (programs, 0, WITNESSED),
        [programs, seed] => (programs, seed, WITNESSED),
        [programs, seed, witnessed] if witnessed > 0 => (programs, seed, witnessed),
        _ => return Err("the soak takes PROGRAMS, SEED and WITNESSED, which is not 0".into()),
    };
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    let setting = Setting {
        kernel: &kernel,
        registry: &registry,
    };
    let machine = Machine::enter().map_err(|errno| format!("the running kernel: {errno}"))?;
    let mut sum = Equal::default();
    for number in 0..programs {
        let asks_kernel = number % witnessed == 0;
        let equal = compare(setting, &machine, first + number, asks_kernel)
            .map_err(|difference| difference.to_string())?;
        sum += equal;
        if (number + 1) % 1_000 == 0 {
            eprint!("\r{} programs", number + 1);
        }
    }
    eprintln!();
    println!("{programs} programs, {sum}");
    Ok(())
}
