//! Which filter runs on the packets of which interface.

use std::convert::Infallible;

use capture::Interface;

use crate::Filter;

/// Chooses the filter for an interface. Several threads call it, at the first packet of
/// an interface and again after each new section.
pub trait Programs: Sync {
    /// Why there is no filter.
    type Refusal: Send;

    /// The filter for the packets of an interface.
    fn for_interface(&self, interface: &Interface) -> Result<&Filter, Self::Refusal>;
}

/// One filter for all interfaces.
impl Programs for Filter {
    type Refusal = Infallible;

    fn for_interface(&self, _: &Interface) -> Result<&Filter, Infallible> {
        Ok(self)
    }
}
