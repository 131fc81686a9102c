// A verdict on a page or two, for those who decide: what was found on each model, how sure that is, what to ship.
"use strict";
(function () {
  const { el, load, state, link, share, badge, interval, table, page, signed, MARKS } = window.site;

  /** Name the fields and cases that a version lost with a model, as far as it was compared field by field. */
  function lost(compared, point, component) {
    if (!compared || point.before === null) return null;
    const { fields, cases, more } = compared.lost;
    const list = (title, names, left) => (names.length ? el("p", { class: "lost" }, el("strong", {}, `${title}: `), names.map((name, at) => [at ? ", " : null, name]), left ? ` and ${left} more` : null) : null);
    const shown = cases.map((name) => link("case", { component, case: name, model: point.model }, el("bdi", {}, name)));
    return fields.length || cases.length ? [list("Fields that fell", fields.map((name) => el("bdi", {}, name)), more[0]), list("Cases that broke", shown, more[1])] : el("p", { class: "soft" }, "No field and no case fell beyond chance.");
  }

  function finding(point, metric, told) {
    const change = point.difference === null || point.difference === undefined ? "There is no version to compare it with." : `${metric} ${signed(point.difference)}${point.step_low === null ? "" : `, 95 % interval ${signed(point.step_low)} to ${signed(point.step_high)}`}.`;
    return el("section", { class: `card change ${point.verdict}` },
      el("h2", { class: "line" }, el("bdi", {}, point.model), " ", badge(point.verdict === "first" ? null : point.verdict)),
      el("p", {}, point.before ? `Version ${point.version} against ${point.before}: ` : `Version ${point.version}. `, change),
      point.reasons.length ? el("ul", { class: "remarks" }, point.reasons.map((words) => el("li", {}, words))) : null,
      told);
  }

  page(async () => {
    const { component, version } = state.read();
    if (!component) throw new Error("The address names no component; choose one on the overview.");
    if (!(await load("overview")).rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    const [shown, compared] = await Promise.all([load(`components/${component}`), load(`compare/${component}/versions`)]);
    const complete = shown.versions.filter((name) => shown.trend.some((point) => point.complete && point.version === name));
    const newest = complete[complete.length - 1] || shown.versions[shown.versions.length - 1];
    const judged = version || newest;
    const worse = ({ verdict }) => [...Object.keys(MARKS), "first"].indexOf(verdict);
    const points = shown.trend.filter((point) => point.complete && point.version === judged).sort((a, b) => worse(a) - worse(b));
    const beside = (point) => compared[judged] && compared[judged].models.find((one) => one.model === point.model);
    const latest = judged === newest;
    document.title = `${shown.name} ${judged}: verdict`;
    if (!points.length) return [el("h1", {}, `${shown.name} ${judged}`), el("p", { class: "notice" }, "No complete run of this version.")];
    const columns = [{ title: "Model", cell: (row) => el("bdi", {}, row.model) }, { title: shown.metric, number: true, cell: (row) => share(row.value) },
      { title: "95 % interval", number: true, cell: (row) => interval(row.value, row.low, row.high) },
      { title: "Coverage", number: true, cell: (row) => share(row.coverage) }, { title: "Run", cell: (row) => row.run }];
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", link("component", { component }, shown.name), " / verdict"),
      el("h1", {}, `${shown.name} ${judged}`),
      el("p", { class: "lede" }, `The verdict on each model, by ${shown.metric}, tolerating a drop of ${shown.ranking.tolerance} at α ${shown.ranking.alpha}.`),
      latest && shown.ranking.advice.model_id ? el("p", { class: "advice" }, el("strong", {}, "To ship: "), el("bdi", {}, shown.ranking.advice.model_id), ` (${shown.ranking.advice.reason})`) : null,
      points.map((point) => finding(point, shown.metric, lost(beside(point), point, component))),
      el("p", {}, link("compare", { component, version: judged }, "Field by field, beside the version before")),
      el("h2", {}, "The figures"), table("Figures of this version", columns, points),
      latest && shown.remarks.length ? el("ul", { class: "remarks" }, shown.remarks.map((words) => el("li", {}, words))) : null,
      el("button", { type: "button", class: "print", onclick: () => window.print() }, "Print, or save as PDF"),
    ];
  });
})();
