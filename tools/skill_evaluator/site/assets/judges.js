// Judges: what each judging came to, rates beside their control, what a judge is worth, and how far the review queue is.
"use strict";
(function () {
  const { el, load, state, link, age, table, page, mood, drawn } = window.site;
  const name = (text) => el("bdi", {}, text);
  const MODES = { regression: "regressions", score: "scores", pairwise: "comparisons", calibrate: "calibration" };
  function facts(rows) {
    return el("dl", { class: "facts" }, rows.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))));
  }

  function list(rows, component) {
    const columns = [
      { title: "Judging", cell: (row) => link("judges", { component, judging: row.id }, row.id) },
      { title: "Came to", cell: (row) => mood(row.outcome, row.mood) },
      { title: "Of", cell: (row) => MODES[row.mode] },
      { title: "Component", cell: (row) => (row.component ? name(row.component) : el("span", { class: "none" }, "items of a file")) },
      { title: "Judges", cell: (row) => name(row.judges.join(", ")) },
      { title: "Items", number: true, cell: (row) => String(row.items) },
      { title: "Judged", cell: (row) => age(row.created) },
    ];
    return table("Judgings, the newest first", columns, rows);
  }

  const sections = (shown) => shown.map((one) => el("section", {}, el("h2", {}, name(one.title)), drawn(one.blocks)));

  function queue(shown) {
    if (!shown) return [el("h2", {}, "Review queue"), el("p", { class: "notice" }, "Nothing is queued for people. With --review, judges leave what they are in doubt of to them: skill-evaluator judge regression … --review.")];
    return [sections(shown), el("p", { class: "soft" }, "skill-evaluator review serve opens the queue.")];
  }

  function notices(shown) {
    return [
      shown.problems.length ? el("ul", { class: "remarks" }, shown.problems.map((row) => el("li", {}, name(`${row.name} cannot be read: ${row.why}`)))) : null,
      shown.unfinished.length ? el("p", { class: "soft" }, name(`No results yet: ${shown.unfinished.join(", ")}. --resume of the command that began one goes on with it.`)) : null,
      shown.left_out ? el("p", { class: "soft" }, `${shown.left_out} older judgings are left out.`) : null,
    ];
  }

  async function all(component) {
    const shown = await load("judges");
    const of = (rows) => rows.filter((row) => !component || row.component === component);
    const rows = of(shown.judgings);
    const newest = component && rows.find((row) => row.mode === "regression");
    const detail = newest ? await load(`judgings/${newest.id}`) : null;
    return [
      component ? el("p", { class: "crumbs" }, link("judges", {}, "Judges"), " / ", link("component", { component }, name(component))) : null,
      el("h1", {}, component ? `Judges of ${component}` : "Judges"),
      el("p", { class: "lede" }, "What judges say of outputs, and what that is worth. What they quote is not on this page: it lies with the judging."),
      rows.length ? list(rows, component) : el("p", { class: "notice" }, "No judging is recorded here. Ask a judge whether a run's answers are worse than the pinned ones: skill-evaluator judge regression --candidate RUN --judge ID."),
      component ? null : notices(shown),
      detail ? [el("h2", {}, "The newest comparison with a baseline"), el("p", {}, mood(detail.outcome, detail.mood), " ", link("judges", { component, judging: newest.id }, newest.id)), sections(detail.sections)] : null,
      !component && shown.calibration ? [el("h2", {}, "The calibration that the settings name"), el("p", {}, mood(...shown.calibration), " ", link("judges", { judging: "of settings" }, "What it says"))] : null,
      component ? null : queue(shown.queue),
    ];
  }

  async function single(judging, component) {
    const shown = await load("judges");
    const row = shown.judgings.find((one) => one.id === judging);
    if (!row && !(judging === "of settings" && shown.calibration)) throw new Error(`There is no judging '${judging}' here.`);
    const detail = await load(`judgings/${judging}`);
    const crumbs = el("p", { class: "crumbs" }, link("judges", {}, "Judges"), component ? [" / ", link("judges", { component }, name(component))] : null, " / ", judging);
    if (!row) return [crumbs, el("h1", {}, "The calibration that the settings name"), el("p", { class: "lede" }, name(detail.file)), sections(detail.sections)];
    return [
      crumbs, el("h1", {}, `${MODES[row.mode][0].toUpperCase()}${MODES[row.mode].slice(1)}${row.component ? ` of ${row.component}` : ""}`),
      el("p", {}, mood(row.outcome, row.mood)),
      facts([["Judges", name(row.judges.join(", "))], ["Items", String(row.items)], ["Asked by", name(row.rubric)], ["Judged", age(row.created)]]),
      sections(detail.sections),
    ];
  }

  page(async () => {
    const { component, judging } = state.read();
    document.title = `${component || judging || "Judges"} · Skill Evaluator`;
    return judging ? single(judging, component) : all(component);
  });
})();
