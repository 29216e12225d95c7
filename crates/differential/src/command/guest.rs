//! `cargo differential guest`: another command of this program inside Debian's Linux 6.18, which
//! verifies what trampolines, LSM and sched_ext run.
//!
//! `tools/kernels/vm` boots that kernel with a static build of this program and with the objects that
//! it reads, each where the program looks for it; the words of the command follow. Tables that
//! the command writes there go to the parts of the page that are about this kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use beebox_differential::page::write_part;

use super::Outcome;
use super::soak;
use super::verifier::PAGE;
use super::verifier::selftests::Options;

/// The kernel by the name that `tools/kernels/vm` has for it.
const KERNEL: &str = "6.18";
/// Commands with a table about that kernel, and the part of the page that it is.
const PARTS: [([&str; 2], &str); 2] = [
    (["compare", "log"], "logs 6.18.15"),
    (["compare", "messages"], "messages 6.18.15"),
];
/// Target of programs that need no library.
const STATIC: &str = "x86_64-unknown-linux-musl";
/// Options of the machine: memory, seconds until it is stopped, and page tables of four levels, whose
/// addresses begin as those in the logs of other machines.
const MACHINE: [&str; 6] = ["--memory", "5G", "--limit", "7200", "--append", "no5lvl"];

/// Runs a command of this program in the guest.
pub(super) fn run(words: &[String]) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut vm = Command::new(root.join("tools/kernels/vm"));
    vm.args(["run", KERNEL]).args(MACHINE);
    let mut put = |file: PathBuf, inside: &str| {
        let mut argument = OsString::from(file);
        argument.push(format!(":{inside}"));
        vm.arg("--put").arg(argument);
    };
    put(build(&root)?, "differential");
    for file in soak::OWN.iter().chain([&PAGE]) {
        put(root.join(file), &format!("tree/{file}"));
    }
    let options = Options::of_set("7.2/v3")?;
    let objects = options.objects(&options.sets[0])?;
    for object in objects {
        let inside = object.strip_prefix(oracle::cache())?.display();
        let inside = format!("cache/{inside}");
        put(object, &inside);
    }
    let manifest = env!("CARGO_MANIFEST_DIR");
    let script = format!(
        "mkdir -p {manifest} && cp -r tree/* {manifest}/../../ && export BEEBOX_CACHE=/job/cache && \
         ./differential {}",
        words.join(" ")
    );
    let done = vm.arg("--").arg(script).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    print!("{text}");
    if !done.status.success() {
        return Err("the command failed in the guest".into());
    }
    let part = PARTS.iter().find(|(command, _)| {
        let mut words = words.iter();
        command
            .iter()
            .all(|word| words.next().is_some_and(|given| given == word))
    });
    let lines = text.lines().filter(|line| line.starts_with('|'));
    let table: String = lines.map(|line| format!("{line}\n")).collect();
    match part {
        Some((_, part)) => write_part(PAGE, part, &table),
        None => Ok(()),
    }
}

/// Builds this program for a kernel without libraries beside it.
fn build(root: &Path) -> Outcome<PathBuf> {
    let directory = root.join("target/guest");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--locked",
            "--quiet",
            "--package",
            "beebox-differential",
        ])
        .args(["--target", STATIC, "--target-dir"])
        .arg(&directory)
        .current_dir(root)
        .status()?;
    match status.success() {
        true => Ok(directory.join(STATIC).join("debug/beebox-differential")),
        false => Err(format!("no static build: rustup target add {STATIC}").into()),
    }
}
