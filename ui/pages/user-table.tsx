import { useEffect, useMemo, useState } from "preact/hooks";
import type { AdminOverview, ManagedUser, UserList } from "#ui/api/admin-types.ts";
import { RollbackBanner } from "#ui/parts/rollback-banner.tsx";
import { Button, Empty } from "#ui/parts/small.tsx";
import { TablePage } from "#ui/parts/table-page.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import { UsageHistory } from "#ui/state/usage-history.ts";
import { useUserEditor } from "#ui/state/user-editor.ts";
import { StateTag } from "./user-details.tsx";
import { type Open, UserDialogs } from "./user-dialogs.tsx";

const COLUMNS = [
  "common.name",
  "common.state",
  "common.listener",
  "common.down",
  "common.up",
  "users.live",
] as const;
const REFRESH_MS = 2_000;

export function UserTable() {
  const { admin } = useEnvironment();
  const { t } = useWords();
  const { list, history, rollback, error, reload } = useUsers();
  const [filter, setFilter] = useState("");
  const [open, setOpen] = useState<Open>({ kind: "nothing" });
  const editor = useUserEditor(reload);
  const shown = useMemo(() => matching(list.users, filter, searchedOf), [list, filter]);
  const all = list.users.length;
  return (
    <TablePage
      title={t("page.users")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.search")}
      filterHint={t("users.filterHint")}
      tools={
        <>
          <Button
            label={t("users.new")}
            kind="main"
            disabled={list.inbounds.length === 0}
            onPress={() => setOpen({ kind: "new" })}
          />
          <Button label={t("users.forget")} onPress={() => admin.lock()} />
        </>
      }
      status={
        shown.length === all
          ? t("users.count", { count: all })
          : t("users.someOf", { shown: shown.length, count: all })
      }
      error={error}
      warning={
        rollback !== undefined && (
          <RollbackBanner
            rollback={rollback}
            sinceMs={rollback.since}
            setting="svc.store"
            lost={t("users.lost")}
          />
        )
      }
      nothing={
        shown.length === 0 ? <Empty title={all === 0 ? t("users.none") : t("common.noSearchMatch")} /> : null
      }
      label={t("users.subject")}
      kind="rows-users"
      columns={COLUMNS.map((name) => t(name))}
      items={shown}
      keyOf={({ id }) => id}
      faded={({ enabled }) => !enabled}
      onOpen={(user) => setOpen({ kind: "details", user })}
      cells={(user) => <Cells user={user} onOpen={() => setOpen({ kind: "details", user })} />}
    >
      <UserDialogs open={open} setOpen={setOpen} list={list} history={history} editor={editor} />
    </TablePage>
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
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return { list, history, rollback, error, reload };
}

/** What the search looks at. */
const searchedOf = ({ id, name, inbound, type, status, enabled }: ManagedUser): string =>
  [id, name, inbound, type, status ?? "", enabled ? "enabled" : "disabled"].join("\n");

function Cells({ user, onOpen }: { readonly user: ManagedUser; readonly onOpen: () => void }) {
  const words = useWords();
  return (
    <>
      <span role="cell" class="c-main">
        <button type="button" class="link" onClick={onOpen} title={user.name}>
          {user.name}
        </button>
      </span>
      <span role="cell" class="c-rule">
        <StateTag user={user} />
      </span>
      <span role="cell" class="c-way text">
        {user.inbound}
      </span>
      <span role="cell" class="c-down number">
        {words.bytes(user.download_bytes)}
      </span>
      <span role="cell" class="c-up number">
        {words.bytes(user.upload_bytes)}
      </span>
      <span role="cell" class="c-age number">
        {words.count(user.active_connections)}
      </span>
    </>
  );
}
