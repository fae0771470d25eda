import { useMemo } from "preact/hooks";
import type { PolicyStatus, Report } from "#ui/api/governance-types.ts";
import { Plot, type PlotLook } from "#ui/parts/plot.tsx";
import { saveFile } from "#ui/parts/save-file.ts";
import { Select } from "#ui/parts/inputs.tsx";
import { Button, Empty, Fault } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useResource, useWords } from "#ui/state/context.ts";
import { seriesOf, titleOf } from "#ui/state/policy-document.ts";
import { dataOf, queryOf, timeText, type Span } from "#ui/state/reports.ts";

const REFRESH_MS = 30_000;

interface Props {
  readonly members: readonly PolicyStatus[];
  readonly chosen: PolicyStatus | null;
  readonly span: Span;
  readonly range: readonly [from: number, to: number];
  readonly onChoose: (id: string) => void;
}

/** The bars of one series, and its numbers as a file. */
export function UsageReport({ members, chosen, onChoose, span, range }: Props) {
  const words = useWords();
  const { t } = words;
  if (chosen === null) return <Empty title={t("usage.nothing")}>{t("usage.nothingText")}</Empty>;
  return (
    <>
      {members.length > 1 && (
        <Select
          label={t("usage.of")}
          value={chosen.policy.id}
          options={members.map((one) => [one.policy.id, titleOf(words, one)] as const)}
          onChange={onChoose}
        />
      )}
      <Series key={chosen.policy.id} policy={chosen} span={span} range={range} />
    </>
  );
}

function Series({ policy, span, range }: { policy: PolicyStatus; span: Span; range: Props["range"] }) {
  const { link } = useEnvironment();
  const act = useAction();
  const words = useWords();
  const { t } = words;
  const query = queryOf(seriesOf(policy), span, range);
  const report = useResource<Report>(`api/svc/traffic-control/reports?${query}`, REFRESH_MS);
  const data = useMemo(() => dataOf(report.value ?? { buckets: [] }), [report.value]);
  const look = useMemo<PlotLook>(
    () => ({
      kind: "bars",
      timeText: timeText(words, span.granularity),
      amountText: (amount) => words.bytes(amount),
      leastTop: 1024,
      range,
    }),
    [span, range, words],
  );
  const [down, up] = [data.down, data.up].map((list) => list.reduce((sum, amount) => sum + amount, 0));
  const text = t("common.downUp", { down: words.bytes(down ?? 0), up: words.bytes(up ?? 0) });
  const download = (): Promise<boolean> =>
    act(async () => {
      const csv = await link.text(`api/svc/traffic-control/reports/export.csv?${query}`);
      saveFile(`${policy.policy.id}-${span.granularity}.csv`, "text/csv", csv);
    }, t("usage.noFile"));
  return (
    <>
      <Fault text={report.error} />
      <Plot
        data={data}
        look={look}
        label={t("usage.plot", { name: titleOf(words, policy), span: t(span.note), text })}
        note={t(span.note)}
      />
      <div class="panel-head">
        <p class="status" role="status">
          {t("usage.sum", { name: titleOf(words, policy), text })}
        </p>
        <Button label={t("usage.csv")} onPress={download} />
      </div>
    </>
  );
}
