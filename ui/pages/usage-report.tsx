import { useMemo } from "preact/hooks";
import type { PolicyStatus, Report } from "#ui/api/governance-types.ts";
import { bytesText } from "#ui/format.ts";
import { Plot, type PlotLook } from "#ui/parts/plot.tsx";
import { saveFile } from "#ui/parts/save-file.ts";
import { Select } from "#ui/parts/inputs.tsx";
import { Button, Empty, Fault } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useResource } from "#ui/state/context.ts";
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
  if (chosen === null)
    return (
      <Empty title="Nothing is counted here">
        A policy counts, whether it limits or not: add one below for what you want to see.
      </Empty>
    );
  return (
    <>
      {members.length > 1 && (
        <Select
          label="Of"
          value={chosen.policy.id}
          options={members.map((one) => [one.policy.id, titleOf(one)] as const)}
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
  const query = queryOf(seriesOf(policy), span, range);
  const report = useResource<Report>(`api/svc/traffic-control/reports?${query}`, REFRESH_MS);
  const data = useMemo(() => dataOf(report.value ?? { buckets: [] }), [report.value]);
  const look = useMemo<PlotLook>(
    () => ({
      kind: "bars",
      timeText: (seconds) => timeText(span.granularity, seconds),
      amountText: bytesText,
      leastTop: 1024,
      range,
    }),
    [span, range],
  );
  const [down, up] = [data.down, data.up].map((list) => list.reduce((sum, amount) => sum + amount, 0));
  const text = `${bytesText(down ?? 0)} down, ${bytesText(up ?? 0)} up`;
  const download = (): Promise<boolean> =>
    act(async () => {
      const csv = await link.text(`api/svc/traffic-control/reports/export.csv?${query}`);
      saveFile(`${policy.policy.id}-${span.granularity}.csv`, "text/csv", csv);
    }, "There is no file");
  return (
    <>
      <Fault text={report.error} />
      <Plot
        data={data}
        look={look}
        label={`Usage of ${titleOf(policy)}, ${span.note}. ${text}`}
        note={span.note}
      />
      <div class="panel-head">
        <p class="status" role="status">
          {titleOf(policy)}: {text}
        </p>
        <Button label="Download CSV" onPress={download} />
      </div>
    </>
  );
}
