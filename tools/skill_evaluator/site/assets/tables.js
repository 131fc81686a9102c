// Search, filter and sort the tables and lists of a page. Without this script they are whole, in their first order.
"use strict";
(function () {
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  function el(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function keep(key, value) {
    if (value) state.set(key, value);
    else state.delete(key);
    history.replaceState(null, "", `#${state}`);
  }

  // Search and filters: a list of items, each an element with data-item, and the values to choose from as data-*.

  function matches(item, choices) {
    const sought = (state.get("q") || "").toLowerCase();
    return (!sought || item.textContent.toLowerCase().includes(sought))
      && choices.every(([key]) => !state.get(key) || (item.dataset[key] || "").split("\n").includes(state.get(key)))
      && (!state.get("since") || !item.dataset.date || item.dataset.date >= state.get("since"));
  }

  function narrow(list, choices, status) {
    const items = [...list.querySelectorAll("[data-item]")];
    const narrowed = ["q", "since", ...choices.map(([key]) => key)].some((key) => state.get(key));
    let many = 0;
    for (const item of items) {
      item.hidden = !matches(item, choices);
      many += !item.hidden;
      const fold = item.closest("details[data-more]");
      if (narrowed && fold && !item.hidden) fold.open = true;
    }
    status.textContent = narrowed ? `${many} of ${items.length} ${list.dataset.items}` : "";
  }

  function filters(list) {
    const choices = JSON.parse(list.dataset.choices || "[]");
    const status = el("p", { class: "soft", role: "status" });
    const change = (key) => (event) => { keep(key, event.target.value); narrow(list, choices, status); };
    const box = el("div", { class: "filters", role: "search" });
    const add = (id, label, control, look) => box.append(el("div", { class: look || null }, el("label", { for: id }, label), control));
    if (list.dataset.search) add("search", list.dataset.search, el("input", { type: "search", id: "search", value: state.get("q") || "", oninput: change("q") }), "wide");
    if (list.dataset.since) add("since", list.dataset.since, el("input", { type: "date", id: "since", value: state.get("since") || "", onchange: change("since") }));
    for (const [key, label] of choices) {
      const words = [...list.querySelectorAll("[data-item]")].flatMap((item) => (item.dataset[key] || "").split("\n"));
      const options = [...new Set(words)].filter(Boolean).sort();
      if (options.length < 2) continue;
      const select = el("select", { id: `by-${key}`, onchange: change(key) }, el("option", { value: "" }, "all"), ...options.map((value) => el("option", { value }, value)));
      select.value = options.includes(state.get(key)) ? state.get(key) : "";
      add(select.id, label, select);
    }
    (list.querySelector("[data-filters]") || list).prepend(box, status);
    narrow(list, choices, status);
  }

  // Sorting: a table with data-sort; a cell's value is its data-value, else its text.

  function value(row, place) {
    const cell = row.cells[place];
    const text = cell ? cell.dataset.value ?? cell.textContent.trim() : "";
    const number = Number(text);
    return text === "" || text === "–" ? null : Number.isNaN(number) ? text : number;
  }

  const before = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

  function sort(table, head, down) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [row, value(row, head.cellIndex)]);
    rows.sort(([, a], [, b]) => (a === null || b === null ? (a === null) - (b === null) : down ? before(b, a) : before(a, b)));
    body.append(...rows.map(([row]) => row));
    for (const [row] of rows) row.classList.remove("same"); // as the row before
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function sortable(table) {
    for (const head of table.tHead.rows[0].cells) {
      const title = head.textContent.trim();
      const press = () => {
        const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : head.dataset.first === "down";
        sort(table, head, down);
        if (table.dataset.sort) { keep("sort", title); keep("dir", down ? "down" : "up"); }
      };
      head.replaceChildren(el("button", { type: "button", class: "sort", onclick: press }, title, el("span", { class: "way", "aria-hidden": "true" })));
      if (table.dataset.sort && state.get("sort") === title) sort(table, head, state.get("dir") === "down");
    }
  }

  for (const table of document.querySelectorAll("table[data-sort]")) sortable(table);
  for (const list of document.querySelectorAll("[data-items]")) filters(list);
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1)); // what a link leads to is open
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target) target.scrollIntoView();
    return target;
  };
  unfold();
  window.addEventListener("hashchange", () => {
    if (!unfold() && location.hash.includes("=")) location.reload();
  });
})();
