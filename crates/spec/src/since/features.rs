//! Features of kernels other than helpers, kfuncs, map kinds and program types.

use super::{Release, Since};
use crate::programs::{AttachType, HookKind, ProgramType, Sleeps};

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $major:literal $minor:literal $commit:literal, $name:literal;)*) => {
        /// Feature that programs use, with the release that introduced it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($(#[$doc])* $feature,)*
        }

        impl Feature {
            /// Every feature.
            pub const ALL: &'static [Feature] = &[$(Feature::$feature,)*];

            /// Usual name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$feature => $name,)*
                }
            }

            /// Release that introduced the feature.
            pub const fn since(self) -> Since {
                match self {
                    $(Feature::$feature => Since::commit($major, $minor, $commit),)*
                }
            }
        }
    };
}

// Release, the commit that brought it, and its name.
features! {
    // Instructions
    /// Programs loaded by bpf(2), with the first instruction set.
    Programs = 3 18 "09756af46893", "bpf(2) programs";
    /// Conditional jumps on less than.
    JumpLess = 4 14 "92b31a9af73b", "jumps on less";
    /// Calls of subprograms (pseudo calls).
    LocalCalls = 4 16 "cc8b0b92a169", "calls of subprograms";
    /// Conditional jumps on 32-bit registers.
    Jump32 = 5 1 "092ed0968bb6", "32-bit jumps";
    /// Addresses of map values in ld_imm64: global variables.
    GlobalData = 5 2 "d8eca5bbb2be", "global data";
    /// Typed ksyms: kernel variables by BTF id.
    TypedKsyms = 5 10 "4976b718c355", "typed ksyms";
    /// Typed ksyms of modules.
    ModuleKsyms = 5 12 "541c3bad8dc5", "ksyms of modules";
    /// Atomic additions that return the old value.
    AtomicFetch = 5 12 "5ca419f2864a", "atomic fetch";
    /// Atomic and, or and exclusive or.
    AtomicBits = 5 12 "981f94c3e921", "atomic and, or, xor";
    /// Atomic exchanges.
    AtomicExchange = 5 12 "5ffa25502b5a", "atomic exchange";
    /// Calls of kfuncs.
    Kfuncs = 5 13 "e6ac2450d6de", "kfunc calls";
    /// Callbacks: functions of the program as arguments.
    Callbacks = 5 13 "69c087ba6225", "callbacks";
    /// Maps by index in `fd_array`.
    MapIndex = 5 14 "387544bfa291", "maps by index";
    /// Calls of kfuncs of modules.
    ModuleKfuncs = 5 16 "2357672c54c3", "kfuncs of modules";
    /// Sign-extending loads.
    SignedLoads = 6 6 "1f9a1ea821ff", "sign-extending loads";
    /// Sign-extending moves.
    SignedMoves = 6 6 "8100928c8814", "sign-extending moves";
    /// Unconditional byte swaps.
    ByteSwap = 6 6 "0845c3db7bf5", "bswap";
    /// Signed division and modulo.
    SignedDivision = 6 6 "ec0e2da95f72", "signed division";
    /// Jumps with 32-bit offsets.
    LongJumps = 6 6 "4cd58e9af8b9", "gotol";
    /// Jumps that end a loop after an iteration or time limit.
    MayGoto = 6 9 "011832b97b31", "may_goto";
    /// Casts between kernel and arena address spaces.
    AddressSpaces = 6 9 "6082b6c328b5", "addr_space_cast";
    /// Load-acquire and store-release.
    OrderedAccess = 6 15 "880442305a39", "load-acquire, store-release";
    /// Indirect jumps through a register.
    IndirectJumps = 6 19 "493d9e0d6083", "gotox";

    // The form of programs
    /// Programs of more than 4,096 instructions.
    LongPrograms = 5 2 "c04c0d2b968a", "more than 4096 instructions";
    /// Bounded loops: back edges.
    Loops = 5 3 "2589726d12a1", "bounded loops";
    /// Tail calls in programs with subprograms.
    TailCallsWithCalls = 5 10 "e411901c0b77", "tail calls beside subprograms";

    // Program properties
    /// Sleepable tracing and LSM programs.
    Sleepable = 5 10 "1e6c62a88215", "sleepable programs";
    /// Sleepable iterators.
    SleepableIterators = 5 18 "b77fb25dcb34", "sleepable iterators";
    /// Sleepable uprobes.
    SleepableUprobes = 6 0 "8c7dcb84e3b7", "sleepable uprobes";
    /// Sleepable struct_ops programs.
    SleepableStructOps = 6 3 "1e12d3ef47d2", "sleepable struct_ops";
    /// Sleepable tracepoint programs.
    SleepableTracepoints = 7 2 "439ebd5b5708", "sleepable tracepoints";
    /// XDP programs on frames with fragments.
    XdpFragments = 5 18 "c2f2cdbeffda", "XDP fragments";
    /// Tracing programs on functions of modules.
    ModuleFunctions = 5 11 "290248a5b7d8", "attaching to modules";

    // Maps
    /// Map parameter `map_extra`.
    MapExtra = 5 16 "9330986c0300", "map_extra";
    /// struct_ops maps registered by a link.
    StructOpsLinks = 6 4 "68b04864ca42", "struct_ops links";
    /// struct_ops types of modules.
    ModuleStructOps = 6 9 "fcc2c1fb0651", "struct_ops of modules";
    /// HID devices (`struct hid_bpf_ops`).
    HidOps = 6 11 "ebc0d8093e8c", "hid_bpf_ops";
    /// Schedulers (`struct sched_ext_ops`).
    SchedExt = 6 12 "f0e1a0643a59", "sched_ext_ops";
    /// Queueing disciplines (`struct Qdisc_ops`).
    QdiscOps = 6 16 "c8240344956e", "Qdisc_ops";

    // Special fields of map values
    /// `struct bpf_spin_lock`.
    SpinLocks = 5 1 "d83525ca62cf", "bpf_spin_lock in values";
    /// `struct bpf_timer`.
    Timers = 5 15 "b00628b1c7d5", "bpf_timer in values";
    /// Pointers to kernel objects (`__kptr`, `__kptr_untrusted`).
    KernelPointers = 5 19 "61df10c7799e", "kptr in values";
    /// `struct bpf_list_head`.
    Lists = 6 2 "f0c5941ff5b2", "bpf_list_head in values";
    /// `struct bpf_rb_root`.
    Trees = 6 3 "9c395c1b99bd", "bpf_rb_root in values";
    /// `struct bpf_refcount`.
    Refcounts = 6 4 "d54730b50bae", "bpf_refcount in values";
    /// Pointers to per-CPU objects (`__percpu_kptr`).
    PercpuPointers = 6 7 "55db92f42fe4", "percpu kptr in values";
    /// `struct bpf_wq`.
    WorkQueues = 6 10 "d56b63cf0c0f", "bpf_wq in values";
    /// Pointers to user memory (`__uptr`).
    UserPointers = 6 13 "1cb80d9e93f8", "uptr in values";
    /// `struct bpf_res_spin_lock`.
    ResilientLocks = 6 15 "0de2046137f9", "bpf_res_spin_lock in values";
    /// `struct bpf_task_work`.
    TaskWork = 6 18 "38aa7003e369", "bpf_task_work in values";
}

impl Feature {
    /// Feature that a sleepable program of this type requires; `None` if all programs of the
    /// type are sleepable.
    pub fn of_sleepable(kind: ProgramType, attach: Option<AttachType>) -> Option<Feature> {
        match kind.sleeps() {
            Sleeps::Always => None,
            Sleeps::Since(feature) => Some(feature),
            Sleeps::ByHook => Some(
                HookKind::of(attach)
                    .sleepable()
                    .unwrap_or(Feature::Sleepable),
            ),
            Sleeps::Never => Some(Feature::Sleepable),
        }
    }

    /// True if kernels of a release have it.
    pub fn is_in(self, release: Release) -> bool {
        self.since().release <= release || self.backports().contains(&release)
    }

    /// Earlier releases whose stable versions got the feature; from which version on is not known.
    pub const fn backports(self) -> &'static [Release] {
        match self {
            // 6.1.192 has it, as the recorded answers of tools/kernels show.
            Feature::LongJumps => &[Release { major: 6, minor: 1 }],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::since::IntroducedBy;

    #[test]
    fn every_feature_has_a_name_and_a_commit_of_its_own() {
        let first = Release {
            major: 3,
            minor: 18,
        };
        let mut names: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Feature::ALL.len());
        for feature in Feature::ALL {
            let since = feature.since();
            assert!(since.release >= first);
            let IntroducedBy::Commit(commit) = since.source else {
                panic!("{feature:?} has no commit")
            };
            assert!(commit.len() == 12 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()));
        }
    }
}
