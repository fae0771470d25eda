import { useMemo, useState } from "preact/hooks";
import type { Setup, SetupListener } from "#ui/api/setup-types.ts";
import { hostPort } from "#ui/format.ts";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Tag } from "#ui/parts/small.tsx";
import { TablePage, waitingText } from "#ui/parts/table-page.tsx";
import { useResource, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey } from "#ui/words/words.ts";
import { removalOfListener, removalOfNode } from "#ui/state/recipes.ts";
import { ChangeDialog } from "./change-dialog.tsx";
import { ListenerEdit } from "./listener-edit.tsx";
import { ListenerWizard } from "./listener-wizard.tsx";
import { NodeDialog } from "./node-dialog.tsx";

const COLUMNS: readonly (readonly [PlainKey, SortKey<Item>])[] = [
  ["common.name", ({ name }) => name],
  ["common.kind", ({ listener, type }) => `${listener === null ? "node" : "listener"} ${type}`],
  ["setup.address", ({ address }) => address],
  ["common.state", ({ inert, listener }) => (inert !== null ? 0 : listener?.managed === true ? 1 : 2)],
];

/** A row of the table. */
interface Item {
  readonly name: string;
  readonly type: string;
  readonly address: string;
  /** Null: a node. */
  readonly listener: SetupListener | null;
  readonly inert: string | null;
}

type Open =
  | { readonly kind: "nothing" | "listener" | "nodes" }
  | { readonly kind: "edit"; readonly listener: SetupListener }
  | { readonly kind: "remove"; readonly item: Item };

export function InboundsPage() {
  const words = useWords();
  const { t } = words;
  const { value: setup, error, reload } = useResource<Setup>("api/svc/setup");
  const [filter, setFilter] = useState("");
  const [open, setOpen] = useState<Open>({ kind: "nothing" });
  const items = useMemo(() => (setup === null ? [] : itemsOf(setup)), [setup]);
  const matches = useMemo(() => matching(items, filter, searchedOf), [items, filter]);
  const columns = [...COLUMNS.map(([name, key]) => ({ name: t(name), key })), { name: "", key: null }];
  const { shown, ordering } = useOrdering("inbounds", matches, columns);
  const listeners = items.filter(({ listener }) => listener !== null).length;
  return (
    <TablePage
      title={t("page.inbounds")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.search")}
      filterHint={t("setup.filterHint")}
      tools={
        <>
          <Button
            label={t("setup.newListener")}
            kind="main"
            disabled={setup === null}
            onPress={() => setOpen({ kind: "listener" })}
          />
          <Button
            label={t("setup.newNodes")}
            disabled={setup === null}
            onPress={() => setOpen({ kind: "nodes" })}
          />
        </>
      }
      status={
        setup === null
          ? waitingText(words, error)
          : t("setup.status", {
              listeners: t("setup.listeners", { count: listeners }),
              nodes: t("setup.nodes", { count: items.length - listeners }),
            })
      }
      error={error}
      nothing={
        setup !== null && shown.length === 0 ? (
          <Empty title={items.length === 0 ? t("setup.none") : t("common.noSearchMatch")} />
        ) : null
      }
      label={t("setup.table")}
      kind="rows-inbounds"
      ordering={ordering}
      items={shown}
      keyOf={({ name, listener }) => `${listener === null ? "node" : "listener"} ${name}`}
      faded={({ inert }) => inert !== null}
      cells={(item) => <Cells item={item} onOpen={setOpen} />}
    >
      {setup !== null && (
        <Dialogs setup={setup} open={open} onChanged={reload} onClose={() => setOpen({ kind: "nothing" })} />
      )}
    </TablePage>
  );
}

function itemsOf({ listeners, nodes }: Setup): readonly Item[] {
  return [
    ...listeners.map((listener) => ({
      name: listener.name,
      type: listener.type,
      address: hostPort(listener.hosts[0] ?? "", listener.ports.join(",")),
      listener,
      inert: null,
    })),
    ...nodes.map(({ name, type, server, inert }) => ({ name, type, address: server, listener: null, inert })),
  ];
}

const searchedOf = ({ name, type, address }: Item): string => [name, type, address].join("\n");

interface DialogsProps {
  readonly setup: Setup;
  readonly open: Open;
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

function Dialogs({ setup, open, onChanged, onClose }: DialogsProps) {
  const common = { onChanged, onClose };
  if (open.kind === "listener") return <ListenerWizard setup={setup} {...common} />;
  if (open.kind === "nodes") return <NodeDialog setup={setup} {...common} />;
  if (open.kind === "edit") return <ListenerEdit listener={open.listener} {...common} />;
  if (open.kind === "remove") return <Removal setup={setup} item={open.item} {...common} />;
  return null;
}

function Removal({
  setup,
  item: { name, listener },
  ...common
}: { readonly item: Item } & Omit<DialogsProps, "open">) {
  const { t } = useWords();
  const edits = useMemo(
    () => (listener === null ? removalOfNode(setup, name) : removalOfListener(setup, name)),
    [name],
  );
  return <ChangeDialog title={t("setup.removeTitle", { name })} edits={edits} {...common} />;
}

function Cells({ item, onOpen }: { readonly item: Item; readonly onOpen: (open: Open) => void }) {
  const { t } = useWords();
  const { name, type, address, listener, inert } = item;
  return (
    <>
      <span role="cell" class="c-main text" title={inert ?? name}>
        {name}
      </span>
      <span role="cell" class="c-rule text">
        {t(listener === null ? "setup.node" : "setup.listener")} · {type}
      </span>
      <span role="cell" class="c-way text" title={address}>
        <bdi>{address}</bdi>
      </span>
      <span role="cell" class="c-down">
        {inert !== null && <Tag kind="bad">{t("setup.unusable")}</Tag>}
        {listener?.managed === true && <Tag kind="yes">{t("setup.managed")}</Tag>}
      </span>
      <span role="cell" class="c-act">
        {listener?.listed === true && (
          <Button
            label={t("common.edit")}
            name={t("setup.editOne", { name })}
            onPress={() => onOpen({ kind: "edit", listener })}
          />
        )}
        {listener?.listed !== false && (
          <Button
            label={t("common.remove")}
            name={t("setup.removeOne", { name })}
            kind="danger"
            onPress={() => onOpen({ kind: "remove", item })}
          />
        )}
      </span>
    </>
  );
}
