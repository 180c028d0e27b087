// map of topics: each has a circle with its name, which links to its card
const wordsIn = (topic) => {
  const cut = (word) => word.length > 12 ? `${word.slice(0, 11)}…` : word;
  const topicWords = topic.label ? topic.label.split(/\s+/) : names.get(topic.topic).split(" ");
  const [first, second, ...more] = topicWords.map(cut);
  // an ellipsis shows that a name has more words
  return second === undefined ? [first] : [first, topic.label && more.length ? `${second}…` : second];
};
const lines = 13;  // height of a line of text of 12 pixels
const pen = document.createElement("canvas").getContext("2d");
const widest = (words) => {
  pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(...words.map((word) => pen.measureText(word).width));
};

// moves boxes apart, as little as possible, until no two overlap
const partedIn = (boxes, width, height) => {
  const within = (box) => {
    box.x = Math.min(Math.max(box.x, box.across), width - box.across);
    box.y = Math.min(Math.max(box.y, box.up), height - box.up);
  };
  for (let turn = 0; turn < 300; turn += 1) {
    let moved = false;
    for (const [index, one] of boxes.entries()) {
      for (const other of boxes.slice(0, index)) {
        const over = one.across + other.across - Math.abs(one.x - other.x);
        const high = one.up + other.up - Math.abs(one.y - other.y);
        if (over <= 0.5 || high <= 0.5) continue;
        moved = true;
        // of two boxes at the same place, the later one moves down
        if (over < high) {
          const step = (one.x < other.x ? -1 : 1) * over / 2;
          one.x += step; other.x -= step;
        } else {
          const step = (one.y < other.y ? -1 : 1) * high / 2;
          one.y += step; other.y -= step;
        }
      }
    }
    boxes.forEach(within);
    if (!moved) return;
  }
};

const drawMap = (place) => {
  const height = Math.min(Math.max(place.clientWidth * 0.75, 300 + (place.clientWidth < 500 ? 14 : 6) * content.topics.length), 560, 340 + 30 * content.topics.length);
  const [svg, width] = canvas(place, height, "Topic map", "group");
  const margin = 46;
  const spread = (axis) => {
    const values = content.places.map((one) => one[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [bottom, top]] = [spread(0), spread(1)];
  // both axes have the same scale, because the map shows distances
  const unit = Math.min((width - 2 * margin) / (right - left || 1), (height - 2 * margin) / (top - bottom || 1));
  const x = (value) => width / 2 + unit * (value - (left + right) / 2);
  const y = (value) => height / 2 - unit * (value - (bottom + top) / 2);
  const largest = Math.max(...content.topics.map((one) => one.weight));
  const least = content.topics.length > (width < 500 ? 12 : 20) ? 14 : 22;  // large enough for the words
  const radius = (topic) => Math.max(least, 0.11 * Math.min(width, height) * Math.sqrt(Math.max(topic.weight, 0) / (largest || 1)));
  const boxes = content.topics.map((topic, index) => {
    const words = wordsIn(topic);
    const across = widest(words) / 2 + 3;
    const [over, above] = content.places[index];
    return { topic, words, r: radius(topic), across, up: lines * words.length / 2 + 2, x: x(over), y: y(above) };
  });
  boxes.sort((one, other) => other.topic.weight - one.topic.weight);
  for (const box of boxes) { box.across = Math.max(box.across, 0.7 * box.r); box.up = Math.max(box.up, 0.7 * box.r); }
  partedIn(boxes, width, height);
  const circles = boxes.map((box) => {
    const { topic } = box, name = names.get(topic.topic);
    const link = shape(svg, "a", { id: `place-${topic.topic}`, href: `#topic-${topic.topic}`, "data-topic": topic.topic,
      "aria-label": `Topic ${topic.topic}: ${name}` });
    if (topic.topic === chosen) link.classList.add("chosen");
    titled(shape(link, "circle", { class: "topic mark", cx: box.x, cy: box.y,
      r: Math.min(box.r, box.x + 8, width - box.x + 8, box.y + 8, height - box.y + 8) }), `Topic ${topic.topic}, ${percent(topic.weight)}: ${name}`);
    link.addEventListener("click", () => choose(topic.topic));
    return [link, box];
  });
  // draw words last, so that no circle hides them
  for (const [, box] of circles) {
    const first = box.y - lines * (box.words.length - 1) / 2 + 4;
    box.words.forEach((word, line) => shape(svg, "text", { class: "strong name", x: box.x, y: first + lines * line,
      "text-anchor": "middle", "pointer-events": "none", "aria-hidden": "true" }, word));
  }
};
