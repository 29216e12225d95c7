//! Text form of a registry: a line for each fact, words separated by spaces.
//!
//! ```text
//! proto 1 bpf_map_lookup_elem bpf_map_lookup_elem PTR_TO_MAP_VALUE|PTR_MAYBE_NULL pkt CONST_MAP_PTR PTR_TO_MAP_KEY
//! helpers 0 3 5:bpf 9:perfmon
//! layout fields
//! field 0-188/4 1248 - 4 SCALAR_VALUE 4
//! socket PTR_TO_TCP_SOCK 0-16/4 4 4 - SCALAR_VALUE 4 r4=2
//! program xdp 33 helpers=2 layout=1 returns=0..1 asked
//! call 1 array 7
//! packet-load 9 9 10
//! kfunc bpf_task_acquire 0x15 tracing,syscall
//! kfunc bpf_sock_destroy 0x10 - except=tracing:28
//! iterator task helpers=3 1:PTR_TO_BTF_ID|PTR_TRUSTED|PTR_MAYBE_NULL:task_struct
//! map array helpers=1,2,3 direct sleepable fields=0x1
//! list safe_rcu task_struct cpus_ptr
//! ```
//!
//! Prototypes, sets of helpers and layouts are numbered from 0 in the order of their
//! lines. Reading is linear in the text.
//!
//! | file | lines |
//! |---|---|
//! | `helpers` | `proto`, `helpers` |
//! | `programs` | `program`, `iterator` |
//! | `layouts` | `layout`, `field`, `socket` |
//! | `rewriting` | `call`, `packet-load` |
//! | `kfuncs` | `kfunc` |
//! | `maps` | `map` |
//! | `lists` | `list` |
//! | `words` | what several of these share |

mod helpers;
mod kfuncs;
mod layouts;
mod lists;
mod maps;
mod programs;
mod rewriting;
mod words;

use std::fmt;

use super::{Layout, Registry, RegistryData};
use words::Words;

/// Malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Line number, starting with 1.
    pub line: usize,
    /// First word of the line, which says what it is about.
    pub kind: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed { line, kind } = self;
        write!(
            f,
            "malformed registry at line {line}: no `{kind}` line has this form"
        )
    }
}

impl std::error::Error for Malformed {}

/// Parses a registry. BTF ids are 0 until [`Registry::resolve`].
pub fn parse(text: &str) -> Result<Registry, Malformed> {
    let mut registry = RegistryData::default();
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        read_line(&mut registry, kind, words).ok_or_else(|| Malformed {
            line: number,
            kind: kind.to_owned(),
        })?;
    }
    Ok(Registry(registry))
}

fn read_line(registry: &mut RegistryData, kind: &str, mut words: Words<'_>) -> Option<()> {
    match kind {
        "proto" => registry.protos.push(helpers::read_proto(words)?),
        "helpers" => {
            let set = helpers::read_set(&registry.protos, words)?;
            registry.helper_sets.push(set);
        }
        "layout" => registry.layouts.push(layouts::read_layout(words)?),
        "field" => match registry.layouts.last_mut()? {
            Layout::Fields(rules) => rules.push(layouts::read_field(words)?),
            _ => return None,
        },
        "socket" => layouts::read_socket(&mut registry.sockets, words)?,
        "call" => rewriting::read_call(&mut registry.rewriting, words)?,
        "packet-load" => registry.rewriting.packet_loads = rewriting::read_packet_loads(words)?,
        "program" => {
            let (key, rules) = programs::read_program(words)?;
            registry.programs.insert(key, rules);
        }
        "iterator" => {
            let name = words.next()?.into();
            let target = programs::read_iterator(words)?;
            registry.iterators.insert(name, target);
        }
        "kfunc" => {
            let kfunc = kfuncs::read_kfunc(words)?;
            registry.kfuncs.insert(kfunc.name.clone(), kfunc);
        }
        "map" => {
            let traits = maps::read_map(words)?;
            registry.maps.insert(traits.kind, traits);
        }
        "list" => lists::read_list(&mut registry.lists, words)?,
        _ => return None,
    }
    Some(())
}

/// Text of the facts of a registry; [`parse`] reads it back.
pub fn write(registry: &RegistryData) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(registry, &mut text);
    text
}

fn write_all(registry: &RegistryData, out: &mut String) -> fmt::Result {
    for proto in &registry.protos {
        helpers::write_proto(proto, out)?;
    }
    for set in &registry.helper_sets {
        helpers::write_set(set, out)?;
    }
    for layout in &registry.layouts {
        layouts::write_layout(layout, out)?;
    }
    layouts::write_sockets(&registry.sockets, out)?;
    for (key, rules) in &registry.programs {
        programs::write_program(key, rules, out)?;
    }
    for kfunc in registry.kfuncs.values() {
        kfuncs::write_kfunc(kfunc, out)?;
    }
    for (name, target) in &registry.iterators {
        programs::write_iterator(name, target, out)?;
    }
    for traits in registry.maps.values() {
        maps::write_map(traits, out)?;
    }
    rewriting::write_rewriting(&registry.rewriting, out)?;
    lists::write_lists(&registry.lists, out)
}

#[cfg(test)]
mod tests {
    use super::super::ArgDetail;
    use super::*;

    const TEXT: &str = "\
proto 1 bpf_map_lookup_elem PTR_TO_MAP_VALUE|PTR_MAYBE_NULL: pkt CONST_MAP_PTR PTR_TO_MAP_KEY
proto 184 get_func_ret INTEGER: - PTR_TO_CTX PTR_TO_MEM|MEM_FIXED_SIZE|MEM_WRITE:8
proto 158 bpf_get_current_task_btf PTR_TO_BTF_ID|PTR_TRUSTED:task_struct -
helpers 0 2:perfmon 1:bpf
layout fields
field 0-8/4 124 - 4 SCALAR_VALUE 4 r4=3 w4=2 r4t=1
field 16-16/1 8 - - PTR_TO_BTF_ID|PTR_TRUSTED:sk_buff 8
layout btf
socket PTR_TO_TCP_SOCK 0-16/4 4 4 - SCALAR_VALUE 4 r4=2
program xdp * helpers=0 layout=0 sockmap=update,delete asked
program sched_cls * helpers=0 layout=0 prologue=9 asked
program kprobe * helpers=0 layout=0 refuses=0x4a3 asked
program tracing 28 helpers=0 layout=1 returns=0..1 asked
kfunc bpf_task_acquire 0x15 tracing,syscall
iterator bpf_map_elem 2:PTR_TO_BUF|PTR_MAYBE_NULL|MEM_RDONLY
iterator task helpers=0 1:PTR_TO_BTF_ID|PTR_MAYBE_NULL|PTR_TRUSTED:task_struct
map array helpers=1,2 direct sleepable fields=0x3
call 1 array 7
call 8 - 3
packet-load 9 9 10
list safe_rcu task_struct cpus_ptr
list nullable_tracepoint_args sched_pi_setprio 0x10
list destructor task_struct bpf_task_release_dtor
list d_path dentry_open vfs_truncate
";

    #[test]
    fn parsing_written_text_yields_the_registry() {
        let registry = parse(TEXT).unwrap();
        let written = write(&registry);
        assert_eq!(parse(&written), Ok(registry.clone()));
        for line in TEXT.lines().filter(|line| !line.starts_with("helpers")) {
            assert!(
                written.lines().any(|other| other == line),
                "{line}\n{written}"
            );
        }
        assert_eq!(registry.protos[1].arg_details[1], ArgDetail::Size(8));
        assert_eq!(
            registry.protos[2].ret_btf.as_ref().unwrap().name.as_ref(),
            "task_struct"
        );
    }

    #[test]
    fn malformed_lines_are_named() {
        for line in [
            "proto 0 x INTEGER: -",
            "nonsense",
            "field 0-0/1 1 - - SCALAR_VALUE 1",
            "program x * helpers=0",
        ] {
            assert_eq!(
                parse(&format!("# a comment\n{line}\n")),
                Err(Malformed {
                    line: 2,
                    kind: line.split(' ').next().unwrap_or_default().to_owned(),
                }),
                "{line}"
            );
        }
    }
}
