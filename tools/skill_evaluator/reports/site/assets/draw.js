// Charts: a specification of the build with the rows of the page, drawn in the colours that the reader prefers.
"use strict";
(function () {
  const { el, load, script, table } = window.site;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const font = "system-ui, sans-serif";
    const axis = { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelFont: font, titleFont: font };
    return { background: null, font, axis, view: { stroke: null }, autosize: { type: "fit", contains: "padding" }, legend: { layout: { top: { direction: "vertical", anchor: "start", margin: 6 } }, symbolBaseFillColor: soft, symbolBaseStrokeColor: soft, labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" } };
  }

  /** Return the colours that a specification names, which follow the reader's ground. */
  function named() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "soft", "line", "paper"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  /** Put the words and lists of a page where a specification names them; its rows stay as they are. */
  function filled(part, words) {
    if (typeof part === "string") return part.startsWith("@") && part.slice(1) in words ? words[part.slice(1)] : part;
    if (Array.isArray(part)) {
      const only = part.length === 1 ? filled(part[0], words) : null;
      return Array.isArray(only) ? only : part.map((member) => filled(member, words));
    }
    if (part && typeof part === "object") return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, key === "values" || key === "datasets" ? value : filled(value, words)]));
    return part;
  }

  const tip = el("div", { class: "tip", role: "status", hidden: true });
  document.body.append(tip);
  function showTip(_, event, item, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = typeof value === "object" ? Object.values(value).join(" ") : String(value);
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room)) + window.scrollX}px`;
    tip.style.top = `${event.clientY + 14 + window.scrollY}px`;
  }

  /** Return a figure: what the chart shows as its title, the chart, and its table for who wants the figures.

   A `spec` with rows of its own is drawn as it is; else the one of that kind, with the rows of the page. */
  function chart(kind, { title, note, rows, more, words, table, spec: own }) {
    const place = el("div", own ? { class: "chart wide", "data-chart": kind, role: "region", "aria-label": title, tabindex: "0" } : { class: "chart", "data-chart": kind });
    const draw = async () => {
      try {
        const [specs] = await Promise.all([own ? null : load("charts"), script("assets/vega.js")]);
        const spec = own ? { ...filled(own, named()), description: title } : { ...filled(specs[kind], { ...named(), ...words }), datasets: { rows, ...more }, description: title };
        await window.vegaEmbed(place, spec, { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: showTip, logLevel: 1, config: own ? { ...colours(), autosize: "pad" } : colours() });
        for (const empty of place.querySelectorAll('[role="graphics-symbol"]:empty')) empty.setAttribute("aria-hidden", "true");
        place.setAttribute("data-drawn", "true");
      } catch (problem) {
        place.replaceChildren(el("p", { class: "notice" }, `The chart cannot be drawn (${problem.message}); its table is below.`));
      }
    };
    let begun = false;
    const begin = () => { if (!begun) { begun = true; draw(); dark.addEventListener("change", draw); } };
    // A chart takes the width of its place, so it is drawn once that stands on the page.
    new IntersectionObserver((seen, observer) => {
      if (seen.some((entry) => entry.isIntersecting)) { observer.disconnect(); begin(); }
    }, { rootMargin: "400px" }).observe(place);
    window.addEventListener("beforeprint", begin);
    return el("figure", { class: "card" }, el("figcaption", {}, el("h3", {}, title), note ? el("p", { class: "soft" }, note) : null), place,
      el("details", { class: "figures" }, el("summary", {}, "The figures as a table"), table));
  }

  /** Return a cell of a report's table, which may be a link. */
  const cell = (value) => (typeof value === "object" ? el("a", { href: value.link }, el("bdi", {}, value.text)) : el("bdi", {}, value));

  function sheet(part) {
    const columns = part.columns.map((column, place) => ({ ...column, cell: (row) => cell(row[place]) }));
    return table(part.caption, columns, part.rows);
  }

  const drawn = (one) => chart(one.kind, { title: one.title, note: one.note, spec: one.spec, table: one.figures.columns ? sheet(one.figures) : null });

  /** Return charts; of several one is shown, and a choice above them says which. */
  function charts(part) {
    if (part.charts.length === 1) return drawn(part.charts[0]);
    const place = el("div", {}, drawn(part.charts[0]));
    const choose = (event) => place.replaceChildren(drawn(part.charts[Number(event.target.value)]));
    return [el("div", { class: "filters" }, el("div", {}, el("label", { for: "map-of" }, part.choice), el("select", { id: "map-of", onchange: choose }, part.charts.map((one, at) => el("option", { value: at }, one.label))))), place];
  }

  /** Return a part of a page: words, lines, charts or a table. */
  function shown(part) {
    if (part.words) return el("p", { class: "soft" }, part.words);
    if (part.lines) return el("ul", { class: "remarks" }, part.lines.map((line) => el("li", {}, line)));
    if (part.charts) return charts(part);
    if (part.fold) return el("details", {}, el("summary", {}, part.caption), sheet(part));
    return [el("h3", { class: "over" }, part.caption), sheet(part)];
  }

  Object.assign(window.site, { chart, sheet, shown });
})();
