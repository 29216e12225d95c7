//! Statements about models of the kernel: what is given, runs by arguments, what programs did.

use ::kernel::model::ModelValue;

use super::statement::{Expected, Statement, repeated};

/// A statement that cannot be read: lines below its first one, and what is wrong.
pub(super) type ModelFault = (usize, String);

/// The first words of statements whose values go on over lines while brackets are open.
const WORDS: [&str; 9] = [
    "given", "process", "result", "run", "iterate", "call", "seq", "ctx", "memory",
];

/// True if the values of a statement may go on in the next line.
pub(super) fn has_values(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    WORDS.contains(&word)
}

/// The statement of a text, if it is one about a model.
pub(super) fn model_statement(text: &str) -> Option<Result<Statement, ModelFault>> {
    let (word, rest) = split(text);
    let (second, behind) = split(rest);
    Some(match word {
        "given" => given(text, rest),
        "process" => value(text, rest).map(Statement::Process),
        "result" => result(text, rest),
        "iterate" => match value(text, behind) {
            Ok(ModelValue::List(elements)) => Ok(Statement::Iterate {
                program: second.to_owned(),
                elements,
            }),
            Ok(_) => fault("iterate PROGRAM [ELEMENT, …] is expected"),
            Err(error) => Err(error),
        },
        "run" if behind.starts_with(['{', '[']) => run(text, (second, behind)),
        "ctx" if rest.starts_with('{') => {
            value(text, rest).map(|value| Statement::Expect(Expected::ContextFields(value)))
        }
        "memory" => memory(text, rest),
        "call" => call(text, (second, behind)),
        "seq" => match rest {
            "none" => Ok(Statement::Expect(Expected::Seq(None))),
            rest => match value(text, rest) {
                Ok(ModelValue::Text(text)) => Ok(Statement::Expect(Expected::Seq(Some(text)))),
                _ => fault("seq \"TEXT\" or seq none is expected"),
            },
        },
        _ => return None,
    })
}

fn fault<T>(what: &str) -> Result<T, ModelFault> {
    Err((0, what.to_owned()))
}

fn split(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        // The rest is a part of the text, too: errors have its column.
        None => text.split_at(text.len()),
    }
}

/// The value that a part of a statement is.
fn value(text: &str, part: &str) -> Result<ModelValue, ModelFault> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    let text = &text[..start + part.len()];
    ModelValue::parse_behind(text, start).map_err(|error| {
        let before = text.chars().take(error.column - 1);
        let (line, column) = line_and_column(text, before.map(char::len_utf8).sum());
        (line, format!("column {column}: {}", error.what))
    })
}

/// Lines below the first one, and the column from 1, of a place in a statement.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count(), line.chars().count() + 1)
}

/// `PROGRAM {NAME: VALUE} [xTIMES]`.
fn run(text: &str, (program, behind): (&str, &str)) -> Result<Statement, ModelFault> {
    let last = behind.split_whitespace().next_back().unwrap_or_default();
    let (part, repeat) = match last.contains(['}', ']']) {
        true => (behind, 1),
        false => repeated(behind).map_err(|what| (text.matches('\n').count(), what))?,
    };
    Ok(Statement::RunModel {
        program: program.to_owned(),
        value: value(text, part)?,
        repeat,
    })
}

/// `@NAME = TYPE {…}` or `@NAME {…}`.
fn given(text: &str, rest: &str) -> Result<Statement, ModelFault> {
    let form = "given @NAME = TYPE {…} is expected, or given @NAME {…} for more of an object";
    let Some(named) = rest.strip_prefix('@') else {
        return fault(form);
    };
    let end = named.find(|each: char| !each.is_ascii_alphanumeric() && each != '_');
    let (name, behind) = named.split_at(end.unwrap_or(named.len()));
    let behind = behind.trim_start();
    let (part, is_new) = match behind.strip_prefix('=') {
        Some(part) => (part.trim_start(), true),
        None => (behind, false),
    };
    if name.is_empty() || part.is_empty() {
        return fault(form);
    }
    let value = value(text, part)?;
    match (&value, is_new) {
        (ModelValue::Fields { ty: Some(_), .. }, true)
        | (ModelValue::Fields { ty: None, .. }, false) => Ok(Statement::Given {
            name: name.to_owned(),
            value,
            is_new,
        }),
        _ => fault(form),
    }
}

/// `FUNCTION [at N] = VALUE [{ARGUMENT: VALUE}]`.
fn result(text: &str, rest: &str) -> Result<Statement, ModelFault> {
    let form = "result FUNCTION [at N] = VALUE [{ARGUMENT: VALUE}] is expected";
    let Some((call, behind)) = rest.split_once('=') else {
        return fault(form);
    };
    let words: Vec<&str> = call.split_whitespace().collect();
    let (function, at) = match words[..] {
        [function] => (function, None),
        [function, "at", at] => match at.parse().ok().filter(|at: &u64| *at > 0) {
            Some(at) => (function, Some(at)),
            None => return fault("result FUNCTION at N = VALUE has N from 1"),
        },
        _ => return fault(form),
    };
    let part = behind.trim_start();
    // A word in front of braces is a result and what it writes, not a type.
    let (word, braces) = match part.split_once('{') {
        Some((word, _)) if !word.trim().is_empty() => (word.trim(), &part[word.len()..]),
        _ => (part, ""),
    };
    let result = value(text, word)?;
    let fills = match braces {
        "" => Vec::new(),
        braces => named(value(text, braces)?).ok_or_else(|| (0, form.to_owned()))?,
    };
    Ok(Statement::Result {
        function: function.to_owned(),
        at,
        value: result,
        fills,
    })
}

/// `@NAME.MEMBER = VALUE`.
fn memory(text: &str, rest: &str) -> Result<Statement, ModelFault> {
    let form = "memory @NAME.MEMBER = VALUE is expected";
    let Some((place, behind)) = rest.split_once('=') else {
        return fault(form);
    };
    match value(text, place.trim_end())? {
        ModelValue::Object(name, path) if !path.is_empty() => {
            let value = value(text, behind.trim_start())?;
            Ok(Statement::Expect(Expected::Memory { name, path, value }))
        }
        _ => fault(form),
    }
}

/// `none`, `FUNCTION none` or `FUNCTION {ARGUMENT: VALUE}`.
fn call(text: &str, (function, behind): (&str, &str)) -> Result<Statement, ModelFault> {
    let form = "call FUNCTION {ARGUMENT: VALUE}, call FUNCTION none or call none is expected";
    let (function, arguments) = match (function, behind) {
        ("none", "") => (None, None),
        ("", _) => return fault(form),
        (function, "none") => (Some(function), None),
        (function, "") => (Some(function), Some(Vec::new())),
        (function, behind) => {
            let arguments = named(value(text, behind)?);
            let arguments = arguments.ok_or_else(|| (0, form.to_owned()))?;
            (Some(function), Some(arguments))
        }
    };
    Ok(Statement::Expect(Expected::Call {
        function: function.map(str::to_owned),
        arguments,
    }))
}

/// The members of `{NAME: VALUE}`.
fn named(value: ModelValue) -> Option<Vec<(String, ModelValue)>> {
    match value {
        ModelValue::Fields {
            ty: None,
            fields,
            others_are_zero: false,
        } => {
            let named = fields.into_iter();
            Some(named.map(|(path, value)| (path.join("."), value)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read() {
        for text in [
            "given @a = task_struct { pid: 7 }",
            "given @a { tgid: 7 }",
            "process { pid: 7, comm: \"bash\" }",
            "result scx_bpf_select_cpu_dfl = 3 { is_idle: true }",
            "result bpf_get_stackid at 2 = -EFAULT",
            "run p { a: 1,\n b: @a }",
            "run p [1, @a]",
            "run p { mode: 0755 } x3",
            "run p {a: x3}",
            "iterate p [@a, { task: @b }]",
            "ctx { user_port: be 80 }",
            "memory @a.scx.slice = 5",
            "call scx_bpf_dsq_insert { p: @a }",
            "call scx_bpf_dsq_insert none",
            "call none",
            "seq \"7 bash\\n\"",
            "seq none",
        ] {
            match model_statement(text) {
                Some(Ok(_)) => {}
                Some(Err((_, error))) => panic!("{text}: {error}"),
                None => panic!("{text} is no statement of a model"),
            }
        }
        assert!(model_statement("run p zero:60").is_none());
        assert!(model_statement("ctx unchanged").is_none());
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, error) in [
            ("given a = b {}", (0, "given @NAME = TYPE {…}")),
            ("given @a = {}", (0, "given @NAME = TYPE {…}")),
            ("run p { a: 1,\n  b; 2 }", (1, "column 4: a colon")),
            ("process { pid 7 }", (0, "column 15: a colon")),
            ("memory @a = 5", (0, "memory @NAME.MEMBER")),
            ("result f at 0 = 1", (0, "N from 1")),
            ("call", (0, "call FUNCTION")),
            ("run p { a: 1,\n b: 2 } x0", (1, "no number of runs")),
            ("run p { mode: 0799 }", (0, "0 in front is octal")),
            ("seq 5", (0, "seq \"TEXT\"")),
            ("seq", (0, "seq \"TEXT\"")),
            ("iterate", (0, "a value")),
            ("memory", (0, "memory @NAME.MEMBER")),
            ("iterate p 5", (0, "iterate PROGRAM")),
        ] {
            match model_statement(text) {
                Some(Err((line, what))) => {
                    assert!(
                        line == error.0 && what.contains(error.1),
                        "{text}: {line} {what}"
                    );
                }
                _ => panic!("{text} is read"),
            }
        }
    }
}
