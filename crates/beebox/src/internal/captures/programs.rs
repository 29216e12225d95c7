//! Selection of the filter by interface.

use capture::Interface;

use crate::{Filter, FilterError};

/// Chooses the filter for an interface. Several threads call it, at the first packet of
/// an interface and again after each new section.
pub trait FilterSource: Sync {
    /// The filter for the packets of an interface, or why there is none.
    #[doc(hidden)]
    fn for_interface(&self, interface: &Interface) -> Result<&Filter, FilterError>;
}

/// One filter for all interfaces.
impl FilterSource for Filter {
    fn for_interface(&self, _: &Interface) -> Result<&Filter, FilterError> {
        Ok(self)
    }
}
