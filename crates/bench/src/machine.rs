//! Description of the machine, without its host name.

use std::fs;
use std::thread;

/// Processor model, how many of its cores are ours, and the kernel's release.
pub(crate) fn description() -> String {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What its builder appended says nothing about speed.
    let release = match release.trim().split('-').next().unwrap_or_default() {
        "" => "an unknown kernel".into(),
        release => format!("Linux {release}"),
    };
    let plural = if cores == 1 { "core" } else { "cores" };
    format!("{}, {cores} {plural}, {release}", processor())
}

fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| matches!(key.trim(), "model name" | "Model" | "cpu model"))
        .map_or_else(
            || format!("unknown {} processor", std::env::consts::ARCH),
            |(_, model)| model.trim().to_string(),
        )
}
