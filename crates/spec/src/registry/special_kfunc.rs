//! kfuncs with rules of their own in the verifier (`enum special_kfunc_type`): one row for
//! each.

use crate::callback::CallbackKind;

/// Properties of a kfunc beside its flags.
#[derive(Clone, Copy)]
enum Trait {
    /// It may be called while a lock is held (`kfunc_spin_allowed`).
    UnderLock,
    /// It may move the packet's bytes (`is_kfunc_pkt_changing`).
    ChangesPacket,
    /// It is for programs that are bound to a network device (`bpf_dev_bound_kfunc_id`).
    DeviceBound,
    /// It takes a lock, or fails to.
    TriesLock,
    /// It puts its second argument into a list or tree.
    GivesAway,
    /// It returns an object of a type of the program.
    ReturnsAllocated,
    /// Linux puts the instructions in front of a call that set an argument of its own: the special
    /// fields of an object (`fixup_kfunc_call`). Their address takes two slots.
    GetsFields,
    /// Likewise the size of an object, or the offset of a node.
    GetsNumber,
    /// It means something to the verifier only; its call does nothing.
    Nothing,
    /// It means something to the verifier only; its call returns the first argument
    /// (`fixup_kfunc_call`).
    Cast,
}

macro_rules! special_kfuncs {
    ($($id:ident $name:literal [$($trait:ident)*] $(calls $callback:ident)?;)*) => {
        /// kfunc with rules of its own (`enum special_kfunc_type`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[doc(alias = "special_kfunc_type")]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum SpecialKfunc {
            $($id,)*
        }

        impl SpecialKfunc {
            /// Every one with its name.
            #[cfg(test)]
            const ALL: &'static [(SpecialKfunc, &'static str)] =
                &[$((SpecialKfunc::$id, $name),)*];

            /// The one with this name.
            pub fn named(name: &str) -> Option<SpecialKfunc> {
                Some(match name {
                    $($name => SpecialKfunc::$id,)*
                    _ => return None,
                })
            }

            const fn has(self, one: Trait) -> bool {
                let traits = match self {
                    $(SpecialKfunc::$id => 0u16 $(| 1 << Trait::$trait as u16)*,)*
                };
                traits & 1 << one as u16 != 0
            }

            /// The function of the program that it is given, if it is given one.
            pub fn callback(self) -> Option<CallbackKind> {
                match self {
                    $(SpecialKfunc::$id => None$(.or(Some(CallbackKind::$callback)))?,)*
                }
            }
        }
    };
}

special_kfuncs! {
    Trap "__bpf_trap" [];
    Throw "bpf_throw" [];
    RcuReadLock "bpf_rcu_read_lock" [Nothing];
    RcuReadUnlock "bpf_rcu_read_unlock" [Nothing];
    PreemptDisable "bpf_preempt_disable" [Nothing];
    PreemptEnable "bpf_preempt_enable" [Nothing];
    CastToKernCtx "bpf_cast_to_kern_ctx" [Cast];
    RdonlyCast "bpf_rdonly_cast" [Cast];
    GetKmemCache "bpf_get_kmem_cache" [];
    XdpPullData "bpf_xdp_pull_data" [ChangesPacket];
    XdpMetadataRxTimestamp "bpf_xdp_metadata_rx_timestamp" [DeviceBound];
    XdpMetadataRxHash "bpf_xdp_metadata_rx_hash" [DeviceBound];
    XdpMetadataRxVlanTag "bpf_xdp_metadata_rx_vlan_tag" [DeviceBound];
    ObjNew "bpf_obj_new_impl" [ReturnsAllocated GetsFields GetsNumber];
    ObjDrop "bpf_obj_drop_impl" [GetsFields];
    PercpuObjNew "bpf_percpu_obj_new_impl" [ReturnsAllocated GetsFields GetsNumber];
    PercpuObjDrop "bpf_percpu_obj_drop_impl" [GetsFields];
    RefcountAcquire "bpf_refcount_acquire_impl" [UnderLock ReturnsAllocated GetsFields];
    ListPushFront "bpf_list_push_front_impl" [UnderLock GivesAway GetsFields GetsNumber];
    ListPushBack "bpf_list_push_back_impl" [UnderLock GivesAway GetsFields GetsNumber];
    ListPopFront "bpf_list_pop_front" [UnderLock];
    ListPopBack "bpf_list_pop_back" [UnderLock];
    ListFront "bpf_list_front" [UnderLock];
    ListBack "bpf_list_back" [UnderLock];
    RbtreeAdd "bpf_rbtree_add_impl" [UnderLock GivesAway GetsFields GetsNumber] calls RbtreeAdd;
    RbtreeRemove "bpf_rbtree_remove" [UnderLock];
    RbtreeFirst "bpf_rbtree_first" [UnderLock];
    RbtreeRoot "bpf_rbtree_root" [UnderLock];
    RbtreeLeft "bpf_rbtree_left" [UnderLock];
    RbtreeRight "bpf_rbtree_right" [UnderLock];
    IterNumNew "bpf_iter_num_new" [UnderLock];
    IterNumNext "bpf_iter_num_next" [UnderLock];
    IterNumDestroy "bpf_iter_num_destroy" [UnderLock];
    IterCssTaskNew "bpf_iter_css_task_new" [];
    DynptrFromSkb "bpf_dynptr_from_skb" [];
    DynptrFromXdp "bpf_dynptr_from_xdp" [];
    DynptrFromSkbMeta "bpf_dynptr_from_skb_meta" [];
    DynptrSlice "bpf_dynptr_slice" [];
    DynptrSliceRdwr "bpf_dynptr_slice_rdwr" [];
    DynptrClone "bpf_dynptr_clone" [];
    LocalIrqSave "bpf_local_irq_save" [];
    LocalIrqRestore "bpf_local_irq_restore" [];
    ResSpinLock "bpf_res_spin_lock" [UnderLock TriesLock];
    ResSpinUnlock "bpf_res_spin_unlock" [UnderLock];
    ResSpinLockIrqsave "bpf_res_spin_lock_irqsave" [UnderLock TriesLock];
    ResSpinUnlockIrqrestore "bpf_res_spin_unlock_irqrestore" [UnderLock];
    WqSetCallback "bpf_wq_set_callback_impl" [] calls Workqueue;
    TaskWorkScheduleSignal "bpf_task_work_schedule_signal_impl" [] calls TaskWork;
    TaskWorkScheduleResume "bpf_task_work_schedule_resume_impl" [] calls TaskWork;
    SessionCookie "bpf_session_cookie" [];
}

impl SpecialKfunc {
    /// True if it may be called while a lock is held (`kfunc_spin_allowed`).
    #[doc(alias = "kfunc_spin_allowed")]
    pub const fn is_allowed_under_lock(self) -> bool {
        self.has(Trait::UnderLock)
    }

    /// True if it puts objects into lists and trees, takes them out, or counts one more reference of
    /// them.
    pub const fn changes_graph(self) -> bool {
        matches!(
            self,
            SpecialKfunc::ListPushFront
                | SpecialKfunc::ListPushBack
                | SpecialKfunc::ListPopFront
                | SpecialKfunc::ListPopBack
                | SpecialKfunc::RbtreeAdd
                | SpecialKfunc::RbtreeRemove
                | SpecialKfunc::RbtreeFirst
                | SpecialKfunc::RefcountAcquire
        )
    }

    /// True if it may move the packet's bytes (`is_kfunc_pkt_changing`).
    #[doc(alias = "is_kfunc_pkt_changing")]
    pub const fn changes_packet(self) -> bool {
        self.has(Trait::ChangesPacket)
    }

    /// True if it is for programs that are bound to a network device
    /// (`bpf_dev_bound_kfunc_id`).
    #[doc(alias = "bpf_dev_bound_kfunc_id")]
    pub const fn is_device_bound(self) -> bool {
        self.has(Trait::DeviceBound)
    }

    /// True if it takes a lock, or fails to.
    pub const fn may_fail_to_lock(self) -> bool {
        self.has(Trait::TriesLock)
    }

    /// True if it puts its second argument into a list or tree.
    pub const fn gives_away(self) -> bool {
        self.has(Trait::GivesAway)
    }

    /// True if it returns an object of a type of the program.
    pub const fn returns_allocated(self) -> bool {
        self.has(Trait::ReturnsAllocated)
    }

    /// Instructions that Linux puts in front of a call, which set arguments of its own: the size
    /// of an object, its special fields, the offset of a node (`fixup_kfunc_call`).
    #[doc(alias = "fixup_kfunc_call")]
    pub const fn argument_insns(self) -> u32 {
        2 * self.has(Trait::GetsFields) as u32 + self.has(Trait::GetsNumber) as u32
    }

    /// What a call does in a run, if it means something to the verifier only.
    pub const fn erased(self) -> Option<Erased> {
        if self.has(Trait::Nothing) {
            Some(Erased::Nothing)
        } else if self.has(Trait::Cast) {
            Some(Erased::Argument)
        } else {
            None
        }
    }
}

/// What is left in a run of a call that means something to the verifier only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// Nothing; it returns nothing.
    Nothing,
    /// It returns its first argument.
    Argument,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::since;

    #[test]
    fn names_are_those_of_linux() {
        for &(kfunc, name) in SpecialKfunc::ALL {
            assert_eq!(SpecialKfunc::named(name), Some(kfunc));
            assert!(since::kfunc_index(name).is_some(), "{name}");
        }
    }
}
