//! A value of the file with its place, and conversions of its members.

use std::net::IpAddr;
use std::str::FromStr;

use vm::network::{NetDevice, Network, RoutePrefix};

use super::NetworkFileError;
use super::json::Json;

/// A value of the file.
pub(super) struct Item<'j> {
    json: &'j Json,
    place: String,
}

impl<'j> Item<'j> {
    /// The whole file.
    pub(super) fn top(json: &'j Json) -> Item<'j> {
        Item {
            json,
            place: String::new(),
        }
    }

    /// An error about this value.
    pub(super) fn error(&self, problem: impl Into<String>) -> NetworkFileError {
        NetworkFileError {
            place: self.place.clone(),
            problem: problem.into(),
        }
    }

    fn expected(&self, what: &str) -> NetworkFileError {
        self.error(format!("{what} is expected, {} is here", self.json.kind()))
    }

    fn members(&self) -> &'j [(String, Json)] {
        match self.json {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// Refuses what is no object, and other members than these.
    pub(super) fn check_members(&self, known: &[&str]) -> Result<(), NetworkFileError> {
        let Json::Object(members) = self.json else {
            return Err(self.expected("an object"));
        };
        let unknown = members.iter().find(|(name, _)| !known.contains(&&**name));
        match unknown {
            None => Ok(()),
            Some((name, _)) => Err(self.error(format!(
                "unknown member `{name}`; known are {}",
                known.join(", ")
            ))),
        }
    }

    /// True if it has the member.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members().iter().any(|(other, _)| other == name)
    }

    /// The first member of a name.
    pub(super) fn get(&self, name: &str) -> Option<Item<'j>> {
        let mut members = self.members().iter();
        let (_, json) = members.find(|(other, _)| other == name)?;
        let place = match self.place.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.place),
        };
        Some(Item { json, place })
    }

    /// A member that has to be there.
    pub(super) fn need(&self, name: &str) -> Result<Item<'j>, NetworkFileError> {
        match self.json {
            Json::Object(_) => {}
            _ => return Err(self.expected("an object")),
        }
        let missing = || self.error(format!("`{name}` is missing"));
        self.get(name).ok_or_else(missing)
    }

    /// The values of a list that is a member; none without it. `ip` prints empty objects for
    /// what does not match.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Item<'j>>, NetworkFileError> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(list) => list.items(),
        }
    }

    fn items(&self) -> Result<Vec<Item<'j>>, NetworkFileError> {
        let Json::List(items) = self.json else {
            return Err(self.expected("a list"));
        };
        let numbered = items.iter().enumerate();
        let items = numbered.map(|(number, json)| Item {
            json,
            place: format!("{}[{number}]", self.place),
        });
        Ok(items.filter(|item| !item.is_empty()).collect())
    }

    fn is_empty(&self) -> bool {
        matches!(self.json, Json::Object(members) if members.is_empty())
    }

    /// Its text.
    pub(super) fn text(&self) -> Result<&'j str, NetworkFileError> {
        match self.json {
            Json::Text(text) => Ok(text),
            _ => Err(self.expected("text")),
        }
    }

    /// The text of a member; `None` without it.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<&'j str>, NetworkFileError> {
        self.get(name).map(|item| item.text()).transpose()
    }

    /// A number, also as text in decimal or hexadecimal.
    pub(super) fn number<N: TryFrom<i128>>(&self) -> Result<N, NetworkFileError> {
        let number = match self.json {
            Json::Number(number) => Some(*number),
            Json::Text(text) => match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        };
        let number = number.ok_or_else(|| match self.json {
            Json::Text(text) => self.error(format!(
                "`{text}` is no number; `ip -N` prints numbers in place of names"
            )),
            _ => self.expected("a number"),
        })?;
        let out_of_range = || self.error(format!("{number} is out of range"));
        N::try_from(number).map_err(|_| out_of_range())
    }

    /// The number of a member, or another one without it.
    pub(super) fn number_or<N: TryFrom<i128>>(
        &self,
        name: &str,
        or: N,
    ) -> Result<N, NetworkFileError> {
        self.get(name).map_or(Ok(or), |item| item.number())
    }

    /// The truth value of a member; false without it.
    pub(super) fn flag(&self, name: &str) -> Result<bool, NetworkFileError> {
        match self.get(name) {
            None => Ok(false),
            Some(item) => match item.json {
                Json::Flag(flag) => Ok(*flag),
                _ => Err(item.expected("true or false")),
            },
        }
    }

    /// True if a list of words that is a member has this one.
    pub(super) fn has_word(&self, name: &str, word: &str) -> Result<bool, NetworkFileError> {
        for item in self.list(name)? {
            if item.text()? == word {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A value that has a text form.
    pub(super) fn parse<T: FromStr>(&self, what: &str) -> Result<T, NetworkFileError> {
        let text = self.text()?;
        let wrong = |_| self.error(format!("`{text}` is no {what}"));
        text.parse().map_err(wrong)
    }

    /// An IP address.
    pub(super) fn address(&self) -> Result<IpAddr, NetworkFileError> {
        self.parse("IP address")
    }

    /// A prefix: an address with or without length, `default` or `all`.
    pub(super) fn prefix(&self, is_ipv4: bool) -> Result<RoutePrefix, NetworkFileError> {
        let text = self.text()?;
        let wrong = || self.error(format!("`{text}` is no prefix"));
        if matches!(text, "default" | "all") {
            return Ok(match is_ipv4 {
                true => RoutePrefix::ALL_IPV4,
                false => RoutePrefix::ALL_IPV6,
            });
        }
        let prefix = match text.split_once('/') {
            None => RoutePrefix::host(text.parse().map_err(|_| wrong())?),
            Some((address, len)) => {
                let address = address.parse().map_err(|_| wrong())?;
                let len = len.parse().map_err(|_| wrong())?;
                RoutePrefix::new(address, len).ok_or_else(wrong)?
            }
        };
        match prefix.address().is_ipv4() == is_ipv4 {
            true => Ok(prefix),
            false => Err(self.error(format!("`{text}` is of the other family of IP"))),
        }
    }

    /// A hardware address.
    pub(super) fn mac(&self) -> Result<[u8; 6], NetworkFileError> {
        let text = self.text()?;
        let bytes: Option<Vec<u8>> = text
            .split(':')
            .map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect();
        let mac = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        mac.ok_or_else(|| self.error(format!("`{text}` is no hardware address of 6 bytes")))
    }

    /// A device, by its name.
    pub(super) fn device<'n>(
        &self,
        network: &'n Network,
    ) -> Result<&'n NetDevice, NetworkFileError> {
        let name = self.text()?;
        let missing = || {
            self.error(format!(
                "no device is named `{name}`; `link` or `addr` has the devices"
            ))
        };
        network.device_named(name).ok_or_else(missing)
    }
}
