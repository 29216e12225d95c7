//! Changes of an object by the command line before it is loaded, as loaders make them.

use beebox::internal::object::Object;

use crate::answer::Failure;

/// The options.
#[derive(clap::Args)]
pub(crate) struct Changes {
    /// The size of a map, for maps whose size the object leaves to its loader
    #[arg(long, value_name = "MAP=N")]
    #[arg(value_parser = max_entries)]
    max_entries: Vec<(String, u32)>,
}

impl Changes {
    /// Changes the object.
    ///
    /// # Errors
    /// For sizes of maps that the object lacks.
    pub(crate) fn apply(&self, object: &mut Object<'_>) -> Result<(), Failure> {
        for (name, entries) in &self.max_entries {
            let Some(id) = object.maps().named(name) else {
                let known: Vec<_> = object.maps().iter().map(|(_, map)| map.name()).collect();
                let failure = Failure::new(format_args!("no map is called {name:?}"));
                return Err(failure.hint(format_args!("one of {}", known.join(", "))));
            };
            if let Some(map) = object.maps_mut().get_mut(id) {
                map.set_max_entries(*entries);
            }
        }
        Ok(())
    }

    /// True if the size of a map is given.
    pub(crate) fn has_size_of(&self, map: &str) -> bool {
        self.max_entries.iter().any(|(name, _)| name == map)
    }
}

fn max_entries(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=');
    let (map, number) = parts.ok_or("expected MAP=N, as flows=1024")?;
    let number = number.trim().parse();
    let number = number.map_err(|_| "expected a number from 0 to 4294967295 behind `=`")?;
    Ok((map.trim().to_owned(), number))
}
