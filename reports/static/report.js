"use strict";
// Adds search, filters, sorting and keys to pages that read well without. Text is compared, and set as text, but never
// made into markup.

const tables = [...document.querySelectorAll("table.list")];
// The rows of each table in the order chosen; a long table may take a moment to get there.
const rowsOf = new Map(tables.map((table) => [table, [...table.tBodies].flatMap((body) => [...body.rows])]));

function number(count) {
  return count.toLocaleString("en");
}

// The text of a row's cells, read once and only when someone searches, filters or sorts.
const cellTexts = new WeakMap();
function cellsOf(row) {
  if (!cellTexts.has(row)) cellTexts.set(row, [...row.cells].map((cell) => cell.textContent));
  return cellTexts.get(row);
}

// Reads all rows when they are on the screen, a part at a time: a key that is pressed meanwhile need not wait long.
function readAhead(rows, then) {
  let next = 0;
  const some = () => {
    rows.slice(next, next + 1000).forEach(cellsOf);
    next += 1000;
    if (next < rows.length) setTimeout(some);
    else then();
  };
  requestAnimationFrame(() => setTimeout(some));
}

// ---- Search: a list is what one search field narrows, one table or all those below it. ----

function makeList(finder) {
  return {
    finder,
    tables: [],
    input: finder.querySelector("input"),
    output: finder.querySelector("output"),
    choice: () => () => true, // what else a row must fulfil
    counted: (shown, all) => (shown.length === all.length ? number(all.length) : `${number(shown.length)} of ${number(all.length)}`),
    changed: () => {}, // told after every search
  };
}

function makeLists() {
  const lists = [];
  let open = null;
  for (const element of document.querySelectorAll(".find, table.list")) {
    if (element instanceof HTMLTableElement) {
      if (open) open.tables.push(element);
      if (open && !("all" in open.finder.dataset)) open = null;
    } else {
      open = makeList(element);
      lists.push(open);
    }
  }
  return lists;
}

function rowsIn(list) {
  return list.tables.flatMap((table) => rowsOf.get(table));
}

const searchTexts = new WeakMap();
function searchText(list, row) {
  if (!searchTexts.has(row)) {
    const heading = "all" in list.finder.dataset ? row.closest("section")?.querySelector("h2")?.textContent : "";
    searchTexts.set(row, [heading, ...cellsOf(row)].join(" ").toLowerCase());
  }
  return searchTexts.get(row);
}

function isFound(list) {
  const terms = list.input.value.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => terms.every((term) => searchText(list, row).includes(term));
}

// Groups of rows, and sections, with nothing left to show are hidden; a group that is out of view has to be told how
// high it would be.
function fitGroups(table) {
  const counts = new Map([...table.tBodies].map((body) => [body, 0]));
  for (const row of rowsOf.get(table)) if (!row.hidden) counts.set(row.parentNode, counts.get(row.parentNode) + 1);
  for (const [body, count] of counts) {
    body.hidden = count === 0;
    body.style.setProperty("--rows", count);
  }
}

function fitSection(table) {
  const section = table.closest("section");
  if (section) section.hidden = rowsOf.get(table).every((row) => row.hidden);
}

function narrow(list) {
  const found = isFound(list);
  const rows = rowsIn(list);
  const chosen = list.choice();
  const shown = rows.filter((row) => {
    const hide = !(chosen(row) && found(row));
    if (row.hidden !== hide) row.hidden = hide;
    return !hide;
  });
  list.tables.forEach(fitGroups);
  if ("all" in list.finder.dataset) list.tables.forEach(fitSection);
  list.output.textContent = list.counted(shown, rows);
  list.changed();
}

function addSearch(list) {
  list.finder.hidden = rowsIn(list).length < 2;
  list.output.textContent = list.counted(rowsIn(list), rowsIn(list));
}

// ---- Sorting ----

function keyOf(row, column, name) {
  const cell = row.cells[column];
  if (cell.classList.contains("flags")) return cell.querySelector("use").getAttribute("href");
  if (name === "finding") return parseFloat(row.dataset.found); // the sets are listed worst first
  if (cell.dataset.key !== undefined) return parseFloat(cell.dataset.key);
  const text = cellsOf(row)[column];
  return cell.classList.contains("num") ? parseFloat(text.replaceAll(",", "")) : text.toLowerCase();
}

function isBlank(key) {
  return key === "" || Number.isNaN(key);
}

// What is blank comes last, either way.
function compare(one, other, way) {
  if (isBlank(one) || isBlank(other)) return isBlank(one) - isBlank(other);
  return one < other ? -way : one > other ? way : 0;
}

// Puts the rows into the order chosen, a few groups of them at a time: those in view at once.
const unfinished = new Map();
function arrange(table) {
  const rows = rowsOf.get(table);
  const size = Math.ceil(rows.length / table.tBodies.length);
  let next = 0;
  const some = (groups) => {
    for (const end = next + groups; next < end && next < table.tBodies.length; next += 1) {
      table.tBodies[next].prepend(...rows.slice(next * size, next * size + size));
    }
    fitGroups(table);
    if (next < table.tBodies.length) unfinished.set(table, setTimeout(some, 20, 8));
  };
  clearTimeout(unfinished.get(table));
  some(2);
}

function sortBy(table, header, keys) {
  const way = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  const keyed = rowsOf.get(table).map((row) => [keys(row), row]);
  keyed.sort((one, other) => compare(one[0], other[0], way));
  rowsOf.set(table, keyed.map((pair) => pair[1]));
  arrange(table);
  if (table.getBoundingClientRect().top < 0) table.scrollIntoView();
}

function addSorting(table) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(table, header, (row) => keyOf(row, column, header.dataset.name)));
  });
}

// ---- Filters: what is chosen stands in the address, ?architecture=llama&tools=yes&q=instruct; models have fields too ----

const CAPABILITIES = [
  "tools", "tool_calls", "parallel_tool_calls", "system_role", "string_content", "typed_content",
  "object_arguments", "preserve_reasoning", "reasoning_effort",
];
// By the letter of a mark: what a row may be asked for.
const FLAG_VALUES = {
  y: ["yes"], n: ["no"], x: ["unknown"], o: ["yes", "wrong", "over"], u: ["no", "wrong", "under"],
};
const STARTS = { "starts": ["yes"], "does not start": ["no"], "": ["unknown"] };
const NOT_STATED = "not stated";
const WORDS = {
  flag: {
    yes: "yes", no: "no", unknown: "not known", wrong: "wrong claim", over: "yes, not really", under: "no, but really",
  },
  start: { yes: "starts", no: "does not start", unknown: "not known" },
  finding: { error: "an error", warning: "a warning", note: "a note", none: "none" },
};
// What the address may ask of templates and of changes, in words.
const CONDITIONS = {
  wrong: { yes: "those with a wrong claim", no: "those without a wrong claim" },
  clean: { yes: "those without an error or a warning", no: "those with an error or a warning, or not examined" },
  new: { yes: "those never seen before", no: "those seen before" },
  change: { appeared: "what appeared", gone: "what is gone", replaced: "what was replaced" },
  lost: { yes: "what can no longer be examined", no: "what can still be examined" },
  flips: { yes: "what flips a flag", no: "what flips no flag" },
};

// What can be chosen: a name, as in the address, and the values that a row has of it.
function facetsOf(table) {
  const column = (name) => table.querySelector(`th[data-name="${name}"]`).cellIndex;
  const stated = new Map();
  const text = (name, at = column(name)) => (row) => {
    const said = cellsOf(row)[at] || NOT_STATED;
    if (!stated.has(said)) stated.set(said, [said]);
    return stated.get(said);
  };
  const sets = [...document.querySelectorAll("ul.found > li")].map((item) => [...new Set(item.textContent.split(/\s+/).filter(Boolean))]);
  const finding = column("finding");
  const start = column("start");
  const without = { none: ["none"], "": [] };
  return [
    { name: "outcome", valuesOf: text("outcome") },
    { name: "start", valuesOf: (row) => STARTS[cellsOf(row)[start]], words: WORDS.start },
    { name: "architecture", valuesOf: text("architecture") },
    { name: "quantization", valuesOf: text("quantization") },
    { name: "quantizer", valuesOf: text("quantizer") },
    {
      name: "finding",
      valuesOf: (row) => ("found" in row.dataset ? sets[row.dataset.found] : without[cellsOf(row)[finding]]),
      words: WORDS.finding,
    },
    ...flagFacets(),
  ];
}

function flagFacets() {
  return [
    ...CAPABILITIES.map((name, place) => ({
      name, valuesOf: (row) => FLAG_VALUES[row.dataset.flags[place]], words: WORDS.flag,
    })),
    // A combination is of claims: a disagreement is one of them. It has no field to choose it.
    { name: "flags", valuesOf: (row) => [row.dataset.flags.replaceAll("o", "y").replaceAll("u", "n")] },
  ];
}

function selectOf(facet) {
  return document.querySelector(`select[data-of="${facet.name}"]`);
}

function addOption(parent, value, words) {
  const option = document.createElement("option");
  option.value = value;
  option.textContent = words;
  parent.append(option);
  return option;
}

// Values with words of their own come first and in that order, then the others by name, what is not stated last.
function sortedValues(facet, values) {
  const known = Object.keys(facet.words ?? {});
  const rank = (value) => (known.includes(value) ? known.indexOf(value) : value === NOT_STATED ? Infinity : known.length);
  return [...values].sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1));
}

function fillSelect(facet, counts) {
  const select = selectOf(facet);
  if (!select.options.length) addOption(select, "", "any");
  const there = new Map([...select.options].map((option) => [option.value, option]));
  for (const value of sortedValues(facet, new Set([...facet.values, facet.chosen].filter(Boolean)))) {
    const count = counts.get(value) ?? 0;
    const words = `${facet.words?.[value] ?? value} (${number(count)})`;
    const option = there.get(value) ?? addOption(select, value, words);
    if (option.textContent !== words) option.textContent = words;
    option.disabled = count === 0 && value !== facet.chosen;
  }
  showChoice(facet);
}

function choiceInWords(facet) {
  const spaced = (name) => name.replaceAll("_", " ");
  if (facet.told && Object.hasOwn(facet.told, facet.chosen)) return facet.told[facet.chosen];
  if (facet.name !== "flags") return `${spaced(facet.name)}: ${facet.words?.[facet.chosen] ?? facet.chosen}`;
  const claimed = CAPABILITIES.filter((name, place) => facet.chosen[place] === "y").map(spaced);
  return `the combination ${claimed.join(", ") || "of no flag"}`;
}

function showChoice(facet) {
  const select = selectOf(facet);
  select.value = facet.chosen;
  select.classList.toggle("chosen", facet.chosen !== "");
}

// For every facet, how many rows have each value among those that fit whatever else is chosen.
function countValues(list, facets) {
  const found = isFound(list);
  const asked = facets.filter((facet) => facet.chosen);
  const counts = facets.map(() => new Map());
  for (const row of rowsIn(list)) {
    if (!found(row)) continue;
    const failing = asked.filter((facet) => !isChosen(facet, row));
    if (failing.length > 1) continue;
    facets.forEach((facet, at) => {
      if (failing.length && failing[0] !== facet) return;
      for (const value of facet.valuesOf(row)) counts[at].set(value, (counts[at].get(value) ?? 0) + 1);
    });
  }
  return counts;
}

function isChosen(facet, row) {
  return facet.valuesOf(row).includes(facet.chosen);
}

// A file with several variants has several rows.
const paths = new WeakMap();
function pathOf(row) {
  if (!paths.has(row)) paths.set(row, row.cells[0].firstChild.textContent);
  return paths.get(row);
}

// Lets the address choose which rows of a list are shown; what is chosen is said, unless it can be seen elsewhere.
function addChoices(list, facets, isSeen) {
  const reset = list.finder.querySelector("button");
  const narrowed = list.finder.querySelector(".narrowed");
  let writing = 0;

  function readAddress() {
    const asked = new URLSearchParams(location.search);
    for (const facet of facets) facet.chosen = asked.get(facet.name) ?? "";
    list.input.value = asked.get("q") ?? "";
  }

  function writeAddress() {
    const asked = new URLSearchParams();
    for (const facet of facets) if (facet.chosen) asked.set(facet.name, facet.chosen);
    if (list.input.value.trim()) asked.set("q", list.input.value);
    const address = new URL(location.href);
    address.search = asked;
    if (address.href !== location.href) history.replaceState(null, "", address);
  }

  function isNarrowed() {
    return facets.some((facet) => facet.chosen) || list.input.value.trim() !== "";
  }

  function sayChoices() {
    const unseen = facets.filter((facet) => facet.chosen && !isSeen(facet));
    narrowed.textContent = unseen.length ? `only ${unseen.map(choiceInWords).join(", ")}` : "";
  }

  list.choice = () => {
    const asked = facets.filter((facet) => facet.chosen);
    return (row) => asked.every((facet) => isChosen(facet, row));
  };
  // Browsers stop those who write the address with every letter.
  list.changed = () => {
    reset.hidden = !isNarrowed();
    sayChoices();
    clearTimeout(writing);
    writing = setTimeout(writeAddress, 100);
  };
  reset.addEventListener("click", () => {
    for (const facet of facets) facet.chosen = "";
    list.input.value = "";
    narrow(list);
    writeAddress();
    list.input.focus();
  });
  readAddress();
  return { isNarrowed, sayChoices, writeAddress };
}

// What the address may ask of the rows of a list without fields for it: the table names it, each row has it or not.
function addConditions(list) {
  const [table] = list.tables;
  const facets = table.dataset.asks.split(" ").map((name) => ({
    name, valuesOf: (row) => [row.dataset[name] ?? "no"], told: CONDITIONS[name],
  }));
  if ("flags" in (rowsOf.get(table)[0]?.dataset ?? {})) facets.push(...flagFacets());
  const choices = addChoices(list, facets, () => false);
  addSearch(list);
  if (choices.isNarrowed()) {
    list.finder.hidden = false;
    narrow(list);
  }
}

function addFilters(list) {
  const panel = document.querySelector("details.filters");
  const facets = facetsOf(list.tables[0]);
  const choices = addChoices(list, facets, (facet) => panel.open && selectOf(facet));
  const shownFacets = facets.filter(selectOf);
  let allFiles = null;
  let counting = 0;

  function fillSelects() {
    const counts = countValues(list, facets);
    facets.forEach((facet, at) => {
      if (!selectOf(facet)) return;
      facet.values ??= new Set(rowsIn(list).flatMap(facet.valuesOf));
      fillSelect(facet, counts[at]);
    });
  }

  list.counted = (shown, rows) => {
    allFiles ??= new Set(rows.map(pathOf)).size;
    const all = [allFiles, rows.length];
    const some = shown.length === rows.length ? all : [new Set(shown.map(pathOf)).size, shown.length];
    const told = (count, of, word) => `${count === of ? "" : `${number(count)} of `}${number(of)} ${word}`;
    return told(some[0], all[0], "files") + (all[0] === all[1] ? "" : `, ${told(some[1], all[1], "rows")}`);
  };
  // Counting takes a moment.
  const { changed } = list;
  list.changed = () => {
    changed();
    shownFacets.forEach(showChoice);
    clearTimeout(counting);
    counting = setTimeout(fillSelects, 30);
  };
  for (const facet of shownFacets) {
    selectOf(facet).addEventListener("change", (event) => {
      facet.chosen = event.target.value;
      narrow(list);
      choices.writeAddress();
    });
  }

  panel.open = matchMedia("(min-width: 1000px)").matches;
  panel.addEventListener("toggle", choices.sayChoices);
  panel.hidden = list.finder.hidden = false;
  // What the address asks for is shown at once.
  if (choices.isNarrowed()) narrow(list);
  else readAhead(rowsIn(list), () => narrow(list));
}

// ---- Keys: another script may add its own to `keys`. ----

function isShown(element) {
  return element.closest("[hidden], details:not([open])") === null;
}

let here = null;
function goTo(element) {
  if (here) here.classList.remove("here");
  here = element;
  here.classList.add("here");
  here.scrollIntoView({ block: "center" });
  const target = here.querySelector("a") || here;
  if (target === here) here.tabIndex = -1;
  target.focus({ preventScroll: true });
}

function step(elements, by) {
  const shown = elements.filter(isShown);
  if (shown.length === 0) return;
  const at = shown.indexOf(here);
  goTo(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : (at + by + shown.length) % shown.length]);
}

const rowsOfLists = () => tables.flatMap((table) => rowsOf.get(table));
const findings = () => [...document.querySelectorAll(".finding, tr[data-found]")];

const keys = {
  "/": () => {
    const input = [...document.querySelectorAll(".find input")].find(isShown);
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
  const writes = event.target.matches("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || writes) return;
  const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- On paper nothing can be unfolded. ----

let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});

// ---- Links to what is folded, or what a search has hidden, show it. ----

// Where the address leads; one that is no address at all leads nowhere.
function wantedPlace() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function unfold() {
  const target = document.getElementById(wantedPlace());
  for (let at = target; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
    if (at.hidden && at.matches("section")) showAll(at);
  }
  if (target) target.scrollIntoView();
}

function showAll(section) {
  for (const list of lists.filter((one) => one.tables.some((table) => section.contains(table)))) {
    list.input.value = "";
    narrow(list);
  }
}

// ---- What scrolls sideways can be reached by keys, where nothing in it can. ----

function letKeysIn(region) {
  if (!region.querySelector("a[href], button, input, summary")) region.tabIndex = 0;
}

const lists = makeLists();
tables.forEach(addSorting);
document.querySelectorAll(".scroll").forEach(letKeysIn);
for (const list of lists) {
  if (list.tables.some((table) => table.classList.contains("models"))) addFilters(list);
  else if (list.tables.some((table) => "asks" in table.dataset)) addConditions(list);
  else addSearch(list);
  list.input.addEventListener("input", () => narrow(list));
}
window.addEventListener("hashchange", unfold);
if (location.hash) unfold();
