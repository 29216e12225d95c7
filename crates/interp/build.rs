//! Chooses the form of the interpreter: threaded where the compiler turns a call
//! in tail position into a jump (any optimised build), a plain loop elsewhere
//! (unoptimised, Miri, sanitizers, coverage), where the stack would grow.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(threaded)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let optimised = std::env::var("OPT_LEVEL").is_ok_and(|level| level != "0");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let instrumented = ["sanitizer", "instrument-coverage", "sancov"]
        .iter()
        .any(|flag| flags.contains(flag));
    let miri = std::env::var_os("CARGO_CFG_MIRI").is_some();
    let tail_calls = std::env::var("CARGO_CFG_TARGET_ARCH")
        .is_ok_and(|arch| arch == "x86_64" || arch == "aarch64");
    if optimised && !instrumented && !miri && tail_calls {
        println!("cargo::rustc-cfg=threaded");
    }
}
