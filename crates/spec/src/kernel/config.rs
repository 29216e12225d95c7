//! Kernel configuration: lines `CONFIG_NAME=value`, as in `/proc/config.gz`.

/// Configuration of a kernel (kconfig).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig(String);

impl KernelConfig {
    /// Configuration with this text.
    pub fn new(text: impl Into<String>) -> KernelConfig {
        KernelConfig(text.into())
    }

    /// Text of the configuration.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Value of an option: `y`, `m`, a number or a quoted string; that of the first line
    /// with the name. `None` if it is not set. Linear in the text.
    pub fn value(&self, option: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
    }

    /// True if an option is `y` or `m`.
    pub fn is_set(&self, option: &str) -> bool {
        matches!(self.value(option), Some("y" | "m"))
    }

    /// Compiler that built the kernel (`CONFIG_CC_VERSION_TEXT`).
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
