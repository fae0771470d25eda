import { useEffect, useMemo, useState } from "preact/hooks";
import type { AuditEntry, AuditPage as Entries, AuditVerdict } from "#ui/api/audit-types.ts";
import { counted, countText } from "#ui/format.ts";
import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { Button, Empty, Fault } from "#ui/parts/small.tsx";
import { TablePage } from "#ui/parts/table-page.tsx";
import { textOf, useEnvironment } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";

const COLUMNS = ["What", "Who", "Change", "When", "From"];
/** More change texts than this are cut; the export has them whole. */
const MOST_CHARACTERS = 300;

export function AuditPage() {
  return (
    <AdminGate title="Audit" subject="The audit log" absent="No audit log here">
      <AuditTable />
    </AdminGate>
  );
}

function AuditTable() {
  const { entries, next, verdict, error, more } = useAudit();
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => matching(entries, filter, searchedOf), [entries, filter]);
  return (
    <TablePage
      title="Audit"
      filter={filter}
      onFilter={setFilter}
      filterLabel="Search"
      filterHint="who, what, from where"
      tools={<Button label="Older entries" disabled={next === null} onPress={more} />}
      status={`${countText(shown.length)} of the newest ${counted(entries.length, "entry", "entries")}${stateOf(verdict)}`}
      error={error}
      warning={verdict !== null && verdict.faults.length > 0 && <Fault text={verdict.faults.join("; ")} />}
      nothing={
        shown.length === 0 ? (
          <Empty
            title={entries.length === 0 ? "Nothing has been changed yet" : "Nothing matches the search"}
          />
        ) : null
      }
      label="Audit log"
      kind="rows-audit"
      columns={COLUMNS}
      items={shown}
      keyOf={({ seq }) => seq}
      cells={(entry) => <Cells entry={entry} />}
    />
  );
}

function stateOf(verdict: AuditVerdict | null): string {
  if (verdict === null) return "";
  return verdict.faults.length === 0 ? ", the chain is whole" : ", THE CHAIN IS BROKEN";
}

/** The newest entries, and older ones as they are asked for. */
function useAudit() {
  const { admin } = useEnvironment();
  const [entries, setEntries] = useState<readonly AuditEntry[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const [verdict, setVerdict] = useState<AuditVerdict | null>(null);
  const [error, setError] = useState("");
  const fail = (fault: unknown): void => setError(textOf(fault));
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

const aboutOf = ({ user, target }: AuditEntry): string => user?.name ?? target;

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
        {new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" })}
      </span>
      <span role="cell" class="c-up text" title={from}>
        {from}
      </span>
    </>
  );
}
