import { useMemo } from "preact/hooks";
import { useEnvironment, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { SPAN_SECONDS } from "#ui/state/traffic.ts";
import type { Words } from "#ui/words/words.ts";
import { Plot, type PlotLook } from "./plot.tsx";

export function ratesLook(words: Words): PlotLook {
  return {
    kind: "lines",
    timeText: (seconds) => words.clock(seconds),
    amountText: (amount) => words.rate(amount),
    leastTop: 8 * 1024,
  };
}

/** Of the whole program, in the last minutes. */
export function ThroughputPlot() {
  const { watch } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const data = useStore(watch.traffic);
  const look = useMemo(() => ({ ...ratesLook(words), range: SPAN_SECONDS }), [words]);
  const { now } = data;
  const text =
    now === null
      ? t("overview.noData")
      : t("overview.rates", { down: words.rate(now.down), up: words.rate(now.up) });
  return (
    <Plot
      data={data}
      look={look}
      label={t("overview.plot", { text })}
      note={t("overview.lastMinutes", { count: SPAN_SECONDS / 60 })}
    />
  );
}
