//! Two sets of results side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::push_columns;
use super::row::ResultRow;
use super::spec::{Column, Emit};

/// Differences between old and new results, by file and program. Default columns are
/// verdict, instructions, states and reason.
pub fn differences<R: AsRef<ResultRow>>(old: &[ResultRow], new: &[R], emit: &Emit) -> String {
    const COMPARED: &[Column] = &[
        Column::Verdict,
        Column::TotalInsns,
        Column::TotalStates,
        Column::Reason,
    ];
    let new: Vec<&ResultRow> = new.iter().map(AsRef::as_ref).collect();
    let old: Vec<&ResultRow> = old.iter().collect();
    let compared: Vec<Column> = emit
        .columns()
        .unwrap_or(COMPARED)
        .iter()
        .copied()
        .filter(|column| !matches!(column, Column::FileName | Column::ProgName))
        .collect();
    let ambiguous: BTreeSet<_> = [&old, &new]
        .into_iter()
        .flat_map(|rows| twice(rows))
        .collect();
    let key = |row: &ResultRow| {
        let short = (base(&row.file_name).to_owned(), row.prog_name.clone());
        match ambiguous.contains(&short) {
            true => (row.file_name.clone(), row.prog_name.clone()),
            false => short,
        }
    };
    let mut pairs: BTreeMap<(String, String), [Option<&ResultRow>; 2]> = BTreeMap::new();
    for row in old {
        pairs.entry(key(row)).or_default()[0] = Some(row);
    }
    for row in new {
        pairs.entry(key(row)).or_default()[1] = Some(row);
    }
    let columns = [
        Column::FileName,
        Column::ProgName,
        Column::Reason,
        Column::Reason,
        Column::Reason,
    ];
    let headings = ["File", "Program", "Column", "Old", "New"].map(str::to_owned);
    let mut cells = vec![headings.to_vec()];
    for ((file, prog), sides) in &pairs {
        for &column in &compared {
            let [old, new] = sides.map(|row| row.map_or("N/A".to_owned(), |row| row.text(column)));
            if old != new {
                let change = change(sides, column);
                cells.push(vec![
                    file.clone(),
                    prog.clone(),
                    column.name().to_owned(),
                    old,
                    new + &change,
                ]);
            }
        }
    }
    let mut text = String::new();
    let differing = cells.len() - 1;
    if differing > 0 {
        push_columns(&mut text, &columns, &cells);
    }
    text + &format!(
        "{} compared, {}\n",
        match pairs.len() {
            1 => "1 program".to_owned(),
            many => format!("{many} programs"),
        },
        match differing {
            1 => "1 value differs".to_owned(),
            many => format!("{many} values differ"),
        }
    )
}

/// Last parts of paths and programs that stand for several results.
fn twice(rows: &[&ResultRow]) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let short = |row: &&ResultRow| (base(&row.file_name).to_owned(), row.prog_name.clone());
    let shorts = rows.iter().map(short);
    shorts.filter(|short| !seen.insert(short.clone())).collect()
}

fn base(path: &str) -> &str {
    path.rsplit(std::path::is_separator).next().unwrap_or(path)
}

fn change(sides: &[Option<&ResultRow>; 2], column: Column) -> String {
    let [Some(old), Some(new)] = sides else {
        return String::new();
    };
    match (old.number(column), new.number(column)) {
        (Some(old), Some(new)) if old != 0 => {
            let percent = (new as f64 - old as f64) / old as f64 * 100.0;
            format!(" ({percent:+.2}%)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_listed_by_program() {
        let emit = Emit::read(&[], &[]).ok().unwrap();
        let mut old = vec![
            ResultRow::empty("dir/a.o", "p"),
            ResultRow::empty("a.o", "gone"),
        ];
        old[0].total_insns = 100;
        let mut new = vec![ResultRow::empty("a.o", "p")];
        new[0].total_insns = 110;
        let text = differences(&old, &new, &emit);
        assert!(text.contains("total_insns"), "{text}");
        assert!(text.contains("110 (+10.00%)"), "{text}");
        assert!(text.contains("gone"), "{text}");
        let files = ["d1/a.o", "d2/a.o"].map(|file| ResultRow::empty(file, "p"));
        assert!(differences(&files, &files, &emit).starts_with("2 programs compared, 0"));
        assert!(differences(&new, &new, &emit).starts_with("1 program compared, 0"));
    }
}
