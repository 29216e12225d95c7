//! Rejections of calls.

use btf::fields::FieldKind;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::registry::RetBase;

use super::{Register, join, rejections};
use crate::call::LeakCheck;
use crate::log::TypeText;
use crate::state::{DynptrKind, Section};

rejections! {
    /// Rejections of calls.
    Call:
    UnderLock EINVAL Lock
        "function calls are not allowed while holding a lock";
    ArgumentType { reg: Register, kind: TypeText, expected: Vec<TypeText> } EACCES Argument
        "R{reg} type={kind} expected={}", join(expected);
    WritesObject { helper: String, reg: Register, kind: TypeText } EACCES Argument
        "{helper}() may write into memory pointed by R{reg} type={kind}";
    ArgumentMaybeNull { reg: Register } EACCES MaybeNull
        "Possibly NULL pointer passed to helper R{reg}"
        => ArgumentsByRegister "Possibly NULL pointer passed to helper arg{reg}";
    ObjectType { reg: Register, found: String, wanted: String } EACCES Argument
        "R{reg} is of type {found} but {wanted} is expected";
    NonzeroOffset { reg: Register } EINVAL Argument
        "R{reg} must have zero offset when passed to release func or trusted arg to kfunc";
    LeaksAddress { reg: Register } EACCES Privilege
        "R{reg} leaks addr into helper function";
    PacketArgument EACCES Forbidden
        "helper access to the packet is not allowed";
    InvalidBtfId { reg: Register } EACCES Argument
        "Helper has invalid btf_id in R{reg}";
    NotKnownConstant { reg: Register } EACCES Argument
        "R{reg} is not a known constant'";
    SockmapArgument EINVAL Argument
        "invalid arg_type for sockmap/sockhash";
    NotReferenced { helper: String, reg: Register } EINVAL Reference
        "release helper {helper} expects referenced PTR_TO_BTF_ID passed to R{reg}"
        => ArgumentsByRegister "R{reg} must be referenced when passed to release function";
    SecondReference { reg: Register, id: i64, first: i64 } EACCES Reference
        "more than one arg with ref_obj_id R{reg} {id} {first}"
        => FaultsNamed "verifier internal error: more than one arg with ref_obj_id R{reg} {id} {first}";
    TimerOfOtherMap { reg: Register, timer_uid: i64, uid: i64 } EINVAL Argument
        "timer pointer in R{reg} map_uid={timer_uid} doesn't match map pointer in R2 map_uid={uid}";
    CallbackForMap ENOTSUPP Map
        "callback function not allowed for map";
    MapForHelper { kind: MapKind, name: String, id: i64 } EINVAL Map
        "cannot pass map_type {} into func {name}#{id}", kind.number();
    SetsVoid EINVAL ReturnValue
        "BPF_LSM_CGROUP that attach to void LSM hooks can't modify return value!";
    Silent EINVAL Argument
        "";
    NotReadOnlyMap { reg: Register } EACCES Argument
        "R{reg} does not point to a readonly map'";
    NotConstantAddress { reg: Register } EACCES Argument
        "R{reg} is not a constant address'";
    NoDirectValue EACCES Argument
        "no direct value access support for this map type";
    DirectValueFailed EINVAL Argument
        "direct value access on string failed";
    NotTerminated EINVAL Argument
        "string is not zero-terminated";
    InvalidFormat EINVAL Argument
        "Invalid format string";
    NotInProbe EINVAL Unavailable
        "helper call is not allowed in probe";
    UnknownHelper { name: String, id: i64 } EINVAL Unavailable
        "invalid func {name}#{id}";
    HelperOfOtherType { name: String, id: i64 } EINVAL Unavailable
        "program of this type cannot use helper {name}#{id}"
        => HelperUseNamed "unknown func {name}#{id}";
    HelperLicense EINVAL License
        "cannot call GPL-restricted function from non-GPL compatible program";
    MightSleep { name: String, id: i64, section: Option<Section> } EINVAL Section
        "sleepable helper {name}#{id} in {}", region(*section)
        => ContextsNamed "helper call might sleep in a non-sleepable prog";
    SleepableHelper { name: String, id: i64, section: Section } EINVAL Section
        "sleepable helper {name}#{id} in {}", region(Some(*section));
    MapReadOnly EACCES Map
        "write into map forbidden";
    NotProgArray EINVAL Map
        "expected prog array map for tail call"
        => FaultsNamed "kernel subsystem misconfigured verifier";
    NotAcquired { name: String, id: i64 } EINVAL Reference
        "func {name}#{id} reference has not been acquired before";
    StorageFlags EINVAL Argument
        "get_local_storage() doesn't support non-zero flags";
    TracingHelper { name: String, id: i64 } ENOTSUPP Unavailable
        "func {name}#{id} supported only for fentry/fexit/fmod_ret programs";
    HelperForType { name: String, id: i64, kind: ProgramType } ENOTSUPP Unavailable
        "func {name}#{id} not supported for program type {}", kind.number();
    KfuncNotAllowed { name: String } EACCES Unavailable
        "calling kernel function {name} is not allowed";
    Trap EFAULT Unavailable
        "unexpected __bpf_trap() due to uninitialized variable?";
    SleepableKfunc { name: String } EACCES Section
        "program must be sleepable to call sleepable kfunc {name}";
    NestedRcuLock { name: String } EINVAL Section
        "nested rcu read lock (kernel function {name})";
    SleepsUnderRcu { name: String } EACCES Section
        "kernel func {name} is sleepable within rcu_read_lock region";
    UnmatchedRcuUnlock { name: String } EINVAL Section
        "unmatched rcu read unlock (kernel function {name})";
    UnmatchedPreemptEnable { name: String } EINVAL Section
        "unmatched attempt to enable preemption (kernel function {name})";
    SleepsNonPreemptible { name: String } EACCES Section
        "kernel func {name} is sleepable within non-preemptible region";
    RequiresRcu { name: String } EACCES Section
        "kernel func {name} requires RCU critical section protection";
    KfuncNotAcquired { name: String, id: i64 } EINVAL Reference
        "kfunc {name}#{id} reference has not been acquired before";
    TooManyArguments { name: String, count: i64, most: i64 } EINVAL Argument
        "Function {name} has {count} > {most} args";
    ReleaseExpectsReference { name: String, reg: Register } EINVAL Reference
        "release kfunc {name} expects referenced PTR_TO_BTF_ID passed to R{reg}"
        => ArgumentsByRegister "release kernel function {name} expects refcounted PTR_TO_BTF_ID";
    UnrecognizedArgument { index: i64, kind: String } EINVAL Argument
        "Unrecognized R{} type {kind}", index + 1
        => ArgumentsByRegister "Unrecognized arg#{index} type {kind}";
    TrustedMaybeNull { reg: Register, index: i64 } EACCES MaybeNull
        "Possibly NULL pointer passed to trusted R{}", index + 1
        => ArgumentsByRegister "Possibly NULL pointer passed to trusted arg{index}";
    NotMapPointer { reg: Register } EINVAL Argument
        "pointer in R{reg} isn't map pointer";
    NotContext { index: i64, found: TypeText } EINVAL Argument
        "R{} expected pointer to ctx, but got {found}", index + 1
        => ArgumentsByRegister "arg#{index} expected pointer to ctx, but got {found}"
        => TrustedPointers "arg#{index} expected pointer to ctx, but got PTR";
    NotConstantString { index: i64 } EINVAL Argument
        "R{} doesn't point to a const string", index + 1
        => ArgumentsByRegister "arg#{index} doesn't point to a const string";
    NotObject { index: i64, found: TypeText, expected: TypeText } EINVAL Argument
        "R{} is {found} expected {expected} or socket", index + 1
        => ArgumentsByRegister "arg#{index} is {found} expected {expected} or socket";
    NotStructure { index: i64, found: TypeText, kind: String, name: String, or: String } EINVAL Argument
        "R{} is {found} expected {kind} {name}{or}", index + 1;
    UnsizedReference { index: i64, kind: String, name: String } EINVAL Argument
        "R{} reference type('{kind} {name}') size cannot be determined: -22", index + 1
        => ArgumentsByRegister "arg#{index} reference type('{kind} {name}') size cannot be determined: -22";
    NotScalar { reg: Register } EINVAL Argument
        "R{reg} is not a scalar";
    UnknownConstant { reg: Register } EINVAL Argument
        "R{reg} must be a known constant";
    SecondBufferSize EINVAL Argument
        "2 or more rdonly/rdwr_buf_size parameters for kfunc";
    BufferSizeNotConst { reg: Register } EINVAL Argument
        "R{reg} is not a const";
    AllocationTooLarge { reg: Register } EINVAL Argument
        "R{reg} allocation size exceeds u32 max";
    BufferSizeTooLarge { reg: Register } EINVAL Argument
        "R{reg} rdonly/rdwr_buf_size exceeds u32 max";
    UnsupportedPointer { kfunc: String, index: i64, kind: String, name: String } EINVAL Argument
        "kernel function {kfunc} R{} pointer type {kind} {name} is not supported", index + 1
        => ArgumentsByRegister "kernel function {kfunc} args#{index} pointer type {kind} {name} is not supported";
    PointeeNotScalar { index: i64, kind: String, name: String, or_void: String } EINVAL Argument
        "R{} pointer type {kind} {name} must point to {or_void}scalar, or struct with scalar", index + 1
        => ArgumentsByRegister "arg#{index} pointer type {kind} {name} must point to {or_void}scalar, or struct with scalar";
    NotTrusted { reg: Register } EINVAL Argument
        "R{reg} must be referenced or trusted";
    NotRcu { reg: Register } EINVAL Argument
        "R{reg} must be a rcu pointer";
    OtherObject { kfunc: String, index: i64, wanted_kind: String, wanted: String, reg: Register, found_kind: String, given: String } EINVAL Argument
        "kernel function {kfunc} R{} expected pointer to {wanted_kind} {wanted} but R{reg} has a pointer to {found_kind} {given}", index + 1
        => ArgumentsByRegister "kernel function {kfunc} args#{index} expected pointer to {wanted_kind} {wanted} but R{reg} has a pointer to {found_kind} {given}";
    SizedMemory { index: i64, next: i64 } EINVAL Argument
        "R{} and R{} memory, len pair leads to invalid memory access", index + 1, next + 1
        => ArgumentsByRegister "arg#{index} arg#{next} memory, len pair leads to invalid memory access";
    AcquiresNoObject EINVAL Btf
        "acquire kernel function does not return PTR_TO_BTF_ID";
    ReturnsUnsupported { kfunc: String, kind: String, name: String } EINVAL Btf
        "kernel function {kfunc} returns pointer type {kind} {name} is not supported";
    ContextNotStruct { id: i64 } EINVAL Btf
        "kern ctx type id {id} is not a struct";
    CastOfUnknownType { id: i64 } EINVAL Argument
        "Unknown type ID {id} passed to kfunc bpf_rdonly_cast";
    CastOfNoObject EINVAL Argument
        "kfunc bpf_rdonly_cast type ID argument must be of a struct";
    CastOfNoStruct EINVAL Argument
        "kfunc bpf_rdonly_cast type ID argument must be of a struct or void";
    LockAtExit EINVAL Lock
        "bpf_spin_unlock is missing";
    RcuAtExit EINVAL Lock
        "bpf_rcu_read_unlock is missing";
    PreemptionAtExit { count: i64 } EINVAL Lock
        "{count} bpf_preempt_enable{} missing", if *count == 1 { " is" } else { "(s) are" };
    Unreleased { id: i64, insn: i64 } EINVAL Reference
        "Unreleased reference id={id} alloc_insn={insn}";
    NodeOwned EINVAL Argument
        "rbtree_remove node input must be non-owning ref";
    InsideLock { what: LeakCheck } EINVAL Lock
        "{what} cannot be used inside bpf_spin_lock-ed region";
    ReferenceLeak { what: LeakCheck } EINVAL Reference
        "{what} would lead to reference leak"
        => LeaksNamePlace "{}", match what {
            LeakCheck::PacketLoad => format!("{what} cannot be mixed with socket references"),
            _ => format!("{what} would lead to reference leak"),
        };
    InsideSection { what: LeakCheck, section: Section } EINVAL Section
        "{what} cannot be used inside {}-ed region", section.calls().0;
    SecondLock EINVAL Lock
        "Locking two bpf_spin_locks are not allowed";
    LockAgain EINVAL Lock
        "Acquiring the same lock again, AA deadlock detected";
    LockFork ENOMEM Complexity
        "failed to push state for failed lock acquisition";
    UnlockWithoutLock { lock: FieldKind } EINVAL Lock
        "{}_unlock without taking a lock", lock.name().trim_end_matches("_lock");
    UnlockOther { lock: FieldKind } EINVAL Lock
        "{}_unlock of different lock", lock.name().trim_end_matches("_lock");
    UnlockOrder { lock: FieldKind } EINVAL Lock
        "{}_unlock cannot be out of order", lock.name().trim_end_matches("_lock");
    LockInCallback EACCES Lock
        "can't spin_{{lock,unlock}} in rbtree cb";
    NotLockOwner { index: i64 } EINVAL Argument
        "R{} doesn't point to map value or allocated object", index + 1
        => ArgumentsByRegister "arg#{index} doesn't point to map value or allocated object";
    ExchangeWithoutBtf { map: String } EINVAL Argument
        "map '{map}' has to have BTF in order to use bpf_kptr_xchg";
    FieldWithoutBtf { map: String, name: FieldKind } EINVAL Argument
        "map '{map}' has to have BTF in order to use {name}";
    FieldAbsent { map: String, name: FieldKind } EINVAL Argument
        "map '{map}' has no valid {name}"
        => LocksOfRecords "map '{map}' is not a struct type or {name} is mangled";
    FieldMissing { map: String, name: FieldKind } EINVAL Argument
        "map '{map}' doesn't have 'struct {name}'";
    FieldAbsentInObject { name: FieldKind } EINVAL Argument
        "local 'kptr' has no valid {name}";
    FieldNotFound { name: FieldKind, off: i64 } EINVAL Argument
        "{name} not found at offset={off}";
    FieldOffset { off: i64, name: FieldKind, expected: i64 } EINVAL Argument
        "off {off} doesn't point to 'struct {name}' that is at {expected}"
        => LocksOfRecords "off {off} doesn't point to 'struct {name}'{}",
            if *name == FieldKind::SpinLock { String::new() } else { format!(" that is at {expected}") };
    FieldVariable { reg: Register, name: FieldKind } EINVAL Argument
        "R{reg} doesn't have constant offset. {name} has to be at the constant offset";
    HelperReturnType { base: RetBase, name: String, id: i64 } EINVAL Btf
        "invalid return type {} of func {name}#{id}", *base as u32;
    GlobalUnderLock EINVAL Lock
        "use static function instead";
    GlobalMightSleep { name: String, section: Option<Section> } EINVAL Section
        "sleepable global function {name}() called in {}", region(*section)
        => ContextsNamed "a non-sleepable BPF program context";
    GlobalArguments { subprog: i64, name: String, number: Option<u8> } EINVAL Argument
        "Caller passes invalid args into func#{subprog} ('{name}')"
        => CallerNamesFunction "Caller passes invalid args into func#{subprog}";
    TooManyFrames { frames: i64 } E2BIG CallDepth
        "the call stack of {frames} frames is too deep";
    ExpectsContext { index: i64 } EINVAL Argument
        "arg#{index} expects pointer to ctx";
    ExpectsNonNull { index: i64 } EINVAL MaybeNull
        "arg#{index} is expected to be non-NULL";
    NotArena { reg: Register } EINVAL Argument
        "R{reg} is not a pointer to arena or scalar.";
    ExpectsDynptr { index: i64 } EINVAL Argument
        "R{} expected pointer to stack or const struct bpf_dynptr", index + 1
        => ArgumentsByRegister "arg#{index} expected pointer to stack or const struct bpf_dynptr";
    NoKptr { reg: Register } EINVAL Argument
        "R{reg} has no valid kptr";
    NoKptrInMap { map: String } EINVAL Map
        "map '{map}' has no valid kptr";
    NotAtKptr { off: i64 } EACCES Argument
        "off={off} doesn't point to kptr";
    KptrNotReferenced { off: i64 } EACCES Argument
        "off={off} kptr isn't referenced kptr";
    UnmatchedObject EFAULT KernelBug
        "verifier bug: invalid PTR_TO_BTF_ID register for type match"
        => FaultsNamed "verifier internal error: invalid PTR_TO_BTF_ID register for type match";
    PercpuNotStruct EFAULT Argument
        "Helper has invalid btf/btf_id in R1";
    NotAllocated { index: i64 } EINVAL Argument
        "R{} expected pointer to allocated object", index + 1
        => ArgumentsByRegister "arg#{index} expected pointer to allocated object";
    ForObjDrop { index: i64 } EINVAL Argument
        "R{} expected for bpf_obj_drop()", index + 1
        => ArgumentsByRegister "arg#{index} expected for bpf_obj_drop_impl()";
    ForPercpuObjDrop { index: i64 } EINVAL Argument
        "R{} expected for bpf_percpu_obj_drop()", index + 1
        => ArgumentsByRegister "arg#{index} expected for bpf_percpu_obj_drop_impl()";
    ObjectNotReferenced EINVAL Argument
        "allocated object must be referenced";
    NeitherOwning { index: i64 } EINVAL Argument
        "R{} is neither owning or non-owning ref", index + 1
        => ArgumentsByRegister "arg#{index} is neither owning or non-owning ref";
    ObjectWithoutRecord EFAULT KernelBug
        "verifier bug: Couldn't find btf_record";
    WithoutRefcount { index: i64 } EINVAL Argument
        "R{} doesn't point to a type with bpf_refcount field", index + 1
        => ArgumentsByRegister "arg#{index} doesn't point to a type with bpf_refcount field";
    LocalTypeRange EINVAL Argument
        "local type ID argument must be in range [0, U32_MAX]";
    AllocatesWithoutBtf EINVAL Argument
        "bpf_obj_new/bpf_percpu_obj_new requires prog BTF";
    AllocatesNoStruct EINVAL Argument
        "bpf_obj_new/bpf_percpu_obj_new type ID argument must be of a struct";
    PercpuTooLarge { size: i64, most: i64 } EINVAL Argument
        "bpf_percpu_obj_new type size ({size}) is greater than {most}";
    PercpuNotScalars EINVAL Argument
        "bpf_percpu_obj_new type ID argument must be of a struct of scalars";
    PercpuSpecialFields EINVAL Argument
        "bpf_percpu_obj_new type ID argument must not contain special fields";
    NotRootOwner { index: i64 } EINVAL Argument
        "R{} expected pointer to map value or allocated object", index + 1
        => ArgumentsByRegister "arg#{index} expected pointer to map value or allocated object";
    LockNotHeld { lock: i64, name: FieldKind } EINVAL Lock
        "bpf_spin_lock at off={lock} must be held for {name}";
    NodeNotOwned { kfunc: String } EINVAL Argument
        "{kfunc} can only take non-owning or refcounted bpf_rb_node pointer";
    NotInCallback { kfunc: String } EINVAL Argument
        "{kfunc} not allowed in rbtree cb"
        => NodesOwnedOrNot "rbtree_remove not allowed in rbtree cb";
    SectionInCallback EACCES Section
        "Calling bpf_rcu_read_{{lock,unlock}} in unnecessary rbtree callback";
    OtherNode { root: FieldKind, node: FieldKind, wanted_off: i64, wanted: String, off: i64, given: String } EINVAL Argument
        "operation on {root} expects arg#1 {node} at offset={wanted_off} in struct {wanted}, but arg is at offset={off} in struct {given}";
    NodeOffset { off: i64, node: FieldKind, wanted_off: i64, wanted: String } EINVAL Argument
        "arg#1 offset={off}, but expected {node} at offset={wanted_off} in struct {wanted}";
    KfuncConversion { name: String, id: i64 } EINVAL Reference
        "kfunc {name}#{id} conversion of owning ref to non-owning failed";
    DropsUnsafe { kfunc: String } EINVAL Unavailable
        "{kfunc} cannot be used in tracing programs on types with NMI unsafe fields";
    NotFunction { index: i64 } EINVAL Argument
        "R{} expected pointer to func", index + 1
        => ArgumentsByRegister "arg{index} expected pointer to func";
    KfuncCallback { name: String, id: i64 } EINVAL Argument
        "kfunc {name}#{id} failed callback verification";
    NotMapValue { index: i64 } EINVAL Argument
        "R{} doesn't point to a map value", index + 1
        => ArgumentsByRegister "arg#{index} doesn't point to a map value";
    WorkqueueOfOtherMap { uid: i64, map_uid: i64 } EINVAL Argument
        "workqueue pointer in R1 map_uid={uid} doesn't match map pointer in R2 map_uid={map_uid}";
    TaskWorkOfOtherMap { uid: i64, map_uid: i64 } EINVAL Argument
        "bpf_task_work pointer in R2 map_uid={uid} doesn't match map pointer in R3 map_uid={map_uid}";
    DynptrNotUninit EINVAL Argument
        "Dynptr has to be an uninitialized dynptr";
    DynptrConst EINVAL Argument
        "cannot pass pointer to const bpf_dynptr, the helper mutates it";
    DynptrNotInit { index: i64 } EINVAL Argument
        "Expected an initialized dynptr as R{}", index + 1
        => ArgumentsByRegister "Expected an initialized dynptr as arg #{index}"
        => DynptrsTracked "Expected an initialized dynptr as arg #{}", index + 1;
    DynptrOther { kind: DynptrKind, index: i64 } EINVAL Argument
        "Expected a dynptr of type {kind} as R{}", index + 1
        => ArgumentsByRegister "Expected a dynptr of type {kind} as arg #{index}";
    DynptrMemory { kind: TypeText } EACCES Argument
        "Unsupported reg type {kind} for bpf_dynptr_from_mem data";
    DynptrAtOffset EINVAL Argument
        "cannot pass in dynptr at an offset";
    UnacquiredDynptr { number: i64 } EINVAL Reference
        "arg {number} is an unacquired reference";
    ReleasesConstDynptr EINVAL Reference
        "CONST_PTR_TO_DYNPTR cannot be released"
        => ArgumentsByRegister "cannot release unowned const bpf_dynptr";
    OverwritesDynptr EINVAL Reference
        "cannot overwrite referenced dynptr";
    MisconfiguredReference EFAULT KernelBug
        "verifier bug: misconfigured ref_obj_id";
    MisconfiguredDynptr EFAULT KernelBug
        "verifier bug: misconfigured dynptr helper type flags";
    PacketReadOnly EINVAL Forbidden
        "the prog does not allow writes to packet data";
    CssTaskIterator EINVAL Unavailable
        "css_task_iter is only allowed in bpf_lsm, bpf_iter and sleepable progs";
    NotIterator { index: i64 } EINVAL Argument
        "R{} expected pointer to an iterator on stack", index + 1
        => ArgumentsByRegister "arg#{index} expected pointer to an iterator on stack";
    InvalidIterator { index: i64 } EINVAL Argument
        "expected valid iter pointer as R{}", index + 1
        => ArgumentsByRegister "expected valid iter pointer as arg #{index}";
    IteratorNotUninit { name: String, index: i64 } EINVAL Argument
        "expected uninitialized iter_{name} as R{}", index + 1
        => ArgumentsByRegister "expected uninitialized iter_{name} as arg #{index}";
    IteratorNotInit { name: String, index: i64 } EINVAL Argument
        "expected an initialized iter_{name} as R{}", index + 1
        => ArgumentsByRegister "expected an initialized iter_{name} as arg #{index}";
    IteratorOutsideRcu { name: String } EPROTO Section
        "expected an RCU CS when using {name}";
    NotIrqFlag { index: i64 } EINVAL Argument
        "R{} doesn't point to an irq flag on stack", index + 1
        => ArgumentsByRegister "arg#{index} doesn't point to an irq flag on stack";
    IrqFlagNotUninit { index: i64 } EINVAL Argument
        "expected uninitialized irq flag as R{}", index + 1
        => ArgumentsByRegister "expected uninitialized irq flag as arg#{index}";
    IrqFlagNotInit { index: i64 } EINVAL Argument
        "expected an initialized irq flag as R{}", index + 1
        => ArgumentsByRegister "expected an initialized irq flag as arg#{index}";
    IrqFlagClass { saved: String, used: String } EINVAL Argument
        "irq flag acquired by {saved} kfuncs cannot be restored with {used} kfuncs";
    IrqFlagOrder { id: i64, insn: i64 } EACCES Section
        "cannot restore irq state out of order, expected id={id} acquired at insn_idx={insn}";
    SleepsIrqDisabled { name: String } EACCES Section
        "kernel func {name} is sleepable within IRQ-disabled region";
    ExceptionCallback EINVAL Btf
        "exception cb only supports single integer argument";
}

/// Where a program must not sleep.
fn region(section: Option<Section>) -> &'static str {
    match section {
        Some(Section::Rcu) => "rcu_read_lock region",
        Some(Section::Preempt) => "non-preemptible region",
        Some(Section::Irq) => "IRQ-disabled region",
        Some(Section::Lock) => "lock region",
        None => "non-sleepable prog",
    }
}
