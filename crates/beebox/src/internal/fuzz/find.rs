//! A find as data, as a capture, and as a test.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use capture::LinkType;
use object::Object;
use spec::helpers::HelperId;
use spec::programs::ProgramType;

use super::executor::{Expects, Violation};
use super::hex;
use super::input::{FuzzInput, InputStep};
use crate::internal::expect::{ExpectCheck, ExpectFile};
use crate::internal::maps_json::{RecordTypes, show_part};
use crate::internal::run::{LoadedObject, ObjectMap};

/// An input on which a property does not hold.
#[derive(Clone, Debug)]
pub struct FuzzFind {
    /// The property, as text.
    pub property: String,
    /// The input, made small.
    pub input: FuzzInput,
    /// Place of the run that is wrong.
    pub step: usize,
    /// What is wrong, in one line.
    pub what: String,
    /// Runs before it was found, about.
    pub runs: u64,
    /// Time until it was found.
    pub time: Duration,
    /// A test of it: the file, which `beebox test` takes.
    pub test: String,
    /// False if the test passes, or there is no statement that says what is wrong.
    pub test_fails: bool,
    expects: Expects,
}

impl FuzzFind {
    pub(super) fn new(
        property: String,
        (input, violation): (FuzzInput, Violation),
        (runs, time): (u64, Duration),
    ) -> FuzzFind {
        FuzzFind {
            property,
            input,
            step: violation.step,
            what: violation.what,
            runs,
            time,
            test: String::new(),
            test_fails: false,
            expects: violation.expects,
        }
    }

    /// The packet of the run that is wrong.
    pub fn packet(&self) -> &[u8] {
        &self.input.steps[self.step].packet
    }

    /// A name for files.
    #[doc(hidden)]
    pub fn slug(&self) -> String {
        let mut slug = String::new();
        for each in self.property.to_lowercase().chars() {
            match each.is_ascii_alphanumeric() {
                true => slug.push(each),
                false if slug.ends_with('-') || slug.is_empty() => {}
                false => slug.push('-'),
            }
        }
        slug.truncate(48);
        slug.trim_end_matches('-').to_owned()
    }

    /// Writes the test, which fails as long as the property does not hold: a file with the object, what the
    /// maps hold, and the runs. `loaded` is the object as it was before the runs, which run on it once.
    #[doc(hidden)]
    pub fn write_test(
        &mut self,
        object: &Object<'_>,
        object_path: &Path,
        program: &str,
        loaded: &LoadedObject,
    ) {
        let statements = self.statements(object, program, loaded);
        let name = format!("find of {}", self.slug());
        let fails = match ExpectFile::parse(&name, &statements, Path::new("")) {
            Err(_) => false,
            Ok(file) => {
                let types = RecordTypes::new(object);
                let check = ExpectCheck {
                    file: &file,
                    object,
                    loaded,
                    types: &types,
                    cpu: 0,
                    set_up: &|_| {},
                };
                check.run().is_ok_and(|report| !report.is_met())
            }
        };
        let mut text = format!("# Found by beebox fuzz: {}\n", self.property);
        let _ = writeln!(text, "# {}\n", self.what);
        let _ = writeln!(text, "object {}\n", object_path.display());
        let _ = writeln!(text, "test {}", self.property);
        text.push_str(&statements);
        (self.test, self.test_fails) = (text, fails);
    }

    fn statements(&self, object: &Object<'_>, program: &str, loaded: &LoadedObject) -> String {
        let mut text = String::new();
        for map in loaded.maps().filter(|map| has_elements(map)) {
            for (key, value) in map.entries().unwrap_or_default() {
                let is_array = map.map.kind().is_array();
                if !is_array || value.iter().any(|byte| *byte != 0) {
                    text.push_str(&set(map, object, &key, &value));
                }
            }
        }
        for element in &self.input.elements {
            if let Some(map) = loaded.maps().find(|map| map.def.name == element.map) {
                text.push_str(&set(map, object, &element.key, &element.value));
            }
        }
        if loaded.calls(HelperId::returns_random) {
            let _ = writeln!(text, "seed {}", self.input.seed);
        }
        let has_time = loaded.calls(HelperId::returns_time);
        let kind = loaded.program_place(program);
        let kind = kind.map(|place| loaded.program_kind(place));
        for (place, step) in self.input.steps.iter().enumerate().take(self.step + 1) {
            if has_time {
                let _ = writeln!(text, "time {}ns", step.time);
            }
            let packet = match step.packet.is_empty() {
                true => "none".to_owned(),
                false => hex(&step.packet),
            };
            let context = kind.and_then(|kind| step.context_of(kind));
            let context = context.map_or(String::new(), |it| format!(" ctx={}", hex(it)));
            let _ = writeln!(text, "run {program} {packet}{context}");
            if place < self.step {
                continue;
            }
            if let Expects::Again(packet, _) = &self.expects {
                let _ = writeln!(text, "run {program} {}{context}", hex(packet));
            }
        }
        match &self.expects {
            Expects::Lines(lines) | Expects::Again(_, lines) => {
                for line in lines {
                    let _ = writeln!(text, "{line}");
                }
            }
            Expects::Element { map, key, value } => {
                if let Some(map) = loaded.maps().find(|known| known.def.name == *map) {
                    text.push_str(&element(map, object, key, value.as_deref()));
                }
            }
            Expects::Nothing => {}
        }
        text
    }
}

/// True for maps whose elements files can set.
fn has_elements(map: &ObjectMap) -> bool {
    let kind = map.map.kind();
    map.def.initial_value().is_none()
        && map.def.params.key_size > 0
        && !kind.has_records()
        && !kind.is_storage()
        && !kind.is_map_of_maps()
        && map.map.operations().program(0).is_none()
        && !map.has_socket_values()
}

/// A value as files have it: of per-CPU maps that of the first CPU.
fn one_value<'v>(map: &ObjectMap, value: &'v [u8]) -> &'v [u8] {
    &value[..value.len().min(map.def.params.value_size as usize)]
}

fn shown(map: &ObjectMap, object: &Object<'_>, bytes: &[u8], is_key: bool) -> String {
    let shown = show_part(map, object.btf(), bytes, is_key);
    serde_json::to_string(&shown).unwrap_or_default()
}

fn set(map: &ObjectMap, object: &Object<'_>, key: &[u8], value: &[u8]) -> String {
    let key = shown(map, object, key, true);
    let value = shown(map, object, one_value(map, value), false);
    format!("set {} {key} = {value}\n", map.def.name)
}

fn element(map: &ObjectMap, object: &Object<'_>, key: &[u8], value: Option<&[u8]>) -> String {
    let key = shown(map, object, key, true);
    let name = &map.def.name;
    match value {
        None => format!("map {name} {key} absent\n"),
        Some(value) => {
            let value = shown(map, object, one_value(map, value), false);
            format!("map {name} {key} = {value}\n")
        }
    }
}

/// What captures of a program's packets begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureForm {
    /// Ethernet.
    Link,
    /// The network header, which netfilter programs see first.
    Network,
}

/// A capture (pcap, nanoseconds) of the packets of an input, at their times, in a form.
pub fn capture_as(input: &FuzzInput, form: CaptureForm) -> Vec<u8> {
    let seen = |step: &'_ InputStep| -> Option<(u8, usize)> {
        let [hook, family, ..] = step.context_of(ProgramType::Netfilter)? else {
            return None;
        };
        // At the hook of sent packets a test run shows the whole frame as the packet.
        Some((*family, if *hook == LOCAL_OUT { 0 } else { LINK_HEADER }))
    };
    if form == CaptureForm::Link {
        let packets = input.steps.iter().map(|step| (step, &step.packet[..]));
        return capture(packets, LinkType::ETHERNET);
    }
    let families: BTreeSet<u8> = input
        .steps
        .iter()
        .filter_map(seen)
        .map(|(family, _)| family)
        .collect();
    let link_type = match families.iter().collect::<Vec<_>>()[..] {
        [2] => LinkType::IPV4,
        [10] => LinkType::IPV6,
        _ => LinkType::RAW,
    };
    let packets = input.steps.iter().map(|step| {
        let start = seen(step).map_or(0, |(_, start)| start);
        (step, step.packet.get(start..).unwrap_or_default())
    });
    capture(packets, link_type)
}

/// `NF_INET_LOCAL_OUT`.
const LOCAL_OUT: u8 = 3;
/// Bytes of the header of Ethernet.
const LINK_HEADER: usize = 14;

fn capture<'s>(
    packets: impl Iterator<Item = (&'s InputStep, &'s [u8])>,
    link_type: LinkType,
) -> Vec<u8> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    const SNAPLEN: u32 = 262_144;
    let mut file = Vec::new();
    file.extend_from_slice(&NANOSECONDS.to_le_bytes());
    file.extend_from_slice(&2_u16.to_le_bytes());
    file.extend_from_slice(&4_u16.to_le_bytes());
    file.extend_from_slice(&[0; 8]);
    file.extend_from_slice(&SNAPLEN.to_le_bytes());
    file.extend_from_slice(&link_type.0.to_le_bytes());
    for (step, packet) in packets {
        let (seconds, nanoseconds) = (step.time / 1_000_000_000, step.time % 1_000_000_000);
        let len = packet.len() as u32;
        for number in [seconds as u32, nanoseconds as u32, len, len] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}
