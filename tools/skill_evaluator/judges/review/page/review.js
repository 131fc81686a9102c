// The review page: shows an item, takes keys, and sends a label as soon as an item is complete. Texts are inserted with
// textContent only. What is not sent yet is in localStorage, so that a reload loses nothing.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const reviewer = new URLSearchParams(location.search).get("reviewer") || "";
  let queue = []; // {id, labelled}
  let item = null; // the item on the page
  let answers = {}; // question → answer
  let active = 0; // the index of the question that keys answer
  let busy = false;

  function element(name, text = "", properties = {}) {
    const made = Object.assign(document.createElement(name), properties);
    made.textContent = text;
    return made;
  }

  const draftName = () => `draft ${reviewer} ${item.id}`;
  const indexOf = (id) => queue.findIndex((entry) => entry.id === id);
  const firstOpen = () => item.questions.findIndex(({ name }) => !(name in answers)); // -1: complete

  async function request(path, options) {
    const response = await fetch(path, options).catch(() => {
      throw new Error("The server does not answer. What you entered is kept on this page; press the key again once it does.");
    });
    const value = await response.json();
    if (!response.ok) throw new Error(value.problem);
    return value;
  }

  const own = (path) => request(`${path}?reviewer=${encodeURIComponent(reviewer)}`);

  // One action at a time: a key that is pressed meanwhile was not meant for the next item.
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
    if (item) localStorage.setItem(draftName(), JSON.stringify({ answers, note: at("note").value }));
  }

  async function load(id) {
    item = await own(`items/${id}`);
    const saved = { answers: Object.fromEntries(item.answers.map((answer) => [answer.question, answer])), note: item.note };
    const draft = JSON.parse(localStorage.getItem(draftName()) || "null") || saved;
    answers = draft.answers;
    at("note").value = draft.note;
    active = Math.max(firstOpen(), 0);
    history.replaceState(null, "", `${location.pathname}${location.search}#${id}`);
    at("done").hidden = true;
    at("item").hidden = false;
    const texts = [["Document", item.document], ["Reference", item.reference]].filter(([, text]) => text);
    at("texts").replaceChildren(...texts.map(([name, text]) => sheet(name, [[text, false]])));
    const names = item.outputs.length > 1 ? ["A", "B"] : ["Output"];
    at("outputs").replaceChildren(...item.outputs.map((pieces, index) => sheet(names[index], pieces)));
    for (const text of document.querySelectorAll(".text")) {
      if (text.scrollHeight > text.clientHeight) text.tabIndex = 0; // to scroll it with the keyboard
    }
    showQuestions();
    showProgress();
    window.scrollTo(0, 0);
    at("questions").scrollTo(0, 0);
    at("status").textContent = `Item ${indexOf(id) + 1} of ${queue.length}`;
  }

  function sheet(name, pieces) {
    const made = element("section", "", { className: name === "B" ? "sheet b" : "sheet" });
    const text = element("div", "", { className: "text" });
    text.append(...pieces.map(([part, marked]) => (marked ? element("mark", part) : part)));
    made.append(element("h2", name), text);
    return made;
  }

  function showQuestions() {
    const hadFocus = at("steps").contains(document.activeElement); // keyboard users are led to the next question
    at("steps").replaceChildren(...item.questions.map(showQuestion));
    const current = at("steps").querySelector(".active");
    current.scrollIntoView({ block: "nearest" });
    if (hadFocus) current.querySelector("button").focus();
  }

  function showQuestion({ name, text, choices }, index) {
    const group = element("div", "", { className: index === active ? "step active" : "step" });
    const title = element("p", "", { id: `step-${index}` });
    title.append(element("b", name), text ? ` ${text}` : "");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", title.id);
    if (index === active) group.setAttribute("aria-current", "step");
    const buttons = choices.map(([words, { answer, impact }], place) => {
      const button = element("button", "", { type: "button" });
      const given = answers[name];
      button.setAttribute("aria-pressed", String(given?.answer === answer && given.impact === impact));
      button.append(element("kbd", String((place + 1) % 10)), words);
      button.addEventListener("click", () => alone(() => choose(place, index)));
      return button;
    });
    const row = element("div", "", { className: "choices" });
    row.append(...buttons);
    group.append(title, row);
    return group;
  }

  function showProgress() {
    const labelled = queue.filter((entry) => entry.labelled).length;
    const done = `${labelled} of ${queue.length} labelled`;
    at("place").textContent = item ? `Item ${indexOf(item.id) + 1} · ${done}` : done;
    at("progress").max = queue.length || 1;
    at("progress").value = labelled;
    document.title = `${labelled} of ${queue.length} · Review`;
  }

  function showStatus(lines) {
    at("queue").hidden = false;
    at("lines").replaceChildren(...lines.map((line) => element("li", line)));
  }

  async function choose(place, index = active) {
    const question = item?.questions[index];
    if (!question?.choices[place]) return;
    answers[question.name] = question.choices[place][1];
    const atEnd = index + 1 === item.questions.length;
    active = atEnd ? Math.max(firstOpen(), 0) : index + 1;
    keepDraft();
    showQuestions();
    if (firstOpen() >= 0) return;
    await save();
    if (atEnd) await advance();
  }

  async function save() {
    const moment = `${new Date().toISOString().slice(0, 19)}Z`;
    const given = item.questions.map(({ name }) => answers[name]);
    const label = { item: item.id, reviewer, at: moment, first: item.first, answers: given, note: at("note").value };
    await request("labels", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(label) });
    localStorage.removeItem(draftName());
    queue[indexOf(item.id)].labelled = true;
    showProgress();
  }

  async function advance() {
    const here = indexOf(item.id);
    const open = [...queue.slice(here + 1), ...queue.slice(0, here)].find((entry) => !entry.labelled);
    if (open) await load(open.id);
    else await refresh(); // others may have queued more
  }

  async function move(distance) {
    const entry = queue[item ? indexOf(item.id) + distance : queue.length - 1];
    if (entry) await load(entry.id);
  }

  async function refresh(wanted) {
    const { items, status } = await own("queue");
    queue = items;
    showStatus(status);
    const open = queue.find((entry) => entry.id === wanted) || queue.find((entry) => !entry.labelled);
    if (open) return load(open.id);
    item = null;
    history.replaceState(null, "", `${location.pathname}${location.search}`);
    at("item").hidden = true;
    at("done").hidden = false;
    at("status").textContent = "All items are labelled";
    showProgress();
  }

  function toggleMarks() {
    at("marks").setAttribute("aria-pressed", String(!document.body.classList.toggle("unmarked")));
  }

  function begin() {
    const actions = { n: () => alone(() => move(1)), p: () => alone(() => move(-1)), d: toggleMarks, t: () => at("note").focus() };
    at("who").textContent = reviewer;
    at("previous").addEventListener("click", actions.p);
    at("next").addEventListener("click", actions.n);
    at("marks").addEventListener("click", actions.d);
    at("queue").addEventListener("toggle", () => alone(async () => at("queue").open && showStatus((await own("queue")).status)));
    at("note").addEventListener("input", keepDraft);
    at("note").addEventListener("change", () => alone(async () => item && firstOpen() < 0 && save()));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return document.activeElement.blur();
      if (event.target === at("note") || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^[0-9]$/.test(event.key)) return void alone(() => choose((Number(event.key) + 9) % 10));
      if (!Object.hasOwn(actions, event.key)) return;
      event.preventDefault();
      actions[event.key]();
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
