import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { textOf, useAction, useEnvironment } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
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
  const state = useStore(admin.state);
  const isThere = useStore(link.state).kind === "ready";
  const [error, setError] = useState("");
  useEffect(() => {
    if (state.kind !== "unknown" || !isThere) return;
    admin.probe().then(
      () => setError(""),
      (fault: unknown) => setError(textOf(fault)),
    );
  }, [state.kind, isThere]);
  if (state.kind === "open") return <>{children}</>;
  return (
    <Page title={title}>
      {state.kind === "unknown" && (error === "" ? <Empty title="Loading" /> : <Fault text={error} />)}
      {state.kind === "absent" && (
        <Empty title={absent}>
          They need the <code>svc</code> block in the configuration, and a Controller on this machine, by
          HTTPS or through a Unix socket: their secret does not travel in the clear.
        </Empty>
      )}
      {state.kind === "locked" && (
        <SecretForm
          title={subject}
          level="h2"
          label="Admin secret"
          refused={state.refused}
          onSecret={(secret) => act(() => admin.unlock(secret), `${subject} cannot be asked for`)}
        >
          <p>
            The value of <code>secret</code> in the <code>svc</code> block. It is kept in this page until it
            is reloaded.
          </p>
        </SecretForm>
      )}
    </Page>
  );
}
