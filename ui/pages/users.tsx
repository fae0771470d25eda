import { useEffect, useState } from "preact/hooks";
import { Empty, Fault, Page } from "#ui/parts/small.tsx";
import { SecretForm } from "#ui/parts/secret-form.tsx";
import { textOf, useAction, useEnvironment } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { UserTable } from "./user-table.tsx";

export function UsersPage() {
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
  if (state.kind === "open") return <UserTable />;
  return (
    <Page title="Users">
      {state.kind === "unknown" && (error === "" ? <Empty title="Loading" /> : <Fault text={error} />)}
      {state.kind === "absent" && (
        <Empty title="No managed users here">
          They need the <code>svc</code> block in the configuration, and a Controller on this machine, by
          HTTPS or through a Unix socket: their secret does not travel in the clear.
        </Empty>
      )}
      {state.kind === "locked" && (
        <SecretForm
          title="Managed users"
          level="h2"
          label="Admin secret"
          refused={state.refused}
          onSecret={(secret) => act(() => admin.unlock(secret), "Managed users cannot be asked for")}
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
