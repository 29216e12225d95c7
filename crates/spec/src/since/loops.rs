//! Loops in the control flow of a program, which Linux has since 5.3.

use isa::ebpf::{Flow, Insn};

/// True if the control flow from the first instruction has a cycle, by depth-first search.
pub fn has_loop(insns: &[Insn]) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnPath,
        Done,
    }
    let next = |at: usize| {
        let to = |skip: i32| usize::try_from(at as i64 + 1 + i64::from(skip)).ok();
        match insns[at].flow() {
            Flow::Next | Flow::Call(_) => [to(0), None],
            Flow::SkipOne => [to(1), None],
            Flow::Branch(skip) => [to(0), to(skip)],
            Flow::Goto(skip) => [to(skip), None],
            Flow::GotoReg(_) | Flow::Exit | Flow::Nowhere => [None, None],
        }
    };
    let mut seen = vec![Seen::Never; insns.len()];
    let mut path: Vec<(usize, usize)> = Vec::new();
    if !insns.is_empty() {
        seen[0] = Seen::OnPath;
        path.push((0, 0));
    }
    while let Some((at, tried)) = path.last_mut() {
        let Some(way) = next(*at).get(*tried).copied() else {
            seen[*at] = Seen::Done;
            path.pop();
            continue;
        };
        *tried += 1;
        match way.filter(|to| *to < insns.len()) {
            Some(to) if seen[to] == Seen::OnPath => return true,
            Some(to) if seen[to] == Seen::Never => {
                seen[to] = Seen::OnPath;
                path.push((to, 0));
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    #[test]
    fn jumps_back_are_loops_only_if_the_walk_returns() {
        let turns = assemble("r1 = 5\nagain: r1 += -1\nif r1 != 0 goto again\nexit").unwrap();
        assert!(has_loop(&turns));
        let crossing = assemble("goto a\nb: exit\na: goto b").unwrap();
        assert!(!has_loop(&crossing));
        assert!(!has_loop(&[]));
    }
}
