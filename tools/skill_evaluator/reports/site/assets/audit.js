// A stability audit: what was found, then the map, the grades, the scenarios and what the fluctuation is made of.
"use strict";
(function () {
  const { el, load, state, table, page, chart } = window.site;

  function sheet(part) {
    const columns = part.columns.map((column, place) => ({ ...column, cell: (row) => el("bdi", {}, row[place]) }));
    return table(part.caption, columns, part.rows);
  }

  const drawn = (one) => chart(one.kind, { title: one.title, note: one.note, spec: one.spec, table: one.figures.columns ? sheet(one.figures) : null });

  /** Return charts; of several one is shown, and a choice above them says which. */
  function charts(part) {
    if (part.charts.length === 1) return drawn(part.charts[0]);
    const place = el("div", {}, drawn(part.charts[0]));
    const choose = (event) => place.replaceChildren(drawn(part.charts[Number(event.target.value)]));
    return [el("div", { class: "filters" }, el("div", {}, el("label", { for: "map-of" }, part.choice), el("select", { id: "map-of", onchange: choose }, part.charts.map((one, at) => el("option", { value: at }, one.label))))), place];
  }

  function shown(part) {
    if (part.words) return el("p", { class: "soft" }, part.words);
    if (part.lines) return el("ul", { class: "remarks" }, part.lines.map((line) => el("li", {}, line)));
    if (part.charts) return charts(part);
    if (part.fold) return el("details", {}, el("summary", {}, part.caption), sheet(part));
    return [el("h3", { class: "over" }, part.caption), sheet(part)];
  }

  const regime = (one) => el("article", { class: "card" }, el("h3", {}, one.title), one.note ? el("p", { class: "soft" }, one.note) : null,
    one.ranked.length ? el("ol", {}, one.ranked.map((item) => el("li", {}, el("strong", {}, el("bdi", {}, item.model)), `: ${item.reason}`))) : null);

  page(async () => {
    const { audits } = await load("audits");
    if (!audits.length) throw new Error("No audit is recorded. `skill-evaluator audit plan` begins one, `audit report` writes what is shown here.");
    const named = state.read().audit || audits[0].name;
    if (!audits.some((audit) => audit.name === named)) throw new Error(`There is no audit '${named}'.`);
    const audit = await load(`audits/${named}`);
    document.title = `${audit.name} · Skill Evaluator`;
    const choose = (event) => { location.hash = state.text({ audit: event.target.value }); };
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", el("bdi", {}, audit.name)),
      el("h1", {}, "Stability audit"),
      el("p", { class: "lede" }, el("strong", {}, audit.finding), `: ${audit.why}`),
      audits.length > 1 ? el("div", { class: "filters" }, el("div", {}, el("label", { for: "audit" }, "Audit"), el("select", { id: "audit", onchange: choose }, audits.map(({ name, models }) => el("option", { value: name, selected: name === named }, `${name} (${models})`))))) : null,
      el("dl", { class: "facts" }, audit.facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      audit.warnings.length ? el("ul", { class: "notice" }, audit.warnings.map((warning) => el("li", {}, warning))) : null,
      audit.regimes.length ? el("section", {}, el("h2", {}, "Which model to take"), el("div", { class: "pair" }, audit.regimes.map(regime))) : null,
      audit.sections.map((section) => el("section", {}, el("h2", {}, section.title), section.parts.map(shown))),
    ];
  });
})();
