//! One register: the kind of value, its flags, and its number.
//!
//! The fields are those of the kernel's `struct bpf_reg_state`; the union becomes the
//! payload of [`RegKind`].

use spec::behaviour::{Behaviour, Behaviours};

use crate::domain::Scalar;

pub use spec::registry::{RegBase, RegType, TypeFlags};

/// Mark in [`RegState::id`] of a scalar that differs from the other registers of that
/// id by the constant [`RegState::off`], added in 64 bits (kernel: `BPF_ADD_CONST64`).
pub const ADD_CONST64: u32 = 1 << 31;

/// As [`ADD_CONST64`], added in 32 bits.
pub const ADD_CONST32: u32 = 1 << 30;

/// Either mark.
pub const ADD_CONST: u32 = ADD_CONST64 | ADD_CONST32;

/// [`RegKind::Packet`] range of a pointer that is known to be at the packet's end.
pub const PKT_AT_END: i32 = -1;

/// [`RegKind::Packet`] range of a pointer that is known to be beyond the packet's end.
pub const PKT_BEYOND_END: i32 = -2;

/// A map of the program: index into `Input::maps`, which lists the
/// program's maps and behind them the inner maps of maps of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapRef(pub u32);

/// A BTF object (`btf_is_kernel`, `btf_is_vmlinux`, `btf_is_module`).
#[doc(alias = "btf_is_kernel")]
#[doc(alias = "btf_is_vmlinux")]
#[doc(alias = "btf_is_module")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BtfRef {
    /// That of vmlinux.
    Vmlinux,
    /// That of a module, by its index among the modules of the kernel.
    Module(u16),
    /// The program's own.
    Program,
}

impl BtfRef {
    /// A number that tells the BTF objects apart.
    const fn residue(self) -> u32 {
        match self {
            BtfRef::Vmlinux => 0,
            BtfRef::Module(index) => 1 << 28 | (index as u32) << 20,
            BtfRef::Program => 1 << 29,
        }
    }
}

/// A type of a BTF object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeRef {
    /// The BTF object.
    pub btf: BtfRef,
    /// Type id within that BTF object.
    pub id: u32,
}

impl TypeRef {
    /// A type of vmlinux.
    pub const fn vmlinux(id: u32) -> TypeRef {
        TypeRef {
            btf: BtfRef::Vmlinux,
            id,
        }
    }

    /// A type of the program.
    pub const fn program(id: u32) -> TypeRef {
        TypeRef {
            btf: BtfRef::Program,
            id,
        }
    }
}

/// Kind of dynptr (`dynptr_type_str`).
#[doc(alias = "dynptr_type_str")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DynptrKind {
    Local,
    Ringbuf,
    Skb,
    Xdp,
    SkbMeta,
    File,
}

impl DynptrKind {
    const ALL: [DynptrKind; 6] = [
        DynptrKind::Local,
        DynptrKind::Ringbuf,
        DynptrKind::Skb,
        DynptrKind::Xdp,
        DynptrKind::SkbMeta,
        DynptrKind::File,
    ];

    /// The modifier of types that are about this kind (`get_dynptr_type_flag`).
    #[doc(alias = "get_dynptr_type_flag")]
    pub const fn flag(self) -> TypeFlags {
        match self {
            DynptrKind::Local => TypeFlags::DYNPTR_TYPE_LOCAL,
            DynptrKind::Ringbuf => TypeFlags::DYNPTR_TYPE_RINGBUF,
            DynptrKind::Skb => TypeFlags::DYNPTR_TYPE_SKB,
            DynptrKind::Xdp => TypeFlags::DYNPTR_TYPE_XDP,
            DynptrKind::SkbMeta => TypeFlags::DYNPTR_TYPE_SKB_META,
            DynptrKind::File => TypeFlags::DYNPTR_TYPE_FILE,
        }
    }

    /// The kind that modifiers of a type name (`arg_to_dynptr_type`).
    #[doc(alias = "arg_to_dynptr_type")]
    pub fn of_flags(flags: TypeFlags) -> Option<DynptrKind> {
        let mut kinds = DynptrKind::ALL.into_iter();
        kinds.find(|kind| flags.has(kind.flag()))
    }

    /// True if it holds a reference (`dynptr_type_refcounted`, `dynptr_type_referenced`).
    #[doc(alias = "dynptr_type_refcounted")]
    #[doc(alias = "dynptr_type_referenced")]
    pub const fn is_refcounted(self) -> bool {
        matches!(self, DynptrKind::Ringbuf | DynptrKind::File)
    }

    /// True if its bytes are those of a packet, which may move (`reg_is_pkt_pointer_any`).
    #[doc(alias = "reg_is_pkt_pointer_any")]
    pub const fn is_of_packet(self) -> bool {
        matches!(
            self,
            DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::SkbMeta
        )
    }
}

/// Kind of value in a register (kernel: `enum bpf_reg_type` without its flags, with
/// the union of `struct bpf_reg_state` as payload) (`bpf_reg_type`).
#[doc(alias = "bpf_reg_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum RegKind {
    /// Not written on this path; not readable.
    #[default]
    NotInit,
    Scalar,
    Ctx,
    /// `map_uid` distinguishes lookups of inner maps.
    MapPtr {
        map: MapRef,
        uid: u32,
    },
    MapValue {
        map: MapRef,
        uid: u32,
    },
    MapKey {
        map: MapRef,
        uid: u32,
    },
    /// Stack of the frame of that number.
    Stack {
        frame: u32,
    },
    /// `range`: bytes from the variable base that a comparison has proven readable.
    PacketMeta {
        range: i32,
    },
    /// As `PacketMeta`; negative values are [`PKT_AT_END`] and [`PKT_BEYOND_END`].
    Packet {
        range: i32,
    },
    PacketEnd,
    FlowKeys,
    Socket,
    SockCommon,
    TcpSock,
    TpBuffer,
    XdpSock,
    BtfId {
        ty: TypeRef,
    },
    Mem {
        size: u32,
        dynptr_id: u32,
    },
    Arena,
    Buf,
    Func {
        subprog: u32,
    },
    ConstDynptr {
        kind: DynptrKind,
    },
    /// Read from a jump table.
    Insn {
        map: MapRef,
    },
}

impl RegKind {
    /// Base of the type (`base_type`).
    #[doc(alias = "base_type")]
    pub const fn base(self) -> RegBase {
        match self {
            RegKind::NotInit => RegBase::NotInit,
            RegKind::Scalar => RegBase::Scalar,
            RegKind::Ctx => RegBase::PtrToCtx,
            RegKind::MapPtr { .. } => RegBase::ConstPtrToMap,
            RegKind::MapValue { .. } => RegBase::PtrToMapValue,
            RegKind::MapKey { .. } => RegBase::PtrToMapKey,
            RegKind::Stack { .. } => RegBase::PtrToStack,
            RegKind::PacketMeta { .. } => RegBase::PtrToPacketMeta,
            RegKind::Packet { .. } => RegBase::PtrToPacket,
            RegKind::PacketEnd => RegBase::PtrToPacketEnd,
            RegKind::FlowKeys => RegBase::PtrToFlowKeys,
            RegKind::Socket => RegBase::PtrToSocket,
            RegKind::SockCommon => RegBase::PtrToSockCommon,
            RegKind::TcpSock => RegBase::PtrToTcpSock,
            RegKind::TpBuffer => RegBase::PtrToTpBuffer,
            RegKind::XdpSock => RegBase::PtrToXdpSock,
            RegKind::BtfId { .. } => RegBase::PtrToBtfId,
            RegKind::Mem { .. } => RegBase::PtrToMem,
            RegKind::Arena => RegBase::PtrToArena,
            RegKind::Buf => RegBase::PtrToBuf,
            RegKind::Func { .. } => RegBase::PtrToFunc,
            RegKind::ConstDynptr { .. } => RegBase::ConstPtrToDynptr,
            RegKind::Insn { .. } => RegBase::PtrToInsn,
        }
    }

    /// Memory of so many bytes.
    pub const fn memory(size: u32) -> RegKind {
        RegKind::Mem { size, dynptr_id: 0 }
    }

    /// A number that tells apart what pointers of this kind point to; 0 for the other kinds.
    pub const fn residue(self) -> u32 {
        match self {
            RegKind::MapPtr { map, .. }
            | RegKind::MapValue { map, .. }
            | RegKind::MapKey { map, .. }
            | RegKind::Insn { map } => 1 + map.0,
            RegKind::BtfId { ty } => 1 << 30 | ty.btf.residue() | ty.id,
            RegKind::Mem { size, .. } => 1 << 31 | size,
            RegKind::NotInit
            | RegKind::Scalar
            | RegKind::Ctx
            | RegKind::Stack { .. }
            | RegKind::PacketMeta { .. }
            | RegKind::Packet { .. }
            | RegKind::PacketEnd
            | RegKind::FlowKeys
            | RegKind::Socket
            | RegKind::SockCommon
            | RegKind::TcpSock
            | RegKind::TpBuffer
            | RegKind::XdpSock
            | RegKind::Arena
            | RegKind::Buf
            | RegKind::Func { .. }
            | RegKind::ConstDynptr { .. } => 0,
        }
    }

    /// True for packet and packet-meta pointers (`reg_is_pkt_pointer`).
    #[doc(alias = "reg_is_pkt_pointer")]
    pub const fn is_packet(self) -> bool {
        matches!(self, RegKind::Packet { .. } | RegKind::PacketMeta { .. })
    }

    /// Of a packet or packet-meta pointer, the bytes that a comparison has proven readable.
    pub const fn packet_range(self) -> Option<i32> {
        if let RegKind::Packet { range } | RegKind::PacketMeta { range } = self {
            return Some(range);
        }
        None
    }
}

/// Abstract state of a register (kernel: `struct bpf_reg_state`) (`bpf_reg_state`).
#[doc(alias = "bpf_reg_state")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegState {
    /// Kind of value with its payload.
    pub kind: RegKind,
    /// Modifiers of the pointer's type.
    pub flags: TypeFlags,
    /// Fixed part of a pointer's offset; of a scalar whose id carries [`ADD_CONST`], the
    /// difference to the other registers of the id.
    pub off: i32,
    /// Identity shared by registers that hold the same value or the same variable
    /// offset; 0: none.
    pub id: u32,
    /// Identity of the acquired reference that the pointer belongs to; 0: none
    /// (`reg_is_referenced`).
    #[doc(alias = "reg_is_referenced")]
    pub ref_obj_id: u32,
    /// Residue in the kernel's union of the kind that the register had before a comparison
    /// with null; 0: none. Exact comparisons of states see it.
    pub residue: u32,
    /// Value of a scalar; variable part of a pointer's offset.
    pub num: Scalar,
}

impl RegState {
    /// A register that is not written yet (`mark_reg_not_init`, `__mark_reg_not_init`,
    /// `bpf_mark_reg_not_init`).
    #[doc(alias = "mark_reg_not_init")]
    #[doc(alias = "__mark_reg_not_init")]
    #[doc(alias = "bpf_mark_reg_not_init")]
    pub const NOT_INIT: RegState = RegState {
        kind: RegKind::NotInit,
        flags: TypeFlags::NONE,
        off: 0,
        id: 0,
        ref_obj_id: 0,
        residue: 0,
        num: Scalar::UNKNOWN,
    };

    /// A scalar of unknown value, imprecise (`__mark_reg_unknown_imprecise`,
    /// `bpf_mark_reg_unknown_imprecise`).
    #[doc(alias = "__mark_reg_unknown_imprecise")]
    #[doc(alias = "bpf_mark_reg_unknown_imprecise")]
    pub const UNKNOWN: RegState = RegState {
        kind: RegKind::Scalar,
        ..RegState::NOT_INIT
    };

    /// The offset of a pointer, its constant part included.
    pub(crate) fn whole_offset(&self, rules: Behaviours) -> Scalar {
        let mut offset = self.num;
        if self.off != 0 {
            offset.add(&Scalar::constant(i64::from(self.off) as u64), rules);
        }
        offset
    }

    /// Sets the offset of a pointer, of kernels where its constant part is part of it: a constant is
    /// kept apart from what varies.
    pub(crate) fn set_whole_offset(&mut self, offset: Scalar) {
        let constant = offset.as_const().filter(|_| offset.smin == offset.smax);
        (self.off, self.num) = match constant.and_then(|value| i32::try_from(value as i64).ok()) {
            Some(off) => (off, Scalar::ZERO),
            None => (0, offset),
        };
    }

    /// A scalar that is linked with no other: without identity, and without a difference where the
    /// kernel ends that, too (`clear_scalar_id`).
    #[doc(alias = "clear_scalar_id")]
    #[must_use]
    pub const fn without_link(self, rules: Behaviours) -> RegState {
        let off = match rules.has(Behaviour::LinksEndWhole) {
            true => 0,
            false => self.off,
        };
        RegState { id: 0, off, ..self }
    }

    /// A scalar of known value (`__mark_reg_known`).
    #[doc(alias = "__mark_reg_known")]
    pub fn constant(value: u64) -> RegState {
        RegState {
            kind: RegKind::Scalar,
            num: Scalar::constant(value),
            ..RegState::NOT_INIT
        }
    }

    /// A pointer of that kind with offset zero (`__mark_reg_known_zero`).
    #[doc(alias = "__mark_reg_known_zero")]
    pub fn pointer(kind: RegKind, flags: TypeFlags) -> RegState {
        RegState {
            kind,
            flags,
            num: Scalar::constant(0),
            ..RegState::NOT_INIT
        }
    }

    /// True for [`RegKind::Scalar`].
    pub const fn is_scalar(&self) -> bool {
        matches!(self.kind, RegKind::Scalar)
    }

    /// True for a scalar of one known value.
    pub fn is_constant(&self) -> bool {
        self.is_scalar() && self.num.var_off.is_const()
    }

    /// True for the scalar 0 (`register_is_null`).
    #[doc(alias = "register_is_null")]
    pub fn is_null(&self) -> bool {
        self.is_scalar() && self.num.var_off.is_const() && self.num.var_off.value == 0
    }

    /// True if the pointer may be null.
    pub const fn may_be_null(&self) -> bool {
        self.flags.has(TypeFlags::PTR_MAYBE_NULL)
    }

    /// True for pointers to objects that programs allocate (`type_is_ptr_alloc_obj`).
    #[doc(alias = "type_is_ptr_alloc_obj")]
    pub const fn is_allocated(&self) -> bool {
        matches!(self.kind, RegKind::BtfId { .. }) && self.flags.has(TypeFlags::MEM_ALLOC)
    }

    /// True for pointers to objects that a list or tree owns, under its lock
    /// (`type_is_non_owning_ref`).
    #[doc(alias = "type_is_non_owning_ref")]
    pub const fn is_non_owning(&self) -> bool {
        self.is_allocated() && self.flags.has(TypeFlags::NON_OWN_REF)
    }

    /// Base and modifiers of the type (`bpf_reg_state::type`).
    pub const fn reg_type(&self) -> RegType {
        self.kind.base().with(self.flags)
    }

    /// True for this base without modifiers.
    pub fn is_plain(&self, base: RegBase) -> bool {
        self.reg_type() == base.plain()
    }
}

const _: () = assert!(size_of::<RegState>() <= 128);
