//! Classes of ports in pages of 64, each different page once, behind an index of pages.

use std::collections::HashMap;

use crate::layout::{NO_PORT, PAGE, PAGE_INDEX};

/// The index of pages and the pages, in numbers of 2 bytes; an even number of pairs.
pub(crate) fn build(intervals: &[(u128, u32)]) -> Vec<u16> {
    let mut table = vec![0; PAGE_INDEX];
    let mut pages: HashMap<Vec<u16>, u16> = HashMap::new();
    let mut at = 0;
    for number in 0..=NO_PORT / PAGE {
        let page: Vec<u16> = (number * PAGE..(number + 1) * PAGE)
            .map(|port| {
                while (intervals.get(at + 1)).is_some_and(|next| next.0 <= port.into()) {
                    at += 1;
                }
                // There are fewer classes than ports.
                intervals[at].1 as u16
            })
            .collect();
        let next = pages.len() as u16;
        let place = *pages.entry(page.clone()).or_insert_with(|| {
            table.extend(&page);
            next
        });
        table[number as usize] = place;
    }
    table
}
