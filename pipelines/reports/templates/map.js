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

// The place nearest to that of a box where it lies on no placed box. Places below all others are
// always free, so there is one: the map grows downwards.
const freePlace = (box, placed, width) => {
  const within = (x) => Math.min(Math.max(x, box.across), width - box.across);
  const columns = new Set([box.x, ...placed.flatMap((one) => [one.x - one.across - box.across, one.x + one.across + box.across])].map(within));
  let best = [Infinity];
  for (const x of columns) {
    if (Math.abs(x - box.x) >= best[0]) continue;
    const blocked = placed.filter((one) => one.across + box.across - Math.abs(one.x - x) > 0.01)
      .map((one) => [one.y - one.up - box.up, one.y + one.up + box.up]).sort((one, other) => one[0] - other[0]);
    // between the blocked ranges of the column; one that begins in another extends it
    let from = box.up;
    for (const [begin, end] of [...blocked, [Infinity, Infinity]]) {
      if (begin >= from) {
        const y = Math.min(Math.max(box.y, from), begin), far = Math.hypot(x - box.x, y - box.y);
        if (far < best[0]) best = [far, x, y];
      }
      from = Math.max(from, end);
    }
  }
  return best.slice(1);
};

// moves boxes apart until none lies on another; the first ones move least, and a drawing grows if they need it
const movedApart = (boxes, svg, width, height) => {
  boxes.forEach((box, index) => { [box.x, box.y] = freePlace(box, boxes.slice(0, index), width); });
  svg.setAttribute("viewBox", `0 0 ${width} ${Math.max(height, ...boxes.map((box) => box.y + box.up))}`);
};

// A box around a circle and its name, which stands in the circle if there is room, else below it.
const boxOf = (topic, index, r) => {
  const words = wordsIn(topic), half = widest(words) / 2 + 2, high = lines * words.length;
  const inside = Math.hypot(half, high / 2) <= r;
  return { topic, index, words, r, inside, across: Math.max(half, r) + 2, up: inside ? r + 2 : r + 4 + high / 2 };
};

const drawMap = (place) => {
  const across = Math.max(place.clientWidth, 120), many = content.topics.length;
  const largest = Math.max(...content.topics.map((one) => one.weight));
  // circles fill no more than a sixth of the map, and a finger finds the smallest
  const most = Math.min(0.13 * Math.min(across, 560), Math.sqrt(across * 560 / 6 / Math.PI / many) * 1.3);
  const boxes = content.topics.map((topic, index) => boxOf(topic, index, Math.max(12, most * Math.sqrt(Math.max(topic.weight, 0) / (largest || 1)))));
  // room to move: two and a half times the area of all boxes
  const wanted = 2.5 * boxes.reduce((sum, box) => sum + 4 * box.across * box.up, 0) / across;
  const height = Math.max(Math.min(Math.max(0.75 * across, 300), 560, 340 + 30 * many), wanted);
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
  for (const box of boxes) {
    const [over, above] = content.places[box.index];
    box.x = x(over);
    box.y = y(above) + box.up - box.r;
  }
  boxes.sort((one, other) => other.topic.weight - one.topic.weight);
  movedApart(boxes, svg, width, height);
  for (const box of boxes) {
    const { topic } = box, name = names.get(topic.topic);
    const link = shape(svg, "a", { id: `place-${topic.topic}`, href: `#topic-${topic.topic}`, "data-topic": topic.topic,
      "aria-label": `Topic ${topic.topic}: ${name}` });
    if (topic.topic === chosen) link.classList.add("chosen");
    const middle = box.inside ? box.y : box.y - box.up + box.r + 2;
    titled(shape(link, "circle", { class: "topic mark", cx: box.x, cy: middle, r: box.r }), `Topic ${topic.topic}, ${percent(topic.weight)}: ${name}`);
    link.addEventListener("click", () => choose(topic.topic));
    const first = box.inside ? box.y - lines * (box.words.length - 1) / 2 + 4 : middle + box.r + lines;
    box.words.forEach((word, row) => shape(link, "text", { class: "strong name", x: box.x, y: first + lines * row,
      "text-anchor": "middle", "aria-hidden": "true" }, word));
  }
};
