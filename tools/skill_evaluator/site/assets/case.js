// A case: the document beside its truth, and what each run answered, its differences marked field by field.
"use strict";
(function () {
  const { el, load, state, roomy, link, named, share, dash, table, page, shares } = window.site;
  const OUTCOMES = { right: "✓", wrong: "✗", missing: "∅", extra: "+", unscored: "·" };
  const characters = (count) => count.toLocaleString("en");

  function text(name, shown, absent) {
    if (!shown) return el("section", {}, el("h2", {}, name), el("p", { class: "notice" }, absent));
    return el("section", {}, el("h2", {}, name),
      el("pre", { class: "text", tabindex: "0", role: "region", "aria-label": name, dir: "auto" }, shown.text),
      shown.cut ? el("p", { class: "soft" }, `Cut here: the first of ${characters(shown.length)} characters. The whole is among the fixtures.`) : null);
  }

  function value(parts) {
    return el("bdi", { class: "value" }, parts.map(([part, own]) => (own ? el("mark", {}, part) : part)));
  }

  function leaves(caption, rows, field) {
    const columns = [
      { title: "Field", cell: (row) => el("bdi", { class: "path" }, row.at) },
      { title: "Truth", cell: (row) => value(row.truth) },
      { title: "Answer", cell: (row) => value(row.output) },
      { title: "Verdict", cell: (row) => el("span", { class: `outcome is-${row.outcome}` }, el("span", { "aria-hidden": "true" }, `${OUTCOMES[row.outcome]} `), row.outcome) },
      { title: "Compared as", cell: (row) => el("span", { class: "soft" }, row.how) },
    ];
    return table(caption, columns, rows, { class: "leaves stacked", mark: (row) => (field && row.field === field ? "sought" : null) });
  }

  function raw(output) {
    return el("details", {}, el("summary", {}, output.texts.length > 1 ? "The answers as they came" : "The answer as it came"),
      output.texts.map((shown, place) => [
        el("pre", { class: "text", tabindex: "0", role: "region", "aria-label": `Answer ${place + 1} as it came`, dir: "auto" }, shown.text || "(empty)"),
        shown.cut ? el("p", { class: "soft" }, `Cut here: the first of ${characters(shown.length)} characters. The whole is in the run's replicates.jsonl.`) : null]),
      output.others ? el("p", { class: "soft" }, `${output.others} more texts say the same.`) : null);
  }

  function answer(output, run, field) {
    const sought = output.alike.filter((leaf) => leaf.field === field);
    const marked = [...output.differing, ...sought];
    const rest = output.alike.filter((leaf) => leaf.field !== field);
    const counts = Object.entries(output.counts).map(([outcome, many]) => `${many} ${outcome}`).join(" · ");
    return el("article", { class: `answer ${output.differing.length || output.outcome !== "scored" ? "off" : "fine"}` },
      el("div", { class: "line" }, el("h4", {}, `${output.times} of ${run.planned} answers`), el("span", { class: "soft" }, `replicate${output.times > 1 ? "s" : ""} ${output.replicates}`),
        output.outcome === "scored" ? null : el("span", { class: "outcome is-wrong" }, output.reason ? `${output.outcome}: ${output.reason}` : output.outcome),
        output.score === null ? null : el("span", { class: "figure" }, `${run.metric} ${output.score.toFixed(3)}`),
        output.found ? el("span", { class: "soft" }, output.found) : null, counts ? el("span", { class: "soft when" }, counts) : null),
      output.message ? el("p", { class: "soft" }, `What was said: ${output.message}`) : null,
      output.remedy ? el("p", { class: "soft" }, `What to do: ${output.remedy}`) : null,
      output.unmarked ? el("p", { class: "notice" }, `Not marked field by field: ${output.unmarked}.`) : null,
      marked.length ? leaves("Where the answer differs", marked, field) : output.outcome === "scored" && !output.unmarked && rest.length ? el("p", { class: "soft" }, "Nothing differs.") : null,
      output.left ? el("p", { class: "soft" }, `${output.left} more leaves are left out here.`) : null,
      output.errors.length ? el("div", {}, el("p", { class: "soft" }, "It breaks the schema:"), el("ul", { class: "remarks" }, output.errors.map((words) => el("li", {}, el("bdi", {}, words))))) : null,
      rest.length ? el("details", { class: "rest" }, el("summary", {}, `${rest.length} ${rest.length === 1 ? "leaf" : "leaves"} ${rest[0].outcome === "unscored" ? "without a truth" : rest.length === 1 ? "that agrees" : "that agree"}`), leaves("Leaves that agree", rest, field)) : null,
      output.texts.length ? raw(output) : null);
  }

  function settings(run) {
    if (!run.settings) return null;
    return el("details", {}, el("summary", {}, "What the requests asked for"),
      el("dl", { class: "settings" }, run.settings.map((row) => el("div", {}, el("dt", {}, row.name), el("dd", {}, el("bdi", {}, row.value))))));
  }

  function replicates(run) {
    const names = Object.keys(run.scores);
    const rows = run.outcomes.map((outcome, index) => ({ outcome, index }));
    const columns = [{ title: "Replicate", small: true, cell: (row) => String(row.index) }, { title: "Outcome", cell: (row) => row.outcome },
      ...names.map((name) => ({ title: name, number: true, cell: (row) => share(run.scores[name].replicates[row.index]) }))];
    return el("details", {}, el("summary", {}, "The scores of each replicate"), table(`Scores of each replicate of ${run.model} ${named(run.version)}`, columns, rows),
      run.planned > rows.length ? el("p", { class: "soft" }, `${run.planned - rows.length} more replicates are in the record.`) : null);
  }

  function standings(run) {
    const words = { stable_right: "right in every answer", stable_wrong: "wrong in every answer", flaky: "now right, now wrong", stable: "alike, without a truth", unscored: "not told by a single answer, or by text that does not count" };
    return [table("Fields of this case", [{ title: "Field", cell: (row) => el("bdi", {}, row.field) }, { title: "It is", cell: (row) => row.n ? words[row.standing] : "absent, as in the truth" }, { title: "right", number: true, cell: (row) => `${row.right} of ${row.n}` }], run.fields),
      run.fieldsLeft ? el("p", { class: "soft" }, `${run.fieldsLeft} more fields are left out here.`) : null];
  }

  function answers(run, field, linked) {
    return el("section", { class: "run" },
      el("h3", {}, el("bdi", {}, run.model), ` ${named(run.version)}`, el("span", { class: "soft" }, ` ${run.metric} `), share(run.score)),
      linked ? el("p", { class: "soft" }, linked) : null,
      run.words ? el("p", { class: "soft" }, run.words, ".") : null,
      run.remarks.map((words) => el("p", { class: "notice" }, words)),
      run.why ? el("p", { class: "notice" }, run.why) : null,
      run.outputs ? run.outputs.map((output) => answer(output, run, field)) : standings(run),
      run.others ? el("p", { class: "soft" }, run.others) : null,
      replicates(run), settings(run));
  }

  function scores(runs, now, chosen) {
    const columns = [
      { title: "Model", cell: (run) => link("case", { ...now, model: run.model, version: "" }, el("bdi", {}, run.model)) },
      { title: "Version", cell: (run) => link("case", { ...now, model: run.model, version: run.version }, named(run.version)) },
      { title: runs[0].metric, number: true, cell: (run) => share(run.score) },
      { title: "Answers", cell: (run) => run.spread || dash() },
      { title: "Its fields", cell: (run) => shares(run.standing) },
    ];
    const scored = (caption, some) => table(caption, columns, some, { mark: (run) => (chosen.includes(run) ? "chosen" : null) });
    const rest = roomy || !chosen.length ? [] : runs.filter((run) => !chosen.includes(run));
    return [scored("Scores of this case", runs.filter((run) => !rest.includes(run))), rest.length ? el("details", {}, el("summary", {}, `${rest.length} other runs`), scored("Scores of this case in other runs", rest)) : null];
  }

  function filters(runs, now, model) {
    const change = (values) => { location.hash = state.text({ ...now, ...values }); };
    const fields = [...new Set(runs.flatMap((run) => run.fields.map((row) => row.field)))];
    const choice = (name, id, options, value, key) => el("div", {}, el("label", { for: id }, name), el("select", { id, onchange: (event) => change({ [key]: event.target.value }) },
      options.map(([option, words]) => el("option", { value: option, selected: option === value }, words))));
    const models = [...new Set(runs.map((run) => run.model))];
    const versions = [...new Set(runs.map((run) => run.version))];
    return el("div", { class: "filters", role: "search" },
      choice("Model", "model", [["all", "all models"], ...models.map((name) => [name, name])], model, "model"),
      choice("Version", "version", [["", "the newest two"], ...versions.map((name) => [name, named(name)])], now.version || "", "version"),
      choice("Field", "field", [["", "all fields"], ...fields.map((name) => [name, name])], now.field || "", "field"));
  }

  function neighbours(index, place, now) {
    const to = (at, words) => (place >= 0 && index.cases[at] ? link("case", { ...now, case: index.cases[at].id }, words) : null);
    const both = [to(place - 1, "← previous case"), to(place + 1, "next case →")].filter(Boolean);
    return both.length ? el("span", { class: "neighbours" }, both[0], both.length > 1 ? " · " : null, both[1]) : null;
  }

  const file = (each) => (each.kind === "image"
    ? el("img", { src: each.at, alt: each.words, loading: "lazy" })
    : el("p", {}, el("a", { href: each.at, download: each.name }, each.words)));

  page(async () => {
    const now = state.read();
    const { component, field } = now;
    if (!component || !now.case) throw new Error("The address names no case; choose one on the page of its component.");
    const { rows } = await load("overview");
    if (!rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    const index = await load(`cases/${component}`);
    const place = index.cases.findIndex((row) => row.id === now.case);
    const keys = place < 0 && index.left ? await load(`case-keys/${component}`) : {};
    const key = place < 0 ? Object.hasOwn(keys, now.case) && keys[now.case] : index.cases[place].key;
    if (!key) throw new Error(`The newest runs of '${component}' have no case '${now.case}'.`);
    const shown = await load(key);
    const runs = await Promise.all(shown.runs.map((run) => load(`${key}/${run}`)));
    const models = new Set(runs.map((run) => run.model));
    const worst = runs.find((run) => run.fields.some((row) => ["stable_wrong", "flaky"].includes(row.standing)));
    const model = now.model === "all" || models.has(now.model) ? now.model : (worst || runs[0]).model;
    const chosen = runs.filter((run) => (model === "all" || run.model === model) && (!now.version || run.version === now.version));
    document.title = `${shown.case} · ${component}`;
    setTimeout(() => { const row = field && document.querySelector("tr.sought"); if (row) row.scrollIntoView({ block: "center" }); }, 0);
    return [
      el("p", { class: "crumbs wide" }, el("a", { href: "index.html" }, "Overview"), " / ", link("component", { component }, component), " / ", el("bdi", {}, shown.case), neighbours(index, place, now)),
      el("h1", {}, el("bdi", {}, shown.case)),
      shown.why ? el("p", { class: "notice" }, shown.why) : null,
      scores(runs, now, chosen),
      filters(runs, now, model),
      el("div", { class: shown.document ? "beside" : "" },
        shown.document ? el("div", { class: "given" }, text(shown.title, shown.document), shown.files.map(file), text("Ground truth", shown.truth, "This case has none: its answers are compared with each other alone.")) : null,
        el("div", { class: "answers" }, el("h2", {}, shown.document ? "Answers" : "Scores"),
          chosen.length ? chosen.map((run) => answers(run, field, index.runs.some((each) => each.run === run.run) && link("run", { component, run: run.run }, "Every answer of this run"))) : el("p", { class: "notice" }, `No run of this version by this model is shown: a case has each model's newest two versions, here ${[...new Set(runs.map((run) => named(run.version)))].join(", ")}.`))),
    ];
  });
})();
