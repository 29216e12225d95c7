//! `beebox --version`: the release, the commit it was built from, the built-in kernels.

use std::sync::LazyLock;

/// Release and commit, and a line for the built-in kernels.
pub(crate) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = match option_env!("BEEBOX_COMMIT") {
            Some(commit) => format!(" (commit {commit})"),
            None => String::new(),
        };
        let release = env!("CARGO_PKG_VERSION");
        format!("{release}{commit}\nbuilt-in kernels: Linux {}", kernel())
    });
    &TEXT
}

/// The release of the built-in kernel.
fn kernel() -> String {
    let version = profile::Profile::linux_6_18().version();
    format!("{}.{}", version >> 16, version >> 8 & 0xff)
}
