import { useState } from "preact/hooks";
import type { Configs, Connection, Snapshot } from "#ui/api/types.ts";
import { bytesText, countText, rateText } from "#ui/format.ts";
import { ModeChoice } from "#ui/parts/mode.tsx";
import { ThroughputPlot } from "#ui/parts/throughput-plot.tsx";
import { Empty, Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useEnvironment, useResource, useStream } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";

/** The rest is summed up in one line. */
const MAX_WAYS = 8;

export function OverviewPage() {
  const { watch } = useEnvironment();
  const { now } = useStore(watch.traffic);
  const memory = useStore(watch.memoryBytes);
  const configs = useResource<Configs>("configs");
  const [snapshot, setSnapshot] = useState<Snapshot | null>(null);
  useStream<Snapshot>("connections?interval=2000", setSnapshot);
  const live = snapshot?.connections ?? [];
  return (
    <Page
      title="Overview"
      tools={configs.value !== null && <ModeChoice mode={configs.value.mode} onChanged={configs.reload} />}
    >
      <Fault text={configs.error} />
      <dl class="figures">
        <Figure name="Download" value={now && rateText(now.down)} series="down" />
        <Figure name="Upload" value={now && rateText(now.up)} series="up" />
        <Figure name="Downloaded" value={now && bytesText(now.downTotal)} />
        <Figure name="Uploaded" value={now && bytesText(now.upTotal)} />
        <Figure name="Connections" value={snapshot && countText(live.length)} />
        <Figure name="Memory" value={memory === null ? null : bytesText(memory)} />
      </dl>
      <Panel title="Throughput">
        <ThroughputPlot />
      </Panel>
      <Panel title="Ways out of the live connections">
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
  if (connections.length === 0)
    return (
      <Empty title="No connections">Programs that use the proxy show up here while they are connected.</Empty>
    );
  const ways = [...Map.groupBy(connections, ({ chains }) => chains[0] ?? "not decided yet")]
    .map(([name, members]) => ({ name, count: members.length, ...totals(members) }))
    .sort((a, b) => b.count - a.count);
  const shown = ways.slice(0, MAX_WAYS);
  const rest = ways.slice(MAX_WAYS);
  return (
    <table class="table">
      <thead>
        <tr>
          <th scope="col">Way out</th>
          <th scope="col" class="number">
            Connections
          </th>
          <th scope="col" class="number">
            Down
          </th>
          <th scope="col" class="number">
            Up
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map(({ name, count, download, upload }) => (
          <tr key={name}>
            <td class="text">{name}</td>
            <td class="number">{countText(count)}</td>
            <td class="number">{bytesText(download)}</td>
            <td class="number">{bytesText(upload)}</td>
          </tr>
        ))}
        {rest.length > 0 && (
          <tr>
            <td colSpan={4}>and {countText(rest.length)} more</td>
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
