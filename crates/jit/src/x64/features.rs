//! What the processor offers beyond the first x86-64.

/// Extensions that the code generator uses where they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Shifts by any register, rotations into another one.
    pub bmi2: bool,
    /// Loads that swap bytes (`movbe`).
    pub movbe: bool,
}

impl Features {
    /// None: the plain forms, which every x86-64 processor runs.
    pub const PLAIN: Features = Features {
        bmi2: false,
        movbe: false,
    };

    /// Those of the processor that runs this.
    pub fn detect() -> Features {
        Features {
            bmi2: std::arch::is_x86_feature_detected!("bmi2"),
            movbe: std::arch::is_x86_feature_detected!("movbe"),
        }
    }
}

impl Default for Features {
    /// Those of the processor that runs this.
    fn default() -> Features {
        Features::detect()
    }
}
