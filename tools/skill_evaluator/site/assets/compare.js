// Two versions, or two models: the verdict, what moved and how surely, the cases that flipped, the answers that changed.
"use strict";
(function () {
  const { el, load, state, link, badge, named, prose, finding, following, share, table, page, signed, chart, drawn } = window.site;

  const WAY = ["before", "after"]; // unless two models are compared

  /** Draw tables whose columns name the two that are compared. */
  const tables = (blocks, two) => drawn(blocks.map((block) => (block.columns ? { ...block, columns: block.columns.map((title) => title.replace(/before|after/g, (word) => two[Number(word === "after")])) } : block)));

  /** Return where the answers of two runs differ, loaded when it is opened. */
  function answers(model, two) {
    if (!model.answers) return null;
    const place = el("div", { "aria-live": "polite" }, "…");
    const fill = async () => {
      const changed = await load(model.answers).catch((problem) => ({ blocks: [{ kind: "words", words: `The answers cannot be shown: ${problem.message}` }] }));
      place.replaceChildren(...tables(changed.blocks, two).flat().filter(Boolean));
    };
    return el("details", { class: "answers-changed", ontoggle: (event) => { if (event.target.open && place.textContent === "…") fill(); } }, el("summary", {}, "Answers that changed, with both values"), place);
  }

  function forest(model, [before, after]) {
    const { title, rows } = model.forest;
    if (!rows.length) return null;
    const columns = [{ title: "Measure", cell: (row) => el("bdi", {}, row.name) }, { title: "Verdict", cell: (row) => badge(row.verdict) }, { title: "Difference", number: true, cell: (row) => signed(row.difference) },
      { title: "95 % interval", number: true, cell: (row) => (row.low === null ? "too few" : `${signed(row.low)} to ${signed(row.high)}`) }];
    const reach = Math.max(0.1, ...rows.flatMap((row) => [row.difference, row.low, row.high]).map((value) => Math.abs(value ?? 0)));
    return chart("forest", { title, note: `${after} − ${before}: a mark a metric or field, a line its 95 % interval. Left of the dashed line is worse.`, rows, words: { way: `${after} − ${before}`, names: rows.map((row) => row.name), domain: [-reach, reach] }, table: table("Differences", columns, rows) });
  }

  function verdict(model, name, open, worst, latest, two) {
    const [verdicts, ...reasons] = model.words.filter((words) => two === WAY || !words.startsWith("the models differ:"));
    return el("details", { class: `compared ${model.verdict}`, open },
      el("summary", {}, el("h2", { class: "line" }, el("bdi", {}, name), " ", badge(model.verdict))),
      el("p", { class: "soft" }, model.before === null ? named(model.after) : `${named(model.before)} → ${named(model.after)}${two === WAY ? "" : ` (${two[1]})`} · ${verdicts}`),
      following(model.verdict, worst.verdict, latest, model.next),
      reasons.length ? el("ul", { class: "remarks" }, reasons.map((reason) => el("li", {}, prose(reason)))) : null,
      forest(model, two), tables(model.blocks, two), answers(model, two));
  }

  const result = (one, name, latest = true, two = WAY) => [
    el("p", { class: "lede" }, one.finding),
    Object.entries(one.leftOut).map(([model, why]) => el("p", { class: "soft" }, el("bdi", {}, model), ` is left out: ${why}`)),
    one.models.map((model, place) => verdict(model, name(model), place === 0, one.models[0], latest, two)), // the worst comes first
    el("details", {}, el("summary", {}, "How to read the figures"), el("ul", { class: "remarks" }, one.reading.map((line) => el("li", {}, prose(line))))),
  ];

  /** Return what history says of a version that is not compared here in full, and the command that does. */
  function older(component, version, trend) {
    const points = trend.filter((point) => point.complete && point.version === version);
    const columns = [{ title: "Model", cell: (row) => el("bdi", {}, row.model) }, { title: "Verdict", cell: (row) => badge(row.verdict === "first" ? null : row.verdict) },
      { title: "Accuracy", number: true, cell: (row) => share(row.value) }, { title: "Difference", number: true, cell: (row) => (row.difference === null ? "–" : signed(row.difference)) }];
    if (!points.length) return el("p", { class: "notice" }, "No complete run of this version: there is nothing to compare.");
    return [el("p", { class: "notice" }, "Only the newest versions are compared here in full. Field by field: ", el("code", {}, `skill-evaluator compare ${component} --candidate ${version}`)),
      table("What history says of this version", columns, points)];
  }

  page(async () => {
    const now = state.read();
    const { component } = now;
    if (!component) throw new Error("The address names no component; choose one on the overview.");
    const { rows, regressed } = await load("overview");
    if (!rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    const [whole, versions] = await Promise.all([load(`components/${component}`), load(`compare/${component}/versions`)]);
    const newest = [...whole.versions].reverse();
    const models = whole.models;
    const between = now.first && now.second;
    const version = now.version || newest.find((name) => versions[name]) || newest[0];
    const change = (values) => { location.hash = state.text({ component, ...values }); };
    const pick = (id, label, chosen, options, onchange) => el("div", {}, el("label", { for: id }, label), el("select", { id, onchange: (event) => onchange(event.target.value) }, options.map(([value, words]) => el("option", { value, selected: value === chosen }, words))));
    const [first, second] = between ? [now.first, now.second] : [models[0], models[1]];
    const way = models.length > 1 ? pick("way", "Compare", between ? "models" : "versions", [["versions", "a version with the one before"], ["models", "two models"]], (value) => change(value === "models" ? { first, second } : {})) : null;
    const choice = between
      ? [pick("first", "Model", first, models.map((name) => [name, name]), (value) => change({ first: value, second: value === second ? first : second })),
        pick("second", "with", second, models.map((name) => [name, name]), (value) => change({ first: value === first ? second : first, second: value }))]
      : pick("version", "Version", version, newest.map((name) => [name, named(name)]), (value) => change({ version: value }));
    let body;
    if (between) {
      const pairs = await load(`compare/${component}/models`);
      const pair = pairs.find((one) => (one.first === first && one.second === second) || (one.first === second && one.second === first));
      body = pair ? result(pair, () => `${pair.second} against ${pair.first}`, true, [pair.first, pair.second]) : el("p", { class: "notice" }, "These two models are not compared here: ", el("code", {}, `skill-evaluator compare ${component} --models ${first} ${second}`));
    } else {
      body = versions[version] ? result(versions[version], (model) => model.model, version === newest[0]) : older(component, version, whole.trend);
    }
    document.title = `${component}: compared`;
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", link("component", { component }, component), " / compare"),
      el("h1", {}, between ? "Two models compared" : `${component} ${named(version)}`),
      between ? null : finding(component, regressed[component]),
      el("div", { class: "filters", role: "search" }, way, choice),
      body,
    ];
  });
})();
