// Series over time, drawn by uPlot in the colours of the page; for those who do not see it, its last values as text.
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { html, useEffect, useLayoutEffect, useRef } from "../lib.js";
import { count, minute, second } from "../format.js";

const HEIGHT = 150;
const DARK = matchMedia("(prefers-color-scheme: dark)");
const COLOURS = ["--accent", "--bad", "--warn"];

/**
 * `data`: [seconds[], values[], …] with null where nothing was counted; `series`: [{label, format?}], one for each
 * column of values. `title`: what it shows.
 */
export function Chart({ title, data, series }) {
  const [place, chart, latest] = [useRef(null), useRef(null), useRef(data)];
  latest.current = data;
  useLayoutEffect(() => {
    const draw = () => {
      chart.current?.destroy();
      chart.current = new uPlot(options(place.current, series), latest.current, place.current);
    };
    draw();
    const resize = new ResizeObserver(() => chart.current.setSize({ width: width(place.current), height: HEIGHT }));
    resize.observe(place.current);
    DARK.addEventListener("change", draw);
    return () => {
      resize.disconnect();
      DARK.removeEventListener("change", draw);
      chart.current.destroy();
      chart.current = null;
    };
  }, []);
  useEffect(() => chart.current?.setData(data));
  const last = series.map(({ label, format = count }, index) => `${label}: ${format(data[index + 1].at(-1))}`);
  return html`
    <figure class="chart">
      <figcaption>${title} <span class="quiet">${last.join(" · ")}</span></figcaption>
      <div ref=${place} aria-hidden="true"></div>
    </figure>
  `;
}

function options(place, series) {
  const axis = { stroke: colour(place, "--quiet"), grid: { stroke: colour(place, "--line"), width: 1 }, font: "12px system-ui" };
  return {
    width: width(place),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high ?? 1) * 1.1] } },
    axes: [
      { ...axis, space: 80, values: (_, ticks, __, ___, step) => ticks.map((at) => (step < 60 ? second : minute)(at)) },
      { ...axis, size: 55, values: (_, ticks) => ticks.map(count) },
    ],
    series: [{}, ...series.map((each, index) => ({
      label: each.label, stroke: colour(place, COLOURS[index]), width: 2, dash: index ? [6, 3] : undefined,
      points: { show: false },
    }))],
  };
}

/** The colour that a name has now, as the canvas wants it. */
function colour(place, name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function width(place) {
  return Math.max(200, place.clientWidth);
}
