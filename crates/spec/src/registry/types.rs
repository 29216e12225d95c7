//! Types of arguments, return values and registers: the kernel's `enum bpf_arg_type`,
//! `enum bpf_return_type` and `enum bpf_reg_type`, each a base in the low byte and
//! modifiers (`enum bpf_type_flag`) above it. The numbers are those of 6.18's BTF, so
//! [`ArgType::from_raw`] and the like decode the kernel's values.

use std::fmt;
use std::ops::BitOr;

/// Mask of the base in a raw type.
pub const BASE_MASK: u32 = 0xff;

/// Modifiers of a type: `enum bpf_type_flag`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeFlags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal;)*) => {
        impl TypeFlags {
            $($(#[$doc])* pub const $flag: TypeFlags = TypeFlags(1 << $bit);)*
            /// Every modifier with its name in C, by bit.
            pub const ALL: &'static [(TypeFlags, &'static str)] =
                &[$((TypeFlags::$flag, stringify!($flag)),)*];
        }
    };
}

flags! {
    /// The pointer may be null.
    PTR_MAYBE_NULL = 8;
    /// The memory may only be read (`type_is_rdonly_mem`).
    #[doc(alias = "type_is_rdonly_mem")]
    MEM_RDONLY = 9;
    /// The memory is a record of a ring buffer.
    MEM_RINGBUF = 10;
    /// The memory is in user space.
    MEM_USER = 11;
    /// The memory is a per-CPU variable.
    MEM_PERCPU = 12;
    /// The argument's reference is released by the call (`arg_type_is_release`).
    #[doc(alias = "arg_type_is_release")]
    OBJ_RELEASE = 13;
    /// The pointer is untrusted: loads through it are probed.
    PTR_UNTRUSTED = 14;
    /// The memory need not be initialised (`arg_type_is_raw_mem`).
    #[doc(alias = "arg_type_is_raw_mem")]
    MEM_UNINIT = 15;
    /// The dynptr points to local memory.
    DYNPTR_TYPE_LOCAL = 16;
    /// The dynptr points to a record of a ring buffer.
    DYNPTR_TYPE_RINGBUF = 17;
    /// The size of the memory is in the prototype.
    MEM_FIXED_SIZE = 18;
    /// The memory was allocated by the program.
    MEM_ALLOC = 19;
    /// The pointer is trusted.
    PTR_TRUSTED = 20;
    /// The pointer is protected by RCU.
    MEM_RCU = 21;
    /// The program does not own the reference.
    NON_OWN_REF = 22;
    /// The dynptr points to a packet of the stack.
    DYNPTR_TYPE_SKB = 23;
    /// The dynptr points to a packet of a driver.
    DYNPTR_TYPE_XDP = 24;
    /// The memory must be aligned to its fixed size.
    MEM_ALIGNED = 25;
    /// The memory is written.
    MEM_WRITE = 26;
    /// The dynptr points to the metadata of a packet.
    DYNPTR_TYPE_SKB_META = 27;
    /// The dynptr points to a file.
    DYNPTR_TYPE_FILE = 28;
}

impl TypeFlags {
    /// No modifier.
    pub const NONE: TypeFlags = TypeFlags(0);

    /// True if all of `other` are set.
    pub const fn has(self, other: TypeFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if at least one of `other` is set.
    pub const fn has_any(self, other: TypeFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// True if none is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Union of both.
    #[must_use]
    pub const fn with(self, other: TypeFlags) -> TypeFlags {
        TypeFlags(self.0 | other.0)
    }

    /// Intersection of both.
    #[must_use]
    pub const fn and(self, other: TypeFlags) -> TypeFlags {
        TypeFlags(self.0 & other.0)
    }

    /// Difference: flags of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: TypeFlags) -> TypeFlags {
        TypeFlags(self.0 & !other.0)
    }
}

impl BitOr for TypeFlags {
    type Output = TypeFlags;
    fn bitor(self, other: TypeFlags) -> TypeFlags {
        self.with(other)
    }
}

impl fmt::Debug for TypeFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut list = f.debug_set();
        for (flag, name) in TypeFlags::ALL {
            if self.has(*flag) {
                rest &= !flag.0;
                list.entry(&format_args!("{name}"));
            }
        }
        if rest != 0 {
            list.entry(&format_args!("{rest:#x}"));
        }
        list.finish()
    }
}

macro_rules! kinds {
    (
        $(#[$about:meta])* $whole:ident, $(#[$base_about:meta])* $base:ident:
        $($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*
    ) => {
        $(#[$base_about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $base {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $base {
            /// Every base, by number.
            pub const ALL: &'static [$base] = &[$($base::$variant,)*];

            /// Base with this number.
            pub const fn from_number(number: u32) -> Option<$base> {
                Some(match number {
                    $($number => $base::$variant,)*
                    _ => return None,
                })
            }

            /// Name in C.
            pub const fn name(self) -> &'static str {
                match self {
                    $($base::$variant => $name,)*
                }
            }

            /// The type of this base without modifiers.
            pub const fn plain(self) -> $whole {
                self.with(TypeFlags::NONE)
            }

            /// The type of this base with modifiers.
            pub const fn with(self, flags: TypeFlags) -> $whole {
                $whole::new(self, flags)
            }
        }

        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $whole {
            /// Base of the type.
            pub base: $base,
            /// Modifiers of the type.
            pub flags: TypeFlags,
        }

        impl $whole {
            /// A type of a base and modifiers.
            pub const fn new(base: $base, flags: TypeFlags) -> $whole {
                $whole { base, flags }
            }

            /// Type of the kernel's encoding; `None` for a base that 6.18 lacks.
            pub const fn from_raw(raw: u32) -> Option<$whole> {
                match $base::from_number(raw & BASE_MASK) {
                    Some(base) => Some($whole { base, flags: TypeFlags(raw & !BASE_MASK) }),
                    None => None,
                }
            }

            /// Encoding of the kernel.
            pub const fn raw(self) -> u32 {
                self.base as u32 | self.flags.0
            }

            /// True if null is among its values.
            pub const fn may_be_null(self) -> bool {
                self.flags.has(TypeFlags::PTR_MAYBE_NULL)
            }
        }

        impl From<$base> for $whole {
            fn from(base: $base) -> $whole {
                base.plain()
            }
        }
    };
}

kinds! {
    /// Argument type of a helper (`enum bpf_arg_type`).
    ArgType,
    /// Base of an argument's type.
    ArgBase:
    /// The helper has no such argument.
    DontCare = 0, "ARG_DONTCARE";
    /// A map.
    ConstMapPtr = 1, "ARG_CONST_MAP_PTR";
    /// Memory of a key of the map.
    PtrToMapKey = 2, "ARG_PTR_TO_MAP_KEY";
    /// Memory of a value of the map.
    PtrToMapValue = 3, "ARG_PTR_TO_MAP_VALUE";
    /// Memory, its size in the next argument or in the prototype.
    PtrToMem = 4, "ARG_PTR_TO_MEM";
    /// An arena.
    PtrToArena = 5, "ARG_PTR_TO_ARENA";
    /// Size of the memory before it, not 0 (`arg_type_is_mem_size`).
    #[doc(alias = "arg_type_is_mem_size")]
    ConstSize = 6, "ARG_CONST_SIZE";
    /// Size of the memory before it (`arg_type_is_mem_size`).
    #[doc(alias = "arg_type_is_mem_size")]
    ConstSizeOrZero = 7, "ARG_CONST_SIZE_OR_ZERO";
    /// The program's context.
    PtrToCtx = 8, "ARG_PTR_TO_CTX";
    /// Any initialised value.
    Anything = 9, "ARG_ANYTHING";
    /// A spin lock.
    PtrToSpinLock = 10, "ARG_PTR_TO_SPIN_LOCK";
    /// A `sock_common`.
    PtrToSockCommon = 11, "ARG_PTR_TO_SOCK_COMMON";
    /// A full socket.
    PtrToSocket = 12, "ARG_PTR_TO_SOCKET";
    /// A structure of the kernel.
    PtrToBtfId = 13, "ARG_PTR_TO_BTF_ID";
    /// A record of a ring buffer.
    PtrToRingbufMem = 14, "ARG_PTR_TO_RINGBUF_MEM";
    /// Constant number of bytes to allocate.
    ConstAllocSizeOrZero = 15, "ARG_CONST_ALLOC_SIZE_OR_ZERO";
    /// A `sock_common`, by its verifier kind or its type.
    PtrToBtfIdSockCommon = 16, "ARG_PTR_TO_BTF_ID_SOCK_COMMON";
    /// A per-CPU variable of the kernel.
    PtrToPercpuBtfId = 17, "ARG_PTR_TO_PERCPU_BTF_ID";
    /// A function of the program.
    PtrToFunc = 18, "ARG_PTR_TO_FUNC";
    /// Memory of the stack.
    PtrToStack = 19, "ARG_PTR_TO_STACK";
    /// A string in a read-only map.
    PtrToConstStr = 20, "ARG_PTR_TO_CONST_STR";
    /// A timer.
    PtrToTimer = 21, "ARG_PTR_TO_TIMER";
    /// The place of a kptr.
    KptrXchgDest = 22, "ARG_KPTR_XCHG_DEST";
    /// A dynptr (`arg_type_is_dynptr`).
    #[doc(alias = "arg_type_is_dynptr")]
    PtrToDynptr = 23, "ARG_PTR_TO_DYNPTR";
}

kinds! {
    /// Return type of a helper (`enum bpf_return_type`).
    RetType,
    /// Base of a return type.
    RetBase:
    /// A number.
    Integer = 0, "RET_INTEGER";
    /// Nothing.
    Void = 1, "RET_VOID";
    /// A value of the map.
    PtrToMapValue = 2, "RET_PTR_TO_MAP_VALUE";
    /// A full socket.
    PtrToSocket = 3, "RET_PTR_TO_SOCKET";
    /// A TCP socket.
    PtrToTcpSock = 4, "RET_PTR_TO_TCP_SOCK";
    /// A `sock_common`.
    PtrToSockCommon = 5, "RET_PTR_TO_SOCK_COMMON";
    /// Memory whose size is an argument.
    PtrToMem = 6, "RET_PTR_TO_MEM";
    /// Memory or a structure of the kernel, by the argument's type.
    PtrToMemOrBtfId = 7, "RET_PTR_TO_MEM_OR_BTF_ID";
    /// A structure of the kernel.
    PtrToBtfId = 8, "RET_PTR_TO_BTF_ID";
}

kinds! {
    /// Register type (`enum bpf_reg_type`).
    RegType,
    /// Base of a register's type.
    RegBase:
    /// Uninitialised.
    NotInit = 0, "NOT_INIT";
    /// A number.
    Scalar = 1, "SCALAR_VALUE";
    /// The context.
    PtrToCtx = 2, "PTR_TO_CTX";
    /// A map.
    ConstPtrToMap = 3, "CONST_PTR_TO_MAP";
    /// A value of a map.
    PtrToMapValue = 4, "PTR_TO_MAP_VALUE";
    /// A key of a map.
    PtrToMapKey = 5, "PTR_TO_MAP_KEY";
    /// The stack.
    PtrToStack = 6, "PTR_TO_STACK";
    /// Metadata before a packet.
    PtrToPacketMeta = 7, "PTR_TO_PACKET_META";
    /// A packet.
    PtrToPacket = 8, "PTR_TO_PACKET";
    /// The end of a packet.
    PtrToPacketEnd = 9, "PTR_TO_PACKET_END";
    /// Keys of a flow dissector.
    PtrToFlowKeys = 10, "PTR_TO_FLOW_KEYS";
    /// A full socket.
    PtrToSocket = 11, "PTR_TO_SOCKET";
    /// A `sock_common`.
    PtrToSockCommon = 12, "PTR_TO_SOCK_COMMON";
    /// A TCP socket.
    PtrToTcpSock = 13, "PTR_TO_TCP_SOCK";
    /// The buffer of a writable raw tracepoint.
    PtrToTpBuffer = 14, "PTR_TO_TP_BUFFER";
    /// An AF_XDP socket.
    PtrToXdpSock = 15, "PTR_TO_XDP_SOCK";
    /// A structure of the kernel.
    PtrToBtfId = 16, "PTR_TO_BTF_ID";
    /// Memory of known size.
    PtrToMem = 17, "PTR_TO_MEM";
    /// An arena.
    PtrToArena = 18, "PTR_TO_ARENA";
    /// A buffer of an iterator or of a network device.
    PtrToBuf = 19, "PTR_TO_BUF";
    /// A function of the program.
    PtrToFunc = 20, "PTR_TO_FUNC";
    /// A dynptr given to a callback.
    ConstPtrToDynptr = 21, "CONST_PTR_TO_DYNPTR";
    /// An instruction of the program; later kernels have it in front of the dynptr.
    PtrToInsn = 22, "PTR_TO_INSN";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_types_of_the_kernel_decode() {
        let uninit = ArgType::from_raw(67_141_636).unwrap();
        assert_eq!(uninit.base, ArgBase::PtrToMem);
        assert_eq!(uninit.flags, TypeFlags::MEM_UNINIT | TypeFlags::MEM_WRITE);
        assert_eq!(uninit.raw(), 67_141_636);
        let ringbuf = RetType::from_raw(1286).unwrap();
        assert_eq!(ringbuf.base, RetBase::PtrToMem);
        assert!(ringbuf.may_be_null() && ringbuf.flags.has(TypeFlags::MEM_RINGBUF));
        let socket = RegType::from_raw(267).unwrap();
        assert_eq!(socket.base, RegBase::PtrToSocket);
        assert!(socket.may_be_null());
        assert_eq!(ArgType::from_raw(24), None);
        assert_eq!(RetType::from_raw(9), None);
        assert_eq!(RegType::from_raw(23), None);
    }

    #[test]
    fn bases_leave_no_gap() {
        assert!(
            ArgBase::ALL
                .iter()
                .zip(0..)
                .all(|(base, at)| *base as u32 == at)
        );
        assert!(
            RetBase::ALL
                .iter()
                .zip(0..)
                .all(|(base, at)| *base as u32 == at)
        );
        assert!(
            RegBase::ALL
                .iter()
                .zip(0..)
                .all(|(base, at)| *base as u32 == at)
        );
    }
}
