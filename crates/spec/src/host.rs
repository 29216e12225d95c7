//! Functions of a host as kfuncs: prototypes, and the module whose BTF has them.
//!
//! A prototype is written in the kernel's way: memory with a size is a pointer and a number
//! whose name ends in `__sz`, a constant string a pointer whose name ends in `__str`. So the
//! verifier judges calls of host functions as those of Linux's kfuncs, with the same messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::Arc;

use btf::{Array, Btf, Encoding, Func, Int, Kind, Linkage, Member, Param, TypeId};

use crate::Kernel;
use crate::kernel::{KernelField, Module};
use crate::registry::{Kfunc, KfuncFlags, ProgramTypes};

/// Name of the module whose BTF has the prototypes.
pub const MODULE: &str = "host";

/// Most functions of a host.
pub const MOST_FUNCTIONS: usize = 64;

/// Most registers that arguments take.
const MOST_WORDS: usize = 5;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum NumberType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl NumberType {
    /// Its type in C.
    pub const fn name(self) -> &'static str {
        match self {
            NumberType::Bool => "_Bool",
            NumberType::U8 => "unsigned char",
            NumberType::U16 => "unsigned short",
            NumberType::U32 => "unsigned int",
            NumberType::U64 => "unsigned long long",
            NumberType::I8 => "signed char",
            NumberType::I16 => "short",
            NumberType::I32 => "int",
            NumberType::I64 => "long long",
        }
    }

    /// Its bytes.
    pub const fn size(self) -> u32 {
        match self {
            NumberType::Bool | NumberType::U8 | NumberType::I8 => 1,
            NumberType::U16 | NumberType::I16 => 2,
            NumberType::U32 | NumberType::I32 => 4,
            NumberType::U64 | NumberType::I64 => 8,
        }
    }

    const fn encoding(self) -> Encoding {
        match self {
            NumberType::Bool => Encoding::BOOL,
            NumberType::I8 | NumberType::I16 | NumberType::I32 | NumberType::I64 => {
                Encoding::SIGNED
            }
            NumberType::U8 | NumberType::U16 | NumberType::U32 | NumberType::U64 => Encoding::NONE,
        }
    }
}

/// A member of a structure: a number, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type of the number.
    pub scalar: NumberType,
    /// Elements of an array; `None` for a number.
    pub count: Option<u32>,
}

/// What an argument points to: a number or a structure of numbers without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointee {
    /// A number.
    Scalar(NumberType),
    /// A structure.
    Structure {
        /// Name.
        name: String,
        /// Members, one behind the other.
        fields: Vec<Field>,
    },
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A number.
    Scalar(NumberType),
    /// Memory, and its size as the next argument.
    Bytes {
        /// The function may write it.
        is_written: bool,
    },
    /// A constant string.
    Text,
    /// Memory of one type.
    Object {
        /// Its type.
        pointee: Pointee,
        /// The function may write it.
        is_written: bool,
    },
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// What it takes.
    pub argument: Argument,
}

/// The prototype of a function of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Name.
    pub name: String,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Type of the result.
    pub returns: Option<NumberType>,
    /// Flags: those of the call (`SLEEPABLE`, `TRUSTED_ARGS` …).
    pub flags: KfuncFlags,
    /// Program types that may call it.
    pub programs: ProgramTypes,
}

/// Why a kernel cannot have functions of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadFunctions {
    /// The kernel has no BTF.
    NoTypes,
    /// More than [`MOST_FUNCTIONS`] functions.
    Count(usize),
    /// The arguments of a function take more than five registers.
    Arguments {
        /// Name of the function.
        name: String,
        /// Registers that they take.
        words: usize,
    },
    /// A function has a flag that needs what functions of a host do not have: references,
    /// pointers as results, iterators, arenas.
    Flags {
        /// Name of the function.
        name: String,
    },
    /// Two functions, or a function and one of the kernel, have the same name.
    Name(String),
    /// Two structures of the same name have other members.
    Structure(String),
    /// Names are not those of C.
    NotAName(String),
}

impl fmt::Display for BadFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadFunctions::NoTypes => {
                f.write_str("host functions: the description of the kernel has no BTF")
            }
            BadFunctions::Count(count) => {
                write!(
                    f,
                    "host functions: {count}, at most {MOST_FUNCTIONS} are known"
                )
            }
            BadFunctions::Arguments { name, words } => write!(
                f,
                "host function {name}: its arguments take {words} registers, at most {MOST_WORDS} \
                 are passed; memory with a size takes two"
            ),
            BadFunctions::Flags { name } => write!(
                f,
                "host function {name}: only SLEEPABLE, DESTRUCTIVE, TRUSTED_ARGS and RCU_PROTECTED \
                 are flags of functions of a host"
            ),
            BadFunctions::Name(name) => {
                write!(f, "host function {name}: another function has this name")
            }
            BadFunctions::Structure(name) => write!(
                f,
                "host functions: structures named {name} have different members"
            ),
            BadFunctions::NotAName(name) => {
                write!(f, "host functions: {name:?} is no name in C")
            }
        }
    }
}

impl std::error::Error for BadFunctions {}

impl Prototype {
    /// Registers that the arguments take.
    pub fn words(&self) -> usize {
        let words = self
            .parameters
            .iter()
            .map(|parameter| match parameter.argument {
                Argument::Bytes { .. } => 2,
                Argument::Scalar(_) | Argument::Text | Argument::Object { .. } => 1,
            });
        words.sum()
    }

    fn check(&self) -> Result<(), BadFunctions> {
        const FLAGS: u32 = KfuncFlags::SLEEPABLE.0
            | KfuncFlags::DESTRUCTIVE.0
            | KfuncFlags::TRUSTED_ARGS.0
            | KfuncFlags::RCU_PROTECTED.0;
        let name = self.name.clone();
        let words = self.words();
        if words > MOST_WORDS {
            return Err(BadFunctions::Arguments { name, words });
        }
        if self.flags.0 & !FLAGS != 0 {
            return Err(BadFunctions::Flags { name });
        }
        let names = self.parameters.iter().map(|parameter| &parameter.name);
        match names.chain([&self.name]).find(|name| !is_name(name)) {
            Some(name) => Err(BadFunctions::NotAName(name.clone())),
            None => Ok(()),
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_first) && bytes.all(|byte| is_first(byte) || byte.is_ascii_digit())
}

/// The C header with declarations of functions for programs; it needs no other.
pub fn header(functions: &[Prototype]) -> String {
    let mut text = String::from(
        "/* Functions of the host as kernel functions. */\n\
         #pragma once\n\
         \n\
         #ifndef __ksym\n\
         #define __ksym __attribute__((section(\".ksyms\")))\n\
         #endif\n\
         #ifndef __weak\n\
         #define __weak __attribute__((weak))\n\
         #endif\n",
    );
    let mut structures = BTreeMap::new();
    for parameter in functions.iter().flat_map(|function| &function.parameters) {
        if let Argument::Object { pointee, .. } = &parameter.argument
            && let Pointee::Structure { name, fields } = pointee
        {
            structures.insert(name, fields);
        }
    }
    for (name, fields) in structures {
        let _ = write!(text, "\nstruct {name} {{\n");
        for field in fields {
            let count = field
                .count
                .map_or(String::new(), |count| format!("[{count}]"));
            let _ = writeln!(text, "\t{} {}{count};", field.scalar.name(), field.name);
        }
        text.push_str("};\n");
    }
    for function in functions {
        let _ = write!(text, "\nextern {function} __weak __ksym;\n");
    }
    text
}

impl fmt::Display for Prototype {
    /// The declaration in C, without attributes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.returns.map_or("void", NumberType::name);
        write!(f, "{result} {}(", self.name)?;
        for (at, parameter) in self.parameters.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{parameter}")?;
        }
        if self.parameters.is_empty() {
            f.write_str("void")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        let constant = |is_written: bool| if is_written { "" } else { "const " };
        match &self.argument {
            Argument::Scalar(scalar) => write!(f, "{} {name}", scalar.name()),
            Argument::Text => write!(f, "const char *{name}__str"),
            Argument::Bytes { is_written } => {
                let constant = constant(*is_written);
                write!(f, "{constant}void *{name}, unsigned int {name}__sz")
            }
            Argument::Object {
                pointee,
                is_written,
            } => {
                let constant = constant(*is_written);
                match pointee {
                    Pointee::Scalar(scalar) => write!(f, "{constant}{} *{name}", scalar.name()),
                    Pointee::Structure { name: ty, .. } => {
                        write!(f, "{constant}struct {ty} *{name}")
                    }
                }
            }
        }
    }
}

impl Kernel {
    /// Adds functions of a host as those of a module behind the others. Programs refer to
    /// them as to kfuncs of Linux.
    ///
    /// # Errors
    /// If a prototype cannot be one of a kfunc.
    pub fn with_host_functions(self, functions: &[Prototype]) -> Result<Kernel, BadFunctions> {
        let base = self.btf().cloned().ok_or(BadFunctions::NoTypes)?;
        if functions.len() > MOST_FUNCTIONS {
            return Err(BadFunctions::Count(functions.len()));
        }
        let mut names = BTreeSet::new();
        for function in functions {
            function.check()?;
            let is_of_kernel = base.find(Kind::Func, &function.name).is_some();
            if is_of_kernel || !names.insert(&function.name) {
                return Err(BadFunctions::Name(function.name.clone()));
            }
        }
        let (blob, ids) = Writer::new(&base).write(functions)?;
        let btf = Btf::parse_module(blob, base).expect("types as they were written");
        let kfuncs = functions.iter().zip(ids).map(|(function, id)| Kfunc {
            name: function.name.as_str().into(),
            btf_id: id.0,
            flags: function.flags,
            program_types: function.programs,
            exceptions: Vec::new(),
        });
        let mut modules = self.modules().to_vec();
        modules.retain(|module| module.name != MODULE);
        modules.push(Module {
            name: MODULE.to_owned(),
            btf: Arc::new(btf),
            kfuncs: Some(kfuncs.collect()),
        });
        let source = self.source(KernelField::Modules).clone();
        Ok(self.with_modules(modules, source))
    }
}

/// True if a module has exactly these functions: what was verified for it holds for them.
pub fn is_module_of(module: &Module, functions: &[Prototype]) -> bool {
    let Some((base, kfuncs)) = module.btf.base().zip(module.kfuncs.as_deref()) else {
        return false;
    };
    let Ok((blob, ids)) = Writer::new(base).write(functions) else {
        return false;
    };
    let is_same = |((kfunc, id), function): ((&Kfunc, TypeId), &Prototype)| {
        kfunc.btf_id == id.0 && *kfunc.name == *function.name
    };
    module.btf.as_bytes() == blob
        && kfuncs.len() == functions.len()
        && kfuncs.iter().zip(ids).zip(functions).all(is_same)
}

/// Writes the types of prototypes, each once.
struct Writer {
    builder: btf::Builder,
    scalars: BTreeMap<NumberType, TypeId>,
    structures: BTreeMap<String, (Vec<Field>, TypeId)>,
    text: Option<TypeId>,
}

impl Writer {
    fn new(base: &Btf<'_>) -> Writer {
        Writer {
            builder: btf::Builder::module_of(base),
            scalars: BTreeMap::new(),
            structures: BTreeMap::new(),
            text: None,
        }
    }

    /// The blob, and the ids of the functions.
    fn write(mut self, functions: &[Prototype]) -> Result<(Vec<u8>, Vec<TypeId>), BadFunctions> {
        let mut ids = Vec::new();
        for function in functions {
            let mut params = Vec::new();
            for parameter in &function.parameters {
                self.parameter(parameter, &mut params)?;
            }
            let returns = function.returns.map(|scalar| self.scalar(scalar));
            let proto = (self.builder).proto(returns.unwrap_or(TypeId::VOID), &params);
            let name = self.builder.string(&function.name);
            let func = Func {
                proto,
                linkage: Linkage::STATIC,
            };
            ids.push(self.builder.func(name, func));
        }
        Ok((self.builder.finish(), ids))
    }

    fn parameter(
        &mut self,
        parameter: &Parameter,
        params: &mut Vec<Param>,
    ) -> Result<(), BadFunctions> {
        let name = &parameter.name;
        let (name, ty) = match &parameter.argument {
            Argument::Scalar(scalar) => (name.clone(), self.scalar(*scalar)),
            Argument::Text => {
                let text = self.text();
                (format!("{name}__str"), self.pointer(text, false))
            }
            Argument::Bytes { is_written } => {
                (name.clone(), self.pointer(TypeId::VOID, *is_written))
            }
            Argument::Object {
                pointee,
                is_written,
            } => {
                let pointee = self.pointee(pointee)?;
                (name.clone(), self.pointer(pointee, *is_written))
            }
        };
        let name = self.builder.string(name);
        params.push(Param { name, ty });
        if let Argument::Bytes { .. } = parameter.argument {
            let name = self.builder.string(format!("{}__sz", parameter.name));
            let ty = self.scalar(NumberType::U32);
            params.push(Param { name, ty });
        }
        Ok(())
    }

    fn pointee(&mut self, pointee: &Pointee) -> Result<TypeId, BadFunctions> {
        let (name, fields) = match pointee {
            Pointee::Scalar(scalar) => return Ok(self.scalar(*scalar)),
            Pointee::Structure { name, fields } => (name, fields),
        };
        if let Some((known, id)) = self.structures.get(name) {
            return match known == fields {
                true => Ok(*id),
                false => Err(BadFunctions::Structure(name.clone())),
            };
        }
        let fields_are_named = fields.iter().map(|field| &field.name);
        if let Some(name) = fields_are_named.chain([name]).find(|name| !is_name(name)) {
            return Err(BadFunctions::NotAName(name.clone()));
        }
        let mut members = Vec::new();
        let mut size = 0;
        for field in fields {
            let mut ty = self.scalar(field.scalar);
            if let Some(count) = field.count {
                let index = self.scalar(NumberType::U32);
                ty = self.builder.array(Array {
                    element: ty,
                    index,
                    count,
                });
            }
            members.push(Member {
                name: self.builder.string(&field.name),
                ty,
                bit_offset: 8 * size,
                bits: 0,
            });
            size += field.scalar.size() * field.count.unwrap_or(1);
        }
        let text = self.builder.string(name);
        let id = (self.builder).composite(Kind::Struct, text, size, &members);
        self.structures.insert(name.clone(), (fields.clone(), id));
        Ok(id)
    }

    fn pointer(&mut self, to: TypeId, is_written: bool) -> TypeId {
        let none = self.builder.string("");
        let to = match is_written {
            true => to,
            false => self.builder.reference(Kind::Const, none, to),
        };
        self.builder.reference(Kind::Ptr, none, to)
    }

    fn scalar(&mut self, scalar: NumberType) -> TypeId {
        if let Some(id) = self.scalars.get(&scalar) {
            return *id;
        }
        let id = self.int(scalar.name(), scalar.size(), scalar.encoding());
        self.scalars.insert(scalar, id);
        id
    }

    fn text(&mut self) -> TypeId {
        if let Some(id) = self.text {
            return id;
        }
        let id = self.int("char", 1, Encoding::SIGNED);
        self.text = Some(id);
        id
    }

    fn int(&mut self, name: &str, size: u32, encoding: Encoding) -> TypeId {
        let name = self.builder.string(name);
        let int = Int {
            size,
            encoding,
            offset: 0,
            bits: 8 * size,
        };
        self.builder.int(name, int)
    }
}
