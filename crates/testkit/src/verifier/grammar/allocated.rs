//! Objects that the program allocates: kept in values of maps, in lists and in trees.

use super::declarations::{KEPT, NODE, NODE_LIST, NODE_TREE, NUMBERS, OBJECTS};
use super::target::Family;
use super::{Function, Grammar, Holds};

/// Offsets of the lock, the list and the tree in values of [`OBJECTS`].
const LOCK: u32 = 0;
const LIST: u32 = 8;
const TREE: u32 = 24;

impl Grammar<'_, '_> {
    /// An object that is allocated, perhaps written, and dropped or kept.
    pub(super) fn allocated(&mut self) {
        // A program whose functions have no types allocates nothing.
        let allocates = self.is_typed && self.target.has(Family::Objects);
        if !allocates && !self.choices.one_in(30) {
            return self.section();
        }
        let (done, kept) = (self.label(), 7 + self.choices.below(3));
        let is_node = self.choices.percent(70);
        let (ty, size) = if is_node { (NODE, 80) } else { (NUMBERS, 16) };
        self.line(&format!("r1 = {ty}"));
        self.line("r2 = 0");
        self.kfunc("bpf_obj_new_impl");
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{done}"));
        }
        self.held(|grammar| {
            let at = match grammar.choices.one_in(40) {
                true => grammar.choices.below(size) & !7,
                false => grammar.choices.pick(&[0, size - 8]),
            };
            match grammar.choices.below(3) {
                0 => grammar.line(&format!("*(u64 *)(r0 + {at}) = 1")),
                1 => grammar.line(&format!("r1 = *(u64 *)(r0 + {at})")),
                _ => grammar.line(&format!("*(u32 *)(r0 + {at}) = 5")),
            }
        });
        self.line(&format!("r{kept} = r0"));
        self.holds[kept as usize] = Holds::Nothing;
        let has_locks = self.target.has(Family::Locks);
        match self.choices.below(12) {
            0..2 if has_locks && is_node => self.add_to_list(kept),
            2..4 if has_locks && is_node => self.add_to_tree(kept),
            4 if is_node => {
                self.line(&format!("r1 = r{kept}"));
                self.line("r2 = 0");
                self.kfunc("bpf_refcount_acquire_impl");
                self.line("r1 = r0");
                self.drop_object();
                self.line(&format!("r1 = r{kept}"));
                self.drop_object();
            }
            5..8 if is_node => {
                let from = [KEPT, OBJECTS][usize::from(has_locks && self.choices.one_in(3))];
                let field = if from == KEPT { 0 } else { 40 };
                self.line(&format!("r1 = map_idx_value({from}, {field}) ll"));
                self.line(&format!("r2 = r{kept}"));
                self.line("call 194");
                self.line(&format!("if r0 == 0 goto l{done}"));
                self.line("r1 = r0");
                self.drop_object();
            }
            8 if self.choices.one_in(4) => {}
            _ => {
                self.line(&format!("r1 = r{kept}"));
                self.drop_object();
            }
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
        self.holds[kept as usize] = Holds::Nothing;
    }

    /// What a map value, a list or a tree keeps is taken out and dropped.
    pub(super) fn taken(&mut self) {
        if !self.target.has(Family::Objects) && !self.choices.one_in(30) {
            return self.section();
        }
        let (done, kept) = (self.label(), 7 + self.choices.below(3));
        self.holds[kept as usize] = Holds::Nothing;
        match self.target.has(Family::Locks) {
            true if self.choices.one_in(2) => self.take_from_list(kept),
            true if self.choices.one_in(2) => self.take_from_tree(kept),
            _ => {
                self.line(&format!("r1 = map_idx_value({KEPT}, 0) ll"));
                self.line("r2 = 0");
                self.line("call 194");
                self.line(&format!("r{kept} = r0"));
            }
        }
        self.clobber();
        if !self.choices.one_in(60) {
            self.line(&format!("if r{kept} == 0 goto l{done}"));
        }
        if self.choices.one_in(2) {
            self.line(&format!("r1 = *(u64 *)(r{kept} + 0)"));
        }
        if !self.choices.one_in(60) {
            self.line(&format!("r1 = r{kept}"));
            self.drop_object();
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
        self.holds[kept as usize] = Holds::Nothing;
    }

    /// Drops the object in `r1`.
    fn drop_object(&mut self) {
        self.line("r2 = 0");
        self.kfunc("bpf_obj_drop_impl");
    }

    fn lock(&mut self) {
        if !self.choices.one_in(60) {
            self.line(&format!("r1 = map_idx_value({OBJECTS}, {LOCK}) ll"));
            self.line("call 93");
        }
    }

    fn unlock(&mut self) {
        if !self.choices.one_in(60) {
            self.line(&format!("r1 = map_idx_value({OBJECTS}, {LOCK}) ll"));
            self.line("call 94");
        }
    }

    fn add_to_list(&mut self, kept: u32) {
        self.lock();
        self.line(&format!("r1 = map_idx_value({OBJECTS}, {LIST}) ll"));
        self.line(&format!("r2 = r{kept}"));
        self.line(&format!("r2 += {NODE_LIST}"));
        self.line("r3 = 0");
        self.line("r4 = 0");
        let name = ["bpf_list_push_front_impl", "bpf_list_push_back_impl"];
        let name = self.choices.pick(&name);
        self.kfunc(name);
        self.after_adding(kept);
        self.unlock();
        if self.choices.one_in(30) {
            self.after_adding(kept);
        }
    }

    fn add_to_tree(&mut self, kept: u32) {
        let less = match self.is_typed {
            true => self.function_of(Function::Less),
            false => None,
        };
        let Some(less) = less else {
            self.line(&format!("r1 = r{kept}"));
            return self.drop_object();
        };
        self.lock();
        self.line(&format!("r1 = map_idx_value({OBJECTS}, {TREE}) ll"));
        self.line(&format!("r2 = r{kept}"));
        self.line(&format!("r2 += {NODE_TREE}"));
        self.line(&format!("r3 = func(f{less}) ll"));
        self.line("r4 = 0");
        self.line("r5 = 0");
        self.kfunc("bpf_rbtree_add_impl");
        self.after_adding(kept);
        self.unlock();
    }

    /// The node is still the program's to read and write until the lock is given back.
    fn after_adding(&mut self, kept: u32) {
        match self.choices.below(4) {
            0 => self.line(&format!("r1 = *(u64 *)(r{kept} + 0)")),
            1 => self.line(&format!("*(u64 *)(r{kept} + 0) = 2")),
            _ => {}
        }
    }

    fn take_from_list(&mut self, kept: u32) {
        self.lock();
        self.line(&format!("r1 = map_idx_value({OBJECTS}, {LIST}) ll"));
        let names = ["bpf_list_pop_front", "bpf_list_pop_back"];
        let name = self.choices.pick(&names);
        self.kfunc(name);
        self.line(&format!("r{kept} = r0"));
        self.unlock();
        let null = self.label();
        self.line(&format!("if r{kept} == 0 goto l{null}"));
        self.line(&format!("r{kept} -= {NODE_LIST}"));
        self.line(&format!("l{null}:"));
    }

    fn take_from_tree(&mut self, kept: u32) {
        let (unlock, null) = (self.label(), self.label());
        self.lock();
        self.line(&format!("r{kept} = 0"));
        self.line(&format!("r1 = map_idx_value({OBJECTS}, {TREE}) ll"));
        let names = ["bpf_rbtree_first", "bpf_rbtree_root"];
        let name = self.choices.pick(&names);
        self.kfunc(name);
        self.line(&format!("if r0 == 0 goto l{unlock}"));
        self.line(&format!("r1 = map_idx_value({OBJECTS}, {TREE}) ll"));
        self.line("r2 = r0");
        self.kfunc("bpf_rbtree_remove");
        self.line(&format!("r{kept} = r0"));
        self.line(&format!("l{unlock}:"));
        self.unlock();
        self.line(&format!("if r{kept} == 0 goto l{null}"));
        self.line(&format!("r{kept} -= {NODE_TREE}"));
        self.line(&format!("l{null}:"));
    }
}
