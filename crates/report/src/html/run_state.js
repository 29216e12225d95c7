"use strict";

// What the page of a run makes of a path: its events as text, and the state behind a step.

/** Parts of a place. */
const [FILE, LINE, PROG, FUNCTION, INLINED, DEPTH, INSNS, INSN_TEXT] = [0, 1, 2, 3, 4, 5, 6, 7];

// Events as text.

const valueText = (content) => (content ? jsonText(content.value) : null);

function operandText(operand) {
  return valueText(operand.content) ?? operand.name ?? operand.text;
}

function comparedText(operand) {
  return operand.name && operand.name !== operand.text ? `${operand.name} (${operand.text})` : operand.text;
}

function eventText(event) {
  switch (event.event) {
    case "branch": {
      const to = event.next_line ? `, on at ${event.next_line}` : "";
      const [left, right] = [comparedText(event.left_operand), comparedText(event.right_operand)];
      return `${left} ${event.condition} ${right}: ${event.holds ? "yes" : "no"}${to}`;
    }
    case "call": {
      const result = event.result_operand;
      const returned = result ? ` = ${result.text}${result.content ? ` ${valueText(result.content)}` : ""}` : "";
      return `${event.callee}(${event.operands.map(operandText).join(", ")})${returned}`;
    }
    case "write":
      return `${writeName(event)}: ${valueText(event.before) ?? "absent"} → ${valueText(event.after) ?? "absent"}`;
    case "enter":
      return event.callback_of ? `entered, called by ${event.callback_of}` : "entered";
    case "return":
      return `returns ${comparedText(event.result_operand)}`;
    case "tail_call":
      return `tail call of ${event.target_prog}`;
    case "record":
      return `record of ${event.map}: ${valueText(event.record_content)}`;
    case "printk":
      return `printk: ${event.text}`;
    case "variable":
      return `${event.name} = ${event.text}`;
    default:
      return event.event;
  }
}

/** What a write wrote: of an entry of a map with its key. */
function writeName(event) {
  const { map, target_name: name } = event;
  if (!event.map_key || !(name === map || name.startsWith(`${map}.`))) {
    return name;
  }
  const key = valueText(event.map_key).replace(/^\[(.*)\]$/, "$1");
  return `${map}[${key}]${name.slice(map.length)}`;
}

// The state behind a step, from the events up to it: frames with their variables, entries of maps, bytes
// of the packet.

/** True for calls behind which bytes of the packet have other names, since it begins elsewhere. */
const movesPacket = (event) =>
  event.event === "call" && /^bpf_(xdp_adjust_(head|meta)|skb_(adjust_room|change_|vlan_)|lwt_push_encap)/.test(event.callee);

const isOfContext = (event) => /->|^ctx\[/.test(event.target_name);

/** What tells a write from others: bytes of the packet by the call that moved its begin last, too. */
const writeKey = (event, moved) =>
  [event.map || "", valueText(event.map_key), event.map || isOfContext(event) ? "" : moved, writeName(event)].join(" ");

/** Frames with their variables, and writes, behind a step; where the packet was moved last. */
function stateAt({ place, eventsOf, strings }, end) {
  const frames = [];
  const writes = new Map();
  let moved = "";
  for (let at = 0; at <= end; at++) {
    const of = place(at);
    for (const event of eventsOf(at)) {
      moved = movesPacket(event) ? at : moved;
      if (event.event === "enter") {
        frames.length = of[DEPTH];
        frames[of[DEPTH]] = { name: strings[of[FUNCTION]], variables: new Map() };
      } else if (event.event === "variable") {
        const frame = (frames[of[DEPTH]] ??= { name: strings[of[FUNCTION]], variables: new Map() });
        // One of each scope: a name may stand for another variable in a block or an inlined function.
        frame.variables.set(`${event.name} ${event.insn_ranges}`, { ...event, at });
      } else if (event.event === "write") {
        const key = writeKey(event, moved);
        const known = writes.get(key);
        writes.set(key, { event, name: writeName(event), first: known ? known.first : event.before, at, moved });
      }
    }
    frames.length = Math.min(frames.length, of[DEPTH] + 1);
    if (frames[of[DEPTH]]) {
      frames[of[DEPTH]].last = at;
    }
  }
  return { frames, writes, moved };
}

/** The variables of a frame that are in scope at a step, by the function that has them: its own first. */
function scopes({ place }, frame, at) {
  const insns = place(at)[INSNS];
  const meets = ([first, last]) => insns.some(([from, to]) => from <= last && first <= to);
  const isHere = (variable) => variable.at === at || !variable.insn_ranges || variable.insn_ranges.some(meets);
  const found = new Map([["", []]]);
  for (const variable of frame.variables.values()) {
    if (isHere(variable)) {
      const name = variable.inlined_name ?? "";
      found.set(name, [...(found.get(name) || []), variable]);
    }
  }
  return found;
}

/** Writes of the whole path that are not made yet: what is there is what was before the first of them. */
function laterWrites({ eventsOf }, [step, last], made, movedBefore) {
  const later = new Map();
  let moved = movedBefore;
  for (let at = step + 1; at <= last; at++) {
    for (const event of eventsOf(at)) {
      moved = movesPacket(event) ? at : moved;
      if (event.event === "write") {
        const key = writeKey(event, moved);
        // Where the packet will begin is not told before.
        if (!made.has(key) && !later.has(key) && (event.map || moved === movedBefore)) {
          later.set(key, { event, name: writeName(event), at, moved });
        }
      }
    }
  }
  return later;
}
