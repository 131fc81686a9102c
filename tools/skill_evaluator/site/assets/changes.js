// What changed: a line a version, the newest first, since the last visit, a day or a version; the verdicts unfold.
"use strict";
(function () {
  const { el, load, state, link, badge, named, change: figuresOf, prose, finding, age, page, signed, MARKS } = window.site;
  const MOST = 20; // versions before a reader asks for all
  const ORDER = [...Object.keys(MARKS), null]; // null: a first version
  const KEPT = "skill-evaluator-last-visit";

  /** Return the moment of the last visit; where nothing may be kept, as in private windows, there was none. */
  function lastVisit() {
    try {
      const known = sessionStorage.getItem(KEPT) ?? localStorage.getItem(KEPT) ?? "";
      sessionStorage.setItem(KEPT, known); // a reload is the same visit
      localStorage.setItem(KEPT, new Date().toISOString());
      return known;
    } catch { return ""; }
  }

  function entry(row) {
    const figures = figuresOf(row);
    return el("li", { class: `change ${row.verdict}` },
      el("p", { class: "line" }, badge(row.verdict), " ", el("bdi", {}, row.model), el("span", { class: "soft" }, ` ${named(row.version)}`, row.before ? ` against ${named(row.before)}` : null, row.also ? `; ${row.also.verdict} since ${named(row.also.before)}` : null, el("span", { class: "unseen" }, ` of ${row.component}`)), el("span", { class: "soft when" }, age(row.timestamp))),
      figures ? el("p", { class: "soft figures" }, figures) : null,
      row.reasons.length ? el("ul", { class: "remarks" }, row.reasons.slice(0, 4).map((words) => el("li", {}, prose(words)))) : null);
  }

  /** Put the rows of one version together, in the order of its newest run. */
  function versions(rows) {
    const by = new Map();
    for (const row of rows) {
      const key = JSON.stringify([row.component, row.version]);
      by.set(key, [...(by.get(key) || []), row]);
    }
    return [...by.values()];
  }

  /** Say which models moved, the worst first, and of the others how many there are. */
  function verdicts(rows) {
    return ORDER.map((verdict) => rows.filter((row) => row.verdict === verdict)).filter((some) => some.length).map((some) => {
      const [most] = some.sort((a, b) => Math.abs(b.difference ?? 0) - Math.abs(a.difference ?? 0));
      const moved = ["regressed", "improved"].includes(most.verdict);
      const name = most.model.length > 18 ? `${most.model.slice(0, 7)}…${most.model.slice(-9)}` : most.model; // whole where it unfolds
      const words = moved ? [el("bdi", {}, name), most.difference !== null ? ` ${signed(most.difference)}` : null, some.length > 1 ? `, ${some.length - 1} more` : null] : `× ${some.length}`;
      return el("span", { class: "said" }, badge(most.verdict), " ", el("span", { class: "soft" }, words));
    });
  }

  function version(rows) {
    const [{ component, version: name, timestamp }] = rows;
    const worst = ORDER.find((verdict) => rows.some((row) => row.verdict === verdict));
    const [whole] = rows.map((row) => row.also).filter(Boolean).sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
    return el("li", { class: `card change-of ${worst}` }, el("details", {},
      el("summary", {}, el("strong", { class: "of" }, `${component} ${named(name)}`), verdicts(rows), whole ? el("span", { class: "said soft" }, `${whole.verdict} since ${named(whole.before)}`) : null, el("span", { class: "soft when" }, age(timestamp))),
      el("ul", { class: "changes" }, rows.map(entry)),
      el("p", {}, link("component", { component }, component), " · ", link("verdict", { component, version: name }, "the verdict, to print"), rows.some((row) => row.before) ? [" · ", link("compare", { component, version: name }, "field by field")] : null)));
  }

  const visit = lastVisit();
  page(async () => {
    const [{ rows, left }, { rows: newest, regressed }] = await Promise.all([load("changes"), load("overview")]);
    const key = (row) => JSON.stringify([row.component, row.model, row.version]);
    const highest = new Map(newest.map((row) => [key(row), row.also ? [row, row.also] : []]));
    for (const row of rows) Object.assign(row, { verdict: row.verdict === "first" ? null : row.verdict, also: (highest.get(key(row)) || []).find((one) => one.before !== row.before) }); // since the anchor
    const now = state.read();
    const since = now.since ?? "";
    const mine = rows.filter((row) => !now.component || row.component === now.component);
    const oldest = now.version ? mine.findLastIndex((row) => row.version === now.version) : mine.length - 1; // the newest come first
    const every = versions(rows);
    const kept = versions(mine.slice(0, oldest + 1).filter((row) => row.timestamp >= since)).filter((some) => !now.verdict || some.some((row) => (row.verdict || "first") === now.verdict));
    const shown = now.all ? kept : kept.slice(0, MOST);
    const fresh = visit ? rows.filter((row) => row.timestamp > visit).length : rows.length;
    const worse = mine.find((row) => row.verdict === "regressed" && regressed[row.component]); // the newest
    const change = (values) => { location.hash = state.text({ ...now, ...values }); };
    const pick = (label, id, options) => el("div", {}, el("label", { for: id }, label), el("select", { id, onchange: (event) => change({ [id]: event.target.value }) },
      options.map(([value, words]) => el("option", { value, selected: (now[id] || "") === value }, words))));
    const components = [...new Set(rows.map((row) => row.component))].sort();
    const title = visit ? (fresh ? `${fresh} new since your last visit` : "Nothing new since your last visit") : "What changed";
    return [
      el("h1", {}, title),
      worse ? finding(worse.component, regressed[worse.component]) : null,
      el("div", { class: "filters", role: "search" },
        el("div", {}, el("label", { for: "since" }, "Since"), el("input", { type: "date", id: "since", value: since.slice(0, 10), onchange: (event) => change({ since: event.target.value, version: "" }) })),
        pick("Verdict", "verdict", [["", "all verdicts"], ...ORDER.filter((verdict) => rows.some((row) => row.verdict === verdict)).map((verdict) => [verdict || "first", verdict || "first version"])]),
        pick("Component", "component", [["", "all components"], ...components.map((name) => [name, name])])),
      el("p", { class: "soft", role: "status" }, `${kept.length} of ${every.length} versions, each against the one before it, the newest first${now.version ? ` from version ${named(now.version)} on` : ""}${left ? `; ${left} older verdicts are on the pages of their components` : ""}`),
      kept.length ? el("ul", { class: "changes" }, shown.map(version)) : el("p", { class: "notice" }, "No such verdict since then."),
      shown.length < kept.length ? el("button", { type: "button", class: "print", onclick: () => change({ all: 1 }) }, `Show all ${kept.length} versions`) : null,
    ];
  });
})();
