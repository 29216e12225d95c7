//! Messages that the kernel's selftests expect in the verifier's log.
//!
//! Declaration tags of a program's function have them (`comment:N:test_expect_msg=TEXT`), in the
//! order of the numbers N. Each is looked for behind the one before it; one that is not
//! expected (`test_expect_not_msg`) must not be between the messages around it. The part of a
//! text between `{{` and `}}` is a [regular expression](Pattern). Tags that end in `_unpriv` are about a
//! caller without capabilities, who is to get the messages of the other one if there are none.

mod pattern;

use btf::{Btf, Kind, Shape, TypeId};
use program::Program;

use pattern::Pattern;

/// What a test expects of one caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The verifier is to refuse the program.
    pub is_refused: bool,
    /// Log level of the load; 0 is 1 where the program is refused, as libbpf loads it again then.
    pub log_level: u32,
    messages: Vec<Message>,
}

/// A message that is to be in the log, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    is_absent: bool,
    text: String,
}

/// The expectations of a test, by caller; `None` where the test is not about one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// Those of a caller with all capabilities.
    pub privileged: Option<Expectation>,
    /// Those of a caller without.
    pub unprivileged: Option<Expectation>,
}

impl Expectations {
    /// The expectations of a program's main function; none if it has no types.
    pub fn of(program: &Program) -> Expectations {
        let main = program.func_info().first();
        match (program.btf(), main) {
            (Some(types), Some(main)) => Expectations::of_tags(&tags(types, main.type_id)),
            _ => Expectations::default(),
        }
    }

    fn of_tags(tags: &[String]) -> Expectations {
        const PREFIX: &str = "test_expect_";
        let (mut all, mut none) = (Expectation::default(), Expectation::default());
        let (mut is_about_all, mut is_about_none) = (false, false);
        for tag in tags {
            let (name, text) = tag.split_once('=').unwrap_or((tag, ""));
            if name == "test_log_level" {
                all.log_level = text.parse().unwrap_or(0);
            }
            let Some(name) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let (name, one, is_about) = match name.strip_suffix("_unpriv") {
                Some(name) => (name, &mut none, &mut is_about_none),
                None => (name, &mut all, &mut is_about_all),
            };
            match name {
                "failure" => one.is_refused = true,
                "success" => {}
                "msg" | "not_msg" => one.messages.push(Message {
                    is_absent: name == "not_msg",
                    text: text.to_owned(),
                }),
                _ => continue,
            }
            *is_about = true;
        }
        none.log_level = all.log_level;
        let says_verdict =
            |tag: &String| tag.ends_with("failure_unpriv") || tag.ends_with("success_unpriv");
        if !tags.iter().any(says_verdict) {
            none.is_refused = all.is_refused;
        }
        if none.messages.is_empty() {
            none.messages.clone_from(&all.messages);
        }
        Expectations {
            privileged: is_about_all.then_some(all),
            unprivileged: is_about_none.then_some(none),
        }
    }
}

impl Expectation {
    /// True if there are messages.
    pub fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// The first message that a log has not where it should, or has where it should not; `None` if all is
    /// as expected.
    ///
    /// # Errors
    /// If a message is no regular expression that patterns have.
    pub fn first_failure(&self, log: &str) -> Result<Option<String>, String> {
        let mut from = 0;
        let mut absent: Vec<(&str, Pattern)> = Vec::new();
        let present = |absent: &[(&str, Pattern)], from, until| {
            let is_there = |(_, pattern): &&(&str, Pattern)| {
                let found = pattern.find(log, from);
                found.is_some_and(|found| found.end <= until)
            };
            let found = absent.iter().find(is_there);
            found.map(|(text, _)| format!("unexpected: {text}"))
        };
        for message in &self.messages {
            let pattern = Pattern::parse(&message.text)?;
            if message.is_absent {
                absent.push((&message.text, pattern));
                continue;
            }
            let Some(found) = pattern.find(log, from) else {
                return Ok(Some(format!("missing: {}", message.text)));
            };
            if let Some(failure) = present(&absent, from, found.start) {
                return Ok(Some(failure));
            }
            absent.clear();
            from = found.end;
        }
        Ok(present(&absent, from, log.len()))
    }
}

/// The tags of a function without their common start, in the order of their numbers.
fn tags(types: &Btf<'_>, function: TypeId) -> Vec<String> {
    let mut tags = Vec::new();
    for ty in types.of_kind(Kind::DeclTag) {
        let Shape::DeclTag(tag) = ty.shape() else {
            continue;
        };
        let name = ty.name().to_string_lossy();
        if let Some(body) = name.strip_prefix("comment:")
            && (tag.target, tag.component) == (function, -1)
        {
            tags.push(numbered(body));
        }
    }
    tags.sort_by_key(|(number, _)| *number);
    tags.into_iter().map(|(_, text)| text).collect()
}

/// The number of a tag, and the tag without it. Before Linux 7.1 messages alone are numbered, behind
/// the name (`test_expect_msg=N=TEXT`).
fn numbered(tag: &str) -> (u32, String) {
    let front = tag
        .split_once(':')
        .map(|(number, rest)| (number.parse(), rest));
    if let Some((Ok(number), rest)) = front {
        return (number, rest.to_owned());
    }
    let parts = tag.split_once('=').and_then(|(name, value)| {
        let (number, text) = value.split_once('=')?;
        Some((number.parse().ok()?, format!("{name}={text}")))
    });
    let is_message = tag.starts_with("test_expect_");
    parts.filter(|_| is_message).unwrap_or((0, tag.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectations(tags: &[&str]) -> Expectations {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Expectations::of_tags(&tags)
    }

    #[test]
    fn tags_are_numbered_in_two_ways() {
        let numbered = |tag| super::numbered(tag);
        assert_eq!(
            numbered("12:test_expect_msg=3=4"),
            (12, "test_expect_msg=3=4".to_owned())
        );
        assert_eq!(
            numbered("test_expect_msg=3=R1 a=b"),
            (3, "test_expect_msg=R1 a=b".to_owned())
        );
        assert_eq!(
            numbered("test_retval=3=4"),
            (0, "test_retval=3=4".to_owned())
        );
    }

    #[test]
    fn messages_are_expected_in_order_with_none_between() {
        let found = expectations(&[
            "test_expect_failure",
            "test_expect_msg=one",
            "test_expect_not_msg=two",
            "test_expect_msg={{[0-9]+}} three",
        ]);
        let expected = found.privileged.unwrap();
        assert!(expected.is_refused && found.unprivileged.is_none());
        let failure = |log| expected.first_failure(log).unwrap();
        assert_eq!(failure("one\n17 three two"), None);
        assert_eq!(
            failure("17 three one"),
            Some("missing: {{[0-9]+}} three".to_owned())
        );
        assert_eq!(
            failure("one two 7 three"),
            Some("unexpected: two".to_owned())
        );
    }

    #[test]
    fn a_caller_without_capabilities_gets_other_messages_or_the_same() {
        let same = expectations(&["test_expect_success_unpriv", "test_expect_msg=one"]);
        let unprivileged = same.unprivileged.unwrap();
        assert!(!unprivileged.is_refused);
        assert_eq!(unprivileged.first_failure("one").unwrap(), None);
        let other = expectations(&[
            "test_expect_failure",
            "test_log_level=2",
            "test_expect_msg_unpriv=two",
        ]);
        let unprivileged = other.unprivileged.unwrap();
        assert_eq!((unprivileged.is_refused, unprivileged.log_level), (true, 2));
        assert!(unprivileged.first_failure("one").unwrap().is_some());
    }
}
