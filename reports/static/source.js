"use strict";
// The source of a template: keys that choose what decided a capability, and walk through reads and notes.

(() => {
  const source = document.querySelector("ol.source");
  if (!source) return;

  function chosen() {
    const radio = document.querySelector(".choice input:checked");
    return radio ? radio.id.replace("choose-", "") : "0";
  }

  function choose(number) {
    const radio = document.getElementById(`choose-${number}`);
    if (!radio) return;
    radio.checked = true;
    show(number);
  }

  // What decided it, or what failed: in view, unless it is already.
  function show(number) {
    const first = source.querySelector(`.read[data-for~="${number}"], .remark[data-for~="${number}"]`);
    if (!first) return;
    const place = first.getBoundingClientRect();
    if (place.top < 0 || place.bottom > innerHeight) first.scrollIntoView({ block: "center" });
  }

  let here = null;
  function goTo(element) {
    if (here) here.classList.remove("at");
    here = element;
    here.classList.add("at");
    here.scrollIntoView({ block: "center" });
    here.focus({ preventScroll: true });
  }

  function next(elements) {
    if (elements.length === 0) return;
    goTo(elements[(elements.indexOf(here) + 1) % elements.length]);
  }

  function reads() {
    const number = chosen();
    return [...source.querySelectorAll(number === "0" ? ".read" : `.read[data-for~="${number}"]`)];
  }

  const keys = { r: () => next(reads()), e: () => next([...source.querySelectorAll(".remark")]) };
  for (let number = 0; number <= 9; number += 1) keys[number] = () => choose(String(number));

  for (const radio of document.querySelectorAll(".choice input")) radio.addEventListener("change", () => show(chosen()));
  source.querySelectorAll(".read").forEach((read) => read.setAttribute("tabindex", "-1"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=radio]), select")) return;
    const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
