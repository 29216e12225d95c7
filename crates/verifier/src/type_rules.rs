//! Rules of the verifier that go by the program type: one row for each type.

use spec::programs::ProgramType;

/// Programs of a type to which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    /// No program.
    Never,
    /// Every program.
    Always,
    /// Programs of some attach types.
    ByAttachType,
}

/// Kind of attach target that is checked when a program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// No target.
    Nothing,
    /// Operation of a struct_ops structure.
    Operation,
    /// Function, tracepoint or iterator of the kernel.
    Function,
    /// LSM hook.
    Hook,
    /// Function of another program.
    Program,
}

/// Rules of one program type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRules {
    /// Programs that may sleep (`can_be_sleepable`); syscall programs always do.
    pub(crate) sleepable: Applies,
    /// Programs whose functions have stacks of their own (`bpf_enable_priv_stack`): those
    /// that the kernel guards against recursion.
    pub(crate) private_stack: Applies,
    /// Kind of attach target (`check_attach_btf_id`).
    pub(crate) target: TargetKind,
}

macro_rules! type_rules {
    ($($kind:ident $sleepable:ident $private_stack:ident $target:ident;)*) => {
        impl TypeRules {
            /// Rules of a program type.
            pub(crate) const fn of(kind: ProgramType) -> TypeRules {
                match kind {
                    $(ProgramType::$kind => TypeRules {
                        sleepable: Applies::$sleepable,
                        private_stack: Applies::$private_stack,
                        target: TargetKind::$target,
                    },)*
                }
            }
        }
    };
}

type_rules! {
    // type, sleepable, private stack, attach target
    SocketFilter          Never        Never        Nothing;
    Kprobe                Always       Always       Nothing;
    SchedCls              Never        Never        Nothing;
    SchedAct              Never        Never        Nothing;
    Tracepoint            Never        Always       Nothing;
    Xdp                   Never        Never        Nothing;
    PerfEvent             Never        Always       Nothing;
    CgroupSkb             Never        Never        Nothing;
    CgroupSock            Never        Never        Nothing;
    LwtIn                 Never        Never        Nothing;
    LwtOut                Never        Never        Nothing;
    LwtXmit               Never        Never        Nothing;
    SockOps               Never        Never        Nothing;
    SkSkb                 Never        Never        Nothing;
    CgroupDevice          Never        Never        Nothing;
    SkMsg                 Never        Never        Nothing;
    RawTracepoint         Never        Always       Nothing;
    CgroupSockAddr        Never        Never        Nothing;
    LwtSeg6local          Never        Never        Nothing;
    LircMode2             Never        Never        Nothing;
    SkReuseport           Never        Never        Nothing;
    FlowDissector         Never        Never        Nothing;
    CgroupSysctl          Never        Never        Nothing;
    RawTracepointWritable Never        Never        Nothing;
    CgroupSockopt         Never        Never        Nothing;
    Tracing               ByAttachType ByAttachType Function;
    StructOps             Always       Never        Operation;
    Ext                   Never        Never        Program;
    Lsm                   Always       Never        Hook;
    SkLookup              Never        Never        Nothing;
    Syscall               Never        Never        Nothing;
    Netfilter             Never        Never        Nothing;
}
