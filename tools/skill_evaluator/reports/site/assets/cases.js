// The cases of a component beside its models: what of each is right, wrong or flaky, and the way to its page.
"use strict";
(function () {
  const { el, state, link, share, dash, table, shares } = window.site;
  const MOST = 100; // rows before a reader asks for all
  const OFF = "wf"; // the letters of a field that is wrong in every answer, or flaky

  function section(index, all) {
    const now = state.read();
    const place = index.fields.indexOf(now.field);
    const models = index.models.includes(now.model) ? [now.model] : index.models;
    const differs = (row) => models.some((name) => row.models[name] && OFF.includes(row.models[name].fields[place]));
    const kept = now.field ? index.cases.filter((row) => place >= 0 && differs(row)) : index.cases;
    const rows = all ? kept : kept.slice(0, MOST);
    const to = (row, model, ...words) => link("case", { component: index.component, case: row.id, model, field: now.field }, ...words);
    const cell = (row, model) => {
      const of = row.models[model];
      return of ? [to(row, model, share(of.score)), shares(of.standing)] : dash();
    };
    const columns = [{ title: "Case", cell: (row) => to(row, now.model, el("bdi", {}, row.id)) }, ...index.models.map((name) => ({ title: name, cell: (row) => cell(row, name) }))];
    const box = el("section", { id: "cases", tabindex: "-1" },
      el("h2", {}, "Cases"),
      el("p", { class: "soft" }, `Each model's newest version: ${index.metric}, and how many fields of the case stand right, wrong or flaky. A figure leads to the answers.`),
      now.field ? el("p", { class: "line" }, el("span", {}, `${kept.length} of ${index.cases.length} cases in which `, el("bdi", {}, now.field), " is wrong or flaky", now.model ? [" with ", el("bdi", {}, now.model)] : null),
        " ", el("button", { type: "button", class: "print", onclick: () => { state.write({ ...now, field: "", model: "" }); again(false); } }, "Show all cases")) : null,
      rows.length ? table("Cases beside models", columns, rows, { class: "fields" }) : el("p", { class: "notice" }, "No such case."),
      rows.length < kept.length ? el("button", { type: "button", class: "print", onclick: () => again(true) }, `Show all ${kept.length} cases`) : null);
    const again = (whole) => { const fresh = section(index, whole); box.replaceWith(fresh); return fresh; };
    box.again = again;
    return box;
  }

  /** Show the cases in which a field differs; the address then says so, too. */
  function narrow(index, field, model) {
    state.write({ ...state.read(), field, model });
    const fresh = document.getElementById("cases").again(false);
    fresh.focus({ preventScroll: true });
    fresh.scrollIntoView();
  }

  window.site.cases = section;
  window.site.narrowCases = narrow;
})();
