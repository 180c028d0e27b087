// plane of the means: each cluster has an outline, a dot and a name, which links to its card
const drawPlane = (place) => {
  const { places, ellipses, bars, before } = content.plane;
  const height = Math.min(Math.max(place.clientWidth * 0.75, 300), 440);
  const [svg, width] = canvas(place, height, "Where the clusters lie", "group");
  const margin = 34;
  // how far an outline extends along each axis
  const reach = ([long, thin, angle]) => [Math.hypot(long * Math.cos(angle), thin * Math.sin(angle)), Math.hypot(long * Math.sin(angle), thin * Math.cos(angle))];
  const spread = (axis) => {
    const ends = places.flatMap((one, index) => [one[axis] - reach(ellipses[index])[axis], one[axis] + reach(ellipses[index])[axis]]);
    ends.push(...before.filter((one) => one !== null).map((one) => one[axis]));
    return [Math.min(...ends), Math.max(...ends)];
  };
  const [[left, right], [bottom, top]] = [spread(0), spread(1)];
  // both axes have the same scale, because the map shows distances
  const unit = Math.min((width - 2 * margin) / (right - left || 1), (height - 2 * margin) / (top - bottom || 1));
  const x = (value) => width / 2 + unit * (value - (left + right) / 2);
  const y = (value) => height / 2 - unit * (value - (bottom + top) / 2);
  const largest = Math.max(...content.topics.map((one) => one.weight));
  const boxes = content.topics.map((topic, index) => {
    // a cluster without a name is called by the coordinate in which it differs most
    const [first] = topic.coordinates, label = topic.label ?? (first ? `${first[1] < 0 ? "\u2212" : "+"}${first[0]}` : "");
    const words = [String(topic.topic), ...(label ? [label.length > 14 ? `${label.slice(0, 13)}…` : label] : [])];
    const [over, above] = places[index];
    const r = 3 + 6 * Math.sqrt(Math.max(topic.weight, 0) / (largest || 1));
    return { topic, index, words, r, across: widest(words) / 2 + 3,
      up: lines * words.length / 2 + 2, x: x(over), y: y(above) - Math.max(r, Math.min(unit * reach(ellipses[index])[1], 40)) - lines * words.length / 2 - 2 };
  });
  boxes.sort((one, other) => other.topic.weight - one.topic.weight);
  movedApart(boxes, svg, width, height);
  for (const { topic, index, r } of boxes) {
    const [long, thin, angle] = ellipses[index], [over, above] = places[index];
    const name = names.get(topic.topic), at = [x(over), y(above)];
    const link = shape(svg, "a", { id: `place-${topic.topic}`, href: `#topic-${topic.topic}`, "data-topic": topic.topic,
      "aria-label": `${title} ${topic.topic}: ${name}, ${percent(topic.weight)}` });
    if (topic.topic === chosen) link.classList.add("chosen");
    shape(link, "ellipse", { class: `spread mark${content.notes[topic.topic] === "moved" ? " moved" : ""}`, cx: at[0], cy: at[1], rx: Math.max(unit * long, 4), ry: Math.max(unit * thin, 4),
      transform: `rotate(${(-angle * 180 / Math.PI).toFixed(3)} ${at[0]} ${at[1]})` });
    if (before[index]) {
      const [from, below] = before[index];
      shape(link, "line", { class: "before", x1: x(from), y1: y(below), x2: at[0], y2: at[1] });
      shape(link, "circle", { class: "before", cx: x(from), cy: y(below), r: 4 });
    }
    titled(shape(link, "circle", { class: "topic mark", cx: at[0], cy: at[1], r }), `${name}, ${percent(topic.weight)}: ${facts(topic).slice(1).join(", ")}`);
    if (bars.length) {
      const half = unit * bars[index];
      shape(link, "line", { class: "axis bars", x1: at[0] - half, x2: at[0] + half, y1: at[1], y2: at[1] });
      shape(link, "line", { class: "axis bars", x1: at[0], x2: at[0], y1: at[1] - half, y2: at[1] + half });
    }
    link.addEventListener("click", () => choose(topic.topic));
  }
  // draw words last, so that no outline hides them
  for (const box of boxes) {
    const first = box.y - lines * (box.words.length - 1) / 2 + 4;
    box.words.forEach((word, row) => shape(svg, "text", { class: "strong name", x: box.x, y: first + lines * row,
      "text-anchor": "middle", "pointer-events": "none", "aria-hidden": "true" }, word));
  }
};
