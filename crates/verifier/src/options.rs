//! Options of a verification.

/// Options of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bits of the kernel's `log_level`: 1 final path, 2 every instruction, 4 statistics.
    pub log_level: u32,
    /// Skip precision requests for what is precise or already requested.
    #[doc(hidden)]
    pub precision_skip: bool,
    /// Count what each instruction costs ([`Cost`](crate::Cost)).
    #[doc(hidden)]
    pub collect_cost: bool,
    /// Collect facts for a compiler ([`ProgramFacts`](crate::ProgramFacts)).
    #[doc(hidden)]
    pub collect_facts: bool,
    /// Take the rules of [`RULES`](crate::RULES) for a kernel of another release, whose
    /// verdict is otherwise [`Unsupported`](crate::Verdict::Unsupported). What that release
    /// lacks is refused in any case.
    pub assume_rules: bool,
    /// Processed instructions after which the verification is given up, unsupported.
    #[doc(hidden)]
    pub most_insns: u32,
    /// Switches that must not change the verdict.
    #[doc(hidden)]
    pub stress: Stress,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            log_level: 0,
            precision_skip: true,
            collect_cost: false,
            collect_facts: false,
            assume_rules: false,
            most_insns: spec::limits::INSNS_PROCESSED,
            stress: Stress::default(),
        }
    }
}

/// Switches for tests: each is a free oracle, as the verdict must not change by it except
/// by the complexity limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stress {
    /// Never prune.
    pub no_pruning: bool,
    /// Every scalar is precise from the start.
    pub all_precise: bool,
    /// A checkpoint at every instruction.
    pub checkpoint_everywhere: bool,
    /// Check the invariants of every register after every instruction.
    pub assert_invariants: bool,
}
