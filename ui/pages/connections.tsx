import { useMemo, useState } from "preact/hooks";
import type { EndedConnection, Snapshot } from "#ui/api/types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { Segments, Select } from "#ui/parts/inputs.tsx";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Chain, CloseButton, Empty, Tag } from "#ui/parts/small.tsx";
import { TablePage, waitingText } from "#ui/parts/table-page.tsx";
import { useAction, useEnvironment, useResource, useStream, useWords } from "#ui/state/context.ts";
import { ageMs, arrange, endedOf, ORDERS, REASONS, type LiveConnection, type Order } from "#ui/state/live.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";
import { ConnectionDetails } from "./connection-details.tsx";

const COLUMNS: readonly (readonly [PlainKey, SortKey<LiveConnection> | null])[] = [
  ["connections.destination", ({ name }) => name],
  ["connections.rule", ({ rule, rulePayload }) => `${rule} ${rulePayload}`],
  ["connections.way", ({ chains }) => chains.toReversed().join(" ")],
  ["common.download", ({ download }) => download],
  ["common.upload", ({ upload }) => upload],
  ["connections.age", ageMs],
  ["connections.close", null],
];
/** A thousand are half a megabyte. */
const ENDED_MS = 3_000;
/** Requests in flight while a filtered list is closed one by one. */
const CLOSE_AT_ONCE = 6;

export function ConnectionsPage() {
  const words = useWords();
  const { t } = words;
  const live = useLive();
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<Order>("newest");
  const [chosen, setChosen] = useState<LiveConnection | null>(null);
  const [which, setWhich] = useState<"live" | "ended">("live");
  const ended = useEnded(which === "ended");
  const listed = which === "live" ? live : ended.list;
  const all = listed ?? [];
  const arranged = useMemo(() => arrange(all, filter, order), [listed, filter, order]);
  const columns = COLUMNS.map(([name, key]) => ({ name: t(name), key }));
  const { shown, ordering } = useOrdering("connections", arranged, columns);
  const filtered = filter.trim() !== "";
  const closeOne = useCloseOne();
  return (
    <TablePage
      title={t("page.connections")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.filter")}
      filterHint={t("connections.filterHint")}
      tools={
        <>
          <Segments
            label={t("connections.which")}
            value={which}
            options={[
              ["live", t("connections.alive")],
              ["ended", t("connections.ended")],
            ]}
            onChange={setWhich}
          />
          <Select
            label={t("connections.order")}
            value={order}
            options={ORDERS.map(([value, name]) => [value, t(name)])}
            onChange={(next) => {
              setOrder(next);
              ordering.set(null);
            }}
          />
          {which === "live" && <CloseMany shown={shown} all={all.length} filtered={filtered} />}
        </>
      }
      status={
        listed === null
          ? waitingText(words, ended.error)
          : which === "live"
            ? statusText(words, shown.length, all.length)
            : t("connections.endedStatus", { shown: shown.length, count: all.length })
      }
      error={ended.error}
      nothing={listed !== null && shown.length === 0 ? <Nothing filtered={filtered} which={which} /> : null}
      variant={`${which} ${order}`}
      label={t("connections.table")}
      kind="rows-connections"
      ordering={ordering}
      hasOwnOrder
      items={shown}
      keyOf={({ id }) => id}
      onOpen={setChosen}
      cells={(connection) => (
        <Cells
          connection={connection}
          onOpen={() => setChosen(connection)}
          onClose={() => closeOne(connection)}
        />
      )}
    >
      {chosen !== null && (
        <ConnectionDetails
          connection={live?.find(({ id }) => id === chosen.id) ?? chosen}
          ended={live !== null && live.every(({ id }) => id !== chosen.id)}
          onEnd={() => void closeOne(chosen)}
          onClose={() => setChosen(null)}
        />
      )}
    </TablePage>
  );
}

/** The connections with their speeds, every second; null until the first list. */
function useLive(): readonly LiveConnection[] | null {
  const { meter } = useEnvironment();
  const [live, setLive] = useState<readonly LiveConnection[] | null>(null);
  useStream<Snapshot>("connections?interval=1000", (snapshot) => setLive(meter.read(snapshot, Date.now())));
  return live;
}

/** Those that the program remembers, while they are looked at; null until the first list. */
function useEnded(isWanted: boolean): {
  readonly list: readonly LiveConnection[] | null;
  readonly error: string | null;
} {
  const path = isWanted ? "api/svc/connections/ended" : "";
  const { value, error } = useResource<{ readonly connections: readonly EndedConnection[] }>(path, ENDED_MS);
  const list = useMemo(() => (value === null ? null : endedOf(value.connections)), [value]);
  return { list, error: isWanted ? error : null };
}

const pathOf = ({ id }: LiveConnection): string => `connections/${encodeURIComponent(id)}`;

function useCloseOne(): (connection: LiveConnection) => Promise<boolean> {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  return (connection) =>
    act(() => link.send("DELETE", pathOf(connection)), t("connections.notClosed", { name: connection.name }));
}

interface CloseManyProps {
  readonly shown: readonly LiveConnection[];
  readonly all: number;
  readonly filtered: boolean;
}

/** Closes what the filter shows, or all of them; asks before. */
function CloseMany({ shown, all, filtered }: CloseManyProps) {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const [asking, setAsking] = useState(false);
  const label = filtered ? t("connections.closeShown") : t("connections.closeAll");
  const close = async (): Promise<void> => {
    if (!filtered) return link.send("DELETE", "connections");
    for (let at = 0; at < shown.length; at += CLOSE_AT_ONCE) {
      const some = shown.slice(at, at + CLOSE_AT_ONCE);
      await Promise.all(some.map((connection) => link.send("DELETE", pathOf(connection))));
    }
  };
  const onAnswer = (yes: boolean): void => {
    setAsking(false);
    if (yes) void act(close, t("connections.notAllClosed"), t("connections.closed"));
  };
  return (
    <>
      <Button label={label} kind="danger" disabled={shown.length === 0} onPress={() => setAsking(true)} />
      {asking && (
        <Confirm
          title={filtered ? t("connections.closeShownAsk") : t("connections.closeAllAsk")}
          text={t("connections.closeText", { shown: shown.length, count: all })}
          action={label}
          onAnswer={onAnswer}
        />
      )}
    </>
  );
}

function statusText({ t }: Words, shown: number, all: number): string {
  return shown === all ? t("connections.live", { count: all }) : t("connections.someLive", { shown, all });
}

function Nothing({ filtered, which }: { readonly filtered: boolean; readonly which: "live" | "ended" }) {
  const { t } = useWords();
  if (filtered) return <Empty title={t("common.noFilterMatch")} />;
  return which === "ended" ? (
    <Empty title={t("connections.noneEnded")}>{t("connections.noneEndedText")}</Empty>
  ) : (
    <Empty title={t("live.none")}>{t("live.noneText")}</Empty>
  );
}

const BAD: ReadonlySet<string> = new Set(["remote-lost", "not-dialled"]);

interface CellsProps {
  readonly connection: LiveConnection;
  readonly onOpen: () => void;
  readonly onClose: () => unknown;
}

function Cells({ connection, onOpen, onClose }: CellsProps) {
  const words = useWords();
  const { t } = words;
  const { name, metadata, rule, rulePayload, chains, download, upload, downSpeed, upSpeed, reason } =
    connection;
  return (
    <>
      <span role="cell" class="c-main">
        <button type="button" class="link" onClick={onOpen} title={name}>
          {name}
        </button>
        {metadata.network === "udp" && <Tag>udp</Tag>}
        {reason !== undefined && reason !== "over" && (
          <Tag kind={BAD.has(reason) ? "bad" : ""}>{t(REASONS[reason])}</Tag>
        )}
      </span>
      <span role="cell" class="c-rule text" title={rulePayload}>
        {rule === "" ? t("connections.noRule") : `${rule} ${rulePayload}`}
      </span>
      <span role="cell" class="c-way text" title={chains[0]}>
        <Chain names={chains.toReversed()} />
      </span>
      <span role="cell" class="c-down number">
        {words.bytes(download)}
        <small>{downSpeed >= 1 ? words.rate(downSpeed) : ""}</small>
      </span>
      <span role="cell" class="c-up number">
        {words.bytes(upload)}
        <small>{upSpeed >= 1 ? words.rate(upSpeed) : ""}</small>
      </span>
      <span role="cell" class="c-age number">
        {words.duration(ageMs(connection))}
      </span>
      <span role="cell" class="c-act">
        {connection.endedAtMs === undefined && (
          <CloseButton label={t("connections.closeOne", { name })} onPress={onClose} />
        )}
      </span>
    </>
  );
}
