//! The program and its accessors.
//!
//! Accessors take constant time; lookups by instruction are binary searches.

use std::fmt;
use std::sync::Arc;

use btf::{Btf, Kind, StrOffset, TypeId};
use isa::ebpf::{Flow, Insn, PseudoLoad, RawInsn, decode};
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::builder::ProgramBuilder;
use crate::externs::ExternSymbol;
use crate::map_def::{MapDef, MapId};

/// A loadable program.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) section: String,
    pub(crate) kind: ProgramType,
    pub(crate) attach_type: Option<AttachType>,
    pub(crate) expected_attach_type: Option<u32>,
    pub(crate) flags: LoadFlags,
    pub(crate) attach_target: Option<AttachTarget>,
    pub(crate) insns: Vec<RawInsn>,
    pub(crate) subprogs: Vec<Subprog>,
    pub(crate) maps: Arc<[Arc<MapDef>]>,
    pub(crate) btf: Option<Arc<Btf<'static>>>,
    pub(crate) func_info: Vec<FuncInfo>,
    pub(crate) line_info: Vec<LineInfo>,
    pub(crate) externs: Arc<[ExternSymbol]>,
    pub(crate) modules: Arc<[String]>,
    pub(crate) license: Arc<str>,
    pub(crate) kernel_version: u32,
    pub(crate) failed_relocations: Vec<FailedRelocation>,
}

/// Prefix of the declaration tag of a main function, in front of the name of its exception
/// callback.
pub const EXCEPTION_CALLBACK_TAG: &[u8] = b"exception_callback:";

/// Attach target of a program, as far as it is known at load time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachTarget {
    /// BTF id (`attach_btf_id`); 0 if only the module or the program is known.
    pub btf_id: TypeId,
    /// Module whose BTF contains the id: 0 is vmlinux, n is entry n - 1 of
    /// [`Program::modules`].
    pub module: u16,
    /// Index of the struct_ops member that the program implements.
    pub member: Option<u32>,
    /// Program whose function is replaced (freplace) or traced; the id is in its BTF.
    pub program: Option<Arc<Program>>,
}

/// A subprog: a function in the instructions of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subprog {
    /// Name of the function.
    pub name: String,
    /// Index of the first instruction.
    pub start: u32,
}

/// func_info record: type of the function that starts at an instruction
/// (`struct bpf_func_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuncInfo {
    /// Index of the instruction.
    pub insn: u32,
    /// BTF id of the function in the program's BTF.
    pub type_id: TypeId,
}

/// line_info record: source line of the instructions up to the next record
/// (`struct bpf_line_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// Index of the first instruction.
    pub insn: u32,
    /// File name in the strings of the program's BTF.
    pub file: StrOffset,
    /// Text of the line in the strings of the program's BTF.
    pub text: StrOffset,
    /// Line number from 1; 22 bits.
    pub line: u32,
    /// Column from 1; 10 bits.
    pub column: u32,
}

/// CO-RE relocation that failed: the instruction is a call of a non-existent helper, so
/// that the program is refused only if a path reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRelocation {
    /// Index of the instruction.
    pub insn: u32,
    /// Accessed field or type, as `task_struct.pid`.
    pub access: String,
    /// What the kernel lacks or has instead, in words.
    pub absence: String,
}

impl Program {
    /// Builder of a program of this type with these instructions.
    pub fn builder(kind: ProgramType, insns: Vec<RawInsn>) -> ProgramBuilder {
        ProgramBuilder::new(kind, insns)
    }

    /// Name of the main function; empty if unnamed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the ELF section, without a leading `?`; empty if the program is not from
    /// an object.
    pub fn section(&self) -> &str {
        &self.section
    }

    /// Program type.
    pub fn kind(&self) -> ProgramType {
        self.kind
    }

    /// Expected attach type, if one is stated and known by name.
    pub fn attach_type(&self) -> Option<AttachType> {
        self.attach_type
    }

    /// Value of `expected_attach_type` in `BPF_PROG_LOAD`: the number of the attach type,
    /// or the index of a struct_ops member; 0 if neither is stated.
    pub fn expected_attach_type(&self) -> u32 {
        let member = self.attach_target.as_ref().and_then(|target| target.member);
        self.expected_attach_type
            .or(member)
            .unwrap_or_else(|| self.attach_type.map_or(0, AttachType::number))
    }

    /// Load flags.
    pub fn flags(&self) -> LoadFlags {
        self.flags
    }

    /// Attach target, if it is known at load time.
    pub fn attach_target(&self) -> Option<&AttachTarget> {
        self.attach_target.as_ref()
    }

    /// Instruction slots: the main function first, then the other subprogs.
    pub fn insns(&self) -> &[RawInsn] {
        &self.insns
    }

    /// Decoded instructions, one for each slot.
    pub fn decode(&self) -> Vec<Insn> {
        decode(&self.insns)
    }

    /// Instructions with file descriptors in place of map indices, the form that
    /// `BPF_PROG_LOAD` takes without `fd_array`.
    pub fn insns_with_map_fds(&self, mut descriptor: impl FnMut(MapId) -> i32) -> Vec<RawInsn> {
        let mut insns = self.insns.clone();
        for (index, map, pseudo) in self.map_loads() {
            let with_fd = match pseudo {
                PseudoLoad::MapIdx => PseudoLoad::MapFd,
                _ => PseudoLoad::MapValue,
            };
            insns[index].set_src(with_fd.number());
            insns[index].imm = descriptor(map);
        }
        insns
    }

    /// ld_imm64 instructions that load the address or value of a map in
    /// [`Program::maps`], with their indices.
    pub fn map_loads(&self) -> impl Iterator<Item = (usize, MapId, PseudoLoad)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(&insn) = self.insns.get(at) {
                let here = at;
                at += if insn.is_wide_load() { 2 } else { 1 };
                let Some(pseudo @ (PseudoLoad::MapIdx | PseudoLoad::MapIdxValue)) =
                    insn.pseudo_load()
                else {
                    continue;
                };
                let map = MapId(insn.imm as u32);
                if self.map(map).is_some() && here + 1 < self.insns.len() {
                    return Some((here, map, pseudo));
                }
            }
            None
        })
    }

    /// Maps that the instructions refer to, in the order of the first reference.
    pub fn used_maps(&self) -> Vec<MapId> {
        let mut used = Vec::new();
        let mut seen = vec![false; self.maps.len()];
        for (_, map, _) in self.map_loads() {
            if !std::mem::replace(&mut seen[map.0 as usize], true) {
                used.push(map);
            }
        }
        used
    }

    /// Subprogs sorted by start, the main function first; empty if no names are known.
    pub fn subprogs(&self) -> &[Subprog] {
        &self.subprogs
    }

    /// Map definitions, referred to by index. Some may be unreferenced.
    pub fn maps(&self) -> &[Arc<MapDef>] {
        &self.maps
    }

    /// Map with this index.
    pub fn map(&self, id: MapId) -> Option<&Arc<MapDef>> {
        self.maps.get(id.0 as usize)
    }

    /// BTF of the program.
    pub fn btf(&self) -> Option<&Arc<Btf<'static>>> {
        self.btf.as_ref()
    }

    /// func_info records in their order in `BPF_PROG_LOAD`.
    pub fn func_info(&self) -> &[FuncInfo] {
        &self.func_info
    }

    /// line_info records in their order in `BPF_PROG_LOAD`.
    pub fn line_info(&self) -> &[LineInfo] {
        &self.line_info
    }

    /// CO-RE relocations that failed, by instruction.
    pub fn failed_relocations(&self) -> &[FailedRelocation] {
        &self.failed_relocations
    }

    /// Extern symbols of the program's object, resolved.
    pub fn externs(&self) -> &[ExternSymbol] {
        &self.externs
    }

    /// The extern that a call of this number stands for, whose function the kernel lacks
    /// ([`KFUNC_POISON`](crate::KFUNC_POISON)).
    pub fn absent_extern(&self, number: i32) -> Option<&ExternSymbol> {
        let index = number.checked_sub(crate::KFUNC_POISON)?;
        self.externs.get(usize::try_from(index).ok()?)
    }

    /// The map that a call of this number stands for, which is not created
    /// ([`MAP_POISON`](crate::MAP_POISON)).
    pub fn missing_map(&self, number: i32) -> Option<MapId> {
        let index = u32::try_from(number.checked_sub(crate::MAP_POISON)?).ok()?;
        self.map(MapId(index)).map(|_| MapId(index))
    }

    /// Names of the kernel modules that instructions, externs and the attach target
    /// refer to by number; number n is entry n - 1.
    pub fn modules(&self) -> &[String] {
        &self.modules
    }

    /// Licence.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// True if the licence is GPL-compatible (`include/linux/license.h`), which GPL-only
    /// helpers require.
    pub fn is_gpl_compatible(&self) -> bool {
        matches!(
            &*self.license,
            "GPL"
                | "GPL v2"
                | "GPL and additional rights"
                | "Dual BSD/GPL"
                | "Dual MIT/GPL"
                | "Dual MPL/GPL"
        )
    }

    /// Value of `kern_version`, as `LINUX_VERSION_CODE`; 0 if none is stated.
    pub fn kernel_version(&self) -> u32 {
        self.kernel_version
    }

    /// Subprog that contains an instruction.
    pub fn subprog_at(&self, insn: u32) -> Option<&Subprog> {
        let after = self
            .subprogs
            .partition_point(|subprog| subprog.start <= insn);
        self.subprogs.get(after.checked_sub(1)?)
    }

    /// Source line of an instruction.
    pub fn line_at(&self, insn: u32) -> Option<&LineInfo> {
        let after = self.line_info.partition_point(|line| line.insn <= insn);
        self.line_info.get(after.checked_sub(1)?)
    }

    /// The record of the source line of each slot. What the compiler gives line 0 goes on with the line before it
    /// where control comes from there alone; otherwise it has none.
    pub fn source_lines(&self) -> Vec<Option<&LineInfo>> {
        let insns = self.decode();
        let mut begins = vec![false; insns.len()];
        for (slot, insn) in (0..).zip(&insns) {
            let (target, next) = match insn.flow() {
                Flow::Branch(distance) => (Some(slot + 1 + i64::from(distance)), None),
                Flow::Goto(distance) => (Some(slot + 1 + i64::from(distance)), Some(slot + 1)),
                Flow::GotoReg(_) | Flow::Exit => (None, Some(slot + 1)),
                Flow::Next | Flow::SkipOne | Flow::Call(_) | Flow::Nowhere => (None, None),
            };
            for begin in [target, next].into_iter().flatten() {
                let begin = usize::try_from(begin).ok();
                if let Some(begin) = begin.and_then(|begin| begins.get_mut(begin)) {
                    *begin = true;
                }
            }
        }
        for subprog in &self.subprogs {
            if let Some(begin) = begins.get_mut(subprog.start as usize) {
                *begin = true;
            }
        }
        let mut last = None;
        let lines = begins.iter().zip(0..).map(|(begin, slot)| {
            let own = self.line_at(slot).filter(|line| line.line > 0);
            last = own.or(last.filter(|_| !begin));
            last
        });
        lines.collect()
    }

    /// Has instructions belong to no source line where debug information says so: from each of these slots on,
    /// which ascend, they have one or none. Where a record begins, it holds.
    pub fn leave_out_lines(&mut self, places: &[(u32, bool)]) {
        let mut lines = Vec::with_capacity(self.line_info.len() + places.len());
        let mut records = self.line_info.iter().peekable();
        let (mut last, mut is_gap): (Option<LineInfo>, _) = (None, false);
        for (slot, has_line) in places {
            while let Some(record) = records.next_if(|record| record.insn <= *slot) {
                lines.push(*record);
                (last, is_gap) = (Some(*record), false);
            }
            if let Some(last) = last.filter(|last| last.insn != *slot && *has_line == is_gap) {
                let line = if *has_line { last.line } else { 0 };
                lines.push(LineInfo {
                    insn: *slot,
                    line,
                    ..last
                });
                is_gap = !has_line;
            }
        }
        lines.extend(records);
        self.line_info = lines;
    }

    /// First slot of the function that a declaration tag of the main function names as its
    /// exception callback, if it is a function of the program.
    pub fn exception_callback(&self) -> Option<u32> {
        let (types, main) = (self.btf()?, self.func_info.first()?);
        let mut tags = types.decl_tags(main.type_id, -1);
        let name = tags.find_map(|tag| tag.as_bytes().strip_prefix(EXCEPTION_CALLBACK_TAG))?;
        let function = types.find(Kind::Func, std::str::from_utf8(name).ok()?)?;
        let mut records = self.func_info.iter();
        let record = records.rfind(|record| record.type_id == function.id());
        record.map(|record| record.insn)
    }

    /// Builder with the contents of this program, to make a changed one.
    pub fn to_builder(&self) -> ProgramBuilder {
        ProgramBuilder {
            program: self.clone(),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("attach_type", &self.attach_type)
            .field("attach_target", &self.attach_target)
            .field("insns", &self.insns.len())
            .field("maps", &self.maps.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map_def::MapParams;

    fn slot(code: u8, regs: u8, imm: i32) -> RawInsn {
        RawInsn {
            code,
            regs,
            off: 0,
            imm,
        }
    }

    fn xdp(insns: Vec<RawInsn>) -> ProgramBuilder {
        Program::builder(ProgramType::Xdp, insns)
    }

    fn maps(count: usize) -> Arc<[Arc<MapDef>]> {
        let map = |index| Arc::new(MapDef::new(format!("map{index}"), MapParams::default()));
        (0..count).map(map).collect()
    }

    #[test]
    fn map_indices_become_descriptors() {
        let insns = vec![
            slot(0x18, 0x51, 2),
            slot(0, 0, 0),
            slot(0x18, 0x63, 1),
            slot(0, 0, 24),
            // A missing map, then a plain constant whose second slot resembles a load.
            slot(0x18, 0x51, 7),
            slot(0, 0, 0),
            slot(0x18, 0x01, 2),
            slot(0x18, 0x51, 2),
            // The same map again, and a load without a second slot.
            slot(0x18, 0x52, 2),
            slot(0, 0, 0),
            slot(0x18, 0x51, 0),
        ];
        let program = xdp(insns.clone()).maps(maps(3)).build().unwrap();
        let loaded = program.insns_with_map_fds(|map| 100 + map.0 as i32);
        assert_eq!(loaded[0], slot(0x18, 0x11, 102));
        assert_eq!(loaded[2], slot(0x18, 0x23, 101));
        assert_eq!(loaded[4..8], insns[4..8]);
        assert_eq!(loaded[8], slot(0x18, 0x12, 102));
        assert_eq!(loaded[10], insns[10]);
        assert_eq!(program.used_maps(), [MapId(2), MapId(1)]);
    }

    #[test]
    fn subprog_and_line_are_those_that_start_before_the_instruction() {
        let subprog = |name: &str, start| Subprog {
            name: name.to_owned(),
            start,
        };
        let line = |insn, line| LineInfo {
            insn,
            file: StrOffset(0),
            text: StrOffset(0),
            line,
            column: 1,
        };
        let program = xdp(vec![slot(0x95, 0, 0); 8])
            .subprogs(vec![subprog("main", 0), subprog("callee", 4)])
            .line_info(vec![line(1, 10), line(4, 20)])
            .build()
            .unwrap();
        let name = |insn| program.subprog_at(insn).map(|it| it.name.as_str());
        assert_eq!(
            [name(0), name(3), name(4)],
            [Some("main"), Some("main"), Some("callee")]
        );
        let number = |insn| program.line_at(insn).map(|it| it.line);
        assert_eq!(
            [number(0), number(3), number(9)],
            [None, Some(10), Some(20)]
        );
    }

    #[test]
    fn the_expected_attach_type_is_a_type_a_member_or_a_number() {
        let exit = || vec![slot(0x95, 0, 0)];
        let expected = |builder: ProgramBuilder| builder.build().unwrap().expected_attach_type();
        assert_eq!(expected(xdp(exit())), 0);
        let stated = || xdp(exit()).attach_type(Some(AttachType::StructOps));
        assert_eq!(expected(stated()), AttachType::StructOps.number());
        let member = AttachTarget {
            btf_id: TypeId(7),
            member: Some(3),
            ..AttachTarget::default()
        };
        assert_eq!(expected(stated().attach_target(Some(member))), 3);
        assert_eq!(expected(stated().expected_attach_type(99)), 99);
    }

    #[test]
    fn licences_are_compatible_by_their_exact_text() {
        let is_gpl = |text: &str| {
            let program = xdp(Vec::new()).license(text).build().unwrap();
            program.is_gpl_compatible()
        };
        assert!(is_gpl("GPL") && is_gpl("Dual BSD/GPL"));
        assert!(!is_gpl("gpl") && !is_gpl("GPLv2") && !is_gpl(""));
    }
}
