// A run: every answer on one page, failures first, to be searched and narrowed; the whole texts are loaded when asked for.
"use strict";
(function () {
  const { el, load, state, link, named, share, dash, table, page } = window.site;
  const MOST = 50; // rows before a reader asks for more
  const AROUND = 70; // characters beside what was sought
  const OUTCOMES = { right: "✓", wrong: "✗", missing: "∅", extra: "+" };
  const SHOWS = { "": "all answers", off: "those not right", unscored: "those not scored" };

  const isRight = (row) => row.outcome === "scored" && !row.off.length && (row.score === null || row.score === 1);
  const KEPT = { "": () => true, off: (row) => !isRight(row), unscored: (row) => row.outcome !== "scored" };
  const value = (text) => el("bdi", { class: "value" }, text);

  /** Return the beginning of an answer, or the place in it that was sought, which is marked. */
  function excerpt(row, whole, sought) {
    const at = sought ? whole.toLowerCase().indexOf(sought) : -1;
    if (at < 0) return [row.text, row.length > row.text.length ? "…" : ""];
    const begin = Math.max(0, at - AROUND), end = at + sought.length;
    return [begin ? "…" : "", whole.slice(begin, at), el("mark", {}, whole.slice(at, end)), whole.slice(end, end + AROUND), end + AROUND < whole.length ? "…" : ""];
  }

  function answer(row, texts, sought) {
    const short = excerpt(row, (texts && texts[row.at]) || row.text, sought);
    if (row.length <= row.text.length) return value(short);
    const place = el("div", {});
    const open = async () => {
      const whole = (await row.whole())[row.at];
      place.replaceChildren(el("pre", { class: "text", tabindex: "0", role: "region", "aria-label": `Answer to ${row.case}`, dir: "auto" }, whole),
        el("p", { class: "soft" }, whole.length < row.length ? `Cut here: the first of ${row.length.toLocaleString("en")} characters. The whole is in the run's replicates.jsonl.` : `${row.length.toLocaleString("en")} characters.`));
    };
    return el("details", { ontoggle: (event) => { if (event.target.open && !place.childElementCount) open(); } }, el("summary", {}, value(short)), place);
  }

  function differing(row, run) {
    const to = (field, words) => link("case", { component: run.component, case: row.case, model: run.model, version: run.version, field }, words);
    if (row.outcome !== "scored") return row.outcome ? el("span", { class: "outcome is-wrong" }, row.reason ? `${row.outcome}: ${row.reason}` : row.outcome) : dash();
    if (!row.off.length) return row.score === null || row.score === 1 ? el("span", { class: "soft" }, "nothing") : to("", "see its page");
    return [row.off.map(([at, field, outcome, truth, output]) => el("div", { class: "off" }, el("span", { class: `outcome is-${outcome}`, title: outcome }, el("span", { "aria-hidden": "true" }, OUTCOMES[outcome]), el("span", { class: "unseen" }, ` ${outcome} `)), " ",
      to(field, el("bdi", { class: "path" }, at)), " ", value(truth || "–"), " → ", value(output || "–"))), row.more ? to("", `${row.more} more`) : null];
  }

  /** Return every column that a reader may choose, those first that are shown if nothing is chosen. */
  function columnsOf(run, texts, sought) {
    const others = [...new Set(run.rows.flatMap((row) => Object.keys(row.metrics)))].filter((name) => name !== run.metric);
    return [
      { title: "Case", sort: "case", cell: (row) => link("case", { component: run.component, case: row.case, model: run.model, version: run.version }, el("bdi", {}, row.case)) },
      { title: "Replicates", cell: (row) => (row.times ? [row.replicates, el("span", { class: "soft" }, ` (${row.times} of ${row.planned})`)] : dash()) },
      { title: run.metric, sort: "score", number: true, cell: (row) => share(row.score) },
      { title: "What differs", cell: (row) => differing(row, run) },
      { title: "Answer", cell: (row) => answer(row, texts, sought) },
      ...others.map((name) => ({ title: name, number: true, more: true, cell: (row) => share(row.metrics[name]) })),
    ];
  }

  function matching(run, now, texts, sought) {
    const kept = run.rows.filter((row) => (!now.field || row.fields.includes(now.field)) && (KEPT[now.show] || KEPT[""])(row)
      && (!sought || [row.case, row.outcome, row.reason || "", (texts && texts[row.at]) || row.text, ...row.off.flat()].some((text) => text.toLowerCase().includes(sought))));
    const order = { case: (a, b) => a.case.localeCompare(b.case), score: (a, b) => (a.score ?? 2) - (b.score ?? 2) }[now.sort];
    return order ? kept.sort((a, b) => (now.down ? order(b, a) : order(a, b))) : kept;
  }

  /** Return the table of the rows that are asked for; `draw` is called again with what a reader changes. */
  function answers(run, now, texts, most, draw) {
    const sought = (now.q || "").toLowerCase();
    const rows = matching(run, now, texts, sought);
    const every = columnsOf(run, texts, sought);
    const chosen = now.columns ? now.columns.split(",") : every.filter((column) => !column.more).map((column) => column.title);
    const choose = (title, on) => draw({ columns: every.map((column) => column.title).filter((name) => (name === title ? on : chosen.includes(name))).join(",") });
    const onsort = (sort) => draw({ sort, down: now.sort === sort && !now.down ? "1" : "" });
    return [
      el("details", { class: "columns", open: answers.unfolded, ontoggle: (event) => { answers.unfolded = event.target.open; } }, el("summary", {}, "Columns"),
        every.slice(1).map((column, at) => el("label", {}, el("input", { type: "checkbox", id: `column-${at}`, checked: chosen.includes(column.title), onchange: (event) => choose(column.title, event.target.checked) }), ` ${column.title}`))),
      el("p", { class: "soft", role: "status" }, `${rows.length} of ${run.rows.length} distinct answers${run.left ? `; ${run.left} more, which come after these, have no room on this page` : ""}.`),
      rows.length ? table("Answers of this run", every.filter((column, at) => at === 0 || chosen.includes(column.title)), rows.slice(0, most), { class: "answered stacked", sort: now.sort, down: now.down, onsort }) : el("p", { class: "notice" }, "No such answer."),
      rows.length > most ? el("button", { type: "button", class: "print", id: "more", onclick: () => draw({}, most + MOST) }, `Show ${Math.min(MOST, rows.length - most)} more of ${rows.length}`) : null,
    ];
  }

  function filters(run, now, draw) {
    const fields = [...new Set(run.rows.flatMap((row) => row.fields))].sort();
    const choice = (name, id, options, key) => el("div", {}, el("label", { for: id }, name), el("select", { id, onchange: (event) => draw({ [key]: event.target.value }) },
      options.map(([option, words]) => el("option", { value: option, selected: option === (now[key] || "") }, words))));
    let waiting = 0;
    const seek = (event) => { clearTimeout(waiting); waiting = setTimeout(() => draw({ q: event.target.value }), 150); };
    return el("div", { class: "filters", role: "search" },
      el("div", { class: "wide" }, el("label", { for: "search" }, "Search in the answers"), el("input", { id: "search", type: "search", value: now.q || "", oninput: seek })),
      choice("Show", "show", Object.entries(SHOWS), "show"),
      choice("Field that differs", "field", [["", "any"], ...fields.map((name) => [name, name])], "field"));
  }

  page(async () => {
    const { component, run: id } = state.read();
    if (!component || !id) throw new Error("The address names no run; choose one on the page of its component.");
    const { rows } = await load("overview");
    if (!rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    if (!(await load(`cases/${component}`)).runs.some((shown) => shown.run === id)) throw new Error(`No answers of a run '${id}' are here: they are private, in a run folder elsewhere, or not of a model's newest two versions.`);
    const run = { component, ...(await load(`runs/${component}/${id}/rows`)) };
    const whole = () => load(`runs/${component}/${id}/texts`);
    run.rows.forEach((row, at) => Object.assign(row, { at, whole }));
    const place = el("div", {});
    const draw = async (changed, most = MOST) => {
      const now = { ...state.read(), ...changed };
      state.write(now);
      const texts = now.q && run.rows.some((row) => row.length > row.text.length) ? await whole() : null;
      if ((now.q || "") !== (state.read().q || "")) return; // something else is sought by now
      const held = place.contains(document.activeElement) && (document.activeElement.id || document.activeElement.textContent);
      place.replaceChildren(...answers(run, now, texts, most, draw).filter(Boolean));
      const again = held && [...place.querySelectorAll("button, input")].find((each) => held === (each.id || each.textContent));
      if (again) again.focus();
    };
    document.title = `${component} ${named(run.version)}, ${run.model}: answers`;
    await draw({});
    return [
      el("p", { class: "crumbs wide" }, el("a", { href: "index.html" }, "Overview"), " / ", link("component", { component }, component), " / answers of a run"),
      el("h1", {}, "Every answer of ", el("bdi", {}, run.model), ` to ${component} ${named(run.version)}`),
      el("p", { class: "lede" }, `${run.metric} `, share(run.score), `, ${run.planned.toLocaleString("en")} calls. Failures come first; answers to a case that say the same are one row.`),
      run.remarks.map((words) => el("p", { class: "notice" }, words)),
      filters(run, state.read(), draw), place,
    ];
  });
})();
