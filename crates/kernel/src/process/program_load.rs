//! Commands about programs: `BPF_PROG_LOAD`, and those that attach, which fail.

use std::sync::Arc;

use btf::{Btf, StrOffset, TypeId};
use isa::ebpf::{Imm64, Insn};
use isa::ebpf::{RawInsn, decode_bytes, encode};
use program::{AttachTarget, FuncInfo, Image, InitialContents, LineInfo, MapDef, Program};
use spec::limits;
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType, TestRunKind};
use spec::{Errno, Result};
use vm::BpfCall;

use super::attributes::{self, Attributes, TOKEN_FD, attach, prog_load as at};
use super::{Descriptor, LoadedProgram, Process, Table};
use crate::maps::{Map, ProgramClass, StoredMap, StoredProgram};

/// `BPF_COMPLEXITY_LIMIT_INSNS`.
const MOST_INSNS: u32 = limits::INSNS_PROCESSED;
/// Bytes of a licence at most.
const LONGEST_LICENSE: u64 = 127;
/// Sizes of the records of functions and lines.
const FUNC_INFO_SIZE: u32 = 8;
const LINE_INFO_SIZE: u32 = 16;
/// Bytes of a record at most (`MAX_FUNCINFO_REC_SIZE`).
const LARGEST_RECORD: u32 = 252;

impl Process {
    /// `BPF_PROG_LOAD`.
    pub(super) fn load_program(
        &self,
        attributes: &Attributes,
        call: &mut BpfCall<'_>,
    ) -> Result<u32> {
        let verifier = self.verifier.as_ref().ok_or(Errno::EPERM)?;
        let flags = attributes.u32(at::FLAGS);
        let known = LoadFlags::ALL
            .iter()
            .fold(TOKEN_FD, |all, flag| all | flag.0.0);
        Errno::EINVAL.when(flags & !known != 0)?;
        Errno::EBADF.when(flags & TOKEN_FD != 0)?;
        let count = attributes.u32(at::INSN_COUNT);
        Errno::E2BIG.when(count == 0 || count > MOST_INSNS)?;
        let has_target = attributes.u32(at::ATTACH_FD) != 0;
        if has_target {
            // No descriptor is that of a program or types to attach to.
            return Err(Errno::EINVAL);
        }
        let mut insns = vec![0; 8 * count as usize];
        Errno::EFAULT.when(!(call.read)(attributes.u64(at::INSNS), &mut insns))?;
        let license = text(attributes.u64(at::LICENSE), call)?;
        if attributes.u64(at::SIGNATURE) != 0 {
            // No key ring has a key for it.
            return Err(Errno::EINVAL);
        }
        let kind = ProgramType::from_number(attributes.u32(at::TYPE)).ok_or(Errno::EINVAL)?;
        Errno::EINVAL.when(attributes.u32(at::IFINDEX) != 0)?;
        let name = attributes.name(at::NAME)?;
        let log = attributes.log(at::LOG_BUF, at::LOG_SIZE, at::LOG_LEVEL)?;
        let target = match attributes.u32(at::ATTACH_BTF_ID) {
            0 => None,
            id => Some(AttachTarget {
                btf_id: TypeId(id),
                ..AttachTarget::default()
            }),
        };
        let loaded = self.link(&insns, attributes, call).and_then(|linked| {
            let program = Program::builder(kind, linked.insns)
                .name(name)
                .license(license)
                .kernel_version(attributes.u32(at::KERNEL_VERSION))
                .flags(LoadFlags(flags))
                .expected_attach_type(attributes.u32(at::ATTACH_TYPE))
                .attach_target(target)
                .maps(linked.defs)
                .btf(linked.types)
                .func_info(linked.func_info)
                .line_info(linked.line_info)
                .build()
                .map_err(|_| Errno::EINVAL)?;
            verifier.verify(&program)?;
            Ok((program, linked.maps))
        });
        // The kernel writes the length of the log also where there is none.
        attributes::put(call, at::LOG_TRUE_SIZE, 0);
        log.finish()?;
        let (program, maps) = loaded?;
        let mut table = self.table();
        table.programs += 1;
        let stored = stored(&program, table.programs);
        for map in &maps {
            map.admit(&stored.class)?;
        }
        let stored = Arc::new(stored);
        table.open(Descriptor::Program(Arc::new(LoadedProgram {
            program,
            maps,
            stored,
        })))
    }

    /// Finds what a program refers to.
    fn link(&self, insns: &[u8], attributes: &Attributes, call: &BpfCall<'_>) -> Result<Linked> {
        if attributes.u32(at::CORE_COUNT) != 0 {
            // Relocations are resolved before the program is given to the kernel here.
            return Err(Errno::ENOTSUPP);
        }
        let table = self.table();
        let counts = [at::FUNC_INFO_COUNT, at::LINE_INFO_COUNT];
        let has_info = counts.iter().any(|count| attributes.u32(*count) != 0);
        // Without records the kernel does not look at the descriptor.
        let types = match table.types(attributes.u32(at::BTF_FD)) {
            Err(errno) if has_info => return Err(errno),
            types => types.ok(),
        };
        let func_info = records(
            attributes,
            [at::FUNC_INFO, at::FUNC_INFO_COUNT, at::FUNC_INFO_SIZE],
            FUNC_INFO_SIZE,
            call,
        )?;
        let line_info = records(
            attributes,
            [at::LINE_INFO, at::LINE_INFO_COUNT, at::LINE_INFO_SIZE],
            LINE_INFO_SIZE,
            call,
        )?;
        let (insns, maps) = with_indices(insns, &table, attributes.u64(at::FD_ARRAY), call)?;
        let defs = maps.iter().map(|map| {
            let of_map = table.map_types.get(&map.id);
            let mut def = definition(map)?;
            def.has_btf =
                types.is_some() && of_map.map(Arc::as_ptr) == types.as_ref().map(Arc::as_ptr);
            Ok(Arc::new(def))
        });
        let defs: Result<Vec<_>> = defs.collect();
        Ok(Linked {
            insns,
            defs: defs?,
            maps: maps.iter().map(|map| map.map.clone()).collect(),
            types,
            func_info: func_info.iter().map(func_info_of).collect(),
            line_info: line_info.iter().map(line_info_of).collect(),
        })
    }

    /// `BPF_RAW_TRACEPOINT_OPEN`: EINVAL for programs of other types, and for no name; EFAULT
    /// where it would read the name in memory of the process.
    pub(super) fn open_raw_tracepoint(&self, attributes: &Attributes) -> Result<u32> {
        attributes.check_end(attach::END_OF_RAW_TRACEPOINT)?;
        let descriptor = attributes.u32(attach::RAW_TRACEPOINT_PROG_FD);
        let program = self.table().program(descriptor)?;
        Err(match program.program.kind().test_run() {
            Some(TestRunKind::RawTracepoint) => Errno::EFAULT,
            Some(
                TestRunKind::Xdp
                | TestRunKind::Skb(_)
                | TestRunKind::FlowDissector
                | TestRunKind::Netfilter
                | TestRunKind::SkLookup
                | TestRunKind::Syscall
                | TestRunKind::Model,
            )
            | None => Errno::EINVAL,
        })
    }

    /// `BPF_LINK_CREATE`: EOPNOTSUPP for every program, nothing can be attached here.
    pub(super) fn create_link(&self, attributes: &Attributes) -> Result<u32> {
        attributes.check_end(attach::END_OF_LINK)?;
        self.table().program(attributes.u32(attach::LINK_PROG_FD))?;
        Err(Errno::EOPNOTSUPP)
    }
}

/// A program with what it refers to.
struct Linked {
    insns: Vec<RawInsn>,
    defs: Vec<Arc<MapDef>>,
    maps: Vec<Arc<Map>>,
    types: Option<Arc<Btf<'static>>>,
    func_info: Vec<FuncInfo>,
    line_info: Vec<LineInfo>,
}

/// The zero-terminated text at an address, cut to that of a licence.
fn text(address: u64, call: &BpfCall<'_>) -> Result<String> {
    let mut text = Vec::new();
    for at in 0..LONGEST_LICENSE {
        let mut byte = [0];
        Errno::EFAULT.when(!(call.read)(address.wrapping_add(at), &mut byte))?;
        if byte == [0] {
            break;
        }
        text.extend(byte);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The instructions with indices in place of descriptors of maps, and the maps.
fn with_indices(
    bytes: &[u8],
    table: &Table,
    fd_array: u64,
    call: &BpfCall<'_>,
) -> Result<(Vec<RawInsn>, Vec<Arc<StoredMap>>)> {
    let mut insns = decode_bytes(bytes).map_err(|_| Errno::EINVAL)?;
    let mut maps: Vec<Arc<StoredMap>> = Vec::new();
    let mut place = |descriptor: i32| {
        let map = table.map(descriptor as u32)?;
        let known = maps.iter().position(|known| known.id == map.id);
        Ok(known.unwrap_or_else(|| {
            maps.push(map);
            maps.len() - 1
        }) as i32)
    };
    let listed = |index: i32| {
        let mut bytes = [0; 4];
        let at = fd_array.wrapping_add(4 * u64::from(index as u32));
        match (call.read)(at, &mut bytes) {
            true => Ok(i32::from_le_bytes(bytes)),
            false => Err(Errno::EFAULT),
        }
    };
    for insn in &mut insns {
        let Insn::LoadImm64 { imm, .. } = insn else {
            continue;
        };
        *imm = match *imm {
            Imm64::MapFd { fd, high } => Imm64::MapIndex {
                index: place(fd)?,
                high,
            },
            Imm64::MapValue { fd, offset } => Imm64::MapIndexValue {
                index: place(fd)?,
                offset,
            },
            Imm64::MapIndex { index, high } => Imm64::MapIndex {
                index: place(listed(index)?)?,
                high,
            },
            Imm64::MapIndexValue { index, offset } => Imm64::MapIndexValue {
                index: place(listed(index)?)?,
                offset,
            },
            other @ (Imm64::Value(_) | Imm64::BtfId { .. } | Imm64::Func { .. }) => other,
        };
    }
    let insns = encode(&insns).map_err(|_| Errno::EINVAL)?;
    Ok((insns, maps))
}

/// The first words of each record of an array.
fn records(
    attributes: &Attributes,
    [address, count, size]: [usize; 3],
    known: u32,
    call: &BpfCall<'_>,
) -> Result<Vec<[u32; 4]>, Errno> {
    let (count, size) = (attributes.u32(count), attributes.u32(size));
    if count == 0 {
        return Ok(Vec::new());
    }
    if size < known || size > LARGEST_RECORD || !size.is_multiple_of(4) || count > MOST_INSNS {
        return Err(Errno::EINVAL);
    }
    let mut bytes = vec![0; count as usize * size as usize];
    Errno::EFAULT.when(!(call.read)(attributes.u64(address), &mut bytes))?;
    let record = |bytes: &[u8]| {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        words
    };
    let records = bytes.chunks_exact(size as usize);
    if records
        .clone()
        .any(|bytes| bytes[known as usize..].iter().any(|byte| *byte != 0))
    {
        return Err(Errno::E2BIG);
    }
    Ok(records.map(record).collect())
}

fn func_info_of([insn, type_id, ..]: &[u32; 4]) -> FuncInfo {
    FuncInfo {
        insn: *insn,
        type_id: TypeId(*type_id),
    }
}

fn line_info_of([insn, file, text, place]: &[u32; 4]) -> LineInfo {
    LineInfo {
        insn: *insn,
        file: StrOffset(*file),
        text: StrOffset(*text),
        line: place >> 10,
        column: place & 0x3ff,
    }
}

/// The definition of a map that exists, with the value of one that never changes again.
fn definition(map: &StoredMap) -> Result<MapDef> {
    let params = *map.map.params();
    let mut def = MapDef::new(format!("map{}", map.id), params);
    let inner = map.map.inner_params();
    def.inner = inner.map(|inner| Arc::new(MapDef::new(format!("map{}.inner", map.id), *inner)));
    let is_single = params.kind() == Some(MapKind::Array) && params.max_entries == 1;
    if is_single && map.map.is_constant() {
        let mut value = vec![0; map.map.value_len()];
        map.map.lookup(&[0; 4], &mut value, 0)?;
        def.contents = InitialContents::Value {
            image: Image::new(&value, params.value_size).to_owned(),
            frozen: true,
        };
    }
    Ok(def)
}

fn stored(program: &Program, id: u32) -> StoredProgram {
    let flags = program.flags().0;
    StoredProgram {
        id,
        class: ProgramClass {
            program_type: program.kind(),
            attach_type: program.expected_attach_type(),
            has_frags: flags & LoadFlags::XDP_HAS_FRAGS.0 != 0,
            is_native: false,
            is_device_bound: flags & LoadFlags::XDP_DEV_BOUND_ONLY.0 != 0,
            cgroup_storage: [0; 2],
        },
        target: None,
    }
}
