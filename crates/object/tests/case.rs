//! Text cases of linked programs: reading a written case yields the same program.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use beebox_object::Object;
use btf::dump_raw;
use program::Program;
use program::case::Case;
use spec::Kernel;
use spec::kernel::{Source, SymbolAddress, Symbols};

/// Sets of the selftests' objects.
const SETS: &[&str] = &["7.2/obj-v3", "7.2/obj-v4"];

/// Number of programs of an object that are written with their BTF; the others share it.
const WITH_BTF: usize = 2;

fn kernel() -> Kernel {
    let symbols = Symbols::new(|_| SymbolAddress::At(0xffff_ffff_8100_0000));
    kernel_data::linux_6_18().with_symbols(symbols, Source::Given)
}

/// All parts of a program but the string offsets of its BTF.
fn parts(program: &Program) -> String {
    let text = |offset| {
        let btf = program.btf();
        btf.map(|btf| btf.string(offset).as_bytes().to_vec())
    };
    let lines: Vec<_> = program
        .line_info()
        .iter()
        .map(|it| (it.insn, text(it.file), text(it.text), it.line, it.column))
        .collect();
    format!(
        "{:?} {:?} {} {:?} {:?} {:?} {} {:?} {:?} {lines:?} {:?} {:?}",
        (program.name(), program.section(), program.kind()),
        program.attach_type(),
        program.expected_attach_type(),
        program.flags(),
        program.attach_target(),
        program.license(),
        program.kernel_version(),
        program.subprogs(),
        program.func_info(),
        program.externs(),
        program.modules(),
    )
}

fn check(program: &Program, about: &str) {
    let text = Case::new(program.clone()).to_string();
    let again = Case::parse(&text).unwrap_or_else(|error| panic!("{about}: {error}"));
    let again = &again.program;
    assert!(again.insns() == program.insns(), "{about}: instructions");
    assert!(again.maps() == program.maps(), "{about}: maps");
    assert_eq!(parts(again), parts(program), "{about}");
    let dump = |program: &Program| program.btf().map(|btf| dump_raw(btf));
    assert!(dump(again) == dump(program), "{about}: BTF");
}

/// Writes and reads the linkable programs of an object; returns their number.
fn check_object(path: &Path, kernel: &Kernel) -> io::Result<usize> {
    let file = fs::read(path)?;
    let Ok(object) = Object::open(&file) else {
        return Ok(0);
    };
    let chosen: Vec<_> = object.programs().map(|(id, _)| id).collect();
    let link_report = object.try_link(&chosen, kernel);
    let mut count = 0;
    for link_report in link_report.programs {
        let beebox_object::overview::LinkOutcome::Linked(linked) = link_report.outcome else {
            continue;
        };
        let about = format!("{}: {}", path.display(), linked.program.name());
        let program = match count < WITH_BTF {
            true => linked.program,
            false => {
                let without = linked.program.to_builder().btf(None).line_info(Vec::new());
                without.build().expect("a program without BTF")
            }
        };
        check(&program, &about);
        count += 1;
    }
    Ok(count)
}

fn objects(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
    paths.sort();
    Ok(paths)
}

#[oracle::test]
fn our_own_objects_are_written_and_read_back() {
    let kernel = kernel();
    let mut count = 0;
    for directory in ["tests/objects", "tests/maps", "../../examples/traffic"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for path in objects(&directory).expect("committed objects") {
            count += check_object(&path, &kernel).expect("a committed object");
        }
    }
    assert!(count > 10, "{count} programs");
}

#[oracle::test]
fn the_selftests_objects_are_written_and_read_back() {
    let kernel = kernel();
    let mut count = 0;
    for set in SETS {
        let found = oracle::selftest_set(set);
        let Some(directory) = oracle::found("text cases of the selftests' objects", found) else {
            return;
        };
        let paths = Arc::new(objects(&directory).expect("a directory of objects"));
        for path in paths.iter() {
            count += check_object(path, &kernel).expect("an object");
        }
    }
    eprintln!("{count} programs");
    assert!(count > 3000, "{count} programs");
}
