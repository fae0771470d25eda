import { rateText } from "#ui/format.ts";
import { useEnvironment } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { clockText, Plot, type PlotLook } from "./plot.tsx";

export const RATES: PlotLook = {
  kind: "lines",
  timeText: clockText,
  amountText: rateText,
  leastTop: 8 * 1024,
};

/** Of the whole program, in the last minutes. */
export function ThroughputPlot() {
  const { watch } = useEnvironment();
  const data = useStore(watch.traffic);
  const { now } = data;
  const text = now === null ? "No data yet" : `Download ${rateText(now.down)}, upload ${rateText(now.up)}`;
  return <Plot data={data} look={RATES} label={`Throughput. ${text}`} note="last five minutes" />;
}
