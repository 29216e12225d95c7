//! The decoded instruction. Invalid field values have no representation, and instructions
//! of equal meaning are equal values.

use std::fmt;

/// An eight-byte slot as encoded (RFC 9669 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct RawInsn {
    /// Opcode: class in the low three bits.
    pub code: u8,
    /// Destination register in the low nibble, source register in the high one.
    pub regs: u8,
    /// Signed offset (jumps count slots after the next instruction).
    pub off: i16,
    /// Signed immediate.
    pub imm: i32,
}

/// A register, `r0` to `r10`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(u8);

impl Reg {
    /// Return value of calls and of the program.
    pub const R0: Reg = Reg(0);
    /// First argument; the context on entry.
    pub const R1: Reg = Reg(1);
    /// Second argument.
    pub const R2: Reg = Reg(2);
    /// Third argument.
    pub const R3: Reg = Reg(3);
    /// Fourth argument.
    pub const R4: Reg = Reg(4);
    /// Fifth argument.
    pub const R5: Reg = Reg(5);
    /// Callee-saved; the context of legacy packet loads.
    pub const R6: Reg = Reg(6);
    /// Callee-saved.
    pub const R7: Reg = Reg(7);
    /// Callee-saved.
    pub const R8: Reg = Reg(8);
    /// Callee-saved.
    pub const R9: Reg = Reg(9);
    /// The frame pointer, read only.
    pub const R10: Reg = Reg(10);
    /// Number of registers.
    pub const COUNT: usize = 11;

    /// The register with a number; `None` above 10.
    pub const fn new(number: u8) -> Option<Reg> {
        if number <= 10 {
            Some(Reg(number))
        } else {
            None
        }
    }

    /// Number, 0 to 10.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Number as an index, 0 to 10.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// Width of an operation. A 32-bit operation zeroes the upper half of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// The low half (`w` registers).
    W32,
    /// The whole register.
    W64,
}

/// Size of a memory access, with its bits in the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// One byte.
    B = 0x10,
    /// Two bytes.
    H = 0x08,
    /// Four bytes.
    W = 0x00,
    /// Eight bytes.
    DW = 0x18,
}

impl Size {
    /// Size in bytes: 1, 2, 4 or 8.
    pub const fn bytes(self) -> u32 {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
            Size::DW => 8,
        }
    }
}

/// A second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An immediate, sign-extended to the operation's width.
    Imm(i32),
}

/// Two-operand arithmetic: `dst = dst op src` (`Mov`: `dst = src`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AluOp {
    Add,
    Sub,
    Mul,
    /// Unsigned; by zero gives 0.
    Div,
    /// Signed; by zero gives 0, MIN / -1 gives MIN.
    SDiv,
    /// Unsigned; by zero leaves the destination.
    Mod,
    /// Signed; by zero leaves the destination, MIN % -1 gives 0.
    SMod,
    Or,
    And,
    Xor,
    /// The count is masked to the width.
    Lsh,
    /// Logical; the count is masked to the width.
    Rsh,
    /// Arithmetic; the count is masked to the width.
    Arsh,
    Mov,
}

/// Condition of a branch: `dst cond src`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Cond {
    Eq,
    Ne,
    /// `dst & src != 0`.
    Set,
    /// Unsigned greater.
    Gt,
    /// Unsigned greater or equal.
    Ge,
    /// Unsigned less.
    Lt,
    /// Unsigned less or equal.
    Le,
    /// Signed greater.
    SGt,
    /// Signed greater or equal.
    SGe,
    /// Signed less.
    SLt,
    /// Signed less or equal.
    SLe,
}

/// Kind of a byte-order instruction (RFC 9669 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Host to little-endian (truncates on a little-endian host).
    Little,
    /// Host to big-endian (swaps and truncates on a little-endian host).
    Big,
    /// Unconditional swap.
    Swap,
}

/// Read-modify-write operations (RFC 9669 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// `*p += src`, optionally returning the old value in `src`.
    Add {
        /// True if `src` receives the old value.
        fetch: bool,
    },
    /// `*p |= src`.
    Or {
        /// True if `src` receives the old value.
        fetch: bool,
    },
    /// `*p &= src`.
    And {
        /// True if `src` receives the old value.
        fetch: bool,
    },
    /// `*p ^= src`.
    Xor {
        /// True if `src` receives the old value.
        fetch: bool,
    },
    /// `src = exchange(p, src)`.
    Xchg,
    /// `r0 = compare_exchange(p, r0, src)`.
    CmpXchg,
}

/// A plain 64-bit immediate, aligned to 4 bytes, which keeps an [`Insn`] at 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(Rust, packed(4))]
pub struct Value64(u64);

impl Value64 {
    /// An immediate with a value.
    pub const fn new(value: u64) -> Value64 {
        Value64(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Value64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.get())
    }
}

/// The forms of 64-bit immediates, by the number in the source field (RFC 9669 section
/// 5.4). Some forms use the two halves separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Imm64 {
    /// 0: a plain value.
    Value(Value64),
    /// 1: the map with this file descriptor.
    MapFd { fd: i32, high: i32 },
    /// 2: the address of the map's first value, plus an offset.
    MapValue { fd: i32, offset: i32 },
    /// 3: the address of the kernel variable with this BTF id.
    BtfId { id: i32, module_fd: i32 },
    /// 4: the address of a subprogram, relative like a local call.
    Func { off: i32, high: i32 },
    /// 5: the map at this index of the load attribute's fd array.
    MapIndex { index: i32, high: i32 },
    /// 6: as `MapValue`, by index.
    MapIndexValue { index: i32, offset: i32 },
}

/// Callee of a call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A helper by its number.
    Helper(i32),
    /// A kfunc by BTF id, with the index of the module's BTF.
    Kfunc {
        /// BTF id of the function.
        id: i32,
        /// Index into the fd array, 0 for vmlinux.
        module: i16,
    },
    /// A subprog: slots after the next instruction.
    Local(i32),
}

/// Direction of an address-space cast (`bpf_addr_space_cast`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddrSpaceCast {
    /// Destination address space (upper half of the immediate).
    pub to: u16,
    /// Source address space (lower half of the immediate).
    pub from: u16,
}

/// An instruction. Programs have one `Insn` per slot, so indices and jump offsets are the
/// kernel's; the second slot of a 64-bit immediate is [`Insn::Imm64High`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Insn {
    Alu {
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    },
    Neg {
        width: Width,
        dst: Reg,
    },
    /// `dst = (sN)src`: `from` is `B`, `H` or (64-bit only) `W`.
    MovSx {
        width: Width,
        from: Size,
        dst: Reg,
        src: Reg,
    },
    /// `size` is `H`, `W` or `DW`.
    Endian {
        order: ByteOrder,
        size: Size,
        dst: Reg,
    },
    Cast {
        cast: AddrSpaceCast,
        dst: Reg,
        src: Reg,
    },
    /// First slot of a 64-bit immediate.
    LoadImm64 {
        dst: Reg,
        imm: Imm64,
    },
    /// Second slot of a 64-bit immediate.
    Imm64High,
    Load {
        size: Size,
        signed: bool,
        dst: Reg,
        base: Reg,
        off: i16,
    },
    Store {
        size: Size,
        base: Reg,
        off: i16,
        src: Operand,
    },
    /// `size` is `W` or `DW`.
    Atomic {
        op: AtomicOp,
        size: Size,
        base: Reg,
        off: i16,
        src: Reg,
    },
    /// A load with acquire order (`is_atomic_load_insn`).
    #[doc(alias = "is_atomic_load_insn")]
    LoadAcquire {
        size: Size,
        dst: Reg,
        base: Reg,
        off: i16,
    },
    StoreRelease {
        size: Size,
        base: Reg,
        off: i16,
        src: Reg,
    },
    /// Legacy packet load at a constant offset: `r0 = *(size *)skb[imm]`, in
    /// network byte order; beyond the packet the program ends with 0.
    PacketAbs {
        size: Size,
        imm: i32,
    },
    /// Legacy packet load at `src + imm`.
    PacketInd {
        size: Size,
        src: Reg,
        imm: i32,
    },
    Jump {
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
        off: i16,
    },
    /// `goto` with a 16-bit offset.
    Goto {
        off: i16,
    },
    /// `gotol`: a 32-bit offset.
    GotoLong {
        off: i32,
    },
    /// `gotox`: an indirect jump (Linux 6.19 and later).
    GotoReg {
        dst: Reg,
    },
    /// `may_goto`: falls through until the loop budget is used up.
    MayGoto {
        off: i16,
    },
    Call(Callee),
    /// `callx`: a call through a register.
    CallReg {
        dst: Reg,
    },
    Exit,
    /// An invalid slot and its fault.
    Invalid {
        raw: RawInsn,
        fault: Fault,
    },
}

// Programs are slices of these, read by all checkers and compilers.
const _: () = assert!(size_of::<Insn>() == 16);

/// Fault of an invalid instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The opcode is unknown.
    UnknownOpcode,
    /// A field of a known opcode has a reserved value.
    ReservedField,
    /// A register number above 10.
    RegisterOutOfRange,
    /// A 64-bit immediate without its second slot, or with a bad one.
    BrokenImm64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::UnknownOpcode => "no instruction has this opcode",
            Fault::ReservedField => "a field has a value that this opcode does not allow",
            Fault::RegisterOutOfRange => "register number is above r10",
            Fault::BrokenImm64 => "64-bit immediate load lacks its second slot",
        })
    }
}

impl std::error::Error for Fault {}
