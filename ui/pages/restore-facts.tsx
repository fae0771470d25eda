import { DiffView } from "#ui/editor/diff-view.tsx";
import type { BackupView } from "#ui/api/restore-types.ts";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import { useResource, useWords } from "#ui/state/context.ts";

/** Names of a long list that are shown. */
const SHOWN = 20;

/** What is in a backup, and what would be lost. */
export function RestoreFacts({ view }: { readonly view: BackupView }) {
  const words = useWords();
  const { t } = words;
  const { value: file } = useResource<{ readonly text: string }>("api/svc/config");
  const { lost } = view;
  const audit = view.stores.find(({ role }) => role === "journal")?.counts["audit"] ?? 0;
  const rows: readonly Fact[] = [
    [t("restore.made"), words.moment(view.created_at * 1000)],
    [t("restore.version"), `weir ${view.version}`],
    [t("page.users"), words.count(view.users)],
    [t("page.tokens"), words.count(view.tokens)],
    [t("page.audit"), t("restore.entries", { count: audit })],
    [t("restore.listeners"), listOf(view.listeners.map(({ name, type }) => `${name} (${type})`))],
    [t("restore.choices"), words.count(view.choices)],
    [t("page.editor"), t(view.same_configuration ? "restore.same" : "restore.different")],
  ];
  const losses: readonly Fact[] = [
    [t("page.users"), listOf(lost.users)],
    [t("page.tokens"), listOf(lost.tokens)],
    [t("restore.listeners"), listOf(lost.listeners)],
  ];
  const isNothing = losses.every(([, value]) => value === "");
  return (
    <>
      <Facts rows={rows} />
      <h3>{t("restore.lost")}</h3>
      {isNothing ? <p class="note">{t("restore.lostNothing")}</p> : <Facts rows={losses} />}
      <p class="note">{t("restore.lostAlways")}</p>
      {view.other_sign_in && <p class="note">{t("restore.otherSecret")}</p>}
      {view.other_address && <p class="note">{t("restore.otherAddress")}</p>}
      {!view.same_configuration && file !== null && (
        <DiffView before={file.text} after={view.configuration ?? file.text} />
      )}
    </>
  );
}

function listOf(names: readonly string[]): string {
  const more = names.length > SHOWN ? ` … (${names.length})` : "";
  return names.slice(0, SHOWN).join(", ") + more;
}
