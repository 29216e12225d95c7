//! `cargo xtask soak execution`: generated programs with maps on every engine for verified
//! programs, and a part of them in the running kernel.

use testkit::execution::{Equal, Setting, compare};

use crate::Outcome;

/// Programs if no number is given.
const PROGRAMS: u64 = 100_000;

/// Of so many programs, one runs in the kernel too.
const WITNESSED: u64 = 10;

/// Compares programs: `[PROGRAMS [SEED]]`.
pub(crate) fn compare_runs(numbers: &[&str]) -> Outcome {
    let read = |text: &&str| {
        let number = text.parse::<u64>();
        number.map_err(|_| format!("{text:?} is no number"))
    };
    let numbers = numbers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (programs, first) = match numbers[..] {
        [] => (PROGRAMS, 0),
        [programs] => (programs, 0),
        [programs, seed] => (programs, seed),
        _ => return Err("a soak takes PROGRAMS and SEED".into()),
    };
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    let setting = Setting {
        kernel: &kernel,
        registry: &registry,
    };
    let mut sum = Equal::default();
    for number in 0..programs {
        let asks_kernel = number % WITNESSED == 0;
        let equal = compare(setting, first + number, asks_kernel)
            .map_err(|difference| difference.to_string())?;
        sum.runs += equal.runs;
        sum.witnessed += equal.witnessed;
        if (number + 1) % 1_000 == 0 {
            eprint!("\r{} programs", number + 1);
        }
    }
    eprintln!();
    println!(
        "{programs} programs, {} runs as native code equal those in the checked engine, {} \
         those in the running kernel",
        sum.runs, sum.witnessed
    );
    Ok(())
}
