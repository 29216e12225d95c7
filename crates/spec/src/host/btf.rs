//! BTF of prototypes, as a module has it.

use std::collections::BTreeMap;

use btf::{Array, Btf, Encoding, Func, Int, Kind, Linkage, Member, Param, TypeId};

use super::{Argument, BadFunctions, Field, NumberType, Parameter, Pointee, Prototype, is_name};

/// Writes the types of prototypes, each once.
pub(super) struct Writer {
    builder: btf::Builder,
    scalars: BTreeMap<NumberType, TypeId>,
    structures: BTreeMap<String, (Vec<Field>, TypeId)>,
    text: Option<TypeId>,
}

impl Writer {
    pub(super) fn new(base: &Btf<'_>) -> Writer {
        Writer {
            builder: btf::Builder::module_of(base),
            scalars: BTreeMap::new(),
            structures: BTreeMap::new(),
            text: None,
        }
    }

    /// The blob, and the ids of the functions.
    pub(super) fn write(
        mut self,
        functions: &[Prototype],
    ) -> Result<(Vec<u8>, Vec<TypeId>), BadFunctions> {
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
