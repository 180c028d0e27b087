// draws the charts when the page is loaded, and again when its width changes
const charts = { map: drawMap, plane: drawPlane, coherence: drawCoherence, "held-out": drawHeldOut, spectrum: drawSpectrum, steps: drawSteps };
const panels = { panels: drawShares(content.shares), "period-panels": drawShares(content.periods), runs: drawRuns, "measure-panels": drawMeasures };
const draw = () => {
  for (const place of document.querySelectorAll("[data-chart]")) charts[place.dataset.chart](place);
  for (const [name, make] of Object.entries(panels)) {
    const parent = document.getElementById(name);
    if (parent) make(parent);
  }
};

const drawWords = (weight) => {
  if (document.getElementById("cards")) drawCards(weight);
  if (document.getElementById("words")) drawAlone(weight);
};
const slider = document.getElementById("relevance");
if (slider) {
  const follow = () => {
    document.getElementById("lambda").textContent = Number(slider.value).toFixed(2);
    drawWords(Number(slider.value));
  };
  slider.addEventListener("input", follow);
  follow();
} else if (content.topics.length) drawWords(0);
const data = document.getElementById("data");
if (data) {
  data.addEventListener("click", () => {
    data.href = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
  });
}
const table = document.getElementById("table");
if (table) {
  table.addEventListener("click", () => {
    table.href = URL.createObjectURL(new Blob([asTable()], { type: "text/csv" }));
  });
}
// the browser followed a link to a card before the cards existed, so follow it again
if (content.topics.length && /^#topic-\d+$/.test(location.hash)) document.querySelector(location.hash)?.scrollIntoView();
let drawn = 0;
const again = () => {
  if (document.body.clientWidth === drawn) return;
  drawn = document.body.clientWidth;
  draw();
};
new ResizeObserver(again).observe(document.body);
again();
