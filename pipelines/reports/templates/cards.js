// cards: a topic with its name, words, trend and a document
const shown = 10, leastCorrelation = 0.01;
// all topics, or only the topic of a page about one topic
const listed = content.topics.map((topic, index) => ({ topic, index })).filter(({ topic }) => content.only === undefined || topic.topic === content.only);

// words by relevance: l log p(word | topic) + (1 - l) log (p(word | topic) / p(word))
const ranked = (topic, weight) => topic.words
  .map(([word, inside, overall], place) => ({ word, inside, overall, bar: topic.word_bars[place],
    score: weight * Math.log(inside) + (1 - weight) * Math.log(inside / overall) }))
  .filter((one) => one.inside > 0 && one.overall > 0)
  .sort((one, other) => other.score - one.score || one.word.localeCompare(other.word))
  .slice(0, content.only === undefined ? shown : topic.words.length);
// clusters and factors show their largest coordinates instead of words
const signed = (value) => `${value < 0 ? "−" : "+"}${short(Math.abs(value))}`;
const rowsOf = (topic, weight) => {
  const rows = topic.words.length
    ? ranked(topic, weight).map(({ word, inside, bar }) => ({ word, size: inside,
      value: percent(inside, 2) + (bar === undefined ? "" : ` \u00b1 ${percent(bar, 2)}`) }))
    : topic.coordinates.map(([word, value]) => ({ word, size: Math.abs(value), value: signed(value) }));
  const most = Math.max(...rows.map((row) => row.size)) || 1;
  return rows.map((row) => ({ ...row, share: row.size / most }));
};
const names = new Map(content.topics.map((topic, place) => [topic.topic, content.names[place]]));

// the topics whose shares correlate most with those of a topic
const together = (topic) => (content.correlations[topic] ?? [])
  .map((correlation, other) => ({ correlation, other }))
  .filter((one) => one.other !== topic && one.correlation >= leastCorrelation)
  .sort((one, other) => other.correlation - one.correlation || one.other - other.other)
  .slice(0, 3)
  .map((one) => `${one.other} (${one.correlation.toFixed(2)})`)
  .join(", ");

// the topic with the most similar words
const nearest = (topic) => (content.distances[topic] ?? [])
  .map((distance, other) => ({ distance, other }))
  .filter((one) => one.other !== topic)
  .sort((one, other) => one.distance - other.distance)[0];

// shares by day of the documents if they are known, otherwise by night
const trends = [content.periods, content.shares].find((one) => one.dates.length > 1);
const drawTrend = (card, place) => {
  if (!trends) return;
  const { dates, shares } = trends;
  const row = element("p", undefined, { class: "trend-line" });
  const values = shares.map((one) => one[place]), last = values.length - 1;
  const told = `${percent(values[0])} → ${percent(values[last])}`;
  const svg = shape(row, "svg", { viewBox: "0 0 100 24", role: "img", preserveAspectRatio: "none",
    "aria-label": `${dates[0]} to ${dates[last]}: ${told}` });
  const at = along(dates), most = Math.max(...values, 0.001);
  const x = scale(at[0], at[last], 1, 99), y = scale(0, most, 22, 2);
  const path = values.map((value, index) => `${index ? "L" : "M"}${x(at[index]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  shape(svg, "path", { class: "trend", d: path, "vector-effect": "non-scaling-stroke" });
  row.append(element("span", told, { title: `${dates[0]} to ${dates[last]}` }));
  card.append(row);
};

const drawSample = (card, sample) => {
  if (!sample) return;
  const box = element("details", undefined, { class: "sample" });
  box.open = document.body.clientWidth > 600;
  box.append(element("summary", `From a document, ${percent(sample.share, 0)} this topic`));
  box.append(element("blockquote", sample.text, { dir: "auto" }));
  box.append(element("p", `${sample.id ? `${sample.id} · ` : ""}${sample.shard}, document ${sample.number.toLocaleString("en")}`, { class: "quiet" }));
  card.append(box);
};

const drawNearest = (card, nearest) => {
  if (!nearest.length) return;
  const box = element("details", undefined, { class: "sample" });
  box.open = document.body.clientWidth > 600;
  box.append(element("summary", nearest.length === 1 ? "The row nearest to the mean" : `The ${nearest.length} rows nearest to the mean`));
  const list = element("ol", undefined, { class: "near" });
  for (const one of nearest) {
    const item = element("li");
    item.append(
      element("span", one.id || `row ${one.row.toLocaleString("en")} of ${one.source}`, { class: "word", title: `row ${one.row} of ${one.source}`, dir: "auto" }),
      element("span", short(one.distance), { class: "value", title: "distance from the mean" }));
    list.append(item);
  }
  box.append(list);
  card.append(box);
};

const facts = (topic) => [
  percent(topic.weight),
  ...content.coherences.flatMap(({ key, name, digits }) => {
    const value = coherenceOf(topic, key);
    return value === null ? [] : [`${name} ${value.toFixed(digits)}`];
  }),
  ...(topic.bar === null ? [] : [content.what === "topic" ? `L1 error ${topic.bar.toFixed(2)}` : `error bar ${short(topic.bar)}`]),
  ...Object.entries(topic.told).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${short(value)}`),
];

const listOf = (topic, weight) => {
  const list = element("ol");
  for (const row of rowsOf(topic, weight)) {
    const item = element("li");
    item.append(
      element("i", undefined, { style: `--share:${row.share}` }),
      element("span", row.word, { class: "word", title: row.word }),
      element("span", row.value, { class: "value" }));
    list.append(item);
  }
  return list;
};
const drawAlone = (weight) => document.getElementById("words").replaceChildren(...listed.map(({ topic }) => listOf(topic, weight)));

const title = content.what[0].toUpperCase() + content.what.slice(1);
let chosen = null;
const drawCards = (weight) => {
  const opened = new Map([...document.querySelectorAll(".card details")].map((one) => [one.closest(".card").id, one.open]));
  const cards = content.topics.map((topic, place) => {
    const card = element("article", undefined, { class: "card", id: `topic-${topic.topic}`, tabindex: -1 });
    if (topic.topic === chosen) card.classList.add("chosen");
    const head = element("h3");
    head.append(content.each ? element("a", names.get(topic.topic), { href: `${content.each}${topic.topic}` }) : names.get(topic.topic));
    // a part without a name is called by its number
    if (names.get(topic.topic) !== `${content.what} ${topic.topic}`) head.prepend(element("span", topic.topic, { class: "count", title: `${title} ${topic.topic}` }));
    const note = content.notes[topic.topic];
    // most topics do not change, so the page marks only the others
    if (note && note !== "within noise") head.append(element("span", note, { class: "note" }));
    const line = element("p", undefined, { class: "quiet facts-line" });
    for (const fact of facts(topic)) line.append(element("span", fact));
    card.append(head, line);
    drawTrend(card, place);
    card.append(listOf(topic, weight));
    const others = together(topic.topic);
    if (others) card.append(element("p", `often with ${others}`, { class: "quiet together" }));
    const near = nearest(topic.topic);
    if (near) card.append(element("p", `nearest: ${names.get(near.other)} (distance ${near.distance.toFixed(2)})`, { class: "quiet nearest" }));
    drawSample(card, topic.sample);
    drawNearest(card, topic.nearest);
    if (opened.has(card.id)) card.querySelector("details").open = opened.get(card.id);
    if (document.getElementById("map") || document.getElementById("plane")) {
      const back = element("a", "↑ on the map", { href: `#place-${topic.topic}`, class: "back" });
      back.addEventListener("click", () => choose(topic.topic));
      card.append(back);
    }
    return card;
  });
  document.getElementById("cards").replaceChildren(...cards);
};

const choose = (topic) => {
  chosen = topic;
  for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
  document.getElementById(`topic-${topic}`).classList.add("chosen");
  for (const mark of document.querySelectorAll(`[data-topic="${topic}"]`)) mark.classList.add("chosen");
};
