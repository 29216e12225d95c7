"use strict";

// The page of a verification: programs, instructions with their source, the steps of the walk, and the
// state at the step that is chosen.

(() => {
  const data = readData();
  const [INSN, BEFORE, FLAGS, FRAME, END, BY, CHANGES, MISSED] = [0, 1, 2, 3, 4, 5, 6, 7];
  const [SPECULATIVE, CHECKPOINT, WHOLE] = [1, 2, 4];
  const [GOES_ON, EXITS, PRUNED, CLOSES_LOOP, BARRIER, REFUSED] = [0, 1, 2, 3, 4, 5];
  const [FRAME_PLACE, REFERENCES] = [250, 0xffff];

  let program = null;
  let step = -1;
  /** The step whose state is compared with that of the current one, if one is chosen. */
  let compared = null;
  /** Rows of the instructions and their source lines. */
  let rows = [];
  let rowOfInsn = [];
  /** By instruction: steps that came to it. */
  let visits = [];
  /** By step: precise places that requests made there, and requests that it made. */
  let marks = new Map();
  let requestsBy = new Map();

  const { rows: sourceList, at: sourceAt } = sourceRows(data.files);
  const steps = () => program.steps;
  const before = (at) => (steps()[at][BEFORE] === 0 ? -1 : at - steps()[at][BEFORE]);
  const isRegister = (place) => (place & 0xff) < 16;

  function placeName(place) {
    const number = place & 0xff;
    if (place === REFERENCES) {
      return "references";
    }
    return number < 16 ? `R${number}` : `fp${-8 * (number - 15)}`;
  }

  function sourceText(file, line) {
    const row = sourceAt.get(`${file}:${line}`);
    return row === undefined ? "" : sourceList[row].text.trim();
  }

  // Programs.

  const verdictWords = { success: "accepted", failure: "refused", unsupported: "unsupported" };
  const chooser = el(
    "select",
    { id: "program", "aria-label": "Program", change: () => chooseProgram(Number(chooser.value)) },
    data.programs.map((each, index) =>
      el("option", { value: index }, `${each.name}: ${verdictWords[each.verdict] || each.verdict}`),
    ),
  );

  function chooseProgram(index) {
    program = data.programs[index];
    chooser.value = String(index);
    step = -1;
    compared = null;
    visits = program.insns.map(() => []);
    steps().forEach((each, at) => visits[each[INSN]]?.push(at));
    marks = new Map();
    requestsBy = new Map();
    program.requests.forEach((request, number) => {
      const [by, , , marked] = request;
      requestsBy.set(by, [...(requestsBy.get(by) || []), number]);
      for (const [at, places] of marked) {
        if (at !== null) {
          const known = marks.get(at) || [];
          known.push({ places, number });
          marks.set(at, known);
        }
      }
    });
    makeRows();
    insnList.selected = -1;
    insnList.element.scrollTop = 0;
    insnList.reset(rows.length);
    walkList.selected = -1;
    walkList.element.scrollTop = 0;
    walkList.reset(steps().length);
    slider.max = String(Math.max(0, steps().length - 1));
    const counts = `${many(program.total_insns, "instruction")}, ${many(program.total_states, "state")}`;
    headLine.replaceChildren(
      el("span", { class: program.verdict === "success" ? "good" : "bad" }, verdictWords[program.verdict] || program.verdict),
      ` (${program.prog_type || "not loaded"}): ${counts}`,
      program.reason ? el("span", { class: "bad" }, `: ${program.reason.split("\n").at(-1)}`) : "",
    );
    if (steps().length === 0) {
      position.textContent = "no walk";
      details.replaceChildren(...refusal(), el("p", { class: "quiet" }, "The walk did not begin."));
      return;
    }
    goTo(program.verdict === "success" ? 0 : steps().length - 1);
  }

  function makeRows() {
    rows = [];
    rowOfInsn = [];
    const starts = new Map(program.functions);
    let last = "";
    program.insns.forEach((text, insn) => {
      if (starts.has(insn)) {
        rows.push({ heading: `${starts.get(insn) || "function"}()` });
        last = "";
      }
      const line = program.lines[insn];
      const name = line ? `${line[0]}:${line[1]}` : "";
      if (name && name !== last) {
        rows.push({ line: line[1], file: line[0], text: sourceText(line[0], line[1]) });
      }
      last = name || last;
      // The second half of a wide instruction is no step.
      if (text) {
        rowOfInsn[insn] = rows.length;
        rows.push({ insn, text });
      }
    });
  }

  // Instructions.

  const insnList = new LongList({
    label: "Program",
    count: 0,
    text: (index) => rows[index].text ?? rows[index].heading,
    chosen: (index) => goToRow(index),
    fill: (row, index) => {
      const { heading, line, file, insn, text } = rows[index];
      if (heading) {
        row.append(el("span", { class: "heading" }, heading));
      } else if (line !== undefined) {
        row.append(
          el("span", { class: "number", style: "width: 4em", title: file }, `:${line}`),
          el("span", { class: "text" }, text || baseName(file)),
        );
      } else {
        const count = visits[insn].length;
        const states = visits[insn].filter((at) => steps()[at][FLAGS] & CHECKPOINT).length;
        if (count === 0) {
          row.classList.add("dead");
        }
        row.append(
          el("span", { class: "count", style: "width: 4em", title: "steps that came here" }, count ? `${grouped(count)}×` : ""),
          el("span", { class: "count", style: "width: 3em", title: "checkpoints" }, states ? `${grouped(states)}✓` : ""),
          el("span", { class: "number", style: "width: 3.5em" }, String(insn)),
          el("span", { class: "text" }, text),
        );
      }
    },
  });

  /** Goes to the next step at an instruction, or at the first one of a line, from the current step on. */
  function goToRow(index) {
    const next = rows.findIndex((row, at) => at >= index && row.insn !== undefined);
    const all = next < 0 ? [] : visits[rows[next].insn];
    if (all.length === 0) {
      return say("no step came here");
    }
    goTo(all.find((at) => at > step) ?? all[0], false);
  }

  // The walk.

  const walkList = new LongList({
    label: "Walk",
    count: 0,
    text: (index) => `${steps()[index][INSN]}: ${program.insns[steps()[index][INSN]]} ${noteOf(index)}`,
    chosen: (index) => goTo(index),
    fill: (row, index) => {
      const each = steps()[index];
      const isBad = each[END] === REFUSED;
      row.append(
        el("span", { class: "number", style: "width: 5em" }, grouped(numberOf(index))),
        el("span", { class: "number", style: "width: 3.5em" }, String(each[INSN])),
        el("span", { class: "text" }, "  ".repeat(each[FRAME]) + program.insns[each[INSN]]),
        el("span", { class: isBad ? "note bad" : "note" }, noteOf(index)),
      );
    },
  });

  /** Number of a step among all of the walk, from 1. */
  function numberOf(index) {
    const gap = program.gap;
    return index + 1 + (gap && index >= gap[0] ? gap[1] : 0);
  }

  function noteOf(index) {
    const each = steps()[index];
    const notes = [];
    if (program.gap && program.gap[0] === index) {
      notes.push(`${many(program.gap[1], "step")} left out before this one`);
    }
    if (index > 0 && before(index) !== index - 1) {
      notes.push(before(index) < 0 ? "begins" : `branch of step ${grouped(numberOf(before(index)))}`);
    }
    if (each[FLAGS] & CHECKPOINT) {
      notes.push("checkpoint");
    }
    if (each[FLAGS] & SPECULATIVE) {
      notes.push("speculative");
    }
    if (requestsBy.has(index)) {
      notes.push("asks for precision");
    }
    const ends = {
      [EXITS]: "ends",
      [PRUNED]: "pruned",
      [CLOSES_LOOP]: "pruned, closes a loop",
      [BARRIER]: "barrier",
      [REFUSED]: verdictWords[program.verdict] || program.verdict,
    };
    const by = each[BY] === null ? "" : ` by step ${grouped(numberOf(each[BY]))}`;
    if (each[END] !== GOES_ON) {
      notes.push(ends[each[END]] + (each[END] === PRUNED || each[END] === CLOSES_LOOP ? by : ""));
    }
    return notes.join(", ");
  }

  // Going on and back.

  const position = el("span", { role: "status", id: "position" });
  const message = el("span", { class: "quiet", role: "status" });
  const headLine = el("p", { id: "verdict" });
  const details = el("div", { class: "body", tabindex: "0", "aria-label": "State in front of the step" });
  const slider = el("input", {
    type: "range",
    min: "0",
    max: "0",
    value: "0",
    "aria-label": "Step of the walk",
    input: () => goTo(Number(slider.value)),
  });

  function say(text) {
    message.textContent = text;
  }

  function goTo(at, showsInsn = true) {
    if (!(at >= 0 && at < steps().length)) {
      return;
    }
    step = at;
    compared = null;
    say("");
    walkList.select(at, false);
    slider.value = String(at);
    position.textContent = `step ${grouped(numberOf(at))} of ${grouped(program.total_insns)}`;
    const row = rowOfInsn[steps()[at][INSN]];
    if (row !== undefined && showsInsn) {
      insnList.select(row, false);
    }
    showState();
  }

  /** The next or previous step at the same instruction. */
  function sameInsn(by) {
    const all = visits[steps()[step][INSN]];
    goTo(all[all.indexOf(step) + by] ?? -1);
  }

  /** The next or previous step that ends a path. */
  function pathEnd(by) {
    for (let at = step + by; at >= 0 && at < steps().length; at += by) {
      if (steps()[at][END] !== GOES_ON) {
        return goTo(at);
      }
    }
  }

  // States.

  /** The state in front of a step: texts by place. */
  function stateAt(at) {
    let first = at;
    while (first > 0 && !(steps()[first][FLAGS] & WHOLE)) {
      first--;
    }
    const state = new Map();
    for (let each = first; each <= at; each++) {
      if (steps()[each][FLAGS] & WHOLE) {
        state.clear();
      }
      const changes = steps()[each][CHANGES];
      for (let index = 0; index < changes.length; index += 2) {
        const [place, value] = [changes[index], changes[index + 1]];
        if (value >= 0) {
          state.set(place, program.values[value]);
        } else if ((place & 0xff) === FRAME_PLACE && place !== REFERENCES) {
          [...state.keys()].filter((key) => key >> 8 === place >> 8).forEach((key) => state.delete(key));
        } else {
          state.delete(place);
        }
      }
    }
    return state;
  }

  /** The places of a checkpoint that were precise when the walk came to a step, with the requests. */
  function preciseAt(checkpoint, until) {
    const precise = new Map();
    for (const { places, number } of marks.get(checkpoint) || []) {
      if (program.requests[number][0] <= until) {
        places.forEach((place) => precise.has(place) || precise.set(place, number));
      }
    }
    return precise;
  }

  function stepLink(at, text) {
    return el("button", { class: "link", click: () => goTo(at) }, text || `step ${grouped(numberOf(at))}`);
  }

  function insnText(insn) {
    return `${insn}: ${program.insns[insn] || ""}`;
  }

  /** The instruction and the line that a step stands at. */
  function placeText(at) {
    const insn = steps()[at][INSN];
    const line = program.lines[insn];
    return line ? `${insnText(insn)}  (${baseName(line[0])}:${line[1]})` : insnText(insn);
  }

  function showState() {
    const each = steps()[step];
    const insn = each[INSN];
    const line = program.lines[insn];
    const content = [
      el("p", { class: "code" }, insnText(insn)),
      line ? el("p", { class: "code quiet" }, `${baseName(line[0])}:${line[1]}  ${sourceText(...line)}`) : "",
      ...ending(),
      ...(step === steps().length - 1 ? refusal() : []),
      ...comparison(),
      ...stateTables(),
      ...asking(),
      ...misses(),
    ];
    details.replaceChildren(...content.filter(Boolean));
  }

  function ending() {
    const each = steps()[step];
    const [end, by] = [each[END], each[BY]];
    const parts = [];
    if (step > 0 && before(step) !== step - 1 && before(step) >= 0) {
      parts.push(el("p", {}, "This path branches off behind ", stepLink(before(step)), ` (${placeText(before(step))}).`));
    }
    if (end === PRUNED || end === CLOSES_LOOP) {
      const why = end === PRUNED
        ? "The path ends here: a checkpoint covers this state, and what follows from it was verified."
        : "The path ends here: it comes back to a state that covers it, so that the loop has nothing new.";
      const of = by === null ? el("span", {}, "The checkpoint is among the steps that are left out.") : el("span", {}, "The checkpoint is that of ", stepLink(by), ".");
      parts.push(el("p", {}, why, " ", of));
    } else if (end === EXITS) {
      parts.push(el("p", {}, "The path ends here."));
    } else if (end === BARRIER) {
      parts.push(el("p", {}, "A barrier ends speculative execution here."));
    }
    return parts;
  }

  // Why the state is covered, or not: place by place.

  function comparison() {
    const each = steps()[step];
    const isPruned = each[END] === PRUNED || each[END] === CLOSES_LOOP;
    const other = compared ?? (isPruned ? each[BY] : null);
    if (other === null) {
      return [];
    }
    const [here, there] = [stateAt(step), stateAt(other)];
    const precise = preciseAt(other, step);
    const places = [...new Set([...here.keys(), ...there.keys()])].sort((a, b) => a - b);
    const frame = each[FRAME];
    const live = program.live_regs[each[INSN]];
    const rows = [];
    const same = [];
    for (const place of places.filter((each) => each === REFERENCES || (each & 0xff) !== FRAME_PLACE)) {
      const [now, then] = [here.get(place), there.get(place)];
      const name = `${frameName(place)}${placeName(place)}`;
      const isTop = place >> 8 === frame;
      const isPrecise = precise.has(place);
      if (now === then) {
        same.push(isPrecise ? `${name} (precise)` : name);
        continue;
      }
      const isDead = isTop && isRegister(place) && !((live >> (place & 0xff)) & 1);
      const isScalar = /^(scalar|-?\d|0x)/.test(then || "");
      const word = isDead
        ? "dead: nothing reads it"
        : then === undefined
          ? "no value there, so that nothing reads it"
          : isScalar && !isPrecise
            ? "not precise: any number is covered"
            : isPrecise
              ? "precise: the numbers there must have those here among them"
              : "what is there must cover what is here";
      rows.push(
        el(
          "tr",
          { class: isDead || word.startsWith("n") ? null : "new" },
          el("td", { class: "short" }, name),
          el("td", {}, `here   ${now ?? "nothing"}\nthere  ${then ?? "nothing"}`, el("div", { class: "quiet" }, word)),
        ),
      );
    }
    const title = isPruned && other === each[BY] ? "Why it is covered" : "Comparison";
    return [
      el("h3", {}, `${title}: differences to step ${grouped(numberOf(other))}`),
      rows.length > 0 ? el("table", {}, rows) : el("p", {}, "none"),
      el("p", { class: "quiet" }, `the same: ${same.join(", ") || "nothing"}`),
    ];
  }

  function frameName(place) {
    return place >> 8 > 0 && place !== REFERENCES ? `frame ${place >> 8} ` : "";
  }

  function stateTables() {
    const state = stateAt(step);
    const changed = new Set();
    const last = step > 0 && before(step) >= 0 ? stateAt(before(step)) : new Map();
    for (const [place, value] of state) {
      if (last.get(place) !== value) {
        changed.add(place);
      }
    }
    const precise = steps()[step][FLAGS] & CHECKPOINT ? preciseAt(step, Infinity) : new Map();
    const live = program.live_regs[steps()[step][INSN]];
    const top = steps()[step][FRAME];
    const tables = [];
    for (let frame = top; frame >= 0; frame--) {
      const places = [...state.keys()].filter((place) => place >> 8 === frame && (place & 0xff) !== FRAME_PLACE);
      places.sort((a, b) => a - b);
      const name = state.get((frame << 8) | FRAME_PLACE) || "";
      const body = places.map((place) => {
        const isDead = frame === top && isRegister(place) && !((live >> (place & 0xff)) & 1);
        const request = precise.get(place);
        return el(
          "tr",
          { class: changed.has(place) ? "new" : isDead ? "quiet" : null },
          el("td", { class: "short" }, placeName(place)),
          el("td", {}, state.get(place)),
          el(
            "td",
            { class: "short" },
            isDead ? "dead" : "",
            request === undefined ? "" : el("span", {}, "precise, for ", stepLink(program.requests[request][0])),
          ),
        );
      });
      tables.push(el("h3", {}, `State in front of the step: ${name || "function"}${frame > 0 ? `, frame ${frame}` : ""}`));
      tables.push(el("table", {}, body));
    }
    if (state.has(REFERENCES)) {
      tables.push(el("p", { class: "code" }, state.get(REFERENCES)));
    }
    return tables;
  }

  // Precision: what the step asked for, and where that came from.

  function asking() {
    const content = [];
    for (const number of (requestsBy.get(step) || []).slice(0, 20)) {
      const [, asked, carried, marked] = program.requests[number];
      const names = (places) => places.map((place) => `${frameName(place)}${placeName(place)}`).join(", ");
      content.push(el("h3", {}, `Precision: this step asks for ${names(asked) || "all scalars"}`));
      if (carried.length > 0) {
        const list = carried.map(([insn, places]) =>
          el("li", { class: "code" }, `${insnText(insn)}  →  ${places.length > 0 ? names(places) : "nothing more"}`),
        );
        content.push(el("p", {}, "Carried back over the instructions that the value comes from, with what is asked for in front of each:"), el("ol", {}, list));
      }
      const list = marked.map(([at, places]) =>
        el("li", {}, at === null ? "a checkpoint that is left out" : stepLink(at), `: ${names(places)}`),
      );
      content.push(el("p", {}, "Precise from now on in the checkpoints:"), el("ul", {}, list));
    }
    return content;
  }

  function misses() {
    const missed = steps()[step][MISSED];
    if (missed.length === 0) {
      return [];
    }
    const list = missed.map((at) =>
      el(
        "li",
        {},
        stepLink(at),
        " ",
        el("button", { click: () => { compared = at; showState(); } }, "compare"),
      ),
    );
    return [el("h3", {}, "Checkpoints that do not cover this state"), el("ul", {}, list)];
  }

  // The refusal with its causes.

  function refusal() {
    if (program.verdict === "success") {
      return [];
    }
    const explanation = program.explanation;
    const content = [el("h3", {}, verdictWords[program.verdict] === "refused" ? "Why it is refused" : "Why there is no verdict"), el("p", { class: "code bad" }, program.reason)];
    if (!explanation) {
      return content;
    }
    content.push(el("p", {}, prose(explanation.headline)));
    const texts = (title, list) =>
      list && list.length > 0 ? [el("h3", {}, title), el("ul", {}, list.map((text) => el("li", {}, prose(text))))] : [];
    const asList = (value) => (Array.isArray(value) ? value : value ? [value] : []);
    content.push(...texts("What is known", explanation.known.map((known) => `${known.holder}: ${known.text}`)));
    content.push(...texts("What was needed", asList(explanation.needed)));
    const places = (title, list) =>
      list.length === 0
        ? []
        : [
            el("h3", {}, title),
            el("ol", {}, list.map((each) => el("li", {}, prose(each.text), " ", placeLink(each.place)))),
          ];
    content.push(...places("Where it comes from", explanation.provenance));
    content.push(...places("The way there", explanation.path.decisions));
    content.push(...texts("What to do", asList(explanation.help)));
    return content;
  }

  /** A link to the last step at an instruction on the path to the refusal. */
  function placeLink(place) {
    const source = place.source ? `${baseName(place.source.file)}:${place.source.line} ` : "";
    const text = `${source}${place.insn}: ${place.text}`;
    for (let at = steps().length - 1; at >= 0; at = before(at)) {
      if (steps()[at][INSN] === place.insn) {
        return stepLink(at, text);
      }
    }
    return el("code", {}, text);
  }

  // The page.

  const [search, found] = searchField();
  const [help, helpButton] = helpDialog([
    ["→ l", "one step forward"],
    ["← h", "one step back"],
    ["f F", "to the first, to the last step (of a refusal)"],
    ["n p", "the next, the previous step at the same instruction"],
    ["e E", "the next, the previous end of a path"],
    ["b", "to the step in front of this one on its path: where a branch begins"],
    ["c", "to the checkpoint that covers this state"],
    ["↑ ↓ Home End", "in the list that has the focus"],
    ["/", "search in the list that had the focus last; Enter and Shift+Enter go on"],
    ["?", "these keys"],
  ]);
  const button = (text, label, action) => el("button", { "aria-label": label, title: label, click: action }, text);
  const actions = {
    forward: () => goTo(step + 1),
    back: () => goTo(step - 1),
    first: () => goTo(0),
    last: () => goTo(steps().length - 1),
    branch: () => goTo(before(step)),
    covering: () => goTo(steps()[step][BY] ?? -1),
  };
  document.body.append(
    el("header", {}, el("h1", { title: data.title }, baseName(data.title)), chooser, headLine, search, found, helpButton, message),
    el(
      "main",
      { class: "verify" },
      section("Program", [el("span", { class: "quiet" }, "steps, checkpoints")], insnList.element),
      section("Walk", [], walkList.element),
      section(
        "State",
        [
          button("«", "First step", actions.first),
          button("‹", "One step back", actions.back),
          button("›", "One step forward", actions.forward),
          button("»", "Last step", actions.last),
          slider,
          position,
        ],
        details,
      ),
    ),
  );
  onKeys({
    ArrowRight: actions.forward,
    l: actions.forward,
    ArrowLeft: actions.back,
    h: actions.back,
    f: actions.first,
    F: actions.last,
    n: () => sameInsn(1),
    p: () => sameInsn(-1),
    e: () => pathEnd(1),
    E: () => pathEnd(-1),
    b: actions.branch,
    c: actions.covering,
    "/": () => search.focus(),
    "?": () => help.showModal(),
  });
  LongList.active = walkList;
  if (data.programs.length > 0) {
    const refused = data.programs.findIndex((each) => each.verdict !== "success");
    chooseProgram(Math.max(0, refused));
  }
})();
