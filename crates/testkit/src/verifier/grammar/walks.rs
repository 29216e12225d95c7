//! Pointers to structures of the kernel: where they come from, their fields, references.

use super::declarations::KEPT;
use super::target::Family;
use super::{Grammar, Holds};

/// A field: its name, the size of a read, and the structure that it points to, if it is a pointer.
type Field = (&'static str, &'static str, &'static str);

/// Fields of structures.
const FIELDS: &[(&str, &[Field])] = &[
    (
        "task_struct",
        &[
            ("pid", "u32", ""),
            ("tgid", "u32", ""),
            ("flags", "u32", ""),
            ("prio", "u32", ""),
            ("real_parent", "u64", "task_struct"),
            ("parent", "u64", "task_struct"),
            ("group_leader", "u64", "task_struct"),
            ("mm", "u64", "mm_struct"),
            ("files", "u64", "files_struct"),
            ("cred", "u64", "cred"),
            ("real_cred", "u64", "cred"),
            ("nsproxy", "u64", "nsproxy"),
            ("cgroups", "u64", "css_set"),
            ("last_wakee", "u64", "task_struct"),
            ("cpus_ptr", "u64", "cpumask"),
            ("comm", "u8", ""),
        ],
    ),
    (
        "sk_buff",
        &[
            ("len", "u32", ""),
            ("data_len", "u32", ""),
            ("protocol", "u16", ""),
            ("data", "u64", ""),
            ("head", "u64", ""),
        ],
    ),
    (
        "file",
        &[
            ("f_flags", "u32", ""),
            ("f_inode", "u64", "inode"),
            ("f_mapping", "u64", "address_space"),
            ("f_op", "u64", "file_operations"),
            ("f_cred", "u64", "cred"),
        ],
    ),
    (
        "inode",
        &[
            ("i_flags", "u32", ""),
            ("i_sb", "u64", "super_block"),
            ("i_mapping", "u64", "address_space"),
            ("i_op", "u64", ""),
        ],
    ),
    (
        "cred",
        &[("user", "u64", "user_struct"), ("user_ns", "u64", "")],
    ),
    ("mm_struct", &[("mm_mt", "u64", ""), ("pgd", "u64", "")]),
    (
        "css_set",
        &[
            ("dfl_cgrp", "u64", "cgroup"),
            ("dom_cset", "u64", "css_set"),
        ],
    ),
    (
        "cgroup",
        &[("level", "u32", ""), ("kn", "u64", ""), ("root", "u64", "")],
    ),
    (
        "socket",
        &[
            ("sk", "u64", "sock"),
            ("file", "u64", "file"),
            ("type", "u16", ""),
        ],
    ),
    (
        "sock",
        &[("sk_rcvbuf", "u32", ""), ("sk_socket", "u64", "socket")],
    ),
    (
        "bpf_iter_meta",
        &[("seq_num", "u64", ""), ("seq", "u64", "seq_file")],
    ),
];

impl Grammar<'_, '_> {
    /// A pointer to a structure, from a helper, the context or a kernel function that takes a
    /// reference, with a walk from field to field.
    pub(super) fn walk(&mut self) {
        let (done, kept) = (self.label(), 7 + self.choices.below(3));
        self.holds[kept as usize] = Holds::Nothing;
        let arguments = self.target.arguments;
        match self.choices.below(6) {
            0..3 if !arguments.is_empty() && self.holds.contains(&Holds::Context) => {
                let context = self.register(&[Holds::Context]);
                let at = self.choices.below(arguments.len() as u32);
                let (structure, may_be_null) = arguments[at as usize];
                self.line(&format!("r{kept} = *(u64 *)({context} + {})", 8 * at));
                if structure.is_empty() {
                    self.holds[kept as usize] = Holds::Number;
                    return;
                }
                if may_be_null && !self.choices.one_in(20) {
                    self.line(&format!("if r{kept} == 0 goto l{done}"));
                }
                self.fields(kept, structure);
            }
            0..4 => {
                self.line("call 158");
                self.clobber();
                self.line(&format!("r{kept} = r0"));
                self.fields(kept, "task_struct");
            }
            _ if self.target.has(Family::Objects) || self.choices.one_in(30) => {
                self.referenced(kept);
            }
            _ => self.section(),
        }
        self.line(&format!("l{done}:"));
        self.forget_walk(kept);
    }

    /// A task or a mask of processors with a reference that is released or kept.
    fn referenced(&mut self, kept: u32) {
        let (done, is_task) = (self.label(), self.choices.percent(70));
        match (is_task, self.choices.one_in(2)) {
            (true, true) => {
                self.line("r1 = 1");
                self.kfunc("bpf_task_from_pid");
            }
            (true, false) => {
                self.line("call 158");
                self.line("r1 = r0");
                self.kfunc("bpf_task_acquire");
            }
            (false, _) => self.kfunc("bpf_cpumask_create"),
        }
        self.clobber();
        if !self.choices.one_in(40) {
            self.line(&format!("if r0 == 0 goto l{done}"));
        }
        self.held(|_| ());
        self.line(&format!("r{kept} = r0"));
        if is_task && self.choices.one_in(2) {
            self.line(&format!(
                "r4 = *(u32 *)(r{kept} + {{field task_struct.pid}})"
            ));
        }
        match self.choices.below(8) {
            0 if self.choices.one_in(4) => {}
            1..3 if is_task => {
                self.line(&format!("r1 = map_idx_value({KEPT}, 8) ll"));
                self.line(&format!("r2 = r{kept}"));
                self.line("call 194");
                self.line(&format!("if r0 == 0 goto l{done}"));
                self.line("r1 = r0");
                self.kfunc("bpf_task_release");
            }
            _ => {
                self.line(&format!("r1 = r{kept}"));
                self.kfunc(match is_task {
                    true => "bpf_task_release",
                    false => "bpf_cpumask_release",
                });
                if self.choices.one_in(60) {
                    self.line(&format!("r4 = *(u64 *)(r{kept} + 0)"));
                }
            }
        }
        self.clobber();
        self.line(&format!("l{done}:"));
    }

    /// Reads fields from the structure in a register on.
    fn fields(&mut self, kept: u32, structure: &str) {
        let mut structure = structure;
        for _ in 0..1 + self.choices.below(4) {
            let known = FIELDS.iter().find(|(of, _)| *of == structure);
            let Some((_, fields)) = known.filter(|_| !self.choices.one_in(20)) else {
                // Anything in it, of which the types say what it is.
                let at = 4 * self.choices.below(8);
                let (_, size) = self.choices.pick(super::SIZES);
                return self.line(&format!("r4 = *({size} *)(r{kept} + {at})"));
            };
            let (field, size, to) = self.choices.pick(fields);
            let place = format!("{{field {structure}.{field}}}");
            if self.choices.one_in(60) {
                return self.line(&format!("*({size} *)(r{kept} + {place}) = 1"));
            }
            if to.is_empty() {
                return self.line(&format!("r4 = *({size} *)(r{kept} + {place})"));
            }
            self.line(&format!("r{kept} = *({size} *)(r{kept} + {place})"));
            structure = to;
            if structure == "task_struct" && self.choices.one_in(8) {
                self.line(&format!("r1 = r{kept}"));
                self.kfunc("bpf_task_acquire");
                let null = self.label();
                self.line(&format!("if r0 == 0 goto l{null}"));
                self.line("r1 = r0");
                self.kfunc("bpf_task_release");
                return self.line(&format!("l{null}:"));
            }
        }
    }

    fn forget_walk(&mut self, kept: u32) {
        self.holds[..6].fill(Holds::Nothing);
        self.holds[kept as usize] = Holds::Nothing;
    }
}
