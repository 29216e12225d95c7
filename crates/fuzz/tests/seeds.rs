//! Every target holds on its seeds and on mutations of them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use beebox_fuzz::TARGETS;
use beebox_fuzz::runner::{self, Until};

/// Mutations of each target: the same at any speed of the machine.
const INPUTS: Until = Until::Inputs(300);
/// Time limit of an input, which a loaded machine keeps too.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_target_holds_on_its_seeds_and_their_neighbours() {
    for target in TARGETS {
        let seeds = runner::seeds(target).expect(target.name);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (index, seed) in seeds.iter().enumerate() {
            runner::attempt(target, seed, LIMIT)
                .unwrap_or_else(|how| panic!("{}: seed {index}: {how:?}", target.name));
        }
        let tally = runner::fuzz(target, seeds, 1, INPUTS, LIMIT)
            .unwrap_or_else(|broken| panic!("{}: {broken:?}", target.name));
        assert!(
            tally.signatures > 4,
            "{}: the inputs all look alike",
            target.name
        );
    }
}

#[test]
fn every_target_has_a_libfuzzer_binary() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let file = format!("fuzz_targets/{}.rs", target.name.replace('-', "_"));
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)));
        assert!(manifest.contains(&format!("path = \"{file}\"")));
        let source = fs::read_to_string(package.join(file)).unwrap();
        assert!(source.contains(&format!("hold(\"{}\", input)", target.name)));
    }
}
