//! BTF ids of a registry: names are what is kept, ids belong to one kernel's BTF.

use super::{ArgDetail, KernelType, Layout, Registry};

impl Registry {
    /// Fills in the ids of all structures and kfuncs, by two look-ups of names in
    /// the BTF of the kernel that programs are verified for: of a structure, and of
    /// a function. What that BTF has not becomes id 0.
    pub fn resolve(
        &mut self,
        structure: impl Fn(&str) -> Option<u32>,
        function: impl Fn(&str) -> Option<u32>,
    ) {
        let resolve = |ty: &mut KernelType| ty.btf_id = structure(&ty.name).unwrap_or(0);
        for proto in &mut self.protos {
            for detail in &mut proto.arg_details {
                if let ArgDetail::Btf(ty) = detail {
                    resolve(ty);
                }
            }
            if let Some(ty) = &mut proto.ret_btf {
                resolve(ty);
            }
        }
        for layout in &mut self.layouts {
            if let Layout::Fields(rules) = layout {
                rules
                    .iter_mut()
                    .filter_map(|rule| rule.btf.as_mut())
                    .for_each(resolve);
            }
        }
        self.kfunc_ids.clear();
        for kfunc in self.kfuncs.values_mut() {
            kfunc.btf_id = function(&kfunc.name).unwrap_or(0);
            if kfunc.btf_id != 0 {
                self.kfunc_ids.insert(kfunc.btf_id, kfunc.name.clone());
            }
        }
    }
}
