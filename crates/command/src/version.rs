//! `beebox --version`: the release, the commit it was built from, the built-in kernels.

use std::sync::LazyLock;

use beebox::kernel::Preset;

/// Release and commit, and a line for the built-in kernels.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = match option_env!("BEEBOX_COMMIT") {
            Some(commit) => format!(" (commit {commit})"),
            None => String::new(),
        };
        let release = env!("CARGO_PKG_VERSION");
        let kernels: Vec<&str> = Preset::all().iter().map(|preset| preset.name()).collect();
        let kernels = kernels.join(", ");
        format!("{release}{commit}\nbuilt-in kernels: Linux {kernels}, 6.18-minimal")
    });
    &TEXT
}
