// numbers of clusters and factors: a bar for each, with a whisker for its error and a band for noise
const drawMeasures = (parent) => {
  const error = (list, index) => list.length ? list[index] ?? 0 : 0;
  const row = 24, room = 96;
  drawPanels(parent, content.measures, ({ name, note }) => [name[0].toUpperCase() + name.slice(1), note], (measure, place, chart) => {
    const { name, values, bars, noise } = measure;
    const written = (value) => measure.percent ? percent(value) : short(value);
    const told = (index) => written(values[index]) + (bars.length && bars[index] !== null ? ` ± ${measure.percent ? percent(bars[index], bars[index] < 0.001 ? 2 : 1) : short(bars[index])}` : "");
    const known = values.map((value, index) => ({ value, index })).filter((one) => one.value !== null);
    const [svg, width] = canvas(chart, values.length * row + 4, `${name}: ${values.length} ${content.what}s`);
    const ends = known.flatMap(({ value, index }) => [value - error(bars, index), value + error(bars, index), -error(noise, index), error(noise, index)]);
    const low = noise.length ? Math.min(0, ...ends) : 0, high = Math.max(...ends, 0) || 1;
    const called = content.topics.map((topic) => topic.label ? `${topic.topic} ${topic.label}` : names.get(topic.topic));
    const left = Math.min(widest(called) + 8, 0.4 * width), most = Math.floor(left / 7.4);
    const x = scale(low, high, left, width - room);
    content.topics.forEach((topic, index) => {
      const top = index * row + 4, middle = top + 8, label = called[index];
      shape(svg, "text", { class: "strong", x: 0, y: middle + 4 }, label.length > most ? `${label.slice(0, most - 1)}…` : label);
      const value = values[index];
      if (value === null) { shape(svg, "text", { x: width, y: middle + 4, "text-anchor": "end" }, "new"); return; }
      const from = Math.min(x(0), x(value));
      if (noise.length) shape(svg, "rect", { class: "noise", x: x(-error(noise, index)), width: x(error(noise, index)) - x(-error(noise, index)), y: top - 2, height: 20 });
      titled(shape(svg, "rect", { class: "bar mark", x: from, width: Math.max(Math.abs(x(value) - x(0)), 1), y: top + 1, height: 14, rx: 2 }),
        `${label}: ${told(index)}${noise.length ? `, of noise ${written(noise[index])}` : ""}`);
      if (error(bars, index)) shape(svg, "line", { class: "axis", x1: x(Math.max(value - bars[index], low)), x2: x(value + bars[index]), y1: middle, y2: middle });
      shape(svg, "text", { x: width, y: middle + 4, "text-anchor": "end" }, told(index));
    });
  });
};

// CSV for spreadsheets, with a row for each cluster or factor
const asTable = () => {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    // quote texts that a spreadsheet would run as a formula
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const told = [...new Set(content.topics.flatMap((topic) => Object.keys(topic.told)))];
  const columns = content.measures.flatMap(({ name, values, bars, noise }) => [[name, values],
    ...(bars.length ? [[`${name}, error`, bars]] : []), ...(noise.length ? [[`${name}, of noise`, noise]] : [])]);
  const extra = told.filter((name) => !columns.some(([other]) => other === name));
  const head = [content.what, "label", "share", "error bar", ...columns.map(([name]) => name), ...extra];
  const rows = content.topics.map((topic, index) => [topic.topic, topic.label, topic.weight, topic.bar,
    ...columns.map(([, values]) => values[index]), ...extra.map((name) => topic.told[name])]);
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
};
