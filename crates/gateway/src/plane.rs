//! The data plane in Beebox: the object `bpf/gateway.bpf.o` with a table.

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use beebox::Kernel;
use beebox::internal::object::Object;
use beebox::internal::run::{
    DataError, InnerMap, LoadError, LoadOptions, LoadedObject, RunGuard, RunnableProgram, SplitMix,
};

use crate::table::Table;

/// The object: programs `gateway_xdp` and `gateway_tc`.
pub const OBJECT: &[u8] = include_bytes!("../bpf/gateway.bpf.o");

/// Hook of the data plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// XDP.
    #[default]
    Xdp,
    /// tc, with or without an Ethernet device.
    Tc,
}

impl Hook {
    /// The program's name in the object.
    pub fn program(self) -> &'static str {
        match self {
            Hook::Xdp => "gateway_xdp",
            Hook::Tc => "gateway_tc",
        }
    }
}

/// Packets and bytes that a rule decided about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Reason why the data plane is not loaded or not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlaneError {
    /// The object cannot be opened or set up.
    Object(Box<beebox::internal::object::Error>),
    /// It is not loaded.
    LoadError(LoadError),
    /// A map cannot be read or written.
    Data(DataError),
    /// The new table is larger than the loaded programs address: bytes of both.
    TooLarge {
        /// Bytes of the table.
        needed: usize,
        /// Bytes that the programs address.
        room: usize,
    },
    /// There are more rules than counters: rules of the set, and most.
    TooManyRules {
        /// Rules of the set.
        rules: usize,
        /// Rules that there are counters for.
        most: usize,
    },
}

impl fmt::Display for PlaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaneError::Object(error) => write!(f, "the gateway's object: {error}"),
            PlaneError::LoadError(error) => write!(f, "the gateway's object: {error}"),
            PlaneError::Data(error) => write!(f, "the gateway's object: {error}"),
            PlaneError::TooLarge { needed, room } => write!(
                f,
                "the table has {needed} bytes, the loaded programs address {room}; load them anew"
            ),
            PlaneError::TooManyRules { rules, most } => write!(
                f,
                "the set has {rules} rules, the loaded programs count hits of {most}; load them anew"
            ),
        }
    }
}

impl Error for PlaneError {}

impl From<DataError> for PlaneError {
    fn from(error: DataError) -> PlaneError {
        PlaneError::Data(error)
    }
}

impl From<beebox::internal::object::Error> for PlaneError {
    fn from(error: beebox::internal::object::Error) -> PlaneError {
        PlaneError::Object(Box::new(error))
    }
}

/// Room of a data plane: what later sets may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of a table, a power of two.
    pub table: usize,
    /// Rules.
    pub rules: usize,
}

impl Capacity {
    /// The capacity that one table needs.
    pub fn of(table: &Table) -> Capacity {
        Capacity {
            table: table.size(),
            rules: table.rules(),
        }
    }

    /// Counters of one table: of its rules, the default, other frames and malformed packets.
    pub fn counters(&self) -> u32 {
        self.rules as u32 + 3
    }

    /// Errors for a table that does not fit.
    pub fn check(&self, table: &Table) -> Result<(), PlaneError> {
        if table.size() > self.table {
            return Err(PlaneError::TooLarge {
                needed: table.size(),
                room: self.table,
            });
        }
        if table.rules() > self.rules {
            return Err(PlaneError::TooManyRules {
                rules: table.rules(),
                most: self.rules,
            });
        }
        Ok(())
    }
}

/// Opens an object of the data plane for tables of a capacity: the size of inner maps, the
/// number of counters, and the constants that programs are verified with.
pub fn set_up<'o>(
    file: &'o [u8],
    capacity: Capacity,
    reports_rules: bool,
) -> Result<Object<'o>, PlaneError> {
    let mut object = Object::open(file)?;
    object.write_number("last_word", capacity.table as i128 / 8 - 1)?;
    object.write_number("reports_rules", reports_rules.into())?;
    let maps = object.maps_mut();
    if let Some(tables) = maps.named("tables").and_then(|id| maps.get_mut(id))
        && let Some(inner) = tables.inner_mut()
    {
        inner.value_size = capacity.table as u32;
    }
    if let Some(counters) = maps.named("counters").and_then(|id| maps.get_mut(id)) {
        counters.set_max_entries(2 * capacity.counters());
    }
    Ok(object)
}

/// The loaded data plane. Programs of several threads may run at the same time, and while the
/// table is replaced.
#[derive(Debug)]
pub struct Plane {
    loaded: LoadedObject,
    capacity: Capacity,
    reports_rules: bool,
    /// Index of the first counter of the current table. Updates hold its lock.
    counters: Mutex<u32>,
}

impl Plane {
    /// Loads the programs of one hook with a table.
    pub fn load(
        table: &Table,
        hook: Hook,
        capacity: Capacity,
        kernel: &Kernel,
        reports_rules: bool,
        options: &LoadOptions,
    ) -> Result<Plane, PlaneError> {
        let mut object = set_up(OBJECT, capacity, reports_rules)?;
        object.set_autoload(|program| program.name == hook.program());
        Plane::of_object(&object, table, capacity, kernel, reports_rules, options)
    }

    /// Loads an object that [`set_up`] opened, with a table.
    pub fn of_object(
        object: &Object<'_>,
        table: &Table,
        capacity: Capacity,
        kernel: &Kernel,
        reports_rules: bool,
        options: &LoadOptions,
    ) -> Result<Plane, PlaneError> {
        capacity.check(table)?;
        let loaded = LoadedObject::load(object, kernel, options).map_err(PlaneError::LoadError)?;
        let plane = Plane {
            loaded,
            capacity,
            reports_rules,
            counters: Mutex::new(0),
        };
        plane.put(table, 0)?;
        Ok(plane)
    }

    /// The loaded object.
    pub fn object(&self) -> &LoadedObject {
        &self.loaded
    }

    /// A program, to run on a CPU.
    pub fn program<'p>(
        &'p self,
        hook: Hook,
        cpu: u32,
        random: &'p mut SplitMix,
    ) -> Option<RunnableProgram<'p>> {
        self.loaded.program_on(hook.program(), cpu, random)
    }

    /// Replaces the table. Each packet is matched against the old or the new table: a run looks
    /// the table up once. Returns the hits of the old table's rules, from which none is missing.
    /// The counters of the new one begin at 0. The calling thread must have no [`RunGuard`].
    pub fn update(&self, table: &Table) -> Result<Vec<Hits>, PlaneError> {
        self.capacity.check(table)?;
        let mut current = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (*current, self.capacity.counters() - *current);
        self.put(table, new)?;
        *current = new;
        // Runs that began with the old table count in its half until they are over.
        RunGuard::synchronize();
        let hits = self.hits_from(old)?;
        let counters = self.map("counters")?;
        let zeros = vec![0; counters.value_len()];
        for index in old..old + self.capacity.counters() {
            let cleared = counters.update(&index.to_le_bytes(), &zeros, 0);
            cleared.map_err(|errno| failed("counters", errno))?;
        }
        Ok(hits)
    }

    fn put(&self, table: &Table, counters: u32) -> Result<(), PlaneError> {
        let inner: InnerMap = self.loaded.create_inner_map("tables")?;
        let mut bytes = table.to_bytes();
        Table::set_counters_of(&mut bytes, counters);
        bytes.resize(self.capacity.table, 0);
        let filled = inner.map().update(&[0; 4], &bytes, 0);
        filled.map_err(|errno| failed("tables", errno))?;
        self.loaded.set_inner_map("tables", &[0; 4], &inner)?;
        Ok(())
    }

    /// Hits of the default, of each rule, of other frames and of malformed packets; behind them
    /// zeros up to the capacity.
    pub fn hits(&self) -> Result<Vec<Hits>, PlaneError> {
        let current = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        self.hits_from(*current)
    }

    fn hits_from(&self, first: u32) -> Result<Vec<Hits>, PlaneError> {
        let counters = self.map("counters")?;
        let mut value = vec![0; counters.value_len()];
        let mut hits = Vec::new();
        for index in first..first + self.capacity.counters() {
            let read = counters.lookup(&index.to_le_bytes(), &mut value, 0);
            read.map_err(|errno| failed("counters", errno))?;
            hits.push(Hits::sum(&value));
        }
        Ok(hits)
    }

    /// The rule of the last packet of a CPU, if the plane was loaded to report rules.
    pub fn last_rule(&self, cpu: u32) -> Result<Option<u32>, PlaneError> {
        if !self.reports_rules {
            return Ok(None);
        }
        let found = self.map("found")?;
        let mut value = vec![0; found.value_len()];
        let read = found.lookup(&[0; 4], &mut value, 0);
        read.map_err(|errno| failed("found", errno))?;
        let own = value.chunks_exact(8).nth(cpu as usize);
        Ok(own.map(|own| u32::from_le_bytes([own[0], own[1], own[2], own[3]])))
    }

    fn map(&self, name: &'static str) -> Result<&beebox::internal::run::Map, PlaneError> {
        let map = self.loaded.map(name);
        map.ok_or_else(|| failed(name, beebox::internal::run::Errno::ENOENT))
    }
}

fn failed(name: &str, errno: beebox::internal::run::Errno) -> PlaneError {
    PlaneError::Data(DataError::Map {
        name: name.to_owned(),
        errno,
    })
}

impl Hits {
    /// The sum of the counters of all CPUs, 16 bytes each.
    pub fn sum(value: &[u8]) -> Hits {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        value
            .chunks_exact(16)
            .fold(Hits::default(), |sum, own| Hits {
                packets: sum.packets + number(&own[..8]),
                bytes: sum.bytes + number(&own[8..]),
            })
    }
}
