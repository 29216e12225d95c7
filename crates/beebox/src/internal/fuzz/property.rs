//! What must hold for every run.

use std::fmt;
use std::sync::Arc;

use crate::filter::Filter;
use crate::internal::expect::Expectation;

/// A property that every run has to have.
#[derive(Clone)]
pub struct Property(pub(super) Holds);

#[derive(Clone)]
pub(super) enum Holds {
    /// A verdict never, on packets that a filter takes.
    Never {
        verdict: String,
        condition: Option<Condition>,
    },
    /// No other verdict, on packets that a filter takes.
    Always {
        verdict: String,
        condition: Option<Condition>,
    },
    /// An expectation, as files have them.
    Expect(Expectation),
    /// A second run, on what the first one left, has the same verdict and changes nothing.
    Idempotent,
    /// A check of the caller.
    Check(String, Arc<Checker>),
    /// No run is stopped.
    Ends,
    /// Another object does the same.
    Same,
}

/// A check of a run; an error says what is wrong.
pub(super) type Checker = dyn Fn(&FuzzRun<'_>) -> Result<(), String> + Send + Sync;

/// A filter in the language of captures.
#[derive(Clone)]
pub(super) struct Condition {
    pub(super) text: String,
    pub(super) filter: Arc<Filter>,
}

/// A run, for checks of the caller.
#[derive(Debug)]
#[non_exhaustive]
pub struct FuzzRun<'r> {
    /// The packet that it got; empty for programs without one.
    pub packet: &'r [u8],
    /// The context that it was given, if it was.
    pub context: Option<&'r [u8]>,
    /// The clock, in nanoseconds.
    pub time: u64,
    /// The low 32 bits of `r0`.
    pub retval: u32,
    /// Name of the verdict, as `XDP_DROP`.
    pub verdict: &'r str,
    /// The packet that it left.
    pub data_out: &'r [u8],
    pub(super) loaded: &'r crate::internal::run::LoadedObject,
}

impl FuzzRun<'_> {
    /// The value of a key in a map, of a per-CPU map those of all CPUs; `None` if there is none.
    pub fn element(&self, map: &str, key: &[u8]) -> Option<Vec<u8>> {
        let map = self.loaded.map(map)?;
        let mut value = vec![0; map.value_len()];
        map.lookup(key, &mut value, 0).ok()?;
        Some(value)
    }

    /// Keys and values of a map; none of one that is not there.
    pub fn elements(&self, map: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut maps = self.loaded.maps();
        let map = maps.find(|known| known.def.name == map);
        map.and_then(|map| map.entries().ok()).unwrap_or_default()
    }
}

impl Property {
    /// No run has this verdict (as `XDP_PASS`), on the packets that a filter takes (as
    /// `src net 192.0.2.0/24`, what tcpdump takes), or on all.
    ///
    /// # Errors
    /// If libpcap, which compiles filters, is not installed or does not take it.
    pub fn never(verdict: &str, filter: Option<&str>) -> Result<Property, crate::FilterError> {
        let (verdict, condition) = (verdict.to_owned(), condition(filter)?);
        Ok(Property(Holds::Never { verdict, condition }))
    }

    /// Every run has this verdict, on the packets that a filter takes, or on all.
    ///
    /// # Errors
    /// As [`Property::never`].
    pub fn always(verdict: &str, filter: Option<&str>) -> Result<Property, crate::FilterError> {
        let (verdict, condition) = (verdict.to_owned(), condition(filter)?);
        Ok(Property(Holds::Always { verdict, condition }))
    }

    /// An expectation, as [files](crate::expect) have them, holds after every run: `instructions <= 120`,
    /// `checksums valid`, `global refused = 0`, `map seen 1 absent`.
    ///
    /// # Errors
    /// For a text that is no expectation, or one about the order of texts and records.
    pub fn expect(text: &str) -> Result<Property, String> {
        Expectation::parse(text).map(|expectation| Property(Holds::Expect(expectation)))
    }

    /// A second run, on what the first one left, has the same verdict and leaves the packet as it is.
    pub fn idempotent() -> Property {
        Property(Holds::Idempotent)
    }

    /// A check of the caller holds after every run: a model of the program, an invariant of maps.
    pub fn check(
        name: &str,
        check: impl Fn(&FuzzRun<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Property {
        Property(Holds::Check(name.to_owned(), Arc::new(check)))
    }
}

fn condition(filter: Option<&str>) -> Result<Option<Condition>, crate::FilterError> {
    let Some(text) = filter else {
        return Ok(None);
    };
    let expression = crate::Expression::new(text)?;
    let program = expression.program(crate::captures::LinkType::ETHERNET, 262_144)?;
    Ok(Some(Condition {
        text: text.to_owned(),
        filter: Arc::new(Filter::new(&program)?),
    }))
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |condition: &Option<Condition>| match condition {
            Some(condition) => format!(" if {}", condition.text),
            None => String::new(),
        };
        match &self.0 {
            Holds::Never { verdict, condition } => write!(f, "never {verdict}{}", on(condition)),
            Holds::Always { verdict, condition } => write!(f, "always {verdict}{}", on(condition)),
            Holds::Expect(expectation) => f.write_str(expectation.text()),
            Holds::Idempotent => f.write_str("idempotent"),
            Holds::Check(name, _) => f.write_str(name),
            Holds::Ends => f.write_str("every run ends"),
            Holds::Same => f.write_str("same as the other object"),
        }
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Property({self})")
    }
}
