import { useEffect, useMemo, useState } from "preact/hooks";
import type { AdminOverview, ManagedUser, UserList } from "#ui/api/admin-types.ts";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { RollbackBanner } from "#ui/parts/rollback-banner.tsx";
import { Select } from "#ui/parts/inputs.tsx";
import { Button, Empty } from "#ui/parts/small.tsx";
import { TablePage } from "#ui/parts/table-page.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import { hasLabel, labelCounts } from "#ui/state/labels.ts";
import { UsageHistory } from "#ui/state/usage-history.ts";
import { USER_KEYS } from "#ui/state/user-order.ts";
import { useUserEditor } from "#ui/state/user-editor.ts";
import { useBulk } from "#ui/state/bulk.ts";
import { UserBatch } from "./user-batch.tsx";
import { BulkBar, BulkProgress } from "./user-bulk.tsx";
import { UserCells } from "./user-cells.tsx";
import { type Open, UserDialogs } from "./user-dialogs.tsx";

const COLUMNS = [
  "common.name",
  "common.state",
  "common.listener",
  "user.quota",
  "user.expires",
  "common.down",
  "common.up",
  "users.live",
] as const;
const REFRESH_MS = 2_000;
/** Of the time between two answers, at most a tenth is for the answer: ten thousand users are megabytes. */
const REST_FACTOR = 9;

export function UserTable() {
  const { admin } = useEnvironment();
  const { t } = useWords();
  const { list, history, rollback, error, reload } = useUsers();
  const [filter, setFilter] = useState("");
  const [label, setLabel] = useState("");
  const [open, setOpen] = useState<Open>({ kind: "nothing" });
  const [isBatch, setBatch] = useState(false);
  const [ids, setIds] = useState<ReadonlySet<string>>(NOBODY);
  const editor = useUserEditor(reload);
  const bulk = useBulk(reload);
  const labels = useMemo(() => labelCounts(list.users), [list]);
  const labelled = useMemo(
    () => (label === "" ? list.users : list.users.filter((user) => hasLabel(user, label))),
    [list, label],
  );
  const matches = useMemo(() => matching(labelled, filter, searchedOf), [labelled, filter]);
  const { shown, ordering } = useOrdering(
    "users",
    matches,
    COLUMNS.map((name, at) => ({ name: t(name), key: USER_KEYS[at] ?? null })),
  );
  const chosen = useMemo(() => list.users.filter(({ id }) => ids.has(id)), [list, ids]);
  const all = list.users.length;
  const choose = (id: string, on: boolean): void => {
    const next = new Set(ids);
    if (on) next.add(id);
    else next.delete(id);
    setIds(next);
  };
  return (
    <TablePage
      title={t("page.users")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.search")}
      filterHint={t("users.filterHint")}
      tools={
        <Tools
          isEmpty={list.inbounds.length === 0}
          labels={labels}
          label={label}
          onLabel={setLabel}
          onNew={() => setOpen({ kind: "new" })}
          onBatch={() => setBatch(true)}
          onAll={() => setIds(new Set(shown.map(({ id }) => id)))}
          onForget={() => admin.lock()}
        />
      }
      status={
        shown.length === all
          ? t("users.count", { count: all })
          : t("users.someOf", { shown: shown.length, count: all })
      }
      error={error}
      warning={
        <>
          {rollback !== undefined && (
            <RollbackBanner
              rollback={rollback}
              sinceMs={rollback.since}
              setting="svc.store"
              lost={t("users.lost")}
            />
          )}
          <BulkBar chosen={chosen} bulk={bulk} onNone={() => setIds(NOBODY)} />
        </>
      }
      nothing={
        shown.length === 0 ? <Empty title={all === 0 ? t("users.none") : t("common.noSearchMatch")} /> : null
      }
      label={t("users.subject")}
      kind="rows-users"
      variant={label}
      ordering={ordering}
      items={shown}
      keyOf={({ id }) => id}
      faded={({ enabled }) => !enabled}
      onOpen={(user) => setOpen({ kind: "details", user })}
      cells={(user) => (
        <UserCells
          user={user}
          isChosen={ids.has(user.id)}
          onChoose={(on) => choose(user.id, on)}
          onOpen={() => setOpen({ kind: "details", user })}
        />
      )}
    >
      <UserDialogs open={open} setOpen={setOpen} list={list} history={history} editor={editor} />
      {isBatch && (
        <UserBatch
          inbounds={list.inbounds}
          onRun={(steps) => {
            setBatch(false);
            void bulk.run(steps);
          }}
          onClose={() => setBatch(false)}
        />
      )}
      <BulkProgress bulk={bulk} />
    </TablePage>
  );
}

const NOBODY: ReadonlySet<string> = new Set();

interface ToolsProps {
  /** There is no listener whose users are managed. */
  readonly isEmpty: boolean;
  /** With how many users have each. */
  readonly labels: readonly (readonly [label: string, count: number])[];
  /** The one that is wanted; "": any or none. */
  readonly label: string;
  readonly onLabel: (label: string) => void;
  readonly onNew: () => void;
  readonly onBatch: () => void;
  readonly onAll: () => void;
  readonly onForget: () => void;
}

function Tools({ isEmpty, labels, label, onLabel, onNew, onBatch, onAll, onForget }: ToolsProps) {
  const words = useWords();
  const { t } = words;
  return (
    <>
      {(labels.length > 0 || label !== "") && (
        <Select
          label={t("user.label")}
          value={label}
          options={[
            ["", t("users.anyLabel")],
            ...labels.map(([name, many]) => [name, `${name} (${words.count(many)})`] as const),
          ]}
          onChange={onLabel}
        />
      )}
      <Button label={t("users.new")} kind="main" disabled={isEmpty} onPress={onNew} />
      <Button label={t("bulk.template")} disabled={isEmpty} onPress={onBatch} />
      <Button label={t("bulk.all")} disabled={isEmpty} onPress={onAll} />
      <Button label={t("users.forget")} onPress={onForget} />
    </>
  );
}

/** The list, asked for again and again while the page is looked at. */
function useUsers() {
  const { admin } = useEnvironment();
  const words = useWords();
  const [list, setList] = useState<UserList>({ users: [], inbounds: [] });
  const [error, setError] = useState("");
  const [{ rollback }, setOverview] = useState<AdminOverview>({});
  const [history] = useState(() => new UsageHistory());
  const reload = async (): Promise<void> => {
    try {
      const next = await admin.call<UserList>("GET", "users");
      history.read(next.users, Date.now());
      setList(next);
      setError("");
    } catch (fault) {
      setError(textOf(words, fault));
    }
  };
  useEffect(() => {
    void reload();
    admin
      .call<AdminOverview>("GET", "overview")
      .then(setOverview, (fault: unknown) => setError(textOf(words, fault)));
    let timer = 0;
    const later = (restMs: number): void => {
      timer = setTimeout(() => void again(), restMs);
    };
    const again = async (): Promise<void> => {
      const beganMs = performance.now();
      if (!document.hidden) await reload();
      if (timer !== 0) later(Math.max(REFRESH_MS, (performance.now() - beganMs) * REST_FACTOR));
    };
    later(REFRESH_MS);
    return () => {
      clearTimeout(timer);
      timer = 0;
    };
  }, []);
  return { list, history, rollback, error, reload };
}

/** What the search looks at. */
const searchedOf = ({ id, name, inbound, type, status, enabled, note, labels }: ManagedUser): string =>
  [
    id,
    name,
    inbound,
    type,
    status ?? "",
    enabled ? "enabled" : "disabled",
    note ?? "",
    ...(labels ?? []),
  ].join("\n");
