import { useState } from "preact/hooks";
import type { Snapshot } from "#ui/api/types.ts";
import { bytesText, countText, durationText, rateText } from "#ui/format.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { Rows } from "#ui/parts/rows.tsx";
import { Button, Chain, CloseButton, Empty, Input, Page, Select, Tag } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useStream } from "#ui/state/context.ts";
import { arrange, ORDERS, Speedometer, type LiveConnection, type Order } from "#ui/state/live.ts";
import { ConnectionDetails } from "./connection-details.tsx";

const COLUMNS = ["Destination", "Rule", "Way", "Download", "Upload", "Age", "Close"];
/** Requests in flight while a filtered list is closed one by one. */
const CLOSE_AT_ONCE = 6;

export function ConnectionsPage() {
  const { link } = useEnvironment();
  const act = useAction();
  const [meter] = useState(() => new Speedometer());
  const [live, setLive] = useState<readonly LiveConnection[] | null>(null);
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<Order>("newest");
  const [chosen, setChosen] = useState<LiveConnection | null>(null);
  const [asking, setAsking] = useState(false);
  useStream<Snapshot>("connections?interval=1000", (snapshot) => setLive(meter.read(snapshot, Date.now())));

  const shown = arrange(live ?? [], filter, order);
  const filtered = filter.trim() !== "";
  const closeOne = ({ id, name }: LiveConnection): Promise<boolean> =>
    act(() => link.send("DELETE", `connections/${encodeURIComponent(id)}`), `${name} was not closed`);
  const closeShown = async (): Promise<void> => {
    const close = (id: string) => link.send("DELETE", `connections/${encodeURIComponent(id)}`);
    if (!filtered) return link.send("DELETE", "connections");
    for (let at = 0; at < shown.length; at += CLOSE_AT_ONCE)
      await Promise.all(shown.slice(at, at + CLOSE_AT_ONCE).map(({ id }) => close(id)));
  };
  const onAnswer = (yes: boolean): void => {
    setAsking(false);
    if (yes) void act(closeShown, "Not all were closed", "Closed");
  };
  const current = chosen === null ? null : (live?.find(({ id }) => id === chosen.id) ?? null);

  return (
    <Page
      title="Connections"
      fill
      tools={
        <>
          <Input
            label="Filter"
            type="search"
            value={filter}
            onInput={setFilter}
            placeholder="host, rule, node, source"
          />
          <Select label="Order" value={order} options={ORDERS} onChange={setOrder} />
          <Button
            label={filtered ? "Close shown" : "Close all"}
            kind="danger"
            disabled={shown.length === 0}
            onPress={() => setAsking(true)}
          />
        </>
      }
    >
      <p class="status" role="status">
        {live === null ? "Loading" : statusText(shown.length, live.length)}
      </p>
      {live !== null && shown.length === 0 ? (
        <Nothing filtered={filtered} />
      ) : (
        <Rows
          key={`${order} ${filter}`} // another list: from its top
          label="Live connections"
          kind="rows-connections"
          columns={COLUMNS}
          items={shown}
          keyOf={({ id }) => id}
          cells={(connection) => (
            <Cells
              connection={connection}
              onOpen={() => setChosen(connection)}
              onClose={() => closeOne(connection)}
            />
          )}
        />
      )}
      {chosen !== null && (
        <ConnectionDetails
          connection={current ?? chosen}
          ended={current === null}
          onEnd={() => void closeOne(chosen)}
          onClose={() => setChosen(null)}
        />
      )}
      {asking && (
        <Confirm
          title={filtered ? "Close these connections?" : "Close all connections?"}
          text={`${countText(shown.length)} of ${countText(live?.length ?? 0)} connections will be cut. Programs may open them again.`}
          action={filtered ? "Close shown" : "Close all"}
          onAnswer={onAnswer}
        />
      )}
    </Page>
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
