//! What other loaders parse of the objects of this repository, and what Beebox makes of them:
//! equal, but for differences whose cause is known.
//!
//! `.ci/extended` builds the loaders, which need Go and crates of their own, and compares them without
//! exception; here those that are built are compared.

use beebox_differential::loaders::{ASKED, Tool, Unavailable, compare_all, own_objects};

#[oracle::test]
fn objects_are_what_their_loaders_parse() {
    let objects = own_objects().expect("objects");
    for loader in ASKED {
        let tool = match Tool::find(loader) {
            Err(absent @ Unavailable::NotBuilt(_)) => {
                oracle::does_not_apply(loader.name(), absent);
                continue;
            }
            found => found.expect("a loader"),
        };
        let found = compare_all(&tool, &objects).expect("answers for all objects");
        let unexplained = found.differences.iter().filter(|it| it.cause.is_none());
        let unexplained: Vec<String> = unexplained.map(ToString::to_string).collect();
        assert!(unexplained.is_empty(), "{}", unexplained.join("\n\n"));
        assert!(found.accepted > 50, "{loader}: {} objects", found.accepted);
    }
}
