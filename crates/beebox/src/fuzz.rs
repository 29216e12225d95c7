//! Fuzzing: finds packets, contexts, map contents and times on which a property of a program does not hold.
//!
//! A [`Fuzzer`] makes and changes packets by their headers, runs them in native code with counters, and goes
//! on with those that execute something new. Maps are set back after each input. A find is made small, and has
//! a test that `beebox test` runs.
//!
//! ```
//! use beebox::fuzz::{Fuzzer, Property};
//! use beebox::Object;
//!
//! fn main() -> Result<(), beebox::Error> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     // A model of the program: segments that open a connection are dropped, as no port is open.
//!     let model = Property::check("connections are dropped", |run| {
//!         let is_tcp = run.packet.get(12..14) == Some(&[8, 0]) && run.packet.get(23) == Some(&6);
//!         let is_plain = run.packet.get(14) == Some(&0x45) && run.packet.get(20..22) == Some(&[0, 0]);
//!         let opens = run.packet.len() >= 54 && run.packet[47] & 0x12 == 2;
//!         match is_tcp && is_plain && opens && run.verdict != "XDP_DROP" {
//!             true => Err(format!("{} for a segment that opens a connection", run.verdict)),
//!             false => Ok(()),
//!         }
//!     });
//!     let report = Fuzzer::new(&object, "firewall").property(model).runs(20_000).run()?;
//!     assert!(report.finds.is_empty(), "{:?}", report.finds);
//!     assert!(report.runs >= 20_000);
//!     Ok(())
//! }
//! ```

use std::path::Path;
use std::time::Duration;

pub use crate::internal::fuzz::{FuzzFind, FuzzInput, FuzzReport, FuzzRun, Property};

use crate::failure::{Error, RunCause};
use crate::instance::{Loader, Object};
use crate::internal::fuzz::{Campaign, FuzzPlan, read_corpus};
use crate::internal::maps_json::MapsJson;
use crate::internal::run::LoadedObject;

/// What is fuzzed, and for how long. Setters take it and return it.
pub struct Fuzzer {
    object: Object,
    against: Option<Object>,
    loader: Option<Loader>,
    maps: Vec<MapsJson>,
    jobs: usize,
    plan: FuzzPlan,
    skipped: Vec<String>,
}

impl Fuzzer {
    /// Fuzzing of a program of an object: 60 s, in one thread, seed 0, up to 8 packets an input.
    pub fn new(object: &Object, program: &str) -> Fuzzer {
        Fuzzer {
            object: object.clone(),
            against: None,
            loader: None,
            maps: Vec::new(),
            jobs: 1,
            skipped: Vec::new(),
            plan: FuzzPlan {
                program: program.to_owned(),
                properties: Vec::new(),
                seeds: Vec::new(),
                seed: 0,
                runs: None,
                time: Some(Duration::from_secs(60)),
                packets: 8,
                vary: Vec::new(),
                contexts: false,
            },
        }
    }

    /// Sets how objects are loaded [default: for Linux 6.18, as [`Loader::default`] does].
    #[must_use]
    pub fn loader(mut self, loader: Loader) -> Fuzzer {
        self.loader = Some(loader);
        self
    }

    /// Fills maps, which are so in front of each input.
    #[must_use]
    pub fn maps(mut self, maps: MapsJson) -> Fuzzer {
        self.maps.push(maps);
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn property(mut self, property: Property) -> Fuzzer {
        self.plan.properties.push(property);
        self
    }

    /// Has another object, whose program of the same name has to do the same.
    #[must_use]
    pub fn against(mut self, object: &Object) -> Fuzzer {
        self.against = Some(object.clone());
        self
    }

    /// Adds packets to begin with.
    #[must_use]
    pub fn packets(mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> Fuzzer {
        let inputs = packets.into_iter().map(FuzzInput::from_packet);
        self.plan.seeds.extend(inputs);
        self
    }

    /// Adds inputs to begin with.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = FuzzInput>) -> Fuzzer {
        self.plan.seeds.extend(inputs);
        self
    }

    /// Adds the packets of a capture, or the inputs and captures of a directory. Files of a directory that
    /// cannot be read are left out, and named in [`FuzzReport::skipped`].
    ///
    /// # Errors
    /// If a file, or the directory, cannot be read.
    pub fn corpus(mut self, path: impl AsRef<Path>) -> Result<Fuzzer, Error> {
        let corpus = read_corpus(path.as_ref());
        let corpus = corpus.map_err(|error| RunCause::Fuzz(error.to_string()))?;
        self.plan.seeds.extend(corpus.inputs);
        let skipped = corpus.skipped.iter().map(ToString::to_string);
        self.skipped.extend(skipped);
        Ok(self)
    }

    /// Has the contents of a map be inputs.
    #[must_use]
    pub fn vary(mut self, map: &str) -> Fuzzer {
        self.plan.vary.push(map.to_owned());
        self
    }

    /// Has fields of contexts be inputs, beside packets.
    #[must_use]
    pub fn contexts(mut self, on: bool) -> Fuzzer {
        self.plan.contexts = on;
        self
    }

    /// Sets the most packets of an input.
    #[must_use]
    pub fn most_packets(mut self, most: usize) -> Fuzzer {
        self.plan.packets = most;
        self
    }

    /// Sets the seed: the same one, with as many jobs, makes the same runs.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Fuzzer {
        self.plan.seed = seed;
        self
    }

    /// Sets about how many runs are made, in place of a time.
    #[must_use]
    pub fn runs(mut self, runs: u64) -> Fuzzer {
        (self.plan.runs, self.plan.time) = (Some(runs), None);
        self
    }

    /// Sets the most time.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Fuzzer {
        self.plan.time = Some(time);
        self
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Fuzzer {
        self.jobs = jobs.max(1);
        self
    }

    /// Looks for finds, until each property has one, or runs or time are over.
    ///
    /// # Errors
    /// If an object cannot be loaded, or the program cannot have a property.
    pub fn run(self) -> Result<FuzzReport, Error> {
        let loader = match self.loader {
            Some(loader) => loader,
            None => default_loader()?,
        };
        let opened = loader.opened(&self.object)?;
        let other = self.against.as_ref();
        let other = other.map(|object| loader.opened(object)).transpose()?;
        let load = |object: &Object, opened: &::object::Object<'_>| {
            let loaded = loader.load_for_fuzzing(object, opened)?;
            for maps in &self.maps {
                maps.fill(&loaded, opened)?;
            }
            Ok::<LoadedObject, Error>(loaded)
        };
        let mut targets = Vec::new();
        for _ in 0..self.jobs {
            let against = match (&self.against, &other) {
                (Some(object), Some(opened)) => Some(load(object, opened)?),
                _ => None,
            };
            targets.push((load(&self.object, &opened)?, against));
        }
        let unfit = |what: String| Error::from(RunCause::Fuzz(what));
        let program = self.plan.program.clone();
        let mut campaign = Campaign::new(&opened, self.plan, targets).map_err(unfit)?;
        let mut report = campaign.run(&mut |_| {}).map_err(unfit)?;
        report.skipped = self.skipped;
        for find in &mut report.finds {
            let fresh = load(&self.object, &opened)?;
            let path = Path::new(self.object.place());
            find.write_test(&opened, path, &program, &fresh);
        }
        Ok(report)
    }
}

#[cfg(feature = "kernel-data")]
fn default_loader() -> Result<Loader, Error> {
    Ok(Loader::default())
}

#[cfg(not(feature = "kernel-data"))]
fn default_loader() -> Result<Loader, Error> {
    let what = "there is no built-in kernel (feature kernel-data): Fuzzer::loader";
    Err(RunCause::Fuzz(what.to_owned()).into())
}
