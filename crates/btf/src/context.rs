//! The kernel's own context of a program type: the member of `struct bpf_ctx_convert`
//! that stands beside the context which programs name (`get_kern_ctx_btf_id`).

use crate::{Btf, Kind, TypeId};

impl Btf<'_> {
    /// The type of the kernel's context of a program type, such as `struct sk_buff` for
    /// `"sched_cls"`; the name is that of `enum bpf_prog_type` without its prefix
    /// (`get_kern_ctx_btf_id`, `find_kern_ctx_type_id`). `None` if the blob has no such entry.
    /// Linear in the program types.
    #[doc(alias = "get_kern_ctx_btf_id")]
    #[doc(alias = "find_kern_ctx_type_id")]
    pub fn kernel_context(&self, program_type: &str) -> Option<TypeId> {
        let name = format!("BPF_PROG_TYPE_{}_kern", program_type.to_ascii_uppercase());
        let convert = self.find(Kind::Struct, "bpf_ctx_convert")?;
        let mut members = convert.as_composite()?.members();
        let member = members.find(|member| self.string(member.name) == name.as_str())?;
        Some(member.ty)
    }
}
