// The review page: shows an item, takes keys, and sends a label as soon as an item is complete. Whatever was judged is
// put in with textContent only. What is not sent yet is kept in localStorage, so that a reload loses nothing.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const reviewer = new URLSearchParams(location.search).get("reviewer") || "";
  let queue = []; // {id, labelled}
  let item = null; // what stands on the page
  let keys = {};
  let active = 0; // the place of the step that keys answer, among those that are asked
  let busy = false;

  const element = (name, text = "", properties = {}) => {
    const made = Object.assign(document.createElement(name), properties);
    made.textContent = text;
    return made;
  };
  const draftName = (id) => `draft ${reviewer} ${id}`;
  const asked = () => item.steps.filter(({ after }) => !after || after.keys.includes(keys[after.step]));
  const isComplete = () => asked().every((step) => step.name in keys);
  const placeOf = (id) => queue.findIndex((entry) => entry.id === id);

  async function ask(path, options) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("The server does not answer. What you entered is kept on this page; press the key again once it does.");
    }
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.problem);
    return value;
  }

  const mine = (path) => `${path}?reviewer=${encodeURIComponent(reviewer)}`;

  // One thing at a time: keys that come meanwhile are left aside, for they were not meant for what comes next.
  async function alone(action) {
    if (busy) return;
    busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      await action();
      at("problem").hidden = true;
    } catch (problem) {
      at("problem").textContent = problem.message;
      at("problem").hidden = false;
    } finally {
      busy = false;
      document.body.setAttribute("aria-busy", "false");
    }
  }

  function keepDraft() {
    if (item) localStorage.setItem(draftName(item.id), JSON.stringify({ keys, note: at("note").value }));
  }

  async function load(id) {
    item = await ask(mine(`items/${id}`));
    keys = { ...item.keys };
    let note = item.note;
    const draft = JSON.parse(localStorage.getItem(draftName(id)) || "null");
    if (draft) ({ keys, note } = draft);
    at("note").value = note;
    const open = asked().findIndex((step) => !(step.name in keys));
    active = Math.max(open, 0);
    history.replaceState(null, "", `${location.pathname}${location.search}#${id}`);
    showItem();
  }

  function showItem() {
    at("done").hidden = true;
    at("item").hidden = false;
    at("texts").replaceChildren(
      ...[["Document", item.document], ["Reference", item.reference]]
        .filter(([, text]) => text)
        .map(([name, text]) => sheet(name, [[text, false]])),
    );
    at("outputs").replaceChildren(
      ...item.outputs.map(({ name, pieces }) => sheet(name, pieces, name === "B" ? "sheet b" : "sheet")),
    );
    for (const text of document.querySelectorAll(".text")) {
      if (text.scrollHeight > text.clientHeight) text.tabIndex = 0; // to scroll it with the keyboard
    }
    showSteps();
    showPlace();
    window.scrollTo(0, 0);
    at("questions").scrollTo(0, 0);
    at("status").textContent = `Item ${placeOf(item.id) + 1} of ${queue.length}`;
  }

  function sheet(name, pieces, className = "sheet") {
    const made = element("section", "", { className });
    const text = element("div", "", { className: "text" });
    text.append(...pieces.map(([part, own]) => (own ? element("mark", part) : part)));
    made.append(element("h2", name), text);
    return made;
  }

  function showSteps() {
    const within = at("steps").contains(document.activeElement); // whoever goes by Tab is led on
    at("steps").replaceChildren(
      ...asked().map((step, place) => {
        const group = element("div", "", { className: place === active ? "step active" : "step" });
        const title = element("p", "", { id: `step-${place}` });
        title.append(element("b", step.name), step.text ? ` ${step.text}` : "");
        group.setAttribute("role", "group");
        group.setAttribute("aria-labelledby", title.id);
        if (place === active) group.setAttribute("aria-current", "step");
        const choices = element("div", "", { className: "choices" });
        for (const { key, meaning } of step.choices) {
          const choice = element("button", "", { type: "button" });
          choice.setAttribute("aria-pressed", String(keys[step.name] === key));
          choice.append(element("kbd", key), meaning);
          choice.addEventListener("click", () => alone(() => press(key, place)));
          choices.append(choice);
        }
        group.append(title, choices);
        return group;
      }),
    );
    const now = at("steps").querySelector(".active");
    now?.scrollIntoView({ block: "nearest" });
    if (within) now?.querySelector("button").focus();
  }

  function showPlace() {
    const labelled = queue.filter((entry) => entry.labelled).length;
    const done = `${labelled} of ${queue.length} labelled`;
    at("place").textContent = item ? `Item ${placeOf(item.id) + 1} · ${done}` : done;
    at("progress").max = queue.length || 1;
    at("progress").value = labelled;
    document.title = `${labelled} of ${queue.length} · Review`;
  }

  function showQueue(lines) {
    at("queue").hidden = false;
    at("lines").replaceChildren(...lines.map((line) => element("li", line)));
  }

  async function press(key, place = active) {
    const step = item && asked()[place];
    if (!step || !step.choices.some((choice) => choice.key === key)) return;
    keys[step.name] = key;
    for (const other of item.steps) if (!asked().includes(other)) delete keys[other.name];
    active = place + 1;
    const atEnd = active >= asked().length;
    if (atEnd) active = Math.max(asked().findIndex((other) => !(other.name in keys)), 0);
    keepDraft();
    showSteps();
    if (!isComplete()) return;
    await save();
    if (atEnd) await goOn();
  }

  async function save() {
    const label = { item: item.id, reviewer, keys, note: at("note").value };
    await ask("labels", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(label) });
    localStorage.removeItem(draftName(item.id));
    queue[placeOf(item.id)].labelled = true;
    showPlace();
  }

  async function goOn() {
    const here = placeOf(item.id);
    const open = [...queue.slice(here + 1), ...queue.slice(0, here)].find((entry) => !entry.labelled);
    if (open) await load(open.id);
    else await refresh(); // others may have queued more
  }

  async function step(distance) {
    const place = item ? placeOf(item.id) + distance : queue.length - 1;
    if (queue[place]) await load(queue[place].id);
  }

  async function refresh(wanted) {
    const answer = await ask(mine("queue"));
    queue = answer.items;
    showQueue(answer.status);
    const open = queue.find((entry) => entry.id === wanted) || queue.find((entry) => !entry.labelled);
    if (open) return load(open.id);
    item = null;
    history.replaceState(null, "", `${location.pathname}${location.search}`);
    at("item").hidden = true;
    at("done").hidden = false;
    at("status").textContent = "All items are labelled";
    showPlace();
  }

  function toggleMarks() {
    const unmarked = document.body.classList.toggle("unmarked");
    at("marks").setAttribute("aria-pressed", String(!unmarked));
  }

  function begin() {
    at("who").textContent = reviewer;
    at("previous").addEventListener("click", () => alone(() => step(-1)));
    at("next").addEventListener("click", () => alone(() => step(1)));
    at("marks").addEventListener("click", toggleMarks);
    at("queue").addEventListener("toggle", () => alone(async () => {
      if (at("queue").open) showQueue((await ask(mine("queue"))).status);
    }));
    at("note").addEventListener("input", keepDraft);
    at("note").addEventListener("change", () => alone(async () => {
      if (item && isComplete()) await save();
    }));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return document.activeElement.blur();
      if (event.target === at("note") || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^[0-9]$/.test(event.key)) return void alone(() => press(event.key));
      const action = { n: () => alone(() => step(1)), p: () => alone(() => step(-1)), d: toggleMarks, t: () => at("note").focus() };
      if (!Object.hasOwn(action, event.key)) return;
      event.preventDefault();
      action[event.key]();
    });
    alone(() => refresh(location.hash.slice(1)));
  }

  if (reviewer) return begin();
  at("progress").hidden = true;
  at("name").hidden = false;
  at("reviewer").focus();
  at("name").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("reviewer").value.trim();
    if (name) location.search = `?reviewer=${encodeURIComponent(name)}`;
  });
})();
