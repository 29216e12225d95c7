//! Processor extensions beyond baseline x86-64.

/// Extensions that the code generator uses where available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// BMI2: shifts by any register (`shlx`, `shrx`, `sarx`), three-operand rotation
    /// (`rorx`).
    pub bmi2: bool,
    /// MOVBE: byte-swapping loads.
    pub movbe: bool,
    /// BMI1: `tzcnt`, which counts trailing zeros of 0, too.
    pub bmi1: bool,
    /// LZCNT, which counts leading zeros of 0, too.
    pub lzcnt: bool,
    /// POPCNT.
    pub popcnt: bool,
}

impl Features {
    /// No extensions: code for every x86-64 processor.
    pub const PLAIN: Features = Features {
        bmi2: false,
        movbe: false,
        bmi1: false,
        lzcnt: false,
        popcnt: false,
    };

    /// The extensions of this processor; none if it is no x86-64 one.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Features {
        Features {
            bmi2: std::arch::is_x86_feature_detected!("bmi2"),
            movbe: std::arch::is_x86_feature_detected!("movbe"),
            bmi1: std::arch::is_x86_feature_detected!("bmi1"),
            lzcnt: std::arch::is_x86_feature_detected!("lzcnt"),
            popcnt: std::arch::is_x86_feature_detected!("popcnt"),
        }
    }

    /// The extensions of this processor; none if it is no x86-64 one.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Features {
        Features::PLAIN
    }
}

impl Default for Features {
    /// The extensions of this processor.
    fn default() -> Features {
        Features::detect()
    }
}
