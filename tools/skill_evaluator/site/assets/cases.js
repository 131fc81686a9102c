// The cases of a component beside its models: what of each is right, wrong or flaky, and the way to its page.
"use strict";
(function () {
  const { el, state, roomy, link, named, finding, share, dash, table, shares, flawless } = window.site;
  const MOST = roomy ? 15 : 6; // rows before a reader asks for all
  const STANDINGS = { r: "stable_right", w: "stable_wrong", f: "flaky", s: "stable", u: "unscored" };
  const OFF = "wf"; // the letters of a field that is wrong in every answer, or flaky

  /** Count how the fields of a case stand, from a letter for each. */
  function counts(letters) {
    const standing = {};
    for (const letter of letters) if (letter in STANDINGS) standing[STANDINGS[letter]] = (standing[STANDINGS[letter]] || 0) + 1;
    return standing;
  }

  function section(index, all, order = {}) {
    const now = state.read();
    const place = index.fields.indexOf(now.field);
    const models = index.models.includes(now.model) ? [now.model] : index.models;
    const differs = (row) => models.some((name) => row.models[name] && OFF.includes(row.models[name][1][place]));
    const kept = now.field && (place >= 0 || !index.fieldsLeft) ? index.cases.filter((row) => place >= 0 && differs(row)) : index.cases;
    const profile = (of) => of[2] || counts(of[1]);
    const right = (row) => models.every((name) => row.models[name] && flawless(profile(row.models[name])));
    const sound = now.field || order.sort ? [] : kept.filter(right);
    const value = (row) => (row.models[order.sort] ? row.models[order.sort][0] ?? 2 : 2); // not measured comes last
    const lowest = (row) => Math.min(...models.map((name) => (row.models[name] ? row.models[name][0] ?? 2 : 2)));
    const open = kept.filter((row) => !sound.includes(row));
    const sorted = open.sort((a, b) => (!order.sort ? lowest(a) - lowest(b) : order.down ? value(b) - value(a) : value(a) - value(b)));
    const rows = all ? sorted : sorted.slice(0, MOST);
    const to = (row, model, ...words) => link("case", { component: index.component, case: row.id, model, version: index.version, field: now.field }, ...words);
    const cell = (row, model) => {
      const of = row.models[model];
      return of ? el("div", { class: "part" }, to(row, model, share(of[0])), shares(profile(of))) : dash();
    };
    const columns = [{ title: "Case", cell: (row) => to(row, now.model, el("bdi", {}, row.id)) }, ...index.models.map((name) => ({ title: name, sort: name, cell: (row) => cell(row, name) }))];
    const onsort = (sort) => again(all, { sort, down: order.sort === sort && !order.down }).querySelector("th[aria-sort] button").focus();
    const box = el("section", { id: "cases", tabindex: "-1" },
      el("h2", {}, "Cases"),
      now.field || now.version ? finding(index.component, index.fell) : null,
      now.version && !index.version && index.elsewhere ? el("p", { class: "notice" }, `There is no list of ${named(now.version)}: only each model's newest two versions have one. These are the newest.`) : null,
      index.versions.length ? el("div", { class: "filters" }, el("div", {}, el("label", { for: "of-version" }, "Version"), el("select", { id: "of-version", onchange: (event) => { location.hash = state.text({ ...now, component: index.component, version: event.target.value }); } },
        ["", ...index.versions].map((version) => el("option", { value: version, selected: version === (index.version || "") }, version ? named(version) : "each model's newest"))))) : null,
      el("p", { class: "soft" }, `${index.version ? `Version ${named(index.version)}` : "Each model's newest version"}, the worst case first: ${index.metric}, and how many fields of the case stand right, wrong or flaky. A figure leads to the answers.`),
      index.runs.length ? el("details", { open: index.runs.length <= 4 }, el("summary", {}, "Every answer of a run on one page"), el("p", {}, index.runs.map((run, at) => [at ? " · " : null, link("run", { component: index.component, run: run.run }, el("bdi", {}, run.model), ` ${named(run.version)}`)]))) : null,
      now.field && place < 0 && index.fieldsLeft ? el("p", { class: "notice" }, "This list has no room for how the cases stand in ", el("bdi", {}, now.field), "; the page of each case says it.")
      : now.field ? el("p", { class: "line" }, el("span", {}, `${kept.length} of ${index.cases.length} cases in which `, el("bdi", {}, now.field), " is wrong or flaky", now.model ? [" with ", el("bdi", {}, now.model)] : null),
        " ", el("button", { type: "button", class: "print", onclick: () => { state.write({ ...now, field: "", model: "" }); again(false); } }, "Show all cases")) : null,
      index.fieldsLeft ? el("p", { class: "soft" }, `By field there is room here for ${index.fields.length} of ${index.fields.length + index.fieldsLeft} fields.`) : null,
      rows.length ? table("Cases beside models", columns, rows, { class: "fields", ...order, onsort }) : el("p", { class: "notice" }, sound.length ? "Every case is right in every answer of every model." : "No such case."),
      rows.length < open.length ? el("button", { type: "button", class: "print", onclick: () => again(true, order) }, `Show all ${open.length} of these`) : null,
      sound.length ? el("details", {}, el("summary", {}, `${sound.length} ${sound.length === 1 ? "case" : "cases"} right in every answer of every model`), table("Cases beside models: right everywhere", columns, sound, { class: "fields" })) : null,
      index.left ? el("p", { class: "soft" }, `${index.left} more cases have no room here; case.html#component=${index.component}&case=ID shows each.`) : null);
    const again = (whole, way) => { const fresh = section(index, whole, way); box.replaceWith(fresh); return fresh; };
    box.again = again;
    return box;
  }

  /** Show the cases in which a field differs; the address then says so, too. */
  function narrow(index, field, model) {
    if (index.version) { location.hash = state.text({ component: index.component, field, model }); return; } // the map is of the newest
    state.write({ ...state.read(), field, model });
    const fresh = document.getElementById("cases").again(false);
    fresh.focus({ preventScroll: true });
    fresh.scrollIntoView();
  }

  window.site.cases = section;
  window.site.narrowCases = narrow;
})();
