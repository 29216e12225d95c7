//! Every form with every register, read back by a disassembler that shares
//! nothing with the assembler, and compared with what was meant; and whether it
//! could be shorter.

use std::fmt::Write;

use super::*;
use crate::codegen::Layout;
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, MemorySize, Mnemonic, OpKind, Register,
};

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];
const ALU: [(Alu, &str); 6] = [
    (Alu::Add, "add"),
    (Alu::Or, "or"),
    (Alu::And, "and"),
    (Alu::Sub, "sub"),
    (Alu::Xor, "xor"),
    (Alu::Cmp, "cmp"),
];
const SHIFTS: [(Shift, &str); 4] = [
    (Shift::Rol, "rol"),
    (Shift::Shl, "shl"),
    (Shift::Shr, "shr"),
    (Shift::Sar, "sar"),
];
const CONDITIONS: [(Cc, &str); 12] = [
    (Cc::Below, "b"),
    (Cc::AboveEqual, "ae"),
    (Cc::Equal, "e"),
    (Cc::NotEqual, "ne"),
    (Cc::BelowEqual, "be"),
    (Cc::Above, "a"),
    (Cc::Negative, "s"),
    (Cc::NotNegative, "ns"),
    (Cc::Less, "l"),
    (Cc::GreaterEqual, "ge"),
    (Cc::LessEqual, "le"),
    (Cc::Greater, "g"),
];
/// Immediates and displacements at the edges of what is short.
const NUMBERS: [i32; 16] = [
    0,
    1,
    -1,
    2,
    127,
    128,
    -128,
    -129,
    255,
    256,
    0x7fff,
    0x8000,
    -0x8000,
    i32::MAX,
    i32::MIN,
    0x1234_5678,
];

const NAMES: [[&str; 16]; 4] = [
    [
        "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8l", "r9l", "r10l", "r11l", "r12l",
        "r13l", "r14l", "r15l",
    ],
    [
        "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w",
        "r13w", "r14w", "r15w",
    ],
    [
        "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d",
        "r12d", "r13d", "r14d", "r15d",
    ],
    [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ],
];

fn registers() -> impl Iterator<Item = Gpr> + Clone {
    <Gpr as crate::codegen::Register>::ALL.iter().copied()
}

fn pairs() -> impl Iterator<Item = (Gpr, Gpr)> {
    registers().flat_map(|a| registers().map(move |b| (a, b)))
}

/// Every base with every index, factor and kind of displacement.
fn addresses() -> impl Iterator<Item = Mem> {
    let indices = registers()
        .filter(|&index| index != Gpr::RSP)
        .flat_map(|index| (0..4).map(move |scale| Some((index, scale))))
        .chain([None]);
    registers().flat_map(move |base| {
        indices.clone().flat_map(move |index| {
            let numbers = [0, 1, -128, 127, 128, i32::MIN].into_iter();
            numbers.map(move |disp| Mem { base, index, disp })
        })
    })
}

/// Each kind of address once.
fn some_addresses() -> [Mem; 5] {
    [
        Mem::at(Gpr::RDI, 0),
        Mem::at(Gpr::R13, 0),
        Mem::at(Gpr::RSP, -8),
        Mem::indexed(Gpr::R12, Gpr::RBX, 1000),
        Mem {
            base: Gpr::RAX,
            index: Some((Gpr::R9, 3)),
            disp: 4,
        },
    ]
}

fn bits(width: Width) -> Size {
    match width {
        Width::W32 => Size::W,
        Width::W64 => Size::DW,
    }
}

fn name(size: Size, reg: Gpr) -> &'static str {
    NAMES[size.bytes().trailing_zeros() as usize][reg.number() as usize]
}

fn wname(width: Width, reg: Gpr) -> &'static str {
    name(bits(width), reg)
}

/// The address of a memory operand of so many bytes.
fn address(bytes: usize, mem: Mem) -> String {
    let mut text = format!("{bytes}[{}", name(Size::DW, mem.base));
    if let Some((index, scale)) = mem.index {
        let _ = write!(text, "+{}*{}", name(Size::DW, index), 1 << scale);
    }
    if mem.disp != 0 {
        let _ = write!(text, "{:+}", mem.disp);
    }
    text + "]"
}

fn at(size: Size, mem: Mem) -> String {
    address(size.bytes() as usize, mem)
}

/// What is emitted, at this address.
const HERE: u64 = 0x4000_0000;

fn emitted(emit: impl FnOnce(&mut Buffer)) -> Vec<u8> {
    let mut buffer = Buffer::new(0, 0, false);
    emit(&mut buffer);
    let mut code = vec![0; buffer.relax_branches()];
    buffer.write(&mut code);
    code
}

fn decode(code: &[u8]) -> Instruction {
    Decoder::with_ip(64, code, HERE, DecoderOptions::NONE).decode()
}

/// Checks the one instruction that is emitted.
fn check(meant: &str, emit: impl FnOnce(&mut Buffer)) {
    let code = emitted(emit);
    let insn = decode(&code);
    assert_eq!(describe(&insn), meant, "{code:02x?}");
    assert_eq!(insn.len(), code.len(), "{meant}: {code:02x?}");
    check_shortest(meant, &code, &insn);
}

/// An instruction as the tests spell it: operands in Intel's order, a number of
/// bytes before each address, immediates as signed numbers.
fn describe(insn: &Instruction) -> String {
    let lock = if insn.has_lock_prefix() { "lock " } else { "" };
    let mut text = format!("{lock}{:?}", insn.mnemonic()).to_lowercase();
    for index in 0..insn.op_count() {
        text += if index == 0 { " " } else { "," };
        match insn.op_kind(index) {
            OpKind::Register => text += &register(insn.op_register(index)),
            OpKind::Memory => text += &memory(insn),
            OpKind::NearBranch64 => {
                let _ = write!(text, "{:+}", insn.near_branch64().wrapping_sub(HERE) as i64);
            }
            // The decoder extends the sign of what is extended, to its operand's
            // size; the size of others is in the form.
            _ => {
                let value = insn.immediate(index);
                let value = match insn.op_kind(index) {
                    OpKind::Immediate8 => i64::from(value as i8),
                    OpKind::Immediate16 | OpKind::Immediate8to16 => i64::from(value as i16),
                    OpKind::Immediate32 | OpKind::Immediate8to32 => i64::from(value as i32),
                    _ => value as i64,
                };
                let _ = write!(text, "{value}");
            }
        }
    }
    text
}

fn register(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

fn memory(insn: &Instruction) -> String {
    use MemorySize::*;
    let bytes = match insn.memory_size() {
        // `lea` touches none.
        Unknown => 0,
        UInt8 | Int8 => 1,
        UInt16 | Int16 => 2,
        UInt32 | Int32 => 4,
        UInt64 | Int64 | QwordOffset => 8,
        other => panic!("{other:?}"),
    };
    let mut text = format!("{bytes}[");
    if insn.is_ip_rel_memory_operand() {
        let distance = insn.ip_rel_memory_address().wrapping_sub(HERE) as i64;
        return format!("{text}here{distance:+}]");
    }
    text += &register(insn.memory_base());
    if insn.memory_index() != Register::None {
        let index = register(insn.memory_index());
        let _ = write!(text, "+{index}*{}", insn.memory_index_scale());
    }
    let disp = insn.memory_displacement64() as i64;
    if disp != 0 {
        let _ = write!(text, "{disp:+}");
    }
    text + "]"
}

/// Checks that nothing can be left out: no prefix without another meaning, no
/// byte of a number that a shorter form would have, no address byte.
fn check_shortest(meant: &str, code: &[u8], insn: &Instruction) {
    let context = || format!("{meant}: {code:02x?}");
    let shortened = |at: usize| {
        let mut rest = code.to_vec();
        rest.remove(at);
        rest
    };
    // Prefixes come first; a VEX prefix is part of the opcode.
    let is_prefix = |byte: &u8| matches!(byte, 0x40..=0x4f | 0x66 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    for at in 0..prefixes {
        let without = shortened(at);
        let other = decode(&without);
        let is_same = !other.is_invalid() && other.len() == without.len();
        assert!(!is_same || describe(&other) != meant, "{}", context());
    }
    let mut decoder = Decoder::with_ip(64, code, HERE, DecoderOptions::NONE);
    let again = decoder.decode();
    let offsets = decoder.get_constant_offsets(&again);
    let disp = insn.memory_displacement64() as i64;
    let base = insn.memory_base();
    if base != Register::None {
        let modrm = code[opcode_end(code)];
        let needs_sib =
            insn.memory_index() != Register::None || matches!(base, Register::RSP | Register::R12);
        assert_eq!(modrm & 7 == 4, needs_sib, "{}", context());
    }
    if offsets.has_displacement() && !insn.is_ip_rel_memory_operand() && base != Register::None {
        match offsets.displacement_size() {
            1 => assert!(
                disp != 0 || matches!(base, Register::RBP | Register::R13),
                "{}",
                context()
            ),
            _ => assert!(i8::try_from(disp).is_err(), "{}", context()),
        }
    }
    if offsets.has_immediate() && offsets.immediate_size() > 1 {
        let last = insn.op_count() - 1;
        let value = insn.immediate(last) as i64;
        // Those whose immediates are as long as the operand.
        let is_whole = matches!(insn.mnemonic(), Mnemonic::Mov | Mnemonic::Test);
        let narrow = match offsets.immediate_size() {
            2 => i64::from(value as i16),
            4 => i64::from(value as i32),
            _ => value,
        };
        assert!(is_whole || i8::try_from(narrow).is_err(), "{}", context());
    }
    check_special_forms(insn, &context);
}

/// Where the opcode ends: after the prefixes, and 0F, 0F 38 or nothing, a byte.
fn opcode_end(code: &[u8]) -> usize {
    let is_prefix = |byte: &u8| matches!(byte, 0x40..=0x4f | 0x66 | 0xf0 | 0xf2 | 0xf3);
    let start = code.iter().take_while(|byte| is_prefix(byte)).count();
    match code[start..] {
        [0x0f, 0x38, ..] => start + 3,
        [0x0f, ..] => start + 2,
        _ => start + 1,
    }
}

/// The forms that are shorter for some operands.
fn check_special_forms(insn: &Instruction, context: &dyn Fn() -> String) {
    let is_accumulator = matches!(insn.op0_register(), Register::EAX | Register::RAX);
    let in_register = insn.op_count() > 0 && insn.op0_kind() == OpKind::Register;
    match insn.code() {
        // The accumulator has forms of its own, without an address byte.
        Code::Add_rm32_imm32
        | Code::Or_rm32_imm32
        | Code::Adc_rm32_imm32
        | Code::Sbb_rm32_imm32
        | Code::And_rm32_imm32
        | Code::Sub_rm32_imm32
        | Code::Xor_rm32_imm32
        | Code::Cmp_rm32_imm32
        | Code::Test_rm32_imm32
        | Code::Add_rm64_imm32
        | Code::Or_rm64_imm32
        | Code::Adc_rm64_imm32
        | Code::Sbb_rm64_imm32
        | Code::And_rm64_imm32
        | Code::Sub_rm64_imm32
        | Code::Xor_rm64_imm32
        | Code::Cmp_rm64_imm32
        | Code::Test_rm64_imm32 => assert!(!is_accumulator, "{}", context()),
        Code::Test_rm8_imm8 => assert_ne!(insn.op0_register(), Register::AL, "{}", context()),
        // To set a register, five bytes, then seven, then ten.
        Code::Mov_rm32_imm32 => assert!(!in_register, "{}", context()),
        Code::Mov_rm64_imm32 => assert!(
            !in_register || u32::try_from(insn.immediate(1)).is_err(),
            "{}",
            context()
        ),
        Code::Mov_r64_imm64 => {
            let value = insn.immediate64();
            assert!(value as i32 as u64 != value && value > u64::from(u32::MAX));
        }
        Code::Rol_rm32_imm8 | Code::Shl_rm32_imm8 | Code::Shr_rm64_imm8 => {
            assert_ne!(insn.immediate8(), 1, "{}", context());
        }
        // The accumulator is exchanged in one byte, but for itself: that is `nop`.
        Code::Xchg_rm32_r32 | Code::Xchg_rm64_r64 if in_register => {
            let other = matches!(insn.op1_register(), Register::EAX | Register::RAX);
            assert_eq!(is_accumulator, other, "{}", context());
        }
        _ => {}
    }
}

/// The immediate as an operand of that size holds it.
fn held(size: Size, imm: i32) -> i32 {
    match size {
        Size::B => i32::from(imm as i8),
        Size::H => i32::from(imm as i16),
        Size::W | Size::DW => imm,
    }
}

#[test]
fn arithmetic_of_registers() {
    for (op, word) in ALU {
        for width in WIDTHS {
            for (dst, src) in pairs() {
                let (to, from) = (wname(width, dst), wname(width, src));
                check(&format!("{word} {to},{from}"), |code| {
                    code.alu(op, width, dst, src);
                });
            }
            for dst in registers() {
                for imm in NUMBERS {
                    check(&format!("{word} {},{imm}", wname(width, dst)), |code| {
                        code.alu_imm(op, width, dst, imm);
                    });
                }
            }
        }
    }
    for width in WIDTHS {
        for (a, b) in pairs() {
            let (to, from) = (wname(width, a), wname(width, b));
            check(&format!("test {to},{from}"), |code| code.test(width, a, b));
            check(&format!("imul {to},{from}"), |code| {
                code.multiply(width, a, b);
            });
            for imm in NUMBERS {
                check(&format!("imul {to},{from},{imm}"), |code| {
                    code.multiply_imm(width, a, b, imm);
                });
            }
        }
        for reg in registers() {
            let operand = wname(width, reg);
            let unary = [
                (Unary::Not, "not"),
                (Unary::Neg, "neg"),
                (Unary::Mul, "mul"),
                (Unary::Div, "div"),
                (Unary::Idiv, "idiv"),
            ];
            for (op, word) in unary {
                check(&format!("{word} {operand}"), |code| {
                    code.unary(op, width, reg);
                });
            }
            check(&format!("inc {operand}"), |code| code.increment(width, reg));
            check(&format!("dec {operand}"), |code| code.decrement(width, reg));
        }
    }
    check("cdq", |code| code.sign_into_rdx(Width::W32));
    check("cqo", |code| code.sign_into_rdx(Width::W64));
}

#[test]
fn a_test_of_bits_names_no_more_of_the_register_than_it_must() {
    for width in WIDTHS {
        for reg in registers() {
            for imm in NUMBERS {
                let meant = if (0..256).contains(&imm) {
                    format!("test {},{}", name(Size::B, reg), imm as i8)
                } else if imm > 0 {
                    format!("test {},{imm}", name(Size::W, reg))
                } else {
                    format!("test {},{imm}", wname(width, reg))
                };
                check(&meant, |code| code.test_imm(width, reg, imm));
            }
        }
    }
    for mem in addresses() {
        for imm in [0, 1, 0x80, 0xff] {
            let meant = format!("test {},{}", address(1, mem), imm as i8);
            check(&meant, |code| code.test_byte(mem, imm));
        }
    }
}

#[test]
fn arithmetic_in_memory() {
    for mem in addresses() {
        let (dst, src) = (Gpr::R9, Gpr::RSI);
        check(&format!("add r9,{}", at(Size::DW, mem)), |code| {
            code.alu_load(Alu::Add, Width::W64, dst, mem);
        });
        check(&format!("xor {},si", at(Size::H, mem)), |code| {
            code.alu_store(Alu::Xor, Size::H, mem, src);
        });
        check(&format!("and {},-300", at(Size::W, mem)), |code| {
            code.alu_store_imm(Alu::And, Size::W, mem, -300);
        });
    }
    for mem in some_addresses() {
        for (op, word) in ALU {
            for reg in registers() {
                for width in WIDTHS {
                    let (operand, memory) = (wname(width, reg), at(bits(width), mem));
                    check(&format!("{word} {operand},{memory}"), |code| {
                        code.alu_load(op, width, reg, mem);
                    });
                    if op != Alu::Cmp {
                        check(&format!("lock {word} {memory},{operand}"), |code| {
                            code.lock_alu(op, width, mem, reg);
                        });
                    }
                }
                for size in SIZES {
                    let meant = format!("{word} {},{}", at(size, mem), name(size, reg));
                    check(&meant, |code| code.alu_store(op, size, mem, reg));
                }
            }
            for size in SIZES {
                for imm in NUMBERS {
                    let meant = format!("{word} {},{}", at(size, mem), held(size, imm));
                    check(&meant, |code| code.alu_store_imm(op, size, mem, imm));
                }
            }
        }
        for reg in registers() {
            for width in WIDTHS {
                let (operand, memory) = (wname(width, reg), at(bits(width), mem));
                check(&format!("imul {operand},{memory}"), |code| {
                    code.multiply_load(width, reg, mem);
                });
            }
        }
    }
}

#[test]
fn conditions_as_numbers() {
    for dst in registers() {
        for (cc, suffix) in CONDITIONS {
            check(&format!("set{suffix} {}", name(Size::B, dst)), |code| {
                code.set_if(cc, dst);
            });
        }
    }
}

#[test]
fn moves_between_registers() {
    for (dst, src) in pairs() {
        for width in WIDTHS {
            let (to, from) = (wname(width, dst), wname(width, src));
            check(&format!("mov {to},{from}"), |code| {
                code.mov(width, dst, src);
            });
            for (cc, suffix) in CONDITIONS {
                check(&format!("cmov{suffix} {to},{from}"), |code| {
                    code.mov_if(cc, width, dst, src);
                });
            }
        }
        for size in SIZES {
            for signed in [None, Some(Width::W32), Some(Width::W64)] {
                let meant = extension(size, signed, dst, &|size| name(size, src).to_owned());
                check(&meant, |code| code.extend(size, signed, dst, src));
            }
        }
    }
}

/// What a load or extension is called; `source` names its operand by size.
fn extension(
    size: Size,
    signed: Option<Width>,
    dst: Gpr,
    source: &dyn Fn(Size) -> String,
) -> String {
    let (word, to) = match (size, signed) {
        (Size::B | Size::H, None) => ("movzx", Size::W),
        (Size::B | Size::H, Some(width)) => ("movsx", bits(width)),
        (Size::W, Some(Width::W64)) => ("movsxd", Size::DW),
        (Size::W, _) => ("mov", Size::W),
        (Size::DW, _) => ("mov", Size::DW),
    };
    format!("{word} {},{}", name(to, dst), source(size))
}

#[test]
fn registers_are_set_to_any_value() {
    let mut values: Vec<u64> = NUMBERS.iter().map(|&number| number as u64).collect();
    values.extend([
        u64::from(u32::MAX),
        1 << 32,
        1 << 63,
        0x8000_0000,
        0x1234_5678_9abc_def0,
    ]);
    for reg in registers() {
        for &value in &values {
            let code = emitted(|code| code.set_keeping_flags(reg, value));
            let insn = decode(&code);
            assert_eq!((insn.mnemonic(), insn.len()), (Mnemonic::Mov, code.len()));
            let written = match describe(&insn) {
                text if text.starts_with(&format!("mov {},", name(Size::W, reg))) => {
                    u64::from(insn.immediate32())
                }
                text if text.starts_with(&format!("mov {},", name(Size::DW, reg))) => {
                    insn.immediate(1)
                }
                text => panic!("{text}: {code:02x?}"),
            };
            assert_eq!(written, value, "{code:02x?}");
            check_shortest(&describe(&insn), &code, &insn);
            let plain = emitted(|code| code.set(reg, value));
            match value {
                0 => assert_eq!(
                    describe(&decode(&plain)),
                    format!("xor {0},{0}", name(Size::W, reg))
                ),
                _ => assert_eq!(plain, code),
            }
        }
    }
}

#[test]
fn loads_and_stores() {
    for mem in addresses() {
        for size in SIZES {
            check_load(size, None, Gpr::RBX, mem);
            check_store(size, mem, Gpr::RDI);
            check_store_imm(size, mem, -2);
        }
        let meant = format!("lea r10,{}", address(0, mem));
        check(&meant, |code| code.lea(Width::W64, Gpr::R10, mem));
    }
    for mem in some_addresses() {
        for size in SIZES {
            for reg in registers() {
                for signed in [None, Some(Width::W32), Some(Width::W64)] {
                    check_load(size, signed, reg, mem);
                }
                check_store(size, mem, reg);
            }
            for imm in NUMBERS {
                check_store_imm(size, mem, imm);
            }
        }
        for width in WIDTHS {
            for reg in registers() {
                let (operand, memory) = (wname(width, reg), at(bits(width), mem));
                check(&format!("lea {operand},{}", address(0, mem)), |code| {
                    code.lea(width, reg, mem);
                });
                check(&format!("movbe {operand},{memory}"), |code| {
                    code.load_swapped(width, reg, mem);
                });
            }
        }
    }
}

fn check_load(size: Size, signed: Option<Width>, reg: Gpr, mem: Mem) {
    let meant = extension(size, signed, reg, &|size| at(size, mem));
    check(&meant, |code| code.load(size, signed, reg, mem));
}

fn check_store(size: Size, mem: Mem, reg: Gpr) {
    let meant = format!("mov {},{}", at(size, mem), name(size, reg));
    check(&meant, |code| code.store(size, mem, reg));
}

fn check_store_imm(size: Size, mem: Mem, imm: i32) {
    let meant = format!("mov {},{}", at(size, mem), held(size, imm));
    check(&meant, |code| code.store_imm(size, mem, imm));
}

#[test]
fn shifts_and_bits() {
    for width in WIDTHS {
        for reg in registers() {
            let operand = wname(width, reg);
            for (op, word) in SHIFTS {
                for count in 1..8 * bits(width).bytes() as u8 {
                    check(&format!("{word} {operand},{count}"), |code| {
                        code.shift(op, width, reg, count);
                    });
                }
                check(&format!("{word} {operand},cl"), |code| {
                    code.shift_by_cl(op, width, reg);
                });
            }
            check(&format!("bswap {operand}"), |code| {
                code.byte_swap(width, reg);
            });
        }
        for (dst, src) in pairs() {
            let (to, from) = (wname(width, dst), wname(width, src));
            for count in [1, 8, 31] {
                check(&format!("rorx {to},{from},{count}"), |code| {
                    code.rotate_right(width, dst, src, count);
                });
            }
            for third in registers() {
                let last = wname(width, third);
                let shifts = [
                    (Shift::Shl, "shlx"),
                    (Shift::Shr, "shrx"),
                    (Shift::Sar, "sarx"),
                ];
                for (op, word) in shifts {
                    check(&format!("{word} {to},{from},{last}"), |code| {
                        code.shift_by(op, width, dst, src, third);
                    });
                }
                check(&format!("andn {to},{from},{last}"), |code| {
                    code.and_not(width, dst, src, third);
                });
            }
        }
    }
    for (dst, src) in pairs() {
        let (to, from) = (wname(Width::W64, dst), wname(Width::W64, src));
        check(&format!("tzcnt {to},{from}"), |code| {
            code.trailing_zeros(dst, src)
        });
        check(&format!("lzcnt {to},{from}"), |code| {
            code.leading_zeros(dst, src)
        });
        check(&format!("popcnt {to},{from}"), |code| {
            code.count_ones(dst, src)
        });
        check(&format!("bsf {to},{from}"), |code| {
            code.lowest_bit(dst, src)
        });
        check(&format!("bsr {to},{from}"), |code| {
            code.highest_bit(dst, src)
        });
    }
    for reg in registers() {
        check(&format!("rol {},8", name(Size::H, reg)), |code| {
            code.swap_low_bytes(reg);
        });
    }
}

#[test]
fn atomic_operations() {
    for mem in some_addresses() {
        for width in WIDTHS {
            for reg in registers() {
                let (operand, memory) = (wname(width, reg), at(bits(width), mem));
                check(&format!("xchg {memory},{operand}"), |code| {
                    code.exchange_memory(width, mem, reg);
                });
                check(&format!("lock xadd {memory},{operand}"), |code| {
                    code.lock_exchange_add(width, mem, reg);
                });
                check(&format!("lock cmpxchg {memory},{operand}"), |code| {
                    code.lock_compare_exchange(width, mem, reg);
                });
            }
        }
    }
}

#[test]
fn control() {
    for reg in registers() {
        let operand = name(Size::DW, reg);
        check(&format!("push {operand}"), |code| code.push(reg));
        check(&format!("pop {operand}"), |code| code.pop(reg));
        check(&format!("jmp {operand}"), |code| code.jump_to(reg));
    }
    check("leave", |code| code.leave());
    check("ret", |code| code.ret());
    let far = [0, 1, 125, 126, 127, 128, 129, 70_000];
    for distance in far {
        // Forward, over so many bytes.
        let forward = |jump: &dyn Fn(&mut Buffer, Label)| {
            let code = emitted(|code| {
                let label = code.new_label();
                jump(code, label);
                (0..distance).for_each(|_| code.leave());
                code.bind(label);
            });
            let insn = decode(&code);
            assert_eq!(insn.near_branch64(), HERE + code.len() as u64);
            (
                describe(&insn).split_once(' ').unwrap().0.to_owned(),
                insn.len(),
            )
        };
        let short = |long: usize| if distance < 128 { 2 } else { long };
        let jump = forward(&|code, label| code.jump(label));
        assert_eq!(jump, ("jmp".to_owned(), short(5)));
        assert_eq!(
            forward(&|code, label| code.call(label)),
            ("call".to_owned(), 5)
        );
        for (cc, suffix) in CONDITIONS {
            let jump = forward(&|code, label| code.jump_if(cc, label));
            assert_eq!(jump, (format!("j{suffix}"), short(6)));
        }
        // Backward, over so many bytes and the jump.
        let code = emitted(|code| {
            let label = code.new_label();
            code.bind(label);
            (0..distance).for_each(|_| code.leave());
            code.jump(label);
        });
        let (at, is_short) = (distance as usize, distance + 2 <= 128);
        assert_eq!(code.len() - at, if is_short { 2 } else { 5 });
        let jump = decode(&code[at..]);
        assert_eq!(describe(&jump), format!("jmp {:+}", -distance));
    }
}

#[test]
fn references_to_places() {
    for reg in registers() {
        let code = emitted(|code| {
            let label = code.new_label();
            code.lea_label(reg, label);
            code.ret();
            code.bind(label);
        });
        let insn = decode(&code);
        let meant = format!("lea {},0[here+{}]", name(Size::DW, reg), code.len());
        assert_eq!(describe(&insn), meant);
    }
    let code = emitted(|code| {
        let label = code.new_label();
        code.call_through(label);
        code.ret();
        code.bind(label);
        code.data(0x1122_3344_5566_7788, 8);
    });
    assert_eq!(describe(&decode(&code)), "call 8[here+7]");
    assert_eq!(code[7..], 0x1122_3344_5566_7788_u64.to_le_bytes());
}

#[test]
fn padding_does_nothing() {
    for before in 0..64 {
        let code = emitted(|code| {
            (0..before).for_each(|_| code.ret());
            code.align(64);
            code.ret();
        });
        let padding = &code[before..code.len() - 1];
        assert_eq!(code.len() - 1, before.next_multiple_of(64));
        let decoder = Decoder::with_ip(64, padding, HERE, DecoderOptions::NONE);
        let insns: Vec<Instruction> = decoder.into_iter().collect();
        assert!(insns.iter().all(|insn| insn.mnemonic() == Mnemonic::Nop));
        assert_eq!(insns.len(), padding.len().div_ceil(9));
    }
}
