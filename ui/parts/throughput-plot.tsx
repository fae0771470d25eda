import { rateText } from "#ui/format.ts";
import { useEnvironment } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { SPAN_SECONDS } from "#ui/state/traffic.ts";
import { clockText, Plot, type PlotLook } from "./plot.tsx";

export const RATES = {
  kind: "lines",
  timeText: clockText,
  amountText: rateText,
  leastTop: 8 * 1024,
} satisfies PlotLook;
const LAST_MINUTES: PlotLook = { ...RATES, range: SPAN_SECONDS };

/** Of the whole program, in the last minutes. */
export function ThroughputPlot() {
  const { watch } = useEnvironment();
  const data = useStore(watch.traffic);
  const { now } = data;
  const text = now === null ? "No data yet" : `Download ${rateText(now.down)}, upload ${rateText(now.up)}`;
  return (
    <Plot
      data={data}
      look={LAST_MINUTES}
      label={`Throughput. ${text}`}
      note={`last ${SPAN_SECONDS / 60} minutes`}
    />
  );
}
