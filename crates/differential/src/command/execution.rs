//! `cargo differential soak execution`: generated programs with maps on every engine for verified
//! programs, and a part of them in the running kernel.

use beebox_differential::execution::{Equal, Machine, Setting, compare};

use crate::command::Outcome;

/// Compares programs from a seed on; of so many `witnessed`, one runs in the kernel too.
pub(crate) fn compare_runs(programs: u64, first: u64, witnessed: u64) -> Outcome {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
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
