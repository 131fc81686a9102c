// A component: which model to ship, how it moved over its versions, and where each model is right, wrong or flaky.
"use strict";
(function () {
  const { el, load, script, state, dash, share, dollars, seconds, prose, badge, named, moved, verdicts, finding, scale, flawless, age, interval, span, table, page, chart, shares, PARTS } = window.site;
  const MOST = 15; // fields before the rest folds
  const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
  const model = { title: "Model", cell: (row) => el("bdi", {}, row.model || row.model_id) };

  function section(title, note, ...content) {
    return el("section", {}, el("h2", {}, title), note ? el("p", { class: "soft" }, note) : null, content);
  }

  /** Say how much more is in the records than fits on a page. */
  const more = (count, words) => (count ? el("p", { class: "soft" }, `${count} more ${words} in the records: too many for a page.`) : null);

  function ranking({ ranking: ranked, newest, agreement, ship }, fell) {
    const metrics = [...new Set(ranked.models.flatMap((row) => Object.keys(row.accuracy)))].filter((name) => name !== ranked.metric).sort();
    const score = (row) => { const { strict_mean: value = null, ci95 = null, n_cases: cases = 0 } = row.accuracy[ranked.metric] || {}; return [value, ...(ci95 && cases >= 5 ? ci95 : [null, null])]; };
    const changes = new Map(newest.map((row) => [row.model, row]));
    const columns = [
      { title: "Place", small: true, cell: (row) => [String(row.place), el("span", { class: "soft" }, row.like_best ? " =" : "")] },
      model,
      { title: "Version", cell: (row) => named(row.skill_version) },
      { title: ranked.metric, number: true, cell: (row) => [el("span", { class: "figure" }, share(score(row)[0])), el("span", { class: "soft interval" }, interval(...score(row))), span(...score(row))] },
      { title: "Change", number: true, cell: (row) => moved(changes.get(row.model_id)) },
      { title: "Verdict", cell: (row) => verdicts(changes.get(row.model_id)) },
      { title: "USD per 1,000", number: true, cell: (row) => dollars(row.usd_per_1000_cases) },
    ];
    const rest = [
      model,
      ...metrics.map((name) => ({ title: name, number: true, cell: (row) => share((row.accuracy[name] || {}).strict_mean) })),
      { title: agreement, number: true, cell: (row) => share(row.reproducibility[agreement]) },
      { title: "Median s", number: true, cell: (row) => seconds(row.latency_p50_s) },
      { title: "Measured", cell: (row) => age(row.timestamp) },
    ];
    return section("Which model to ship", `On the same ${ranked.n_cases} cases. = is not significantly different from the best (α ${ranked.alpha}, tolerance ${ranked.tolerance}).`,
      fell && !fell.stands ? null : el("p", { class: ranked.advice.model_id ? "advice" : "advice none" }, el("bdi", {}, ship)),
      table("Models, the best first", columns, ranked.models, { class: "ranked" }),
      el("details", {}, el("summary", {}, "Other metrics, latency and when each was measured"), table("More of each model", rest, ranked.models)),
      Object.entries(ranked.left_out).map(([name, why]) => el("p", { class: "soft" }, el("bdi", {}, name), ` is left out: ${why}`)));
  }

  const listed = (names, most) => names.slice(0, most).join(", ") + (names.length > most ? ` and ${names.length - most} more` : "");

  /** Say what the charts of the newest runs show; that models differ was tested of their accuracy alone. */
  function titles({ newest, ranking: { models } }) {
    const tied = models.filter((row) => row.like_best).map((row) => row.model_id);
    const reach = (key) => {
      const runs = newest.filter((row) => row[key] !== null).sort((a, b) => a[key] - b[key]);
      return [...new Set([...runs.slice(0, 1), ...runs.slice(-1)])].map((row) => `${row[key].toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} (${row.model})`).join(" to ");
    };
    return { balance: tied.length > 1 ? `${listed(tied, 3)} do not differ significantly in how often they are right` : `${models[0].model_id} is right most often`, latency: `Median seconds to an answer: ${reach("p50")}`, cost: `USD for 1,000 answers: ${reach("usd")}` };
  }

  /** Say which version regressed, and the verdicts on the highest. */
  function titleOf({ newest }, fell) {
    const judged = new Map(fell && !fell.stands ? [[`${named(fell.version)} regressed with`, fell.models]] : []);
    for (const row of newest.filter((row) => row.before)) {
      const words = `${named(row.version)} ${row.verdict} since ${named(row.before)} with`;
      judged.set(words, [...(judged.get(words) || []), row.model]);
    }
    return [...judged].map(([words, models]) => `${words} ${listed(models, 2)}`).join("; ");
  }

  function trend(shown, fell) {
    const rows = shown.trend;
    const columns = [
      { title: "Version", cell: (row) => named(row.version) }, model,
      { title: shown.metric, number: true, cell: (row) => share(row.value) },
      { title: "95 % interval", number: true, cell: (row) => interval(row.value, row.low, row.high) },
      { title: "Verdict", cell: (row) => (row.complete ? [badge(row.verdict === "first" ? null : row.verdict), row.before ? el("span", { class: "soft" }, ` against ${named(row.before)}`) : null] : "not finished") },
      { title: "All runs of it", number: true, cell: (row) => (row.runs > 1 ? `${number(row.pooled)} (${row.runs} runs)` : dash()) },
      { title: "Measured", cell: (row) => age(row.timestamp) },
    ];
    const figures = table("Every version of every model", columns, rows, { class: "stacked" });
    const verdicts = [...new Set(rows.map((row) => row.verdict).filter(Boolean))];
    const words = { models: shown.models, versions: shown.versions.map(named), verdicts, metric: `strict mean of ${shown.metric}`, domain: scale(rows.flatMap((row) => [row.value, row.low])) };
    return section("Over the versions", shown.versions.length > 1 ? "Each version's newest run with its 95 % interval. A line ends where two versions cannot be compared; a hollow mark is a run that was not finished." : "One version so far: there is nothing to compare it with.",
      shown.versions.length > 1 ? chart("trend", { title: titleOf(shown, fell) || "No two versions of a model so far", rows: rows.map((row) => ({ ...row, version: named(row.version) })), words, table: figures }) : el("details", {}, el("summary", {}, "The figures as a table"), figures),
      more(shown.left.trend, "older runs are"),
      shown.remarks.length ? el("details", {}, el("summary", {}, "Since the anchor, and what was passed over"), el("ul", { class: "remarks" }, shown.remarks.map((words) => el("li", {}, prose(words))))) : null);
  }

  function balance(shown) {
    const rows = shown.newest.filter((row) => row.accuracy !== null && row.reproducibility !== null)
      .map((row) => ({ ...row, value: row.accuracy, words: `${row.model} ${named(row.version)}: accuracy ${number(row.accuracy)}, reproducibility ${number(row.reproducibility)}` }));
    const none = { p5: null, p25: null, p75: null, p95: null };
    const costs = shown.newest.filter((row) => row.usd !== null).map((row) => ({ model: row.model, ...none, ...row.dollars, value: row.usd, words: `${row.model}: USD ${dollars(row.usd)} per 1,000 answers` }));
    const times = shown.newest.filter((row) => row.p50 !== null).map((row) => ({ model: row.model, ...none, ...row.seconds, value: row.p50, words: `${row.model}: median ${row.p50} s, 95 % within ${row.p95} s` }));
    const spread = (key, unit, show) => ["p5", "p25", "p75", "p95"].map((name) => ({ title: `${name.slice(1)} % ${unit}`, number: true, cell: (row) => (row[key] ? show(row[key][name]) : name === "p95" && key === "seconds" ? show(row.p95) : dash()) }));
    const domain = scale(rows.flatMap((row) => [row.value, row.low, row.reproducibility]));
    const words = { models: shown.models, metric: `strict mean of ${shown.metric}`, agreement: shown.agreement, domain };
    const figures = (...columns) => table("The figures", [model, { title: "Version", cell: (row) => named(row.version) }, ...columns], shown.newest);
    const fold = (kind, parts) => chart(kind, { words, folded: true, ...parts });
    const failures = [...new Set(shown.failures.map((row) => row.kind))];
    return section("Repeatable, quick and cheap", shown.failures.length ? "The newest complete run of each model." : "The newest complete run of each model. Every call of these runs was scored.",
      rows.length > 1 ? fold("balance", { title: titles(shown).balance, note: "Accuracy (up) against reproducibility (right): a mark a model, with the 95 % interval of its accuracy.", rows, table: figures({ title: shown.metric, number: true, cell: (row) => share(row.accuracy) }, { title: "95 % interval", number: true, cell: (row) => interval(row.accuracy, row.low, row.high) }, { title: shown.agreement, number: true, cell: (row) => share(row.reproducibility) }) }) : null,
      times.some((row) => row.value >= 0.005) ? fold("latency", { title: titles(shown).latency, note: "Seconds from sending a call to its answer. Mark: the median; bar: the middle half of the calls; line: from the 5th to the 95th percentile.", rows: times, table: figures({ title: "Median s", number: true, cell: (row) => seconds(row.p50) }, ...spread("seconds", "s", seconds)) }) : null,
      costs.some((row) => row.value > 0) ? fold("cost", { title: titles(shown).cost, note: "What 1,000 answers cost. Mark: the mean; bar: the middle half of the answers; line: from the 5th to the 95th percentile.", rows: costs, table: figures({ title: "USD per 1,000", number: true, cell: (row) => dollars(row.usd) }, ...spread("dollars", "USD", dollars)) }) : null,
      failures.length ? fold("failures", { title: "Calls of the newest runs that were not scored", note: "Of 1,000 calls, by what became of them instead of a score.", rows: shown.failures, words: { ...words, kinds: failures }, table: table("Failures", [model, { title: "Reason", cell: (row) => row.kind }, { title: "Of 1,000 calls", number: true, cell: (row) => String(row.count) }], shown.failures) }) : null);
  }

  /** Lead from a cell of the field map to the cases in which the field differs. */
  function toCases(index, field, model, words) {
    const narrow = (event) => { event.preventDefault(); window.site.narrowCases(index, field, model); };
    return el("a", { class: "quiet", href: `component.html${state.text({ component: index.component, field, model })}`, onclick: narrow }, words);
  }

  function fields(shown, index) {
    if (!shown.fields.length) return null;
    const paths = [...new Set(shown.fields.map((row) => row.field))];
    const cells = new Map(shown.fields.map((row) => [JSON.stringify([row.field, row.model]), row]));
    const cell = (path, name) => { const row = cells.get(JSON.stringify([path, name])); return row && row.profile ? toCases(index, path, name, shares(row.profile)) : dash(); };
    const columns = [{ title: "Field", cell: (path) => el("bdi", {}, path) }, ...shown.models.map((name) => ({ title: name, cell: (path) => cell(path, name) }))];
    const of = (path) => shown.models.map((name) => (cells.get(JSON.stringify([path, name])) || {}).profile).filter(Boolean);
    const lost = (path) => of(path).reduce((sum, profile) => sum + (profile.stable_wrong || 0) + (profile.flaky || 0), 0);
    const right = (path) => of(path).length > 0 && of(path).every(flawless);
    const sound = paths.filter(right);
    const off = paths.filter((path) => !right(path)).map((path) => [path, lost(path)]).sort((a, b) => b[1] - a[1]).map(([path]) => path);
    const map = (caption, some) => table(caption, columns, some, { class: "fields" });
    const losses = [{ title: "Field", cell: (row) => el("bdi", {}, row.field) }, model, { title: "compare", cell: (row) => row.compare }, { title: "right ÷ n", number: true, cell: (row) => share(row.accuracy) },
      ...["n", "right", "wrong", "missing", "extra"].map((key) => ({ title: key, number: true, cell: (row) => String(row[key]) })), { title: "stability", number: true, cell: (row) => share(row.stability) }];
    return section("Field map", "How many cases each field stands right, wrong or flaky in. Always wrong wants a better prompt; flaky wants a clearer contract or more samples. A cell leads to its cases.",
      el("div", { class: "key" }, PARTS.slice(0, 4).map(([, look, words]) => el("span", {}, el("i", { class: look }), look === "unknown" ? "alike without a truth, or not told by a single answer" : words))),
      off.length ? map("Fields beside models", off.slice(0, MOST)) : el("p", { class: "notice" }, "Every field is right in every answer of every model."),
      [[off.slice(MOST), "more are wrong or flaky in fewer cases"], [sound, "right in every answer of every model"]].map(([some, words]) => (some.length ? el("details", {}, el("summary", {}, `${some.length} ${some.length === 1 ? "field" : "fields"} ${words}`), map(`Fields beside models: ${words}`, some)) : null)),
      more(shown.left.fields, "fields are"),
      el("details", {}, el("summary", {}, "What was wrong, missing or extra in each field"), table("Leaves of each field", losses, shown.fields)));
  }

  /** Draw what became of the values in the items of each array, and name the figures below. */
  function items(shown) {
    if (!shown.items.length) return null;
    const outcomes = ["right", "wrong", "missing", "extra"];
    const worst = shown.items.reduce((most, row) => (row.missing > most.missing ? row : most));
    const label = (row) => `${row.array} · ${row.model}`;
    const rows = shown.items.flatMap((row) => outcomes.map((outcome, place) => ({ label: label(row), outcome, place, count: row[outcome], words: `${label(row)}: ${row[outcome]} of ${row.n} ${outcome}` })));
    const columns = [{ title: "Array", cell: (row) => el("bdi", {}, row.array) }, model, ...["n", ...outcomes].map((name) => ({ title: name, number: true, cell: (row) => String(row[name]) }))];
    return chart("items", { title: worst.missing ? `${worst.model} loses most in ${worst.array}: ${worst.missing} of ${worst.n} values are missing` : "No value of an array's items is missing", note: "Values in the items of an array, after each item was aligned with that of the truth it fits best: missing are those the answer has not, extra those that only the answer has.", rows: rows.filter((row) => row.count), words: { labels: shown.items.map(label) }, table: table("Values in arrays", columns, shown.items) });
  }

  function arrays(shown) {
    if (!shown.arrays.length && !shown.items.length) return null;
    return section("Arrays", "What the items of an array lost or made up, and whether its length is the same in every answer to a case.",
      items(shown), more(shown.left.items, "arrays are"),
      shown.arrays.length === 0 ? null : table("Lengths of arrays", [{ title: "Array", cell: (row) => el("bdi", {}, row.array) }, model, { title: "steady length", number: true, cell: (row) => share(row.stability) }, { title: "cases that varied", number: true, cell: (row) => `${row.varied} of ${row.n_cases}` }, { title: "widest difference", number: true, cell: (row) => String(row.widest) }], shown.arrays), more(shown.left.arrays, "arrays are"));
  }

  function confusions(shown) {
    if (!shown.confusions.length) return null;
    return section("What is taken for what", "Rows are truths, columns answers; both the commonest first.", shown.confusions.map((matrix, at) => {
      const columns = [{ title: "truth", cell: (row) => el("bdi", {}, row.truth) }, ...matrix.outputs.map((output, place) => ({ title: output, tint: (row) => (row.cells[place] ? (row.truth === output ? "agrees" : "differs") : "none"), shade: (row) => row.cells[place] / row.cells.reduce((sum, count) => sum + count, 0), cell: (row) => String(row.cells[place]) }))];
      const title = `${matrix.field}, ${matrix.model}${matrix.macro_f1 === null ? "" : `: macro F1 ${number(matrix.macro_f1)}`}`;
      return el("details", { open: at === 0 }, el("summary", {}, title), table(title, columns, matrix.truths.map((truth, place) => ({ truth, cells: matrix.cells[place] })), { class: "heat" }), matrix.left > 0 ? el("p", { class: "soft" }, `${matrix.left} more categories are in the record.`) : null);
    }), more(shown.left.confusions, "of these are"));
  }

  page(async () => {
    const { component, field, version } = state.read();
    if (!component) throw new Error("The address names no component; choose one on the overview.");
    const { rows, regressed } = await load("overview");
    if (!rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    const [shown, newest, judged] = await Promise.all([load(`components/${component}`), load(`cases/${component}`), load("judges"), script("assets/cases.js")]);
    const listed = newest.versions.includes(version);
    const elsewhere = version && !shown.newest.every((row) => row.version === version);
    const index = { ...newest, ...(listed ? { ...(await load(`case-lists/${component}/${version}`)), version } : {}), elsewhere, fell: regressed[component] };
    if (field || version) setTimeout(() => document.getElementById("cases").scrollIntoView(), 0);
    document.title = `${shown.name} · Skill Evaluator`;
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", shown.name),
      el("h1", {}, shown.name),
      finding(component, regressed[component]),
      el("dl", { class: "facts" }, [["Version on disk", named(shown.version)], ["Primary metric", shown.metric], ["Models", String(shown.models.length)], ["Measured versions", String(shown.versions.length)]].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      el("p", {}, window.site.link("verdict", { component: shown.name }, "Verdict on the latest"), " · ", window.site.link("compare", { component: shown.name }, "Compare versions or models"),
        judged.judgings.some((row) => row.component === component) ? [" · ", window.site.link("judges", { component: shown.name }, "What judges say of it")] : null),
      ranking(shown, regressed[component]), trend(shown, regressed[component]), fields(shown, index), window.site.cases(index), balance(shown), arrays(shown), confusions(shown),
    ];
  });
})();
