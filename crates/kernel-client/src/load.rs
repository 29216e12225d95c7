//! A loadable program given to the running kernel, with its BTF, maps and initial
//! contents: verdict, log, and the program to run.
//!
//! Everything is handed over as the program states it; nothing is attached. Maps that
//! the kernel refuses with BTF are created without, as loaders do. What another program
//! would have to be loaded for (program arrays with contents, struct_ops values) is left
//! empty.

use super::arena;
use std::ffi::CString;
use std::os::fd::AsFd;
use std::sync::Arc;

use isa::ebpf::{PseudoLoad, RawInsn};
use program::{InitialContents, MapDef, MapEntry, Program};
use spec::maps::MapKind;
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{BtfObject, LoadAnswer, LogLevel, Map, MapRequest, ProgLoad};

/// Options of a program load.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest {
    /// Log level: 1 the path to the refusal, 2 every instruction, 4 statistics.
    pub log_level: u32,
    /// Bytes of the log buffer.
    pub log_size: usize,
}

/// Reason why a program does not reach the verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// The kernel refuses the BTF.
    Btf(Errno),
    /// The kernel refuses a map.
    Map {
        /// Name.
        name: String,
        /// The error number.
        errno: Errno,
    },
    /// The licence contains a NUL byte.
    License,
}

/// A program that was given to the kernel, with the maps that it uses.
#[derive(Debug)]
pub struct Loaded {
    /// The program, or the error number.
    pub answer: LoadAnswer,
    /// The verifier's log.
    pub log: String,
    /// The maps that instructions refer to, by index; those that none refers to are
    /// not created.
    pub maps: Vec<Option<Map>>,
}

/// Checks that the kernel takes programs from this process.
///
/// # Errors
/// The error number of a program that returns 0.
pub fn may_load() -> Result<(), Errno> {
    let program = [0xb7, 0x95].map(|code| RawInsn {
        code,
        ..RawInsn::default()
    });
    let loaded = ProgLoad::new(ProgramType::Xdp.number(), &program).load();
    loaded.map(drop).map_err(|refused| refused.errno)
}

/// Loads a program into the kernel.
pub fn load(program: &Program, request: LoadRequest) -> Result<Loaded, LoadFault> {
    let mut resources = Resources::of(program)?;
    let mut log = Vec::new();
    let answer = resources.load(program, request, &mut log)?;
    Ok(Loaded {
        answer,
        log: String::from_utf8_lossy(&log).into_owned(),
        maps: resources.maps,
    })
}

/// The BTF and the maps of a program in the kernel, for it and for all others with the
/// same BTF and map definitions.
#[derive(Debug)]
pub struct Resources {
    btf: Option<BtfObject>,
    /// The maps that were referred to so far, by index.
    maps: Vec<Option<Map>>,
    /// Programs share maps that belong to the first of them too.
    shares_owned: bool,
}

impl Resources {
    /// Gives the program's BTF to the kernel; maps are created when a program refers to
    /// them.
    pub fn of(program: &Program) -> Result<Resources, LoadFault> {
        let btf = program.btf().map(|btf| BtfObject::load(btf.as_bytes()));
        Ok(Resources {
            btf: btf.transpose().map_err(LoadFault::Btf)?,
            maps: program.maps().iter().map(|_| None).collect(),
            shares_owned: false,
        })
    }

    /// Has programs share maps that belong to the first of them, such as program arrays:
    /// the kernel refuses those of another class then.
    pub fn share_owned(&mut self) {
        self.shares_owned = true;
    }

    /// The map of an index, if it was referred to.
    pub fn map(&self, index: usize) -> Option<&Map> {
        self.maps.get(index)?.as_ref()
    }

    /// Gives a program with this BTF and these map definitions to the kernel. The log
    /// replaces what is in `log`, whose memory is used again.
    pub fn load(
        &mut self,
        program: &Program,
        request: LoadRequest,
        log: &mut Vec<u8>,
    ) -> Result<LoadAnswer, LoadFault> {
        self.create_maps(program)?;
        let descriptor = |map: &Option<Map>| map.as_ref().map_or(-1, |map| map.descriptor() as i32);
        let fd_array: Vec<i32> = self.maps.iter().map(descriptor).collect();
        let license = CString::new(program.license()).map_err(|_| LoadFault::License)?;
        let func_info = program.func_info().iter();
        let func_info: Vec<[u32; 2]> = func_info.map(|it| [it.insn, it.type_id.0]).collect();
        let line_info: Vec<[u32; 4]> = program
            .line_info()
            .iter()
            .map(|it| [it.insn, it.file.0, it.text.0, it.line << 10 | it.column])
            .collect();
        let target = program.attach_target();
        let target_program = target.and_then(|target| target.program.as_deref());
        let replaced = target_program.map(|target| self::load(target, request));
        let replaced = replaced.transpose()?;
        let replaced = replaced
            .as_ref()
            .and_then(|loaded| loaded.answer.result.as_ref().ok());
        let insns = by_descriptor(program.insns(), &fd_array);
        let request = ProgLoad {
            program_type: program.kind().number(),
            insns: &insns,
            license: &license,
            name: program.name(),
            expected_attach_type: program.expected_attach_type(),
            attach_btf_id: target.map_or(0, |target| target.btf_id.0),
            attach_object: replaced.map(|program| program.as_fd()),
            flags: program.flags().0,
            kernel_version: program.kernel_version(),
            btf: self.btf.as_ref(),
            func_info: &func_info,
            line_info: &line_info,
            fd_array: &fd_array,
            bind_fd_array: false,
            log_level: LogLevel(request.log_level),
            log_size: request.log_size,
        };
        Ok(request.load_into(log))
    }

    /// Creates the maps that a program refers to and that are not there yet; those that
    /// belong to the first program that uses them anew.
    pub fn create_maps(&mut self, program: &Program) -> Result<(), LoadFault> {
        for (def, map) in program.maps().iter().zip(&mut self.maps) {
            if has_owner(def) && !self.shares_owned {
                *map = None;
            }
        }
        for id in program.used_maps() {
            let index = id.0 as usize;
            create_with_contents(program, self.btf.as_ref(), &mut self.maps, index)?;
        }
        Ok(())
    }
}

/// Instructions that name maps by descriptor as libbpf does, not by index: of these alone the log
/// shows no address to callers without CAP_PERFMON (`print_bpf_insn`).
fn by_descriptor(insns: &[RawInsn], descriptors: &[i32]) -> Vec<RawInsn> {
    let mut insns = insns.to_vec();
    for insn in insns.iter_mut().filter(|insn| insn.is_wide_load()) {
        let named = match PseudoLoad::from_number(insn.src()) {
            Some(PseudoLoad::MapIdx) => PseudoLoad::MapFd,
            Some(PseudoLoad::MapIdxValue) => PseudoLoad::MapValue,
            _ => continue,
        };
        let descriptor = usize::try_from(insn.imm)
            .ok()
            .and_then(|at| descriptors.get(at));
        if let Some(&descriptor) = descriptor.filter(|descriptor| **descriptor >= 0) {
            insn.regs = (named as u8) << 4 | insn.dst();
            insn.imm = descriptor;
        }
    }
    insns
}

/// True for kinds of maps that belong to the first program that uses them: others may
/// be refused after they were verified (`bpf_prog_map_compatible`).
fn has_owner(def: &MapDef) -> bool {
    matches!(
        def.kind(),
        Some(MapKind::ProgArray | MapKind::Devmap | MapKind::DevmapHash | MapKind::Cpumap)
    )
}

/// Creates a map, and before it the maps that it holds.
fn create_with_contents(
    program: &Program,
    btf: Option<&BtfObject>,
    maps: &mut [Option<Map>],
    index: usize,
) -> Result<(), LoadFault> {
    let Some(def) = program.maps().get(index).filter(|_| maps[index].is_none()) else {
        return Ok(());
    };
    let is_map_of_maps = |def: &MapDef| def.kind().is_some_and(MapKind::is_map_of_maps);
    let fault = |errno| LoadFault::Map {
        name: def.name.clone(),
        errno,
    };
    let inner = def.inner.as_deref().map(|inner| create(inner, btf, None));
    let inner = inner.transpose().map_err(fault)?;
    let map = create(def, btf, inner.as_ref()).map_err(fault)?;
    let key = |key: u32| key.to_le_bytes();
    match &def.contents {
        InitialContents::Value { image, .. } => {
            map.update(&key(0), &image.to_vec()).map_err(fault)?;
        }
        InitialContents::JumpTable(targets) => {
            for (at, target) in (0u32..).zip(targets) {
                let mut value = vec![0; map.value_len()];
                value[..4].copy_from_slice(&target.to_le_bytes());
                map.update(&key(at), &value).map_err(fault)?;
            }
        }
        InitialContents::Entries(entries) => {
            for (at, entry) in entries {
                if let MapEntry::Map(held) = entry {
                    let held = held.0 as usize;
                    // A map that is held holds no maps.
                    let is_held = |def: &Arc<MapDef>| !is_map_of_maps(def);
                    if program.maps().get(held).is_some_and(is_held) {
                        create_with_contents(program, btf, maps, held)?;
                    }
                    if let Some(Some(held)) = maps.get(held) {
                        let descriptor = held.descriptor().to_le_bytes();
                        map.update(&key(*at), &descriptor).map_err(fault)?;
                    }
                }
            }
        }
        InitialContents::Arena { image, offset } => {
            let written = arena::write(&map, &def.params, *offset, &image.to_vec());
            written.map_err(fault)?;
        }
        InitialContents::StructOps { .. } => {}
    }
    if def.is_frozen() {
        map.freeze().map_err(fault)?;
    }
    maps[index] = Some(map);
    Ok(())
}

fn create(def: &MapDef, btf: Option<&BtfObject>, inner: Option<&Map>) -> Result<Map, Errno> {
    let params = &def.params;
    let plain = MapRequest {
        map_type: params.map_type,
        name: &def.kernel_name,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        extra: arena::extra(params),
        numa_node: params.numa_node,
        ifindex: def.ifindex,
        inner,
        btf_vmlinux_value: def.kernel_value.map_or(0, |value| value.id.0),
        ..MapRequest::default()
    };
    let described = MapRequest {
        btf: btf.filter(|_| def.has_btf || def.kernel_value.is_some()),
        btf_key: params.key_type.0,
        btf_value: params.value_type.0,
        ..plain
    };
    let has_types = described.btf.is_some() && def.kernel_value.is_none();
    match arena::create(&described) {
        Err(_) if has_types => arena::create(&plain),
        made => made,
    }
}
