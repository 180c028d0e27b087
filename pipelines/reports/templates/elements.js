// elements of the page and of charts, and formats of numbers and dates
const content = JSON.parse(document.getElementById("content").textContent);

// some have fields of their own
const coherenceOf = (one, key) => one[key] ?? one.coherences?.[key] ?? null;

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
const canvas = (place, height, label, role = "img") => {
  const width = Math.max(place.clientWidth, 120);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", role);
  svg.setAttribute("aria-label", label);
  place.replaceChildren(svg);
  return [svg, width];
};

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
const compact = (value) => Math.abs(value) >= 10000
  ? new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 }).format(value)
  : String(Number(value.toPrecision(3)));
// whole numbers below ten millions have all digits, so that 10,022 and 10,315 are not both 10K
const short = (value) => Math.abs(value) >= 1e7 ? compact(value)
  : Math.abs(value) >= 1000 || Number.isInteger(value) ? Math.round(value).toLocaleString("en")
  : String(Number(value.toPrecision(3)));
// a format with enough digits to show which values differ
const distinctly = (values, first = short) => {
  const precise = [4, 5, 6, 8, 12].map((digits) => (value) => value.toLocaleString("en", { maximumSignificantDigits: digits }));
  const differing = new Set(values.map((value) => value.toPrecision(9))).size;  // smaller differences are rounding errors
  return [first, ...precise].find((one) => new Set(values.map(one)).size === differing) ?? String;
};
const ticks = (low, high, wanted) => {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  // multiply the step, because repeated addition would miss 0 by rounding; the outer ticks enclose all values
  const [first, last] = [Math.floor(low / step + 1e-6), Math.ceil(high / step - 1e-6)];
  for (let many = first; many <= last; many += 1) found.push(Number((many * step).toPrecision(12)));
  return found.length > 1 ? found : ticks(low, high, 2 * wanted);
};
// enough digits that all ticks differ
const shareTicks = (marks) => {
  const texts = (digits) => marks.map((at) => percent(at, digits));
  const digits = [0, 1, 2, 3].find((one) => new Set(texts(one)).size === marks.length);
  return (value) => percent(value, digits ?? 4);
};
const numberTicks = (marks) => distinctly(marks, compact);
// first and last date: months have no day, a repeated year is left out, and equal dates are shown once
const ends = (dates, between = []) => {
  const to = dates.every((date) => date.slice(7, 10) === "-01") ? 7 : 10;
  const [first, last] = [dates[0].slice(0, to), dates[dates.length - 1].slice(0, to)];
  if (first === last) return [[0, first, "start"]];
  const from = to === 10 && first.slice(0, 4) === last.slice(0, 4) ? 5 : 0;
  return [[0, first.slice(from), "start"], ...between.map((place) => [place, dates[place].slice(from, to), "middle"]), [dates.length - 1, last.slice(from), "end"]];
};
const quarters = (dates) => dates.length < 9 ? [] : [1, 2, 3].map((part) => Math.round(part * (dates.length - 1) / 4));
// places of dates on an axis: by day if the dates increase, otherwise at equal distances
const along = (dates) => {
  const days = dates.map((date) => Date.parse(date.slice(0, 10)) / 864e5);
  const rising = days.every((day, place) => Number.isFinite(day) && (!place || day > days[place - 1]));
  return dates.map((_, place) => rising ? days[place] : place);
};
const scale = (low, high, from, to) => (value) =>
  from + (to - from) * (high === low ? 0.5 : (value - low) / (high - low));
const extent = (values) => {
  const ends = [Math.min(...values), Math.max(...values)];
  return [...new Set(ends.map(distinctly(ends)))].join(" to ");
};
// whether all bars of a chart would look equal
const same = (values) => new Set(values.map((value) => value.toPrecision(2))).size === 1;
