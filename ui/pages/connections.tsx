import { useState } from "preact/hooks";
import type { Snapshot } from "#ui/api/types.ts";
import { bytesText, counted, countText, durationText, rateText } from "#ui/format.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { Select } from "#ui/parts/inputs.tsx";
import { Button, Chain, CloseButton, Empty, Tag } from "#ui/parts/small.tsx";
import { TablePage } from "#ui/parts/table-page.tsx";
import { useAction, useEnvironment, useStream } from "#ui/state/context.ts";
import { arrange, ORDERS, Speedometer, type LiveConnection, type Order } from "#ui/state/live.ts";
import { ConnectionDetails } from "./connection-details.tsx";

const COLUMNS = ["Destination", "Rule", "Way", "Download", "Upload", "Age", "Close"];
/** Requests in flight while a filtered list is closed one by one. */
const CLOSE_AT_ONCE = 6;

export function ConnectionsPage() {
  const live = useLive();
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<Order>("newest");
  const [chosen, setChosen] = useState<LiveConnection | null>(null);
  const shown = arrange(live ?? [], filter, order);
  const filtered = filter.trim() !== "";
  const closeOne = useCloseOne();
  return (
    <TablePage
      title="Connections"
      filter={filter}
      onFilter={setFilter}
      filterLabel="Filter"
      filterHint="host, rule, node, source"
      tools={
        <>
          <Select label="Order" value={order} options={ORDERS} onChange={setOrder} />
          <CloseMany shown={shown} all={live?.length ?? 0} filtered={filtered} />
        </>
      }
      status={live === null ? "Loading" : statusText(shown.length, live.length)}
      nothing={live !== null && shown.length === 0 ? <Nothing filtered={filtered} /> : null}
      order={order}
      label="Live connections"
      kind="rows-connections"
      columns={COLUMNS}
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
  const [meter] = useState(() => new Speedometer());
  const [live, setLive] = useState<readonly LiveConnection[] | null>(null);
  useStream<Snapshot>("connections?interval=1000", (snapshot) => setLive(meter.read(snapshot, Date.now())));
  return live;
}

const pathOf = ({ id }: LiveConnection): string => `connections/${encodeURIComponent(id)}`;

function useCloseOne(): (connection: LiveConnection) => Promise<boolean> {
  const { link } = useEnvironment();
  const act = useAction();
  return (connection) =>
    act(() => link.send("DELETE", pathOf(connection)), `${connection.name} was not closed`);
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
  const [asking, setAsking] = useState(false);
  const label = filtered ? "Close shown" : "Close all";
  const close = async (): Promise<void> => {
    if (!filtered) return link.send("DELETE", "connections");
    for (let at = 0; at < shown.length; at += CLOSE_AT_ONCE) {
      const some = shown.slice(at, at + CLOSE_AT_ONCE);
      await Promise.all(some.map((connection) => link.send("DELETE", pathOf(connection))));
    }
  };
  const onAnswer = (yes: boolean): void => {
    setAsking(false);
    if (yes) void act(close, "Not all were closed", "Closed");
  };
  return (
    <>
      <Button label={label} kind="danger" disabled={shown.length === 0} onPress={() => setAsking(true)} />
      {asking && (
        <Confirm
          title={filtered ? "Close these connections?" : "Close all connections?"}
          text={`${countText(shown.length)} of ${counted(all, "connection")} will be cut. Programs may open them again.`}
          action={label}
          onAnswer={onAnswer}
        />
      )}
    </>
  );
}

function statusText(shown: number, all: number): string {
  return shown === all ? `${countText(all)} live` : `${countText(shown)} of ${countText(all)} live`;
}

function Nothing({ filtered }: { readonly filtered: boolean }) {
  return filtered ? (
    <Empty title="Nothing matches the filter" />
  ) : (
    <Empty title="No connections">Programs that use the proxy show up here while they are connected.</Empty>
  );
}

interface CellsProps {
  readonly connection: LiveConnection;
  readonly onOpen: () => void;
  readonly onClose: () => unknown;
}

function Cells({ connection, onOpen, onClose }: CellsProps) {
  const { name, metadata, rule, rulePayload, chains, download, upload, downSpeed, upSpeed, start } =
    connection;
  return (
    <>
      <span role="cell" class="c-main">
        <button type="button" class="link" onClick={onOpen} title={name}>
          {name}
        </button>
        {metadata.network === "udp" && <Tag>udp</Tag>}
      </span>
      <span role="cell" class="c-rule text" title={rulePayload}>
        {rule === "" ? "no rule" : `${rule} ${rulePayload}`}
      </span>
      <span role="cell" class="c-way text" title={chains[0]}>
        <Chain names={chains.toReversed()} />
      </span>
      <span role="cell" class="c-down number">
        {bytesText(download)}
        <small>{downSpeed >= 1 ? rateText(downSpeed) : ""}</small>
      </span>
      <span role="cell" class="c-up number">
        {bytesText(upload)}
        <small>{upSpeed >= 1 ? rateText(upSpeed) : ""}</small>
      </span>
      <span role="cell" class="c-age number">
        {durationText(Date.now() - Date.parse(start))}
      </span>
      <span role="cell" class="c-act">
        <CloseButton label={`Close ${name}`} onPress={onClose} />
      </span>
    </>
  );
}
