//! Reader of profiles in JSON or YAML, with the position of every error.
//!
//! Keys are those of the OCI runtime specification, of Docker's profiles and of
//! containers-common (Podman); any other key is an error, because a misspelt key would drop
//! rules.

use std::fmt;

use serde_json::{Map, Value};
use spec::kernel::KernelVersion;

#[cfg(feature = "yaml")]
use super::yaml;
use super::{ArgCondition, ArgOp, ContainerProfile, MachineCondition, SyscallRule};
use crate::action::Action;
use crate::errno;
use crate::json;

/// An error in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// Position: line and column for invalid JSON, otherwise the path of the value, as in
    /// `syscalls[3].args[0].op`.
    pub place: String,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for ProfileError {}

impl ContainerProfile {
    /// Reads a profile in JSON, or in YAML (feature `yaml`) as the Security Profiles Operator of
    /// Kubernetes writes it.
    pub fn read(text: &[u8]) -> Result<ContainerProfile, ProfileError> {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let value = match first {
            Some(b'{') => read_json(text)?,
            _ => read_yaml(text)?,
        };
        read_root(&Place::root(&value))
    }
}

#[cfg(feature = "yaml")]
fn read_yaml(text: &[u8]) -> Result<Value, ProfileError> {
    yaml::read(text)
}

#[cfg(not(feature = "yaml"))]
fn read_yaml(_: &[u8]) -> Result<Value, ProfileError> {
    Err(ProfileError {
        place: "line 1, column 1".to_owned(),
        what: "no JSON, and YAML needs the cargo feature yaml".to_owned(),
    })
}

fn read_json(text: &[u8]) -> Result<Value, ProfileError> {
    json::read(text).map_err(|error| {
        let what = error.to_string();
        let what = what.rsplit_once(" at line ").map_or(&*what, |it| it.0);
        ProfileError {
            place: format!("line {}, column {}", error.line(), error.column()),
            what: match error.is_data() {
                true => what.to_owned(),
                false => format!("invalid JSON: {what}"),
            },
        }
    })
}

/// Reads a profile, or what has one inside: an OCI configuration, or a SeccompProfile of
/// Kubernetes.
fn read_root(root: &Place<'_>) -> Result<ContainerProfile, ProfileError> {
    if let Some(kind) = root.get("kind")? {
        if kind.string()? != "SeccompProfile" {
            return Err(kind.fault("is not SeccompProfile"));
        }
        let spec = root.required("spec")?;
        root.check_only_profile("spec")?;
        if spec.get("baseProfileName")?.is_some() {
            return Err(spec.fault("baseProfileName: the rules of base profiles are not read"));
        }
        return read_profile(&spec);
    }
    match root.get("linux")? {
        Some(linux) => match linux.get("seccomp")? {
            Some(profile) => {
                root.check_only_profile("linux.seccomp")?;
                read_profile(&profile)
            }
            None => Err(root.fault("this OCI configuration has no linux.seccomp")),
        },
        None => read_profile(root),
    }
}

/// Keys of a profile; those from `flags` on do not affect the code.
const PROFILE_KEYS: &[&str] = &[
    "defaultAction",
    "defaultErrnoRet",
    "defaultErrno",
    "architectures",
    "archMap",
    "syscalls",
    "flags",
    "listenerPath",
    "listenerMetadata",
    "comment",
];

/// Keys of a rule.
const RULE_KEYS: &[&str] = &[
    "names", "name", "action", "errnoRet", "errno", "args", "includes", "excludes", "comment",
];

fn read_profile(at: &Place<'_>) -> Result<ContainerProfile, ProfileError> {
    at.check_keys(PROFILE_KEYS)?;
    let default = at.required("defaultAction")?;
    let default_errno = read_errno(at, "defaultErrnoRet", "defaultErrno")?;
    let profile = ContainerProfile {
        default: read_action(&default, default_errno)?,
        architectures: at.strings("architectures")?,
        arch_map: at
            .list("archMap")?
            .iter()
            .map(read_arch_map)
            .collect::<Result<_, _>>()?,
        rules: at
            .list("syscalls")?
            .iter()
            .map(read_rule)
            .collect::<Result<_, _>>()?,
        flags: at.strings("flags")?,
    };
    if !profile.architectures.is_empty() && !profile.arch_map.is_empty() {
        return Err(at.fault("a profile has either architectures or archMap, not both"));
    }
    Ok(profile)
}

fn read_arch_map(at: &Place<'_>) -> Result<(String, Vec<String>), ProfileError> {
    at.check_keys(&["architecture", "subArchitectures"])?;
    let machine = at.required("architecture")?.string()?.to_owned();
    Ok((machine, at.strings("subArchitectures")?))
}

fn read_rule(at: &Place<'_>) -> Result<SyscallRule, ProfileError> {
    at.check_keys(RULE_KEYS)?;
    let mut names = at.strings("names")?;
    if let Some(name) = at.get("name")? {
        let name = name.string()?;
        if !name.is_empty() && !names.is_empty() {
            return Err(at.fault("a rule has either name or names, not both"));
        }
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    let errno = read_errno(at, "errnoRet", "errno")?;
    Ok(SyscallRule {
        names,
        action: read_action(&at.required("action")?, errno)?,
        args: at
            .list("args")?
            .iter()
            .map(read_arg)
            .collect::<Result<_, _>>()?,
        includes: read_filter(at.get("includes")?)?,
        excludes: read_filter(at.get("excludes")?)?,
    })
}

/// The error number under one of two keys: `number_key` holds a number (or a name),
/// `name_key` a name; both may be given if they agree.
fn read_errno(
    at: &Place<'_>,
    number_key: &str,
    name_key: &str,
) -> Result<Option<u16>, ProfileError> {
    let mut found = None;
    for key in [number_key, name_key] {
        let Some(place) = at.get(key)? else { continue };
        let number = match place.value.as_str() {
            Some("") => continue,
            Some(name) => errno::number(name)
                .ok_or_else(|| place.fault(&format!("{name:?} is not the name of an error")))?,
            None => {
                let number = place.number()?;
                let narrow = u16::try_from(number);
                narrow.map_err(|_| place.fault(&format!("{number} has more than 16 bits")))?
            }
        };
        if found.is_some_and(|other| other != number) {
            return Err(place.fault(&format!("{number} contradicts {number_key}")));
        }
        found = Some(number);
    }
    Ok(found)
}

fn read_action(at: &Place<'_>, errno: Option<u16>) -> Result<Action, ProfileError> {
    // runc's default: EPERM.
    let data = errno.or(errno::number("EPERM")).unwrap_or(1);
    Ok(match at.string()? {
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_TRAP" => Action::Trap(0),
        "SCMP_ACT_ERRNO" => Action::Errno(data),
        "SCMP_ACT_TRACE" => Action::Trace(data),
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_LOG" => Action::Log,
        "SCMP_ACT_NOTIFY" => Action::UserNotif,
        other => {
            return Err(at.fault(&format!(
                "{other:?} is no action; there are SCMP_ACT_ALLOW, ERRNO, KILL, KILL_THREAD, \
                 KILL_PROCESS, LOG, NOTIFY, TRACE, TRAP"
            )));
        }
    })
}

fn read_arg(at: &Place<'_>) -> Result<ArgCondition, ProfileError> {
    at.check_keys(&["index", "value", "valueTwo", "op"])?;
    let index = at.required("index")?;
    let number = index.number()?;
    let op = at.required("op")?;
    Ok(ArgCondition {
        index: u8::try_from(number)
            .ok()
            .filter(|&index| index < 6)
            .ok_or_else(|| {
                index.fault(&format!(
                    "no argument {number}: a system call has arguments 0 to 5"
                ))
            })?,
        op: read_op(&op)?,
        value: at.required("value")?.number()?,
        value_two: at.get("valueTwo")?.map_or(Ok(0), |place| place.number())?,
    })
}

fn read_op(at: &Place<'_>) -> Result<ArgOp, ProfileError> {
    Ok(match at.string()? {
        "SCMP_CMP_NE" => ArgOp::Ne,
        "SCMP_CMP_LT" => ArgOp::Lt,
        "SCMP_CMP_LE" => ArgOp::Le,
        "SCMP_CMP_EQ" => ArgOp::Eq,
        "SCMP_CMP_GE" => ArgOp::Ge,
        "SCMP_CMP_GT" => ArgOp::Gt,
        "SCMP_CMP_MASKED_EQ" => ArgOp::MaskedEq,
        other => {
            return Err(at.fault(&format!(
                "{other:?} is no comparison; there are SCMP_CMP_NE, LT, LE, EQ, GE, GT, MASKED_EQ"
            )));
        }
    })
}

fn read_filter(at: Option<Place<'_>>) -> Result<MachineCondition, ProfileError> {
    let Some(at) = at else {
        return Ok(MachineCondition::default());
    };
    at.check_keys(&["caps", "arches", "minKernel"])?;
    let min_kernel = match at.get("minKernel")? {
        Some(place) if !place.string()?.is_empty() => {
            let text = place.string()?;
            let version: Result<KernelVersion, _> = text.parse();
            Some(version.map_err(|error| place.fault(&error.to_string()))?)
        }
        _ => None,
    };
    Ok(MachineCondition {
        caps: at.strings("caps")?,
        arches: at.strings("arches")?,
        min_kernel,
    })
}

/// A value and its path.
struct Place<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Place<'a> {
    fn root(value: &'a Value) -> Place<'a> {
        Place {
            value,
            path: String::new(),
        }
    }

    fn fault(&self, what: &str) -> ProfileError {
        let place = if self.path.is_empty() {
            "the profile"
        } else {
            &self.path
        };
        ProfileError {
            place: place.to_owned(),
            what: what.to_owned(),
        }
    }

    fn expected(&self, what: &str) -> ProfileError {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.fault(&format!("expected {what}, found {found}"))
    }

    fn object(&self) -> Result<&'a Map<String, Value>, ProfileError> {
        self.value
            .as_object()
            .ok_or_else(|| self.expected("an object"))
    }

    /// Fails if the object has an unknown key.
    fn check_keys(&self, known: &[&str]) -> Result<(), ProfileError> {
        for key in self.object()?.keys() {
            if known.contains(&key.as_str()) {
                continue;
            }
            let nearest = known
                .iter()
                .max_by(|a, b| strsim::jaro(key, a).total_cmp(&strsim::jaro(key, b)));
            let hint = match nearest {
                Some(nearest) if strsim::jaro(key, nearest) > 0.75 => {
                    format!("; the nearest known key is {nearest:?}")
                }
                _ => format!("; known keys are {}", known.join(", ")),
            };
            return Err(self.fault(&format!("unknown key {key:?}{hint}")));
        }
        Ok(())
    }

    /// Fails if the object with a profile inside has members of a second profile.
    fn check_only_profile(&self, inner: &str) -> Result<(), ProfileError> {
        let members = self.object()?;
        let is_second = |key: &&str| *key != "comment" && members.contains_key(*key);
        let others = PROFILE_KEYS.iter().copied().chain(["linux"]);
        match others.filter(|key| !inner.starts_with(key)).find(is_second) {
            Some(key) => Err(self.fault(&format!(
                "two profiles: {inner} and {key}, which is beside it"
            ))),
            None => Ok(()),
        }
    }

    /// A member; null counts as absent.
    fn get(&self, name: &str) -> Result<Option<Place<'a>>, ProfileError> {
        let member = self.object()?.get(name).filter(|value| !value.is_null());
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Ok(member.map(|value| Place { value, path }))
    }

    fn required(&self, name: &str) -> Result<Place<'a>, ProfileError> {
        self.get(name)?
            .ok_or_else(|| self.fault(&format!("{name} is missing")))
    }

    fn list(&self, name: &str) -> Result<Vec<Place<'a>>, ProfileError> {
        let Some(place) = self.get(name)? else {
            return Ok(Vec::new());
        };
        let items = place
            .value
            .as_array()
            .ok_or_else(|| place.expected("a list"))?;
        let place_of = |(at, value)| Place {
            value,
            path: format!("{}[{at}]", place.path),
        };
        Ok(items.iter().enumerate().map(place_of).collect())
    }

    fn string(&self) -> Result<&'a str, ProfileError> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    fn strings(&self, name: &str) -> Result<Vec<String>, ProfileError> {
        let places = self.list(name)?;
        places
            .iter()
            .map(|place| place.string().map(str::to_owned))
            .collect()
    }

    fn number(&self) -> Result<u64, ProfileError> {
        self.value
            .as_u64()
            .ok_or_else(|| self.expected("a whole number from 0 to 2^64-1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        ContainerProfile::read(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn faults_have_a_place() {
        assert_eq!(
            fault("{\n \"defaultAction\": \"SCMP_ACT_ALLOW\",\n}"),
            "line 3, column 1: invalid JSON: trailing comma"
        );
        assert_eq!(fault("{}"), "the profile: defaultAction is missing");
        assert_eq!(
            fault(
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],
                "action":"SCMP_ACT_ERRNO","args":[{"index":6,"op":"SCMP_CMP_EQ","value":1}]}]}"#
            ),
            "syscalls[0].args[0].index: no argument 6: a system call has arguments 0 to 5"
        );
        assert_eq!(
            fault(r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":"read"}]}"#),
            "syscalls[0].names: expected a list, found a string"
        );
    }

    #[test]
    fn repeated_keys_and_second_profiles_are_refused() {
        assert_eq!(
            fault("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\n\"defaultAction\":\"SCMP_ACT_ERRNO\"}"),
            "line 2, column 15: the key \"defaultAction\" is given twice"
        );
        let nested =
            r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"names":[]}]}"#;
        assert!(fault(nested).ends_with(r#"the key "names" is given twice"#));
        let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
        let text =
            format!(r#"{{"linux":{{"seccomp":{profile}}},"defaultAction":"SCMP_ACT_KILL"}}"#);
        assert_eq!(
            fault(&text),
            "the profile: two profiles: linux.seccomp and defaultAction, which is beside it"
        );
        for (key, value) in [("syscalls", "[]"), ("linux", profile)] {
            let text = format!(r#"{{"kind":"SeccompProfile","spec":{profile},"{key}":{value}}}"#);
            assert!(fault(&text).contains(&format!("two profiles: spec and {key}")));
        }
    }

    #[test]
    fn unknown_keys_are_refused_where_they_stand() {
        assert_eq!(
            fault(r#"{"defaultAction":"SCMP_ACT_ERRNO","sycalls":[]}"#),
            r#"the profile: unknown key "sycalls"; the nearest known key is "syscalls""#
        );
        let in_rule = |rule: &str| {
            fault(&format!(
                r#"{{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{{"names":["read"],
                   "action":"SCMP_ACT_ALLOW",{rule}}}]}}"#
            ))
        };
        assert_eq!(
            in_rule(r#""arg":[]"#),
            r#"syscalls[0]: unknown key "arg"; the nearest known key is "args""#
        );
        assert_eq!(
            in_rule(r#""includes":{"capabilities":[]}"#),
            r#"syscalls[0].includes: unknown key "capabilities"; known keys are caps, arches, minKernel"#
        );
        assert_eq!(
            in_rule(r#""args":[{"index":0,"op":"SCMP_CMP_EQ","value":1,"valuetwo":1}]"#),
            r#"syscalls[0].args[0]: unknown key "valuetwo"; the nearest known key is "valueTwo""#
        );
    }

    #[test]
    fn error_numbers_are_numbers_or_names_that_agree() {
        let default = |text: &str| {
            let text = format!(r#"{{"defaultAction":"SCMP_ACT_ERRNO",{text}}}"#);
            ContainerProfile::read(text.as_bytes()).map(|profile| profile.default)
        };
        let enosys = Ok(Action::Errno(38));
        assert_eq!(default(r#""defaultErrnoRet":38"#), enosys);
        assert_eq!(default(r#""defaultErrnoRet":"ENOSYS""#), enosys);
        assert_eq!(default(r#""defaultErrno":"ENOSYS""#), enosys);
        assert_eq!(
            default(r#""defaultErrnoRet":38,"defaultErrno":"ENOSYS""#),
            enosys
        );
        assert_eq!(default(r#""comment":"""#), Ok(Action::Errno(1)));
        let fault = |text| default(text).unwrap_err().to_string();
        assert_eq!(
            fault(r#""defaultErrnoRet":1,"defaultErrno":"ENOSYS""#),
            "defaultErrno: 38 contradicts defaultErrnoRet"
        );
        assert_eq!(
            fault(r#""defaultErrno":"ENOSUCH""#),
            r#"defaultErrno: "ENOSUCH" is not the name of an error"#
        );
        assert_eq!(
            fault(r#""defaultErrnoRet":65536"#),
            "defaultErrnoRet: 65536 has more than 16 bits"
        );
    }

    #[test]
    fn a_rule_is_read_whole() {
        let profile = ContainerProfile::read(
            br#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,
            "archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":["SCMP_ARCH_X86"]}],
            "syscalls":[{"name":"clone","action":"SCMP_ACT_ALLOW","comment":"",
              "args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}],
              "includes":{"minKernel":"4.8"},"excludes":{"caps":["CAP_SYS_ADMIN"]}}]}"#,
        )
        .unwrap();
        assert_eq!(profile.default, Action::Errno(38));
        assert_eq!(profile.arch_map[0].1, ["SCMP_ARCH_X86"]);
        let rule = &profile.rules[0];
        assert_eq!(rule.names, ["clone"]);
        assert_eq!(rule.args[0].op, ArgOp::MaskedEq);
        assert_eq!(rule.includes.min_kernel, Some(KernelVersion::new(4, 8, 0)));
        assert_eq!(rule.excludes.caps, ["CAP_SYS_ADMIN"]);
    }
}
