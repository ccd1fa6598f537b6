"use strict";
// Adds a filter, sorting and keys to pages that read well without. Text is only ever compared, never made into markup.

const CAPABILITIES = [
  "tools", "tool_calls", "parallel_tool_calls", "system_role", "string_content", "typed_content",
  "object_arguments", "preserve_reasoning", "reasoning_effort",
];

const lists = [...document.querySelectorAll("table.list")];

function bodyRows(table) {
  return [...table.tBodies[0].rows];
}

// The text of every row in small letters, read once and only when someone filters.
const texts = new WeakMap();
function textOf(row) {
  if (!texts.has(row)) {
    texts.set(row, [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
  }
  return texts.get(row);
}

// What the address asks for: ?tools=yes, ?flags=yyynnnnnn, ?outcome=analysed, ?start=no.
function wanted() {
  const conditions = [];
  const words = [];
  for (const [name, value] of new URLSearchParams(location.search)) {
    const place = CAPABILITIES.indexOf(name);
    if (place >= 0) {
      const letters = value === "yes" ? "yo" : value === "no" ? "nu" : "x";
      conditions.push((row) => letters.includes((row.dataset.flags || "?")[place]));
      words.push(`${name.replaceAll("_", " ")}: ${value}`);
    } else if (name === "flags") {
      // A combination is of claims: a disagreement is one of them.
      const claimed = (key) => (key || "").replaceAll("o", "y").replaceAll("u", "n");
      conditions.push((row) => claimed(row.dataset.flags) === value);
      words.push("one flag combination");
    } else if (name === "outcome") {
      // Behind the outcome itself the cell may say that the server does not start.
      conditions.push((row) => row.querySelector(".outcome").firstChild.textContent === value);
      words.push(value);
    } else if (name === "start") {
      conditions.push((row) => row.dataset.start === value);
      words.push("where llama-server would not start");
    }
  }
  return { holds: (row) => conditions.every((condition) => condition(row)), words };
}

const narrowing = document.querySelector(".narrowed");
const asked = narrowing ? wanted() : { holds: () => true, words: [] };
if (asked.words.length) {
  const all = document.createElement("a");
  all.href = location.pathname.split("/").pop();
  all.textContent = "show all";
  narrowing.append(`Only ${asked.words.join(", ")} · `, all);
  narrowing.hidden = false;
}

function applyFilter(table, input, output) {
  const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = bodyRows(table);
  let shown = 0;
  for (const row of rows) {
    const fits = asked.holds(row) && (terms.length === 0 || terms.every((term) => textOf(row).includes(term)));
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  output.textContent = shown === rows.length ? `${rows.length}` : `${shown} of ${rows.length}`;
}

function addFilter(table) {
  const finder = table.parentElement.previousElementSibling;
  if (!finder || !finder.classList.contains("find")) return;
  const input = finder.querySelector("input");
  const output = finder.querySelector("output");
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => applyFilter(table, input, output), 60);
  });
  finder.hidden = bodyRows(table).length < 2 && !asked.words.length;
  applyFilter(table, input, output);
}

function keyOf(cell) {
  if (cell.classList.contains("flags")) return cell.querySelector("use").getAttribute("href");
  const text = cell.dataset.key ?? cell.textContent;
  const isNumber = cell.classList.contains("num") || cell.dataset.key !== undefined;
  return isNumber ? parseFloat(text.replaceAll(",", "")) : text;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") {
    if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
    return one - other;
  }
  return one < other ? -1 : one > other ? 1 : 0;
}

function sortBy(table, header, column) {
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = bodyRows(table).map((row) => [keyOf(row.cells[column]), row]);
  keyed.sort((one, other) => (down ? -1 : 1) * compare(one[0], other[0]));
  table.tBodies[0].append(...keyed.map((pair) => pair[1]));
}

function addSorting(table) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(table, header, column));
  });
}

function isVisible(element) {
  return element.offsetParent !== null;
}

let here = null;
function goTo(element) {
  if (here) here.classList.remove("here");
  here = element;
  here.classList.add("here");
  here.scrollIntoView({ block: "center" });
  const target = here.querySelector("a") || here;
  target.focus({ preventScroll: true });
}

function step(elements, by) {
  const shown = elements.filter(isVisible);
  if (shown.length === 0) return;
  const at = shown.indexOf(here);
  goTo(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : (at + by + shown.length) % shown.length]);
}

const rowsOfLists = () => lists.flatMap(bodyRows);
const findings = () => [...document.querySelectorAll(".finding")];

const keys = {
  "/": () => {
    const input = [...document.querySelectorAll(".find:not([hidden]) input")].find(isVisible);
    if (input) input.focus();
  },
  j: () => step(rowsOfLists(), 1),
  k: () => step(rowsOfLists(), -1),
  n: () => step(findings(), 1),
  "?": () => {
    const help = document.getElementById("keys");
    help.hidden = !help.hidden;
  },
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    document.getElementById("keys").hidden = true;
    if (document.activeElement) document.activeElement.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!action) return;
  event.preventDefault();
  action();
});

// A link to something that is folded unfolds it; browsers that do so themselves lose nothing.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
  if (target) target.scrollIntoView();
}

lists.forEach(addSorting);
lists.forEach(addFilter);
window.addEventListener("hashchange", unfold);
if (location.hash) unfold();
