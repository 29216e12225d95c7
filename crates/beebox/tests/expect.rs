//! Expectation files and maps as JSON, as a test of an object uses them.

use std::path::Path;

use beebox::MapsJson;
use beebox::expect::{CheckReport, ExpectFile};
use beebox::internal::expect::ExpectProblem;
use beebox::internal::maps_json::MapsJsonFault;
use beebox::{ErrorKind, Instance, Loader, Object};

fn firewall() -> (Object, Instance) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/packets/firewall.bpf.o"
    );
    let object = Object::open(path).unwrap();
    let instance = Loader::default().load(&object).unwrap();
    (object, instance)
}

fn check(text: &str) -> Result<CheckReport, beebox::Error> {
    let (object, instance) = firewall();
    let file = ExpectFile::parse("a", text, Path::new(""))?;
    instance.check(&object, &file)
}

#[oracle::test]
fn a_file_of_the_examples_is_met() {
    let (object, instance) = firewall();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packets");
    let file = ExpectFile::open(Path::new(examples).join("firewall.expect")).unwrap();
    let report = instance.check(&object, &file).unwrap();
    assert!(report.is_met(), "{report}");
    assert_eq!((report.runs, report.expectations.len()), (3, 9));
}

#[oracle::test]
fn differences_and_members_that_are_left_out_are_data() {
    let text = "set blocked {\"prefix_length\": 24, \"address\": [192, 0, 2, 0]} = {\"hits\": 3}\n\
                run firewall zero:60\n\
                verdict XDP_DROP\n\
                data[58] 0001\n";
    let report = check(text).unwrap();
    let [zeroed] = &report.zeroed[..] else {
        panic!("{:?}", report.zeroed);
    };
    assert_eq!((zeroed.line, &*zeroed.map), (Some(1), "blocked"));
    assert_eq!(zeroed.members, ["name"]);
    let what = |at: usize| {
        let difference = report.expectations[at].difference.as_ref();
        difference.map(|it| it.what.as_str())
    };
    assert_eq!(what(0), Some("expected XDP_DROP, got XDP_PASS (2)"));
    assert_eq!(what(1), Some("byte 59: expected 01, got 00"));
    let run = report.expectations[0].run.as_ref();
    assert_eq!(run, Some(&(1, "firewall".to_owned())));
}

#[oracle::test]
fn errors_name_the_line() {
    let parsed = ExpectFile::try_parse("a", "run firewall zero:60\nverdct 3", Path::new(""));
    let error = parsed.err().unwrap();
    assert!(matches!(error.problem, ExpectProblem::Statement { .. }));
    assert_eq!(error.line, Some(2));
    for (text, kind, message) in [
        (
            "run firewall zero:60\nmap ports entries 1",
            ErrorKind::Format,
            "a:2: no program uses a map \"ports\"",
        ),
        (
            "retval 3\nrun other zero:60",
            ErrorKind::Format,
            "a:2: program other",
        ),
        ("retval 3\nrun firewall zero:3", ErrorKind::Input, "a:2: "),
        (
            "retval 3\ncapture firewall none",
            ErrorKind::File,
            "a:2: none: ",
        ),
    ] {
        let error = check(text).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[oracle::test]
fn maps_are_written_and_filled() {
    let (object, instance) = firewall();
    let given = br#"{"open_ports": [{"key": 80, "value": 0}, {"key": 443, "value": 1}]}"#;
    let left_out = instance.fill_maps(&object, &MapsJson::parse(given).unwrap());
    assert_eq!(left_out.unwrap(), []);
    let written = instance.maps_json(&object).unwrap();
    let (_, other) = firewall();
    let read = MapsJson::parse(written.as_bytes()).unwrap();
    other.fill_maps(&object, &read).unwrap();
    assert_eq!(other.maps_json(&object).unwrap(), written);
}

#[oracle::test]
fn entries_that_do_not_fit_are_named() {
    let (object, instance) = firewall();
    for (text, message) in [
        (&br#"{"ports": []}"#[..], "no program uses a map \"ports\""),
        (
            br#"{"open_ports": 3}"#,
            "map open_ports: no list of entries",
        ),
        (
            br#"{"open_ports": [{"key": 80, "value": 0}, {"key": 80000, "value": 0}]}"#,
            "map open_ports: entry 1: key: ",
        ),
    ] {
        let maps = MapsJson::parse(text).unwrap();
        let error = instance.fill_maps(&object, &maps).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let error = MapsJson::try_parse(b"[]").unwrap_err();
    assert_eq!(error.fault, MapsJsonFault::NoObject);
    assert!(matches!(
        MapsJson::try_parse(b"{").unwrap_err().fault,
        MapsJsonFault::Json(_)
    ));
}

#[oracle::test]
fn values_of_cpus_are_those_of_the_cpus_that_they_name() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/packets/limit.bpf.o"
    );
    let object = Object::open(path).unwrap();
    let instance = Loader::default().cpus(2).load(&object).unwrap();
    let fill = |values: &str| {
        let text = format!(r#"{{"verdicts": [{{"key": 1, "values": [{values}]}}]}}"#);
        instance.fill_maps(&object, &MapsJson::parse(text.as_bytes()).unwrap())
    };
    let verdicts = || {
        let values = instance.map("verdicts").unwrap();
        values.lookup_percpu::<u32, u32>(&1).unwrap().unwrap()
    };
    let left_out = fill(r#"{"cpu": 1, "value": 7}"#).unwrap();
    assert_eq!(left_out[0].members, ["value of CPU 0"]);
    assert_eq!(verdicts(), [0, 7]);
    fill(r#"{"value": 3}, {"value": 4}"#).unwrap();
    assert_eq!(verdicts(), [3, 4]);
    for (wrong, part) in [
        (
            r#"{"cpu": 1, "value": 7}, {"cpu": 1, "value": 8}"#,
            "CPU 1 is given twice",
        ),
        (r#"{"cpu": 2, "value": 7}"#, "there is no CPU 2"),
        (r#"{"cpu": "x", "value": 7}"#, "cpu is no number"),
    ] {
        let error = fill(wrong).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(verdicts(), [3, 4]);
}
