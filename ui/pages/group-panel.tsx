import { useState } from "preact/hooks";
import type { Proxy } from "#ui/api/types.ts";
import { Icon } from "#ui/parts/icons.tsx";
import { Button, Tag } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { delayPath, delayQuery } from "#ui/state/delay-tests.ts";
import { matching } from "#ui/state/filter.ts";
import { isSelectable, lastDelay, type Nodes } from "#ui/state/nodes.ts";

/** A page of more cards than this is slow and of no use; the filter finds the rest. */
const MAX_MEMBERS = 300;
/** Larger groups start folded. */
const OPEN_UP_TO = 60;

/** The orders of a group's members that a user can choose, each with the key of its name. */
export const MEMBER_ORDERS = [
  ["config", "groups.asConfigured"],
  ["delay", "groups.byDelay"],
  ["name", "groups.byName"],
] as const;
export type MemberOrder = (typeof MEMBER_ORDERS)[number][0];

interface Props {
  readonly group: Proxy;
  readonly nodes: Nodes;
  readonly filter: string;
  readonly order: MemberOrder;
  readonly reload: () => Promise<void>;
}

export function GroupPanel({ group, nodes, filter, order, reload }: Props) {
  const words = useWords();
  const { t } = words;
  const { busy, select, unpin, testAll } = useGroupActions(group, reload);
  const all = group.all ?? [];
  const [open, setOpen] = useState(all.length <= OPEN_UP_TO);
  const testUrl = group.testUrl ?? "";
  const shown = arrange(all, nodes, { filter, order, testUrl });
  return (
    <details class="panel group" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="panel-head">
        <h2>{group.name}</h2>
        <Tag>{group.type}</Tag>
        {group.now !== undefined && <span class="now text">{group.now}</span>}
        <span class="note">{words.count(all.length)}</span>
      </summary>
      {open && (
        <>
          <div class="tools">
            <Button label={t("groups.testAll")} busy={busy} onPress={testAll} />
            {group.fixed !== undefined && group.fixed !== "" && (
              <Button label={t("groups.unpin", { name: group.fixed })} onPress={unpin} />
            )}
          </div>
          {group.unavailable !== undefined && (
            <p class="note">{t("groups.unavailable", { why: group.unavailable })}</p>
          )}
          <ul class="members" aria-label={t("groups.members", { name: group.name })}>
            {shown.slice(0, MAX_MEMBERS).map((member) => (
              <Member key={member} name={member} {...{ group, nodes, testUrl, select, reload }} />
            ))}
          </ul>
          {shown.length === 0 && <p class="note">{t("groups.noMember")}</p>}
          {shown.length > MAX_MEMBERS && (
            <p class="note">{t("groups.mostShown", { shown: MAX_MEMBERS, all: shown.length })}</p>
          )}
        </>
      )}
    </details>
  );
}

/** What the buttons of a group do; each says by itself how it went. */
function useGroupActions(group: Proxy, reload: () => Promise<void>) {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const { name } = group;
  const [busy, setBusy] = useState(false);
  const path = `proxies/${encodeURIComponent(group.name)}`;
  const change = (send: () => Promise<void>, failed: string, done: string): Promise<boolean> =>
    act(() => send().then(reload), failed, done);
  const select = (member: string): Promise<boolean> =>
    change(
      () => link.send("PUT", path, { name: member }),
      t("groups.notChanged", { name }),
      t("groups.uses", { name, member }),
    );
  const unpin = (): Promise<boolean> =>
    change(
      () => link.send("DELETE", path),
      t("groups.notUnpinned", { name }),
      t("groups.unpinned", { name }),
    );
  const testAll = async (): Promise<void> => {
    const question = `group/${encodeURIComponent(group.name)}/delay?${delayQuery(group.testUrl ?? "")}`;
    setBusy(true);
    await act(() => link.get(question), t("groups.noneAnswered", { name }));
    await reload();
    setBusy(false);
  };
  return { busy, select, unpin, testAll };
}

interface MemberProps {
  readonly name: string;
  readonly group: Proxy;
  readonly nodes: Nodes;
  readonly testUrl: string;
  readonly select: (member: string) => unknown;
  readonly reload: () => Promise<void>;
}

function Member({ name, group, nodes, testUrl, select, reload }: MemberProps) {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const [busy, setBusy] = useState(false);
  const node = nodes.byName.get(name);
  const provider = nodes.providerOf.get(name);
  const chosen = group.now === name;
  const text = (
    <>
      <span class="member-name">{name}</span>
      <span class="member-type">
        {node?.unavailable ?? (node?.now === undefined ? (node?.type ?? "") : `${node.type}: ${node.now}`)}
      </span>
      {chosen && <Icon name="check" />}
    </>
  );
  const test = async (): Promise<void> => {
    setBusy(true);
    await act(() => link.get(delayPath(name, provider, testUrl)), t("groups.notAnswered", { name }));
    await reload();
    setBusy(false);
  };
  return (
    <li class={chosen ? "member chosen" : "member"}>
      {isSelectable(group) ? (
        <button type="button" class="member-pick" aria-pressed={chosen} onClick={() => select(name)}>
          {text}
        </button>
      ) : (
        <span class="member-pick">{text}</span>
      )}
      <Delay name={name} ms={lastDelay(node, testUrl)} busy={busy} onTest={test} />
    </li>
  );
}

interface DelayProps {
  readonly name: string;
  readonly ms: number | null;
  readonly busy: boolean;
  readonly onTest: () => unknown;
}

function Delay({ name, ms, busy, onTest }: DelayProps) {
  const { t } = useWords();
  const text = ms === null ? t("groups.test") : ms === 0 ? t("groups.failed") : t("unit.ms", { value: ms });
  const grade = ms === null ? "" : ms === 0 ? "bad" : ms < 300 ? "good" : ms < 1000 ? "fair" : "bad";
  return (
    <button
      type="button"
      class={`delay ${grade}`}
      aria-busy={busy}
      aria-disabled={busy}
      aria-label={
        ms === null ? t("groups.testOne", { name }) : t("groups.testOneAgain", { name, delay: text })
      }
      onClick={() => void (busy || onTest())}
    >
      {busy ? "…" : text}
    </button>
  );
}

interface Arrangement {
  readonly filter: string;
  readonly order: MemberOrder;
  readonly testUrl: string;
}

function arrange(
  all: readonly string[],
  nodes: Nodes,
  { filter, order, testUrl }: Arrangement,
): readonly string[] {
  const found = matching(all, filter, (name) => name);
  if (order === "name") return found.toSorted((a, b) => a.localeCompare(b));
  if (order === "config") return found;
  const delay = (name: string): number => lastDelay(nodes.byName.get(name), testUrl) || 1e9; // untested and failed last
  return found.toSorted((a, b) => delay(a) - delay(b));
}
