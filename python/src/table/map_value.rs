//! Values of maps as columns: what an element holds after the program ran on a packet.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::{DataType, Field};
use beebox::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Fault, raised};
use crate::map::Map;
use crate::program::Program;

/// A column with the value of a map's element.
pub(super) struct MapValue {
    name: String,
    map: Map,
    key: Vec<u8>,
}

impl MapValue {
    /// Reads the maps and keys of columns, by name.
    ///
    /// # Errors
    /// `NotFoundError` for maps that the program's instance lacks, `DataTypeError` for maps of objects
    /// and for keys of another type, `MapError` for maps without keys.
    pub(super) fn read(
        given: &Bound<'_, PyDict>,
        program: Option<&Bound<'_, Program>>,
    ) -> PyResult<Vec<MapValue>> {
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let Some(program) = program else {
            let what = "map_values are those of a program, and none is given";
            return Err(Fault::of_type(what).into());
        };
        let shared = &program.get().shared;
        let read = |(name, element): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let fits = element.extract::<(String, Bound<'_, PyAny>)>();
            let (map, key) = fits.map_err(|_| {
                let what = "map_values: the name of a map and a key fit, such as (\"counts\", 0)";
                PyErr::from(Fault::of_type(what))
            })?;
            let map = shared.instance.map(&map).map_err(raised)?;
            let map = Map::new(map, shared.clone());
            let key = map.element_key(&key)?;
            Ok(MapValue {
                name: name.extract()?,
                map,
                key,
            })
        };
        given.iter().map(read).collect()
    }

    pub(super) fn field(&self) -> Field {
        Field::new(&self.name, self.arrow_type(), true)
    }

    fn arrow_type(&self) -> DataType {
        self.map.values_as_arrow(&[]).0
    }

    /// The value as it is now; `None` if the map has no such element.
    pub(super) fn bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        self.map.map.lookup_bytes(&self.key)
    }

    /// The values of rows.
    pub(super) fn array(&self, rows: &[Option<Vec<u8>>]) -> ArrayRef {
        let absent = vec![0; self.map.all_values_size()];
        let bytes = rows.iter().map(|row| row.as_deref().unwrap_or(&absent));
        let (_, values) = self.map.values_as_arrow(&bytes.collect::<Vec<_>>());
        let are_there = rows.iter().map(Option::is_some).collect();
        let values = values.to_data().into_builder().nulls(Some(are_there));
        make_array(values.build().expect("there is a value for each row"))
    }
}
