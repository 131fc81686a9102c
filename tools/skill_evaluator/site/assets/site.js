// What every page needs: data and scripts loaded when asked for, elements made of text, state in the address.
"use strict";
(function () {
  const data = (window.siteData = window.siteData || new Map());
  const loading = new Map();

  /** Load a script of the site once. It works from the file system, where a fetch does not. */
  function script(place) {
    if (!loading.has(place)) {
      loading.set(place, new Promise((resolve, reject) => {
        const element = document.createElement("script");
        element.src = place;
        element.onload = resolve;
        element.onerror = () => reject(new Error(`${place} is not there`));
        document.head.append(element);
      }));
    }
    return loading.get(place);
  }

  /** Return what the build left under a key, such as "overview" or "components/receipts". */
  async function load(key) {
    if (!data.has(key)) await script(`data/${key.split("/").map(encodeURIComponent).join("/")}.js`);
    return data.get(key);
  }

  const pieces = (children) => [children].flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");

  /** Make an element: text stays text, on* are listeners, and everything else is an attribute. */
  function el(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...pieces(children));
    return element;
  }

  // The state of a page is in its hash, which works from the file system, too: #component=receipts&sort=accuracy
  const state = {
    read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    text(values) {
      const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
      return `#${new URLSearchParams(kept)}`;
    },
    write(values) { history.replaceState(null, "", state.text(values)); },
  };

  const roomy = window.matchMedia("(min-width: 46rem)").matches; // else less stands open
  const PLACES = { component: ({ component }) => `components/${component}.html`, verdict: ({ component, version }) => `verdicts/${component}/${version}.html` };
  const link = (page, values, ...words) => el("a", { href: PLACES[page] ? PLACES[page](values) : `${page}.html${state.text(values)}` }, ...words);
  const dash = () => el("span", { class: "none" }, el("span", { "aria-hidden": "true" }, "–"), el("span", { class: "unseen" }, "not measured"));
  const share = (value) => (value === null || value === undefined ? dash() : value.toFixed(3));
  const dollars = (value) => (value === null || value === undefined ? dash() : value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: value < 0.1 ? 4 : 2 }));
  const seconds = (value) => (value === null || value === undefined ? dash() : value.toFixed(2));
  const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(value).toFixed(3)}`;

  /** Return a sentence with what stands in backticks as code. */
  const prose = (text) => text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

  const MARKS = { regressed: "▼", inconclusive: "?", incomparable: "≠", improved: "▲", unchanged: "=" }; // the worst first
  /** Return a verdict as a badge: a mark, a word and a colour, so that none of them is needed alone. */
  function badge(verdict) {
    if (!verdict) return el("span", { class: "none" }, "first version");
    return el("span", { class: `badge ${verdict in MARKS ? verdict : ""}` }, el("span", { "aria-hidden": "true" }, MARKS[verdict] || ""), ` ${verdict}`);
  }

  /** Return how people read a version, one that was made of a date and a digest as these. */
  const named = (version) => (version || "").replace(/\b0\.(\d{4})(\d\d)(\d\d)\d{6}\.0\+([0-9a-f]{8})/g, "$1-$2-$3 $4");
  const since = (row) => el("span", { class: "soft since" }, ` since ${named(row.before)}`);

  /** Return by how much a version moved since the one before, and since the anchor where the verdict is a different one, which then says so. */
  const moved = (row) => [row, row.also].filter(Boolean).map((one) => el("div", {}, one.difference === null || one.difference === undefined ? dash() : [el("span", { class: "figure" }, signed(one.difference)), row.also ? null : since(one)]));
  const verdicts = (row) => [row, row.also].filter(Boolean).map((one) => el("div", {}, badge(one.verdict), row.also ? since(one) : null));

  /** Return a difference with its interval in words. */
  const change = (row) => (row.difference === null || row.difference === undefined ? "" : `${row.metric} ${signed(row.difference)}${row.step_low === null || row.step_low === undefined ? "" : `, 95 % interval ${signed(row.step_low)} to ${signed(row.step_high)}`}`);

  /** Say what to do about the verdict on a model; nothing where it is sound, but the version is not the newest or its worst verdict not sound. */
  function following(verdict, worst, latest, words) {
    const sound = (one) => ["improved", "unchanged"].includes(one);
    return sound(verdict) && !(latest && sound(worst)) ? null : el("p", {}, el("strong", {}, latest ? "Next: " : "To see why: "), prose(words));
  }

  /** Return the scale of scores: from 0, or from 0.5 where all are above, so that no step looks larger than it is. */
  const scale = (values) => [values.some((value) => value !== null && value < 0.5) ? 0 : 0.5, 1];

  /** Draw scores over versions as a line without axes; the trend of the component has them. */
  function spark(values) {
    if (values.length < 2) return null;
    const drawing = (name, attributes) => { const made = document.createElementNS("http://www.w3.org/2000/svg", name); for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); return made; };
    const [low, high] = scale(values);
    const at = values.map((value, place) => [2 + (76 * place) / (values.length - 1), value === null ? null : 18 - (16 * (value - low)) / (high - low)]).filter(([, y]) => y !== null);
    const picture = drawing("svg", { class: "spark", viewBox: "0 0 80 20", "aria-hidden": "true" });
    picture.append(drawing("polyline", { points: at.map((point) => point.join(",")).join(" ") }), ...at.slice(-1).map(([cx, cy]) => drawing("circle", { cx, cy, r: 2.2 })));
    return picture;
  }

  /** Return how long ago a moment was, and the moment itself for who wants it exactly. */
  function age(timestamp) {
    const days = Math.floor((Date.now() - Date.parse(timestamp)) / 86400000);
    const words = !(days >= 0) ? timestamp : days === 0 ? "today" : days === 1 ? "yesterday" : days < 60 ? `${days} days ago` : `${Math.round(days / 30.4)} months ago`;
    return el("time", { datetime: timestamp, title: timestamp }, words);
  }

  /** Write a 95 % interval; the pages get none of fewer than five cases. */
  const interval = (value, low, high) => (value === null || value === undefined ? "–" : low === null || low === undefined ? "too few" : `${low.toFixed(3)} to ${high.toFixed(3)}`);

  /** Draw a share and its interval on a line from 0 to 1; the figures stand beside it. */
  function span(value, low, high) {
    const line = el("span", { class: "span", "aria-hidden": "true" });
    if (low !== null && low !== undefined) {
      const band = el("span", { class: "band" });
      band.style.left = `${100 * low}%`;
      band.style.width = `${100 * (high - low)}%`;
      line.append(band);
    }
    if (value !== null && value !== undefined) {
      const dot = el("span", { class: "dot" });
      dot.style.left = `${100 * value}%`;
      line.append(dot);
    }
    return line;
  }

  const PARTS = [["stable_right", "right", "right in every answer"], ["stable_wrong", "wrong", "wrong in every answer"], ["flaky", "flaky", "flaky: now right, now wrong"], ["stable", "unknown", "alike, without a truth"], ["unscored", "unknown", "not told by a single answer"]];
  /** Draw how many stand right, wrong or flaky, with the counts in words. */
  function shares(profile) {
    const bar = el("div", { class: "shares", "aria-hidden": "true" });
    for (const [key, look] of PARTS) {
      if (!profile[key]) continue;
      const part = el("span", { class: look });
      part.style.flexGrow = profile[key];
      bar.append(part);
    }
    const words = [[profile.stable_right, "right"], [profile.stable_wrong, "wrong"], [profile.flaky, "flaky"], [profile.stable, "alike"], [profile.unscored, "not told"]].filter(([many]) => many).map(([many, word]) => `${many} ${word}`);
    return [bar, el("span", { class: "counts" }, words.join(" · ") || "none")];
  }

  /** Tell whether all that is counted is right in every answer. */
  const flawless = (profile) => PARTS.every(([key]) => !profile[key] === (key !== "stable_right"));

  /** Return a table. A column: {title, cell(row), tint(row), shade(row), number, sort}. `options.sort` makes its heads buttons. */
  function table(caption, columns, rows, options = {}) {
    const head = columns.map((column) => {
      const sorted = options.sort === column.sort && column.sort;
      const name = column.sort && options.onsort
        ? el("button", { type: "button", class: "sort", onclick: () => options.onsort(column.sort) }, column.title, el("span", { class: "way", "aria-hidden": "true" }, sorted ? (options.down ? "↓" : "↑") : ""))
        : column.title;
      return el("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": sorted ? (options.down ? "descending" : "ascending") : null }, name);
    });
    const body = rows.map((row) => el("tr", { class: options.mark ? options.mark(row) : null }, columns.map((column, place) => {
      const cell = el(place === 0 ? "th" : "td", { scope: place === 0 ? "row" : null, class: column.tint ? column.tint(row) : column.number ? "number" : column.small ? "small" : null, "data-title": column.title }, column.cell(row));
      if (column.shade) cell.style.setProperty("--share", column.shade(row));
      return cell;
    })));
    return el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
      el("table", { class: options.class }, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
  }

  /** Fill <main>, or say why it cannot be filled. */
  async function page(fill) {
    const main = document.getElementById("main");
    document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
    const again = async () => {
      main.setAttribute("aria-busy", "true");
      const held = document.activeElement.id;
      try {
        main.replaceChildren(...pieces(await fill()));
      } catch (problem) {
        main.replaceChildren(el("h1", {}, "Nothing to show"), el("p", { class: "notice" }, prose(problem.message)));
      }
      main.setAttribute("aria-busy", "false");
      if (held && main.querySelector(`[id="${CSS.escape(held)}"]`)) document.getElementById(held).focus(); // what was chosen in is still there
    };
    window.addEventListener("hashchange", again);
    await again();
  }

  window.site = { script, load, el, state, roomy, link, dash, share, dollars, seconds, signed, prose, badge, named, moved, verdicts, change, following, scale, spark, flawless, age, interval, span, table, page, shares, MARKS, PARTS };
})();
