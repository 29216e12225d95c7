//! Behaviours: named changes of Linux that decide what its verifier answers.
//!
//! Kernels differ in two ways. What a kernel *offers* (types, helpers, kfuncs, contexts, map kinds,
//! limits) is data: its BTF, its configuration and its registry ([`crate::registry`]). What it
//! *concludes* of the same program with the same data is a matter of rules, and those changed one
//! by one. Each such change is a row of the table below:
//!
//! * a **name**, by which the code asks for it, and its title in plain words: what holds where the
//!   kernel has the change;
//! * an **area**, the part of the verification that it is about;
//! * the mainline **release** with which it came, and the **backports**: of each older series the
//!   first point release that was seen to have it. Point releases before that one count as without.
//!
//! [`Behaviours`] is the set of the rows that one kernel has. It is computed once, from the version
//! ([`Behaviours::of`]), and handed down; a test of it is a test of a bit. Nothing else compares
//! version numbers to choose a rule. Three shapes of change have three places:
//!
//! * A change of one rule is **one gate, at the leaf that it decides**: the function that has the
//!   rule asks `behaviours.has(Behaviour::X)` and does what kernels without it do otherwise. Callers
//!   do not know.
//! * The arithmetic of bounds takes the set as a **parameter** (`Scalar::sync(behaviours)`), because
//!   it is a library of its own whose tests run for each era.
//! * Where eras have another **algorithm** (liveness by marks along parents in place of stack
//!   liveness, circular numbers in place of four ranges), the walk is given the algorithm once, as a
//!   strategy that is chosen where the walk begins; no test of a behaviour is spread over it.
//!
//! A row is right if kernels on both sides of it were asked: a program of the kernel's selftests, or
//! a case of ours, that is answered otherwise, and a comparison with the recorded answers of a
//! kernel without the row (`cargo differential compare kernel`). The title of a row that no kernel
//! without it was asked about says so.

use std::fmt;

use crate::kernel::{KernelVersion, Release};

/// Releases whose kernels were compared with what the table says of them, oldest first; what others
/// conclude is unknown.
pub const COMPARED: &[Release] = &[
    Release {
        major: 5,
        minor: 10,
    },
    Release { major: 6, minor: 1 },
    Release {
        major: 6,
        minor: 12,
    },
    Release::LINUX_6_18,
    Release { major: 7, minor: 0 },
    Release { major: 7, minor: 2 },
    Release { major: 7, minor: 3 },
];

/// True if the rules of a release's kernels are known.
pub fn is_compared(release: Release) -> bool {
    COMPARED.contains(&release)
}

/// True if releases on both sides of this one were compared.
pub fn is_between_compared(release: Release) -> bool {
    let (first, last) = (COMPARED.first(), COMPARED.last());
    first.is_some_and(|first| *first < release) && last.is_some_and(|last| release < *last)
}

/// Part of the verification that a behaviour is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// What is known of numbers.
    Bounds,
    /// Numbers that are copies of others, or differ from them by a constant.
    LinkedNumbers,
    /// Which paths are walked, and which states are equal.
    Walk,
    /// Control flow before the walk.
    ControlFlow,
    /// Accesses to memory and to the stack.
    Memory,
    /// Calls of helpers, kfuncs and functions.
    Calls,
    /// The words of a refusal, and what else the log says.
    Wording,
}

impl Area {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Area::Bounds => "bounds",
            Area::LinkedNumbers => "linked numbers",
            Area::Walk => "walk",
            Area::ControlFlow => "control flow",
            Area::Memory => "memory",
            Area::Calls => "calls",
            Area::Wording => "wording",
        }
    }
}

/// Defines the table: name, area, release, backports and title of each behaviour.
macro_rules! behaviours {
    ($($name:ident: $area:ident, $major:literal $minor:literal
       [$($of:literal $series:literal $point:literal),*], $title:literal;)*) => {
        /// A named change of Linux that decides what its verifier answers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Behaviour {
            $(#[doc = $title] $name,)*
        }

        impl Behaviour {
            /// Every behaviour, in the order of the table.
            pub const ALL: &'static [Behaviour] = &[$(Behaviour::$name,)*];

            /// Name, as the code has it.
            pub const fn name(self) -> &'static str {
                match self { $(Behaviour::$name => stringify!($name),)* }
            }

            /// Part of the verification that it is about.
            pub const fn area(self) -> Area {
                match self { $(Behaviour::$name => Area::$area,)* }
            }

            /// What holds where a kernel has it.
            pub const fn title(self) -> &'static str {
                match self { $(Behaviour::$name => $title,)* }
            }

            /// First mainline release that has it.
            pub const fn since(self) -> Release {
                match self {
                    $(Behaviour::$name => Release { major: $major, minor: $minor },)*
                }
            }

            /// Of each older series that got it, the first point release that was seen to have it.
            pub const fn backports(self) -> &'static [KernelVersion] {
                match self {
                    $(Behaviour::$name => const { &[$(KernelVersion::new($of, $series, $point),)*] },)*
                }
            }
        }
    };
}

behaviours! {
    // Bounds
    SingleMember: Bounds, 7 0 [6 18 44],
        "A number of which one value alone has the known bits and lies in its range is that value.";
    NarrowRangesMeet: Bounds, 7 0 [6 18 44, 6 12 117],
        "Where the signed range of a low half crosses 0 and the unsigned one meets one side of it alone, both are cut to that side.";
    SignShifts: Bounds, 7 0 [6 18 44, 6 12 117, 6 1 192, 5 10 262],
        "A shift to the left by 32 makes each signed end of the low half one of the number, negative ends too.";
    SumsWrap: Bounds, 6 17 [],
        "The unsigned range of a sum or difference is known also where both ends wrap around.";
    SignedProducts: Bounds, 6 14 [],
        "The range of a product is that of the products of the ends, negative ends too.";
    ProductBits: Bounds, 6 18 [],
        "The known bits of a product are those that both sums have where a bit of a factor is unknown.";
    NegatedRanges: Bounds, 6 17 [],
        "A negated number has the range and the known bits of 0 minus the number.";
    ByteSwapBits: Bounds, 7 0 [6 18 44],
        "The known bits of a number in another byte order are those of the number, moved.";
    CircularRanges: Bounds, 7 2 [],
        "An arc on the circle of all values stands for the signed and the unsigned range of a width.";
    DeadBranches: Bounds, 7 2 [],
        "A branch whose comparison would leave a number without a value is not followed.";
    SameOperands: Bounds, 7 0 [],
        "A comparison of a register with itself is decided.";
    RangesMeet: Bounds, 6 8 [],
        "The four ranges of a number are cut to each other in every direction, three times over.";
    BitwiseSigns: Bounds, 6 10 [],
        "The signed range of `and`, `or` and `xor` is the unsigned one where that does not cross the sign, negative numbers too.";
    VaryingOperands: Bounds, 6 10 [],
        "A product, `or` and `xor` with a number that is not constant have a range and known bits.";
    NumbersCompared: Bounds, 6 8 [],
        "A comparison of numbers that are no constants may be decided, and narrows both of them.";
    LowBitsLearn: Bounds, 6 3 [6 1 192],
        "The known bits of the low half are those that the 64-bit range leaves, too.";
    RangesChecked: Bounds, 6 8 [],
        "Ranges that contradict each other are forgotten.";
    DivisionRanges: Bounds, 7 0 [],
        "The range of a quotient or remainder by a constant is known.";
    // Linked numbers
    ConstantLinks: LinkedNumbers, 6 11 [],
        "A number stays linked to its copies when a constant is added.";
    ConstantsUnlinked: LinkedNumbers, 6 8 [],
        "A copy of a constant is not linked with it.";
    NarrowCopiesLinked: LinkedNumbers, 6 7 [],
        "A 32-bit copy of a number of 32 bits is linked with it.";
    WideLinks: LinkedNumbers, 7 0 [6 18 44],
        "A number stays linked to its copies when a constant is subtracted, when the constant is negative, and by operations on 32 bits.";
    LinksEndWhole: LinkedNumbers, 7 2 [6 18 44, 6 12 117],
        "What ends the link of a number ends its difference, too.";
    SelfSumsUnlinked: LinkedNumbers, 7 0 [6 18 44, 6 12 117],
        "The sum of a number with itself is linked with no other.";
    LinkedBitsAgree: LinkedNumbers, 7 0 [6 18 44],
        "The ranges and known bits of a number that learns from a linked one are made to agree.";
    LiveLinks: LinkedNumbers, 7 0 [6 18 44],
        "A register that no instruction reads any more takes no part in what linked numbers learn.";
    FreeNumbersCover: LinkedNumbers, 7 0 [6 18 44, 6 12 117],
        "An explored number without identity covers every number in its range, whatever that is linked with.";
    LinkBasesCorrespond: LinkedNumbers, 7 0 [6 18 44, 6 12 117],
        "Numbers that differ from others by the same constant are equal only if those others correspond.";
    NarrowSpillsLinked: LinkedNumbers, 6 8 [],
        "A spilled number of less than 8 bytes is linked with its copies.";
    // Walk
    LivenessBeforeWalk: Walk, 6 15 [],
        "States in loops are compared by what is live alone, which is known before the walk: registers and slots that nothing reads may differ.";
    StackLiveness: Walk, 6 18 [],
        "Which slots are live is found over the control flow; before, by marks along the states that a path came from.";
    IdentitiesCorrespond: Walk, 6 3 [],
        "States are equal up to the identities of their registers; before, identities of objects had to be the same.";
    NumbersCorrespond: Walk, 6 5 [],
        "Precise numbers that are linked in an explored state must be linked in one that it covers.";
    StackNumbersCover: Walk, 6 9 [],
        "Bytes of the stack and spilled numbers are compared as what a load of the slot gives.";
    LoopsCompareExactly: Walk, 6 7 [],
        "A loop is endless where everything that is known repeats; before, where an open state covers it.";
    FramesBacktracked: Walk, 6 5 [],
        "Precision is followed back into functions and callbacks; before, everything becomes precise there.";
    LongHistories: Walk, 6 12 [],
        "A state is kept where more than 40 entries of history wait.";
    LoopsByComponents: Walk, 6 17 [],
        "Loops are strongly connected components, whose marks are completed when the loop is left; before, the states that they were entered by.";
    CallbacksAreLoops: Walk, 7 0 [],
        "A call of a callback that may run again is a loop of its own, in which states are compared as in loops.";
    EmptyMayGoto: Walk, 6 15 [],
        "A `may_goto` to the next instruction is one, and does nothing.";
    TailCallsReturn: Walk, 6 19 [6 18 15],
        "A tail call in a function ends it with any number in r0, or fails and the function goes on.";
    EarlyReturns: Walk, 7 0 [],
        "What is live is computed as if tail calls and legacy packet loads may go to the last exit of their function.";
    ZeroForks: Walk, 7 0 [6 18 44, 6 12 117],
        "Before `and` and `or` with a constant, a number that is 0 or -1 is followed as each of both.";
    BranchesFolded: Walk, 7 2 [],
        "A branch that constants in registers decide is a jump before the walk begins.";
    FillsLinked: LinkedNumbers, 7 0 [],
        "A number that is filled from the stack is linked with its slot; one that is linked with nothing else is not linked when a state is kept.";
    LoopsWrite: Walk, 7 0 [],
        "A loop of an iterator or callback ends where its ranges are within those of an earlier pass, though more of the stack or more registers were written since.";
    DeadForgotten: Walk, 7 2 [],
        "Registers and halves of stack slots that nothing reads any more are forgotten before states are compared, and may not be read afterwards (poison); both are known before the walk.";
    HalfSlots: Walk, 7 2 [],
        "A number spilled to half of a stack slot is compared as a number.";
    HalvesUndecided: Walk, 7 2 [6 12 117],
        "A comparison of the low half of a pointer with 0 decides nothing.";
    LoopArgumentsKept: Walk, 7 2 [],
        "What a call gives a callback's loop stays precise in its frame while the callback is gone back over.";
    NullArgumentsPrecise: Walk, 7 2 [],
        "A number 0 that stands for no pointer in the call of a helper is precise.";
    AtomicsLoad: Walk, 7 0 [],
        "The old value that an atomic instruction returns is followed to where it was.";
    AtomicLoadsPlaced: Memory, 7 2 [],
        "Where a load with acquire may read is asked before what is there.";
    BuffersNotNull: Walk, 7 2 [6 12 117],
        "Sockets of XDP and buffers are not null where they are compared again; of buffers read in the source, not asked.";
    NullByRegister: Walk, 7 2 [],
        "A comparison with a register that is 0 tells whether a pointer is null.";
    PacketDistances: Walk, 7 2 [],
        "A packet pointer with identity covers those of the same distance to its base alone.";
    // Control flow
    TargetsLast: ControlFlow, 6 14 [6 12 117],
        "What a program attaches to is checked behind instructions and control flow; before, it came first.";
    CallbacksAreFunctions: ControlFlow, 5 13 [],
        "A function whose address is loaded is one of the program's functions.";
    ExceptionCallbacks: ControlFlow, 6 7 [],
        "A function that a tag names runs when an exception is thrown.";
    FallthroughLoops: ControlFlow, 6 8 [],
        "A loop may close at any instruction; before, at a jump.";
    SleepsByHook: ControlFlow, 6 4 [],
        "Which tracing programs may sleep goes by what they attach to.";
    StoresCheckedFirst: ControlFlow, 5 12 [],
        "Reserved fields of stores are checked when the walk reaches them; before, in all instructions first.";
    LeftCheckedFirst: ControlFlow, 6 6 [6 1 192],
        "Of the registers of a comparison the left one is read first, and before reserved fields are checked.";
    WideLoadsWhole: ControlFlow, 6 7 [6 1 192],
        "A jump into the second half of a wide load is refused before the walk; before, where the walk arrives there.";
    OrderedAccess: ControlFlow, 6 15 [],
        "There are loads with acquire and stores with release.";
    CgroupHooksStayAwake: ControlFlow, 7 1 [6 12 117, 6 1 192],
        "Programs of LSM hooks of cgroups cannot be sleepable.";
    NoreturnNamed: ControlFlow, 6 18 [],
        "The refusal of a function that never returns names the function.";
    PacketLoadsEndFunctions: ControlFlow, 7 0 [6 18 44, 6 12 117, 6 1 192],
        "A load of packets as classic BPF has it may leave its function, whose caller goes on with any number in r0.";
    FunctionSessions: ControlFlow, 7 0 [],
        "A program may run at the begin and at the end of a function.";
    IndirectJumps: ControlFlow, 6 19 [],
        "There are jumps to an address in a register, from maps of addresses.";
    TracepointsSleep: ControlFlow, 7 2 [],
        "Programs of tracepoints and of raw tracepoints may be sleepable, by BTF where the tracepoint may fault.";
    FunctionsRecurNot: ControlFlow, 7 2 [],
        "A function that calls itself is refused before the walk; before, where its stack is counted.";
    FieldsCheckedFirst: ControlFlow, 7 2 [],
        "Registers and reserved fields are checked in all instructions first; before, when the walk reaches one.";
    WidenedByBounds: Walk, 7 0 [],
        "A number of a loop is widened if its bounds differ from those of an earlier turn; before, also if its identity does.";
    JumpsTooMany: ControlFlow, 7 0 [6 12 117],
        "Too many waiting paths are E2BIG; before, EFAULT.";
    SixteenFrames: ControlFlow, 7 2 [],
        "There are up to 16 frames, counted from the last global function; before, 8 from the main function.";
    IdentitiesKept: Walk, 7 2 [],
        "A pointer that is not null keeps its identity; before, only if it may point to a lock.";
    BeyondEndApart: Walk, 7 0 [6 18 44, 6 12 117, 6 1 192, 5 10 262],
        "A packet pointer beyond the end is equal to others beyond the end alone; before, it covers those with any range.";
    // Memory
    NullableBuffers: Memory, 7 0 [6 18 44, 6 12 117, 6 1 192, 5 10 262],
        "A buffer that may be null is not accessed before it is compared with null.";
    WritesScrubSpills: Memory, 7 0 [6 18 44, 6 12 117],
        "A store somewhere in a range of the stack makes bytes of a spilled number that it may hit plain ones.";
    SumsKeepPointers: Memory, 7 1 [6 12 117, 6 1 192],
        "A number plus a pointer has everything of the pointer, as a pointer plus a number has.";
    ArenaSignedLoads: Memory, 6 18 [],
        "Loads from an arena may extend the sign.";
    HookResultsReset: Memory, 7 1 [6 12 117],
        "The result of a hook is what it may return, whatever the register held before.";
    HelperReadsKeep: Memory, 6 14 [],
        "A helper that only reads memory of the stack leaves what is known of it; before, it may have written it.";
    StackAccessNamed: Memory, 6 14 [],
        "The refusal of an access of a helper to the stack says whether it reads or writes.";
    LeavesAreMemory: Memory, 6 17 [],
        "A pointer to a number that is read from an object is untrusted memory; before, a number.";
    CastsToMemory: Memory, 6 17 [],
        "`bpf_rdonly_cast` makes untrusted memory of a pointer to void.";
    ArenaSums: Memory, 7 0 [6 18 44, 6 12 117],
        "An operation on a number and a pointer into an arena gives a pointer into the arena.";
    UnitedOffsets: Memory, 7 2 [],
        "The constant part of a pointer's offset is part of the number that is its offset.";
    PacketRangesChecked: Memory, 7 2 [],
        "An access to a packet is checked against what is proven of it as one to a region of that size.";
    ContextVaries: Memory, 7 2 [],
        "The context of a syscall program may be accessed at a variable offset, and by helpers.";
    PointersAsNumbers: Memory, 7 1 [],
        "An argument of a traced function that points to a pointer is a number.";
    ContextIsMemory: Memory, 7 2 [],
        "The refusal of a type counts the context among what memory arguments take.";
    // Calls
    ArgumentsByRegister: Calls, 7 2 [],
        "Refusals name an argument by its register.";
    ContextsNamed: Calls, 7 2 [],
        "The refusal of a call that may sleep names where it must not.";
    GlobalsReturnVoid: Calls, 7 2 [],
        "Global functions may return nothing.";
    ViewsMayChange: Calls, 7 2 [],
        "Helpers and kfuncs that change what a dynptr shows take constant dynptrs.";
    DropsInTracing: Calls, 7 2 [],
        "Tracing programs that do not sleep do not drop objects whose fields are unsafe in an interrupt.";
    SectionsNest: Calls, 7 0 [],
        "Sections of RCU may be entered within one.";
    LookupsKnowObjects: Calls, 7 3 [],
        "A lookup in a map of maps or of sockets returns the pointer that the check for null leaves; before, one to a value.";
    WritesByTrusted: Memory, 7 3 [],
        "Objects of the kernel are written by pointers that are trusted, or that RCU protects; before, by any.";
    SectionsProtect: Calls, 7 3 [],
        "Sections without preemption or interrupts protect what RCU protects, and so does a program that does not sleep.";
    ArenaUnderLock: Calls, 7 0 [],
        "Pages of the arena may be allocated and freed while a lock is held.";
    SharedAtStart: Calls, 7 2 [],
        "Another reference of an object is taken by a pointer to its start alone.";
    ReferencesOfProgram: Calls, 6 14 [],
        "References are those of the program; before, a callback releases what it acquires, and nothing else.";
    LoopCountsAreNumbers: Calls, 7 2 [6 12 117],
        "The number of passes of `bpf_loop` is refused if it is none before the call is looked at.";
    ExchangesInNodes: Calls, 7 2 [],
        "`bpf_kptr_xchg` takes fields of objects that a list or tree holds.";
    ExchangesUnderLock: Calls, 7 2 [],
        "`bpf_kptr_xchg` may be called while a lock is held.";
    ReferencesByUse: Calls, 7 2 [],
        "Several arguments of a call may hold references; before, one.";
    HookResultsSet: Calls, 7 2 [],
        "`bpf_set_retval` takes what the hook may return alone.";
    KfuncsTrust: Calls, 7 0 [],
        "Pointers that kfuncs take must be trusted.";
    ArenaTags: Calls, 7 2 [],
        "Arguments and results of functions may be pointers into the arena, by the tag of their type.";
    ReleasedFirst: Calls, 7 2 [],
        "What a kfunc releases must hold a reference before its kind is looked at; before, behind all arguments.";
    ResultsTrusted: Calls, 7 0 [],
        "Objects that kfuncs return are trusted; before, those that they acquire, by their reference.";
    ObjectsBelowFrame: Calls, 7 2 [],
        "No object begins at the end of the stack; before, one was looked for in the slot below.";
    OwnKfuncsUnderLock: Calls, 7 3 [],
        "While a lock is held, a kfunc that programs of the type do not have is refused for the lock.";
    SizesConstant: Calls, 7 3 [],
        "The size of memory that a helper allocates is at most 32 bits, and refused as no constant; before, as not known.";
    SetsNumbers: Calls, 7 2 [],
        "The result that bpf_set_retval sets is refused as no scalar first; before, as no value of the range.";
    ArgumentsByType: Calls, 7 3 [],
        "Kinds of a kfunc's arguments follow from its prototype alone; offsets are checked before trust.";
    NullIsNoMemory: Calls, 7 2 [],
        "Memory of a global function that must not be null is not the number 0, and no object of the kernel.";
    GlobalsThrow: Calls, 7 2 [],
        "A call of a global function that may throw an exception is followed as an exception, too.";
    ClonesReplaced: Calls, 7 2 [],
        "A dynptr with a reference may be overwritten while a clone of it is there.";
    DeepestShown: Wording, 7 2 [],
        "The statistics of the log have the deepest stack, and the instructions of each function that is verified on its own.";
    Reports: Wording, 7 3 [],
        "The log has a report behind the words of a refusal: reason, place, path and suggestion; and its counts are by function.";
    UnionsMarked: Memory, 6 6 [],
        "What lies in a union is untrusted, and may be read across its members.";
    EqualPointersNotNull: Memory, 6 2 [],
        "A pointer that may be null is not where it equals one that is not.";
    FramesOf16: Memory, 6 4 [],
        "The stack of a function takes a multiple of 16 bytes where the program is compiled; before, of 32.";
    TrustedPointers: Memory, 6 2 [],
        "Pointers to kernel objects say if they can be trusted.";
    MemoryIsKey: Memory, 6 2 [],
        "Keys and values of maps may lie in any memory that helpers take.";
    MapKeys: Memory, 5 13 [],
        "Programs get pointers to keys of maps.";
    UninitializedReads: Memory, 6 3 [6 1 192],
        "Privileged programs may read their stack before they wrote it.";
    NumbersSpilled: Memory, 6 8 [],
        "A number of any range is kept when it is spilled, 0 too, and stays linked.";
    StackByAnyRegister: Memory, 6 8 [],
        "Precision follows accesses to the stack through any register; before, through the frame pointer.";
    NarrowFills: Memory, 6 9 [],
        "A load of the lower part of a spilled number gives the number, if it fits.";
    DynptrsTracked: Memory, 6 3 [],
        "Slices of a dynptr end when it is overwritten, which one that holds a reference must not be.";
    VariableFlowKeys: Memory, 6 8 [6 1 192],
        "Nothing but a constant is added to a pointer to flow keys.";
    ObjectsNeedLicense: Memory, 6 2 [],
        "Fields of kernel objects are for programs with a GPL compatible license.";
    LocksInSections: Memory, 5 15 [],
        "Data sections may hold a lock.";
    ConstantsToContext: Memory, 6 4 [],
        "A constant may be stored in the context.";
    ReleasesAtStart: Memory, 5 19 [],
        "What a call releases is given to it at its start.";
    KsymFunctions: Memory, 6 2 [],
        "An address of a kernel function may be loaded by its BTF.";
    WindowStampsWritten: Memory, 6 10 [],
        "Programs of TCP congestion controls may write when the window last changed, and what limited it.";
    PacingWritten: Memory, 6 0 [],
        "Programs of TCP congestion controls may write the pacing of a socket.";
    IntPointersRead: Memory, 5 16 [],
        "A pointer to an integer among the arguments of a function is a number.";
    ZeroSizesFirst: Memory, 6 8 [],
        "Memory of no bytes is refused before its place is looked at.";
    LocksInObjects: Memory, 6 2 [],
        "Objects that programs allocate may hold a lock.";
    PointersInObjects: Memory, 6 12 [],
        "Objects that programs allocate may hold pointers to objects.";
    PointersWhole: Memory, 6 13 [6 12 117],
        "A pointer among the arguments of a function is read whole; before, in any size.";
    PointersTagged: Memory, 6 4 [],
        "A pointer in a value that is tagged `kptr` holds a reference; before, it held none.";
    // Calls
    ArgumentsTagged: Calls, 6 8 [],
        "Arguments of functions may be tagged, and may be dynptrs.";
    ArgumentsOfMemory: Calls, 5 13 [],
        "A global function may take pointers to memory.";
    GlobalsOnDemand: Calls, 6 8 [],
        "Global functions are verified behind the main function, if something calls them.";
    GlobalsChangePackets: Calls, 6 14 [6 12 117],
        "A call of a global function that may change the packet ends what is known of it.";
    CallbacksIterate: Calls, 6 7 [],
        "A callback is followed any number of times, and not at all; before, once.";
    FieldErrorsPass: Calls, 6 2 [],
        "The refusal of a lock, timer or kptr in a value has the error number of what is wrong; before, EACCES.";
    ReleasesReferenced: Calls, 5 19 [],
        "What a call releases must hold a reference.";
    LocksSleep: Calls, 6 8 [],
        "Programs that sleep may use maps with locks.";
    ManyMapsFollowed: Calls, 6 11 [],
        "A callback may run on elements of one map and of another.";
    TailCallsChangePackets: Calls, 6 14 [6 12 117],
        "A tail call ends what is known of the packet.";
    TaskStacksRefined: Calls, 5 12 [],
        "`bpf_get_task_stack` returns at most the size that it is given.";
    ProcessorsBounded: Calls, 6 10 [],
        "`bpf_get_smp_processor_id` returns the number of a processor that the kernel may have.";
    StaticUnderLock: Calls, 6 8 [],
        "A static function may be called while a lock is held, which its callers may release.";
    ThrowsHoldNothing: Calls, 7 0 [6 18 44, 6 12 117],
        "An exception is refused where a caller holds a lock, a section or a reference, and the refusal names it.";
    ConstantKeysFind: Calls, 6 14 [],
        "A lookup by a constant key within an array finds something.";
    CallsUnderLock: Calls, 6 16 [],
        "While a lock is held, kfuncs of number iterators and of peeking into lists and trees may be called, and some helpers.";
    GlobalsUnderPreemption: Calls, 6 15 [],
        "A global function that does not sleep may be called while preemption is disabled.";
    UntrustedArguments: Calls, 6 17 [],
        "Arguments of global functions may be tagged as untrusted.";
    NodesOwnedOrNot: Calls, 6 16 [],
        "Nodes of trees may be removed by a pointer that holds a reference, too.";
    TimersStayAwake: Calls, 6 18 [],
        "Callbacks of timers cannot sleep, though the program can.";
    WorkqueuesByConstant: Calls, 6 18 [],
        "The place of a work queue in a value must be known when a kfunc is called with it.";
    PrivateStacks: Calls, 6 13 [],
        "The JIT compiler gives functions of some programs stacks of their own.";
    LeaksNamePlace: Calls, 6 13 [],
        "The refusal of what is still held names the exit or call, and what is held.";
    InnerArraysVary: Calls, 7 2 [6 18 44],
        "A lookup by a constant key in an array that a map of maps holds may find nothing, as other arrays there may be smaller.";
    HookResultsLimited: Calls, 6 12 [],
        "An LSM hook's program returns what the hook may return.";
    ReturnsByRange: Calls, 6 8 [],
        "A returned value is held to a range by its range; before, by its known bits.";
    // Wording
    HelperUseNamed: Wording, 6 9 [],
        "The refusal of a helper that programs of a type do not have says so.";
    CallerNamesFunction: Wording, 6 7 [],
        "The refusal of arguments of a global function names it.";
    ConstantBitsShort: Wording, 6 8 [],
        "Known bits of a constant are written as a number.";
    StackOffsetsNamed: Wording, 6 8 [],
        "The refusal of an access somewhere in the stack names the offset.";
    FaultsNamed: Wording, 6 17 [],
        "The refusal of a second reference is no internal error, and a call of no function is named.";
    NegativeOffsets: Wording, 5 16 [],
        "The refusal of a pointer with a negative offset says so.";
    RingbufNamed: Wording, 6 2 [],
        "Memory of a ring buffer is named after it.";
    NumbersAreScalars: Wording, 5 18 [],
        "A number is called a scalar; before, `inv`.";
    SleepersListed: Wording, 6 4 [],
        "The refusal of a program that cannot sleep lists iterators, uprobes and struct_ops.";
    SleepersOfProbes: Wording, 6 0 [],
        "The refusal of a program that cannot sleep lists probes.";
    LocksOfRecords: Wording, 6 2 [],
        "The refusal of a lock where a value has none says so, and elsewhere where it has one.";
    ReleaseOffsetsNamed: Wording, 6 2 [],
        "The refusal of an offset in what a call releases is one of its own.";
    NullChecksAdvised: Wording, 5 17 [],
        "The refusal of arithmetic on any pointer that may be null advises a check.";
    RingbufsSleep: Wording, 5 12 [],
        "The refusal of a map in a program that sleeps lists ring buffers.";
    StoragesSleep: Wording, 6 2 [],
        "The refusal of a map in a program that sleeps lists local storage.";
    OldStateShown: Wording, 6 5 [],
        "The refusal of an endless loop ends with the state that repeats.";
    AtomicStores: Wording, 5 12 [],
        "Atomic instructions are called so; before, `BPF_XADD`.";
    AsyncReturnsNamed: Wording, 6 8 [],
        "The refusal of what an asynchronous callback returns says that it returns.";
    KfuncNumbersSigned: Wording, 7 0 [],
        "The refusal of a kfunc by a number below 1 says so.";
    ObjectWritesNamed: Wording, 7 2 [],
        "The refusal of a write to an object of the kernel ends with register, type and place.";
}

/// Set of behaviours: those that one kernel has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Behaviours([u64; WORDS]);

/// Words of a set, of 64 bits each.
const WORDS: usize = Behaviour::ALL.len().div_ceil(64);

impl Behaviours {
    /// Those of Linux 6.18.44, whose rules are compared in every detail.
    pub const LINUX_6_18: Behaviours = Behaviours::of(KernelVersion::new(6, 18, 44));

    /// None: rules that no row of the table has changed yet.
    pub const NONE: Behaviours = Behaviours([0; WORDS]);

    /// Those of a kernel of a version.
    pub const fn of(version: KernelVersion) -> Behaviours {
        let mut set = Behaviours::NONE;
        let mut at = 0;
        while at < Behaviour::ALL.len() {
            let behaviour = Behaviour::ALL[at];
            set = set.with(behaviour, is_in(behaviour, version));
            at += 1;
        }
        set
    }

    /// True if the kernel has the behaviour.
    #[inline]
    pub const fn has(self, behaviour: Behaviour) -> bool {
        let at = behaviour as usize;
        self.0[at / 64] & 1 << (at % 64) != 0
    }

    /// The set with a behaviour, or without it.
    #[must_use]
    pub const fn with(mut self, behaviour: Behaviour, is_there: bool) -> Behaviours {
        let at = behaviour as usize;
        let bit = 1 << (at % 64);
        match is_there {
            true => self.0[at / 64] |= bit,
            false => self.0[at / 64] &= !bit,
        }
        self
    }

    /// Those that one of two sets has and the other lacks, in the order of the table.
    pub fn differing(self, other: Behaviours) -> impl Iterator<Item = Behaviour> {
        let all = Behaviour::ALL.iter().copied();
        all.filter(move |&behaviour| self.has(behaviour) != other.has(behaviour))
    }

    /// Those of the set, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Behaviour> {
        let all = Behaviour::ALL.iter().copied();
        all.filter(move |&behaviour| self.has(behaviour))
    }
}

/// Those of a kernel of which no version is known.
impl Default for Behaviours {
    fn default() -> Behaviours {
        Behaviours::LINUX_6_18
    }
}

impl fmt::Debug for Behaviours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// True if kernels of the version have the behaviour: it came with their release or before, or was
/// seen in their series at that point or before.
const fn is_in(behaviour: Behaviour, version: KernelVersion) -> bool {
    let Release { major, minor } = behaviour.since();
    if version.code() >= KernelVersion::new(major, minor, 0).code() {
        return true;
    }
    let backports = behaviour.backports();
    let mut at = 0;
    while at < backports.len() {
        let seen = backports[at];
        if seen.code() >> 8 == version.code() >> 8 && seen.patch <= version.patch {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_are_of_older_series_each_once() {
        for &behaviour in Behaviour::ALL {
            let Release { major, minor } = behaviour.since();
            let mut series: Vec<u32> = behaviour
                .backports()
                .iter()
                .map(|seen| seen.code() >> 8)
                .collect();
            let first = KernelVersion::new(major, minor, 0).code() >> 8;
            assert!(series.iter().all(|series| *series < first), "{behaviour:?}");
            series.dedup();
            assert_eq!(series.len(), behaviour.backports().len(), "{behaviour:?}");
            assert!(behaviour.title().ends_with('.'), "{behaviour:?}");
        }
    }

    #[test]
    fn sets_differ_by_what_was_switched() {
        let all = Behaviours::LINUX_6_18;
        let one = Behaviour::ALL[3];
        let other = all.with(one, !all.has(one));
        assert_eq!(all.differing(other).collect::<Vec<_>>(), [one]);
        assert_eq!(other.with(one, all.has(one)), all);
    }

    #[test]
    fn a_kernel_has_what_came_with_it_or_was_brought_back() {
        let has =
            |version: &str, behaviour| Behaviours::of(version.parse().unwrap()).has(behaviour);
        assert!(has("7.0", Behaviour::SingleMember) && has("7.3.4", Behaviour::SingleMember));
        assert!(has("6.18.44", Behaviour::SingleMember) && has("6.18.45", Behaviour::SingleMember));
        assert!(
            !has("6.18.15", Behaviour::SingleMember) && !has("6.19.44", Behaviour::SingleMember)
        );
        assert!(has("6.12.117", Behaviour::NarrowRangesMeet));
        assert!(!has("6.12.43", Behaviour::NarrowRangesMeet));
        // What 6.18 lacks is newer; some of it was brought back to 6.12 before.
        let absent = Behaviour::ALL.iter().copied();
        let absent: Vec<_> = absent
            .filter(|&row| !Behaviours::LINUX_6_18.has(row))
            .collect();
        assert!(absent.iter().all(|row| row.since() > Release::LINUX_6_18));
        for row in [
            Behaviour::CgroupHooksStayAwake,
            Behaviour::SumsKeepPointers,
            Behaviour::HookResultsReset,
        ] {
            assert!(absent.contains(&row) && has("6.12.117", row), "{row:?}");
        }
    }
}
