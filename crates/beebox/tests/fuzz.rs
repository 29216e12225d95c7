//! Fuzzing: planted bugs are found with a bounded number of runs, finds have tests that fail, and the same
//! seed makes the same runs.

#[path = "../examples/planted/bugs.rs"]
mod bugs;

use std::time::Duration;

use beebox::expect::ExpectFile;
use beebox::fuzz::{FuzzInput, FuzzReport, Fuzzer, Property};
use beebox::{Loader, Object};

/// Most runs until a planted bug is found.
const MOST_RUNS: u64 = 3_000_000;

fn in_repository() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the repository");
}

#[oracle::test]
fn planted_bugs_are_found() {
    in_repository();
    for bug in bugs::BUGS {
        let fuzzer = bug.fuzzer().expect("an object");
        let report = fuzzer.seed(1).runs(MOST_RUNS).run().expect("a report");
        assert_eq!(report.finds.len(), 1, "{}: {} runs", bug.what, report.runs);
        let find = &report.finds[0];
        assert!(find.packet().len() <= 128, "{}: {find:?}", bug.name);
    }
}

#[oracle::test]
fn tests_of_finds_fail() {
    in_repository();
    let mut tested = 0;
    for bug in bugs::BUGS
        .iter()
        .filter(|bug| ["segment", "strip", "wide"].contains(&bug.name))
    {
        let fuzzer = bug.fuzzer().expect("an object");
        let report = fuzzer.seed(1).runs(MOST_RUNS).run().expect("a report");
        let find = &report.finds[0];
        assert!(find.test_fails, "{}", find.test);
        let path = format!("crates/beebox/tests/data/planted/{}.bpf.o", bug.name);
        let object = Object::open(path).expect("an object");
        let instance = Loader::default().load(&object).expect("an instance");
        let file = ExpectFile::parse("find", &find.test, ".".as_ref()).expect("a file");
        for (_, test) in file.tests() {
            let report = instance.check(&object, &test).expect("a report");
            assert!(!report.is_met(), "{}", find.test);
            tested += 1;
        }
    }
    assert_eq!(tested, 3);
}

/// What counts of a report: all but times.
fn told(report: FuzzReport) -> impl PartialEq + std::fmt::Debug {
    let finds = report.finds.iter();
    let finds = finds.map(|find| (find.property.clone(), find.input.clone(), find.runs));
    (
        report.runs,
        report.corpus.clone(),
        report.covered,
        finds.collect::<Vec<_>>(),
    )
}

#[oracle::test]
fn the_seed_decides() {
    in_repository();
    let object = Object::open("examples/packets/flows.bpf.o").expect("an object");
    let run = |seed, jobs| {
        let never = Property::never("unknown (77)", None).expect("a property");
        let fuzzer = Fuzzer::new(&object, &object_program(&object)).property(never);
        let report = fuzzer.seed(seed).jobs(jobs).runs(60_000).run();
        report.expect("a report")
    };
    for jobs in [1, 2] {
        assert_eq!(told(run(5, jobs)), told(run(5, jobs)));
    }
    assert_ne!(told(run(5, 1)), told(run(6, 1)));
}

fn object_program(object: &Object) -> String {
    let instance = Loader::default().load(object).expect("an instance");
    let mut programs = instance.programs();
    programs.next().expect("a program").name().to_owned()
}

/// The time is kept with a program whose run takes long, in native code and where comparisons are looked at.
#[oracle::test]
fn slow_programs_end_in_time() {
    in_repository();
    let object = Object::open("crates/beebox/tests/data/planted/slow.bpf.o").expect("an object");
    let never = Property::never("XDP_ABORTED", None).expect("a property");
    let fuzzer = Fuzzer::new(&object, "slow").property(never);
    let report = fuzzer.time(Duration::from_millis(300)).run();
    let report = report.expect("a report");
    assert!(report.runs > 0);
    assert!(report.time < Duration::from_secs(3), "{:?}", report.time);
}

/// Files of a corpus that are no inputs are named and left out; a file alone is an error.
#[oracle::test]
fn broken_files_of_a_corpus_are_left_out() {
    in_repository();
    let object = Object::open("examples/packets/firewall.bpf.o").expect("an object");
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-corpus");
    std::fs::create_dir_all(&directory).expect("a directory");
    let input = FuzzInput::from_packet(vec![0x45; 60]);
    let broken = directory.join("broken.json");
    std::fs::write(&broken, "{").expect("a file");
    std::fs::write(directory.join("good.json"), input.json().to_string()).expect("a file");
    let fuzzer = || Fuzzer::new(&object, "firewall");
    let corpus = fuzzer().corpus(&directory).expect("a corpus");
    let report = corpus.runs(100).run().expect("a report");
    assert_eq!(report.skipped.len(), 1, "{:?}", report.skipped);
    assert!(
        report.skipped[0].contains("broken.json"),
        "{:?}",
        report.skipped
    );
    assert!(report.corpus.contains(&input));
    assert!(fuzzer().corpus(&broken).is_err());
}

/// An input leaves nothing in maps for the next one: a counter never gets beyond what one input makes of it.
#[oracle::test]
fn maps_are_set_back() {
    in_repository();
    let object = Object::open("examples/packets/firewall.bpf.o").expect("an object");
    let counted = Property::check("at most four packets", |run| {
        let counters = run.elements("actions");
        let sum: u64 = counters
            .iter()
            .map(|(_, value)| {
                value
                    .first_chunk()
                    .map_or(0, |bytes| u64::from_le_bytes(*bytes))
            })
            .sum();
        let senders = run.elements("senders").len();
        match (1..=4).contains(&sum) && senders <= 4 {
            true => Ok(()),
            false => Err(format!("{sum} packets, {senders} senders")),
        }
    });
    let report = Fuzzer::new(&object, "firewall")
        .property(counted)
        .most_packets(4)
        .runs(30_000)
        .run();
    let report = report.expect("a report");
    assert!(report.finds.is_empty(), "{:?}", report.finds);
    assert!(report.kept_maps.is_empty(), "{:?}", report.kept_maps);
}

/// Instructions that counters of native code stand for are those that the checked engine executes.
#[oracle::test]
fn budgets_are_exact() {
    in_repository();
    for (path, program) in [
        ("examples/packets/firewall.bpf.o", "firewall"),
        ("examples/packets/router.bpf.o", "route"),
        ("examples/packets/dns.bpf.o", "dns"),
    ] {
        let object = Object::open(path).expect("an object");
        // A limit that long runs are just above: its find has to fail in the checked engine, too.
        for most in (10..200).step_by(17) {
            let property = Property::expect(&format!("instructions <= {most}")).expect("one");
            let report = Fuzzer::new(&object, program)
                .property(property)
                .runs(20_000)
                .run();
            for find in report.expect("a report").finds {
                assert!(find.test_fails, "{}", find.test);
                let told = find
                    .what
                    .trim_start_matches("got ")
                    .trim_end_matches(" instructions");
                let exact: u64 = told.parse().expect("a number");
                let text = find.test.replace(
                    &format!("instructions <= {most}\n"),
                    &format!("instructions <= {exact}\n"),
                );
                let file = ExpectFile::parse("find", &text, ".".as_ref()).expect("a file");
                let instance = Loader::default().load(&object).expect("an instance");
                for (_, test) in file.tests() {
                    let report = instance.check(&object, &test).expect("a report");
                    assert!(report.is_met(), "{text}\n{}", find.what);
                }
            }
        }
    }
}

#[oracle::test]
fn properties_that_do_not_fit_are_refused() {
    in_repository();
    let object = Object::open("examples/packets/firewall.bpf.o").expect("an object");
    let refused = |fuzzer: Fuzzer, part: &str| {
        let error = fuzzer.runs(10).run().expect_err("no report").to_string();
        assert!(error.contains(part), "{error}");
    };
    let fuzzer = || Fuzzer::new(&object, "firewall");
    let never = Property::never("TC_ACT_OK", None).expect("a property");
    refused(fuzzer().property(never), "have no verdict \"TC_ACT_OK\"");
    let absent = Property::expect("global nothing = 1").expect("an expectation");
    refused(fuzzer().property(absent), "no variable nothing");
    refused(
        fuzzer().vary("nothing"),
        "no loaded program uses a map nothing",
    );
    refused(Fuzzer::new(&object, "nothing"), "no program nothing");
    assert!(Property::expect("printk none").is_err());
    assert!(Property::expect("run firewall zero:60").is_err());
    assert!(fuzzer().corpus("no/such/file.pcap").is_err());
}
