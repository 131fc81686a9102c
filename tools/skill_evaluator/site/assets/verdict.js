// A verdict on a page or two, for those who decide: what was found on each model, how sure that is, what to ship.
"use strict";
(function () {
  const { el, load, state, link, share, badge, named, change, prose, following, finding: regressedOf, interval, table, page, MARKS } = window.site;

  const HEADS = { regressed: "Do not ship", improved: "Nothing is in the way of", unchanged: "Nothing is in the way of", inconclusive: "Not decided:", incomparable: "Not compared:", first: "The first version:" };

  /** Name the fields and cases that a version lost with a model, as far as it was compared field by field. */
  function lost(compared, point, component) {
    if (!compared || point.before === null) return null;
    const { fields, cases, worse, more } = compared.lost;
    const { model, version } = point;
    const list = (title, names, left) => (names.length ? el("p", { class: "lost" }, el("strong", {}, `${title}: `), names.map((name, at) => [at ? ", " : null, name]), left ? ` and ${left} more` : null) : null);
    const linked = (names) => names.map((name) => link("case", { component, case: name, model, version }, el("bdi", {}, name)));
    const shown = fields.map(([field, words]) => [el("bdi", {}, `${field} ${words}`), " (", link("component", { component, field, model, version }, "its cases"), ")"]);
    const broke = cases.length ? list("Cases that broke", linked(cases), more[1]) : list("Worse in every answer, though each case by itself may be noise", linked(worse), 0);
    return shown.length || broke ? [list("Fields that fell", shown, more[0]), broke] : el("p", { class: "soft" }, "No field and no case fell beyond chance.");
  }

  /** Return the reasons that the lines above them do not say: neither which field fell nor by how much the metric did. */
  const others = (point, metric, compared) => point.reasons.filter((words) => ![`${metric} fell from`, `${metric} rose from`].some((begin) => words.startsWith(begin))
    && !(compared ? compared.lost.fields : []).some(([field, moved]) => words.includes(`${field} ${moved}`)));

  function finding(point, worst, shown, compared, component, latest) {
    const [now] = shown.newest.filter((row) => row.model === point.model && row.version === point.version);
    const whole = now && now.also && [now, now.also].find((one) => one.before !== point.before);
    const reasons = others(point, shown.metric, compared);
    return el("section", { class: `card change ${point.verdict}` },
      el("h2", { class: "line" }, el("span", {}, HEADS[point.verdict], " ", el("bdi", {}, named(point.version)), " with ", el("bdi", {}, point.model)), badge(point.verdict === "first" ? null : point.verdict), whole ? el("span", {}, badge(whole.verdict), el("span", { class: "soft since" }, ` since ${named(whole.before)}`)) : null),
      compared && point.before ? el("p", {}, el("strong", {}, "How sure: "), compared.sure) : null,
      lost(compared, point, component),
      el("p", { class: "figures" }, point.before ? `Against ${named(point.before)}: ` : null, change({ ...point, metric: shown.metric }) || "There is no version to compare it with.", point.before ? "." : null),
      compared && point.before ? following(point.verdict, worst.verdict, latest, compared.next) : null,
      reasons.length ? el("ul", { class: "remarks" }, reasons.map((words) => el("li", {}, prose(words)))) : null);
  }

  page(async () => {
    const { component, version } = state.read();
    if (!component) throw new Error("The address names no component; choose one on the overview.");
    const { rows, regressed } = await load("overview");
    if (!rows.some((row) => row.component === component && row.model)) throw new Error(`There is nothing recorded of '${component}'.`);
    const [shown, compared] = await Promise.all([load(`components/${component}`), load(`compare/${component}/versions`)]);
    const complete = shown.versions.filter((name) => shown.trend.some((point) => point.complete && point.version === name));
    const newest = complete[complete.length - 1] || shown.versions[shown.versions.length - 1];
    const judged = version || newest;
    const worse = ({ verdict }) => [...Object.keys(MARKS), "first"].indexOf(verdict);
    const points = shown.trend.filter((point) => point.complete && point.version === judged).sort((a, b) => worse(a) - worse(b));
    const beside = (point) => compared[judged] && compared[judged].models.find((one) => one.model === point.model);
    const latest = judged === newest;
    const title = `${shown.name} ${named(judged)}`;
    document.title = `${title}: verdict`;
    if (!points.length) return [el("h1", {}, title), el("p", { class: "notice" }, "No complete run of this version.")];
    const columns = [{ title: "Model", cell: (row) => el("bdi", {}, row.model) }, { title: shown.metric, number: true, cell: (row) => share(row.value) },
      { title: "95 % interval", number: true, cell: (row) => interval(row.value, row.low, row.high) },
      { title: "Coverage", number: true, cell: (row) => share(row.coverage) }, { title: "Run", cell: (row) => row.run }];
    return [
      el("p", { class: "crumbs" }, el("a", { href: "index.html" }, "Overview"), " / ", link("component", { component }, shown.name), " / verdict"),
      el("h1", {}, title),
      el("p", { class: "advice" }, latest ? null : `A newer version is measured, ${named(newest)}; `, el("bdi", {}, shown.ship)),
      points.map((point) => finding(point, points[0], shown, beside(point), component, latest)),
      regressed[component] && regressed[component].version !== judged ? regressedOf(component, regressed[component]) : null,
      el("p", {}, link("compare", { component, version: judged }, "Field by field, beside the version before")),
      el("h2", {}, "The figures"), el("p", { class: "soft" }, `Judged by ${shown.metric}, tolerating a drop of ${shown.ranking.tolerance} at α ${shown.ranking.alpha}.`), table("Figures of this version", columns, points),
      latest && shown.remarks.length ? el("ul", { class: "remarks" }, shown.remarks.map((words) => el("li", {}, prose(words)))) : null,
      el("button", { type: "button", class: "print", onclick: () => window.print() }, "Print, or save as PDF"),
    ];
  });
})();
