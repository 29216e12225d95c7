//! Read-only data of the running kernel, and tables found in it by their shape.
//!
//! A program of type syscall, of a raw tracepoint before Linux 5.14, copies 64 KiB a run with
//! `bpf_probe_read_kernel` into an array map. kallsyms names functions, not data, so tables are found by shape:
//! a helper prototype is a `struct bpf_func_proto` whose first word is the address
//! of a function. [`super::tables`] finds the others. An entry found so counts only
//! once a load confirms it.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use isa::ebpf::RawInsn;
use spec::programs::ProgramType;
use sys::bpf::{Map, MapRequest, ProgLoad, TestRun};

use super::numbering::Numbering;

/// Bytes that one run copies.
const STEP: usize = 1 << 16;
/// Number of bytes read after `__stop_BTF`.
const BEHIND_BTF: u64 = 6 << 20;

/// A prototype in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawProto {
    /// Name of the function.
    pub function: String,
    /// gpl_only, pkt_access, might_sleep, allow_fastcall.
    pub flags: [bool; 4],
    /// Encoded return type.
    pub ret: u32,
    /// Encoded argument types.
    pub args: [u32; 5],
    /// Size, or address of a BTF id, of each argument.
    pub details: [u64; 5],
    /// Address of the BTF id that is returned, or 0.
    pub ret_btf: u64,
    /// Name of the function that allows calls, or empty.
    pub allowed: String,
    /// Address of the function.
    pub address: u64,
}

/// Read-only data of the running kernel.
pub struct KernelMemory {
    start: u64,
    bytes: Vec<u8>,
    stop_btf: u64,
    /// Names of functions by address.
    functions: BTreeMap<u64, String>,
    call_base: u64,
}

impl KernelMemory {
    /// Reads it; needs root and `kernel.kptr_restrict` below 2.
    pub fn read() -> io::Result<KernelMemory> {
        let mut functions = BTreeMap::new();
        let (mut start, mut stop_btf, mut call_base) = (0, 0, 0);
        for line in fs::read_to_string("/proc/kallsyms")?.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).unwrap_or(0);
            match name {
                "__start_rodata" => start = address,
                "__stop_BTF" => stop_btf = address,
                "__bpf_call_base" => call_base = address,
                _ => {}
            }
            if matches!(kind, "t" | "T" | "w" | "W") && words.next().is_none() {
                // The first of several names is the function's own.
                functions.entry(address).or_insert_with(|| name.to_owned());
            }
        }
        if start == 0 || stop_btf <= start {
            return Err(io::Error::other("kallsyms hides addresses"));
        }
        let bytes = copy(start, (stop_btf + BEHIND_BTF - start) as usize)?;
        Ok(KernelMemory {
            start,
            bytes,
            stop_btf,
            functions,
            call_base,
        })
    }

    /// Name of the function that a translated call with this immediate calls.
    pub fn callee(&self, imm: i32) -> Option<&str> {
        let address = self.call_base.wrapping_add(i64::from(imm) as u64);
        self.functions.get(&address).map(String::as_str)
    }

    /// The 32-bit number at an address.
    pub fn u32_at(&self, address: u64) -> Option<u32> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The 64-bit number at an address.
    pub fn u64_at(&self, address: u64) -> Option<u64> {
        let low = u64::from(self.u32_at(address)?);
        Some(low | u64::from(self.u32_at(address + 4)?) << 32)
    }

    /// Addresses that were read.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.bytes.len() as u64
    }

    /// Addresses after the BTF that were read.
    pub fn behind_btf(&self) -> std::ops::Range<u64> {
        self.stop_btf.next_multiple_of(4)..self.range().end
    }

    /// The text at an address, up to its NUL, if it is a name in C of at most 63 bytes.
    pub fn name_at(&self, address: u64) -> Option<&str> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..)?;
        let len = bytes.iter().take(64).position(|&byte| byte == 0)?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let name = bytes.get(..len).filter(|name| !name.is_empty())?;
        let fits = name.iter().all(is_name) && !name[0].is_ascii_digit();
        std::str::from_utf8(name).ok().filter(|_| fits)
    }

    /// Everything that has the shape of a prototype, by address.
    pub fn protos(&self, numbering: &Numbering) -> Vec<RawProto> {
        let last = self.start + self.bytes.len() as u64 - numbering.layout.allowed - 8;
        (self.start..last)
            .step_by(8)
            .filter_map(|at| self.proto(at, numbering))
            .collect()
    }

    fn proto(&self, at: u64, numbering: &Numbering) -> Option<RawProto> {
        let layout = numbering.layout;
        let address = self.u64_at(at)?;
        let function = self.functions.get(&address)?.clone();
        let bools = self.u32_at(at + 8)?.to_le_bytes();
        let ret = self.u32_at(at + 12)?;
        let mut args = [0; 5];
        let mut details = [0; 5];
        for (index, (arg, detail)) in args.iter_mut().zip(&mut details).enumerate() {
            *arg = self.u32_at(at + layout.args + 4 * index as u64)?;
            *detail = self.u64_at(at + layout.details + 8 * index as u64)?;
        }
        let ret_btf = self.u64_at(at + layout.ret_btf)?;
        let allowed = self.u64_at(at + layout.allowed)?;
        let arg_count = args.iter().take_while(|&&arg| arg != 0).count();
        let has_shape = bools.iter().all(|&byte| byte < 2)
            && numbering.ret(ret).is_some()
            && args.iter().all(|&arg| numbering.arg(arg).is_some())
            && args[arg_count..].iter().all(|&arg| arg == 0)
            && details[arg_count..].iter().all(|&detail| detail == 0)
            && (allowed == 0 || self.functions.contains_key(&allowed))
            && (ret_btf == 0 || numbering.may_return_structure(ret));
        has_shape.then(|| RawProto {
            function,
            flags: bools.map(|byte| byte == 1),
            ret,
            args,
            details,
            ret_btf,
            allowed: self.functions.get(&allowed).cloned().unwrap_or_default(),
            address,
        })
    }
}

/// Copies kernel memory.
fn copy(start: u64, len: usize) -> io::Result<Vec<u8>> {
    let error = |errno: sys::Errno| io::Error::other(errno.to_string());
    let map = Map::create(&MapRequest {
        map_type: 2,
        key_size: 4,
        value_size: STEP as u32,
        max_entries: 1,
        ..MapRequest::default()
    })
    .map_err(error)?;
    let slot = |code, regs, off, imm| RawInsn {
        code,
        regs,
        off,
        imm,
    };
    // r3 = address out of the context; r1 = value of the map; copies STEP bytes.
    let insns = [
        slot(0x79, 0x13, 0, 0),
        slot(0x18, 0x21, 0, map.descriptor() as i32),
        slot(0, 0, 0, 0),
        slot(0xb7, 0x02, 0, STEP as i32),
        slot(0x85, 0, 0, 113),
        slot(0x95, 0, 0, 0),
    ];
    let load = |kind: ProgramType, flags| {
        let request = ProgLoad {
            flags,
            ..ProgLoad::new(kind.number(), &insns)
        };
        request.load_into(&mut Vec::new()).result
    };
    let program = load(ProgramType::Syscall, 1 << 4);
    let program = program.or_else(|_| load(ProgramType::RawTracepoint, 0));
    let program = program.map_err(error)?;
    let mut bytes = Vec::with_capacity(len + STEP);
    let mut step = vec![0; STEP];
    while bytes.len() < len {
        let address = start + bytes.len() as u64;
        let context = address.to_le_bytes();
        let run = TestRun {
            repeat: 0,
            ..TestRun::with_context(&context)
        };
        let tested = program.test_run(&run, &mut [], &mut []).map_err(error)?;
        if tested.retval != 0 {
            break;
        }
        map.lookup(&0u32.to_le_bytes(), &mut step).map_err(error)?;
        bytes.extend_from_slice(&step);
    }
    bytes.truncate(len);
    Ok(bytes)
}
