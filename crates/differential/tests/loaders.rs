//! What other loaders parse of the objects of this repository, and what Beebox makes of them:
//! equal, but for differences whose cause is known.

use beebox_differential::loaders::{ASKED, Tool, compare_all, own_objects};

#[oracle::test]
fn objects_are_what_their_loaders_parse() {
    let objects = own_objects().expect("objects");
    for loader in ASKED {
        let Some(tool) = oracle::found(loader.name(), Tool::find(loader)) else {
            continue;
        };
        let found = compare_all(&tool, &objects).expect("answers for all objects");
        let unexplained = found.differences.iter().filter(|it| it.cause.is_none());
        let unexplained: Vec<String> = unexplained.map(ToString::to_string).collect();
        assert!(unexplained.is_empty(), "{}", unexplained.join("\n\n"));
        assert!(found.accepted > 50, "{loader}: {} objects", found.accepted);
    }
}
