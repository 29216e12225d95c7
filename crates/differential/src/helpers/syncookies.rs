//! Families of helpers for SYN cookies: one is made, acknowledged and checked. The secrets of
//! both sides differ, so that a cookie itself is not compared.

use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, bytes_at};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("SYN cookies", cookies)];

/// Places of the headers below the frame pointer.
const IP: u32 = 160;
const TCP: u32 = 80;

fn cookies(choices: &mut Choices<'_>) -> Case {
    let is_ipv4 = choices.one_in(2);
    let (generate, check) = if is_ipv4 { (204, 206) } else { (205, 207) };
    let ip: Vec<u8> = (0..40).map(|_| choices.below(256) as u8).collect();
    let words = choices.below(6);
    let mut tcp: Vec<u8> = (0..20 + 4 * words)
        .map(|_| choices.below(256) as u8)
        .collect();
    let mut options: Vec<u8> = (0..choices.below(4))
        .map(|_| choices.pick(&[1, 1, 8]))
        .collect();
    match choices.below(4) {
        0 => options.extend([2, choices.pick(&[4, 4, 3, 1, 0, 40]), 0, 0]),
        1 => options.extend([3, 3, 7]),
        _ => {}
    }
    let size = match choices.one_in(3) {
        true => choices.below(65_536),
        false => choices.pick(&[535, 536, 1220, 1299, 1300, 1440, 1459, 1460, 8940]),
    };
    options.extend([2, 4, (size >> 8) as u8, size as u8]);
    for (place, option) in tcp[20..].iter_mut().zip(options) {
        *place = option;
    }
    let doff = match choices.one_in(8) {
        true => choices.below(16),
        false => 5 + words,
    };
    tcp[12] = (doff as u8) << 4 | choices.below(16) as u8;
    let len = match choices.one_in(10) {
        true => choices.below(tcp.len() as u32 + 1),
        false => tcp.len() as u32,
    };
    let wrong = match choices.one_in(3) {
        true => choices.pick(&[1, 1 << 24, 1 << 25, -1, 0x1234_5678]),
        false => 0,
    };
    let (stores, more) = (bytes_at(IP, &ip), bytes_at(TCP, &tcp));
    let (sequence, acknowledged) = (TCP - 4, TCP - 8);
    let text = format!(
        "{stores}{more}r1 = r10\nr1 += -{IP}\nr2 = r10\nr2 += -{TCP}\nr3 = {len}\ncall {generate}\n\
         if r0 s< 0 goto out\nr6 = r0\nr6 >>= 32\nw1 = w0\nw1 += {wrong}\nw1 += 1\nr1 = be32 r1\n\
         *(u32 *)(r10 - {acknowledged}) = r1\nr1 = *(u32 *)(r10 - {sequence})\nr1 = be32 r1\nw1 += 1\n\
         r1 = be32 r1\n*(u32 *)(r10 - {sequence}) = r1\nr1 = r10\nr1 += -{IP}\nr2 = r10\nr2 += -{TCP}\n\
         call {check}\nr0 *= 31\nr0 += r6\nout:\nexit"
    );
    Case {
        kind: choices.pick(&[ProgramType::Xdp, ProgramType::SchedCls]),
        ..Case::tc(choices, text)
    }
}
