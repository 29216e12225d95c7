//! Rejections of whole programs, before and after the walk.

use spec::since::Release;

use super::rejections;
use crate::release::Requirement;

rejections! {
    /// Rejections of whole programs, before and after the walk.
    Program:
    Size { count: i64, most: i64, is_capable: bool } E2BIG Limit
        "program of {count} instructions: 1 to {most} are allowed{}", match is_capable {
            true => "",
            false => " without CAP_BPF",
        };
    TypePrivilege { missing: String } EPERM Privilege
        "programs of this type are for callers with {missing}";
    MapCreation { map: String } EINVAL MapCreation
        "{map}";
    ReleaseLacks { what: Requirement, since: Release, kernel: Release } EINVAL Release
        "{what} needs Linux {since}; the kernel is Linux {kernel}";
    UnknownLoadFlags { bits: u32 } EINVAL Privilege
        "the kernel has no load flags {bits:#x}";
    NoToken EINVAL Privilege
        "BPF_F_TOKEN_FD is set, and the program has no BPF token";
    UnknownType { name: String } EINVAL AttachTarget
        "the kernel has no programs of type {name}";
    UnknownAttachType { name: String, since: String } EINVAL AttachTarget
        "the kernel has no attach type {name} for such programs{since}";
    NoIterator { name: String } EINVAL AttachTarget
        "the kernel has no iterator {name}";
    LargeReturn { name: String } EOPNOTSUPP AttachTarget
        "Attach to function {name} with a >8 byte return value is not supported for this attach type";
    SleepableOnly EINVAL AttachTarget
        "Syscall programs can only be sleepable";
    NotSleepableType EINVAL AttachTarget
        "Program of this type cannot be sleepable"
        => TracepointsSleep "Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and struct_ops programs can be sleepable"
        => SleepersListed "Only fentry/fexit/fmod_ret, lsm, and kprobe/uprobe programs can be sleepable"
        => SleepersOfProbes "Only fentry/fexit/fmod_ret and lsm programs can be sleepable";
    StructOpsLicense EINVAL License
        "struct ops programs must have a GPL compatible license";
    UnsupportedMember { name: String, structure: String } ENOTSUPP AttachTarget
        "attach to unsupported member {name} of struct {structure}";
    NoOperation ENOTSUPP AttachTarget
        "";
    NotStructOps { id: i64 } ENOTSUPP AttachTarget
        "attach_btf_id {id} is not a supported struct";
    NoMember { index: i64, name: String } EINVAL AttachTarget
        "attach to invalid member idx {index} of struct {name}";
    NotOperation { member: String, index: i64, name: String } EINVAL AttachTarget
        "attach to invalid member {member}(@idx {index}) of struct {name}";
    ReferencedTailCall EINVAL AttachTarget
        "program with __ref argument cannot tail call";
    NoAddress { name: String } ENOENT AttachTarget
        "The address of function {name} cannot be found";
    TracepointFaultsNot { tracepoint: String } EINVAL AttachTarget
        "Sleepable program cannot attach to non-faultable tracepoint {tracepoint}";
    NotModifiable { name: String } EINVAL AttachTarget
        "{name}() is not modifiable";
    TargetWithoutBtf EINVAL AttachTarget
        "FENTRY/FEXIT program can only be attached to another program annotated with BTF";
    NoTargetFunction { name: String } EINVAL AttachTarget
        "Subprog {name} doesn't exist";
    TargetExceptionCallback { what: String } EINVAL AttachTarget
        "{what} programs cannot attach to exception callback";
    ReplacesStatic EINVAL AttachTarget
        "Cannot replace static functions";
    ReplacesKernel EINVAL AttachTarget
        "Cannot replace kernel functions";
    ReplacementChangesPacket EINVAL AttachTarget
        "Extension program changes packet data, while original does not";
    ReplacementSleeps EINVAL AttachTarget
        "Extension program may sleep, while original does not";
    NestedTracing EINVAL AttachTarget
        "Cannot nest tracing program attach more than once";
    RecursiveAttach EINVAL AttachTarget
        "Cannot recursively attach";
    ExtendsTracing EINVAL AttachTarget
        "Cannot extend fentry/fexit";
    TracepointTarget EINVAL AttachTarget
        "Only FENTRY/FEXIT progs are attachable to another BPF prog";
    ModifiesReturn EINVAL AttachTarget
        "can't modify return codes of BPF programs";
    ReplacementWithoutBtf EINVAL Btf
        "Program extension requires BTF";
    NotGlobal { name: String } EINVAL AttachTarget
        "{name}() is not a global function";
    ParameterCount { name: String, count: i64, their_name: String, their_count: i64 } EINVAL AttachTarget
        "{name}() has {count} args while {their_name}() has {their_count} args";
    ReturnKind { kind: String, name: String, their_kind: String, their_name: String } EINVAL AttachTarget
        "Return type {kind} of {name}() doesn't match type {their_kind} of {their_name}()";
    ParameterKind { index: i64, name: String, kind: String, their_name: String, their_kind: String } EINVAL AttachTarget
        "arg{index} in {name}() is {kind} while {their_name}() has {their_kind}";
    ParameterSize { index: i64, name: String, size: i64, their_name: String, their_size: i64 } EINVAL AttachTarget
        "arg{index} in {name}() has size {size} while {their_name}() has {their_size}";
    ParameterUnrecognized { index: i64, name: String } EINVAL AttachTarget
        "arg{index} in {name}() has unrecognized type";
    ParameterNotContext { index: i64, name: String } EINVAL AttachTarget
        "arg{index} in {name}() is not a pointer to context";
    ParameterContext { index: i64, name: String, context: String, their_name: String, their_context: String } EINVAL AttachTarget
        "arg{index} {name}(struct {context} *) doesn't match {their_name}(struct {their_context} *)";
    NoAttachBtfId EINVAL AttachTarget
        "Tracing programs must provide btf_id";
    NotTypedef { id: i64 } EINVAL AttachTarget
        "attach_btf_id {id} is not a typedef";
    WrongTypeName { id: i64, name: String } EINVAL AttachTarget
        "attach_btf_id {id} points to wrong type name {name}";
    NotFunction { id: i64 } EINVAL AttachTarget
        "attach_btf_id {id} is not a function";
    InvalidAttachBtfId { id: i64 } EINVAL AttachTarget
        "attach_btf_id {id} is invalid";
    SilentTarget EINVAL AttachTarget
        "";
    SleepableCgroupHook EINVAL AttachTarget
        "BPF_LSM_CGROUP programs cannot be sleepable";
    NotSleepable { name: String } EINVAL AttachTarget
        "{name} is not sleepable";
    DeniedTarget { name: String } EINVAL AttachTarget
        "Attaching tracing programs to function '{name}' is rejected.";
    NoreturnTarget { name: String } EINVAL AttachTarget
        "Attaching fexit/fsession/fmod_ret to __noreturn function '{name}' is rejected."
        => FunctionSessions "Attaching fexit/fmod_ret to __noreturn function '{name}' is rejected.";
    NoreturnTargets EINVAL AttachTarget
        "Attaching fexit/fmod_ret to __noreturn functions is rejected.";
    LsmLicense EINVAL License
        "LSM programs must have a GPL compatible license";
    DisabledHook { id: i64, name: String } EINVAL AttachTarget
        "attach_btf_id {id} points to disabled hook {name}";
    FirstFuncInfo { off: i64 } EINVAL Btf
        "nonzero insn_off {off} for the first func info record";
    FuncInfoOrder { off: i64, previous: i64 } EINVAL Btf
        "same or smaller insn offset ({off}) than previous func info record ({previous})";
    FuncInfoType { id: i64 } EINVAL Btf
        "invalid type id {id} in func info";
    ArenaSignedLoad EOPNOTSUPP Unavailable
        "sign extending loads from arena are not supported yet";
    PacketLoadWithoutBtf EINVAL Btf
        "LD_ABS is not allowed in subprogs without BTF";
    TailCallWithoutBtf EINVAL Btf
        "tail_call is not allowed in subprogs without BTF";
    FuncInfoCount EINVAL Btf
        "number of funcs in func_info doesn't match number of subprogs";
    FuncInfoLayout EINVAL Btf
        "func_info BTF section doesn't match subprog layout in BPF program";
    PacketLoadReturn EINVAL Btf
        "LD_ABS is only allowed in functions that return 'int'.";
    TailCallReturn EINVAL Btf
        "tail_call is only allowed in functions that return 'int'.";
    LineInfoOffset { index: i64, off: i64, previous: i64, count: i64 } EINVAL Btf
        "Invalid line_info[{index}].insn_off:{off} (prev_offset:{previous} prog->len:{count})";
    LineInfoInsn { index: i64 } EINVAL Btf
        "Invalid insn code at line_info[{index}].insn_off";
    LineInfoString { index: i64 } EINVAL Btf
        "Invalid line_info[{index}].line_off or .file_name_off";
    MissingLineInfo { found: i64 } EINVAL Btf
        "missing bpf_line_info for func#{found}";
    MissingLineInfos { missing: i64, found: i64 } EINVAL Btf
        "missing bpf_line_info for {missing} funcs starting from func#{found}";
    JumpOutOfRange { from: i64, to: i64 } EINVAL ControlFlow
        "jump out of range from insn {from} to {to}";
    BackEdge { from: i64, target: i64 } EINVAL BackEdge
        "back-edge from insn {from} to {target}";
    Recursion { caller: String, callee: String } EINVAL CallDepth
        "recursive call from {caller}() to {callee}()";
    NoJumpTable { start: i64 } EINVAL ControlFlow
        "no jump tables found for subprog starting at {start}";
    JumpTableOutside { index: i64, start: i64, end: i64 } EINVAL ControlFlow
        "jump table for insn {index} points outside of the subprog [{start},{end}]";
    JumpTableNotReady EINVAL Map
        "Failed to properly initialize insn array";
    Unreachable { index: i64 } EINVAL Unreachable
        "unreachable insn {index}";
    JumpIntoWideLoad { index: i64 } EINVAL ControlFlow
        "jump into the middle of ldimm64 insn {index}";
    SeveralExceptionCallbacks EEXIST Btf
        "multiple exception callback tags for main subprog";
    NoExceptionCallback { name: String } ENOENT Btf
        "exception callback '{name}' could not be found in BTF";
    ExceptionCallbackStatic { name: String } EINVAL Btf
        "exception callback '{name}' must have global linkage";
    ExceptionCallbackType EINVAL Btf
        "exception callback type id not found in func_info";
    ExceptionCallbackOffset EINVAL Btf
        "invalid exception callback insn_off in func_info: 0";
    KfuncPrototype { id: i64 } EINVAL Btf
        "kernel function btf_id {id} does not have a valid func_proto";
    KfuncArguments { name: String, count: i64 } EINVAL Btf
        "The function {name} has {count} arguments. Too many.";
    KfuncReturn { name: String, kind: String } EINVAL Btf
        "The function {name} return type {kind} is unsupported.";
    KfuncVariadic { name: String } EINVAL Btf
        "The function {name} with variable args is unsupported.";
    KfuncVoidArgument { name: String } EINVAL Btf
        "The function {name} has malformed void argument.";
    KfuncArgument { name: String, index: i64, kind: String } EINVAL Btf
        "The function {name} arg{index} type {kind} is unsupported.";
    TooManyFramesLinked { frame: i64 } E2BIG CallDepth
        "the call stack of {frame} frames is too deep !";
    TailCallStack { depth: i64 } EACCES StackSize
        "tail_calls are not allowed when call stack of previous frames is {depth} bytes. Too large";
    SubprogStack { subprog: i64, own: i64 } EACCES StackSize
        "stack size of subprog {subprog} is {own}. Too large";
    CombinedStack { frames: i64, depth: i64 } EACCES StackSize
        "combined stack size of {frames} calls is {depth}. Too large";
    ThrowInCallback { index: i64, subprog: i64 } EINVAL Other
        "bpf_throw kfunc (insn {index}) cannot be called from callback subprog {subprog}";
    ExceptionCallbackCall { index: i64 } EINVAL Other
        "insn {index} cannot call exception cb directly";
    CallPrivilege EPERM Privilege
        "loading/calling other bpf or kernel functions are allowed for CAP_BPF and CAP_SYS_ADMIN";
    KfuncLicense EINVAL License
        "cannot call kernel function from non-GPL compatible program";
    TooManyKfuncs E2BIG Limit
        "too many different kernel function calls";
    KfuncNumber { id: i64 } EINVAL Btf
        "invalid kernel function btf_id {id}";
    KfuncNotFunction { id: i64 } EINVAL Btf
        "kernel btf_id {id} is not a function";
    MetadataKfunc EINVAL Unavailable
        "metadata kfuncs require device-bound program";
    InvalidCall EINVAL ControlFlow
        "call to invalid destination";
    TooManySubprogs E2BIG Limit
        "too many subprograms";
    LastInsn EINVAL ControlFlow
        "last insn is not an exit or jmp";
    LoadReservedFields EINVAL Encoding
        "BPF_LDX uses reserved fields";
    StoreReservedFields EINVAL Encoding
        "BPF_STX uses reserved fields";
    InvalidWideLoad EINVAL Encoding
        "invalid bpf_ld_imm64 insn";
    UnknownOpcode { code: u8 } EINVAL Encoding
        "unknown opcode {code:02x}";
    UnrecognizedWideLoad EINVAL Encoding
        "unrecognized bpf_ld_imm64 insn";
    NotMap { fd: i64 } EBADF Map
        "fd {fd} is not pointing to valid bpf_map";
    ValueOffset { off: i64 } EINVAL Map
        "direct value offset of {off} is not allowed";
    NoDirectValue EINVAL Map
        "no direct value access support for this map type";
    ValuePointerUnsupported { value_size: i64, off: i64 } ENOTSUPP Map
        "invalid access to map value pointer, value_size={value_size} off={off}";
    ValuePointer { value_size: i64, off: i64 } EINVAL Map
        "invalid access to map value pointer, value_size={value_size} off={off}";
    WideLoadReservedFields EINVAL Encoding
        "BPF_LD_IMM64 uses reserved fields";
    InvalidImmediateLoad EINVAL Encoding
        "invalid BPF_LD_IMM insn";
    CallbackWithoutFuncInfo EINVAL Btf
        "missing btf func_info";
    CallbackNotStatic EINVAL Btf
        "callback function not static";
    InvalidBtfId { id: i64 } ENOENT Btf
        "ldimm64 insn specifies invalid btf_id {id}.";
    NotVariable { id: i64 } EINVAL Btf
        "pseudo btf_id {id} in ldimm64 isn't KIND_VAR or KIND_FUNC"
        => KsymFunctions "pseudo btf_id {id} in ldimm64 isn't KIND_VAR.";
    UnknownSymbol { name: String } ENOENT Btf
        "ldimm64 failed to find the address for kernel symbol '{name}'.";
    UnsizedVariable { name: String } EINVAL Btf
        "ldimm64 unable to resolve the size of type '{name}': -22";
    TooManyMaps { limit: i64 } E2BIG Limit
        "The total number of maps per program has reached the limit of {limit}";
    FieldForType { whose: String, field: String } EINVAL Map
        "{whose} progs cannot use {field} yet";
    StructOpsMap EINVAL Map
        "bpf_struct_ops map cannot be used in prog";
    MapForSleepable EINVAL Map
        "Sleepable programs can only use array, hash, ringbuf and local storage maps"
        => StoragesSleep "Sleepable programs can only use array, hash, and ringbuf maps"
        => RingbufsSleep "Sleepable programs can only use array and hash maps";
    SecondCgroupStorage EBUSY Map
        "only one cgroup storage of each type is allowed";
    SecondArena EBUSY Map
        "Only one arena per program";
    ArenaPrivilege EPERM Privilege
        "CAP_BPF and CAP_PERFMON are required to use arena";
    ContextConversion EFAULT KernelBug
        "verifier bug: error during ctx access conversion (0)";
    LivenessLimit E2BIG Limit
        "liveness analysis exceeded complexity limit (10001 calls)";
    TailCallMap EINVAL Map
        "tail_call abusing map_ptr";
    KfuncLeft EINVAL Unavailable
        "invalid kernel function call not eliminated in verifier pass";
    NothingToJit { place: i64 } EFAULT KernelBug
        "verifier bug: No program to jit at insn {place} (subprog < 0)" => FaultsNamed "";
}
