"use strict";

// What the pages share: elements, long lists of which only the visible rows are in the page, search,
// keys and help. Texts become text nodes only.

/** An element with attributes (functions are listeners) and children (texts become text nodes). */
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") {
      element.addEventListener(key, value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The data of the page; integers that numbers would round are of type bigint. */
function readData() {
  const exact = (_, value) => (value?.["#int"] === undefined ? value : BigInt(value["#int"]));
  return JSON.parse(document.getElementById("data").textContent, exact);
}

/** A value as JSON, with integers of any size. */
function jsonText(value) {
  if (typeof value === "bigint") {
    return String(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map(jsonText).join(",")}]`;
  }
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}:${jsonText(part)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/** A number with thin spaces between thousands. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** "1 packet", "2 packets". */
function many(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}

const ROW = 20;
const SPARE_ROWS = 10;
let listNumber = 0;

/**
 * A list of any length: rows are made when they come into view.
 *
 * `fill(row, index)` fills the element of a row, `text(index)` is what search sees, `chosen(index)` is
 * called when the user chooses a row.
 */
class LongList {
  constructor({ label, count, fill, text, chosen }) {
    Object.assign(this, { count, fill, text, chosen });
    this.id = `list${listNumber++}`;
    this.selected = -1;
    this.rows = new Map();
    this.space = el("div", { role: "presentation" });
    this.element = el(
      "div",
      {
        class: "list",
        role: "listbox",
        tabindex: "0",
        id: this.id,
        "aria-label": label,
        scroll: () => this.draw(),
        keydown: (event) => this.key(event),
        focus: () => (LongList.active = this),
        click: (event) => this.click(event),
      },
      this.space,
    );
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Sets the number of rows, and draws them anew. */
  reset(count) {
    this.count = count;
    this.selected = Math.min(this.selected, count - 1);
    this.redraw();
  }

  redraw() {
    this.space.style.height = `${this.count * ROW}px`;
    this.rows.forEach((row) => row.remove());
    this.rows.clear();
    this.draw();
  }

  draw() {
    this.space.style.height = `${this.count * ROW}px`;
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE_ROWS);
    const shown = Math.ceil(this.element.clientHeight / ROW) + 2 * SPARE_ROWS;
    const last = Math.min(this.count, first + shown);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (!this.rows.has(index)) {
        const row = el("div", {
          class: "row",
          role: "option",
          id: `${this.id}-${index}`,
          "data-index": index,
          "aria-setsize": this.count,
          "aria-posinset": index + 1,
          "aria-selected": index === this.selected,
        });
        row.style.top = `${index * ROW}px`;
        this.fill(row, index);
        this.rows.set(index, row);
        this.space.append(row);
      }
    }
  }

  /** Selects a row, and shows it. */
  select(index, tells = true) {
    if (!(index >= 0 && index < this.count)) {
      return;
    }
    const mark = (at, is) => this.rows.get(at)?.setAttribute("aria-selected", String(is));
    mark(this.selected, false);
    this.selected = index;
    this.show(index);
    mark(index, true);
    this.element.setAttribute("aria-activedescendant", `${this.id}-${index}`);
    if (tells) {
      this.chosen(index);
    }
  }

  /** Scrolls a row into view. */
  show(index) {
    const { clientHeight, scrollTop } = this.element;
    if (index * ROW < scrollTop + ROW) {
      this.element.scrollTop = Math.max(0, index * ROW - clientHeight / 3);
    } else if ((index + 2) * ROW > scrollTop + clientHeight) {
      this.element.scrollTop = (index + 1) * ROW - (clientHeight * 2) / 3;
    }
    this.draw();
  }

  click(event) {
    const row = event.target.closest(".row");
    if (row) {
      this.select(Number(row.dataset.index));
    }
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const to = {
      ArrowDown: this.selected + 1,
      ArrowUp: this.selected - 1,
      PageDown: Math.min(this.count - 1, this.selected + page),
      PageUp: Math.max(0, this.selected - page),
      Home: 0,
      End: this.count - 1,
    }[event.key];
    if (to !== undefined && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      this.select(Math.max(0, Math.min(this.count - 1, to)));
    }
  }

  /** The next row with a text, from the selected one on or back; all rows are searched. */
  find(text, isBack) {
    const wanted = text.toLowerCase();
    for (let step = 1; step <= this.count; step++) {
      const by = isBack ? this.count - step : step;
      const index = (Math.max(0, this.selected) + by) % this.count;
      if (this.text(index).toLowerCase().includes(wanted)) {
        this.select(index);
        return true;
      }
    }
    return false;
  }
}
LongList.active = null;

/** The search field: it searches the list that had the focus last. */
function searchField() {
  const found = el("span", { class: "quiet", role: "status", id: "found" });
  const input = el("input", {
    type: "search",
    id: "search",
    placeholder: "search ( / )",
    "aria-label": "Search the list that had the focus last",
    keydown: (event) => {
      if (event.key === "Enter" && input.value && LongList.active) {
        const isFound = LongList.active.find(input.value, event.shiftKey);
        found.textContent = isFound ? "" : "not found";
        event.preventDefault();
      } else if (event.key === "Escape") {
        LongList.active?.element.focus();
      }
      event.stopPropagation();
    },
  });
  return [input, found];
}

/** The help, as a dialog and the button that opens it. */
function helpDialog(rows) {
  const row = ([keys, what]) =>
    el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, keys)), el("td", {}, what));
  const dialog = el(
    "dialog",
    { "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("table", {}, rows.map(row)),
    el("form", { method: "dialog" }, el("button", {}, "Close")),
  );
  document.body.append(dialog);
  return [dialog, el("button", { click: () => dialog.showModal(), id: "help" }, "Keys (?)")];
}

/** Has keys do what a table says, unless one types. */
function onKeys(actions) {
  document.addEventListener("keydown", (event) => {
    const types = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (types || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const action = actions[event.key];
    if (action && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      action();
    }
  });
}

/** A section with a bar above its content. */
function section(label, bar, ...content) {
  return el("section", { "aria-label": label }, el("div", { class: "bar" }, el("h2", {}, label), bar), content);
}

/** A text in which what is between backticks is code. */
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? el("code", {}, part) : part));
}

/** Last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The lines of source files, one list for all: a heading for each file, then its lines. */
function sourceRows(files) {
  const rows = [];
  const at = new Map();
  files.forEach((file, number) => {
    const source = file.source;
    const counts = new Map(file.counts.map((each) => [each[0], each]));
    rows.push({ heading: source.name, file: number });
    source.texts.forEach((text, index) => {
      const line = source.numbers ? source.numbers[index] : index + 1;
      at.set(`${source.name}:${line}`, rows.length);
      rows.push({ file: number, name: source.name, line, text, counts: counts.get(line) });
    });
  });
  return { rows, at };
}
