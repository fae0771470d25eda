import { useEffect, useState } from "preact/hooks";
import type { NewToken, Token } from "#ui/api/token-types.ts";
import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { Confirm } from "#ui/parts/dialog.tsx";
import { OrderSelect, useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Fault, Page, Panel, Tag } from "#ui/parts/small.tsx";
import { textOf, useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey } from "#ui/words/words.ts";
import { NewTokenDialog, TokenForm } from "./token-form.tsx";

export function TokensPage() {
  const { t } = useWords();
  return (
    <AdminGate title={t("page.tokens")} subject={t("tokens.subject")} absent={t("tokens.absent")}>
      <Tokens />
    </AdminGate>
  );
}

const COLUMNS: readonly (readonly [PlainKey, SortKey<Token>])[] = [
  ["common.name", ({ name }) => name],
  ["tokens.byCreated", ({ created_at: at }) => at],
  ["tokens.byEnd", ({ expires_at: at }) => at ?? null],
  ["tokens.byUse", ({ used_at: at }) => at ?? null],
  ["common.listener", ({ listener }) => listener ?? null],
];

function Tokens() {
  const { t } = useWords();
  const { tokens, error, reload, revoke } = useTokens();
  const columns = COLUMNS.map(([name, key]) => ({ name: t(name), key }));
  const { shown, ordering } = useOrdering("tokens", tokens ?? [], columns);
  const [isNew, setIsNew] = useState(false);
  const [made, setMade] = useState<NewToken | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  return (
    <Page
      title={t("page.tokens")}
      tools={<Button label={t("tokens.new")} kind="main" onPress={() => setIsNew(true)} />}
    >
      <Fault text={error} />
      <Panel title={t("tokens.subject")}>
        <p class="note">{t("tokens.note")}</p>
        {tokens?.length === 0 && <Empty title={t("tokens.none")} />}
        {shown.length > 1 && <OrderSelect ordering={ordering} />}
        <ul class="lines" aria-label={t("tokens.subject")}>
          {shown.map((token) => (
            <TokenLine key={token.id} token={token} onRevoke={() => setRevoking(token)} />
          ))}
        </ul>
      </Panel>
      {isNew && (
        <TokenForm
          onMade={async (token) => {
            setIsNew(false);
            setMade(token);
            await reload();
          }}
          onClose={() => setIsNew(false)}
        />
      )}
      {made !== null && <NewTokenDialog token={made} onClose={() => setMade(null)} />}
      {revoking !== null && (
        <Confirm
          title={t("tokens.revokeAsk", { name: revoking.name })}
          text={t("tokens.revokeText")}
          action={t("tokens.revoke")}
          onAnswer={(yes) => {
            setRevoking(null);
            if (yes) void revoke(revoking);
          }}
        />
      )}
    </Page>
  );
}

function useTokens() {
  const { admin } = useEnvironment();
  const words = useWords();
  const act = useAction();
  const [tokens, setTokens] = useState<readonly Token[] | null>(null);
  const [error, setError] = useState("");
  const load = async (): Promise<void> => {
    const answer = await admin.svc<{ tokens: readonly Token[] }>("GET", "tokens");
    setTokens(answer.tokens);
    setError("");
  };
  const reload = (): Promise<void> => load().catch((fault: unknown) => setError(textOf(words, fault)));
  useEffect(() => void reload(), []);
  const revoke = ({ id, name }: Token): Promise<boolean> =>
    act(
      async () => {
        await admin.svc("DELETE", `tokens/${encodeURIComponent(id)}`);
        await load();
      },
      words.t("tokens.notRevoked", { name }),
      words.t("tokens.revoked", { name }),
    );
  return { tokens, error, reload, revoke };
}

function TokenLine({ token, onRevoke }: { readonly token: Token; readonly onRevoke: () => void }) {
  const words = useWords();
  const { t } = words;
  const { name, id, scopes, listener, created_at: created, expires_at: expires, used_at: used } = token;
  const facts = [
    t("tokens.id", { id }),
    t("tokens.created", { time: words.moment(created) }),
    expires === undefined ? t("tokens.forever") : t("tokens.expires", { time: words.moment(expires) }),
    used === undefined ? t("tokens.unused") : t("tokens.used", { time: words.moment(used) }),
  ];
  const isOver = expires !== undefined && expires <= Date.now();
  return (
    <li class="line wrap">
      <span class="line-main">
        <span class="text">
          {name}{" "}
          {scopes.map((scope) => (
            <Tag key={scope}>{scope}</Tag>
          ))}{" "}
          {listener !== undefined && <Tag>{listener}</Tag>}{" "}
          {isOver && <Tag kind="bad">{t("user.expired")}</Tag>}
        </span>
        <small>{facts.join(" · ")}</small>
      </span>
      <Button
        label={t("tokens.revoke")}
        name={t("tokens.revokeOne", { name })}
        kind="danger"
        onPress={onRevoke}
      />
    </li>
  );
}
