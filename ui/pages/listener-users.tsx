import { useEffect, useState } from "preact/hooks";
import type { ManagedInbound, UserDetail } from "#ui/api/admin-types.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Input } from "#ui/parts/inputs.tsx";
import { ShareLink } from "#ui/parts/share-link.tsx";
import { SecretForm } from "#ui/parts/secret-form.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { shareLinksOf } from "#ui/state/share-links.ts";
import { useStore } from "#ui/state/store.ts";
import { VISION } from "#ui/state/recipes.ts";
import { WordedError } from "#ui/words/words.ts";

interface Props {
  readonly name: string;
  readonly isManaged: boolean;
}

/** How clients reach a new listener: the links of its users. */
export function ListenerUsers({ name, isManaged }: Props) {
  const { admin } = useEnvironment();
  const { t } = useWords();
  const state = useStore(admin.state);
  useEffect(() => {
    if (isManaged && state.kind === "unknown") admin.probe().catch(() => {});
  }, [state.kind]);
  if (!isManaged) return <FileLinks name={name} />;
  if (state.kind === "locked")
    return (
      <SecretForm
        title={t("setup.firstUser")}
        level="h2"
        label={t("admin.secret")}
        account="weir users"
        refused={state.refused}
        onSecret={(secret, code) => admin.unlock(secret, code)}
      >
        {null}
      </SecretForm>
    );
  return state.kind === "open" ? <FirstUser listener={name} /> : null;
}

function FileLinks({ name }: { readonly name: string }) {
  const { link } = useEnvironment();
  const words = useWords();
  const [links, setLinks] = useState<readonly string[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const query = new URLSearchParams({ listener: name, host: location.hostname });
    link.get<{ links: readonly string[] }>(`api/svc/setup/links?${query}`).then(
      (answer) => setLinks(answer.links),
      (fault: unknown) => setError(textOf(words, fault)),
    );
  }, [name]);
  return (
    <>
      <Fault text={error} />
      {links?.length === 0 && <p class="note">{words.t("setup.noLinks")}</p>}
      {links?.map((one) => (
        <ShareLink key={one} text={one} />
      ))}
    </>
  );
}

function FirstUser({ listener }: { readonly listener: string }) {
  const { admin, link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [added, setAdded] = useState<{ readonly user: UserDetail; readonly links: readonly string[] } | null>(
    null,
  );
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const { inbounds } = await admin.call<{ inbounds: readonly ManagedInbound[] }>("GET", "inbounds");
      const inbound = inbounds.find(({ tag }) => tag === listener);
      if (inbound === undefined) throw new WordedError((say) => say("users.noListener"));
      const { revision, flow } = inbound;
      const draft = { inbound: listener, name: name.trim(), revision, ...(flow ? { flow: VISION } : {}) };
      const user = await admin.call<UserDetail>("POST", "users", draft);
      setAdded({ user, links: await shareLinksOf(link, user) });
    } catch (fault) {
      setError(textOf(words, fault));
    }
    setBusy(false);
  };
  if (added !== null)
    return (
      <>
        <p role="status">{t("setup.userAdded", { name: added.user.name })}</p>
        {added.links.map((one) => (
          <ShareLink key={one} text={one} />
        ))}
        {added.user.subscription_url !== undefined && (
          <p class="secret">
            {t("setup.subscription")}: <code>{added.user.subscription_url}</code>
            <CopyButton
              text={added.user.subscription_url}
              label={t("user.copyLink")}
              done={t("user.linkCopied")}
            />
          </p>
        )}
      </>
    );
  return (
    <form class="fields" onSubmit={(event) => void add(event)}>
      <Input label={t("setup.userName")} value={name} onInput={setName} required />
      <div class="actions">
        <Button label={t("setup.addUser")} kind="main" busy={busy} />
      </div>
      <Fault text={error} />
    </form>
  );
}
