//! Requests that set breakpoints: each replaces all of its kind.

use serde_json::{Value, json};

use super::super::breakpoint::{BreakKind, BreakOptions, Breakpoint, Breakpoints};
use super::super::view::View;
use super::message::Request;
use super::show::{Tree, Trees, address_of, insn_address, insn_of_address};
use super::{Server, argument};

/// True for requests that set breakpoints.
pub(super) fn is_setting(command: &str) -> bool {
    matches!(
        command,
        "setBreakpoints"
            | "setFunctionBreakpoints"
            | "setInstructionBreakpoints"
            | "setDataBreakpoints"
            | "setExceptionBreakpoints"
    )
}

impl Server {
    /// Sets the breakpoints of a request.
    pub(super) fn set_breakpoints(
        &self,
        request: &Request,
        breakpoints: &mut Breakpoints,
        view: &View<'_, '_, '_>,
    ) -> Result<Value, String> {
        let empty = Vec::new();
        let asked = argument(request, "breakpoints")
            .as_array()
            .unwrap_or(&empty);
        let (owner, asked) = match &*request.command {
            "setBreakpoints" => {
                let source = argument(request, "source");
                let path = source.get("path").or(source.get("name"));
                let path = path
                    .and_then(Value::as_str)
                    .ok_or("the source has no path")?;
                let kinds = asked.iter().map(|one| {
                    let line = one.get("line").and_then(Value::as_u64);
                    let line = line.and_then(|line| u32::try_from(line).ok());
                    let line = line.ok_or("it has no line")?;
                    let line = line.saturating_add(1).saturating_sub(self.first_line);
                    Ok(BreakKind::Line {
                        file: Some(path.to_owned()),
                        line,
                    })
                });
                (format!("source {path}"), pairs(asked, kinds))
            }
            "setFunctionBreakpoints" => {
                let kinds = asked.iter().map(|one| {
                    let name = one.get("name").and_then(Value::as_str);
                    view.break_kind(name.ok_or("it has no name")?.trim())
                });
                ("functions".to_owned(), pairs(asked, kinds))
            }
            "setInstructionBreakpoints" => {
                let kinds = asked.iter().map(|one| {
                    let reference = one.get("instructionReference").unwrap_or(&Value::Null);
                    let offset = one.get("offset").and_then(Value::as_i64).unwrap_or(0);
                    let address = address_of(reference).ok_or("it has no reference")?;
                    let place = insn_of_address(address.wrapping_add_signed(offset));
                    let (program, slot) = place.ok_or("no instruction is there")?;
                    let programs = view.programs();
                    let program = programs.get(program as usize).cloned();
                    Ok(BreakKind::Insn {
                        program: Some(program.ok_or("no program is there")?),
                        slot,
                    })
                });
                ("instructions".to_owned(), pairs(asked, kinds))
            }
            "setDataBreakpoints" => {
                let kinds = asked.iter().map(|one| {
                    let id = one.get("dataId").and_then(Value::as_str);
                    let id = id.ok_or("it has no dataId")?;
                    let known = breakpoints.list().iter();
                    let mut known = known.filter_map(|breakpoint| match &breakpoint.kind {
                        BreakKind::Watch(watch) if watch.name == id => Some(watch.clone()),
                        _ => None,
                    });
                    let value = || view.watch_of(0, id);
                    Ok(BreakKind::Watch(known.next().map_or_else(value, Ok)?))
                });
                ("data".to_owned(), pairs(asked, kinds))
            }
            _ => {
                let filters = argument(request, "filterOptions").as_array();
                let filters = filters.unwrap_or(&empty).iter();
                let wanted = filters.map(|filter| {
                    let condition = filter.get("condition").and_then(Value::as_str);
                    condition.map(str::trim).filter(|text| !text.is_empty())
                });
                let plain = argument(request, "filters").as_array().unwrap_or(&empty);
                let wanted = wanted.chain(plain.iter().map(|_| None));
                let kinds = wanted.map(|name| {
                    let kind = BreakKind::Verdict(name.map(str::to_owned));
                    (Value::Null, Ok(kind))
                });
                ("verdicts".to_owned(), kinds.collect())
            }
        };
        breakpoints.remove_of(&owner);
        let mut set = Vec::new();
        for (one, kind) in asked {
            let text = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
            let options = BreakOptions {
                condition: text("condition").filter(|text| !text.trim().is_empty()),
                message: text("logMessage").filter(|text| !text.is_empty()),
                skipped: hits(text("hitCondition").as_deref())?,
                owner: owner.clone(),
            };
            let added = kind.and_then(|kind| {
                let added = view.set_breakpoint(breakpoints, kind, options);
                added.map_err(|error| error.0)
            });
            set.push(match added {
                Ok(added) => self.breakpoint_json(view, added),
                Err(why) => json!({ "verified": false, "message": why }),
            });
        }
        Ok(json!({ "breakpoints": set }))
    }

    fn breakpoint_json(&self, view: &View<'_, '_, '_>, breakpoint: &Breakpoint) -> Value {
        let mut found = json!({ "id": breakpoint.id, "verified": true });
        if let Some(line) = breakpoint.line {
            found["line"] = json!(line - 1 + self.first_line);
        }
        if let Some(place) = breakpoint.places.first() {
            found["instructionReference"] = json!(format!("{:#x}", insn_address(*place)));
            if let Some(source) = view.source(*place) {
                found["source"] = super::show::source_json(&source);
                found["line"] = json!(source.line - 1 + self.first_line);
            }
        }
        found
    }
}

/// Breakpoints that are asked for with their kinds.
fn pairs(
    asked: &[Value],
    kinds: impl Iterator<Item = Result<BreakKind, String>>,
) -> Vec<(Value, Result<BreakKind, String>)> {
    asked.iter().cloned().zip(kinds).collect()
}

/// The hits that are left out in front of the N-th one.
fn hits(condition: Option<&str>) -> Result<u64, String> {
    let Some(text) = condition.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(0);
    };
    let digits = text.trim_start_matches(['>', '=', ' ']);
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("hit condition {text}: a number is expected, as 3"))?;
    Ok(number.saturating_sub(1))
}

/// What a data breakpoint on a variable is called: an expression, or why there is none.
pub(super) fn data_info<'r>(
    request: &Request,
    view: &View<'_, 'r, '_>,
    trees: &Trees<'r>,
) -> Value {
    let name = argument(request, "name").as_str().unwrap_or_default();
    let reference = argument(request, "variablesReference").as_u64();
    let tree = reference.and_then(|reference| trees.get(reference));
    // Names of inlined variables have the function behind them, registers a mark in front.
    let name = name.split(" (").next().unwrap_or_default();
    let expression = match tree {
        Some(Tree::Scope(super::show::Scope::Registers, _)) => format!("${name}"),
        Some(Tree::Node(_)) => {
            return json!({
                "dataId": null,
                "description": format!("{name} is a part: watch it by an expression, as value.{name}"),
            });
        }
        Some(Tree::Scope(..)) | None => name.to_owned(),
    };
    match view.watch_of(0, &expression) {
        Ok(watch) => json!({
            "dataId": watch.name,
            "description": watch.name,
            "accessTypes": ["write"],
            "canPersist": false,
        }),
        Err(why) => json!({ "dataId": null, "description": why }),
    }
}
