//! Rules of the verifier that go by the base of a register's type: one row for each base.

use spec::registry::{RegBase, TypeFlags};

/// Offsets that arithmetic may add to a pointer (in `adjust_ptr_min_max_vals`).
#[doc(alias = "adjust_ptr_min_max_vals")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offsets {
    /// None.
    None,
    /// 0 only.
    Zero,
    /// Constants.
    Constant,
    /// Any.
    Any,
}

/// Accesses through a pointer without modifiers that must be aligned (`check_ptr_alignment`).
#[doc(alias = "check_ptr_alignment")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alignment {
    /// Those of programs that ask for it.
    Asked,
    /// Likewise, counted from the network header of a packet.
    Packet,
    /// All.
    Always,
    /// None.
    Never,
}

/// Rules of one base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegRules {
    /// Name in the log (`reg_type_str`).
    #[doc(alias = "reg_type_str")]
    pub(crate) label: &'static str,
    /// Accesses that must be aligned.
    pub(crate) alignment: Alignment,
    /// Name in refusals of misaligned accesses, with a blank behind it; empty for none.
    pub(crate) alignment_label: &'static str,
    /// Offsets that arithmetic may add.
    pub(crate) offsets: Offsets,
    /// The structure that such a pointer stands for as the argument of a kfunc (`reg2btf_ids`).
    #[doc(alias = "reg2btf_ids")]
    pub(crate) structure: Option<&'static str>,
    /// A register of it can be spilled (`is_spillable_regtype`).
    #[doc(alias = "is_spillable_regtype")]
    pub(crate) is_spillable: bool,
    /// Linux rewrites accesses through it, so that one instruction must not mix it with others
    /// (`reg_type_mismatch_ok` negated).
    #[doc(alias = "reg_type_mismatch_ok")]
    pub(crate) is_rewritten: bool,
    /// It is not null unless its modifiers say that it may be (`reg_not_null`).
    #[doc(alias = "reg_not_null")]
    pub(crate) is_not_null: bool,
    /// Atomic instructions may use it without modifiers (`atomic_ptr_type_ok`, `is_ctx_reg`,
    /// `is_sk_reg`, `is_pkt_reg`, `is_flow_key_reg`).
    #[doc(alias = "atomic_ptr_type_ok")]
    #[doc(alias = "is_ctx_reg")]
    #[doc(alias = "is_sk_reg")]
    #[doc(alias = "is_pkt_reg")]
    #[doc(alias = "is_flow_key_reg")]
    pub(crate) takes_atomics: bool,
    /// It points to a socket of a kind that helpers know.
    pub(crate) is_socket: bool,
    /// Modifiers with which it may be an argument at any offset (`check_func_arg_reg_off`).
    #[doc(alias = "check_func_arg_reg_off")]
    pub(crate) free_offset: &'static [TypeFlags],
}

const NEVER: &[TypeFlags] = &[];
const PLAIN: &[TypeFlags] = &[TypeFlags::NONE];
const RDONLY: &[TypeFlags] = &[TypeFlags::NONE, TypeFlags::MEM_RDONLY];
const RECORD: &[TypeFlags] = &[
    TypeFlags::NONE,
    TypeFlags::MEM_RDONLY,
    TypeFlags::MEM_RINGBUF,
];

macro_rules! reg_rules {
    ($($base:ident $label:literal $alignment:ident $alignment_label:literal $offsets:ident
        $free:ident $spillable:literal $rewritten:literal $not_null:literal $atomics:literal
        $socket:literal $structure:expr;)*) => {
        impl RegRules {
            /// Rules of a base.
            pub(crate) const fn of(base: RegBase) -> RegRules {
                match base {
                    $(RegBase::$base => RegRules {
                        label: $label,
                        alignment: Alignment::$alignment,
                        alignment_label: $alignment_label,
                        offsets: Offsets::$offsets,
                        structure: $structure,
                        is_spillable: $spillable,
                        is_rewritten: $rewritten,
                        is_not_null: $not_null,
                        takes_atomics: $atomics,
                        is_socket: $socket,
                        free_offset: $free,
                    },)*
                }
            }
        }
    };
}

reg_rules! {
    // base, name, alignment, name where misaligned, offsets that may be added, modifiers with a free
    // offset; spillable, rewritten, not null, takes atomics, socket, structure
    NotInit          "?"           Asked  ""             None     NEVER  false false false true  false None;
    Scalar           "scalar"      Asked  ""             None     PLAIN  false false false true  false None;
    PtrToCtx         "ctx"         Asked  "context "     Any      NEVER  true  true  false false false None;
    ConstPtrToMap    "map_ptr"     Asked  ""             Zero     NEVER  true  false true  true  false  Some("bpf_map");
    PtrToMapValue    "map_value"   Asked  "value "       Any      PLAIN  true  false true  true  false  None;
    PtrToMapKey      "map_key"     Asked  "key "         Any      PLAIN  true  false true  true  false  None;
    PtrToStack       "fp"          Always "stack "       Any      PLAIN  true  false false true  false None;
    PtrToPacketMeta  "pkt_meta"    Packet ""             Any      PLAIN  true  false false false false None;
    PtrToPacket      "pkt"         Packet ""             Any      PLAIN  true  false false false false None;
    PtrToPacketEnd   "pkt_end"     Asked  ""             None     NEVER  true  false false true  false None;
    PtrToFlowKeys    "flow_keys"   Asked  "flow keys "   Constant NEVER  true  false false false false None;
    PtrToSocket      "sock"        Asked  "sock "        None     NEVER  true  true  true  false true   Some("sock");
    PtrToSockCommon  "sock_common" Asked  "sock_common " None     NEVER  true  true  true  false true   Some("sock_common");
    PtrToTcpSock     "tcp_sock"    Asked  "tcp_sock "    None     NEVER  true  true  true  false true   Some("tcp_sock");
    PtrToTpBuffer    "tp_buffer"   Asked  ""             Any      NEVER  false false false true  false None;
    PtrToXdpSock     "xdp_sock"    Asked  "xdp_sock "    None     NEVER  true  true  false false true  None;
    PtrToBtfId       "ptr_"        Asked  ""             Any      NEVER  true  true  false true  false None;
    PtrToMem         "mem"         Asked  ""             Any      RECORD true  false false true  false None;
    PtrToArena       "arena"       Never  ""             None     PLAIN  true  true  false true  false None;
    PtrToBuf         "buf"         Asked  ""             Any      RDONLY true  false false true  false None;
    PtrToFunc        "func"        Asked  ""             Any      NEVER  true  false false true  false None;
    ConstPtrToDynptr "dynptr_ptr"  Asked  ""             Any      NEVER  false false false true  false None;
}
