// A stability audit: neutrality, grades, advice and the map are open; the details unfold.
"use strict";
(function () {
  const { el, load, state, page, drawn } = window.site;

  page(async () => {
    const { audits } = await load("audits");
    if (!audits.length) throw new Error("No audit is recorded. `skill-evaluator audit run` makes one, `audit report` writes what is shown here.");
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
      audit.sections.map((section, place) => (place === 0
        ? el("section", {}, el("h2", {}, section.title), drawn(section.blocks))
        : el("details", { class: "compared" }, el("summary", {}, el("h2", {}, section.title)), drawn(section.blocks)))),
    ];
  });
})();
