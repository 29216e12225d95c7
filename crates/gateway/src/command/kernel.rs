//! The data plane in the running kernel.

use std::ffi::CString;
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::program::{MapDef, Program};
use gateway::{Capacity, Hits, Hook, OBJECT, Table, set_up};
use sys::Errno;
use sys::bpf::{BtfObject, Link, LinkKind, LoadedProgram, LogLevel, Map, MapRequest, ProgLoad};

use super::input::Interface;
use command::answer::Failure;

/// The data plane: a program with its maps, which can be attached to a device.
pub(super) struct DataPlane {
    tables: Map,
    counters: Map,
    /// Definition of inner maps.
    template: Arc<MapDef>,
    capacity: Capacity,
    /// Index of the first counter of the current table.
    first: u32,
    program: LoadedProgram,
    hook: Hook,
    link: Option<Link>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Failure {
    let failure = Failure::new(format_args!("{what}: {error}"));
    failure.hint("root, or CAP_BPF and CAP_NET_ADMIN, on Linux 6.6 or newer")
}

impl DataPlane {
    /// Loads a table and the program of a hook.
    pub(super) fn load(
        table: &Table,
        hook: Hook,
        capacity: Capacity,
        kernel: &Kernel,
    ) -> Result<DataPlane, Failure> {
        let mut object = set_up(OBJECT, capacity, false).map_err(Failure::new)?;
        object.set_autoload(|program| program.name == hook.program());
        let mut linked = object.link(kernel).map_err(Failure::new)?;
        if linked.programs.is_empty() {
            return Err(Failure::new("the gateway's object has no such program"));
        }
        let program = linked.programs.swap_remove(0).program;
        let types = program.btf().map(|btf| BtfObject::load(btf.as_bytes()));
        let types = types.transpose().map_err(|errno| failed("BTF", errno))?;
        let mut maps = Vec::new();
        for def in program.maps() {
            maps.push(create(def).map_err(|errno| failed(&format!("map {}", def.name), errno))?);
        }
        let place = |name: &str| {
            let found = program.maps().iter().position(|def| def.name == name);
            found
                .ok_or_else(|| Failure::new(format_args!("the gateway's object has no map {name}")))
        };
        let (tables, counters) = (place("tables")?, place("counters")?);
        let template = program.maps()[tables].inner.clone();
        let template = template.ok_or_else(|| Failure::new("map tables holds no maps"))?;
        fill(&maps[tables], &template, capacity, table, 0)?;
        let loaded = give(&program, &maps, types.as_ref())?;
        // The program keeps the other maps.
        let (last, first) = (tables.max(counters), tables.min(counters));
        let (last, first) = (maps.swap_remove(last), maps.swap_remove(first));
        let (tables, counters) = match tables > counters {
            true => (last, first),
            false => (first, last),
        };
        Ok(DataPlane {
            tables,
            counters,
            template,
            capacity,
            first: 0,
            program: loaded,
            hook,
            link: None,
        })
    }

    /// Attaches the program to an interface; returns false if that is gone.
    pub(super) fn attach(&mut self, interface: &Interface) -> Result<bool, Failure> {
        let kind = match self.hook {
            Hook::Xdp => LinkKind::Xdp,
            Hook::Tc => LinkKind::TcIngress,
        };
        let link = match self.program.attach(kind, interface.index) {
            Err(_) if sys::network::interface_name(interface.index).is_err() => return Ok(false),
            link => link,
        };
        self.link = Some(link.map_err(|errno| {
            match errno {
                Errno::EBUSY => Failure::new(format_args!(
                    "another XDP program is attached to {interface}"
                ))
                .hint("--hook tc"),
                errno => failed(&interface.to_string(), errno),
            }
        })?);
        Ok(true)
    }

    /// Detaches the program, at once.
    pub(super) fn detach(&mut self) {
        self.link = None;
    }

    /// True while the program is attached to an interface that exists.
    pub(super) fn is_attached(&mut self) -> Result<bool, Failure> {
        let index = match &self.link {
            Some(link) => link.ifindex().map_err(|errno| failed("link", errno))?,
            None => None,
        };
        if index.is_none() {
            self.link = None;
        }
        Ok(index.is_some())
    }

    /// Replaces the table: packets are matched against the old or the new table.
    /// Returns the hits of the old one.
    pub(super) fn update(&mut self, table: &Table) -> Result<Vec<Hits>, Failure> {
        self.capacity.check(table).map_err(Failure::new)?;
        let next = self.capacity.counters() - self.first;
        // The kernel returns when no program uses the old table any more.
        fill(&self.tables, &self.template, self.capacity, table, next)?;
        let hits = self.hits()?;
        let zeros = vec![0; self.counters.value_len()];
        for index in self.first..self.first + self.capacity.counters() {
            let cleared = self.counters.update(&index.to_ne_bytes(), &zeros);
            cleared.map_err(|errno| failed("map counters", errno))?;
        }
        self.first = next;
        Ok(hits)
    }

    /// Hits by rule.
    pub(super) fn hits(&self) -> Result<Vec<Hits>, Failure> {
        let mut value = vec![0; self.counters.value_len()];
        (self.first..self.first + self.capacity.counters())
            .map(|index| {
                let read = self.counters.lookup(&index.to_ne_bytes(), &mut value);
                read.map_err(|errno| failed("map counters", errno))?;
                Ok(Hits::sum(&value))
            })
            .collect()
    }
}

fn request<'d>(def: &'d MapDef, inner: Option<&'d Map>) -> MapRequest<'d> {
    MapRequest {
        map_type: def.params.map_type,
        name: &def.kernel_name,
        key_size: def.params.key_size,
        value_size: def.params.value_size,
        max_entries: def.params.max_entries,
        flags: def.params.flags.0,
        inner,
        ..MapRequest::default()
    }
}

fn create(def: &MapDef) -> Result<Map, sys::Errno> {
    let inner = def.inner.as_deref();
    let inner = inner.map(|inner| Map::create(&request(inner, None)));
    let map = Map::create(&request(def, inner.transpose()?.as_ref()))?;
    if let Some(image) = def.initial_value() {
        map.update(&[0; 4], &image.to_vec())?;
    }
    if def.is_frozen() {
        map.freeze()?;
    }
    Ok(map)
}

/// Puts a table into the map of tables.
fn fill(
    tables: &Map,
    template: &MapDef,
    capacity: Capacity,
    table: &Table,
    counters: u32,
) -> Result<(), Failure> {
    let fault = |errno| failed("map tables", errno);
    let inner = Map::create(&request(template, None)).map_err(fault)?;
    let mut bytes = table.to_bytes();
    Table::set_counters_of(&mut bytes, counters);
    bytes.resize(capacity.table, 0);
    inner.update(&[0; 4], &bytes).map_err(fault)?;
    let descriptor = inner.descriptor().to_ne_bytes();
    tables.update(&[0; 4], &descriptor).map_err(fault)
}

/// Gives a program to the kernel.
fn give(
    program: &Program,
    maps: &[Map],
    types: Option<&BtfObject>,
) -> Result<LoadedProgram, Failure> {
    let license = CString::new(program.license()).map_err(Failure::new)?;
    let fd_array: Vec<i32> = maps.iter().map(|map| map.descriptor() as i32).collect();
    let func_info: Vec<[u32; 2]> = program
        .func_info()
        .iter()
        .map(|it| [it.insn, it.type_id.0])
        .collect();
    let line_info: Vec<[u32; 4]> = program
        .line_info()
        .iter()
        .map(|it| [it.insn, it.file.0, it.text.0, it.line << 10 | it.column])
        .collect();
    let request = ProgLoad {
        license: &license,
        name: program.name(),
        // The attach type of a link at tc is that of its program.
        expected_attach_type: program.expected_attach_type(),
        flags: program.flags().0,
        kernel_version: program.kernel_version(),
        btf: types,
        func_info: &func_info,
        line_info: &line_info,
        fd_array: &fd_array,
        log_level: LogLevel(4),
        log_size: 1 << 20,
        ..ProgLoad::new(program.kind().number(), program.insns())
    };
    let mut log = Vec::new();
    let answer = request.load_into(&mut log);
    answer.result.map_err(|errno| {
        let log = String::from_utf8_lossy(&log);
        let last = log.trim_end().lines().rev().nth(1).unwrap_or_default();
        failed(&format!("program {}", program.name()), errno).excerpt(last)
    })
}

#[cfg(test)]
mod tests {
    use gateway::{Compiled, RuleSet};

    use super::*;
    use command::kernel_input::running_or_assumed;

    /// An index without an interface is told from a lack of privilege.
    #[test]
    #[ignore = "asks the running kernel"]
    fn an_interface_that_is_gone_is_no_error_of_privilege() {
        let compiled = Compiled::new(&RuleSet::default()).expect("few rules");
        let table = compiled.table();
        let gone = Interface {
            name: "gone".to_owned(),
            index: i32::MAX as u32,
        };
        for hook in [Hook::Xdp, Hook::Tc] {
            let capacity = Capacity::of(table);
            let plane = DataPlane::load(table, hook, capacity, &running_or_assumed());
            let plane = plane.map_err(|failure| failure.what().to_owned());
            let Some(mut plane) = oracle::found("attaching to an interface", plane) else {
                return;
            };
            assert!(
                matches!(plane.attach(&gone), Ok(false)),
                "{}",
                hook.program()
            );
        }
    }
}
