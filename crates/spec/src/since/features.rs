//! What kernels learned beside helpers, kinds and types.

use super::Since;

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $major:literal $minor:literal $commit:literal, $name:literal;)*) => {
        /// Something that programs use and that kernels have since some release.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($(#[$doc])* $feature,)*
        }

        impl Feature {
            /// Every feature.
            pub const ALL: &'static [Feature] = &[$(Feature::$feature,)*];

            /// What people call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$feature => $name,)*
                }
            }

            /// What brought it.
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
    /// Jumps on less than, beside those on greater than.
    JumpLess = 4 14 "92b31a9af73b", "jumps on less";
    /// Calls of functions of the same program.
    LocalCalls = 4 16 "cc8b0b92a169", "calls of subprograms";
    /// Jumps on the lower half of registers.
    Jump32 = 5 1 "092ed0968bb6", "32-bit jumps";
    /// Addresses in the value of a map: global variables.
    GlobalData = 5 2 "d8eca5bbb2be", "global data";
    /// Variables of the kernel, by their types.
    TypedKsyms = 5 10 "4976b718c355", "typed ksyms";
    /// Variables of modules, by their types.
    ModuleKsyms = 5 12 "541c3bad8dc5", "ksyms of modules";
    /// Atomic additions that return the old value.
    AtomicFetch = 5 12 "5ca419f2864a", "atomic fetch";
    /// Atomic and, or and exclusive or.
    AtomicBits = 5 12 "981f94c3e921", "atomic and, or, xor";
    /// Atomic exchanges.
    AtomicExchange = 5 12 "5ffa25502b5a", "atomic exchange";
    /// Calls of functions of the kernel.
    Kfuncs = 5 13 "e6ac2450d6de", "kfunc calls";
    /// Functions of the program as arguments of calls.
    Callbacks = 5 13 "69c087ba6225", "callbacks";
    /// Maps by their place in an array of descriptors.
    MapIndex = 5 14 "387544bfa291", "maps by index";
    /// Calls of functions of modules.
    ModuleKfuncs = 5 16 "2357672c54c3", "kfuncs of modules";
    /// Loads that extend the sign.
    SignedLoads = 6 6 "1f9a1ea821ff", "sign-extending loads";
    /// Moves that extend the sign.
    SignedMoves = 6 6 "8100928c8814", "sign-extending moves";
    /// Swaps of bytes whatever the order of the host.
    ByteSwap = 6 6 "0845c3db7bf5", "bswap";
    /// Division and remainder of signed numbers.
    SignedDivision = 6 6 "ec0e2da95f72", "signed division";
    /// Jumps over more than 32,767 instructions.
    LongJumps = 6 6 "4cd58e9af8b9", "gotol";
    /// Jumps that the kernel takes when a loop took too long.
    MayGoto = 6 9 "011832b97b31", "may_goto";
    /// Casts between the address spaces of a program and its arena.
    AddressSpaces = 6 9 "6082b6c328b5", "addr_space_cast";
    /// Loads and stores that order others.
    OrderedAccess = 6 15 "880442305a39", "load-acquire, store-release";
    /// Jumps to where a register says.
    IndirectJumps = 6 19 "493d9e0d6083", "gotox";

    // The form of programs
    /// Programs of more than 4,096 instructions.
    LongPrograms = 5 2 "c04c0d2b968a", "more than 4096 instructions";
    /// Jumps that form loops.
    Loops = 5 3 "2589726d12a1", "bounded loops";
    /// Tail calls in programs with subprograms.
    TailCallsWithCalls = 5 10 "e411901c0b77", "tail calls beside subprograms";

    // What is asked of programs
    /// Programs at functions and hooks that may sleep.
    Sleepable = 5 10 "1e6c62a88215", "sleepable programs";
    /// Iterators that may sleep.
    SleepableIterators = 5 18 "b77fb25dcb34", "sleepable iterators";
    /// Probes of user space that may sleep.
    SleepableUprobes = 6 0 "8c7dcb84e3b7", "sleepable uprobes";
    /// Functions of tables of the kernel that may sleep.
    SleepableStructOps = 6 3 "1e12d3ef47d2", "sleepable struct_ops";
    /// Programs at tracepoints that may sleep.
    SleepableTracepoints = 7 2 "439ebd5b5708", "sleepable tracepoints";
    /// XDP programs that work on frames in several pieces.
    XdpFragments = 5 18 "c2f2cdbeffda", "XDP fragments";
    /// Tracing programs at functions of modules.
    ModuleFunctions = 5 11 "290248a5b7d8", "attaching to modules";

    // Maps
    /// What a map is told beside its flags.
    MapExtra = 5 16 "9330986c0300", "map_extra";
    /// Tables of functions that a link registers.
    StructOpsLinks = 6 4 "68b04864ca42", "struct_ops links";
    /// Tables of functions of modules.
    ModuleStructOps = 6 9 "fcc2c1fb0651", "struct_ops of modules";
    /// Tables of functions of HID devices (`struct hid_bpf_ops`).
    HidOps = 6 11 "ebc0d8093e8c", "hid_bpf_ops";
    /// Schedulers (`struct sched_ext_ops`).
    SchedExt = 6 12 "f0e1a0643a59", "sched_ext_ops";
    /// Queueing disciplines (`struct Qdisc_ops`).
    QdiscOps = 6 16 "c8240344956e", "Qdisc_ops";

    // What the kernel finds in values of maps
    /// `struct bpf_spin_lock`.
    SpinLocks = 5 1 "d83525ca62cf", "bpf_spin_lock in values";
    /// `struct bpf_timer`.
    Timers = 5 15 "b00628b1c7d5", "bpf_timer in values";
    /// Pointers to objects of the kernel (`__kptr`, `__kptr_untrusted`).
    KernelPointers = 5 19 "61df10c7799e", "kptr in values";
    /// `struct bpf_list_head`.
    Lists = 6 2 "f0c5941ff5b2", "bpf_list_head in values";
    /// `struct bpf_rb_root`.
    Trees = 6 3 "9c395c1b99bd", "bpf_rb_root in values";
    /// Pointers to objects with one copy for each CPU (`__percpu_kptr`).
    PercpuPointers = 6 7 "55db92f42fe4", "percpu kptr in values";
    /// `struct bpf_wq`.
    WorkQueues = 6 10 "d56b63cf0c0f", "bpf_wq in values";
    /// Pointers to memory of user space (`__uptr`).
    UserPointers = 6 13 "1cb80d9e93f8", "uptr in values";
    /// `struct bpf_res_spin_lock`.
    ResilientLocks = 6 15 "0de2046137f9", "bpf_res_spin_lock in values";
    /// `struct bpf_task_work`.
    TaskWork = 6 18 "38aa7003e369", "bpf_task_work in values";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::since::{Release, Source};

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
            let Source::Commit(commit) = since.source else {
                panic!("{feature:?} has no commit")
            };
            assert!(commit.len() == 12 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()));
        }
    }
}
