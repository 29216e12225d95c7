//! Resolution of the names in a registry to BTF ids of one kernel.

use super::{ArgDetail, KernelType, Layout, Registry};

impl Registry {
    /// Adds the kfuncs of another registry whose names it has not.
    pub fn add_kfuncs(&mut self, other: Registry) {
        for (name, kfunc) in other.0.kfuncs {
            self.0.kfuncs.entry(name).or_insert(kfunc);
        }
    }

    /// Sets the BTF ids of all structures and kfuncs, by lookup functions for the name of
    /// a structure and of a function. Missing names get id 0.
    pub fn resolve(
        &mut self,
        structure: impl Fn(&str) -> Option<u32>,
        function: impl Fn(&str) -> Option<u32>,
    ) {
        let resolve = |ty: &mut KernelType| ty.btf_id = structure(&ty.name).unwrap_or(0);
        for proto in &mut self.0.protos {
            for detail in &mut proto.arg_details {
                if let ArgDetail::Btf(ty) = detail {
                    resolve(ty);
                }
            }
            if let Some(ty) = &mut proto.ret_btf {
                resolve(ty);
            }
        }
        for layout in &mut self.0.layouts {
            if let Layout::Fields(rules) = layout {
                rules
                    .iter_mut()
                    .filter_map(|rule| rule.btf.as_mut())
                    .for_each(resolve);
            }
        }
        let args = self
            .0
            .iterators
            .values_mut()
            .flat_map(|target| &mut target.args);
        args.filter_map(|arg| arg.btf.as_mut()).for_each(resolve);
        self.0.kfunc_ids.clear();
        for kfunc in self.0.kfuncs.values_mut() {
            kfunc.btf_id = function(&kfunc.name).unwrap_or(0);
            if kfunc.btf_id != 0 {
                self.0.kfunc_ids.insert(kfunc.btf_id, kfunc.name.clone());
            }
        }
    }
}
