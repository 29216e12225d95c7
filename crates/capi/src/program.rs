//! Programs of objects.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use beebox::{Engine, Program, ProgramType};

use crate::boundary::{Failure, number, shared, text_for_c, value};
use crate::object::Settings;

/// A program of an object, to which it belongs.
#[allow(non_camel_case_types)]
pub struct beebox_program {
    name: CString,
    pub(crate) settings: Settings,
    loaded: OnceLock<(Program, c_int)>,
}

impl beebox_program {
    pub(crate) fn new(name: &str) -> beebox_program {
        beebox_program {
            name: text_for_c(name),
            settings: Settings::new(),
            loaded: OnceLock::new(),
        }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.to_bytes() == name.as_bytes()
    }

    pub(crate) fn set_loaded(&self, program: Program, handle: c_int) {
        // It is loaded once.
        let _ = self.loaded.set((program, handle));
    }

    /// The loaded program.
    pub(crate) fn loaded(&self) -> Result<&Program, Failure> {
        Ok(&self.loaded_pair()?.0)
    }

    /// Its handle, if it is loaded.
    pub(crate) fn handle(&self) -> Option<c_int> {
        self.loaded.get().map(|(_, handle)| *handle)
    }

    fn loaded_pair(&self) -> Result<&(Program, c_int), Failure> {
        self.loaded.get().ok_or_else(|| {
            let name = self.name.to_string_lossy();
            Failure::new(libc::ENOENT, format!("program {name} is not loaded"))
        })
    }
}

/// Name of the program; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__name(prog: *const beebox_program) -> *const c_char {
    // SAFETY: the caller promises a program.
    value(
        || Ok(unsafe { shared(prog, "prog") }?.name.as_ptr()),
        |_| ptr::null(),
    )
}

/// Handle of the loaded program, for `beebox_prog_test_run_opts` and program arrays, or the negative
/// error number. It ends with the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__fd(prog: *const beebox_program) -> c_int {
    // SAFETY: the caller promises a program.
    number(|| Ok(unsafe { shared(prog, "prog") }?.loaded_pair()?.1))
}

/// Type of the loaded program (`enum bpf_prog_type`), or the negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__type(prog: *const beebox_program) -> c_int {
    // SAFETY: the caller promises a program.
    number(|| Ok(unsafe { shared(prog, "prog") }?.loaded()?.kind().number() as c_int))
}

/// Name of the engine that runs the loaded program: `native`, `interp` or `checked`; NULL before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__engine(prog: *const beebox_program) -> *const c_char {
    let engine = || {
        // SAFETY: the caller promises a program.
        let name = match unsafe { shared(prog, "prog") }?.loaded()?.engine() {
            Engine::Native => c"native",
            Engine::Interp => c"interp",
            Engine::Checked => c"checked",
        };
        Ok(name.as_ptr())
    };
    value(engine, |_| ptr::null())
}

/// Sets whether the program is loaded with the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__set_autoload(
    prog: *mut beebox_program,
    autoload: bool,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a program.
        let prog = unsafe { shared(prog, "prog") }?;
        let name = prog.name.to_string_lossy().into_owned();
        prog.settings
            .add(move |loader| loader.autoload(&name, autoload))
    })
}

/// Sets the type of the program (`enum bpf_prog_type`), in place of what its section name implies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__set_type(prog: *mut beebox_program, kind: u32) -> c_int {
    number(|| {
        // SAFETY: the caller promises a program.
        let prog = unsafe { shared(prog, "prog") }?;
        let name = prog.name.to_string_lossy().into_owned();
        let unknown = || Failure::argument(format!("Linux has no program type {kind}"));
        let kind = ProgramType::from_number(kind).ok_or_else(unknown)?;
        prog.settings
            .add(move |loader| loader.program_type(&name, kind))
    })
}
