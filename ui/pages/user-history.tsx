import { useMemo, useState } from "preact/hooks";
import type { ManagedUser, UsageStep, UserHistory as History } from "#ui/api/admin-types.ts";
import { Segments } from "#ui/parts/inputs.tsx";
import { Plot, type PlotLook } from "#ui/parts/plot.tsx";
import { Fault } from "#ui/parts/small.tsx";
import { useAdminResource, useWords } from "#ui/state/context.ts";
import { rangeOf, type Span, SPANS, timeText } from "#ui/state/reports.ts";
import { historyData } from "#ui/state/usage-history.ts";
import type { Words } from "#ui/words/words.ts";

/** By hour and by day; of months there are too few. */
const KEPT = SPANS.filter(({ granularity }) => granularity !== "month");
const DAYS = 31;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** What one user moved by day or by hour, as bars and as a table, from before this page was opened, too. */
export function UserHistory({ user }: { readonly user: ManagedUser }) {
  const words = useWords();
  const { t } = words;
  const [chosen, setChosen] = useState<Span["granularity"]>("day");
  const span = KEPT.find(({ granularity }) => granularity === chosen) ?? SPANS[0]!;
  const nowMs = Date.now();
  // The list is read every few seconds, and draws this anew.
  const path = `users/${encodeURIComponent(user.id)}/history?days=${DAYS}`;
  const history = useAdminResource<History>(path, [Math.floor(nowMs / MINUTE_MS)]);
  const steps = history.value?.[chosen === "hour" ? "hours" : "days"] ?? [];
  const data = useMemo(() => historyData(steps), [steps]);
  const hour = Math.floor(nowMs / HOUR_MS);
  const look = useMemo<PlotLook>(
    () => ({
      kind: "bars",
      timeText: timeText(words, span.granularity),
      amountText: (amount) => words.bytes(amount),
      leastTop: 1024,
      range: rangeOf(span, nowMs),
    }),
    [span, words, hour],
  );
  const text = t("common.downUp", { down: words.bytes(sumOf(data.down)), up: words.bytes(sumOf(data.up)) });
  return (
    <section aria-label={t("user.history")}>
      <div class="panel-head">
        <h3>{t("user.history")}</h3>
        <Segments
          label={t("usage.per")}
          value={chosen}
          options={KEPT.map((one) => [one.granularity, t(one.label)])}
          onChange={setChosen}
        />
      </div>
      <Fault text={history.error} />
      <Plot
        data={data}
        look={look}
        label={t("usage.plot", { name: user.name, span: t(span.note), text })}
        note={t(span.note)}
      />
      {steps.length > 0 && <Steps steps={steps} span={span} words={words} />}
    </section>
  );
}

interface StepsProps {
  readonly steps: readonly UsageStep[];
  readonly span: Span;
  readonly words: Words;
}

/** The newest first; what is silent is left out. */
function Steps({ steps, span, words }: StepsProps) {
  const { t } = words;
  const isHour = span.granularity === "hour";
  const dayText = timeText(words, "day");
  return (
    <details class="drawer">
      <summary class="panel-head">{t("user.historyTable")}</summary>
      <table class="table" aria-label={t("user.historyTable")}>
        <thead>
          <tr>
            <th scope="col">{t(span.label)}</th>
            {([t("common.down"), t("common.up"), t("usage.total")] as const).map((head) => (
              <th key={head} scope="col" class="number">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.toReversed().map(({ start, upload_bytes: up, download_bytes: down }) => (
            <tr key={start}>
              <th scope="row">{isHour ? words.moment(start) : dayText(start / 1000)}</th>
              <td class="number">{words.bytes(down)}</td>
              <td class="number">{words.bytes(up)}</td>
              <td class="number">{words.bytes(down + up)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}
