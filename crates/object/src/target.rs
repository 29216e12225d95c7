//! The kernel that programs are linked for. Nothing of it is looked up here: who
//! links says what the kernel has, from a running one, a file or a profile.

use std::fmt;

use btf::Btf;
use profile::Profile;

/// A kernel, as far as linking asks about it.
#[derive(Clone, Copy, Default)]
pub struct Target<'t> {
    /// Its types.
    pub types: Option<&'t Btf<'t>>,
    /// Its modules, in the order in which they are asked.
    pub modules: &'t [Module<'t>],
    /// Types that relocations go by in place of its own: another kernel's, say.
    /// Modules are not asked then.
    pub core_types: Option<&'t Btf<'t>>,
    /// Its configuration, as text: lines `CONFIG_NAME=value`.
    pub config: Option<&'t str>,
    /// The addresses of its symbols.
    pub symbols: Option<&'t Symbols<'t>>,
    /// What `LINUX_KERNEL_VERSION` says: major, minor and patch in a byte each.
    pub version: u32,
    /// What it can.
    pub features: Features,
    /// How many CPUs it may have: the size of an array of perf events that states
    /// none. 0 leaves it open.
    pub cpus: u32,
    /// Bytes of a page of memory.
    pub page_size: u32,
}

impl<'t> Target<'t> {
    /// A stored kernel: its types, configuration and version, on as many CPUs as an
    /// object wants. It has no addresses of symbols.
    ///
    /// ```
    /// use beebox_object::Target;
    /// use profile::Profile;
    ///
    /// let kernel = Profile::linux_6_18();
    /// let target = Target::of_profile(&kernel);
    /// assert_eq!(target.version >> 8, 0x0612);
    /// ```
    pub fn of_profile(profile: &'t Profile) -> Target<'t> {
        Target {
            types: Some(profile.types()),
            config: Some(profile.config()),
            version: profile.version(),
            page_size: 4096,
            ..Target::default()
        }
    }
}

/// Where the symbol of a name is.
pub type Symbols<'t> = dyn Fn(&str) -> SymbolAddress + Sync + 't;

/// What a kernel says about the name of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolAddress {
    /// It has none of that name.
    Missing,
    /// It has one, at this address.
    At(u64),
    /// It has several, two of them at these addresses.
    Several(u64, u64),
}

/// A module of a kernel.
#[derive(Clone, Copy)]
pub struct Module<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its types, behind those of the kernel.
    pub types: &'t Btf<'t>,
}

/// What kernels can or can't, as far as it changes what is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Programs can attach a number to each place they attach to
    /// (`LINUX_HAS_BPF_COOKIE`).
    pub cookies: bool,
    /// System calls take their arguments in a structure
    /// (`LINUX_HAS_SYSCALL_WRAPPER`).
    pub syscall_wrapper: bool,
    /// A link can attach a program to many places of user space.
    pub uprobe_multi: bool,
    /// Offsets into arenas may have all 32 bits, so that globals can stand at the
    /// end of one.
    pub wide_offsets: bool,
}

impl Features {
    /// What Linux 6.18 can on x86-64.
    pub const LINUX_6_18: Features = Features {
        cookies: true,
        syscall_wrapper: true,
        uprobe_multi: true,
        wide_offsets: false,
    };
}

impl Default for Features {
    fn default() -> Features {
        Features::LINUX_6_18
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("types", &self.types)
            .field("modules", &self.modules.len())
            .field("version", &self.version)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}
