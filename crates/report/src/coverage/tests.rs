//! Totals, forms that are read back, and faults of tracefiles.

use super::*;

fn coverage() -> Coverage {
    let mut file = FileCoverage::default();
    for (number, count, is_reachable) in [(3, 2, true), (4, 0, true), (5, 0, false), (9, 1, true)] {
        let line = LineCoverage {
            count,
            is_reachable,
        };
        file.add_line(number, line);
        file.texts.insert(number, format!("a < {number}, or: b"));
    }
    let place = |line, column, number| BranchPlace {
        line,
        column,
        number,
    };
    let branch = |jumped, fell| BranchCoverage { jumped, fell };
    file.add_branch(place(3, 7, 0), branch(Some(2), Some(0)));
    file.add_branch(place(3, 7, 1), branch(None, Some(2)));
    file.add_branch(place(4, 9, 0), branch(Some(0), Some(0)));
    let function = |line, count, is_reachable| FunctionCoverage {
        line,
        count,
        is_reachable,
    };
    file.add_function("main", function(3, 2, true));
    file.add_function("unused", function(5, 0, false));
    Coverage {
        files: BTreeMap::from([("a.bpf.c".to_owned(), file)]),
    }
}

#[test]
fn what_no_run_can_reach_is_not_missing() {
    let totals = coverage().totals();
    let share = |hit, found| Share { hit, found };
    assert_eq!(totals.lines, share(2, 3));
    assert_eq!(totals.branches, share(2, 5));
    assert_eq!(totals.functions, share(1, 1));
    assert_eq!(totals.unreachable, 1);
    let coverage = coverage();
    assert_eq!(coverage.file_names().collect::<Vec<_>>(), ["a.bpf.c"]);
    let lines = coverage.lines("a.bpf.c").collect::<Vec<_>>();
    assert_eq!(lines, [(3, Some(2)), (4, Some(0)), (5, None), (9, Some(1))]);
    let functions = coverage.functions("a.bpf.c").collect::<Vec<_>>();
    assert_eq!(functions, [("main", Some(2)), ("unused", None)]);
    assert_eq!(coverage.lines("b.bpf.c").count(), 0);
    let text = coverage.text();
    assert!(text.contains("not executed: 4\n"), "{text}");
    assert!(text.contains("one way only: 3\n"), "{text}");
    assert!(text.contains("no run can reach: 5\n"), "{text}");
}

#[test]
fn tracefiles_are_read_as_they_were_written_and_merge() {
    let read = read_lcov(&coverage().lcov()).expect("a tracefile");
    // The count of a function that no run can reach, and ways of lines that were not executed, are 0.
    assert_eq!(read, coverage());
    let mut twice = read.clone();
    twice.merge(read);
    let file = &twice.files["a.bpf.c"];
    assert_eq!(file.lines[&3].count, 4);
    assert_eq!(file.functions["main"].count, 4);
    assert_eq!(twice.totals(), coverage().totals());
}

#[test]
fn faults_of_tracefiles_name_the_line_and_the_form() {
    for (text, line, what) in [
        ("", 1, "no tracefile"),
        ("DA:1,2", 1, "outside of a file"),
        ("SF:a\nDA:x,2", 2, "DA:LINE,COUNT"),
        ("SF:a\nDA:1", 2, "DA:LINE,COUNT"),
        ("SF:a\nBRDA:1,2,3", 2, "BRDA:LINE,BLOCK,BRANCH,TAKEN"),
        ("SF:a\nFNDA:1,f", 2, "FN before FNDA"),
    ] {
        let fault = read_lcov(text).expect_err(text);
        assert!(fault.line == line && fault.what.contains(what), "{fault:?}");
    }
}

#[test]
fn pages_and_documents_escape_what_they_show() {
    let pages = coverage().html(&|_| None);
    assert_eq!(pages.len(), 2);
    let page = &pages["0-a.bpf.c.html"];
    assert!(page.contains("a &lt; 3"), "{page}");
    assert!(page.contains("class=\"dead\" id=\"L5\""));
    let document = coverage().cobertura(0);
    assert!(document.contains("line-rate=\"0.6667\""), "{document}");
    assert!(
        document.contains("condition-coverage=\"66% (2/3)\""),
        "{document}"
    );
}
