//! The option of logs as the kernel writes them.

/// Which logs are printed.
#[derive(clap::Args)]
pub(crate) struct LogLevelArg {
    /// Bits of the kernel's log level: 1 the path that leads to the refusal, 2 every
    /// instruction, 4 statistics
    #[arg(
        short = 'l',
        long = "log",
        visible_alias = "log-level",
        value_name = "LEVEL",
        value_parser = clap::value_parser!(u32).range(0..=15),
        default_value_t = 0
    )]
    pub(crate) log: u32,
}
