//! Pseudo sources: the meaning of the source field of 64-bit immediate loads and calls
//! (`BPF_PSEUDO_*` of `include/uapi/linux/bpf.h`, RFC 9669 section 5.4).

use super::RawInsn;

/// Meaning of the immediate of a 64-bit load, by the number in its source field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PseudoLoad {
    /// A plain number.
    Plain = 0,
    /// `BPF_PSEUDO_MAP_FD`: a map by file descriptor.
    MapFd = 1,
    /// `BPF_PSEUDO_MAP_VALUE`: an address in a map's value, by file descriptor.
    MapValue = 2,
    /// `BPF_PSEUDO_BTF_ID`: a kernel variable by BTF id.
    BtfId = 3,
    /// `BPF_PSEUDO_FUNC`: the address of a subprog.
    Func = 4,
    /// `BPF_PSEUDO_MAP_IDX`: a map by index.
    MapIdx = 5,
    /// `BPF_PSEUDO_MAP_IDX_VALUE`: an address in a map's value, by the map's index.
    MapIdxValue = 6,
}

impl PseudoLoad {
    /// The meaning of a number; `None` for numbers that Linux refuses.
    pub const fn from_number(number: u8) -> Option<PseudoLoad> {
        Some(match number {
            0 => PseudoLoad::Plain,
            1 => PseudoLoad::MapFd,
            2 => PseudoLoad::MapValue,
            3 => PseudoLoad::BtfId,
            4 => PseudoLoad::Func,
            5 => PseudoLoad::MapIdx,
            6 => PseudoLoad::MapIdxValue,
            _ => return None,
        })
    }

    /// Number in the source field.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Meaning of the immediate of a call, by the number in its source field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PseudoCall {
    /// A helper by number.
    Helper = 0,
    /// `BPF_PSEUDO_CALL`: a subprog, by its distance.
    Local = 1,
    /// `BPF_PSEUDO_KFUNC_CALL`: a kernel function by BTF id.
    Kfunc = 2,
}

impl PseudoCall {
    /// The meaning of a number; `None` for numbers that Linux refuses.
    pub const fn from_number(number: u8) -> Option<PseudoCall> {
        Some(match number {
            0 => PseudoCall::Helper,
            1 => PseudoCall::Local,
            2 => PseudoCall::Kfunc,
            _ => return None,
        })
    }

    /// Number in the source field.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl RawInsn {
    /// Meaning of the immediate, if this is the first slot of a 64-bit immediate load
    /// with a known source.
    pub const fn pseudo_load(self) -> Option<PseudoLoad> {
        match self.is_wide_load() {
            true => PseudoLoad::from_number(self.src()),
            false => None,
        }
    }

    /// Meaning of the immediate, if this is a call with a known source.
    pub const fn pseudo_call(self) -> Option<PseudoCall> {
        match self.is_call() {
            true => PseudoCall::from_number(self.src()),
            false => None,
        }
    }

    /// Sets the source field.
    pub const fn set_src(&mut self, src: u8) {
        self.regs = self.regs & 15 | src << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_source_field() {
        for number in 0..=15 {
            let load = RawInsn {
                code: 0x18,
                regs: number << 4 | 3,
                ..RawInsn::default()
            };
            let call = RawInsn { code: 0x85, ..load };
            let found = load.pseudo_load().map(PseudoLoad::number);
            assert_eq!(found, (number <= 6).then_some(number));
            let found = call.pseudo_call().map(PseudoCall::number);
            assert_eq!(found, (number <= 2).then_some(number));
            assert_eq!((call.pseudo_load(), load.pseudo_call()), (None, None));
            let mut plain = load;
            plain.set_src(1);
            assert_eq!((plain.dst(), plain.src()), (3, 1));
        }
    }
}
