//! The BPF object loader: links ELF objects of clang (`.bpf.o`) into programs and map
//! definitions as libbpf does, without kernel, privilege or libbpf.
//!
//! [`Object::open`] parses sections, programs, maps, global variables, BTF and extern
//! symbols. The caller may then change which programs are loaded, the sizes of maps and
//! the values of globals. [`Object::link`] relocates for a [`Kernel`](spec::Kernel) and
//! returns [`Linked`] programs: instructions with subprogs, func_info and line_info, and
//! map definitions with initial contents.
//!
//! ```
//! use beebox_object::Object;
//!
//! # let file = include_bytes!("../tests/objects/calls.o");
//! let mut object = Object::open(file)?;
//! let names: Vec<_> = object.programs().map(|(_, program)| program.name.to_string()).collect();
//! assert_eq!(names, ["straight", "backwards", "looping", "alone"]);
//!
//! // Before it is linked: another size for a map, fewer programs.
//! let counts = object.maps().named("counts").expect("it is declared");
//! object.maps_mut().get_mut(counts).expect("it is there").set_max_entries(16);
//! object.set_autoload(|program| program.name == "straight");
//!
//! // This object asks nothing of a kernel.
//! let linked = object.link(&spec::Kernel::default())?;
//! let straight = &linked.programs[0].program;
//! assert_eq!(straight.kind(), spec::programs::ProgramType::Xdp);
//! let functions: Vec<_> = straight.subprogs().iter().map(|it| &it.name[..]).collect();
//! assert_eq!(functions, ["straight", "middle", "leaf"]);
//! assert_eq!(straight.maps()[0].params.max_entries, 16);
//! # Ok::<(), beebox_object::Error>(())
//! ```
//!
//! Objects follow the conventions of a loader ([`spec::loader::LoaderKind`]): section names, map
//! definitions, undefined symbols. [`OpenOptions::loader`] sets it, [`Object::open_guessing`]
//! guesses it.
//!
//! Programs and maps equal those of libbpf 7.2, instruction for instruction, and what
//! libbpf refuses is refused with the same class of error ([`Problem::errno`]). An
//! [`Error`] states the problem, its place (section, symbol, instruction, source line)
//! and who can fix it ([`Blame`]).
//!
//! | file | contents |
//! |---|---|
//! | `elf` | tables of the ELF file |
//! | `sections`, `programs` | classification of sections; programs and functions in them |
//! | `types`, `datasec` | BTF and BTF.ext; completion of DATASECs |
//! | `externs/` | extern symbols: kconfig, ksyms, kfuncs |
//! | `maps/` | declared maps, global variables, struct_ops |
//! | `relocate/` | relocations of instructions, CO-RE, subprogs, func_info and line_info |
//! | `attach` | program type, attach type and attach target |
//! | `guess` | the loader that an object is written for |
//! | `object`, `linked` | opening and linking, in libbpf's order |
//! | `overview/` | contents and requirements of an object, without linking |
//! | `unlinked` | objects of the other byte order or with legacy maps, for listings |
//! | `linker/` | static linking of several objects into one |
//! | `container` | files that are not objects, and objects embedded in them |
//!
//! # Modules
//!
//! `elf.rs` makes tables of the file; `sections.rs` and `programs.rs` classify them; `maps/`
//! collects maps (declared, data, struct_ops) with initial contents; `externs/` collects and
//! resolves externs; `datasec.rs` completes types that compilers leave open; `relocate/` resolves
//! the file's relocations (`patches.rs`), CO-RE (`core.rs`), called functions (`assemble.rs`,
//! `info.rs`, `callback.rs`) and data (`data.rs`); `object.rs` and `linked.rs` are the steps in
//! libbpf's order; `container.rs` recognises files that contain objects. `linker/` makes one object
//! of several: `input.rs` is one checked file, `output.rs` the result and its ELF layout (libelf's,
//! so that the bytes are libbpf's); `symbols.rs` resolves symbols, `agreement.rs` and `maps.rs`
//! compare declarations; `relocations.rs`, `types.rs` and `info.rs` adjust relocations, types and
//! `.BTF.ext`. `overview/` lists what an object contains and needs without linking;
//! `overview/link_report.rs` links program by program, `overview/reach.rs` finds what runs may reach
//! where constants decide branches.
#![forbid(unsafe_code)]

mod attach;
mod container;
mod datasec;
pub mod elf;
mod error;
pub mod externs;
mod guess;
mod linked;
pub mod linker;
pub mod maps;
mod object;
pub mod overview;
pub mod programs;
mod reference;
mod relocate;
pub mod sections;
mod types;
pub mod unlinked;
mod weak;

pub use attach::AttachFault;
pub use container::{ContainerFault, ContainerKind, Embedded, objects_in};
pub use datasec::DatasecFault;
pub use error::{Blame, Error, Place, Problem, SourceLine};
pub use guess::{Guess, GuessReason};
pub use linked::{
    LinkSession, Linked, LinkedProgram, LinkedPrograms, ProgramFault, UnloadableProgram,
    reference_at,
};
pub use object::{Object, OpenOptions};
pub use programs::{ProgramDef, ProgramId};
pub use reference::{CORE_POISON, KFUNC_POISON, MAP_POISON, Reference, Referent};
pub use relocate::RelocationFault;
pub use types::BtfFault;
pub use weak::make_undefined_symbols_weak;
