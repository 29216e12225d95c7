//! Objects: opened from a file or from bytes, set up, loaded, closed.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use beebox::internal::kernel::linux_6_18;
use beebox::kernel::Kernels as _;
use beebox::{Assignment, Engine, Kernel, Loader, Object};

use crate::boundary::{self, Failure, number, owned, pointer, text};
use crate::handles::{self, Named};
use crate::map::beebox_map;
use crate::program::beebox_program;

/// An object (`.bpf.o`) with its programs and maps.
#[allow(non_camel_case_types)]
pub struct beebox_object {
    object: Object,
    kernel: Mutex<Option<Kernel>>,
    settings: Settings,
    pub(crate) programs: Box<[beebox_program]>,
    pub(crate) maps: Box<[beebox_map]>,
}

/// A change of how an object is loaded.
type Change = Box<dyn FnOnce(Loader) -> Loader + Send>;

/// Changes of how an object is loaded; none once it has been.
pub(crate) struct Settings(Mutex<Option<Vec<Change>>>);

impl Settings {
    pub(crate) fn new() -> Settings {
        Settings(Mutex::new(Some(Vec::new())))
    }

    /// Notes a change.
    pub(crate) fn add(
        &self,
        change: impl FnOnce(Loader) -> Loader + Send + 'static,
    ) -> Result<c_int, Failure> {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = || Failure::new(libc::EBUSY, "the object is loaded: set it before");
        changes.as_mut().ok_or_else(loaded)?.push(Box::new(change));
        Ok(0)
    }

    /// Takes the changes; there are no others from now on.
    fn take(&self) -> Option<Vec<Change>> {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.take()
    }
}

impl beebox_object {
    fn new(object: Object) -> *mut beebox_object {
        let programs = object.program_names().iter();
        let maps = object.map_names().iter();
        owned(beebox_object {
            programs: programs.map(|name| beebox_program::new(name)).collect(),
            maps: maps.map(|name| beebox_map::new(name)).collect(),
            settings: Settings::new(),
            kernel: Mutex::new(None),
            object,
        })
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    /// The kernel that answers are for.
    pub(crate) fn kernel(&self) -> Kernel {
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        kernel.clone().unwrap_or_else(linux_6_18)
    }

    fn load(&self) -> Result<c_int, Failure> {
        let again = || Failure::argument("the object was loaded before: open it again");
        let mut changes = self.settings.take().ok_or_else(again)?;
        let programs = self.programs.iter().map(|program| program.settings.take());
        let maps = self.maps.iter().map(|map| map.settings.take());
        changes.extend(programs.chain(maps).flatten().flatten());
        let loader = Loader::new(&self.kernel());
        let loader = changes
            .into_iter()
            .fold(loader, |loader, change| change(loader));
        let instance = loader.load(&self.object)?;
        for program in instance.programs() {
            let place = self.programs.iter().find(|it| it.is_named(program.name()));
            if let Some(place) = place {
                let handle = handles::open(Named::Program(program.clone()))?;
                place.set_loaded(program, handle);
            }
        }
        for map in instance.maps() {
            if let Some(place) = self.maps.iter().find(|it| it.is_named(map.name())) {
                let handle = handles::open(Named::Map(map.clone()))?;
                place.set_loaded(map, handle);
            }
        }
        Ok(0)
    }
}

impl Drop for beebox_object {
    fn drop(&mut self) {
        let programs = self.programs.iter().filter_map(beebox_program::handle);
        let maps = self.maps.iter().filter_map(beebox_map::handle);
        for handle in programs.chain(maps) {
            handles::close(handle);
        }
    }
}

/// Opens an object file of clang. As `bpf_object__open`.
///
/// Returns the object, which `beebox_object__close` frees, or NULL: the file cannot be read, or is none
/// that libbpf takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__open(path: *const c_char) -> *mut beebox_object {
    pointer(|| {
        // SAFETY: the caller promises a text.
        let path = unsafe { text(path, "path") }?;
        Ok(beebox_object::new(Object::open(path)?))
    })
}

/// As `beebox_object__open`; `opts` is NULL: settings have functions of their own
/// (`beebox_object__set_…`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__open_file(
    path: *const c_char,
    opts: *const c_void,
) -> *mut beebox_object {
    pointer(|| {
        check_no_options(opts)?;
        // SAFETY: the caller promises a text.
        let path = unsafe { text(path, "path") }?;
        Ok(beebox_object::new(Object::open(path)?))
    })
}

/// Opens an object from its bytes, which are copied. As `bpf_object__open_mem`; `opts` is NULL.
///
/// `buffer` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__open_mem(
    buffer: *const c_void,
    size: usize,
    opts: *const c_void,
) -> *mut beebox_object {
    pointer(|| {
        check_no_options(opts)?;
        // SAFETY: the caller promises so many bytes.
        let bytes = unsafe { boundary::bytes(buffer, size, "buffer") }?;
        Ok(beebox_object::new(Object::from_bytes(bytes)?))
    })
}

fn check_no_options(opts: *const c_void) -> Result<(), Failure> {
    match opts.is_null() {
        true => Ok(()),
        false => Err(Failure::argument(
            "opts is not NULL: settings have functions of their own, such as beebox_object__set_kernel",
        )),
    }
}

/// Links the object for its kernel, verifies its programs, creates its maps and compiles. As
/// `bpf_object__load`.
///
/// Returns 0 or the negative error number, of a program that the verifier refuses that of Linux;
/// `beebox_last_error` and `beebox_last_explanation` say why. An object is loaded once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__load(obj: *mut beebox_object) -> c_int {
    // SAFETY: the caller promises an object.
    number(|| unsafe { boundary::shared(obj, "obj") }?.load())
}

/// Closes the object: its programs, maps and their handles with it. NULL does nothing. As
/// `bpf_object__close`.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__close(obj: *mut beebox_object) {
    // SAFETY: the caller promises an object and its end.
    unsafe { boundary::free(obj) }
}

/// The program of this name, or NULL (ENOENT). It belongs to the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__find_program_by_name(
    obj: *const beebox_object,
    name: *const c_char,
) -> *mut beebox_program {
    pointer(|| {
        // SAFETY: the caller promises an object and a text.
        let (obj, name) = unsafe { (boundary::shared(obj, "obj")?, text(name, "name")?) };
        let program = obj.programs.iter().find(|it| it.is_named(name));
        let known = obj.object.program_names();
        program
            .map(|it| ptr::from_ref(it).cast_mut())
            .ok_or_else(|| absent("program", name, known))
    })
}

/// The map of this name, or NULL (ENOENT). It belongs to the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__find_map_by_name(
    obj: *const beebox_object,
    name: *const c_char,
) -> *mut beebox_map {
    pointer(|| {
        // SAFETY: the caller promises an object and a text.
        let map = unsafe { find_map(obj, name) }?;
        Ok(ptr::from_ref(map).cast_mut())
    })
}

/// The handle of the map of this name, as `beebox_map__fd`; -ENOENT if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__find_map_fd_by_name(
    obj: *const beebox_object,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller promises an object and a text.
    number(|| unsafe { find_map(obj, name) }?.loaded_handle())
}

/// # Safety
/// As the functions that call it.
unsafe fn find_map<'a>(
    obj: *const beebox_object,
    name: *const c_char,
) -> Result<&'a beebox_map, Failure> {
    // SAFETY: the caller promises an object and a text.
    let (obj, name) = unsafe { (boundary::shared(obj, "obj")?, text(name, "name")?) };
    let map = obj.maps.iter().find(|it| it.is_named(name));
    map.ok_or_else(|| absent("map", name, obj.object.map_names()))
}

fn absent(what: &str, name: &str, known: &[String]) -> Failure {
    let known = known.join(", ");
    Failure::new(
        libc::ENOENT,
        format!("the object has no {what} {name}; there are {known}"),
    )
}

/// The program after `prev` in the order of the file, the first one after NULL; NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__next_program(
    obj: *const beebox_object,
    prev: *mut beebox_program,
) -> *mut beebox_program {
    pointer(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        Ok(after(&obj.programs, prev))
    })
}

/// The map after `prev` in the order of the file, the first one after NULL; NULL after the last. Maps
/// of global variables are among them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__next_map(
    obj: *const beebox_object,
    prev: *const beebox_map,
) -> *mut beebox_map {
    pointer(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        Ok(after(&obj.maps, prev))
    })
}

/// The item after one of a list; null after the last, and after what is none of them.
fn after<T>(all: &[T], item: *const T) -> *mut T {
    let place = match item.is_null() {
        true => Some(0),
        false => all.iter().position(|it| ptr::eq(it, item)).map(|at| at + 1),
    };
    let next = place.and_then(|place| all.get(place));
    next.map_or(ptr::null_mut(), |next| ptr::from_ref(next).cast_mut())
}

/// Sets the kernel that the object is linked and verified for: `6.18` (the default), `6.18-minimal`,
/// another built-in one by series, version or distribution (`6.12`, `6.12.117`, `debian-12`),
/// `running`, or the path of BTF or of a directory with files of a kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_kernel(
    obj: *mut beebox_object,
    name: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object and a text.
        let (obj, name) = unsafe { (boundary::shared(obj, "obj")?, text(name, "name")?) };
        let kernel = match name {
            "running" => Kernel::running()?,
            name => match Kernel::preset(name) {
                Ok(kernel) => kernel,
                // A name of another kernel, rather than the path of a file.
                Err(unknown) if !Path::new(name).exists() && !name.contains('/') => {
                    return Err(unknown.into());
                }
                Err(_) => Kernel::open(name)?,
            },
        };
        obj.settings.add(|loader| loader)?;
        *obj.kernel.lock().unwrap_or_else(PoisonError::into_inner) = Some(kernel);
        Ok(0)
    })
}

/// Sets the engine that runs programs: `native` (the default where there is one), `interp` or
/// `checked`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_engine(
    obj: *mut beebox_object,
    name: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object and a text.
        let (obj, name) = unsafe { (boundary::shared(obj, "obj")?, text(name, "name")?) };
        let engine = Engine::ALL.iter().find(|engine| engine.name() == name);
        let unknown =
            || Failure::argument(format!("no engine {name}: it is native, interp or checked"));
        let engine = *engine.ok_or_else(unknown)?;
        obj.settings.add(move |loader| loader.engine(engine))
    })
}

/// Has programs run without verification, in the checked engine: what the verifier would refuse ends a
/// run with an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_unverified(obj: *mut beebox_object) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        obj.settings.add(Loader::unverified)
    })
}

/// Sets the least number of possible CPUs: per-CPU maps hold a value for each. It is 1 by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_cpus(obj: *mut beebox_object, cpus: u32) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        obj.settings.add(move |loader| loader.cpus(cpus))
    })
}

/// Sets the seed of random numbers: with the same seed the same runs have the same results. It is 0 by
/// default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_seed(obj: *mut beebox_object, seed: u64) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        obj.settings.add(move |loader| loader.seed(seed))
    })
}

/// Sets the most bytes that all maps take. It is 1 GiB by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_map_memory(
    obj: *mut beebox_object,
    bytes: u64,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        obj.settings.add(move |loader| loader.map_memory(bytes))
    })
}

/// Opens a perf buffer of so many bytes for each CPU in every `perf_event_array`. Without,
/// `bpf_perf_event_output` returns -ENOENT to programs, as in Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_perf_buffers(
    obj: *mut beebox_object,
    bytes: usize,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        obj.settings.add(move |loader| loader.perf_buffers(bytes))
    })
}

/// Sets the most time of a run in nanoseconds, 0 for none. It is 10 s by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_time_limit(
    obj: *mut beebox_object,
    nanoseconds: u64,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        let limit = (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds));
        obj.settings.add(move |loader| loader.time_limit(limit))
    })
}

/// Sets a global variable, a constant too, or a part of it before loading: `limit = 10`,
/// `ports[2].low = FAST`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__set_variable(
    obj: *mut beebox_object,
    assignment: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object and a text.
        let (obj, text) = unsafe {
            (
                boundary::shared(obj, "obj")?,
                text(assignment, "assignment")?,
            )
        };
        let parsed = Assignment::parse(text);
        let parsed = parsed.map_err(|error| Failure::argument(error.to_string()))?;
        obj.settings.add(move |loader| loader.assign([parsed]))
    })
}

/// Number of CPUs whose values a per-CPU map of the loaded object holds, in place of
/// `libbpf_num_possible_cpus`; -ENOENT before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_object__num_possible_cpus(obj: *const beebox_object) -> c_int {
    number(|| {
        // SAFETY: the caller promises an object.
        let obj = unsafe { boundary::shared(obj, "obj") }?;
        let mut loaded = obj.programs.iter().filter_map(|it| it.loaded().ok());
        let none = || Failure::new(libc::ENOENT, "no program of the object is loaded");
        Ok(loaded.next().ok_or_else(none)?.instance().cpus() as c_int)
    })
}
