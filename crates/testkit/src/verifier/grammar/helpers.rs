//! Helpers that take the context, numbers, memory of the stack and maps, from a table.

use super::declarations::{EVENTS, RINGBUF};
use super::target::Family;
use super::{Grammar, Holds};

/// An argument of a helper.
#[derive(Clone, Copy)]
enum Argument {
    Context,
    /// Any number.
    Number,
    /// One of these numbers.
    One(&'static [i64]),
    /// So many bytes of the stack, which are written before.
    Memory(u32),
    /// So many bytes of the stack, which the helper writes.
    Room(u32),
    /// The size of the memory before, or fewer bytes.
    Size(u32),
    Map(u32),
}

/// Program types that mostly have a helper.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    All,
    /// Those with `__sk_buff`.
    Skb,
    /// Those of them that write the packet: tc and lwt_xmit.
    Writers,
    Tc,
    Xdp,
}

/// A helper: number, program types, whether pointers into the packet are gone after it,
/// arguments.
type Row = (u32, Types, bool, &'static [Argument]);

use Argument::{Context, Map, Memory, Number, One, Room, Size};

const FLAGS: Argument = One(&[0, 0, 0, 1, 2]);

const TABLE: &[Row] = &[
    (
        9,
        Types::Writers,
        true,
        &[Context, Number, Memory(16), Size(16), FLAGS],
    ),
    (
        10,
        Types::Writers,
        true,
        &[Context, Number, Number, Number, One(&[0, 2, 4])],
    ),
    (
        11,
        Types::Writers,
        true,
        &[Context, Number, Number, Number, One(&[0, 2, 4, 0x12])],
    ),
    (13, Types::Writers, true, &[Context, One(&[1, 1, 2]), FLAGS]),
    (14, Types::All, false, &[]),
    (15, Types::All, false, &[]),
    (16, Types::All, false, &[Room(16), Size(16)]),
    (
        18,
        Types::Tc,
        true,
        &[Context, One(&[0x8100, 0x81, 0xa888]), Number],
    ),
    (19, Types::Tc, true, &[Context]),
    (
        20,
        Types::Writers,
        false,
        &[Context, Room(28), Size(28), FLAGS],
    ),
    (
        21,
        Types::Writers,
        false,
        &[Context, Memory(28), Size(28), FLAGS],
    ),
    (23, Types::Tc, false, &[One(&[0, 1, 2]), FLAGS]),
    (
        25,
        Types::Skb,
        false,
        &[
            Context,
            Map(EVENTS),
            One(&[0, 1, 0xffff_ffff]),
            Memory(24),
            Size(24),
        ],
    ),
    (
        25,
        Types::Xdp,
        false,
        &[
            Context,
            Map(EVENTS),
            One(&[0, 1, 0xffff_ffff]),
            Memory(24),
            Size(24),
        ],
    ),
    (
        31,
        Types::Tc,
        true,
        &[Context, One(&[0x0008, 0xdd86]), One(&[0])],
    ),
    (32, Types::Tc, false, &[Context, One(&[0, 1, 3])]),
    (34, Types::Skb, false, &[Context]),
    (
        38,
        Types::Writers,
        true,
        &[Context, One(&[14, 40, 64, 200]), FLAGS],
    ),
    (40, Types::Writers, false, &[Context, Number]),
    (41, Types::Writers, false, &[Context]),
    (
        43,
        Types::Writers,
        true,
        &[Context, One(&[0, 4, 14, 64]), FLAGS],
    ),
    (44, Types::Xdp, true, &[Context, One(&[-8, 4, 14, 60])]),
    (46, Types::Tc, false, &[Context]),
    (48, Types::Tc, false, &[Context, Number]),
    (
        50,
        Types::Tc,
        true,
        &[Context, One(&[-8, 4, 20]), One(&[0, 1]), FLAGS],
    ),
    (54, Types::Xdp, true, &[Context, One(&[-32, -8, -4, 0, 4])]),
    (65, Types::Xdp, true, &[Context, One(&[-20, -4, 0, 8])]),
    (
        68,
        Types::Tc,
        false,
        &[Context, Number, Room(8), Size(8), One(&[0, 1])],
    ),
    (
        106,
        Types::All,
        false,
        &[Memory(16), Size(16), One(&[0, 8, 10, 16]), Room(8)],
    ),
    (125, Types::All, false, &[]),
    (134, Types::All, false, &[Map(RINGBUF), One(&[0, 1, 2, 3])]),
    (135, Types::Writers, false, &[Context, One(&[0, 1, 2, 3])]),
    (
        163,
        Types::Tc,
        false,
        &[Context, One(&[0, 1]), Memory(4), Number, One(&[0])],
    ),
    (
        163,
        Types::Xdp,
        false,
        &[Context, One(&[0, 1]), Memory(4), Number, One(&[0])],
    ),
    (188, Types::Xdp, false, &[Context]),
    (
        189,
        Types::Xdp,
        false,
        &[Context, Number, Room(16), Size(16)],
    ),
    (
        190,
        Types::Xdp,
        false,
        &[Context, Number, Memory(16), Size(16)],
    ),
    (192, Types::Tc, false, &[Context, Number, One(&[0, 1])]),
    (208, Types::All, false, &[]),
];

impl Grammar<'_, '_> {
    /// A call of a helper of the table that the program type mostly has.
    pub(super) fn table_helper(&mut self) {
        let target = self.target;
        let has_skb = target.has(Family::Skb);
        let is_tc = has_skb && target.has(Family::Legacy) && target.writes_packet;
        let is_of = |types: Types| match types {
            Types::All => true,
            Types::Skb => has_skb,
            Types::Writers => has_skb && target.writes_packet,
            Types::Tc => is_tc,
            Types::Xdp => target.name == "xdp",
        };
        let has_context = self.context().is_some();
        let rows: Vec<&Row> = TABLE
            .iter()
            .filter(|(_, types, _, arguments)| {
                is_of(*types) && (has_context || !matches!(arguments.first(), Some(Context)))
            })
            .collect();
        let (number, _, moves, arguments) = *self.choices.pick(&rows);
        self.table_arguments(arguments);
        self.line(&format!("call {number}"));
        if moves && !self.choices.one_in(30) {
            self.forget(|held| matches!(held, Holds::Packet(_)));
        }
    }

    /// Puts the arguments into r1 and so on. The context goes first into r1, so that no
    /// other argument overwrites the register that holds it.
    fn table_arguments(&mut self, arguments: &[Argument]) {
        if let Some(Context) = arguments.first()
            && let Some(context) = self.context()
        {
            self.line(&format!("r1 = {context}"));
        }
        // Statements that numbers and sizes come from leave r6 to r9 as they are.
        for held in &mut self.holds[..6] {
            *held = Holds::Nothing;
        }
        let mut place = 0;
        for (register, argument) in (1..).zip(arguments) {
            match *argument {
                Context => {}
                Number => {
                    let number = self.register(Holds::NUMBERS);
                    self.line(&format!("r{register} = {number}"));
                }
                One(numbers) => {
                    let number = self.choices.pick(numbers);
                    match i32::try_from(number) {
                        Ok(number) => self.line(&format!("r{register} = {number}")),
                        Err(_) => self.line(&format!("w{register} = {}", number as i32)),
                    }
                }
                Memory(size) | Room(size) => {
                    let slots = size.div_ceil(8);
                    place += slots;
                    if let Memory(_) = argument {
                        for slot in place - slots + 1..=place {
                            let value = self.choices.below(256);
                            self.line(&format!("*(u64 *)(r10 - {}) = {value}", 8 * slot));
                        }
                    }
                    self.slots[(place - slots + 1) as usize..=place as usize].fill(Holds::Number);
                    self.line(&format!("r{register} = r10"));
                    self.line(&format!("r{register} += -{}", 8 * place));
                }
                Size(size) => self.size_argument(register, size),
                Map(map) => self.line(&format!("r{register} = map_idx({map}) ll")),
            }
        }
    }
}
