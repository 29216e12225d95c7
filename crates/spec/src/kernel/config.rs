//! A kernel's configuration: lines `CONFIG_NAME=value`, as in `/proc/config.gz`.

/// The configuration of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig(String);

impl KernelConfig {
    /// The configuration that a text states.
    pub fn new(text: impl Into<String>) -> KernelConfig {
        KernelConfig(text.into())
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value of the first line of that name: `y`, `m`, a number, or a text in
    /// quotes. `None` for an option that is not set. Cost: a pass over the text.
    pub fn value(&self, option: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
    }

    /// True if an option is `y` or `m`.
    pub fn is_set(&self, option: &str) -> bool {
        matches!(self.value(option), Some("y" | "m"))
    }

    /// The compiler that built the kernel, as it names itself.
    pub fn compiler(&self) -> Option<&str> {
        Some(self.value("CONFIG_CC_VERSION_TEXT")?.trim_matches('"'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values() {
        let config = KernelConfig::new(
            "# CONFIG_A is not set\nCONFIG_AB=y\nCONFIG_B=m\nCONFIG_HZ=250\n\
             CONFIG_CC_VERSION_TEXT=\"gcc 12\"\n",
        );
        assert_eq!(config.value("CONFIG_HZ"), Some("250"));
        assert_eq!(config.value("CONFIG_A"), None);
        assert!(config.is_set("CONFIG_AB") && config.is_set("CONFIG_B"));
        assert!(!config.is_set("CONFIG_HZ") && !config.is_set("CONFIG_A"));
        assert_eq!(config.compiler(), Some("gcc 12"));
    }
}
