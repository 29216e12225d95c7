//! What the processor offers beyond the first x86-64.

use crate::analysis::Counts;

/// Extensions that the code generator uses where they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `tzcnt`, `andn`.
    pub bmi1: bool,
    /// Shifts by any register, rotations into another one.
    pub bmi2: bool,
    /// Loads and stores in the other byte order.
    pub movbe: bool,
    /// `popcnt`.
    pub popcnt: bool,
    /// `lzcnt`.
    pub lzcnt: bool,
}

impl Features {
    /// None: the plain forms, which every x86-64 processor runs.
    pub const PLAIN: Features = Features {
        bmi1: false,
        bmi2: false,
        movbe: false,
        popcnt: false,
        lzcnt: false,
    };

    /// Those of the processor that runs this.
    pub fn detect() -> Features {
        Features {
            bmi1: std::arch::is_x86_feature_detected!("bmi1"),
            bmi2: std::arch::is_x86_feature_detected!("bmi2"),
            movbe: std::arch::is_x86_feature_detected!("movbe"),
            popcnt: std::arch::is_x86_feature_detected!("popcnt"),
            lzcnt: std::arch::is_x86_feature_detected!("lzcnt"),
        }
    }

    /// What is counted by one instruction.
    pub(crate) fn counts(self) -> Counts {
        Counts {
            ones: self.popcnt,
            trailing_zeros: self.bmi1,
            leading_zeros: self.lzcnt,
        }
    }
}

impl Default for Features {
    /// Those of the processor that runs this.
    fn default() -> Features {
        Features::detect()
    }
}
