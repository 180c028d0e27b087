"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const shown = 10, leastCorrelation = 0.01;

  // elements -----------------------------------------------------------------------------------
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const shape = (parent, name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const titled = (mark, text) => { shape(mark, "title", {}, text); return mark; };
  const canvas = (place, height, label) => {
    const width = Math.max(place.clientWidth, 120);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    place.replaceChildren(svg);
    return [svg, width];
  };

  // numbers ------------------------------------------------------------------------------------
  const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
  const short = (value) => Math.abs(value) >= 10000
    ? new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value)
    : String(Number(value.toPrecision(3)));
  const ticks = (low, high, wanted) => {
    const span = high - low || Math.abs(high) || 1;
    const rough = span / wanted, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
    return found;
  };
  // first and last of some dates; the year only where it is another
  const ends = (dates) => {
    const [first, last] = [dates[0].slice(0, 10), dates[dates.length - 1].slice(0, 10)];
    const from = first.slice(0, 4) === last.slice(0, 4) ? 5 : 0;
    const both = [[0, first.slice(from), "start"], [dates.length - 1, last.slice(from), "end"]];
    return dates.length > 1 ? both : both.slice(0, 1);
  };
  const scale = (low, high, from, to) => (value) =>
    from + (to - from) * (high === low ? 0.5 : (value - low) / (high - low));

  // words by relevance: l log p(word | topic) + (1 - l) log (p(word | topic) / p(word)) -----------
  const ranked = (topic, weight) => topic.words
    .map(([word, inside, overall], place) => ({ word, inside, overall, bar: topic.word_bars[place],
      score: weight * Math.log(inside) + (1 - weight) * Math.log(inside / overall) }))
    .filter((one) => one.inside > 0 && one.overall > 0)
    .sort((one, other) => other.score - one.score || one.word.localeCompare(other.word))
    .slice(0, shown);
  const named = (topic, number) =>
    ranked(topic, content.relevance_weight).slice(0, number).map((one) => one.word).join(" ");

  // the topics that go with one most
  const together = (topic) => (content.correlations[topic] ?? [])
    .map((correlation, other) => ({ correlation, other }))
    .filter((one) => one.other !== topic && one.correlation >= leastCorrelation)
    .sort((one, other) => other.correlation - one.correlation || one.other - other.other)
    .slice(0, 3)
    .map((one) => `${one.other} (${one.correlation.toFixed(2)})`)
    .join(", ");

  const drawCards = (weight) => {
    const cards = content.topics.map((topic) => {
      const card = element("article", undefined, { class: "card", id: `topic-${topic.topic}` });
      const head = element("h3", `Topic ${topic.topic}`);
      head.append(element("small", percent(topic.weight)));
      if (topic.npmi !== null) head.append(element("small", `NPMI ${topic.npmi.toFixed(2)}`));
      if (topic.bar !== null) head.append(element("small", `L1 error ${topic.bar.toFixed(2)}`));
      const note = content.notes[topic.topic];
      if (note) head.append(element("span", note, { class: "note" }));
      const list = element("ol");
      const rows = ranked(topic, weight);
      const most = Math.max(...rows.map((row) => row.inside));
      for (const row of rows) {
        const item = element("li");
        item.append(
          element("i", undefined, { style: `width:${100 * row.inside / most}%` }),
          element("span", row.word, { class: "word" }),
          element("span", percent(row.inside, 2) + (row.bar === undefined ? "" : ` \u00b1 ${percent(row.bar, 2)}`)));
        list.append(item);
      }
      card.append(head, list);
      const others = together(topic.topic);
      if (others) card.append(element("p", `often with ${others}`, { class: "quiet" }));
      return card;
    });
    document.getElementById("cards").replaceChildren(...cards);
  };

  const choose = (topic, follow) => {
    for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
    const card = document.getElementById(`topic-${topic}`);
    card.classList.add("chosen");
    for (const mark of document.querySelectorAll(`[data-topic="${topic}"]`)) mark.classList.add("chosen");
    if (follow) card.scrollIntoView({ block: "center" });
  };

  // charts -------------------------------------------------------------------------------------
  const drawMap = (place) => {
    const height = Math.min(Math.max(place.clientWidth * 0.75, 260), 460);
    const [svg, width] = canvas(place, height, "Topic map");
    const margin = 46;
    const spread = (axis) => {
      const values = content.places.map((one) => one[axis]);
      return [Math.min(...values), Math.max(...values)];
    };
    const [[left, right], [bottom, top]] = [spread(0), spread(1)];
    // one scale for both axes: distances are what a map is for
    const unit = Math.min((width - 2 * margin) / (right - left || 1), (height - 2 * margin) / (top - bottom || 1));
    const x = (value) => width / 2 + unit * (value - (left + right) / 2);
    const y = (value) => height / 2 - unit * (value - (bottom + top) / 2);
    shape(svg, "line", { class: "grid", x1: x(0), x2: x(0), y1: 8, y2: height - 8 });
    shape(svg, "line", { class: "grid", x1: 8, x2: width - 8, y1: y(0), y2: y(0) });
    const largest = Math.max(...content.topics.map((one) => one.weight));
    const radius = (topic) => Math.max(7, 0.085 * Math.min(width, height) * Math.sqrt(Math.max(topic.weight, 0) / (largest || 1)));
    const order = content.topics.map((topic, place) => [topic, content.places[place]]);
    order.sort(([one], [other]) => other.weight - one.weight);
    for (const [topic, [across, up]] of order) {
      const mark = titled(shape(svg, "circle", {
        class: "topic mark", cx: x(across), cy: y(up), r: radius(topic), tabindex: 0,
        role: "button", "aria-label": `Topic ${topic.topic}: ${named(topic, 5)}`, "data-topic": topic.topic,
      }), `Topic ${topic.topic}, ${percent(topic.weight)}: ${named(topic, 6)}`);
      mark.addEventListener("click", () => choose(topic.topic, true));
      mark.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(topic.topic, true); }
      });
    }
    // numbers last, and none upon another
    const labels = order.map(([topic, [across, up]]) => ({ topic, x: x(across), y: y(up) + 4 }));
    labels.sort((one, other) => one.y - other.y);
    labels.forEach((label, index) => {
      for (const placed of labels.slice(0, index)) {
        if (Math.abs(placed.x - label.x) < 16 && label.y - placed.y < 13) label.y = placed.y + 13;
      }
      shape(svg, "text", { class: "strong", x: label.x, y: label.y, "text-anchor": "middle", "pointer-events": "none" }, label.topic.topic);
    });
  };

  const drawLine = (place, points, settings) => {
    const { height = 170, label, low, high, format = short, area = false, left = 44, yTicks = 4 } = settings;
    const [svg, width] = canvas(place, height, label);
    const known = points.filter((point) => point.y !== null);
    const values = known.map((point) => point.y);
    const least = low ?? Math.min(...values), most = high ?? Math.max(...values);
    const pad = low === undefined ? (most - least || Math.abs(most) || 1) * 0.1 : 0;
    const marks = ticks(least - pad, most + pad, yTicks);
    const bottom = height - 22;
    const y = scale(Math.min(least - pad, ...marks), Math.max(most + pad, ...marks), bottom, 10);
    const places = points.map((point) => point.x);
    const x = scale(Math.min(...places), Math.max(...places), left + 6, width - 10);
    for (const at of marks) {
      shape(svg, "line", { class: "grid", x1: left, x2: width - 4, y1: y(at), y2: y(at) });
      shape(svg, "text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, format(at));
    }
    const path = known.map((point, index) => `${index ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join("");
    if (area && known.length) {
      const [first, last] = [known[0], known[known.length - 1]];
      shape(svg, "path", { class: "area", d: `${path}L${x(last.x)} ${bottom}L${x(first.x)} ${bottom}Z` });
    }
    if (known.length > 1) shape(svg, "path", { class: "trend mark", d: path });
    const dotted = known.length <= 40;
    for (const point of known) {
      if (point.bar) shape(svg, "line", { class: "axis", x1: x(point.x), x2: x(point.x), y1: y(Math.max(point.y - point.bar, 0)), y2: y(point.y + point.bar) });
      if (!dotted && !point.chosen) continue;
      titled(shape(svg, "circle", { class: "dot mark", cx: x(point.x), cy: y(point.y), r: 3.5 }), point.title);
      if (point.chosen) shape(svg, "circle", { class: "ring", cx: x(point.x), cy: y(point.y), r: 8 });
    }
    for (const [at, text, anchor] of settings.labels) {
      shape(svg, "text", { x: anchor === "start" ? left : x(at), y: height - 4, "text-anchor": anchor }, text);
    }
    return [svg, x, y];
  };

  const drawCoherence = (place) => {
    const [taken, alpha] = content.chosen ?? [];
    const tried = content.tried.map((one) => ({ ...one, chosen: one.n_topics === taken && one.alpha0 === alpha }));
    const alphas = [...new Set(tried.map((one) => one.alpha0))];
    const known = tried.filter((one) => one.npmi !== null);
    if (!known.length) { place.textContent = "No model was found."; return; }
    // of several alpha0 the best is drawn for each k
    const best = [...new Set(known.map((one) => one.n_topics))].sort((one, other) => one - other).map((k) =>
      known.filter((one) => one.n_topics === k).reduce((one, other) => other.chosen || (!one.chosen && other.npmi > one.npmi) ? other : one));
    const points = best.map((one) => ({
      x: one.n_topics, y: one.npmi, name: String(one.n_topics), chosen: one.chosen,
      title: `${one.n_topics} topics, alpha0 ${one.alpha0}: NPMI ${one.npmi.toFixed(3)}`,
    }));
    const room = points.length <= 12 ? points : [points[0], points[points.length - 1]];
    drawLine(place, points, {
      height: 220, label: `Coherence by number of topics${alphas.length > 1 ? ", best alpha0" : ""}`,
      labels: room.map((point) => [point.x, point.name, "middle"]),
    });
  };

  const drawSpectrum = (place) => {
    const height = 220, left = 44, bottom = height - 22;
    const [svg, width] = canvas(place, height, "Captured share of each eigenvalue");
    const shares = content.spectrum.map((seen, index) => content.exact_spectrum[index] ? seen / content.exact_spectrum[index] : 0);
    const y = scale(0, Math.max(1, ...shares), bottom, 10);
    for (const at of [0, 0.25, 0.5, 0.75, 1]) {
      shape(svg, "line", { class: at ? "grid" : "axis", x1: left, x2: width - 4, y1: y(at), y2: y(at) });
      shape(svg, "text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, String(at));
    }
    const step = (width - left - 8) / shares.length;
    shares.forEach((share, index) => {
      titled(shape(svg, "rect", {
        class: `bar mark${share < 0.5 ? " low" : ""}`, x: left + 4 + index * step, width: Math.max(step * 0.72, 1),
        y: y(share), height: Math.max(bottom - y(share), 1), rx: 2,
      }), `eigenvalue ${index + 1}: ${share.toFixed(2)} of ${content.exact_spectrum[index].toExponential(2)}`);
      if (step > 16 || index === 0 || index === shares.length - 1) {
        shape(svg, "text", { x: left + 4 + (index + 0.36) * step, y: height - 4, "text-anchor": "middle" }, index + 1);
      }
    });
  };

  const drawSteps = (place) => {
    const steps = content.steps, row = 40;
    const [svg, width] = canvas(place, steps.length * row + 4, "Seconds by step");
    const most = Math.max(...steps.map((step) => step.seconds), 1e-9);
    steps.forEach((step, index) => {
      const top = index * row;
      shape(svg, "text", { class: "strong", x: 0, y: top + 14 }, step.step);
      shape(svg, "text", { x: width, y: top + 14, "text-anchor": "end" }, `${short(step.seconds)} s`);
      titled(shape(svg, "rect", { class: "bar mark", x: 0, y: top + 20, height: 10, rx: 3,
        width: Math.max(width * step.seconds / most, 2) }), `${step.step}: ${short(step.seconds)} s`);
    });
  };

  const panel = (parent, heading, value) => {
    const made = element("div", undefined, { class: "panel" });
    made.append(element("h3", heading, { title: heading }));
    if (value !== undefined) made.append(element("p", value, { class: "quiet" }));
    const chart = element("div", undefined, { class: "chart" });
    made.append(chart);
    parent.append(made);
    return chart;
  };

  // a panel is as wide as their number lets it be: all stand before the first chart is drawn
  const drawPanels = (parent, items, headed, drawn) => {
    parent.replaceChildren();
    const charts = items.map((item, index) => panel(parent, ...headed(item, index)));
    items.forEach((item, index) => drawn(item, index, charts[index]));
  };

  const drawShares = ({ dates, shares, bars }) => (parent) => {
    const error = (place, index) => bars.length ? bars[place][index] : 0;
    const most = Math.min(1, Math.max(...shares.flatMap((row, place) => row.map((share, index) => share + error(place, index))), 0.01));
    const last = shares[shares.length - 1];
    const headed = (topic, index) => [`${topic.topic} ${named(topic, 3)}`, `${percent(last[index])} at the end`];
    drawPanels(parent, content.topics, headed, (topic, index, chart) => {
      const points = dates.map((date, place) => ({
        x: place, y: shares[place][index], bar: error(place, index),
        title: `${date}: ${percent(shares[place][index], bars.length ? 1 : 0)}${bars.length ? ` ± ${percent(error(place, index), 1)}` : ""}`,
      }));
      drawLine(chart, points, {
        height: 96, label: `Share of topic ${topic.topic} over time`, low: 0, high: most, area: true, left: 34,
        yTicks: 2, format: (value) => percent(value, most < 0.05 ? 1 : 0),
        labels: ends(dates),
      });
    });
  };

  const drawRuns = (parent) => {
    const kinds = [
      ["captured", "Captured spectrum", "the smallest share of an eigenvalue, near 1 is good", { low: 0, high: 1 }],
      ["outside_share", "Tokens outside the vocabulary", "share of all tokens", { low: 0, format: percent }],
      ["effective_documents", "Effective documents", "below some hundreds a few long ones rule", { low: 0 }],
      ["pair_distance", "Distance from the run before", "total variation of the pair distributions", { low: 0 }],
      ["documents", "Documents counted", "in all", {}],
    ];
    const measured = kinds.filter(([name]) => content.runs.some((run) => run[name] !== null));
    const dates = content.runs.map((run) => run.date);
    drawPanels(parent, measured, ([, heading, hint]) => [heading, hint], ([name, heading, , settings], index, chart) => {
      const points = content.runs.map((run, place) => ({
        x: place, y: run[name],
        title: `${run.date.slice(0, 10)}: ${run[name] === null ? "not measured" : short(run[name])}${run.outcome ? `, ${run.outcome}` : ""}`,
      }));
      drawLine(chart, points, { label: heading, labels: ends(dates), ...settings });
    });
  };

  const charts = { map: drawMap, coherence: drawCoherence, spectrum: drawSpectrum, steps: drawSteps };
  const panels = { panels: drawShares(content.shares), "period-panels": drawShares(content.periods), runs: drawRuns };
  const draw = () => {
    for (const place of document.querySelectorAll("[data-chart]")) charts[place.dataset.chart](place);
    for (const [name, make] of Object.entries(panels)) {
      const parent = document.getElementById(name);
      if (parent) make(parent);
    }
  };

  const slider = document.getElementById("relevance");
  if (slider) {
    const follow = () => {
      document.getElementById("lambda").textContent = Number(slider.value).toFixed(2);
      drawCards(Number(slider.value));
    };
    slider.addEventListener("input", follow);
    follow();
  }
  let drawn = 0;
  const again = () => {
    if (document.body.clientWidth === drawn) return;
    drawn = document.body.clientWidth;
    draw();
  };
  new ResizeObserver(again).observe(document.body);
  again();
})();
