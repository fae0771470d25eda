import { useEffect, useMemo, useState } from "preact/hooks";
import type { Fleet, FleetNode } from "#ui/api/fleet-types.ts";
import { ApiError } from "#ui/api/request.ts";
import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Fault, Page, Tag } from "#ui/parts/small.tsx";
import { TablePage, waitingText } from "#ui/parts/table-page.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { textOf, useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";

const COLUMNS: readonly (readonly [PlainKey, SortKey<FleetNode>])[] = [
  ["nodes.node", ({ name }) => name],
  ["common.state", ({ state }) => state],
  ["nodes.behind", ({ lag, unacknowledged }) => lag.changes + unacknowledged],
  ["common.down", ({ last_minute: moved }) => moved.download_bytes],
  ["common.up", ({ last_minute: moved }) => moved.upload_bytes],
  ["nodes.connections", ({ connections }) => connections],
];
const STATES = {
  live: "nodes.live",
  late: "nodes.late",
  lost: "nodes.lost",
  draining: "nodes.draining",
} as const;
const REFRESH_MS = 2_000;
const SECONDS = 60;

export function NodesPage() {
  const { t } = useWords();
  return (
    <AdminGate title={t("page.nodes")} subject={t("nodes.subject")} absent={t("users.absent")}>
      <NodeTable />
    </AdminGate>
  );
}

function NodeTable() {
  const words = useWords();
  const { t } = words;
  const { fleet, isAlone, error, reload } = useFleet();
  const [filter, setFilter] = useState("");
  const nodes = fleet?.nodes ?? [];
  const matches = useMemo(() => matching(nodes, filter, searchedOf), [fleet, filter]);
  const columns = [...COLUMNS.map(([name, key]) => ({ name: t(name), key })), { name: "", key: null }];
  const { shown, ordering } = useOrdering("nodes", matches, columns);
  if (isAlone)
    return (
      <Page title={t("page.nodes")}>
        <Empty title={t("nodes.alone")}>
          <Rich text={t("nodes.aloneText")} />
        </Empty>
      </Page>
    );
  return (
    <TablePage
      title={t("page.nodes")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.search")}
      filterHint={t("nodes.filterHint")}
      tools={null}
      status={fleet === null ? waitingText(words, error) : summaryOf(words, fleet)}
      error={error}
      warning={<Away fleet={fleet} />}
      nothing={
        fleet !== null && shown.length === 0 ? (
          <Empty title={nodes.length === 0 ? t("nodes.none") : t("common.noSearchMatch")} />
        ) : null
      }
      label={t("nodes.table")}
      kind="rows-nodes"
      ordering={ordering}
      items={shown}
      keyOf={({ name }) => name}
      faded={({ state }) => state === "lost"}
      cells={(node) => <Cells node={node} onChanged={reload} />}
    />
  );
}

function Away({ fleet }: { readonly fleet: Fleet | null }) {
  const words = useWords();
  if (fleet === null || fleet.database.state === "up") return null;
  const { since, reason = "" } = fleet.database;
  return <Fault text={words.t("nodes.away", { time: words.clock(since / 1000), reason })} />;
}

function summaryOf({ t }: Words, { nodes }: Fleet): string {
  const states = Object.entries(STATES)
    .map(([name, word]) => [word, nodes.filter(({ state }) => state === name).length] as const)
    .filter(([, count]) => count > 0)
    .map(([word, count]) => t("nodes.countOf", { count, state: t(word) }));
  return t("nodes.status", { nodes: t("nodes.count", { count: nodes.length }), states: states.join(", ") });
}

/** Asked for again and again while the page is looked at. */
function useFleet() {
  const { admin } = useEnvironment();
  const words = useWords();
  const [fleet, setFleet] = useState<Fleet | null>(null);
  const [isAlone, setAlone] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const reload = async (): Promise<void> => {
    try {
      setFleet(await admin.svc<Fleet>("GET", "fleet"));
      setAlone(false);
      setError(null);
    } catch (fault) {
      if (fault instanceof ApiError && fault.status === 404) setAlone(true);
      else setError(textOf(words, fault));
    }
  };
  useEffect(() => {
    void reload();
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return { fleet, isAlone, error, reload };
}

const labelText = ({ labels }: FleetNode): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}: ${value}`)
    .join(", ");

const searchedOf = (node: FleetNode): string =>
  [node.name, node.address, node.state, node.version, labelText(node)].join("\n");

const KINDS = { live: "yes", late: "bad", lost: "bad", draining: "" } as const;

/** What the node lacks of the changes, and what the database lacks of its traffic. */
function behindText({ t }: Words, { lag, unacknowledged }: FleetNode): string {
  const parts = [
    lag.changes > 0 && t("nodes.changes", { count: lag.changes, ms: lag.milliseconds }),
    unacknowledged > 0 && t("nodes.entries", { count: unacknowledged }),
  ].filter(Boolean);
  return parts.join("; ") || t("nodes.nothingBehind");
}

interface Row {
  readonly node: FleetNode;
  readonly onChanged: () => Promise<void>;
}

function Cells({ node, onChanged }: Row) {
  const words = useWords();
  const { t } = words;
  const { name, address, state, connections, last_minute: moved, version } = node;
  const about = [address, labelText(node), `weir ${version}`].filter((text) => text !== "").join(" · ");
  const behind = behindText(words, node);
  return (
    <>
      <span role="cell" class="c-main text" title={about}>
        {node.self === true ? t("nodes.this", { name }) : name}
      </span>
      <span role="cell" class="c-rule" title={t("nodes.seen", { time: words.clock(node.seen_at / 1000) })}>
        <Tag kind={KINDS[state]}>{t(STATES[state])}</Tag>
      </span>
      <span role="cell" class="c-way text" title={behind}>
        {behind}
      </span>
      <span role="cell" class="c-down number">
        {words.rate(moved.download_bytes / SECONDS)}
      </span>
      <span role="cell" class="c-up number">
        {words.rate(moved.upload_bytes / SECONDS)}
      </span>
      <span role="cell" class="c-age number">
        {words.count(connections)}
      </span>
      <span role="cell" class="c-act">
        <Command node={node} onChanged={onChanged} />
      </span>
    </>
  );
}

function Command({ node: { name, state }, onChanged }: Row) {
  const { admin } = useEnvironment();
  const { t } = useWords();
  const act = useAction();
  const path = `fleet/nodes/${encodeURIComponent(name)}`;
  const ask = async (work: () => Promise<void>, done: string): Promise<void> => {
    await act(work, t("nodes.failed", { name }), done);
    await onChanged();
  };
  const post = (verb: string) => () => admin.svc<void>("POST", `${path}/${verb}`);
  if (state === "lost")
    return (
      <Button
        label={t("nodes.forget")}
        name={t("nodes.forgetOne", { name })}
        kind="danger"
        onPress={() => ask(() => admin.svc<void>("DELETE", path), t("nodes.forgotten", { name }))}
      />
    );
  if (state === "draining")
    return (
      <Button
        label={t("nodes.resume")}
        name={t("nodes.resumeOne", { name })}
        onPress={() => ask(post("resume"), t("nodes.resumed", { name }))}
      />
    );
  return (
    <Button
      label={t("nodes.drain")}
      name={t("nodes.drainOne", { name })}
      onPress={() => ask(post("drain"), t("nodes.drained", { name }))}
    />
  );
}
