//! A whole header file: bpftool's text around the types, and declarations of kfuncs.

use super::sort::sorted;
use super::{CDump, DumpError};
use crate::{Btf, Name, Shape, Type, TypeId};

/// Options of the header file.
#[derive(Clone, Debug)]
pub struct COptions {
    /// True for bpftool's stable order, which changes little between kernels; false for
    /// the order of the blob.
    pub sorted: bool,
    /// Types to write, with their dependencies; all types and kfuncs if empty.
    pub roots: Vec<TypeId>,
}

impl Default for COptions {
    fn default() -> COptions {
        COptions {
            sorted: true,
            roots: Vec::new(),
        }
    }
}

const BEFORE: &str = "\
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

#ifndef __ksym
#define __ksym __attribute__((section(\".ksyms\")))
#endif

#ifndef __weak
#define __weak __attribute__((weak))
#endif

#ifndef __bpf_fastcall
#if __has_attribute(bpf_fastcall)
#define __bpf_fastcall __attribute__((bpf_fastcall))
#else
#define __bpf_fastcall
#endif
#endif

";

const AFTER: &str = "\
#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
";

/// C header file of a blob.
pub fn dump_c(btf: &Btf<'_>, options: &COptions) -> Result<Vec<u8>, DumpError> {
    let mut dump = CDump::new(btf);
    dump.put(BEFORE);
    if options.roots.is_empty() {
        let order = match options.sorted {
            true => sorted(btf),
            false => (0..btf.len() as u32).map(TypeId).collect(),
        };
        // bpftool omits the first type, which is `void` only in the order of the blob.
        for &id in &order[1..] {
            dump.add(id)?;
        }
        dump.kernel_functions()?;
    } else {
        for &id in &options.roots {
            dump.add(id)?;
        }
    }
    dump.put(AFTER);
    Ok(dump.out)
}

impl CDump<'_> {
    /// Writes declarations of kfuncs.
    fn kernel_functions(&mut self) -> Result<(), DumpError> {
        self.put("\n/* BPF kfuncs */\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n");
        let btf = self.btf;
        let tagged = |wanted: &'static str| {
            btf.types().filter_map(move |ty| match ty.shape() {
                Shape::DeclTag(tag) if tag.component == -1 && ty.name() == wanted => {
                    function(btf.at(tag.target))
                }
                _ => None,
            })
        };
        let fast: Vec<(Name<'_>, TypeId, TypeId)> = tagged("bpf_fastcall").collect();
        let mut functions: Vec<(Name<'_>, TypeId, TypeId)> = tagged("bpf_kfunc").collect();
        functions.sort_by_key(|&(name, ..)| name);
        for function in &functions {
            self.put("extern ");
            if fast.contains(function) {
                self.put("__bpf_fastcall ");
            }
            let &(name, _, proto) = function;
            self.declaration(proto, name.as_bytes(), 0)?;
            self.put(" __weak __ksym;\n");
        }
        self.put("#endif\n\n");
        Ok(())
    }
}

/// Name, type id and prototype of a function.
fn function(ty: Type<'_>) -> Option<(Name<'_>, TypeId, TypeId)> {
    match ty.shape() {
        Shape::Func(func) => Some((ty.name(), ty.id(), func.proto)),
        _ => None,
    }
}
