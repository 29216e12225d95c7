//! Compiles `guest/loader.rs`, the first process of a kernel that is asked about programs, for x86-64
//! Linux: a static program without libraries, which needs nothing but the compiler that builds this
//! crate. Where that does not work (another processor or system, a compiler that only checks), the
//! library has no loader, and says so when a kernel is asked.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=guest/loader.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let made = Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("guest-loader");
    if compile(&made).is_none() {
        // The library has what is there.
        fs::write(&made, []).expect("the directory of the build is written to");
    }
}

/// Compiles the loader; `None` if it cannot be compiled here.
fn compile(made: &Path) -> Option<()> {
    let target = env::var("TARGET").ok()?;
    if !(target.starts_with("x86_64-") && target.contains("-linux-")) {
        return None;
    }
    let mut compiler = Command::new(env::var_os("RUSTC")?);
    compiler
        .args([
            "guest/loader.rs",
            "--edition",
            "2024",
            "--crate-name",
            "loader",
        ])
        .args(["--crate-type", "bin", "--target", &target, "-o"])
        .arg(made);
    // Of musl, its start-up code is left out; of others, the linker that comes with the compiler counts.
    if target.ends_with("-musl") {
        compiler.args(["-C", "link-self-contained=no"]);
    }
    for option in [
        "opt-level=s",
        "panic=abort",
        "relocation-model=static",
        "strip=symbols",
        "link-arg=-nostdlib",
        "link-arg=-nostartfiles",
        "link-arg=-static",
    ] {
        compiler.args(["-C", option]);
    }
    let done = compiler.output().ok()?;
    done.status.success().then_some(())
}
