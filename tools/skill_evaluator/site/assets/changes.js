// What changed: the verdicts on new versions, the newest first, since the last visit, a day or a version.
"use strict";
(function () {
  const { el, load, state, link, badge, age, page } = window.site;
  const KEPT = "skill-evaluator-last-visit";
  const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(value).toFixed(3)}`;

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
    const figures = row.difference === null ? "" : `${row.metric} ${signed(row.difference)}${row.low === null ? "" : ` (${signed(row.low)} to ${signed(row.high)})`}`;
    return el("li", { class: `card change ${row.verdict}` },
      el("p", { class: "line" }, badge(row.verdict), " ", link("component", { component: row.component }, row.component), el("strong", {}, ` ${row.version}`), row.before ? link("compare", { component: row.component, version: row.version }, `against ${row.before}`) : null, el("span", { class: "soft" }, " on "), el("bdi", {}, row.model), el("span", { class: "soft when" }, age(row.timestamp))),
      figures ? el("p", { class: "soft" }, figures) : null,
      row.reasons.length ? el("ul", { class: "remarks" }, row.reasons.map((words) => el("li", {}, words))) : null);
  }

  const visit = lastVisit();
  page(async () => {
    const { rows, left } = await load("changes");
    const now = state.read();
    const since = now.since ?? "";
    const mine = rows.filter((row) => !now.component || row.component === now.component);
    const oldest = now.version ? mine.findLastIndex((row) => row.version === now.version) : mine.length - 1; // the newest come first
    const kept = mine.slice(0, oldest + 1).filter((row) => row.timestamp >= since);
    const fresh = visit ? rows.filter((row) => row.timestamp > visit).length : rows.length;
    const change = (values) => { location.hash = state.text({ ...now, ...values }); };
    const components = [...new Set(rows.map((row) => row.component))].sort();
    const title = visit ? (fresh ? `${fresh} new since your last visit` : "Nothing new since your last visit") : "What changed";
    return [
      el("h1", {}, title),
      el("p", { class: "lede" }, "Each new version against the one before it, the newest first."),
      el("div", { class: "filters", role: "search" },
        el("div", {}, el("label", { for: "since" }, "Since"), el("input", { type: "date", id: "since", value: since.slice(0, 10), onchange: (event) => change({ since: event.target.value, version: "" }) })),
        el("div", { class: "wide" }, el("label", { for: "component" }, "Component"), el("select", { id: "component", onchange: (event) => change({ component: event.target.value }) },
          [["", "all components"], ...components.map((name) => [name, name])].map(([value, words]) => el("option", { value, selected: (now.component || "") === value }, words))))),
      el("p", { class: "soft", role: "status" }, `${kept.length} of ${rows.length} verdicts${now.version ? ` from version ${now.version} on` : ""}${left ? `; ${left} older ones are on the pages of their components` : ""}`),
      kept.length ? el("ul", { class: "changes" }, kept.map(entry)) : el("p", { class: "notice" }, "No verdict since then."),
    ];
  });
})();
