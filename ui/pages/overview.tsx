import { useMemo, useState } from "preact/hooks";
import type { Configs, Connection, Snapshot } from "#ui/api/types.ts";
import { ModeChoice } from "#ui/parts/mode.tsx";
import { TableHead, useOrdering } from "#ui/parts/ordering.tsx";
import { ThroughputPlot } from "#ui/parts/throughput-plot.tsx";
import { Empty, Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useEnvironment, useResource, useStream, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey } from "#ui/words/words.ts";
import { Troubles } from "./overview-troubles.tsx";
import { UseProxy } from "./overview-use.tsx";

/** The rest is summed up in one line. */
const MAX_WAYS = 8;

export function OverviewPage() {
  const { watch, meter } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const { now } = useStore(watch.traffic);
  const memory = useStore(watch.memoryBytes);
  const configs = useResource<Configs>("configs");
  const [snapshot, setSnapshot] = useState<Snapshot | null>(null);
  useStream<Snapshot>("connections?interval=2000", (next) => {
    meter.read(next, Date.now()); // for those that end while this page is looked at
    setSnapshot(next);
  });
  const live = snapshot?.connections ?? [];
  return (
    <Page
      title={t("page.overview")}
      tools={configs.value !== null && <ModeChoice mode={configs.value.mode} onChanged={configs.reload} />}
    >
      <Fault text={configs.error} />
      <dl class="figures">
        <Figure name={t("common.download")} value={now && words.rate(now.down)} series="down" />
        <Figure name={t("common.upload")} value={now && words.rate(now.up)} series="up" />
        <Figure name={t("overview.downloaded")} value={now && words.bytes(now.downTotal)} />
        <Figure name={t("overview.uploaded")} value={now && words.bytes(now.upTotal)} />
        <Figure name={t("page.connections")} value={snapshot && words.count(live.length)} />
        <Figure name={t("overview.memory")} value={memory === null ? null : words.bytes(memory)} />
      </dl>
      {configs.value !== null && <UseProxy configs={configs.value} />}
      <Troubles />
      <Panel title={t("overview.throughput")}>
        <ThroughputPlot />
      </Panel>
      <Panel title={t("overview.ways")}>
        <Ways connections={live} />
      </Panel>
    </Page>
  );
}

function Figure({ name, value, series }: { name: string; value: string | null; series?: "up" | "down" }) {
  return (
    <div class={series === undefined ? "figure" : `figure figure-${series}`}>
      <dt>{name}</dt>
      <dd>{value ?? "–"}</dd>
    </div>
  );
}

interface Way {
  readonly name: string;
  readonly count: number;
  readonly download: number;
  readonly upload: number;
}

const WAYS: readonly (readonly [PlainKey, SortKey<Way>])[] = [
  ["overview.way", ({ name }) => name],
  ["page.connections", ({ count }) => count],
  ["common.down", ({ download }) => download],
  ["common.up", ({ upload }) => upload],
];

function Ways({ connections }: { readonly connections: readonly Connection[] }) {
  const words = useWords();
  const { t } = words;
  const all = useMemo(
    () =>
      [...Map.groupBy(connections, ({ chains }) => chains[0] ?? t("overview.undecided"))]
        .map(([name, members]): Way => ({ name, count: members.length, ...totals(members) }))
        .sort((a, b) => b.count - a.count),
    [connections],
  );
  const columns = WAYS.map(([name, key]) => ({ name: t(name), key }));
  const { shown: ways, ordering } = useOrdering("ways", all, columns);
  if (connections.length === 0) return <Empty title={t("live.none")}>{t("live.noneText")}</Empty>;
  const shown = ways.slice(0, MAX_WAYS);
  const rest = ways.slice(MAX_WAYS);
  return (
    <table class="table" aria-label={t("overview.ways")}>
      <TableHead ordering={ordering} numbers={[1, 2, 3]} />
      <tbody>
        {shown.map(({ name, count, download, upload }) => (
          <tr key={name}>
            <td class="text">{name}</td>
            <td class="number">{words.count(count)}</td>
            <td class="number">{words.bytes(download)}</td>
            <td class="number">{words.bytes(upload)}</td>
          </tr>
        ))}
        {rest.length > 0 && (
          <tr>
            <td colSpan={4}>{t("overview.more", { count: rest.length })}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function totals(connections: readonly Connection[]): { download: number; upload: number } {
  return {
    download: connections.reduce((sum, { download }) => sum + download, 0),
    upload: connections.reduce((sum, { upload }) => sum + upload, 0),
  };
}
