//! Selects the form of the interpreter: threaded where tail calls are certain to become
//! jumps (LLVM makes them at optimisation levels 2 and 3 if no address of a local variable
//! escapes before the call, without a promise: a test runs 10⁸ operations), a dispatch loop
//! everywhere else, where the stack would grow with the run: at other levels, with debug
//! assertions (their pointer checks take addresses), in Miri, with sanitizers and coverage, and
//! where the six arguments of a handler are not all in registers (four are in those of Windows on
//! x86-64). The workspace builds this crate at level 2 without debug assertions in the profiles
//! `dev` and `test`, so that tests run the threaded form.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(threaded)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let has_tail_calls = std::env::var("OPT_LEVEL").is_ok_and(|level| level == "2" || level == "3");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // For the test that demands the threaded form: cargo sets the variable here only, with
    // flags separated by U+001F.
    println!(
        "cargo::rustc-env=INTERP_RUSTFLAGS={}",
        flags.replace('\u{1f}', " ")
    );
    let is_instrumented = ["sanitizer", "instrument-coverage", "sancov", "opt-level"]
        .iter()
        .any(|flag| flags.contains(flag));
    let has_assertions = std::env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some();
    let is_miri = std::env::var_os("CARGO_CFG_MIRI").is_some();
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let has_registers = match &*target("ARCH") {
        "x86_64" => target("OS") != "windows",
        arch => arch == "aarch64",
    };
    let is_certain = has_tail_calls && !has_assertions && !is_instrumented && !is_miri;
    if is_certain && has_registers {
        println!("cargo::rustc-cfg=threaded");
    }
}
