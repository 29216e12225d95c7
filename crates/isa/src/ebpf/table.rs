//! The eBPF instruction table: RFC 9669 in full, and what Linux 6.18 executes
//! beyond it.
//!
//! To add an instruction, write one row: decoding, encoding, the rules for reserved fields,
//! operands, both text forms and the assembler derive from it, and the compiler reports
//! every match that must handle a new [`Insn`] variant or operation. `row.rs` documents the
//! columns, `template.rs` the placeholders of the texts.

use super::codec::{Halves, Immediate};
use super::insn::AluOp::*;
use super::insn::ByteOrder::*;
use super::insn::Cond::*;
use super::insn::Operand::{Imm as K, Reg as X};
use super::insn::Size::*;
use super::insn::Width::*;
use super::insn::{AtomicOp, Callee, Imm64, Insn, RawInsn, Reg};
use super::operands::RegRoles;
use super::row::{Effect, Field, Group, Row};

rows! {
    // name code dst src off imm group effect [reads] -> [writes] instruction,
    //     "LLVM text", "kernel's log text";

    // Arithmetic, RFC 9669 section 4.1. `Mov` with other offsets follows below.
    AddImm64 0x07 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Add, width: W64, dst, src: K(imm) },
        "{dst} += {imm}", "{dst} += {imm}";
    AddReg64 0x0f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Add, width: W64, dst, src: X(src) },
        "{dst} += {src}", "{dst} += {src}";
    AddImm32 0x04 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Add, width: W32, dst, src: K(imm) },
        "{wdst} += {uimm}", "{wdst} += {imm}";
    AddReg32 0x0c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Add, width: W32, dst, src: X(src) },
        "{wdst} += {wsrc}", "{wdst} += {wsrc}";
    SubImm64 0x17 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Sub, width: W64, dst, src: K(imm) },
        "{dst} -= {imm}", "{dst} -= {imm}";
    SubReg64 0x1f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Sub, width: W64, dst, src: X(src) },
        "{dst} -= {src}", "{dst} -= {src}";
    SubImm32 0x14 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Sub, width: W32, dst, src: K(imm) },
        "{wdst} -= {uimm}", "{wdst} -= {imm}";
    SubReg32 0x1c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Sub, width: W32, dst, src: X(src) },
        "{wdst} -= {wsrc}", "{wdst} -= {wsrc}";
    MulImm64 0x27 dst 0 0 imm Divmul64 Compute [dst] -> [dst] Alu { op: Mul, width: W64, dst, src: K(imm) },
        "{dst} *= {imm}", "{dst} *= {imm}";
    MulReg64 0x2f dst src 0 0 Divmul64 Compute [dst src] -> [dst] Alu { op: Mul, width: W64, dst, src: X(src) },
        "{dst} *= {src}", "{dst} *= {src}";
    MulImm32 0x24 dst 0 0 imm Divmul32 Compute [dst] -> [dst] Alu { op: Mul, width: W32, dst, src: K(imm) },
        "{wdst} *= {uimm}", "{wdst} *= {imm}";
    MulReg32 0x2c dst src 0 0 Divmul32 Compute [dst src] -> [dst] Alu { op: Mul, width: W32, dst, src: X(src) },
        "{wdst} *= {wsrc}", "{wdst} *= {wsrc}";
    DivImm64 0x37 dst 0 0 imm Divmul64 Compute [dst] -> [dst] Alu { op: Div, width: W64, dst, src: K(imm) },
        "{dst} /= {imm}", "{dst} /= {imm}";
    DivReg64 0x3f dst src 0 0 Divmul64 Compute [dst src] -> [dst] Alu { op: Div, width: W64, dst, src: X(src) },
        "{dst} /= {src}", "{dst} /= {src}";
    DivImm32 0x34 dst 0 0 imm Divmul32 Compute [dst] -> [dst] Alu { op: Div, width: W32, dst, src: K(imm) },
        "{wdst} /= {uimm}", "{wdst} /= {imm}";
    DivReg32 0x3c dst src 0 0 Divmul32 Compute [dst src] -> [dst] Alu { op: Div, width: W32, dst, src: X(src) },
        "{wdst} /= {wsrc}", "{wdst} /= {wsrc}";
    SDivImm64 0x37 dst 0 1 imm Divmul64 Compute [dst] -> [dst] Alu { op: SDiv, width: W64, dst, src: K(imm) },
        "{dst} s/= {imm}", "{dst} s/= {imm}";
    SDivReg64 0x3f dst src 1 0 Divmul64 Compute [dst src] -> [dst] Alu { op: SDiv, width: W64, dst, src: X(src) },
        "{dst} s/= {src}", "{dst} s/= {src}";
    SDivImm32 0x34 dst 0 1 imm Divmul32 Compute [dst] -> [dst] Alu { op: SDiv, width: W32, dst, src: K(imm) },
        "{wdst} s/= {uimm}", "{wdst} s/= {imm}";
    SDivReg32 0x3c dst src 1 0 Divmul32 Compute [dst src] -> [dst] Alu { op: SDiv, width: W32, dst, src: X(src) },
        "{wdst} s/= {wsrc}", "{wdst} s/= {wsrc}";
    ModImm64 0x97 dst 0 0 imm Divmul64 Compute [dst] -> [dst] Alu { op: Mod, width: W64, dst, src: K(imm) },
        "{dst} %= {imm}", "{dst} %= {imm}";
    ModReg64 0x9f dst src 0 0 Divmul64 Compute [dst src] -> [dst] Alu { op: Mod, width: W64, dst, src: X(src) },
        "{dst} %= {src}", "{dst} %= {src}";
    ModImm32 0x94 dst 0 0 imm Divmul32 Compute [dst] -> [dst] Alu { op: Mod, width: W32, dst, src: K(imm) },
        "{wdst} %= {uimm}", "{wdst} %= {imm}";
    ModReg32 0x9c dst src 0 0 Divmul32 Compute [dst src] -> [dst] Alu { op: Mod, width: W32, dst, src: X(src) },
        "{wdst} %= {wsrc}", "{wdst} %= {wsrc}";
    SModImm64 0x97 dst 0 1 imm Divmul64 Compute [dst] -> [dst] Alu { op: SMod, width: W64, dst, src: K(imm) },
        "{dst} s%= {imm}", "{dst} s%= {imm}";
    SModReg64 0x9f dst src 1 0 Divmul64 Compute [dst src] -> [dst] Alu { op: SMod, width: W64, dst, src: X(src) },
        "{dst} s%= {src}", "{dst} s%= {src}";
    SModImm32 0x94 dst 0 1 imm Divmul32 Compute [dst] -> [dst] Alu { op: SMod, width: W32, dst, src: K(imm) },
        "{wdst} s%= {uimm}", "{wdst} s%= {imm}";
    SModReg32 0x9c dst src 1 0 Divmul32 Compute [dst src] -> [dst] Alu { op: SMod, width: W32, dst, src: X(src) },
        "{wdst} s%= {wsrc}", "{wdst} s%= {wsrc}";
    OrImm64 0x47 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Or, width: W64, dst, src: K(imm) },
        "{dst} |= {imm}", "{dst} |= {imm}";
    OrReg64 0x4f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Or, width: W64, dst, src: X(src) },
        "{dst} |= {src}", "{dst} |= {src}";
    OrImm32 0x44 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Or, width: W32, dst, src: K(imm) },
        "{wdst} |= {uimm}", "{wdst} |= {imm}";
    OrReg32 0x4c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Or, width: W32, dst, src: X(src) },
        "{wdst} |= {wsrc}", "{wdst} |= {wsrc}";
    AndImm64 0x57 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: And, width: W64, dst, src: K(imm) },
        "{dst} &= {imm}", "{dst} &= {imm}";
    AndReg64 0x5f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: And, width: W64, dst, src: X(src) },
        "{dst} &= {src}", "{dst} &= {src}";
    AndImm32 0x54 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: And, width: W32, dst, src: K(imm) },
        "{wdst} &= {uimm}", "{wdst} &= {imm}";
    AndReg32 0x5c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: And, width: W32, dst, src: X(src) },
        "{wdst} &= {wsrc}", "{wdst} &= {wsrc}";
    XorImm64 0xa7 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Xor, width: W64, dst, src: K(imm) },
        "{dst} ^= {imm}", "{dst} ^= {imm}";
    XorReg64 0xaf dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Xor, width: W64, dst, src: X(src) },
        "{dst} ^= {src}", "{dst} ^= {src}";
    XorImm32 0xa4 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Xor, width: W32, dst, src: K(imm) },
        "{wdst} ^= {uimm}", "{wdst} ^= {imm}";
    XorReg32 0xac dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Xor, width: W32, dst, src: X(src) },
        "{wdst} ^= {wsrc}", "{wdst} ^= {wsrc}";
    LshImm64 0x67 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Lsh, width: W64, dst, src: K(imm) },
        "{dst} <<= {imm}", "{dst} <<= {imm}";
    LshReg64 0x6f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Lsh, width: W64, dst, src: X(src) },
        "{dst} <<= {src}", "{dst} <<= {src}";
    LshImm32 0x64 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Lsh, width: W32, dst, src: K(imm) },
        "{wdst} <<= {uimm}", "{wdst} <<= {imm}";
    LshReg32 0x6c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Lsh, width: W32, dst, src: X(src) },
        "{wdst} <<= {wsrc}", "{wdst} <<= {wsrc}";
    RshImm64 0x77 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Rsh, width: W64, dst, src: K(imm) },
        "{dst} >>= {imm}", "{dst} >>= {imm}";
    RshReg64 0x7f dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Rsh, width: W64, dst, src: X(src) },
        "{dst} >>= {src}", "{dst} >>= {src}";
    RshImm32 0x74 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Rsh, width: W32, dst, src: K(imm) },
        "{wdst} >>= {uimm}", "{wdst} >>= {imm}";
    RshReg32 0x7c dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Rsh, width: W32, dst, src: X(src) },
        "{wdst} >>= {wsrc}", "{wdst} >>= {wsrc}";
    ArshImm64 0xc7 dst 0 0 imm Base64 Compute [dst] -> [dst] Alu { op: Arsh, width: W64, dst, src: K(imm) },
        "{dst} s>>= {imm}", "{dst} s>>= {imm}";
    ArshReg64 0xcf dst src 0 0 Base64 Compute [dst src] -> [dst] Alu { op: Arsh, width: W64, dst, src: X(src) },
        "{dst} s>>= {src}", "{dst} s>>= {src}";
    ArshImm32 0xc4 dst 0 0 imm Base32 Compute [dst] -> [dst] Alu { op: Arsh, width: W32, dst, src: K(imm) },
        "{wdst} s>>= {uimm}", "{wdst} s>>= {imm}";
    ArshReg32 0xcc dst src 0 0 Base32 Compute [dst src] -> [dst] Alu { op: Arsh, width: W32, dst, src: X(src) },
        "{wdst} s>>= {wsrc}", "{wdst} s>>= {wsrc}";
    MovImm64 0xb7 dst 0 0 imm Base64 Compute [] -> [dst] Alu { op: Mov, width: W64, dst, src: K(imm) },
        "{dst} = {imm}", "{dst} = {imm}";
    MovReg64 0xbf dst src 0 0 Base64 Compute [src] -> [dst] Alu { op: Mov, width: W64, dst, src: X(src) },
        "{dst} = {src}", "{dst} = {src}";
    MovImm32 0xb4 dst 0 0 imm Base32 Compute [] -> [dst] Alu { op: Mov, width: W32, dst, src: K(imm) },
        "{wdst} = {uimm}", "{wdst} = {imm}";
    MovReg32 0xbc dst src 0 0 Base32 Compute [src] -> [dst] Alu { op: Mov, width: W32, dst, src: X(src) },
        "{wdst} = {wsrc}", "{wdst} = {wsrc}";
    Neg64 0x87 dst 0 0 0 Base64 Compute [dst] -> [dst] Neg { width: W64, dst },
        "{dst} = -{dst}", "{dst} = -{dst}";
    Neg32 0x84 dst 0 0 0 Base32 Compute [dst] -> [dst] Neg { width: W32, dst },
        "{wdst} = -{wdst}", "{wdst} = -{wdst}";

    // Sign-extending moves
    MovSx8To64 0xbf dst src 8 0 Base64 Compute [src] -> [dst] MovSx { width: W64, from: B, dst, src },
        "{dst} = (s8){src}", "{dst} = (s8){src}";
    MovSx16To64 0xbf dst src 16 0 Base64 Compute [src] -> [dst] MovSx { width: W64, from: H, dst, src },
        "{dst} = (s16){src}", "{dst} = (s16){src}";
    MovSx32To64 0xbf dst src 32 0 Base64 Compute [src] -> [dst] MovSx { width: W64, from: W, dst, src },
        "{dst} = (s32){src}", "{dst} = (s32){src}";
    MovSx8To32 0xbc dst src 8 0 Base32 Compute [src] -> [dst] MovSx { width: W32, from: B, dst, src },
        "{wdst} = (s8){wsrc}", "{wdst} = (s8){wsrc}";
    MovSx16To32 0xbc dst src 16 0 Base32 Compute [src] -> [dst] MovSx { width: W32, from: H, dst, src },
        "{wdst} = (s16){wsrc}", "{wdst} = (s16){wsrc}";

    // Address-space casts; Linux only
    AddrSpaceCast 0xbf dst src 1 cast Linux Compute [src] -> [dst] Cast { cast, dst, src },
        "{dst} = addr_space_cast({src}, {cast})", "{dst} = addr_space_cast({src}, {cast})";

    // Byte order, RFC 9669 section 4.2
    Little16 0xd4 dst 0 0 16 Base32 Compute [dst] -> [dst] Endian { order: Little, size: H, dst },
        "{dst} = le16 {dst}", "{dst} = le{imm} {dst}";
    Little32 0xd4 dst 0 0 32 Base32 Compute [dst] -> [dst] Endian { order: Little, size: W, dst },
        "{dst} = le32 {dst}", "{dst} = le{imm} {dst}";
    Little64 0xd4 dst 0 0 64 Base64 Compute [dst] -> [dst] Endian { order: Little, size: DW, dst },
        "{dst} = le64 {dst}", "{dst} = le{imm} {dst}";
    Big16 0xdc dst 0 0 16 Base32 Compute [dst] -> [dst] Endian { order: Big, size: H, dst },
        "{dst} = be16 {dst}", "{dst} = be{imm} {dst}";
    Big32 0xdc dst 0 0 32 Base32 Compute [dst] -> [dst] Endian { order: Big, size: W, dst },
        "{dst} = be32 {dst}", "{dst} = be{imm} {dst}";
    Big64 0xdc dst 0 0 64 Base64 Compute [dst] -> [dst] Endian { order: Big, size: DW, dst },
        "{dst} = be64 {dst}", "{dst} = be{imm} {dst}";
    Swap16 0xd7 dst 0 0 16 Base32 Compute [dst] -> [dst] Endian { order: Swap, size: H, dst },
        "{dst} = bswap16 {dst}", "{dst} = bswap{imm} {dst}";
    Swap32 0xd7 dst 0 0 32 Base32 Compute [dst] -> [dst] Endian { order: Swap, size: W, dst },
        "{dst} = bswap32 {dst}", "{dst} = bswap{imm} {dst}";
    Swap64 0xd7 dst 0 0 64 Base64 Compute [dst] -> [dst] Endian { order: Swap, size: DW, dst },
        "{dst} = bswap64 {dst}", "{dst} = bswap{imm} {dst}";

    // 64-bit immediates, two slots, RFC 9669 section 5.4
    LoadImm64 0x18 dst 0 0 value Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::Value(value) },
        "{dst} = {value} ll", "{dst} = {value}";
    LoadMapFd 0x18 dst 1 0 (imm 0) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::MapFd { fd: imm, high: 0 } },
        "{dst} = map_fd({imm}) ll", "{dst} = {value}";
    LoadMapValue 0x18 dst 2 0 (imm high) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::MapValue { fd: imm, offset: high } },
        "{dst} = map_value({imm}{, high}) ll", "{dst} = {value}";
    LoadBtfId 0x18 dst 3 0 (imm high) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::BtfId { id: imm, module_fd: high } },
        "{dst} = btf_id({imm}{, high}) ll", "{dst} = {value}";
    LoadFuncAddress 0x18 dst 4 0 (imm high) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::Func { off: imm, high } },
        "{dst} = func({+imm}{, high}) ll", "{dst} = {value}";
    LoadMapIndex 0x18 dst 5 0 (imm 0) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::MapIndex { index: imm, high: 0 } },
        "{dst} = map_idx({imm}) ll", "{dst} = {value}";
    LoadMapIndexValue 0x18 dst 6 0 (imm high) Base64 Wide [] -> [dst] LoadImm64 { dst, imm: Imm64::MapIndexValue { index: imm, offset: high } },
        "{dst} = map_idx_value({imm}{, high}) ll", "{dst} = {value}";

    // Loads, RFC 9669 section 5.1 and 5.2
    Load8 0x71 dst src off 0 Base32 Load [src] -> [dst] Load { size: B, signed: false, dst, base: src, off },
        "{rwdst} = *(u8 *)({src}{ + off})", "{dst} = *(u8 *)({src} {+off})";
    Load16 0x69 dst src off 0 Base32 Load [src] -> [dst] Load { size: H, signed: false, dst, base: src, off },
        "{rwdst} = *(u16 *)({src}{ + off})", "{dst} = *(u16 *)({src} {+off})";
    Load32 0x61 dst src off 0 Base32 Load [src] -> [dst] Load { size: W, signed: false, dst, base: src, off },
        "{rwdst} = *(u32 *)({src}{ + off})", "{dst} = *(u32 *)({src} {+off})";
    Load64 0x79 dst src off 0 Base64 Load [src] -> [dst] Load { size: DW, signed: false, dst, base: src, off },
        "{dst} = *(u64 *)({src}{ + off})", "{dst} = *(u64 *)({src} {+off})";
    LoadSx8 0x91 dst src off 0 Base32 Load [src] -> [dst] Load { size: B, signed: true, dst, base: src, off },
        "{dst} = *(s8 *)({src}{ + off})", "{dst} = *(s8 *)({src} {+off})";
    LoadSx16 0x89 dst src off 0 Base32 Load [src] -> [dst] Load { size: H, signed: true, dst, base: src, off },
        "{dst} = *(s16 *)({src}{ + off})", "{dst} = *(s16 *)({src} {+off})";
    LoadSx32 0x81 dst src off 0 Base32 Load [src] -> [dst] Load { size: W, signed: true, dst, base: src, off },
        "{dst} = *(s32 *)({src}{ + off})", "{dst} = *(s32 *)({src} {+off})";

    // Stores
    StoreImm8 0x72 dst 0 off imm Base32 Store [dst] -> [] Store { size: B, base: dst, off, src: K(imm) },
        "*(u8 *)({dst}{ + off}) = {uimm}", "*(u8 *)({dst} {+off}) = {imm}";
    StoreReg8 0x73 dst src off 0 Base32 Store [dst src] -> [] Store { size: B, base: dst, off, src: X(src) },
        "*(u8 *)({dst}{ + off}) = {rwsrc}", "*(u8 *)({dst} {+off}) = {src}";
    StoreImm16 0x6a dst 0 off imm Base32 Store [dst] -> [] Store { size: H, base: dst, off, src: K(imm) },
        "*(u16 *)({dst}{ + off}) = {uimm}", "*(u16 *)({dst} {+off}) = {imm}";
    StoreReg16 0x6b dst src off 0 Base32 Store [dst src] -> [] Store { size: H, base: dst, off, src: X(src) },
        "*(u16 *)({dst}{ + off}) = {rwsrc}", "*(u16 *)({dst} {+off}) = {src}";
    StoreImm32 0x62 dst 0 off imm Base32 Store [dst] -> [] Store { size: W, base: dst, off, src: K(imm) },
        "*(u32 *)({dst}{ + off}) = {uimm}", "*(u32 *)({dst} {+off}) = {imm}";
    StoreReg32 0x63 dst src off 0 Base32 Store [dst src] -> [] Store { size: W, base: dst, off, src: X(src) },
        "*(u32 *)({dst}{ + off}) = {rwsrc}", "*(u32 *)({dst} {+off}) = {src}";
    StoreImm64 0x7a dst 0 off imm Base64 Store [dst] -> [] Store { size: DW, base: dst, off, src: K(imm) },
        "*(u64 *)({dst}{ + off}) = {imm}", "*(u64 *)({dst} {+off}) = {imm}";
    StoreReg64 0x7b dst src off 0 Base64 Store [dst src] -> [] Store { size: DW, base: dst, off, src: X(src) },
        "*(u64 *)({dst}{ + off}) = {src}", "*(u64 *)({dst} {+off}) = {src}";

    // Atomic read-modify-write, RFC 9669 section 5.3
    AtomicAdd32 0xc3 dst src off 0x00 Atomic32 Atomic [dst src] -> [] Atomic { op: AtomicOp::Add { fetch: false }, size: W, base: dst, off, src },
        "lock *(u32 *)({dst}{ + off}) += {rwsrc}", "lock *(u32 *)({dst} {+off}) += {src}";
    AtomicFetchAdd32 0xc3 dst src off 0x01 Atomic32 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Add { fetch: true }, size: W, base: dst, off, src },
        "{wsrc} = atomic_fetch_add((u32 *)({dst}{ + off}), {wsrc})", "{src} = atomic_fetch_add((u32 *)({dst} {+off}), {src})";
    AtomicOr32 0xc3 dst src off 0x40 Atomic32 Atomic [dst src] -> [] Atomic { op: AtomicOp::Or { fetch: false }, size: W, base: dst, off, src },
        "lock *(u32 *)({dst}{ + off}) |= {wrsrc}", "lock *(u32 *)({dst} {+off}) |= {src}";
    AtomicFetchOr32 0xc3 dst src off 0x41 Atomic32 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Or { fetch: true }, size: W, base: dst, off, src },
        "{wsrc} = atomic_fetch_or((u32 *)({dst}{ + off}), {wsrc})", "{src} = atomic_fetch_or((u32 *)({dst} {+off}), {src})";
    AtomicAnd32 0xc3 dst src off 0x50 Atomic32 Atomic [dst src] -> [] Atomic { op: AtomicOp::And { fetch: false }, size: W, base: dst, off, src },
        "lock *(u32 *)({dst}{ + off}) &= {wrsrc}", "lock *(u32 *)({dst} {+off}) &= {src}";
    AtomicFetchAnd32 0xc3 dst src off 0x51 Atomic32 Atomic [dst src] -> [src] Atomic { op: AtomicOp::And { fetch: true }, size: W, base: dst, off, src },
        "{wsrc} = atomic_fetch_and((u32 *)({dst}{ + off}), {wsrc})", "{src} = atomic_fetch_and((u32 *)({dst} {+off}), {src})";
    AtomicXor32 0xc3 dst src off 0xa0 Atomic32 Atomic [dst src] -> [] Atomic { op: AtomicOp::Xor { fetch: false }, size: W, base: dst, off, src },
        "lock *(u32 *)({dst}{ + off}) ^= {wrsrc}", "lock *(u32 *)({dst} {+off}) ^= {src}";
    AtomicFetchXor32 0xc3 dst src off 0xa1 Atomic32 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Xor { fetch: true }, size: W, base: dst, off, src },
        "{wsrc} = atomic_fetch_xor((u32 *)({dst}{ + off}), {wsrc})", "{src} = atomic_fetch_xor((u32 *)({dst} {+off}), {src})";
    AtomicXchg32 0xc3 dst src off 0xe1 Atomic32 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Xchg, size: W, base: dst, off, src },
        "{wsrc} = xchg32_32({dst}{ + off}, {wsrc})", "{src} = atomic_xchg((u32 *)({dst} {+off}), {src})";
    AtomicCmpXchg32 0xc3 dst src off 0xf1 Atomic32 Atomic [R0 dst src] -> [R0] Atomic { op: AtomicOp::CmpXchg, size: W, base: dst, off, src },
        "w0 = cmpxchg32_32({dst}{ + off}, w0, {wsrc})", "r0 = atomic_cmpxchg((u32 *)({dst} {+off}), r0, {src})";
    AtomicAdd64 0xdb dst src off 0x00 Atomic64 Atomic [dst src] -> [] Atomic { op: AtomicOp::Add { fetch: false }, size: DW, base: dst, off, src },
        "lock *(u64 *)({dst}{ + off}) += {src}", "lock *(u64 *)({dst} {+off}) += {src}";
    AtomicFetchAdd64 0xdb dst src off 0x01 Atomic64 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Add { fetch: true }, size: DW, base: dst, off, src },
        "{src} = atomic_fetch_add((u64 *)({dst}{ + off}), {src})", "{src} = atomic64_fetch_add((u64 *)({dst} {+off}), {src})";
    AtomicOr64 0xdb dst src off 0x40 Atomic64 Atomic [dst src] -> [] Atomic { op: AtomicOp::Or { fetch: false }, size: DW, base: dst, off, src },
        "lock *(u64 *)({dst}{ + off}) |= {src}", "lock *(u64 *)({dst} {+off}) |= {src}";
    AtomicFetchOr64 0xdb dst src off 0x41 Atomic64 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Or { fetch: true }, size: DW, base: dst, off, src },
        "{src} = atomic_fetch_or((u64 *)({dst}{ + off}), {src})", "{src} = atomic64_fetch_or((u64 *)({dst} {+off}), {src})";
    AtomicAnd64 0xdb dst src off 0x50 Atomic64 Atomic [dst src] -> [] Atomic { op: AtomicOp::And { fetch: false }, size: DW, base: dst, off, src },
        "lock *(u64 *)({dst}{ + off}) &= {src}", "lock *(u64 *)({dst} {+off}) &= {src}";
    AtomicFetchAnd64 0xdb dst src off 0x51 Atomic64 Atomic [dst src] -> [src] Atomic { op: AtomicOp::And { fetch: true }, size: DW, base: dst, off, src },
        "{src} = atomic_fetch_and((u64 *)({dst}{ + off}), {src})", "{src} = atomic64_fetch_and((u64 *)({dst} {+off}), {src})";
    AtomicXor64 0xdb dst src off 0xa0 Atomic64 Atomic [dst src] -> [] Atomic { op: AtomicOp::Xor { fetch: false }, size: DW, base: dst, off, src },
        "lock *(u64 *)({dst}{ + off}) ^= {src}", "lock *(u64 *)({dst} {+off}) ^= {src}";
    AtomicFetchXor64 0xdb dst src off 0xa1 Atomic64 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Xor { fetch: true }, size: DW, base: dst, off, src },
        "{src} = atomic_fetch_xor((u64 *)({dst}{ + off}), {src})", "{src} = atomic64_fetch_xor((u64 *)({dst} {+off}), {src})";
    AtomicXchg64 0xdb dst src off 0xe1 Atomic64 Atomic [dst src] -> [src] Atomic { op: AtomicOp::Xchg, size: DW, base: dst, off, src },
        "{src} = xchg_64({dst}{ + off}, {src})", "{src} = atomic64_xchg((u64 *)({dst} {+off}), {src})";
    AtomicCmpXchg64 0xdb dst src off 0xf1 Atomic64 Atomic [R0 dst src] -> [R0] Atomic { op: AtomicOp::CmpXchg, size: DW, base: dst, off, src },
        "r0 = cmpxchg_64({dst}{ + off}, r0, {src})", "r0 = atomic64_cmpxchg((u64 *)({dst} {+off}), r0, {src})";

    // Ordered loads and stores; Linux only
    LoadAcquire8 0xd3 dst src off 0x100 Linux Load [src] -> [dst] LoadAcquire { size: B, dst, base: src, off },
        "{wdst} = load_acquire((u8 *)({src}{ + off}))", "{dst} = load_acquire((u8 *)({src} {+off}))";
    LoadAcquire16 0xcb dst src off 0x100 Linux Load [src] -> [dst] LoadAcquire { size: H, dst, base: src, off },
        "{wdst} = load_acquire((u16 *)({src}{ + off}))", "{dst} = load_acquire((u16 *)({src} {+off}))";
    LoadAcquire32 0xc3 dst src off 0x100 Linux Load [src] -> [dst] LoadAcquire { size: W, dst, base: src, off },
        "{wdst} = load_acquire((u32 *)({src}{ + off}))", "{dst} = load_acquire((u32 *)({src} {+off}))";
    LoadAcquire64 0xdb dst src off 0x100 Linux Load [src] -> [dst] LoadAcquire { size: DW, dst, base: src, off },
        "{dst} = load_acquire((u64 *)({src}{ + off}))", "{dst} = load_acquire((u64 *)({src} {+off}))";
    StoreRelease8 0xd3 dst src off 0x110 Linux Store [dst src] -> [] StoreRelease { size: B, base: dst, off, src },
        "store_release((u8 *)({dst}{ + off}), {wsrc})", "store_release((u8 *)({dst} {+off}), {src})";
    StoreRelease16 0xcb dst src off 0x110 Linux Store [dst src] -> [] StoreRelease { size: H, base: dst, off, src },
        "store_release((u16 *)({dst}{ + off}), {wsrc})", "store_release((u16 *)({dst} {+off}), {src})";
    StoreRelease32 0xc3 dst src off 0x110 Linux Store [dst src] -> [] StoreRelease { size: W, base: dst, off, src },
        "store_release((u32 *)({dst}{ + off}), {wsrc})", "store_release((u32 *)({dst} {+off}), {src})";
    StoreRelease64 0xdb dst src off 0x110 Linux Store [dst src] -> [] StoreRelease { size: DW, base: dst, off, src },
        "store_release((u64 *)({dst}{ + off}), {src})", "store_release((u64 *)({dst} {+off}), {src})";

    // Packet loads, RFC 9669 section 5.5
    PacketAbs8 0x30 0 0 0 imm Packet Packet [R6] -> [R0 R1 R2 R3 R4 R5] PacketAbs { size: B, imm },
        "r0 = *(u8 *)skb[{uimm}]", "r0 = *(u8 *)skb[{imm}]";
    PacketAbs16 0x28 0 0 0 imm Packet Packet [R6] -> [R0 R1 R2 R3 R4 R5] PacketAbs { size: H, imm },
        "r0 = *(u16 *)skb[{uimm}]", "r0 = *(u16 *)skb[{imm}]";
    PacketAbs32 0x20 0 0 0 imm Packet Packet [R6] -> [R0 R1 R2 R3 R4 R5] PacketAbs { size: W, imm },
        "r0 = *(u32 *)skb[{uimm}]", "r0 = *(u32 *)skb[{imm}]";
    PacketInd8 0x50 0 src 0 imm Packet Packet [R6 src] -> [R0 R1 R2 R3 R4 R5] PacketInd { size: B, src, imm },
        "r0 = *(u8 *)skb[{src}{? + imm}]", "r0 = *(u8 *)skb[{src} + {imm}]";
    PacketInd16 0x48 0 src 0 imm Packet Packet [R6 src] -> [R0 R1 R2 R3 R4 R5] PacketInd { size: H, src, imm },
        "r0 = *(u16 *)skb[{src}{? + imm}]", "r0 = *(u16 *)skb[{src} + {imm}]";
    PacketInd32 0x40 0 src 0 imm Packet Packet [R6 src] -> [R0 R1 R2 R3 R4 R5] PacketInd { size: W, src, imm },
        "r0 = *(u32 *)skb[{src}{? + imm}]", "r0 = *(u32 *)skb[{src} + {imm}]";

    // Conditional branches, RFC 9669 section 4.3
    IfEqImm64 0x15 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Eq, width: W64, dst, src: K(imm), off },
        "if {dst} == {imm} goto {+off}", "if {dst} == {0ximm} goto {pc+off}";
    IfEqReg64 0x1d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Eq, width: W64, dst, src: X(src), off },
        "if {dst} == {src} goto {+off}", "if {dst} == {src} goto {pc+off}";
    IfEqImm32 0x16 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Eq, width: W32, dst, src: K(imm), off },
        "if {wdst} == {uimm} goto {+off}", "if {wdst} == {0ximm} goto {pc+off}";
    IfEqReg32 0x1e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Eq, width: W32, dst, src: X(src), off },
        "if {wdst} == {wsrc} goto {+off}", "if {wdst} == {wsrc} goto {pc+off}";
    IfNeImm64 0x55 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Ne, width: W64, dst, src: K(imm), off },
        "if {dst} != {imm} goto {+off}", "if {dst} != {0ximm} goto {pc+off}";
    IfNeReg64 0x5d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Ne, width: W64, dst, src: X(src), off },
        "if {dst} != {src} goto {+off}", "if {dst} != {src} goto {pc+off}";
    IfNeImm32 0x56 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Ne, width: W32, dst, src: K(imm), off },
        "if {wdst} != {uimm} goto {+off}", "if {wdst} != {0ximm} goto {pc+off}";
    IfNeReg32 0x5e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Ne, width: W32, dst, src: X(src), off },
        "if {wdst} != {wsrc} goto {+off}", "if {wdst} != {wsrc} goto {pc+off}";
    IfSetImm64 0x45 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Set, width: W64, dst, src: K(imm), off },
        "if {dst} & {imm} goto {+off}", "if {dst} & {0ximm} goto {pc+off}";
    IfSetReg64 0x4d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Set, width: W64, dst, src: X(src), off },
        "if {dst} & {src} goto {+off}", "if {dst} & {src} goto {pc+off}";
    IfSetImm32 0x46 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Set, width: W32, dst, src: K(imm), off },
        "if {wdst} & {uimm} goto {+off}", "if {wdst} & {0ximm} goto {pc+off}";
    IfSetReg32 0x4e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Set, width: W32, dst, src: X(src), off },
        "if {wdst} & {wsrc} goto {+off}", "if {wdst} & {wsrc} goto {pc+off}";
    IfGtImm64 0x25 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Gt, width: W64, dst, src: K(imm), off },
        "if {dst} > {imm} goto {+off}", "if {dst} > {0ximm} goto {pc+off}";
    IfGtReg64 0x2d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Gt, width: W64, dst, src: X(src), off },
        "if {dst} > {src} goto {+off}", "if {dst} > {src} goto {pc+off}";
    IfGtImm32 0x26 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Gt, width: W32, dst, src: K(imm), off },
        "if {wdst} > {uimm} goto {+off}", "if {wdst} > {0ximm} goto {pc+off}";
    IfGtReg32 0x2e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Gt, width: W32, dst, src: X(src), off },
        "if {wdst} > {wsrc} goto {+off}", "if {wdst} > {wsrc} goto {pc+off}";
    IfGeImm64 0x35 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Ge, width: W64, dst, src: K(imm), off },
        "if {dst} >= {imm} goto {+off}", "if {dst} >= {0ximm} goto {pc+off}";
    IfGeReg64 0x3d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Ge, width: W64, dst, src: X(src), off },
        "if {dst} >= {src} goto {+off}", "if {dst} >= {src} goto {pc+off}";
    IfGeImm32 0x36 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Ge, width: W32, dst, src: K(imm), off },
        "if {wdst} >= {uimm} goto {+off}", "if {wdst} >= {0ximm} goto {pc+off}";
    IfGeReg32 0x3e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Ge, width: W32, dst, src: X(src), off },
        "if {wdst} >= {wsrc} goto {+off}", "if {wdst} >= {wsrc} goto {pc+off}";
    IfLtImm64 0xa5 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Lt, width: W64, dst, src: K(imm), off },
        "if {dst} < {imm} goto {+off}", "if {dst} < {0ximm} goto {pc+off}";
    IfLtReg64 0xad dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Lt, width: W64, dst, src: X(src), off },
        "if {dst} < {src} goto {+off}", "if {dst} < {src} goto {pc+off}";
    IfLtImm32 0xa6 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Lt, width: W32, dst, src: K(imm), off },
        "if {wdst} < {uimm} goto {+off}", "if {wdst} < {0ximm} goto {pc+off}";
    IfLtReg32 0xae dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Lt, width: W32, dst, src: X(src), off },
        "if {wdst} < {wsrc} goto {+off}", "if {wdst} < {wsrc} goto {pc+off}";
    IfLeImm64 0xb5 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: Le, width: W64, dst, src: K(imm), off },
        "if {dst} <= {imm} goto {+off}", "if {dst} <= {0ximm} goto {pc+off}";
    IfLeReg64 0xbd dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: Le, width: W64, dst, src: X(src), off },
        "if {dst} <= {src} goto {+off}", "if {dst} <= {src} goto {pc+off}";
    IfLeImm32 0xb6 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: Le, width: W32, dst, src: K(imm), off },
        "if {wdst} <= {uimm} goto {+off}", "if {wdst} <= {0ximm} goto {pc+off}";
    IfLeReg32 0xbe dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: Le, width: W32, dst, src: X(src), off },
        "if {wdst} <= {wsrc} goto {+off}", "if {wdst} <= {wsrc} goto {pc+off}";
    IfSGtImm64 0x65 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: SGt, width: W64, dst, src: K(imm), off },
        "if {dst} s> {imm} goto {+off}", "if {dst} s> {0ximm} goto {pc+off}";
    IfSGtReg64 0x6d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: SGt, width: W64, dst, src: X(src), off },
        "if {dst} s> {src} goto {+off}", "if {dst} s> {src} goto {pc+off}";
    IfSGtImm32 0x66 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: SGt, width: W32, dst, src: K(imm), off },
        "if {wdst} s> {uimm} goto {+off}", "if {wdst} s> {0ximm} goto {pc+off}";
    IfSGtReg32 0x6e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: SGt, width: W32, dst, src: X(src), off },
        "if {wdst} s> {wsrc} goto {+off}", "if {wdst} s> {wsrc} goto {pc+off}";
    IfSGeImm64 0x75 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: SGe, width: W64, dst, src: K(imm), off },
        "if {dst} s>= {imm} goto {+off}", "if {dst} s>= {0ximm} goto {pc+off}";
    IfSGeReg64 0x7d dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: SGe, width: W64, dst, src: X(src), off },
        "if {dst} s>= {src} goto {+off}", "if {dst} s>= {src} goto {pc+off}";
    IfSGeImm32 0x76 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: SGe, width: W32, dst, src: K(imm), off },
        "if {wdst} s>= {uimm} goto {+off}", "if {wdst} s>= {0ximm} goto {pc+off}";
    IfSGeReg32 0x7e dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: SGe, width: W32, dst, src: X(src), off },
        "if {wdst} s>= {wsrc} goto {+off}", "if {wdst} s>= {wsrc} goto {pc+off}";
    IfSLtImm64 0xc5 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: SLt, width: W64, dst, src: K(imm), off },
        "if {dst} s< {imm} goto {+off}", "if {dst} s< {0ximm} goto {pc+off}";
    IfSLtReg64 0xcd dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: SLt, width: W64, dst, src: X(src), off },
        "if {dst} s< {src} goto {+off}", "if {dst} s< {src} goto {pc+off}";
    IfSLtImm32 0xc6 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: SLt, width: W32, dst, src: K(imm), off },
        "if {wdst} s< {uimm} goto {+off}", "if {wdst} s< {0ximm} goto {pc+off}";
    IfSLtReg32 0xce dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: SLt, width: W32, dst, src: X(src), off },
        "if {wdst} s< {wsrc} goto {+off}", "if {wdst} s< {wsrc} goto {pc+off}";
    IfSLeImm64 0xd5 dst 0 off imm Base64 Branch [dst] -> [] Jump { cond: SLe, width: W64, dst, src: K(imm), off },
        "if {dst} s<= {imm} goto {+off}", "if {dst} s<= {0ximm} goto {pc+off}";
    IfSLeReg64 0xdd dst src off 0 Base64 Branch [dst src] -> [] Jump { cond: SLe, width: W64, dst, src: X(src), off },
        "if {dst} s<= {src} goto {+off}", "if {dst} s<= {src} goto {pc+off}";
    IfSLeImm32 0xd6 dst 0 off imm Base32 Branch [dst] -> [] Jump { cond: SLe, width: W32, dst, src: K(imm), off },
        "if {wdst} s<= {uimm} goto {+off}", "if {wdst} s<= {0ximm} goto {pc+off}";
    IfSLeReg32 0xde dst src off 0 Base32 Branch [dst src] -> [] Jump { cond: SLe, width: W32, dst, src: X(src), off },
        "if {wdst} s<= {wsrc} goto {+off}", "if {wdst} s<= {wsrc} goto {pc+off}";

    // Jumps, calls, exit
    Goto 0x05 0 0 off 0 Base32 Goto [] -> [] Goto { off },
        "goto {+off}", "goto {pc+off}";
    GotoLong 0x06 0 0 0 imm Base32 GotoLong [] -> [] GotoLong { off: imm },
        "gotol {+imm}", "gotol {pc+imm}";
    GotoReg 0x0d dst 0 0 0 Later GotoReg [dst] -> [] GotoReg { dst },
        "gotox {dst}", "gotox {dst}";
    MayGoto 0xe5 0 0 off 0 Linux Branch [] -> [] MayGoto { off },
        "may_goto {+off}", "may_goto {pc+off}";
    CallHelper 0x85 0 0 0 imm Base32 Call [R1 R2 R3 R4 R5] -> [R0 R1 R2 R3 R4 R5] Call(Callee::Helper(imm)),
        "call {uimm}", "call {callee}";
    CallLocal 0x85 0 1 0 imm Base32 Call [R1 R2 R3 R4 R5] -> [R0 R1 R2 R3 R4 R5] Call(Callee::Local(imm)),
        "call {pc+imm}", "call {pc+imm}";
    CallKfunc 0x85 0 2 off imm Base32 Call [R1 R2 R3 R4 R5] -> [R0 R1 R2 R3 R4 R5] Call(Callee::Kfunc { id: imm, module: off }),
        "call kfunc({imm}{, off})", "call {callee}";
    CallReg 0x8d dst 0 0 0 Later Call [dst R1 R2 R3 R4 R5] -> [R0 R1 R2 R3 R4 R5] CallReg { dst },
        "callx {dst}", "callx {dst}";
    Exit 0x95 0 0 _ 0 Base32 Exit [R0] -> [] Exit {},
        "exit", "exit";
}

/// Further spellings that the assembler reads.
pub(super) const SPELLINGS: &[(Op, &str)] = &[
    (Op::LoadImm64, "ld_pseudo {dst}, 0, {value}"),
    (Op::LoadMapFd, "ld_pseudo {dst}, 1, {value}"),
    (Op::LoadMapValue, "ld_pseudo {dst}, 2, {value}"),
    (Op::LoadBtfId, "ld_pseudo {dst}, 3, {value}"),
    (Op::LoadFuncAddress, "ld_pseudo {dst}, 4, {value}"),
    (Op::LoadMapIndex, "ld_pseudo {dst}, 5, {value}"),
    (Op::LoadMapIndexValue, "ld_pseudo {dst}, 6, {value}"),
];
