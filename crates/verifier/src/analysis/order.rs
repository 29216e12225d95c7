//! Orders of the control-flow graph: postorder and strongly connected components.

use super::Analysis;
use super::subprogs::NONE;

/// Computes the postorder of each subprogram (`compute_postorder`) (`bpf_compute_postorder`). The
/// walk discovers all successors of an instruction at once, as the kernel does, so the order
/// differs from that of a recursive search; the log of live stack slots depends on it.
#[doc(alias = "bpf_compute_postorder")]
pub(super) fn compute_postorder(analysis: &mut Analysis) {
    const DISCOVERED: u8 = 1;
    const EXPLORED: u8 = 2;
    let count = analysis.insns.len();
    let mut state = vec![0u8; count];
    let mut stack: Vec<u32> = Vec::new();
    let mut order: Vec<u32> = Vec::with_capacity(count);
    for subprog in &mut analysis.subprogs {
        subprog.postorder_start = order.len() as u32;
        stack.push(subprog.start);
        while let Some(&top) = stack.last() {
            let seen = &mut state[top as usize];
            *seen |= DISCOVERED;
            if *seen & EXPLORED != 0 {
                order.push(top);
                stack.pop();
                continue;
            }
            *seen |= EXPLORED;
            for next in analysis.successors[top as usize] {
                if next != NONE && state[next as usize] == 0 {
                    state[next as usize] = DISCOVERED;
                    stack.push(next);
                }
            }
        }
        subprog.postorder_end = order.len() as u32;
    }
    analysis.postorder = order;
}

/// Numbers the strongly connected components that have a cycle from 1 on (`compute_scc`), by
/// Tarjan's algorithm with an explicit stack, in Pearce's form: the smallest reachable preorder
/// number is taken from successors visited or not (`bpf_compute_scc`).
#[doc(alias = "compute_scc")]
#[doc(alias = "bpf_compute_scc")]
pub(super) fn compute_components(analysis: &mut Analysis) {
    const NOT_ON_STACK: u32 = u32::MAX;
    let count = analysis.insns.len();
    let mut preorder = vec![0u32; count];
    let mut low = vec![0u32; count];
    let mut stack: Vec<u32> = Vec::new();
    let mut search: Vec<u32> = Vec::new();
    let (mut next_number, mut next_component) = (1, 1);
    for root in 0..count {
        if preorder[root] != 0 {
            continue;
        }
        // The second slot of a wide load has no successors of its own to follow.
        search.push(root as u32);
        'search: while let Some(&top) = search.last() {
            let index = top as usize;
            if preorder[index] == 0 {
                low[index] = next_number;
                preorder[index] = next_number;
                next_number += 1;
                stack.push(top);
            }
            let next = analysis.successors[index];
            for next in next.into_iter().filter(|next| (*next as usize) < count) {
                if preorder[next as usize] == 0 {
                    search.push(next);
                    continue 'search;
                }
                low[index] = low[index].min(low[next as usize]);
            }
            search.pop();
            if low[index] < preorder[index] {
                continue;
            }
            let is_cycle = stack.last() != Some(&top) || next.contains(&top);
            while let Some(member) = stack.pop() {
                low[member as usize] = NOT_ON_STACK;
                if is_cycle {
                    analysis.insns[member as usize].scc = next_component;
                }
                if member == top {
                    break;
                }
            }
            next_component += u32::from(is_cycle);
        }
    }
    analysis.scc_count = next_component;
}
