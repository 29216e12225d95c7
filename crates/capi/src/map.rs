//! Maps of objects.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use beebox::Map;

use crate::boundary::{Failure, number, shared, text_for_c, value};
use crate::handles::{self, Named};
use crate::object::Settings;

/// A map of an object, to which it belongs.
#[allow(non_camel_case_types)]
pub struct beebox_map {
    name: CString,
    pub(crate) settings: Settings,
    loaded: OnceLock<(Map, c_int)>,
}

impl beebox_map {
    pub(crate) fn new(name: &str) -> beebox_map {
        beebox_map {
            name: text_for_c(name),
            settings: Settings::new(),
            loaded: OnceLock::new(),
        }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.to_bytes() == name.as_bytes()
    }

    pub(crate) fn set_loaded(&self, map: Map, handle: c_int) {
        // It is loaded once.
        let _ = self.loaded.set((map, handle));
    }

    /// The loaded map.
    pub(crate) fn loaded(&self) -> Result<&Map, Failure> {
        Ok(&self.loaded_pair()?.0)
    }

    /// Its handle, if it is loaded.
    pub(crate) fn handle(&self) -> Option<c_int> {
        self.loaded.get().map(|(_, handle)| *handle)
    }

    /// Its handle.
    pub(crate) fn loaded_handle(&self) -> Result<c_int, Failure> {
        Ok(self.loaded_pair()?.1)
    }

    fn loaded_pair(&self) -> Result<&(Map, c_int), Failure> {
        self.loaded.get().ok_or_else(|| {
            let name = self.name.to_string_lossy();
            let what = format!("map {name} is not loaded, or no loaded program uses it");
            Failure::new(libc::ENOENT, what)
        })
    }
}

/// Name of the map; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__name(map: *const beebox_map) -> *const c_char {
    // SAFETY: the caller promises a map.
    value(
        || Ok(unsafe { shared(map, "map") }?.name.as_ptr()),
        |_| ptr::null(),
    )
}

/// Handle of the loaded map, or the negative error number: -ENOENT before the object is loaded, and of
/// maps that no loaded program uses. It ends with the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__fd(map: *const beebox_map) -> c_int {
    // SAFETY: the caller promises a map.
    number(|| unsafe { shared(map, "map") }?.loaded_handle())
}

/// Kind of the loaded map (`enum bpf_map_type`), or the negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__type(map: *const beebox_map) -> c_int {
    // SAFETY: the caller promises a map.
    number(|| Ok(unsafe { shared(map, "map") }?.loaded()?.kind().number() as c_int))
}

/// Bytes of a key of the loaded map; 0 before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__key_size(map: *const beebox_map) -> u32 {
    // SAFETY: the caller promises a map.
    value(
        || Ok(unsafe { shared(map, "map") }?.loaded()?.key_size() as u32),
        |_| 0,
    )
}

/// Bytes of a value of the loaded map, of one CPU in per-CPU maps; 0 before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__value_size(map: *const beebox_map) -> u32 {
    // SAFETY: the caller promises a map.
    value(
        || Ok(unsafe { shared(map, "map") }?.loaded()?.value_size() as u32),
        |_| 0,
    )
}

/// Most entries of the loaded map; 0 before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__max_entries(map: *const beebox_map) -> u32 {
    // SAFETY: the caller promises a map.
    value(
        || Ok(unsafe { shared(map, "map") }?.loaded()?.max_entries()),
        |_| 0,
    )
}

/// Sets the most entries before the object is loaded; -EBUSY after.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__set_max_entries(
    map: *mut beebox_map,
    max_entries: u32,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a map.
        let map = unsafe { shared(map, "map") }?;
        let name = map.name.to_string_lossy().into_owned();
        map.settings
            .add(move |loader| loader.max_entries(&name, max_entries))
    })
}

/// Has the object use the map of a handle in place of its own, so that its entries outlive a reload.
/// Loading refuses a map of another kind or size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__reuse_fd(map: *mut beebox_map, fd: c_int) -> c_int {
    number(|| {
        // SAFETY: the caller promises a map.
        let map = unsafe { shared(map, "map") }?;
        let reused = handles::map(fd)?;
        let name = map.name.to_string_lossy().into_owned();
        map.settings
            .add(move |loader| loader.reuse_map(&name, &reused))
    })
}

/// Creates a map that fits a map of maps: its handle, which `beebox_close` closes, or the negative
/// error number. `beebox_map_update_elem` of the map of maps puts it in.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_map_create_inner(outer_fd: c_int) -> c_int {
    number(|| handles::open(Named::Map(handles::map(outer_fd)?.create_inner()?)))
}
