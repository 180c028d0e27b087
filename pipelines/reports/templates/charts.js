// charts of shares, of runs and of compared models
const drawLine = (place, points, settings) => {
  const { height = 170, label, low, high, tickText = numberTicks, area = false, left = 44, yTicks = 4, above = 0 } = settings;
  const [svg, width] = canvas(place, height, label);
  const known = points.filter((point) => point.y !== null);
  const values = known.map((point) => point.y);
  const least = low ?? Math.min(...values), most = high ?? Math.max(...values);
  const pad = low === undefined ? (most - least || Math.abs(most) || 1) * 0.1 : 0;
  const marks = ticks(least - pad, most + pad, yTicks), format = tickText(marks);
  const bottom = height - 22;
  const y = scale(marks[0], marks[marks.length - 1] + above, bottom, 10);
  const places = points.map((point) => point.x);
  const x = scale(Math.min(...places), Math.max(...places), left + 6, width - 10);
  for (const at of marks) {
    shape(svg, "line", { class: "grid", x1: left, x2: width - 4, y1: y(at), y2: y(at) });
    shape(svg, "text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, format(at));
  }
  if (settings.band) {  // values in the band do not differ beyond noise
    const [from, to] = settings.band.map((value) => y(Math.min(Math.max(value, low ?? value), high ?? value)));
    titled(shape(svg, "rect", { class: "range", x: left, width: width - left - 4, y: to, height: Math.max(from - to, 1) }), settings.bandTitle);
  }
  const barred = known.some((point) => point.bar);
  const firm = known.filter((point) => !point.hollow);
  const path = firm.map((point, index) => `${index ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join("");
  if (area && firm.length) {
    const [first, last] = [firm[0], firm[firm.length - 1]];
    shape(svg, "path", { class: "area", d: `${path}L${x(last.x)} ${bottom}L${x(first.x)} ${bottom}Z` });
  }
  const upper = (point) => y(Math.min(point.y + (point.bar ?? 0), (high ?? Infinity) + above)).toFixed(1), lower = (point) => y(Math.max(point.y - (point.bar ?? 0), low ?? -Infinity)).toFixed(1);
  const dotted = known.length <= 40;
  if (barred && !dotted) {  // too many for whiskers: a band
    const above = known.map((point, index) => `${index ? "L" : "M"}${x(point.x).toFixed(1)} ${upper(point)}`).join("");
    const below = [...known].reverse().map((point) => `L${x(point.x).toFixed(1)} ${lower(point)}`).join("");
    shape(svg, "path", { class: "band", d: `${above}${below}Z` });
  }
  // lines and areas end before a hollow point, which is drawn as a separate dot
  if (firm.length > 1) shape(svg, "path", { class: barred ? "trend thin mark" : "trend mark", d: path });
  for (const point of known) {
    if (!dotted && !point.chosen && !point.hollow) continue;
    if (point.bar) {  // with caps, in front of line and area
      const at = x(point.x), [high, low] = [upper(point), lower(point)];
      shape(svg, "path", { class: "whisker", d: `M${at - 3.5} ${high}h7M${at} ${high}V${low}M${at - 3.5} ${low}h7` });
    }
    titled(shape(svg, "circle", { class: point.hollow ? "dot mark hollow" : "dot mark", cx: x(point.x), cy: y(point.y), r: barred ? 2.5 : 3.5 }), point.title);
    if (point.chosen) shape(svg, "circle", { class: "ring", cx: x(point.x), cy: y(point.y), r: 8 });
  }
  for (const [at, text, anchor] of settings.labels) {
    const across = { start: 0, end: width - 4 }[anchor] ?? x(points[at].x);
    shape(svg, "text", { class: "foot", x: across, y: height - 4, "text-anchor": anchor }, text);
  }
};

const line = (place, text) => place.replaceChildren(element("p", text, { class: "line" }));

const drawTried = (place, read, what, unit, settings) => {
  const [taken, alpha] = content.chosen ?? [];
  // the fit may search for alpha0 again, and find a value that no compared model has
  const alike = new Set(content.tried.map((one) => one.alpha0)).size === 1;
  const tried = content.tried.map((one) => ({ ...one, chosen: one.n_topics === taken && (alike || one.alpha0 === alpha) }));
  const alphas = [...new Set(tried.map((one) => one.alpha0))];
  const known = tried.filter((one) => read(one) !== null);
  if (!known.length) { line(place, `No model was found, or no ${what} is known.`); return; }
  // with several values of alpha0, draw the best one for each k
  const best = [...new Set(known.map((one) => one.n_topics))].sort((one, other) => one - other).map((k) =>
    known.filter((one) => one.n_topics === k).reduce((one, other) => other.chosen || (!one.chosen && read(other) > read(one)) ? other : one));
  if (best.length === 1) {
    line(place, `Only ${best[0].n_topics} ${content.what.replace(/y$/, "ie")}s were tried: ${unit} ${read(best[0]).toFixed(3)}.`);
    return;
  }
  const points = best.map((one) => ({
    x: one.n_topics, y: read(one) - (settings.from ?? 0), bar: settings.bar, name: String(one.n_topics), chosen: one.chosen,
    title: `${one.n_topics} ${content.what.replace(/y$/, "ie")}s, alpha0 ${one.alpha0}: ${unit} ${read(one).toFixed(3)}`,
  }));
  const room = points.length <= 12 ? points.map((_, at) => at) : [0, points.length - 1];
  drawLine(place, points, {
    ...settings, height: 220, label: `${what[0].toUpperCase()}${what.slice(1)} by number of ${content.what.replace(/y$/, "ie")}s${alphas.length > 1 ? ", best alpha0" : ""}`,
    labels: room.map((at) => [at, points[at].name, "middle"]),
  });
};

// the axis includes 0, so that differences are seen relative to the values
const drawCoherence = (place) => {
  const { column, name } = content.coherences.find((one) => one.key === place.dataset.coherence);
  const read = (one) => coherenceOf(one, column);
  const values = content.tried.map(read).filter((value) => value !== null);
  drawTried(place, read, "coherence", name, { low: Math.min(0, ...values), high: Math.max(0, ...values) });
};
// A log-likelihood of 0 has no meaning: the chart shows how far each is below the best, and the noise. Its axis is at
// least four times the noise and a hundredth of a nat, so that small differences look small.
const leastNats = 0.01;
const drawHeldOut = (place) => {
  const read = (one) => one.held_out && (one.held_out.even + one.held_out.odd) / 2;
  const values = content.tried.map(read).filter((value) => value !== null);
  const best = Math.max(...values), noise = content.noise ?? 0;
  drawTried(place, read, "held-out log-likelihood", "log-likelihood", {
    from: best, low: Math.min(Math.min(...values) - best - noise, -4 * noise, -leastNats), high: 0, above: noise, bar: noise, left: 60,
    ...(noise ? { band: [-noise, 0], bandTitle: `noise: ${short(noise)} nats` } : {}),
  });
};

const nothing = 0.1;  // bars that differ by less are not worth a chart
const drawSpectrum = (place) => {
  const height = 220, left = 44, bottom = height - 22;
  const shares = content.spectrum.map((seen, index) => content.exact_spectrum[index] ? seen / content.exact_spectrum[index] : 0);
  const [least, most] = [Math.min(...shares), Math.max(...shares)];
  if (shares.length > 1 && most - least < nothing) {
    const seen = [...new Set([percent(least, 0), percent(most, 0)])].join(" to ");
    line(place, `The basis captures ${seen} of each of the ${shares.length} leading eigenvalues.`);
    return;
  }
  const [svg, width] = canvas(place, height, "Captured share of each eigenvalue");
  const y = scale(0, Math.max(1, ...shares), bottom, 10);
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    shape(svg, "line", { class: at ? "grid" : "axis", x1: left, x2: width - 4, y1: y(at), y2: y(at) });
    shape(svg, "text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, String(at));
  }
  const step = (width - left - 8) / shares.length;
  shares.forEach((share, index) => {
    titled(shape(svg, "rect", {
      class: `bar mark${share < 0.5 ? " low" : ""}`, x: left + 4 + index * step, width: Math.max(step * 0.72, 1),
      y: y(share), height: Math.max(bottom - y(share), 1), rx: 2,
    }), `eigenvalue ${index + 1}: ${share.toFixed(2)} of ${content.exact_spectrum[index].toExponential(2)}`);
    if (step > 16 || index === 0 || index === shares.length - 1) {
      shape(svg, "text", { class: "foot", x: left + 4 + (index + 0.36) * step, y: height - 4, "text-anchor": "middle" }, index + 1);
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

const panel = (parent, heading, value, finish) => {
  const made = element("div", undefined, { class: "panel" });
  made.append(element("h3", heading, { title: heading }));
  if (value !== undefined) made.append(element("p", value, { class: "quiet" }));
  if (finish) finish(made);
  const chart = element("div", undefined, { class: "chart" });
  made.append(chart);
  parent.append(made);
  return chart;
};

// the width of a panel depends on the number of panels, so add all before drawing the first chart
const drawPanels = (parent, items, headed, drawn) => {
  parent.replaceChildren();
  const charts = items.map((item, index) => panel(parent, ...headed(item, index)));
  items.forEach((item, index) => drawn(item, index, charts[index]));
};

const drawShares = ({ dates, shares, bars, rejected }) => {
  const enlarged = new Set(), alone = listed.length === 1;
  const error = (place, index) => bars.length ? bars[place][index] : 0;
  const mostOf = (indexes) => Math.min(1, Math.max(...shares.flatMap((row, place) => indexes.map((index) => row[index] + error(place, index))), 0.01));
  const last = shares.length - 1;
  // two standard errors of the difference from first to last
  const noise = (index) => 2 * Math.hypot(error(0, index), error(last, index));
  const isNoise = (index) => bars.length && Math.abs(shares[last][index] - shares[0][index]) <= noise(index);
  const drawn = (parent) => {
    if (dates.length === 1) {
      line(parent, `Only ${dates[0].slice(0, 10)} so far${rejected ? ", of a rejected model" : ""}: there is nothing to compare it with yet.`);
      return;
    }
    const most = mostOf(listed.map(({ index }) => index)), at = along(dates);
    const toggle = (topic) => (made) => {
      const large = enlarged.has(topic.topic), name = large ? "Reduce" : "Enlarge";
      made.classList.toggle("large", large);
      const button = element("button", name, { type: "button", "aria-expanded": large, "aria-label": `${name} ${names.get(topic.topic)}` });
      button.addEventListener("click", () => {
        if (!enlarged.delete(topic.topic)) enlarged.add(topic.topic);
        drawn(parent);
        parent.querySelectorAll("button")[listed.findIndex((one) => one.topic === topic)].focus();
      });
      made.lastElementChild.append(" ", button);
    };
    const atEnd = (index) => `${percent(shares[last][index])} ${rejected ? "in the rejected model" : "at the end"}`;
    // the page of a single topic already has its name
    const headed = ({ topic, index }) => alone
      ? [`${atEnd(index)}${isNoise(index) ? ", within the noise of the start" : ""}`]
      : [names.get(topic.topic), `${atEnd(index)}${isNoise(index) ? ", noise" : ""}`, toggle(topic)];
    drawPanels(parent, listed, headed, ({ topic, index }, _, chart) => {
      const large = alone || enlarged.has(topic.topic);
      const points = dates.map((date, place) => ({
        x: at[place], y: shares[place][index], bar: error(place, index), hollow: rejected && place === last,
        title: `${date}${rejected && place === last ? ", rejected, not published" : ""}: ${percent(shares[place][index])}${bars.length ? ` ± ${percent(error(place, index))}` : ""}`,
      }));
      drawLine(chart, points, {
        height: large ? 240 : 120, label: `Share of ${content.what} ${topic.topic} over time`, low: 0, high: large ? mostOf([index]) : most,
        area: true, left: 40, yTicks: large ? 5 : 3, tickText: shareTicks, labels: ends(dates, large ? quarters(dates) : []),
        ...(bars.length ? { band: [shares[0][index] - noise(index), shares[0][index] + noise(index)], bandTitle: "within noise of the first share" } : {}),
      });
    });
  };
  return drawn;
};

const drawRuns = (parent) => {
  const runs = content.runs;
  const measured = content.run_charts.filter(({ key }) => runs.some((run) => run[key] !== null));
  // the axis has the days of the documents if they are known
  const dates = runs.every((run) => run.until) ? runs.map((run) => run.until) : runs.map((run) => run.date);
  drawPanels(parent, measured, ({ title, note }) => [title, note], ({ key, title, low, high, percent }, index, chart) => {
    const known = runs.map((run) => run[key]).filter((value) => value !== null);
    if (same(known)) {
      const often = known.length === 1 ? "in one run; a line needs two" : `in all ${known.length} runs`;
      line(chart, `${extent(known)} ${often}`);
      return;
    }
    const written = distinctly(known);
    const points = runs.map((run, place) => ({
      x: place, y: run[key],
      title: `${run.until ? `documents to ${run.until}, ` : ""}run of ${run.date.slice(0, 10)}: ${run[key] === null ? "not measured" : written(run[key])}${run.outcome ? `, ${run.outcome}` : ""}`,
    }));
    drawLine(chart, points, {
      label: title, labels: ends(dates), low: low ?? undefined, high: high ?? undefined, tickText: percent ? shareTicks : undefined,
    });
  });
};
