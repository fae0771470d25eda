import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEntry, AuditPage as Entries, AuditVerdict } from "#ui/api/audit-types.ts";
import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { saveFile } from "#ui/parts/save-file.ts";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Fault } from "#ui/parts/small.tsx";
import { TablePage } from "#ui/parts/table-page.tsx";
import { textOf, useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";

const COLUMNS: readonly (readonly [PlainKey, SortKey<AuditEntry>])[] = [
  ["audit.what", (entry) => `${entry.action} ${aboutOf(entry)}`],
  ["audit.who", ({ actor }) => actor.name],
  ["audit.change", changeText],
  ["audit.when", ({ seq }) => seq],
  ["audit.from", ({ from }) => from],
];
/** More change texts than this are cut; the export has them whole. */
const MOST_CHARACTERS = 300;

export function AuditPage() {
  const { t } = useWords();
  return (
    <AdminGate title={t("page.audit")} subject={t("audit.subject")} absent={t("audit.absent")}>
      <AuditTable />
    </AdminGate>
  );
}

function AuditTable() {
  const words = useWords();
  const { t } = words;
  const { entries, next, verdict, error, more } = useAudit();
  const [filter, setFilter] = useState("");
  const { admin } = useEnvironment();
  const act = useAction();
  const save = (): Promise<boolean> =>
    act(async () => {
      const lines = await admin.svcText("audit/export.ndjson");
      saveFile("audit.ndjson", "application/x-ndjson", lines);
    }, t("audit.noFile"));
  const matches = useMemo(() => matching(entries, filter, searchedOf), [entries, filter]);
  const columns = COLUMNS.map(([name, key]) => ({ name: t(name), key }));
  const { shown, ordering } = useOrdering("audit", matches, columns);
  return (
    <TablePage
      title={t("page.audit")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.search")}
      filterHint={t("audit.filterHint")}
      tools={
        <>
          <Button label={t("audit.older")} disabled={next === null} onPress={more} />
          <Button label={t("audit.export")} onPress={save} />
        </>
      }
      status={statusText(words, shown.length, entries.length, verdict)}
      error={error}
      warning={verdict !== null && verdict.faults.length > 0 && <Fault text={verdict.faults.join("; ")} />}
      nothing={
        shown.length === 0 ? (
          <Empty title={entries.length === 0 ? t("audit.nothing") : t("common.noSearchMatch")} />
        ) : null
      }
      label={t("audit.table")}
      kind="rows-audit"
      ordering={ordering}
      items={shown}
      keyOf={({ seq }) => seq}
      cells={(entry) => <Cells entry={entry} />}
    />
  );
}

function statusText({ t }: Words, shown: number, count: number, verdict: AuditVerdict | null): string {
  const status = t("audit.status", { shown, count });
  if (verdict === null) return status;
  return t(verdict.faults.length === 0 ? "audit.whole" : "audit.broken", { status });
}

/** The newest entries, and older ones as they are asked for. */
function useAudit() {
  const { admin } = useEnvironment();
  const words = useWords();
  const [entries, setEntries] = useState<readonly AuditEntry[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const [verdict, setVerdict] = useState<AuditVerdict | null>(null);
  const [error, setError] = useState("");
  const fail = (fault: unknown): void => setError(textOf(words, fault));
  const load = async (before: number | null): Promise<void> => {
    const query = before === null ? "" : `?before=${before}`;
    const page = await admin.svc<Entries>("GET", `audit${query}`);
    setEntries((known) => (before === null ? page.entries : [...known, ...page.entries]));
    setNext(page.next ?? null);
    setError("");
  };
  useEffect(() => {
    load(null).catch(fail);
    admin.svc<AuditVerdict>("GET", "audit/verify").then(setVerdict, fail);
  }, []);
  return { entries, next, verdict, error, more: () => load(next).catch(fail) };
}

function aboutOf({ user, target }: AuditEntry): string {
  return user?.name ?? target;
}

const searchedOf = (entry: AuditEntry): string =>
  [entry.action, aboutOf(entry), entry.listener ?? "", entry.actor.name, entry.from].join("\n");

/** `{"enabled":true} → {"enabled":false}` */
function changeText({ before, after }: AuditEntry): string {
  const text = [before, after]
    .flatMap((value) => (value === undefined ? [] : [JSON.stringify(value)]))
    .join(" → ");
  return text.slice(0, MOST_CHARACTERS);
}

function Cells({ entry }: { readonly entry: AuditEntry }) {
  const words = useWords();
  const { action, actor, from, at } = entry;
  const change = changeText(entry);
  return (
    <>
      <span role="cell" class="c-main text" title={`${action} ${aboutOf(entry)}`}>
        {action} {aboutOf(entry)}
      </span>
      <span role="cell" class="c-rule text" title={`${actor.kind} ${actor.name}`}>
        {actor.name}
      </span>
      <span role="cell" class="c-way text" title={change}>
        {change}
      </span>
      <span role="cell" class="c-down">
        {words.moment(at)}
      </span>
      <span role="cell" class="c-up text" title={from}>
        {from}
      </span>
    </>
  );
}
