//! `beebox --version`: the release, the commit it was built from, the built-in kernels.

use std::sync::LazyLock;

/// Release and commit, and a line for the built-in kernels.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = match option_env!("BEEBOX_COMMIT") {
            Some(commit) => format!(" (commit {commit})"),
            None => String::new(),
        };
        let release = env!("CARGO_PKG_VERSION");
        let kernel = kernel_data::RELEASE;
        format!("{release}{commit}\nbuilt-in kernels: Linux 6.18 ({kernel}), 6.18-minimal")
    });
    &TEXT
}
