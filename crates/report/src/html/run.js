"use strict";

// The page of a run: packets, source, and the path of the packet that is chosen.

(() => {
  const data = readData();
  const { summary, strings, packets, places, events, paths } = data;
  const [NUMBER, TIME, CAPTURED, WIRE, VERDICT, RETVAL, REDIRECT, TEXT, EXECUTED, PATH] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
  ];

  /** Packets of the verdict that is chosen, by index. */
  let shown = packets.map((_, index) => index);
  let path = null;
  let step = -1;
  /** By row of the source: visits by the path. */
  let visits = new Map();

  const { rows: sourceList, at: sourceAt } = sourceRows(data.files);
  const place = (at) => places[path.steps[at][0]];
  const eventsOf = (at) => path.steps[at].slice(1).map((number) => events[number]);
  const sourceRow = (of) => sourceAt.get(`${strings[of[FILE]]}:${of[LINE]}`);

  // Packets.

  const packetText = (packet) =>
    [
      packet[NUMBER] || "",
      strings[packet[VERDICT]],
      strings[packet[TEXT]],
      strings[packet[REDIRECT]] && `to ${strings[packet[REDIRECT]]}`,
    ].join(" ");

  const packetList = new LongList({
    label: "Packets",
    count: shown.length,
    text: (index) => packetText(packets[shown[index]]),
    chosen: (index) => choosePacket(shown[index]),
    fill: (row, index) => {
      const packet = packets[shown[index]];
      const redirect = strings[packet[REDIRECT]];
      row.append(
        el("span", { class: "number", style: "width: 4em" }, String(packet[NUMBER] || 1)),
        el("span", { class: "text", style: "width: 9.5em" }, strings[packet[VERDICT]]),
        el("span", { class: "text" }, strings[packet[TEXT]]),
        redirect ? el("span", { class: "note" }, `to ${redirect}`) : "",
        packet[PATH] === null ? el("span", { class: "note" }, "no path") : "",
      );
    },
  });

  const verdictCounts = new Map();
  for (const packet of packets) {
    verdictCounts.set(packet[VERDICT], (verdictCounts.get(packet[VERDICT]) || 0) + 1);
  }
  const verdictButtons = [...verdictCounts].map(([verdict, count]) =>
    el(
      "button",
      { "aria-pressed": "false", click: (event) => showVerdict(event.currentTarget, verdict) },
      `${strings[verdict]}: ${grouped(count)}`,
    ),
  );

  function showVerdict(button, verdict) {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    verdictButtons.forEach((each) => each.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(isOn));
    const all = packets.map((_, index) => index);
    shown = isOn ? all.filter((index) => packets[index][VERDICT] === verdict) : all;
    packetList.selected = -1;
    packetList.element.scrollTop = 0;
    packetList.reset(shown.length);
    packetList.select(0);
  }

  // Source.

  const hasCounts = data.files.some((file) => file.counts.length > 0);

  const sourcePane = new LongList({
    label: "Source",
    count: sourceList.length,
    text: (index) => sourceList[index].text ?? sourceList[index].heading,
    chosen: (index) => goToRow(index),
    fill: (row, index) => {
      const line = sourceList[index];
      if (line.heading !== undefined) {
        row.append(el("span", { class: "heading" }, line.heading || "no file"));
        return;
      }
      const [count, cost, note, kind] = lineCounts(line.counts);
      const isTaken = visits.get(index);
      row.classList.add(...[kind, isTaken && step >= 0 && currentRow() === index ? "near" : ""].filter(Boolean));
      row.append(el("span", { class: "number", style: "width: 3.2em" }, String(line.line)));
      if (hasCounts) {
        row.append(
          el("span", { class: "count", style: "width: 5em", title: "how often all runs executed it" }, count),
          el("span", { class: "count", style: "width: 6em", title: "instructions of all runs" }, cost),
        );
      }
      row.append(
        el(
          "span",
          { class: "count", style: "width: 2.5em", title: "how often this packet took it" },
          isTaken ? `${isTaken.length}×` : "",
        ),
        el("span", { class: "text" }, line.text),
        note ? el("span", { class: "note", title: "jumps: taken/not taken" }, note) : "",
      );
    },
  });

  /** Count, cost, ways of branches and kind of a line. */
  function lineCounts(counts) {
    if (!counts) {
      return ["", "", "", ""];
    }
    const [, count, cost, ways] = counts;
    if (count === null) {
      return ["never", "", "no run can reach it", "dead"];
    }
    const way = (each) => (each === null ? "–" : grouped(each));
    const note = ways.map(([jumped, fell]) => `${way(jumped)}/${way(fell)}`).join(" ");
    const isPart = ways.some((each) => each.includes(0));
    const kind = count === 0 ? "miss" : isPart ? "part" : "hit";
    return [grouped(count), cost ? grouped(cost) : "", note, kind];
  }

  const currentRow = () => (path && step >= 0 ? sourceRow(place(step)) : undefined);

  /** Goes to the next step of the path at a line of the source, from the current one on. */
  function goToRow(index) {
    const at = visits.get(index);
    if (!at) {
      say("this packet did not take the line");
      return;
    }
    goTo(at.find((each) => each > step) ?? at[0]);
  }

  // The path.

  const pathList = new LongList({
    label: "Path",
    count: 0,
    text: (index) => `${stepText(index)} ${eventsOf(index).map(eventText).join(" ")}`,
    chosen: (index) => goTo(index),
    fill: (row, index) => {
      const of = place(index);
      const isGap = path.gap && path.gap[0] === index;
      const depth = of[DEPTH] + of[INLINED].length;
      const note = eventsOf(index).filter((event) => event.event !== "enter").map(eventText)[0];
      row.append(
        el("span", { class: "number", style: "width: 4em" }, of[LINE] ? String(of[LINE]) : `#${of[INSNS][0][0]}`),
        el("span", { class: "text" }, "  ".repeat(Math.min(depth, 8)) + stepText(index)),
        el("span", { class: "note" }, note || ""),
        isGap ? el("span", { class: "note bad" }, `${many(path.gap[1], "line")} left out before this one`) : "",
      );
    },
  });

  function stepText(at) {
    const of = place(at);
    const row = sourceRow(of);
    return row === undefined ? strings[of[INSN_TEXT]] : sourceList[row].text.trim();
  }

  const position = el("span", { role: "status", id: "position" });
  const slider = el("input", {
    type: "range",
    min: "0",
    max: "0",
    value: "0",
    "aria-label": "Step of the path",
    input: () => goTo(Number(slider.value)),
  });
  const details = el("div", { class: "body", tabindex: "0", "aria-label": "State behind the step" });
  const message = el("span", { class: "quiet", role: "status" });

  function say(text) {
    message.textContent = text;
  }

  function choosePacket(index) {
    const packet = packets[index];
    path = packet[PATH] === null ? null : paths[packet[PATH]];
    step = -1;
    visits = new Map();
    if (path) {
      path.steps.forEach((_, at) => {
        const row = sourceRow(place(at));
        if (row !== undefined) {
          const known = visits.get(row);
          known ? known.push(at) : visits.set(row, [at]);
        }
      });
    }
    pathList.selected = -1;
    pathList.element.scrollTop = 0;
    pathList.reset(path ? path.steps.length : 0);
    slider.max = String(Math.max(0, pathList.count - 1));
    showHead(packet);
    if (path && path.steps.length > 0) {
      goTo(0);
    } else {
      position.textContent = "no path";
      details.replaceChildren(noPath(packet));
      sourcePane.redraw();
    }
  }

  function noPath(packet) {
    const command = `beebox run ${summary.object} --prog ${summary.prog} --pcap ${summary.capture || "FILE"} --why ${packet[NUMBER]}`;
    return el("p", {}, "The path of this packet is not in the page, which has the first 100 000 steps: ", el("code", {}, command));
  }

  const headLine = el("p", { id: "packet" });

  function showHead(packet) {
    const parts = [
      packet[NUMBER] ? `packet ${packet[NUMBER]}` : "",
      packet[TIME] && `at ${packet[TIME]}`,
      `${packet[CAPTURED]} bytes${packet[WIRE] > packet[CAPTURED] ? ` of ${packet[WIRE]}` : ""}`,
      strings[packet[TEXT]],
      `${strings[packet[VERDICT]]}${packet[RETVAL] === null ? "" : ` (${packet[RETVAL]})`}`,
      path?.source ? `at ${baseName(path.source.file)}:${path.source.line}` : "",
      packet[EXECUTED] === null ? "" : many(packet[EXECUTED], "instruction"),
    ];
    headLine.textContent = parts.filter(Boolean).join(", ");
  }

  function goTo(at) {
    if (!path || at < 0 || at >= path.steps.length) {
      return;
    }
    step = at;
    say("");
    pathList.select(at, false);
    slider.value = String(at);
    position.textContent = `step ${grouped(at + 1)} of ${grouped(path.steps.length)}`;
    const row = currentRow();
    sourcePane.redraw();
    if (row !== undefined) {
      sourcePane.select(row, false);
    }
    showState();
  }

  /** By entry of a map: the packets that wrote it, as indexes, with the first step of each that did. */
  let writers = null;

  function writersOf(name) {
    if (!writers) {
      writers = new Map();
      packets.forEach((packet, index) => {
        const steps = packet[PATH] === null ? [] : paths[packet[PATH]].steps;
        steps.forEach((each, at) => {
          for (const number of each.slice(1)) {
            const event = events[number];
            if (event.event === "write" && event.map) {
              const known = writers.get(writeName(event)) || [];
              if (known.at(-1)?.index !== index) {
                known.push({ index, at });
              }
              writers.set(writeName(event), known);
            }
          }
        });
      });
    }
    return writers.get(name) || [];
  }

  /** True if packets between two indexes ran that are not in the page, or not with their paths. */
  function leavesOut(from, to) {
    for (let index = from + 1; index <= to; index++) {
      const gap = packets[index][NUMBER] - (index > 0 ? packets[index - 1][NUMBER] : 0);
      if (gap > 1 || (index < to && packets[index][PATH] === null)) {
        return true;
      }
    }
    return false;
  }

  /** Links to the packets that wrote an entry before and after the one that is chosen. */
  function otherWriters(name) {
    const chosen = shown[packetList.selected];
    const all = writersOf(name);
    const link = (writer, word, isOpen) => {
      const unknown = isOpen ? "one that is not in the page" : "";
      if (!writer) {
        return unknown && word === "before" ? [`${word} maybe by ${unknown} `] : [];
      }
      const button = el("button", { class: "link", click: () => openAt(writer) }, `packet ${packets[writer.index][NUMBER]}`);
      return [`${word} by `, button, unknown ? `, or ${unknown} ` : " "];
    };
    const before = all.findLast((writer) => writer.index < chosen);
    const after = all.find((writer) => writer.index > chosen);
    return [
      ...link(before, "before", leavesOut(before?.index ?? -1, chosen)),
      ...link(after, "next", after !== undefined && leavesOut(chosen, after.index)),
    ];
  }

  function openAt({ index, at }) {
    if (!shown.includes(index)) {
      verdictButtons.forEach((each) => each.setAttribute("aria-pressed", "false"));
      shown = packets.map((_, each) => each);
      packetList.reset(shown.length);
    }
    packetList.select(shown.indexOf(index));
    goTo(at);
  }

  function showState() {
    const view = { place, eventsOf, strings };
    const { frames, writes, moved } = stateAt(view, step);
    const of = place(step);
    const here = eventsOf(step).map((event) => el("li", { class: "code" }, eventText(event)));
    const inlined = of[INLINED].map((name) => strings[name]);
    const where = [strings[of[FUNCTION]], ...inlined].join(" › ");
    const insns = of[INSNS].map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ");
    const content = [
      el("p", {}, `${where}${strings[of[PROG]] === strings[of[FUNCTION]] ? "" : `, program ${strings[of[PROG]]}`}, instructions ${insns}`),
      here.length > 0 ? el("ul", {}, here) : el("p", { class: "quiet" }, "nothing to tell of this line"),
    ];
    const variableRow = (variable) =>
      el(
        "tr",
        { class: variable.at === step ? "new" : null },
        el("td", { class: "short" }, variable.name),
        el("td", {}, variable.text),
        el("td", { class: "quiet" }, variable.c_type),
        el("td", { class: "short" }, stepLink(variable.at)),
      );
    frames.filter(Boolean).reverse().forEach((frame) => {
      // Of a frame that waits for another one, where it called it.
      const found = [...scopes(view, frame, frame.last ?? step)].reverse();
      for (const [inlinedName, variables] of found) {
        const title = inlinedName ? `${inlinedName}, inlined into ${frame.name}` : frame.name;
        content.push(el("h3", {}, `Variables of ${title}`));
        const rows = variables.map(variableRow);
        content.push(rows.length > 0 ? el("table", {}, rows) : el("p", { class: "quiet" }, "none yet"));
      }
    });
    const later = laterWrites(view, [step, path.steps.length - 1], writes, moved);
    const entries = [
      ...[...writes.values()].map((write) => ({ ...write, now: write.event.after, isMade: true })),
      ...[...later.values()].map((write) => ({ ...write, now: write.event.before, isMade: false })),
    ];
    const tables = [
      ["Maps and variables of the object", entries.filter((write) => write.event.map)],
    ];
    const isContext = (write) => isOfContext(write.event);
    const ofPacket = entries.filter((write) => !write.event.map);
    // Where the packet began elsewhere, its bytes had other names.
    const ends = [...new Set(ofPacket.filter((write) => !isContext(write)).map((write) => write.moved))];
    for (const end of ends.filter((each) => each !== moved)) {
      const next = [...ends, moved].filter((each) => each !== "" && each > (end === "" ? -1 : end)).sort((a, b) => a - b)[0];
      const before = ofPacket.filter((write) => !isContext(write) && write.moved === end);
      tables.push([`Packet as it began before step ${grouped(next + 1)}`, before]);
    }
    const now = ofPacket.filter((write) => isContext(write) || write.moved === moved);
    tables.push(["Packet and context", now]);
    for (const [title, all] of tables) {
      if (all.length > 0) {
        const rows = all.map((write) =>
          el(
            "tr",
            { class: write.isMade && write.at === step ? "new" : null },
            el("td", {}, write.name),
            el("td", {}, valueText(write.now) ?? "absent"),
            write.isMade
              ? el("td", { class: "quiet" }, `was ${valueText(write.first) ?? "absent"}`)
              : el("td", { class: "quiet short" }, "written later, in "),
            el("td", { class: "short" }, stepLink(write.at)),
            write.event.map ? el("td", { class: "quiet short" }, otherWriters(write.name)) : "",
          ),
        );
        content.push(el("h3", {}, title), el("table", {}, rows));
      }
    }
    if (path.changes.length > 0) {
      const rows = path.changes.map((change) =>
        el("tr", {}, el("td", {}, change.name), el("td", {}, `${change.text_before ?? "absent"} → ${change.text_after ?? "absent"}`)),
      );
      content.push(el("h3", {}, "What the run changed in the packet"), el("table", {}, rows));
    }
    if (path.stopped) {
      content.push(el("h3", {}, "What stopped it"), el("p", { class: "code bad" }, path.stopped));
    }
    if (path.unseen.length > 0) {
      const rows = path.unseen.map((each) => el("tr", {}, el("td", {}, `${each.name} of ${each.function}`), el("td", {}, each.reason)));
      content.push(el("h3", {}, "Variables that are not shown"), el("table", {}, rows));
    }
    if (path.lacks_debug_info) {
      content.push(el("p", { class: "quiet" }, "The object has no debug information (clang -g), so local variables have no names."));
    }
    details.replaceChildren(...content);
  }

  function stepLink(at) {
    return el("button", { class: "link", click: () => goTo(at) }, `step ${grouped(at + 1)}`);
  }

  // The page.

  const [search, found] = searchField();
  const [help, helpButton] = helpDialog([
    ["→ l", "one step forward"],
    ["← h", "one step back"],
    ["f F", "to the first, to the last step"],
    ["n p", "the next, the previous packet"],
    ["↑ ↓ Home End", "in the list that has the focus"],
    ["/", "search in the list that had the focus last; Enter and Shift+Enter go on"],
    ["?", "these keys"],
  ]);
  const button = (text, label, action) => el("button", { "aria-label": label, title: label, click: action }, text);
  const lastStep = () => goTo(path ? path.steps.length - 1 : -1);
  const stopped = summary.stopped ? el("p", { class: "bad" }, `stopped: ${summary.stopped}`) : "";
  document.body.append(
    el(
      "header",
      {},
      el("h1", {}, summary.capture ? `${summary.prog} on ${baseName(summary.capture)}` : summary.prog),
      el("p", {}, `${baseName(summary.object)}, ${summary.prog_type}, engine ${summary.engine}`),
      stopped,
      search,
      found,
      helpButton,
      message,
    ),
    el(
      "main",
      { class: "run" },
      section(
        "Packets",
        [...verdictButtons, data.left_out ? el("span", { class: "quiet" }, `${many(data.left_out, "packet")} more`) : ""],
        packetList.element,
      ),
      section("Source", hasCounts ? [el("span", { class: "quiet" }, "runs, instructions, this packet")] : [], sourcePane.element),
      section(
        "Path",
        [
          button("«", "First step", () => goTo(0)),
          button("‹", "One step back", () => goTo(step - 1)),
          button("›", "One step forward", () => goTo(step + 1)),
          button("»", "Last step", lastStep),
          slider,
          position,
        ],
        el("div", { class: "bar" }, headLine),
        pathList.element,
        details,
      ),
    ),
  );
  const forward = () => goTo(step + 1);
  const back = () => goTo(step - 1);
  const packetBy = (by) => () => packetList.select(packetList.selected + by);
  onKeys({
    ArrowRight: forward,
    l: forward,
    ArrowLeft: back,
    h: back,
    f: () => goTo(0),
    F: lastStep,
    n: packetBy(1),
    p: packetBy(-1),
    "/": () => search.focus(),
    "?": () => help.showModal(),
  });
  LongList.active = packetList;
  packetList.redraw();
  sourcePane.redraw();
  packetList.select(0);
})();
