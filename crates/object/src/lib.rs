//! The BPF object loader: from ELF files as clang writes them (`.bpf.o`) to programs and
//! map definitions as libbpf hands them to a kernel, without kernel, root or libbpf.
//!
//! [`Object::open`] reads sections, programs, maps, global variables, BTF and extern
//! symbols. The caller may then change what is loaded, the sizes of maps and the values of
//! globals. [`Object::link`] relocates for a [`Kernel`](spec::Kernel) and returns
//! [`Linked`] programs: instructions with their subprogs, func_info, line_info, and map
//! definitions with initial contents.
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
//! What is made is what libbpf 7.2 makes, instruction for instruction, and what libbpf
//! refuses is refused, by the same class of error ([`Problem::errno`]). An [`Error`]
//! says what is wrong, where (section, symbol, instruction, source line) and whose
//! fault it is.
//!
//! | file | what it does |
//! |---|---|
//! | `elf` | the file as plain tables |
//! | `sections`, `programs` | what sections are for; programs and functions in them |
//! | `types`, `datasec` | the types, and what compilers leave out of them |
//! | `externs/` | what is expected of a kernel: configuration, symbols, functions |
//! | `maps/` | declared maps, variables, tables of functions |
//! | `relocate/` | references of instructions, from the file to the finished program |
//! | `attach` | what a program attaches to |
//! | `object`, `linked` | the whole, opened and linked, step by step in libbpf's order |
//! | `overview/` | what an object contains and needs, without linking it |
//! | `linker/` | several objects made into one |
//! | `container` | files that are no objects, and objects inside them |
#![forbid(unsafe_code)]

mod attach;
mod container;
mod datasec;
pub mod elf;
mod error;
pub mod externs;
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
mod weak;

pub use attach::AttachFault;
pub use container::{ContainerFault, ContainerKind, Embedded, objects_in};
pub use datasec::DatasecFault;
pub use error::{Blame, Error, Place, Problem, SourceLine};
pub use linked::{Linked, LinkedProgram, ProgramFault, UnloadableProgram, reference_at};
pub use object::{Object, OpenOptions};
pub use programs::{Code, ProgramId};
pub use reference::{CORE_POISON, KFUNC_POISON, MAP_POISON, Reference, Referent};
pub use relocate::RelocationFault;
pub use types::TypesFault;
pub use weak::weaken;
