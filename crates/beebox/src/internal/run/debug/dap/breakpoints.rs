//! Requests that set breakpoints: each replaces all of its kind.

use serde_json::{Value, json};

use super::super::breakpoint::{BreakKind, BreakOptions, Breakpoint, Breakpoints, HitChoice};
use super::super::view::View;
use super::message::Request;
use super::show::{self, Scope, Tree, Trees, address_of, insn_address, insn_of_address};
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
        &mut self,
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
                    // An expression of the editor's own is one of the innermost frame.
                    let known = self.data.get(id).cloned();
                    let watch = known.map_or_else(|| view.watch_of(0, id), Ok)?;
                    self.data.insert(id.to_owned(), watch.clone());
                    Ok(BreakKind::Watch(watch))
                });
                ("data".to_owned(), pairs(asked, kinds))
            }
            _ => {
                let options = argument(request, "filterOptions").as_array();
                let plain = argument(request, "filters").as_array();
                let plain = plain.into_iter().flatten();
                let plain = plain.map(|filter| json!({ "filterId": filter }));
                let filters = options.into_iter().flatten().cloned().chain(plain);
                let kinds = filters.map(|filter| {
                    let name = filter.get("condition").and_then(Value::as_str);
                    let name = name.map(str::trim).filter(|text| !text.is_empty());
                    let kind = match filter["filterId"].as_str() {
                        Some("verdict") => Ok(BreakKind::Verdict(name.map(str::to_owned))),
                        _ => Err(format!(
                            "{} is no filter; verdict is one",
                            filter["filterId"]
                        )),
                    };
                    (Value::Null, kind)
                });
                ("verdicts".to_owned(), kinds.collect())
            }
        };
        breakpoints.remove_of(&owner);
        let mut set = Vec::new();
        for (one, kind) in asked {
            let text = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
            let chosen = HitChoice::parse(&text("hitCondition").unwrap_or_default());
            let added = kind.and_then(|kind| {
                let options = BreakOptions {
                    condition: text("condition").filter(|text| !text.trim().is_empty()),
                    message: text("logMessage").filter(|text| !text.is_empty()),
                    chosen: chosen?,
                    owner: owner.clone(),
                };
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

impl Server {
    /// What a data breakpoint on a variable is called, or why there is none.
    pub(super) fn data_info<'r>(
        &mut self,
        request: &Request,
        view: &View<'_, 'r, '_>,
        trees: &Trees<'r>,
    ) -> Value {
        let name = argument(request, "name").as_str().unwrap_or_default();
        let reference = argument(request, "variablesReference").as_u64();
        let tree = reference.and_then(|reference| trees.get(reference));
        let (frame, watch) = match &tree {
            Some(Tree::Scope(Scope::Registers, frame)) => {
                (*frame, view.watch_of(*frame, &format!("${name}")))
            }
            // Members have no names of their own, and variables may hide others.
            Some(tree @ (Tree::Of(..) | Tree::Scope(..))) => {
                let (path, frame) = match tree {
                    Tree::Of(_, path, frame) => (Some(path), *frame),
                    Tree::Scope(_, frame) => (None, *frame),
                };
                let mut rows = trees.rows(view, tree).into_iter();
                let row = rows.rfind(|row| row.name == name);
                let name = show::joined(path.map(String::as_str), name);
                let row = row.ok_or_else(|| format!("there is no {name}"));
                (frame, row.and_then(|row| view.watch_node(&name, row.node)))
            }
            None => {
                let frame = super::requests::frame_of(request);
                (frame, view.watch_of(frame, name))
            }
        };
        let watch = match watch {
            Ok(watch) => watch,
            Err(why) => return json!({ "dataId": null, "description": why }),
        };
        let id = match frame {
            0 => watch.name.clone(),
            frame => format!("{} of frame {frame}", watch.name),
        };
        let found = json!({
            "dataId": id,
            "description": id,
            "accessTypes": ["write"],
            "canPersist": false,
        });
        self.data.insert(id, watch);
        found
    }
}
