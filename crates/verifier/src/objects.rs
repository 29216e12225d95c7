//! Types of objects that programs allocate, and of those that pointers in values and objects
//! point to.

use btf::fields::{FieldRecord, SpecialField, StructureFields};
use btf::{Kind, TypeId};

use crate::input::Input;
use crate::log::Sink;
use crate::state::{BtfRef, RegKind, RegState, TypeRef};
use crate::{Result, Stop};

impl Input<'_> {
    /// The special fields of a structure of the program; `None` if it has none
    /// (`btf_find_struct_meta`).
    #[doc(alias = "btf_find_struct_meta")]
    pub(crate) fn structure_fields(&self, ty: TypeRef) -> Option<&FieldRecord> {
        if ty.btf != BtfRef::Program {
            return None;
        }
        let found = self.structures.get_or_init(|| {
            let btf = self.program.btf();
            // The kernel does not load types with invalid fields.
            let fields = btf.and_then(|btf| StructureFields::new(btf, self.vmlinux).ok());
            fields.unwrap_or_default()
        });
        found.get(TypeId(ty.id))
    }

    /// The special fields of the object that a register points to (`reg_btf_record`).
    #[doc(alias = "reg_btf_record")]
    pub(crate) fn record_of(&self, reg: &RegState) -> Option<&FieldRecord> {
        if let RegKind::MapValue { map, .. } = reg.kind {
            return reg.flags.is_empty().then(|| self.maps[map].record());
        }
        let RegKind::BtfId { ty } = reg.kind else {
            return None;
        };
        reg.is_allocated().then(|| self.structure_fields(ty))?
    }

    /// True if the object that a register points to has a lock (`reg_may_point_to_spin_lock`).
    #[doc(alias = "reg_may_point_to_spin_lock")]
    pub(crate) fn may_point_to_lock(&self, reg: &RegState) -> bool {
        self.record_of(reg).is_some_and(FieldRecord::has_lock)
    }

    /// The structure that a pointer field points to: that of vmlinux with the name of the
    /// program's, or the program's own (`btf_parse_kptr`).
    #[doc(alias = "btf_parse_kptr")]
    pub(crate) fn kptr_target(&self, field: &SpecialField) -> Result<TypeRef> {
        let Some(btf) = self.program.btf() else {
            return Err(Stop::Bug("a pointer field without types".into()));
        };
        let name = btf.at(field.target).name();
        let named = |types: &btf::Btf<'_>| {
            let mut found = types.find_all(Kind::Struct, name.as_bytes());
            found.next().map(|ty| ty.id())
        };
        if let Some(id) = self.vmlinux.and_then(&named) {
            return Ok(TypeRef::vmlinux(id.0));
        }
        if self
            .modules
            .iter()
            .any(|module| named(&module.btf).is_some())
        {
            return Err(Stop::unsupported(
                "pointer to a structure of a kernel module",
            ));
        }
        Ok(TypeRef::program(field.target.0))
    }

    /// The BTF object that has a type: that of vmlinux for what a module's begins with.
    fn owner(&self, ty: TypeRef) -> BtfRef {
        match ty.btf {
            BtfRef::Module(_)
                if self
                    .vmlinux
                    .is_some_and(|btf| btf.get(TypeId(ty.id)).is_some()) =>
            {
                BtfRef::Vmlinux
            }
            own => own,
        }
    }

    /// The module that has a type of its own where vmlinux has one of its kind and name.
    pub(crate) fn module_with_copy(&self, ty: TypeRef) -> Option<&str> {
        let BtfRef::Module(index) = self.owner(ty) else {
            return None;
        };
        let module = self.modules.get(usize::from(index))?;
        let copy = module.btf.get(TypeId(ty.id))?;
        let mut of_kernel = self.vmlinux?.find_all(copy.kind(), copy.name().as_bytes());
        of_kernel.next().map(|_| module.name.as_str())
    }

    /// True if a structure has, at `off`, the expected one; logs what it has instead
    /// (`btf_struct_ids_match`). `is_strict` allows only the structure itself.
    #[doc(alias = "btf_struct_ids_match")]
    pub(crate) fn has_prefix(
        &self,
        log: &mut Sink<'_>,
        ty: TypeRef,
        expected: TypeRef,
        off: i32,
        is_strict: bool,
    ) -> bool {
        // No type of one BTF object is one of another, but for those of vmlinux, which modules share.
        let (one, other) = (self.owner(ty), self.owner(expected));
        let wanted = match one == other {
            true => TypeId(expected.id),
            false => TypeId::VOID,
        };
        let types = self.btf(ty);
        let found = types.map(|btf| btf.begins_with(TypeId(ty.id), wanted, off, is_strict));
        match found {
            Some(Err(fault)) => {
                verbose!(log, "{fault}\n");
                false
            }
            found => matches!(found, Some(Ok(true))),
        }
    }
}
