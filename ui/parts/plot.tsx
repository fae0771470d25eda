/** Throughput over time. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { rateText } from "#ui/format.ts";
import { useEnvironment } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";

const HEIGHT_PX = 220;
/** The axis never shrinks below this: noise of some bytes should not look like a storm. */
const LEAST_TOP = 8 * 1024;
/** Steps between grid lines: powers of two, as the units are. */
const STEPS = Array.from({ length: 50 }, (_, at) => 2 ** at);

export function ThroughputPlot() {
  const { watch, theme } = useEnvironment();
  const { now, times, up, down } = useStore(watch.traffic);
  const chosen = useStore(theme.chosen);
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);

  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsFor(element), dataOf(watch.traffic.value), element);
    };
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    observer.observe(element);
    return () => {
      dark.removeEventListener("change", draw);
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [chosen]);
  useEffect(() => plot.current?.setData(dataOf({ times, up, down })), [times]);

  const text = now === null ? "No data yet" : `Download ${rateText(now.down)}, upload ${rateText(now.up)}`;
  return (
    <>
      <p class="legend" aria-hidden="true">
        <span class="swatch series-down" /> Download
        <span class="swatch series-up" /> Upload
        <span class="legend-note">last five minutes</span>
      </p>
      <div ref={frame} class="plot" role="img" aria-label={`Throughput. ${text}`}>
        <span class="plot-line" hidden />
      </div>
    </>
  );
}

function dataOf({
  times,
  up,
  down,
}: {
  times: readonly number[];
  up: readonly number[];
  down: readonly number[];
}) {
  return [times, down, up] as unknown as uPlot.AlignedData;
}

/** Canvas knows nothing of style sheets: the colours are read off elements that have them. */
function colourOf(selector: string): string {
  const element = document.querySelector(selector);
  return element === null ? "gray" : getComputedStyle(element).color;
}

function optionsFor(element: HTMLElement): uPlot.Options {
  const line = colourOf(".plot-line");
  const axis = { stroke: colourOf(".legend"), grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  const series = (label: string, stroke: string): uPlot.Series => ({
    label,
    stroke,
    width: 2,
    points: { show: false },
  });
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    padding: [12, 30, 0, 0],
    scales: {
      x: { range: (_, min, max) => [Math.min(min, max - 60), max] },
      y: { range: (_, _min, max) => [0, Math.max(LEAST_TOP, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        font,
        size: 30,
        space: 96,
        grid: { show: false },
        values: (_, ticks) => ticks.map(clockText),
      },
      { ...axis, font, size: 84, incrs: STEPS, values: (_, ticks) => ticks.map(rateText) },
    ],
    series: [{}, series("Download", colourOf(".series-down")), series("Upload", colourOf(".series-up"))],
  };
}

function clockText(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toTimeString().slice(0, 8);
}
