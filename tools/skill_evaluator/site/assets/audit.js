// A stability audit: what was found, the map and which model to take; what that rests on unfolds.
"use strict";
(function () {
  const { el, load, state, roomy, page, drawn } = window.site;

  const OPEN = 2; // sections that a reader sees without asking: the models, and which of them to take

  /** Fold each sentence that a numbered list follows with that list; where there is room the first stays open. */
  function lists(blocks) {
    const parts = [];
    blocks.forEach((block, place) => {
      if (block.kind === "words" && (blocks[place + 1] || {}).ordered) parts.push({ head: block.words, blocks: [] });
      else if (parts.length && (block.ordered || (block.kind === "words" && parts[parts.length - 1].head))) parts[parts.length - 1].blocks.push(block);
      else parts.push({ blocks: [block] });
    });
    return parts.map(({ head, blocks: inside }, place) => (head ? el("details", { open: place === 0 && roomy }, el("summary", {}, el("bdi", {}, head)), drawn(inside)) : drawn(inside)));
  }

  page(async () => {
    const { audits } = await load("audits");
    if (!audits.length) throw new Error("No audit is recorded. `skill-evaluator audit plan` begins one, `audit report` writes what is shown here.");
    const named = state.read().audit || audits[0].name;
    if (!audits.some((audit) => audit.name === named)) throw new Error(`There is no audit '${named}'.`);
    const audit = await load(`audits/${named}`);
    document.title = `${audit.name} · Skill Evaluator`;
    const [, figures, rest] = audit.why.match(/^(ability .*?\. )?(.*)$/s);
    const choose = (event) => { location.hash = state.text({ audit: event.target.value }); };
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", el("bdi", {}, audit.name)),
      el("h1", {}, "Stability audit"),
      el("p", { class: "lede" }, el("strong", {}, audit.finding), `${figures ? "." : ":"} ${rest}`),
      figures ? el("details", {}, el("summary", {}, "In figures"), el("p", {}, `${figures[0].toUpperCase()}${figures.slice(1)}`)) : null,
      audits.length > 1 ? el("div", { class: "filters" }, el("div", {}, el("label", { for: "audit" }, "Audit"), el("select", { id: "audit", onchange: choose }, audits.map(({ name, models }) => el("option", { value: name, selected: name === named }, `${name} (${models})`))))) : null,
      el("dl", { class: "facts" }, audit.facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      audit.sections.map((section, place) => (place < OPEN
        ? el("section", {}, el("h2", {}, section.title), lists(section.blocks))
        : el("details", { class: "compared" }, el("summary", {}, el("h2", {}, section.title)), drawn(section.blocks)))),
    ];
  });
})();
