//! One rule of nftables: what its statements match, and its verdict.

use serde_json::Value;

use super::super::Fate;
use super::super::chains::{Branch, Target};
use super::super::conditions::intersect_all;
use super::condition::{Condition, Context};
use super::word;
use crate::rules::{Action, Rule};

/// Statements that decide about no packet and change none that this chain sees later.
const WITHOUT_VERDICT: [&str; 9] = [
    "counter", "comment", "log", "mangle", "notrack", "add", "update", "set", "continue",
];

/// Branches of a rule, and notes about it.
pub(super) fn read(
    statements: &[Value],
    context: &Context<'_>,
) -> (Vec<Branch>, Vec<(Fate, String)>) {
    let key = |statement: &Value| {
        let object = statement.as_object().and_then(|it| it.keys().next());
        object.cloned().unwrap_or_default()
    };
    let has_verdict = statements.iter().any(|statement| {
        let key = key(statement);
        !matches!(&*key, "match" | "limit" | "quota" | "ct count")
            && !WITHOUT_VERDICT.contains(&&*key)
    });
    if !has_verdict {
        let names: Vec<String> = (statements.iter().map(key))
            .filter(|key| key != "match")
            .collect();
        let reason = format!("gives no verdict: {}", names.join(", "));
        return (Vec::new(), vec![(Fate::WithoutEffect, reason)]);
    }
    let mut reader = Reader {
        context,
        conditions: vec![Rule::new(Action::Pass)],
        reads_transport: false,
        never: None,
        notes: Vec::new(),
        branches: Vec::new(),
    };
    let mut result = Ok(());
    for statement in statements {
        result = result.and(reader.statement(&key(statement), statement));
    }
    let result = result.and_then(|()| reader.check_transport());
    match (reader.never, result) {
        // Whatever else it asks for.
        (Some(reason), _) => (Vec::new(), vec![(Fate::WithoutEffect, reason)]),
        (None, Err(reason)) => (Vec::new(), vec![(Fate::LeftOut, reason)]),
        (None, Ok(())) => (reader.branches, reader.notes),
    }
}

struct Reader<'a, 'c> {
    context: &'a Context<'c>,
    conditions: Vec<Rule>,
    /// A match reads ports of any protocol.
    reads_transport: bool,
    /// Reason why it matches no packet.
    never: Option<String>,
    notes: Vec<(Fate, String)>,
    branches: Vec<Branch>,
}

impl Reader<'_, '_> {
    fn statement(&mut self, key: &str, statement: &Value) -> Result<(), String> {
        let value = &statement[key];
        match key {
            "match" => {
                let found = self.context.condition(value)?;
                return self.require(found);
            }
            "log" => self.note("log: nothing is logged"),
            "mangle" => self.note("mangle: no mark or field is set"),
            "add" | "update" | "set" => self.note("no set is changed"),
            key if WITHOUT_VERDICT.contains(&key) => {}
            "vmap" => {
                let (branches, reads_transport) = self.context.verdict_map(value)?;
                self.reads_transport |= reads_transport;
                for (conditions, verdict) in branches {
                    let conditions = intersect_all(&self.conditions, &conditions);
                    if conditions.is_empty() {
                        continue;
                    }
                    let verdict = verdict.as_object().and_then(|it| it.iter().next());
                    let (key, value) = verdict.ok_or("a map without verdicts")?;
                    if let Some(target) = self.target(key, value)? {
                        self.branches.push(Branch { conditions, target });
                    }
                }
            }
            _ => {
                if let Some(target) = self.target(key, value)? {
                    self.branches.push(Branch {
                        conditions: self.conditions.clone(),
                        target,
                    });
                }
            }
        }
        Ok(())
    }

    fn require(&mut self, found: Condition) -> Result<(), String> {
        match found {
            Condition::Union(union) => {
                self.conditions = intersect_all(&self.conditions, &union);
                if self.conditions.is_empty() {
                    let reason = || "never matches: its conditions exclude each other".to_owned();
                    self.never.get_or_insert_with(reason);
                }
            }
            Condition::Near(union, note) => {
                self.note(&note);
                return self.require(Condition::Union(union));
            }
            Condition::Transport(union) => {
                self.reads_transport = true;
                return self.require(Condition::Union(union));
            }
            Condition::Never(reason) => drop(self.never.get_or_insert(reason)),
        }
        Ok(())
    }

    /// Ports of any protocol can be expressed if all protocols have ports.
    fn check_transport(&self) -> Result<(), String> {
        let mut conditions = (self.branches.iter()).flat_map(|branch| &branch.conditions);
        match self.reads_transport && !conditions.all(|rule| rule.protocols.have_ports()) {
            true => Err(
                "th reads the first bytes of any protocol; ask for those with ports before it: \
                 meta l4proto { tcp, udp }"
                    .to_owned(),
            ),
            false => Ok(()),
        }
    }

    fn note(&mut self, reason: &str) {
        self.notes.push((Fate::Kept, reason.to_owned()));
    }

    /// The target of a verdict; `None` if the chain goes on.
    fn target(&mut self, key: &str, value: &Value) -> Result<Option<Target>, String> {
        Ok(Some(match key {
            "accept" => Target::Verdict(Action::Pass),
            "drop" => Target::Verdict(Action::Drop),
            "reject" => {
                self.note("reject becomes drop: no answer is sent");
                Target::Verdict(Action::Drop)
            }
            "return" => Target::Return,
            "jump" => Target::Jump(word(&value["target"])),
            "goto" => Target::Goto(word(&value["target"])),
            "continue" => return Ok(None),
            "xt" => return Err("an extension of iptables: iptables-save prints it".to_owned()),
            other => return Err(format!("the statement {other}")),
        }))
    }
}
