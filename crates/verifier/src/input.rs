//! Read-only input of a verification: program, kernel, options, limits.

use std::sync::OnceLock;

use btf::fields::StructureFields;
use btf::{Btf, Linkage, Shape, TypeId};
use isa::ebpf::Insn;
use program::Program;
use program::creation::MapCreator;
use spec::Kernel;
use spec::behaviour::{Behaviour, Behaviours};
use spec::kernel::{KernelField, Mitigations, Module, Source, Symbols};
use spec::programs::{LoadFlags, ProgramType};
use spec::registry::{ProgramContext, Registry, StructOps};
use spec::since::{Feature, Release, Since};

use crate::RULES;
use crate::attach::{self, LoadedTarget};
use crate::options::Options;
use crate::resolve::Maps;
use crate::state::{BtfRef, MapRef, TypeRef};
use crate::type_rules::TypeRules;

/// Read-only input of a verification.
pub struct Input<'a> {
    /// The program.
    pub program: &'a Program,
    /// The kernel's registry.
    pub registry: &'a Registry,
    /// The kernel is one whose rules are known.
    pub(crate) has_rules: bool,
    /// The registry is that of the kernel, and not assumed.
    pub(crate) has_own_registry: bool,
    /// Release of a kernel whose rules are known, where that is not the newest.
    release: Option<Release>,
    /// Release of a kernel whose rules are known.
    pub(crate) kernel_release: Option<Release>,
    /// The kernel lacks instructions.
    pub(crate) lacks_insns: bool,
    /// What the kernel's verifier does.
    pub rules: Behaviours,
    /// Context of the program in the registry.
    pub context: ProgramContext<'a>,
    /// Options.
    pub options: &'a Options,
    /// The program's slots, decoded.
    pub insns: Vec<Insn>,
    /// Privilege: pointers may be compared and stored where others could read them.
    pub allow_ptr_leaks: bool,
    /// Privilege: stack that was not written may be read.
    pub allow_uninit_stack: bool,
    /// Privilege: CAP_BPF.
    pub bpf_capable: bool,
    /// Speculative paths need not be verified (Spectre variant 1): the caller has
    /// CAP_PERFMON, or the kernel does not mitigate.
    pub bypass_spec_v1: bool,
    /// Writes to the stack need no barriers (Spectre variant 4), for the same reasons.
    pub bypass_spec_v4: bool,
    /// Accesses must be aligned whatever the processor allows.
    pub strict_alignment: bool,
    /// The JIT compiler gives functions stacks of their own.
    pub private_stack: bool,
    /// A checkpoint at every prune point (BPF_F_TEST_STATE_FREQ).
    pub test_state_freq: bool,
    /// Broken register invariants refuse the program (BPF_F_TEST_REG_INVARIANTS).
    pub test_reg_invariants: bool,
    /// The program's maps, and behind them the templates of the maps that they hold.
    pub maps: Maps,
    /// The special fields of the program's structures, once one is looked up.
    pub(crate) structures: OnceLock<StructureFields>,
    /// Types of the kernel.
    pub vmlinux: Option<&'a Btf<'static>>,
    /// Modules of the kernel; module number n is entry n - 1.
    pub modules: &'a [Module],
    /// Symbols of the kernel, if they are stated.
    pub symbols: Option<&'a Symbols>,
    /// Number of CPUs that the kernel may have.
    pub cpus: u32,
    /// What is known of the program that this one replaces or traces a function of.
    pub(crate) target: Option<LoadedTarget>,
}

impl<'a> Input<'a> {
    /// The input of a verification for a caller with the privileges that the kernel states.
    pub fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        registry: &'a Registry,
        options: &'a Options,
    ) -> Input<'a> {
        let vmlinux = kernel.btf().map(|btf| &**btf);
        let privileges = kernel.privileges();
        let flags = program.flags();
        let release = kernel.version().map(Release::from);
        let kernel_release = release.filter(|_| kernel.has_rules());
        let release = kernel_release.filter(|release| *release < RULES);
        let is_old = |oldest: Release| !Feature::MayGoto.is_in(oldest);
        Input {
            release,
            kernel_release,
            lacks_insns: release.is_some_and(is_old),
            program,
            registry,
            has_rules: kernel.has_rules(),
            has_own_registry: *kernel.source(KernelField::Registry) != Source::Assumed,
            rules: kernel.behaviours(),
            context: context_of(program, kernel),
            options,
            insns: program.decode(),
            allow_ptr_leaks: privileges.has_perfmon(),
            allow_uninit_stack: privileges.has_perfmon(),
            bpf_capable: privileges.has_bpf(),
            bypass_spec_v1: !mitigates(kernel, |mitigations| mitigations.spectre_v1),
            bypass_spec_v4: !mitigates(kernel, |mitigations| mitigations.spectre_v4),
            strict_alignment: flags.has(LoadFlags::STRICT_ALIGNMENT)
                && !flags.has(LoadFlags::ANY_ALIGNMENT),
            private_stack: kernel.features().private_stack
                && kernel.behaviours().has(Behaviour::PrivateStacks),
            test_state_freq: flags.has(LoadFlags::TEST_STATE_FREQ) && privileges.has_bpf(),
            test_reg_invariants: flags.has(LoadFlags::TEST_REG_INVARIANTS),
            maps: Maps::new(program, &MapCreator::new(kernel, registry)),
            structures: OnceLock::new(),
            vmlinux,
            modules: kernel.modules(),
            symbols: kernel.symbols(),
            cpus: kernel.cpus(),
            target: None,
        }
    }
}

impl Input<'_> {
    /// True if the kernel does not have a feature.
    pub(crate) fn lacks(&self, feature: Feature) -> bool {
        self.release.is_some_and(|release| !feature.is_in(release))
    }

    /// True if the kernel is older than what it needs.
    pub(crate) fn is_newer(&self, since: Since) -> bool {
        self.release.is_some_and(|release| since.release > release)
    }

    /// True if a kernel of a stated version is not older than what it needs.
    pub(crate) fn is_in_kernel(&self, since: Since) -> bool {
        self.kernel_release
            .is_some_and(|release| since.release <= release)
    }

    /// True if the values of a map have addresses that programs may hold
    /// (`map_direct_value_addr`).
    #[doc(alias = "map_direct_value_addr")]
    pub fn has_direct_value(&self, map: MapRef) -> bool {
        self.maps[map]
            .kind()
            .and_then(|kind| self.registry.map(kind))
            .is_some_and(|traits| traits.has_direct_value)
    }

    /// The jump tables that the program uses.
    pub(crate) fn jump_tables(&self) -> impl Iterator<Item = &[u32]> {
        let used = self.program.used_maps().into_iter();
        let maps = used.map(|map| &self.maps[MapRef(map.0)]);
        maps.filter(|map| map.is_jump_table())
            .map(|map| map.jump_targets())
    }

    /// The name of a map in messages; templates of inner maps have none.
    pub(crate) fn map_name(&self, map: MapRef) -> &str {
        match (map.0 as usize) < self.program.maps().len() {
            true => self.maps[map].kernel_name(),
            false => "",
        }
    }

    /// Rules that go by the program's type.
    pub(crate) const fn type_rules(&self) -> TypeRules {
        TypeRules::of(self.context.kind)
    }

    /// What goes by the structure whose operation the program is.
    pub(crate) fn struct_ops(&self) -> Option<&'static StructOps> {
        self.context.struct_ops()
    }

    /// The BTF object of a type.
    pub fn btf(&self, ty: TypeRef) -> Option<&Btf<'static>> {
        match ty.btf {
            BtfRef::Vmlinux => self.vmlinux,
            BtfRef::Module(index) => Some(&self.modules.get(usize::from(index))?.btf),
            BtfRef::Program => self.program.btf().map(|btf| &**btf),
        }
    }

    /// The name of a type (`btf_type_name`).
    #[doc(alias = "btf_type_name")]
    pub fn type_name(&self, ty: TypeRef) -> String {
        let found = self.btf(ty).and_then(|btf| btf.get(TypeId(ty.id)));
        found.map_or_else(
            || format!("#{}", ty.id),
            |ty| ty.name().to_string_lossy().into_owned(),
        )
    }

    /// True if BTF says that the function at `start` is static.
    pub fn is_static(&self, start: u32) -> bool {
        let info = self.program.func_info();
        let func = info.iter().find(|func| func.insn == start);
        let (Some(func), Some(btf)) = (func, self.program.btf()) else {
            return false;
        };
        match btf.get(func.type_id).map(|ty| ty.shape()) {
            Some(Shape::Func(func)) => func.linkage == Linkage::STATIC,
            _ => false,
        }
    }
}

/// The context of a program in the registry of a kernel.
pub(crate) fn context_of<'a>(program: &'a Program, kernel: &'a Kernel) -> ProgramContext<'a> {
    let vmlinux = kernel.btf();
    let privileges = kernel.privileges();
    // A replacement has the context, helpers and rules of the program that it goes into.
    let replaced = program
        .attach_target()
        .filter(|_| program.kind() == ProgramType::Ext);
    if let Some(replaced) = replaced.and_then(|target| target.program.as_deref()) {
        return ProgramContext {
            sleepable: program.flags().has(LoadFlags::SLEEPABLE),
            attach_target: None,
            operation: None,
            of_program: true,
            ..context_of(replaced, kernel)
        };
    }
    ProgramContext {
        kind: program.kind(),
        attach: attach::effective_attach_type(program.kind(), program.expected_attach_type()),
        sleepable: program.flags().has(LoadFlags::SLEEPABLE),
        has_cap_bpf: privileges.has_bpf(),
        has_cap_perfmon: privileges.has_perfmon(),
        attach_target: program
            .attach_target()
            .filter(|target| target.module == 0 && target.program.is_none())
            .and_then(|target| vmlinux?.get(target.btf_id)?.name().to_str()),
        operation: operation(program, kernel),
        of_program: program
            .attach_target()
            .is_some_and(|target| target.program.is_some()),
    }
}

/// Name of the operation that a struct_ops program is.
fn operation<'a>(program: &Program, kernel: &'a Kernel) -> Option<&'a str> {
    let target = program.attach_target()?;
    let types = kernel.btf()?;
    let structure = types.get(target.btf_id)?.as_composite()?;
    let member = structure.member(target.member? as usize)?;
    types.string(member.name).to_str()
}

/// True if a kernel puts one of its mitigations of speculative execution into programs of the
/// caller.
pub(crate) fn mitigates(kernel: &Kernel, which: impl Fn(Mitigations) -> bool) -> bool {
    !kernel.privileges().has_perfmon() && which(kernel.mitigations())
}
