//! Every target keeps its promise on its seeds, and on a while of mutations.

use beebox_fuzz::TARGETS;
use beebox_fuzz::runner::{self, Until};

#[test]
fn every_target_holds_on_its_seeds_and_their_neighbours() {
    for target in TARGETS {
        let seeds = runner::seeds(target).expect(target.name);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (index, seed) in seeds.iter().enumerate() {
            runner::attempt(target, seed)
                .unwrap_or_else(|how| panic!("{}: seed {index}: {how:?}", target.name));
        }
        let tally = runner::fuzz(target, seeds, 1, Until::Inputs(3_000))
            .unwrap_or_else(|broken| panic!("{}: {broken:?}", target.name));
        assert!(
            tally.signatures > 8,
            "{}: the inputs all look alike",
            target.name
        );
    }
}
