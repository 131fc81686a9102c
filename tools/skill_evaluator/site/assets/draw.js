// Charts: a specification of the build with the rows of the page, drawn in the colours that the reader prefers.
"use strict";
(function () {
  const { el, load, script, table, prose, badge, MARKS } = window.site;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function colours(stepped) {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const font = "system-ui, sans-serif";
    const axis = { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelFont: font, titleFont: font };
    return { background: null, font, axis, view: { stroke: null }, autosize: { type: stepped ? "fit-x" : "fit", contains: "padding" }, legend: { layout: { top: { direction: "vertical", anchor: "start", margin: 6 } }, symbolBaseFillColor: soft, symbolBaseStrokeColor: soft, labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" } };
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
    if (part && typeof part === "object") return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, key === "datasets" || (key === "values" && typeof value[0] === "object") ? value : filled(value, words)]));
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

  /** Count the lines of a chart that grows with its rows: its labels, and what stands side by side in each. */
  const lines = (rows) => [(row) => row.label ?? row.name ?? row.model, (row) => row.series].reduce((many, of) => many * new Set(rows.map(of)).size, 1);

  /** Return whole numbers for an axis of counts. */
  function ticks(rows = []) {
    const sums = {};
    for (const row of rows) sums[row.label ?? row.model] = (sums[row.label ?? row.model] || 0) + (row.count || 0);
    const step = Math.ceil(Math.max(1, ...Object.values(sums)) / 5);
    return [0, 1, 2, 3, 4, 5].map((at) => at * step);
  }

  /** Return a figure: what the chart shows as its title, the chart, and its table for who wants the figures.

   A `spec` with rows of its own is drawn as it is; else the one of that kind, with the rows of the page. */
  function chart(kind, { title, note, rows, more, words, table, spec: own, folded }) {
    const place = el("div", own ? { class: "chart wide", "data-chart": kind, role: "region", "aria-label": title, tabindex: "0" } : { class: "chart", "data-chart": kind });
    const draw = async () => {
      try {
        const [specs] = await Promise.all([own ? null : load("charts"), script("assets/vega.js")]);
        const spec = own ? { ...filled(own, named()), description: title } : { ...filled(specs[kind], { ...named(), ticks: ticks(rows), ...words }), datasets: { ...specs[kind].datasets, rows, ...more }, description: title };
        const stepped = typeof spec.height === "object"; // Vega-Lite warns of a step in a chart that takes the width of its place
        if (stepped) spec.height = spec.height.step * lines(rows);
        const narrowed = own && kind !== "heat" && kind !== "neutrality" && spec.width > place.clientWidth; // as on a phone; a scenario keeps its width
        if (narrowed) spec.width = place.clientWidth;
        await window.vegaEmbed(place, spec, { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: showTip, logLevel: 1, config: own && !narrowed ? { ...colours(), autosize: "pad" } : colours(stepped || narrowed) });
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
    const figure = el("figure", { class: "card", "aria-label": folded ? title : null }, el("figcaption", {}, folded ? null : el("h3", {}, title), note ? el("p", { class: "soft" }, note) : null), place,
      el("details", { class: "figures" }, el("summary", {}, "The figures as a table"), table));
    return folded ? el("details", {}, el("summary", {}, title), figure) : figure;
  }

  const name = (text) => el("bdi", {}, text);

  /** Return a text as a badge, where it is of a verdict's mood. */
  function mood(text, look) {
    if (!look) return name(text);
    return el("span", { class: `badge ${look}` }, el("span", { "aria-hidden": "true" }, MARKS[look]), ` ${text}`);
  }

  function sheet(block) {
    const columns = block.columns.map((title, place) => ({ title, number: block.numbers[place], cell: (row) => {
      const [text, look, href] = row[place];
      return href ? el("a", { href }, name(text)) : title === "verdict" && text in MARKS ? badge(text) : look && !block.heat ? mood(text, look) : name(text);
    }, tint: block.heat ? (row) => (row[place][0] === "0" ? "none" : row[place][1]) : null }));
    for (const name of ["grade", "quadrant", "verdict"]) { // stand where they are seen without going to the side
      const at = columns.findIndex((column) => column.title === name);
      if (at > 1) columns.splice(1, 0, ...columns.splice(at, 1));
    }
    return table(block.caption, columns, block.rows, { class: block.heat ? "heat" : "dense" });
  }

  const figure = (block, one) => chart(block.chart, { title: one.title, note: one.note, spec: one.spec, table: sheet(one.sheet) });

  // A block of a page by its kind: what a report's part is drawn as.
  const DRAWN = {
    words: (block) => el("p", { class: "soft" }, prose(block.words)),
    fold: (block) => el("details", {}, el("summary", {}, name(block.summary)), drawn(block.blocks)),
    drawn(block) {
      const [first, ...others] = block.charts;
      const place = el("div", {}, figure(block, first));
      if (!others.length) return place;
      const choose = (event) => place.replaceChildren(figure(block, block.charts[Number(event.target.value)]));
      return [el("div", { class: "filters" }, el("div", {}, el("label", { for: `${block.chart}-of` }, block.choice), el("select", { id: `${block.chart}-of`, onchange: choose }, block.charts.map((one, at) => el("option", { value: at }, one.label))))), place];
    },
    sheet(block) {
      const note = block.note ? el("p", { class: "soft" }, block.note) : null;
      if (block.folded) return el("details", {}, el("summary", {}, name(block.caption)), note, sheet(block));
      return [el("h3", { class: "above" }, name(block.caption)), note, sheet(block)];
    },
    sentences: (block) => (block.lines.length ? [block.title ? el("h3", { class: "above" }, name(block.title)) : null, el(block.ordered ? "ol" : "ul", { class: "remarks" }, block.lines.map((line) => el("li", {}, el("bdi", {}, prose(line)))))] : null),
    chart: (block) => chart(block.chart, { title: block.title, note: block.note, rows: block.rows, more: block.more, words: block.words, table: sheet(block.sheet) }),
  };
  const drawn = (blocks) => blocks.map((block) => DRAWN[block.kind](block));

  Object.assign(window.site, { chart, mood, sheet, drawn });
})();
