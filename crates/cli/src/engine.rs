//! The option `--engine`, which means the same in all commands.

use beebox::Engine;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parser of the name of an engine.
pub(crate) fn parser() -> impl TypedValueParser<Value = Engine> {
    let values = Engine::ALL
        .iter()
        .map(|engine| PossibleValue::new(engine.name()).help(about(*engine)));
    PossibleValuesParser::new(values).try_map(|name| {
        let mut engines = Engine::ALL.iter().copied();
        let found = engines.find(|engine| engine.name() == name);
        found.ok_or("no engine has this name")
    })
}

/// One line of help.
fn about(engine: Engine) -> &'static str {
    match engine {
        Engine::Native => "Native code (x86-64 Linux)",
        Engine::Interp => "The threaded interpreter",
        Engine::Checked => "The interpreter that checks every access",
    }
}
