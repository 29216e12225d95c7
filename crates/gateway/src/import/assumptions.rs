//! Assumptions about the packets of an imported chain, beyond their headers.

/// Properties that the caller asserts of all packets. Conditions on unknown properties cannot be
/// expressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// The interface by which they arrive.
    pub in_interface: Option<String>,
    /// The interface by which they leave.
    pub out_interface: Option<String>,
    /// Their state of connection tracking.
    pub state: Option<ConnectionState>,
}

/// A state of connection tracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The packet begins a connection.
    New,
    /// It belongs to one that was seen in both directions.
    Established,
    /// It begins a connection that an established one expects.
    Related,
    /// It belongs to no connection.
    Invalid,
    /// It is not tracked.
    Untracked,
}

impl ConnectionState {
    /// The name of nftables; that of iptables has capital letters.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionState::New => "new",
            ConnectionState::Established => "established",
            ConnectionState::Related => "related",
            ConnectionState::Invalid => "invalid",
            ConnectionState::Untracked => "untracked",
        }
    }
}

/// A side on which a packet has an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    In,
    Out,
}

impl Assumptions {
    /// True if packets have an interface on a side with one of these names; a name that ends in
    /// `wildcard` stands for those that begin so.
    ///
    /// # Errors
    /// The reason if the interface is not known.
    pub(super) fn has_interface(
        &self,
        side: Side,
        names: &[&str],
        wildcard: char,
    ) -> Result<bool, String> {
        let (known, what, option) = match side {
            Side::In => (&self.in_interface, "arrive", "--in-interface"),
            Side::Out => (&self.out_interface, "leave", "--out-interface"),
        };
        let known = known.as_ref().ok_or_else(|| {
            format!("the interface by which packets {what} is unknown; state it with {option}")
        })?;
        Ok(names.iter().any(|name| match name.strip_suffix(wildcard) {
            Some(begin) => known.starts_with(begin),
            None => known == name,
        }))
    }

    /// True if packets have one of these states, in any case of letters.
    ///
    /// # Errors
    /// The reason if the state is not known.
    pub(super) fn has_state(&self, states: &[&str]) -> Result<bool, String> {
        let known = self
            .state
            .ok_or("the connection's state is unknown; state it with --ct-state")?;
        if states
            .iter()
            .any(|it| it.eq_ignore_ascii_case(known.name()))
        {
            return Ok(true);
        }
        const OTHERS: [&str; 2] = ["SNAT", "DNAT"];
        match states.iter().find(|it| OTHERS.contains(it)) {
            Some(other) => Err(format!("connection state {other} is unsupported")),
            None => Ok(false),
        }
    }
}
