import { useState } from "preact/hooks";
import type { Configs, Connection, Snapshot } from "#ui/api/types.ts";
import { ModeChoice } from "#ui/parts/mode.tsx";
import { ThroughputPlot } from "#ui/parts/throughput-plot.tsx";
import { Empty, Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useEnvironment, useResource, useStream, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
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

function Ways({ connections }: { readonly connections: readonly Connection[] }) {
  const words = useWords();
  const { t } = words;
  if (connections.length === 0) return <Empty title={t("live.none")}>{t("live.noneText")}</Empty>;
  const ways = [...Map.groupBy(connections, ({ chains }) => chains[0] ?? t("overview.undecided"))]
    .map(([name, members]) => ({ name, count: members.length, ...totals(members) }))
    .sort((a, b) => b.count - a.count);
  const shown = ways.slice(0, MAX_WAYS);
  const rest = ways.slice(MAX_WAYS);
  return (
    <table class="table">
      <thead>
        <tr>
          <th scope="col">{t("overview.way")}</th>
          <th scope="col" class="number">
            {t("page.connections")}
          </th>
          <th scope="col" class="number">
            {t("common.down")}
          </th>
          <th scope="col" class="number">
            {t("common.up")}
          </th>
        </tr>
      </thead>
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
