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

/// Rules that a base has or has not.
#[derive(Clone, Copy)]
enum Trait {
    /// A register of it can be spilled (`is_spillable_regtype`).
    #[doc(alias = "is_spillable_regtype")]
    Spillable,
    /// Linux rewrites accesses through it, so that one instruction must not mix it with others
    /// (`reg_type_mismatch_ok` negated).
    #[doc(alias = "reg_type_mismatch_ok")]
    Rewritten,
    /// It is not null unless its modifiers say that it may be (`reg_not_null`).
    #[doc(alias = "reg_not_null")]
    NotNull,
    /// Without modifiers it may be an argument at any offset (`check_func_arg_reg_off`).
    #[doc(alias = "check_func_arg_reg_off")]
    FreeOffset,
    /// With the modifier for memory that may only be read too.
    FreeRdonly,
    /// With the modifier for records of ring buffers too.
    FreeRingbuf,
}

/// Rules of one base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegRules {
    /// Name in the log (`reg_type_str`).
    #[doc(alias = "reg_type_str")]
    pub(crate) label: &'static str,
    /// Name in refusals of misaligned accesses, with a blank behind it; empty for none
    /// (`check_ptr_alignment`).
    #[doc(alias = "check_ptr_alignment")]
    pub(crate) alignment_label: &'static str,
    /// Offsets that arithmetic may add.
    pub(crate) offsets: Offsets,
    /// The structure that such a pointer stands for as the argument of a kfunc (`reg2btf_ids`).
    #[doc(alias = "reg2btf_ids")]
    pub(crate) structure: Option<&'static str>,
    traits: u8,
}

impl RegRules {
    /// True if a register of the base can be spilled.
    pub(crate) const fn is_spillable(self) -> bool {
        self.has(Trait::Spillable)
    }

    /// True if Linux rewrites accesses through such pointers.
    pub(crate) const fn is_rewritten(self) -> bool {
        self.has(Trait::Rewritten)
    }

    /// True if pointers are not null unless their modifiers say that they may be.
    pub(crate) const fn is_not_null(self) -> bool {
        self.has(Trait::NotNull)
    }

    /// True if registers with these modifiers may be arguments at any offset.
    pub(crate) const fn has_free_offset(self, flags: TypeFlags) -> bool {
        match flags {
            TypeFlags::NONE => self.has(Trait::FreeOffset),
            TypeFlags::MEM_RDONLY => self.has(Trait::FreeRdonly),
            TypeFlags::MEM_RINGBUF => self.has(Trait::FreeRingbuf),
            _ => false,
        }
    }

    const fn has(self, one: Trait) -> bool {
        self.traits & 1 << one as u8 != 0
    }
}

macro_rules! reg_rules {
    ($($base:ident $label:literal $alignment:literal $offsets:ident [$($trait:ident)*]
        $(as $structure:literal)?;)*) => {
        impl RegRules {
            /// Rules of a base.
            pub(crate) const fn of(base: RegBase) -> RegRules {
                match base {
                    $(RegBase::$base => RegRules {
                        label: $label,
                        alignment_label: $alignment,
                        offsets: Offsets::$offsets,
                        structure: reg_rules!(@structure $($structure)?),
                        traits: 0 $(| 1 << Trait::$trait as u8)*,
                    },)*
                }
            }
        }
    };
    (@structure) => { None };
    (@structure $structure:literal) => { Some($structure) };
}

reg_rules! {
    // base, name, name where misaligned, offsets that may be added, traits, structure
    NotInit          "?"           ""             None     [];
    Scalar           "scalar"      ""             None     [FreeOffset];
    PtrToCtx         "ctx"         "context "     Any      [Spillable Rewritten];
    ConstPtrToMap    "map_ptr"     ""             Zero     [Spillable NotNull] as "bpf_map";
    PtrToMapValue    "map_value"   "value "       Any      [Spillable NotNull FreeOffset];
    PtrToMapKey      "map_key"     "key "         Any      [Spillable NotNull FreeOffset];
    PtrToStack       "fp"          "stack "       Any      [Spillable FreeOffset];
    PtrToPacketMeta  "pkt_meta"    ""             Any      [Spillable FreeOffset];
    PtrToPacket      "pkt"         ""             Any      [Spillable FreeOffset];
    PtrToPacketEnd   "pkt_end"     ""             None     [Spillable];
    PtrToFlowKeys    "flow_keys"   "flow keys "   Constant [Spillable];
    PtrToSocket      "sock"        "sock "        None     [Spillable Rewritten NotNull] as "sock";
    PtrToSockCommon  "sock_common" "sock_common " None     [Spillable Rewritten NotNull] as "sock_common";
    PtrToTcpSock     "tcp_sock"    "tcp_sock "    None     [Spillable Rewritten NotNull] as "tcp_sock";
    PtrToTpBuffer    "tp_buffer"   ""             Any      [];
    PtrToXdpSock     "xdp_sock"    "xdp_sock "    None     [Spillable Rewritten];
    PtrToBtfId       "ptr_"        ""             Any      [Spillable Rewritten];
    PtrToMem         "mem"         ""             Any      [Spillable FreeOffset FreeRdonly FreeRingbuf];
    PtrToArena       "arena"       ""             None     [Spillable Rewritten FreeOffset];
    PtrToBuf         "buf"         ""             Any      [Spillable FreeOffset FreeRdonly];
    PtrToFunc        "func"        ""             Any      [Spillable];
    ConstPtrToDynptr "dynptr_ptr"  ""             Any      [];
}
