//! Kernel configuration: lines `CONFIG_NAME=value`, as in `/proc/config.gz`.

use super::KernelVersion;

/// Number of lines among which the heading is.
const HEADING_LINES: usize = 10;

/// Configuration of a kernel (kconfig).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    text: String,
    cpus: Option<u32>,
}

impl KernelConfig {
    /// Configuration with this text.
    pub fn new(text: impl Into<String>) -> KernelConfig {
        let mut config = KernelConfig {
            text: text.into(),
            cpus: None,
        };
        let cpus = config.value("CONFIG_NR_CPUS");
        config.cpus = cpus.and_then(|cpus| cpus.parse().ok());
        config
    }

    /// Configuration with this text; `None` if no line of it states an option, as
    /// `CONFIG_NAME=value` or `# CONFIG_NAME is not set`.
    pub fn parse(text: impl Into<String>) -> Option<KernelConfig> {
        let text = text.into();
        let is_option = |line: &str| {
            line.starts_with("CONFIG_") && line.contains('=')
                || line.starts_with("# CONFIG_") && line.ends_with(" is not set")
        };
        let states = text.lines().any(is_option);
        states.then(|| KernelConfig::new(text))
    }

    /// Version in the heading `# Linux/x86 6.18.44 Kernel Configuration`.
    pub fn version(&self) -> Option<KernelVersion> {
        let mut lines = self.text.lines().take(HEADING_LINES);
        lines.find_map(|line| {
            let heading = line.strip_prefix("# Linux/")?;
            let (_, release) = heading
                .strip_suffix(" Kernel Configuration")?
                .split_once(' ')?;
            release.parse().ok()
        })
    }

    /// Text of the configuration.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Value of an option: `y`, `m`, a number or a quoted string; that of the first line
    /// with the name. `None` if it is not set. Linear in the text.
    pub fn value(&self, option: &str) -> Option<&str> {
        let mut lines = self.text.lines();
        lines.find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
    }

    /// True if an option is `y` or `m`.
    pub fn is_set(&self, option: &str) -> bool {
        matches!(self.value(option), Some("y" | "m"))
    }

    /// True if libbpf finds that system calls take their arguments in a structure: it looks for
    /// their wrappers with a kprobe.
    pub fn has_syscall_wrapper(&self) -> bool {
        self.is_set("CONFIG_ARCH_HAS_SYSCALL_WRAPPER") && self.is_set("CONFIG_KPROBE_EVENTS")
    }

    /// CPUs that the kernel is built for (`CONFIG_NR_CPUS`); `None` if it says none.
    pub fn cpus(&self) -> Option<u32> {
        self.cpus
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

    #[test]
    fn the_heading_states_the_version() {
        let of = |text: &str| KernelConfig::new(text).version();
        let heading = "#\n# Automatically generated file; DO NOT EDIT.\n\
                       # Linux/x86 5.15.7 Kernel Configuration\n#\nCONFIG_HZ=250\n";
        assert_eq!(of(heading), Some(KernelVersion::new(5, 15, 7)));
        assert_eq!(
            of("# Linux/x86_64 4.4.0-21 Kernel Configuration"),
            Some(KernelVersion::new(4, 4, 0))
        );
        assert_eq!(of("CONFIG_HZ=250\n"), None);
    }

    #[test]
    fn text_without_options_is_no_configuration() {
        assert!(KernelConfig::parse("CONFIG_HZ=250\n").is_some());
        assert!(KernelConfig::parse("\n# CONFIG_A is not set\n").is_some());
        assert!(KernelConfig::parse("# Kernels\nCONFIG_ options\n").is_none());
        assert!(KernelConfig::parse("").is_none());
    }
}
