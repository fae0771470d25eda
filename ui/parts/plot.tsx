/** Download and upload over time, as lines or as bars. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useEnvironment, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { axisOf, type PlotData, type PlotRange } from "./plot-data.ts";

const HEIGHT_PX = 220;
/** Steps between grid lines: powers of two, as the units are. */
const STEPS = Array.from({ length: 60 }, (_, at) => 2 ** at);

export interface PlotLook {
  /** Bars stand on one another: the whole is what both are together. */
  readonly kind: "lines" | "bars";
  readonly timeText: (unixSeconds: number) => string;
  readonly amountText: (amount: number) => string;
  /** The axis never shrinks below this: noise should not look like a storm. */
  readonly leastTop: number;
  readonly range?: PlotRange;
}

interface Props {
  readonly data: PlotData;
  readonly look: PlotLook;
  /** What a screen reader says. */
  readonly label: string;
  readonly note: string;
}

export function Plot({ data, look, label, note }: Props) {
  const { theme } = useEnvironment();
  const { t } = useWords();
  const chosen = useStore(theme.chosen);
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsFor(element, look), aligned(latest.current, look), element);
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
  }, [chosen, look]);
  useEffect(() => plot.current?.setData(aligned(data, look)), [data]);

  return (
    <>
      <p class="legend" aria-hidden="true">
        <span class="swatch series-down" /> {t("common.download")}
        <span class="swatch series-up" /> {t("common.upload")}
        <span class="legend-note">{note}</span>
      </p>
      <div ref={frame} class="plot" role="img" aria-label={label}>
        <span class="plot-line" hidden />
      </div>
    </>
  );
}

/** The series drawn last covers the others. */
function aligned({ times, down, up }: PlotData, { kind }: PlotLook): uPlot.AlignedData {
  const columns =
    kind === "lines" ? [times, down, up] : [times, up.map((amount, at) => amount + (down[at] ?? 0)), down];
  return columns as unknown as uPlot.AlignedData;
}

/** Canvas knows nothing of style sheets: the colours are read off elements that have them. */
function colourOf(selector: string): string {
  const element = document.querySelector(selector);
  return element === null ? "gray" : getComputedStyle(element).color;
}

function optionsFor(element: HTMLElement, look: PlotLook): uPlot.Options {
  const { kind, range, leastTop } = look;
  const line = colourOf(".plot-line");
  const axis = { stroke: colourOf(".legend"), grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  const [down, up] = [seriesOf(kind, colourOf(".series-down")), seriesOf(kind, colourOf(".series-up"))];
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    padding: [12, 30, 0, 0],
    scales: {
      x: { range: (_, min, max) => axisOf(range, min, max, Date.now()) },
      y: { range: (_, _min, max) => [0, Math.max(leastTop, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        font,
        size: 30,
        space: 96,
        grid: { show: false },
        values: (_, ticks) => ticks.map(look.timeText),
      },
      { ...axis, font, size: 84, incrs: STEPS, values: (_, ticks) => ticks.map(look.amountText) },
    ],
    series: kind === "lines" ? [{}, down, up] : [{}, up, down],
  };
}

function seriesOf(kind: PlotLook["kind"], stroke: string): uPlot.Series {
  if (kind === "lines") return { stroke, width: 2, points: { show: false } };
  const { bars } = uPlot.paths;
  const paths = bars?.({ size: [0.7, 40], align: 1 });
  return { stroke, fill: stroke, width: 0, points: { show: false }, ...(paths ? { paths } : {}) };
}
