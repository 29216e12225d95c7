//! Values of local storage as JSON, by the objects that they belong to: `"task"`, the task that
//! runs; `"packet"`, the socket of the packet of a test run; the cookie of a socket of the network.

use report::value::Ordered;
use serde_json::Value;

use super::{Part, Types};
use crate::internal::run::{ObjectMap, StorageOwner};

/// Form of the entries of local storage.
pub(super) const FORM: &str =
    r#"{"MAP": [{"owner": "task", "value": VALUE}]}: "task", "packet" or the cookie of a socket"#;

const TASK: &str = "task";
const PACKET: &str = "packet";

/// The values of a map.
pub(super) fn values(map: &ObjectMap, of: &Types<'_>) -> impl Iterator<Item = Ordered> {
    map.owned_values().into_iter().map(|(owner, value)| {
        let owner = match owner {
            StorageOwner::Task => TASK.into(),
            StorageOwner::PacketSocket => PACKET.into(),
            StorageOwner::Number(number) => number.into(),
        };
        Ordered::Object(vec![
            ("owner".to_owned(), Ordered::Scalar(owner)),
            ("value".to_owned(), of.show(Part::Value, &value)),
        ])
    })
}

/// The object that a value names.
pub(super) fn owner_of(value: &Value) -> Option<StorageOwner> {
    match value {
        Value::String(name) if name == TASK => Some(StorageOwner::Task),
        Value::String(name) if name == PACKET => Some(StorageOwner::PacketSocket),
        owner => owner.as_u64().map(StorageOwner::Number),
    }
}

/// Sets the value of an entry; the members that it leaves out.
pub(super) fn put(map: &ObjectMap, of: &Types<'_>, entry: &Value) -> Result<Vec<String>, String> {
    let owner = entry.get("owner").ok_or("it has no owner")?;
    let owner =
        owner_of(owner).ok_or_else(|| format!("owner: {owner} is no object with storage"))?;
    let mut value = vec![0; map.def.params.value_size as usize];
    let given = entry.get("value").ok_or("it has no value")?;
    let left_out = of.fill(Part::Value, given, &mut value);
    let left_out = left_out.map_err(|error| format!("value: {error}"))?;
    let put = map.set_owned_value(owner, &value);
    put.map_err(|errno| format!("the map does not take it: {errno}"))?;
    Ok(left_out)
}
