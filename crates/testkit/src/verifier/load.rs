//! A whole program, with its maps and types, put to the running kernel.

use std::ffi::CString;
use std::sync::Arc;

use program::{InitialContents, MapDef, Program};
use sys::Errno;
use sys::bpf::{BtfObject, LogLevel, Map, MapRequest, ProgLoad};

/// Bytes of room for the kernel's log.
const LOG_BYTES: usize = 1 << 20;

/// The running kernel's answer: the error number and the last line of a refusal.
pub type Refused = Option<(i32, String)>;

/// Loads a program into the running kernel; `None` if it accepts it. Programs that are
/// attached by BTF of the kernel are not for this.
///
/// # Errors
/// What of the program the kernel does not create for us: maps, types, or programs at all.
pub fn refusal_of_kernel(program: &Program) -> Result<Refused, String> {
    let btf = program.btf().map(|btf| BtfObject::load(btf.as_bytes()));
    let btf = btf
        .transpose()
        .map_err(|errno| format!("no BTF: {errno}"))?;
    let mut maps = Vec::new();
    for map in program.maps() {
        maps.push(create(map, btf.as_ref()).map_err(|errno| format!("no map: {errno}"))?);
    }
    let insns = program.insns_with_map_fds(|map| maps[map.0 as usize].descriptor() as i32);
    let func_info: Vec<[u32; 2]> = { program.func_info().iter() }
        .map(|func| [func.insn, func.type_id.0])
        .collect();
    let line_info: Vec<[u32; 4]> = { program.line_info().iter() }
        .map(|line| {
            [
                line.insn,
                line.file.0,
                line.text.0,
                line.line << 10 | line.column,
            ]
        })
        .collect();
    let license = CString::new(program.license()).map_err(|error| error.to_string())?;
    let request = ProgLoad {
        license: &license,
        expected_attach_type: program.expected_attach_type(),
        flags: program.flags().0,
        btf: btf.as_ref(),
        func_info: &func_info,
        line_info: &line_info,
        log_level: LogLevel::STATS,
        log_size: LOG_BYTES,
        ..ProgLoad::new(program.kind().number(), &insns)
    };
    let mut log = Vec::new();
    match request.load_into(&mut log).result {
        Ok(_) => Ok(None),
        Err(Errno::EPERM) if log.is_empty() => Err("bpf(2) is not allowed".to_owned()),
        Err(errno) => Ok(Some((errno.0, last_line(&String::from_utf8_lossy(&log))))),
    }
}

fn create(map: &Arc<MapDef>, btf: Option<&BtfObject>) -> Result<Map, Errno> {
    let params = &map.params;
    let created = Map::create(&MapRequest {
        map_type: params.map_type,
        name: &map.kernel_name,
        key_size: params.key_size,
        value_size: params.value_size,
        max_entries: params.max_entries,
        flags: params.flags.0,
        btf: btf.filter(|_| map.has_btf),
        btf_key: params.key_type.0,
        btf_value: params.value_type.0,
        ..MapRequest::default()
    })?;
    if let InitialContents::Value { image, frozen } = &map.contents {
        let mut value = image.start().to_vec();
        value.resize(image.size() as usize, 0);
        created.update(&[0; 4], &value)?;
        if *frozen {
            created.freeze()?;
        }
    }
    Ok(created)
}

/// The last line of a log before its statistics, which may follow without a line break;
/// source lines do not count.
fn last_line(log: &str) -> String {
    const STATISTICS: [&str; 3] = ["verification time ", "stack depth ", "processed "];
    let lines = log.lines().map(|line| {
        let line = line.trim_matches('\0');
        let ends = STATISTICS.iter().filter_map(|start| line.find(start));
        line[..ends.min().unwrap_or(line.len())].trim_end()
    });
    let reason = lines
        .rev()
        .find(|line| !line.is_empty() && !line.starts_with("; "));
    reason.unwrap_or_default().to_owned()
}
