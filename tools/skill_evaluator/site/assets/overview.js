// The overview: every component beside every model. Search, filter and order are in the address.
"use strict";
(function () {
  const { el, load, state, roomy, link, dash, share, dollars, seconds, badge, named, moved, verdicts, finding, spark, age, interval, span, table, page, MARKS } = window.site;
  const DOWN = new Set(["accuracy", "reproducibility", "measured"]);
  const ORDER = Object.keys(MARKS);
  const VALUE = {
    component: (row) => row.component, model: (row) => row.model, accuracy: (row) => row.accuracy, change: (row) => row.difference,
    reproducibility: (row) => row.reproducibility, verdict: (row) => (row.verdict ? Math.min(...[row, row.also].filter(Boolean).map((one) => ORDER.indexOf(one.verdict))) : null),
    grade: (row) => row.grade, usd: (row) => row.usd, latency: (row) => row.p50, measured: (row) => row.timestamp,
  };
  const name = (row) => (row.model ? link("component", { component: row.component }, row.component) : el("span", {}, row.component));
  const measured = (show) => (row) => (row.model ? show(row) : "");
  const score = (row) => [el("span", { class: "figure", "data-value": row.accuracy, title: row.metric }, share(row.accuracy)), el("span", { class: "soft interval" }, interval(row.accuracy, row.low, row.high)), span(row.accuracy, row.low, row.high)];
  const COLUMNS = [
    { title: "Component", sort: "component", cell: (row) => [name(row), el("span", { class: "soft version" }, named(row.version))] },
    { title: "Model", sort: "model", cell: (row) => (row.model ? el("bdi", {}, row.model) : el("span", { class: "soft why" }, row.why)) },
    { title: "Verdict", sort: "verdict", cell: measured(verdicts) },
    { title: "Change", sort: "change", number: true, cell: measured((row) => [moved(row), spark(row.scores)]) },
    { title: "Accuracy", sort: "accuracy", number: true, cell: measured(score) },
    { title: "Reproducibility", sort: "reproducibility", number: true, cell: measured((row) => share(row.reproducibility)) },
    { title: "Grade", sort: "grade", tint: () => "graded", cell: measured((row) => (row.grade ? link("audit", { audit: row.audit }, row.grade) : dash())) },
    { title: "USD per 1,000", sort: "usd", number: true, cell: measured((row) => dollars(row.usd)) },
    { title: "Median s", sort: "latency", number: true, cell: measured((row) => seconds(row.p50)) },
    { title: "Measured", sort: "measured", cell: measured((row) => age(row.timestamp)) },
  ];

  function shown(rows, now) {
    const wanted = (now.q || "").toLowerCase();
    return rows.filter((row) =>
      (!wanted || [row.component, row.model, row.verdict, row.why].some((text) => (text || "").toLowerCase().includes(wanted)))
      && (!now.model || row.model === now.model) && (!now.verdict || (row.model ? row.verdict || "first" : "unscored") === now.verdict));
  }

  function ordered(rows, key, down) {
    const value = VALUE[key] || VALUE.verdict;
    const sign = down ? -1 : 1;
    const first = (a, b) => (a < b ? -sign : a > b ? sign : 0);
    const empty = (one) => one === null || one === undefined;
    return rows.map((row, place) => [row, place]).sort(([a, i], [b, j]) => {
      const [x, y] = [value(a), value(b)];
      return empty(x) || empty(y) ? empty(x) - empty(y) || i - j : first(x, y) || i - j;
    }).map(([row]) => row);
  }

  page(async () => {
    const { rows: given, regressed, problems, audit, retiring } = await load("overview");
    const rows = given.map((row) => ({ ...row, audit }));
    const now = { sort: "verdict", ...state.read() };
    const place = el("div", { id: "rows" });
    const count = el("p", { class: "soft", role: "status" });

    function draw() {
      const down = now.dir ? now.dir === "down" : DOWN.has(now.sort);
      const kept = ordered(shown(rows, now), now.sort, down);
      const columns = COLUMNS.filter((column) => column.sort !== "grade" || rows.some((row) => row.grade));
      let before = null;
      place.replaceChildren(kept.length ? table("Components beside models", columns, kept, {
        class: "overview", sort: now.sort, down,
        mark: (row) => { const key = `${row.component} ${row.version}`; const same = key === before; before = key; return same ? "same" : row.model ? null : "bare"; },
        onsort(key) { change({ sort: key, dir: key === now.sort ? (down ? "up" : "down") : "" }, key); },
      }) : el("p", { class: "notice" }, "No component matches. Clear the search or the filters to see all."));
      const total = new Set(rows.map((row) => row.component)).size;
      const seen = new Set(kept.map((row) => row.component)).size;
      count.textContent = `${seen} of ${total} component${total === 1 ? "" : "s"}, ${kept.filter((row) => row.model).length} measured pairs of component and model`;
      for (const tile of document.querySelectorAll(".tile")) tile.setAttribute("aria-pressed", String(now.verdict === tile.dataset.verdict));
    }
    function change(values, focus) {
      Object.assign(now, values);
      state.write({ ...now, sort: now.sort === "verdict" ? "" : now.sort });
      draw();
      if (focus) place.querySelector("th[aria-sort] button").focus();
    }
    const pick = (label, key, options) => el("div", {}, el("label", { for: `by-${key}` }, label), el("select", { id: `by-${key}`, onchange: (event) => change({ [key]: event.target.value }) },
      options.map(([value, words]) => el("option", { value, selected: (now[key] || "") === value }, words))));
    const models = [...new Set(rows.map((row) => row.model).filter(Boolean))].sort();
    const verdict = (row) => (row.model ? row.verdict || "first" : "unscored");
    const words = { first: "first version", unscored: "not scored" };
    const tiles = [...ORDER, "first", "unscored"].map((kind) => [kind, rows.filter((row) => verdict(row) === kind).length]).filter(([, many]) => many)
      .map(([kind, many]) => el("button", { type: "button", class: `tile ${kind}`, "data-verdict": kind, "aria-pressed": "false", onclick: () => change({ verdict: now.verdict === kind ? "" : kind }) },
        el("strong", {}, String(many)), el("span", {}, `${MARKS[kind] ? `${MARKS[kind]} ` : ""}${words[kind] || kind}`)));
    const search = [
      el("div", { class: "tiles", role: "group", "aria-label": "Filter by verdict" }, tiles),
      el("div", { class: "filters", role: "search" },
        el("div", { class: "wide" }, el("label", { for: "search" }, "Search"), el("input", { type: "search", id: "search", value: now.q || "", placeholder: "component, model or verdict", oninput: (event) => change({ q: event.target.value }) })),
        pick("Model", "model", [["", "all models"], ...models.map((model) => [model, model])]),
        pick("Order", "sort", COLUMNS.map((column) => [column.sort, column.title]))),
    ];
    const fell = Object.entries(regressed).sort(([, a], [, b]) => b.stands - a.stands || (a.difference ?? 0) - (b.difference ?? 0));
    queueMicrotask(draw);
    return [
      el("h1", {}, "Overview"),
      fell.length ? finding(...fell[0]) : el("p", { class: "lede" }, "No component has regressed in its newest five versions."),
      fell.length > 1 ? el("p", {}, el("a", { href: "changes.html#verdict=regressed" }, `${fell.length - 1} more component${fell.length > 2 ? "s" : ""} with a version that regressed`)) : null,
      retiring.length ? el("ul", { class: "remarks" }, retiring.map((line) => el("li", {}, line))) : null,
      roomy ? search : el("details", { open: ["q", "model", "verdict"].some((key) => now[key]) }, el("summary", {}, "Search, filter and order"), search),
      count, place,
      problems.length ? el("section", {}, el("h2", {}, "Not shown"), el("ul", { class: "remarks" }, problems.map(({ name, why }) => el("li", {}, el("strong", {}, name), `: ${why}`)))) : null,
      el("p", { class: "soft legend" }, "The newest version of each component with each model. Where the verdict since the accepted version, else since the first, differs from that since the one before, both stand there. Accuracy is the strict mean of the component's primary metric with its 95 % interval over cases", roomy ? "; reproducibility the share of pairs of answers that are equal. USD: what 1,000 answers cost, one to a case." : ". Its page has the other figures."),
    ];
  });
})();
