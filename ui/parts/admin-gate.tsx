import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CodeAsked } from "#ui/api/session.ts";
import { textOf, useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { Rich } from "./rich.tsx";
import { SecretForm } from "./secret-form.tsx";
import { Empty, Fault, Page } from "./small.tsx";

interface Props {
  readonly title: string;
  /** What stands in the messages. */
  readonly subject: string;
  /** Where there is no `svc` block, or not this way. */
  readonly absent: string;
  readonly children: ComponentChildren;
}

/** Shows its children once the admin secret has been given. */
export function AdminGate({ title, subject, absent, children }: Props) {
  const { admin, link } = useEnvironment();
  const act = useAction();
  const words = useWords();
  const { t } = words;
  const state = useStore(admin.state);
  const isThere = useStore(link.state).kind === "ready";
  const [error, setError] = useState("");
  useEffect(() => {
    if (state.kind !== "unknown" || !isThere) return;
    admin.probe().then(
      () => setError(""),
      (fault: unknown) => setError(textOf(words, fault)),
    );
  }, [state.kind, isThere]);
  if (state.kind === "open") return <>{children}</>;
  return (
    <Page title={title}>
      {state.kind === "unknown" &&
        (error === "" ? <Empty title={t("common.loading")} /> : <Fault text={error} />)}
      {state.kind === "absent" && (
        <Empty title={absent}>
          <Rich text={t("admin.absentText")} />
        </Empty>
      )}
      {state.kind === "locked" && (
        <SecretForm
          title={subject}
          level="h2"
          label={t("admin.secret")}
          account="weir users"
          refused={state.refused}
          onSecret={async (secret, code) => {
            let asked: CodeAsked | null = null;
            const open = async (): Promise<void> => void (asked = await admin.unlock(secret, code));
            await act(open, t("admin.askFailed", { subject }));
            return asked;
          }}
        >
          <p>
            <Rich text={t("admin.secretText")} />
          </p>
        </SecretForm>
      )}
    </Page>
  );
}
